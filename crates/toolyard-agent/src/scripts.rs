//! `execute_python_script`: a script that a model has written, run once.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_core::script::{self, Runner, Script, ScriptOutcome};
use toolyard_sdk::{RegisterError, Server, Tool, ToolFailure};

use crate::guides::Guide;

/// The name of the tool, as agents know it.
pub const TOOL: &str = "execute_python_script";

/// How to use scripts, for a model.
pub const GUIDE: Guide = Guide::new(
    "scripts",
    "Run Python for arithmetic, for transforming data, and for whatever is easier to compute than to reason out",
    include_str!("scripts/guide.md"),
);

const DESCRIPTION: &str = "\
Runs a Python 3 script once, in a sandbox without network, and returns what it prints. Use it for arithmetic, for \
transforming data, and for whatever is easier to compute than to reason out. Print the result, as JSON where it has \
structure. Nothing is kept from one script to the next: no files, no variables.";

/// How long a script may take where its call does not say, in seconds.
const DEFAULT_TIMEOUT: u32 = 30;
/// The bounds of what it may say.
const TIMEOUTS: (u32, u32) = (1, 300);

#[derive(Debug, Deserialize, JsonSchema)]
struct Args {
    /// The source of the script. What it prints to standard output is the result.
    script: String,
    /// A text that the script finds in the environment variable TOOLYARD_INPUT (and in ROCKBOT_INPUT), such as JSON
    #[serde(default)]
    input_data: Option<String>,
    /// How long the script may run, in seconds, from 1 to 300; 30 if left out
    #[serde(default)]
    timeout_seconds: Option<f64>,
    /// Packages that are installed first, as pip names them, such as "numpy"; the first script that needs them waits
    #[serde(default)]
    pip_packages: Option<Vec<String>>,
}

/// Adds the tool to a server; `runner` runs its scripts.
///
/// # Errors
/// When there is a tool of that name already.
pub fn add(server: Server, runner: Arc<dyn Runner>) -> Result<Server, RegisterError> {
    let tool = Tool::new(TOOL, DESCRIPTION).title("Run a Python script");
    server.register_tool(tool, move |args: Args| {
        let runner = runner.clone();
        async move {
            // Nothing is run of an empty script, and that it printed nothing would say so to nobody.
            if args.script.trim().is_empty() {
                return Err(ToolFailure::new("script: is empty, where Python source is expected"));
            }
            told(&runner.run(args.into_script()).await?)
        }
    })
}

impl Args {
    fn into_script(self) -> Script {
        Script {
            call_id: call_id(),
            source: self.script,
            input: self.input_data,
            timeout: timeout(self.timeout_seconds),
            packages: self.pip_packages.unwrap_or_default(),
        }
    }
}

/// What a call says, held to the bounds.
fn timeout(seconds: Option<f64>) -> Duration {
    let (least, most) = (f64::from(TIMEOUTS.0), f64::from(TIMEOUTS.1));
    let seconds = seconds.filter(|seconds| !seconds.is_nan()).unwrap_or(f64::from(DEFAULT_TIMEOUT));
    Duration::from_secs_f64(seconds.clamp(least, most))
}

/// One that no other script has.
fn call_id() -> String {
    let mut bytes = [0; 16];
    // Without random numbers there is no TLS and no key either: the system does not run at all then.
    let _unlikely = getrandom::fill(&mut bytes);
    u128::from_le_bytes(bytes).to_string()
}

/// What the model reads.
fn told(outcome: &ScriptOutcome) -> Result<String, ToolFailure> {
    let ScriptOutcome { output, stderr, exit_code, .. } = outcome;
    if outcome.is_success() {
        return Ok(if output.is_empty() { "(no output)".to_owned() } else { output.clone() });
    }
    let said = if output.trim().is_empty() { stderr } else { output };
    let why = match *exit_code {
        script::TIMED_OUT => format!(" It took longer than {:.0} s.", outcome.elapsed.as_secs_f64()),
        // Whoever ended it says so last, wherever the script itself has written.
        script::KILLED => stderr.trim_end().lines().last().map(|line| format!(" {line}")).unwrap_or_default(),
        _ => String::new(),
    };
    let said = if *exit_code == script::KILLED && said.trim_end().ends_with(why.trim()) { "" } else { said };
    Err(ToolFailure::new(format!("Script failed (exit {exit_code}):{why}\n{said}").trim_end()))
}

#[cfg(test)]
mod tests;
