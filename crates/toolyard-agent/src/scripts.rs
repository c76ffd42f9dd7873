//! `execute_python_script` runs a script that a model has written.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolyard_core::random::{NoRandomness, random_bytes};
use toolyard_core::script::{self, PythonScript, ScriptExecutor, ScriptOutcome};
use toolyard_sdk::{Context, RegisterError, Server, Tool, ToolFailure};

use crate::guides::GuideDocument;
use crate::memory::reader::MemoryReader;
use crate::memory::{MemoryCaller, texts};

/// Name of the tool, as agents know it.
pub const TOOL: &str = "execute_python_script";

/// Guide to running scripts.
pub const GUIDE: GuideDocument = GuideDocument::new(
    "scripts",
    "Run Python for arithmetic, for transforming data, and for whatever is easier to compute than to reason out",
    include_str!("scripts/guide.md"),
);

const DESCRIPTION: &str = "\
Runs a Python 3 script once, in a sandbox without network, and returns what it prints. Use it to calculate and to \
transform data. Nothing is kept between scripts.";

/// Default timeout of a script in seconds.
const DEFAULT_TIMEOUT: u32 = 30;
/// Maximum number of entries of working memory for one script, and of their bytes together.
const MAX_KEYS: usize = 20;
const MAX_MEMORY: usize = 32 << 20;

const NO_MEMORY: &str = "memory_keys: there is no working memory here";

/// Minimum and maximum timeout in seconds.
const TIMEOUTS: (u32, u32) = (1, 300);

#[derive(Debug, Deserialize, JsonSchema)]
struct ScriptArgs {
    /// Source; print the result
    script: String,
    /// Text for the script, in the environment variable TOOLYARD_INPUT
    #[serde(default)]
    input_data: Option<String>,
    /// Keys of working memory; TOOLYARD_INPUT is then {"memory": {KEY: TEXT}, "input": input_data}
    #[serde(default)]
    memory_keys: Option<Vec<String>>,
    /// 1 to 300; 30 by default
    #[serde(default)]
    timeout_seconds: Option<f64>,
    /// Installed first, such as "numpy"
    #[serde(default)]
    pip_packages: Option<Vec<String>>,
}

/// Adds the tool to a server; `runner` runs its scripts, which can read entries of `memory`.
///
/// # Errors
/// Returns an error if the server already has a tool of this name.
pub fn add(
    server: Server,
    runner: Arc<dyn ScriptExecutor>,
    memory: Option<MemoryReader>,
) -> Result<Server, RegisterError> {
    let mut tool = Tool::new(TOOL, DESCRIPTION);
    if memory.is_none() {
        tool = tool.input_schema(schema_without_memory());
    }
    let memory = memory.map(Arc::new);
    server.register_tool(tool, move |context: Context, mut args: ScriptArgs| {
        let (runner, memory) = (runner.clone(), memory.clone());
        async move {
            // An empty script would succeed without output, which would hide the mistake.
            if args.script.trim().is_empty() {
                return Err(ToolFailure::new("script: is empty; expected Python source"));
            }
            let keys = args.memory_keys.take().unwrap_or_default();
            if !keys.is_empty() {
                let memory = memory.ok_or_else(|| ToolFailure::new(NO_MEMORY))?;
                args.input_data = Some(input_with(&memory, &context, &keys, args.input_data).await?);
            }
            let trace_parent =
                context.meta("traceparent").and_then(|parent| parent.as_str().map(str::to_owned));
            let script = PythonScript { trace_parent, ..args.into_script()? };
            tool_result(&runner.run(script).await?)
        }
    })
}

/// Returns the schema of the arguments where there is no working memory.
fn schema_without_memory() -> Value {
    let mut schema = toolyard_sdk::schema_of::<ScriptArgs>();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.shift_remove("memory_keys");
    }
    schema
}

/// Returns the input of a script with entries of working memory, as JSON. The key of an index gives the whole result.
async fn input_with(
    memory: &MemoryReader,
    context: &Context,
    keys: &[String],
    input: Option<String>,
) -> Result<String, ToolFailure> {
    if keys.len() > MAX_KEYS {
        return Err(ToolFailure::new(format!("memory_keys: has more than {MAX_KEYS} keys")));
    }
    let access = memory.memory().access(MemoryCaller::of_context(context)).await?;
    let (mut entries, mut bytes) = (Map::new(), 0);
    for key in keys {
        let entry = memory.text(&access, key).await?;
        let entry = entry.ok_or_else(|| ToolFailure::new(texts::missing(key)))?;
        bytes += entry.text.len();
        if bytes > MAX_MEMORY {
            let limit = MAX_MEMORY >> 20;
            return Err(ToolFailure::new(format!(
                "memory_keys: the entries have more than {limit} MiB together. Give fewer of them to one script."
            )));
        }
        entries.insert(key.clone(), Value::String(entry.text));
    }
    Ok(json!({"memory": entries, "input": input}).to_string())
}

impl ScriptArgs {
    fn into_script(self) -> Result<PythonScript, NoRandomness> {
        Ok(PythonScript {
            call_id: call_id()?,
            source: self.script,
            input: self.input_data,
            timeout: timeout(self.timeout_seconds),
            packages: self.pip_packages.unwrap_or_default(),
            trace_parent: None,
        })
    }
}

/// Returns the timeout of a call, limited to the permitted range.
fn timeout(seconds: Option<f64>) -> Duration {
    let (least, most) = (f64::from(TIMEOUTS.0), f64::from(TIMEOUTS.1));
    let seconds = seconds.filter(|seconds| !seconds.is_nan()).unwrap_or(f64::from(DEFAULT_TIMEOUT));
    Duration::from_secs_f64(seconds.clamp(least, most))
}

/// Returns an id that no other script has.
fn call_id() -> Result<String, NoRandomness> {
    Ok(u128::from_le_bytes(random_bytes()?).to_string())
}

/// Renders the outcome for the model.
fn tool_result(outcome: &ScriptOutcome) -> Result<String, ToolFailure> {
    let ScriptOutcome { output, stderr, exit_code, .. } = outcome;
    if outcome.is_success() {
        return Ok(if output.is_empty() { "(no output)".to_owned() } else { output.clone() });
    }
    let details = if output.trim().is_empty() { stderr } else { output };
    let why = match *exit_code {
        script::TIMED_OUT => format!(" It took longer than {:.0} s.", outcome.elapsed.as_secs_f64()),
        // The sandbox writes the reason in the last line, after the output of the script itself.
        script::KILLED => stderr.trim_end().lines().last().map(|line| format!(" {line}")).unwrap_or_default(),
        _ => String::new(),
    };
    let details =
        if *exit_code == script::KILLED && details.trim_end().ends_with(why.trim()) { "" } else { details };
    Err(ToolFailure::new(format!("Script failed (exit {exit_code}):{why}\n{details}").trim_end()))
}

#[cfg(test)]
mod tests;
