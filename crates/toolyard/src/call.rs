//! `toolyard call`: one call of one tool.

use std::process::ExitCode;

use anyhow::{anyhow, bail};
use toolyard_core::nearest::{did_you_mean, nearest_names};
use toolyard_core::{Backend, Call, CallOutput, Catalog, ErrorCode, Json, Outcome, ToolError};

use crate::handler_health::{note_failure, note_unready};
use crate::output::{OutputFormat, print_untrusted, with_wait_notice};
use crate::remote::RemoteGateway;
use crate::tool_arguments::ToolArguments;

/// Call a tool of a running gateway
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard call add a=1 b=2
  toolyard call search query='two words' limit=5
  toolyard call add --json '{\"a\": 1, \"b\": 2}' --output json
  toolyard call add --json @arguments.json

A value is a string if the schema of the tool says so, or else JSON if it parses as JSON.
The exit status is 1 if the tool reports an error.
Results are printed unchanged; on a terminal, control characters are escaped.")]
pub(crate) struct CallArgs {
    /// Name of the tool
    name: String,

    #[command(flatten)]
    arguments: ToolArguments,

    #[command(flatten)]
    remote: RemoteGateway,
}

pub(crate) async fn run(args: CallArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let (server, catalog) = args.remote.connect().await?;
    let Some(tool) = catalog.tools.iter().find(|tool| *tool.name == *args.name) else {
        note_unready(&args.remote).await;
        bail!(unknown_tool(&args.name, &catalog));
    };
    let schema = tool.input_schema().map(Json::to_value).unwrap_or_default();
    let arguments = args.arguments.parse(&schema)?;
    let call = server.call(Call::tool(&*args.name, arguments));
    match with_wait_notice(&args.name, call).await {
        Ok(Outcome::Done(output)) => Ok(print_result(&output, format)),
        Ok(Outcome::NeedsInput(_) | Outcome::Task(_)) => {
            bail!("the tool requires input or runs as a task, which `toolyard call` does not support")
        }
        Err(error) => {
            if is_about_server(&error) {
                note_failure(&args.remote, &args.name).await;
            }
            Err(anyhow!(error))
        }
    }
}

/// Explains that there is no tool of this name, with the names that may be meant.
fn unknown_tool(name: &str, catalog: &Catalog) -> String {
    let near = nearest_names(name, catalog.tools.iter().map(|tool| &*tool.name));
    match near.is_empty() {
        true => format!("unknown tool {name:?}; `toolyard tools` lists the tools"),
        false => format!("unknown tool {name:?};{}", did_you_mean(&near).replacen("Did", "did", 1)),
    }
}

/// True if a call may have failed because of the state of its server.
fn is_about_server(error: &ToolError) -> bool {
    let data = || error.peer()?.to_object().ok()?.get("data")?.to_object().ok();
    let code = data().and_then(|data| data.get_str("code").map(|code| code.into_owned()));
    let codes = [ErrorCode::Unavailable, ErrorCode::Timeout, ErrorCode::ExecutionFailed];
    code.is_some_and(|code| codes.iter().any(|known| known.row().wire == code))
}

fn print_result(output: &CallOutput, format: OutputFormat) -> ExitCode {
    print_untrusted(&match format {
        OutputFormat::Json => output.body.to_json().as_text().to_owned(),
        OutputFormat::Text => result_text(output),
    });
    if output.is_error { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Returns the text blocks of a result; other blocks are shown as their type.
fn result_text(output: &CallOutput) -> String {
    let blocks = output.body.get("content").and_then(|content| content.to_items().ok()).unwrap_or_default();
    let block = |block: &Json| {
        let block = block.to_object().ok()?;
        match block.get_str("text") {
            Some(text) => Some(text.into_owned()),
            None => Some(format!("[{}]", block.get_str("type")?)),
        }
    };
    blocks.iter().filter_map(block).collect::<Vec<_>>().join("\n")
}
