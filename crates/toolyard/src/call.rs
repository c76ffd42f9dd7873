//! `toolyard call`: one call of one tool.

use std::process::ExitCode;

use anyhow::{anyhow, bail};
use toolyard_core::{Backend, Call, CallOutput, Catalog, ErrorCode, Json, Outcome, ToolError};
use toolyard_manifest::nearest_name;

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

/// Maximum number of names that are suggested.
const MAX_SUGGESTIONS: usize = 3;

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
    let names = || catalog.tools.iter().map(|tool| &*tool.name);
    // A published name may have the handler as its prefix, or may have lost it.
    let is_part =
        |one: &str, other: &str| one.strip_suffix(other).is_some_and(|prefix| prefix.ends_with('_'));
    let mut meant: Vec<_> =
        names().filter(|other| is_part(other, name) || is_part(name, other)).take(MAX_SUGGESTIONS).collect();
    if meant.is_empty() {
        meant.extend(nearest_name(name, names()));
    }
    let meant: Vec<_> = meant.into_iter().map(|name| format!("`{name}`")).collect();
    match meant.is_empty() {
        true => format!("unknown tool {name:?}; `toolyard tools` lists the tools"),
        false => format!("unknown tool {name:?}; did you mean {}?", meant.join(" or ")),
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
