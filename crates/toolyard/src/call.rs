//! `toolyard call`: one call of one tool.

use std::process::ExitCode;

use anyhow::{anyhow, bail};
use serde_json::Value;
use toolyard_core::{Backend, Call, CallOutput, Json, Object, Outcome};

use crate::BadInput;
use crate::output::{OutputFormat, print_untrusted, with_wait_notice};
use crate::remote::RemoteGateway;

/// Call a tool of a running gateway
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard call add a=1 b=2
  toolyard call search query='two words' limit=5
  toolyard call add --json '{\"a\": 1, \"b\": 2}' --output json

A value is a string if the schema of the tool says so, or else JSON if it parses as JSON.
The exit status is 1 if the tool reports an error.
Results are printed unchanged; on a terminal, control characters are escaped.")]
pub(crate) struct CallArgs {
    /// Name of the tool
    name: String,

    /// Arguments of the tool
    #[arg(value_name = "KEY=VALUE", conflicts_with = "json")]
    arguments: Vec<String>,

    /// All arguments as one JSON object
    #[arg(long, value_name = "OBJECT")]
    json: Option<String>,

    #[command(flatten)]
    remote: RemoteGateway,
}

pub(crate) async fn run(args: CallArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let (server, catalog) = args.remote.connect().await?;
    let Some(tool) = catalog.tools.iter().find(|tool| *tool.name == *args.name) else {
        bail!("unknown tool {:?}; `toolyard tools` lists the tools", args.name);
    };
    let arguments = match &args.json {
        Some(json) => parse_object(json)?,
        None => parse_pairs(&args.arguments, &tool.input_schema().map(Json::to_value).unwrap_or_default())?,
    };
    let call = server.call(Call::tool(&*args.name, arguments));
    match with_wait_notice(&args.name, call).await {
        Ok(Outcome::Done(output)) => Ok(print_result(&output, format)),
        Ok(Outcome::NeedsInput(_) | Outcome::Task(_)) => {
            bail!("the tool requires input or runs as a task, which `toolyard call` does not support")
        }
        Err(error) => Err(anyhow!(error)),
    }
}

/// Parses arguments from one JSON object.
pub(crate) fn parse_object(json: &str) -> Result<Json, BadInput> {
    let object = Object::parse(json.to_owned()).map_err(|error| BadInput(format!("--json: {error}")))?;
    Ok(object.to_json())
}

/// Parses arguments from `KEY=VALUE` pairs, typed by the schema of the tool.
pub(crate) fn parse_pairs(pairs: &[String], schema: &Value) -> Result<Json, BadInput> {
    let mut arguments = Object::new();
    for pair in pairs {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(BadInput(format!("invalid argument {pair:?}: expected KEY=VALUE")));
        };
        arguments.set(key, parse_value(value, &schema["properties"][key]["type"]));
    }
    Ok(arguments.to_json())
}

/// Returns a string if the type permits one, or else the JSON value if the text parses as JSON.
fn parse_value(value: &str, kind: &Value) -> Json {
    let is_text = kind == "string" || kind.as_array().is_some_and(|kinds| kinds.contains(&"string".into()));
    let json = (!is_text).then(|| Json::parse(value.to_owned()).ok()).flatten();
    json.unwrap_or_else(|| Json::string(value))
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
