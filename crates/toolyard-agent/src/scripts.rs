//! `execute_python_script` runs a script that a model has written.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_core::script::{self, PythonScript, ScriptExecutor, ScriptOutcome};
use toolyard_sdk::{RegisterError, Server, Tool, ToolFailure};

use crate::guides::GuideDocument;

/// Name of the tool, as agents know it.
pub const TOOL: &str = "execute_python_script";

/// Guide to running scripts.
pub const GUIDE: GuideDocument = GuideDocument::new(
    "scripts",
    "Run Python for arithmetic, for transforming data, and for whatever is easier to compute than to reason out",
    include_str!("scripts/guide.md"),
);

const DESCRIPTION: &str = "\
Runs a Python 3 script once, in a sandbox without network, and returns what it prints. Use it for arithmetic, for \
transforming data, and for whatever is easier to compute than to reason out. Nothing is kept between scripts.";

/// Default timeout of a script in seconds.
const DEFAULT_TIMEOUT: u32 = 30;
/// Minimum and maximum timeout in seconds.
const TIMEOUTS: (u32, u32) = (1, 300);

#[derive(Debug, Deserialize, JsonSchema)]
struct ScriptArgs {
    /// Source; print the result
    script: String,
    /// Text for the script, in the environment variable TOOLYARD_INPUT
    #[serde(default)]
    input_data: Option<String>,
    /// 1 to 300; 30 by default
    #[serde(default)]
    timeout_seconds: Option<f64>,
    /// Installed first, such as "numpy"
    #[serde(default)]
    pip_packages: Option<Vec<String>>,
}

/// Adds the tool to a server; `runner` runs its scripts.
///
/// # Errors
/// Returns an error if the server already has a tool of this name.
pub fn add(server: Server, runner: Arc<dyn ScriptExecutor>) -> Result<Server, RegisterError> {
    let tool = Tool::new(TOOL, DESCRIPTION);
    server.register_tool(tool, move |args: ScriptArgs| {
        let runner = runner.clone();
        async move {
            // An empty script would succeed without output, which would hide the mistake.
            if args.script.trim().is_empty() {
                return Err(ToolFailure::new("script: is empty, where Python source is expected"));
            }
            tool_result(&runner.run(args.into_script()).await?)
        }
    })
}

impl ScriptArgs {
    fn into_script(self) -> PythonScript {
        PythonScript {
            call_id: call_id(),
            source: self.script,
            input: self.input_data,
            timeout: timeout(self.timeout_seconds),
            packages: self.pip_packages.unwrap_or_default(),
        }
    }
}

/// Returns the timeout of a call, limited to the permitted range.
fn timeout(seconds: Option<f64>) -> Duration {
    let (least, most) = (f64::from(TIMEOUTS.0), f64::from(TIMEOUTS.1));
    let seconds = seconds.filter(|seconds| !seconds.is_nan()).unwrap_or(f64::from(DEFAULT_TIMEOUT));
    Duration::from_secs_f64(seconds.clamp(least, most))
}

/// Returns an id that no other script has.
fn call_id() -> String {
    let mut bytes = [0; 16];
    // A system without random numbers supports neither TLS nor keys, so the gateway would not run at all.
    let _unlikely = getrandom::fill(&mut bytes);
    u128::from_le_bytes(bytes).to_string()
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
