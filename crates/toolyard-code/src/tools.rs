//! The tools `run_tool_script` and `describe_tools`.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;
use toolyard_agent::instructions;
use toolyard_core::NestedGateway;
use toolyard_core::random::{hex, random_bytes};
use toolyard_functions::RunError;
use toolyard_manifest::CodeSettings;
use toolyard_sdk::{Content, Context, RegisterError, Server, Tool, ToolAnnotations, ToolFailure, ToolReply};

use crate::calls::{CallLimits, ScriptCalls};
use crate::describe::{self, MAX_NAMES};
use crate::engine::{ScriptEngine, ScriptLanguage};
use crate::report::{failure_text, printed_text, value_text};
use crate::shapes::ObservedShapes;

/// Name of the tool that runs scripts, as agents know it.
pub const RUN: &str = instructions::RUN_SCRIPT;
/// Name of the tool that describes tools, as agents know it.
pub const DESCRIBE: &str = instructions::DESCRIBE;
/// Names of all tools.
pub const NAMES: [&str; 2] = [DESCRIBE, RUN];

const ABOUT_RUN: &str = "\
Runs a script that calls tools as functions; you read only what it returns. For several calls, loops, filters, totals. \
JavaScript: `const all = await tools.github.list_issues({state: \"open\"}); return all.length`. \
Lua: `return #tools.github.list_issues{state = \"open\"}`. A failed call throws an error with `code` and `reason`.";

const ABOUT_DESCRIBE: &str = "\
Shows tools as TypeScript functions for run_tool_script, with the names that search_tools finds.";

/// The parts that the tools use.
#[derive(Clone)]
pub struct CodeTools {
    /// Calls of the scripts.
    pub nested: NestedGateway,
    /// Runs the scripts.
    pub engine: ScriptEngine,
    /// Limits.
    pub settings: CodeSettings,
    /// Shapes of results that no schema describes.
    pub shapes: Arc<ObservedShapes>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct RunArgs {
    #[schemars(with = "String", extend("enum" = ["javascript", "lua"]))]
    language: ScriptLanguage,
    /// Body of a function; `return` its result
    code: String,
    /// Seconds
    #[serde(default)]
    timeout: Option<f64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct DescribeArgs {
    /// Such as ["github_create_issue"]
    names: Vec<String>,
}

/// Adds the tools to a server.
///
/// # Errors
/// Returns an error if the server already has a tool of one of these names.
pub fn add(server: Server, tools: CodeTools) -> Result<Server, RegisterError> {
    let describing = tools.clone();
    let hints = ToolAnnotations::new().read_only(true).open_world(false);
    server
        .register_tool(
            Tool::new(DESCRIBE, ABOUT_DESCRIBE).title("Describe tools").annotations(hints),
            async move |context: Context, args: DescribeArgs| {
                describing.describe(&context, &args.names).await
            },
        )?
        .register_tool(
            Tool::new(RUN, ABOUT_RUN).title("Run a script over tools"),
            async move |context: Context, args: RunArgs| tools.run(context, args).await,
        )
}

impl CodeTools {
    async fn describe(&self, context: &Context, names: &[String]) -> Result<String, ToolFailure> {
        if names.is_empty() {
            return Err(ToolFailure::new(format!(
                "names: is empty; expected 1 to {MAX_NAMES} names of tools, as search_tools shows them"
            )));
        }
        let view = self.nested.within(context.call(), DESCRIBE).registry().await?;
        Ok(describe::description(&view, names, &self.shapes, context.caller().principal.as_ref()))
    }

    async fn run(&self, context: Context, args: RunArgs) -> Result<ToolReply, ToolFailure> {
        let RunArgs { language, code, timeout } = args;
        self.check(&code)?;
        let time = self.time(timeout)?;
        let time =
            context.deadline().map_or(time, |at| time.min(at.saturating_duration_since(Instant::now())));
        // A script that runs scripts would multiply its limits.
        let nested = self.nested.within(context.call(), script_id()?).without(&[RUN]);
        let view = nested.registry().await?;
        let deadline = Instant::now() + time;
        let limits = CallLimits::new(&self.settings);
        let calls = ScriptCalls::new(nested, view, limits, deadline, self.shapes.clone(), context);
        let ended = self.engine.run(language, &code, time, &calls).await;
        let record = calls.record();
        let printed = printed_text(&record.log, self.settings.log_bytes);
        match ended {
            Ok(value) => {
                let reply = ToolReply::new().text(value_text(value.as_ref()));
                Ok(printed.into_iter().fold(reply, ToolReply::text))
            }
            Err(error) => {
                // A call that ends with the script fails first.
                let is_late = Instant::now() >= deadline && matches!(error, RunError::Thrown { .. });
                let error = if is_late { RunError::TimedOut } else { error };
                log(&error);
                let text = failure_text(&error, language, time, &record);
                let content = std::iter::once(text).chain(printed).map(Content::text);
                Err(ToolFailure::with_content(content.collect()))
            }
        }
    }

    /// Refuses a script that is empty or too long.
    fn check(&self, code: &str) -> Result<(), ToolFailure> {
        if code.trim().is_empty() {
            return Err(ToolFailure::new("code: is empty; expected a script that ends with `return`"));
        }
        match code.len() > self.settings.code_bytes {
            true => Err(ToolFailure::new(format!(
                "code: has {} bytes; the maximum is {}. Move data out of the script, or use several scripts.",
                code.len(),
                self.settings.code_bytes
            ))),
            false => Ok(()),
        }
    }

    /// Returns the time limit of a script.
    fn time(&self, seconds: Option<f64>) -> Result<Duration, ToolFailure> {
        let longest = self.settings.longest_timeout;
        let Some(seconds) = seconds else { return Ok(self.settings.timeout.min(longest)) };
        match Duration::try_from_secs_f64(seconds) {
            Ok(time) if !time.is_zero() && time <= longest => Ok(time),
            _ => Err(ToolFailure::new(format!(
                "timeout: is {}; expected seconds above 0, at most {}",
                json!(seconds),
                longest.as_secs_f64()
            ))),
        }
    }
}

/// Returns the id of a script for the audit trail.
fn script_id() -> Result<String, ToolFailure> {
    Ok(format!("script-{}", hex(&random_bytes::<8>()?)))
}

/// Logs a failure that is not the script's.
fn log(error: &RunError) {
    match error {
        RunError::Unavailable(reason) => tracing::warn!(reason, "scripts over tools cannot run"),
        RunError::NotLoaded { message } => {
            tracing::error!(message, "the prelude of scripts cannot be loaded")
        }
        RunError::Died(reason) => tracing::debug!(reason, "the process of a script ended"),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use super::*;

    #[test]
    fn tool_definitions() {
        let settings = CodeSettings::default();
        let processes =
            toolyard_process::ProcessTable::new(toolyard_process::ProcessSpawner::supervised_by("none"), 1);
        let sandbox = toolyard_sandbox::Sandbox::new(toolyard_sandbox::SandboxOptions::new(processes));
        let tools = CodeTools {
            nested: NestedGateway::new(Weak::new(), "builtins"),
            engine: ScriptEngine::new(sandbox, &settings),
            settings,
            shapes: Arc::new(ObservedShapes::new(1)),
        };
        let server = add(Server::new("code", "1.0.0"), tools).expect("tools of other names");
        let catalog = server.into_backend().catalog().borrow().clone();
        let definitions: Vec<_> =
            catalog.tools.iter().map(|tool| tool.definition.to_json().to_value()).collect();
        insta::assert_snapshot!(serde_json::to_string_pretty(&definitions).expect("JSON"));
    }
}
