//! `toolyard call`: one call of one tool.

use std::process::ExitCode;

use anyhow::{anyhow, bail};
use serde_json::Value;
use toolyard_core::{Backend, Call, Json, Object, Outcome, Output};

use crate::BadInput;
use crate::output::{Format, patiently, print_foreign};
use crate::remote::Remote;

/// Call a tool of a running gateway
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard call add a=1 b=2
  toolyard call search query='two words' limit=5
  toolyard call add --json '{\"a\": 1, \"b\": 2}' --output json

A value is taken as text where the tool's schema says so, else as JSON where it is JSON.
The exit status is 1 when the tool says that it failed.
A result is printed as it came; only on a terminal, what could steer that is shown as an escape.")]
pub(crate) struct Args {
    /// The tool's name
    name: String,

    /// Arguments, one by one
    #[arg(value_name = "KEY=VALUE", conflicts_with = "json")]
    arguments: Vec<String>,

    /// All arguments as one JSON object
    #[arg(long, value_name = "OBJECT")]
    json: Option<String>,

    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(args: Args, format: Format) -> anyhow::Result<ExitCode> {
    let (server, catalog) = args.remote.connect().await?;
    let Some(tool) = catalog.tools.iter().find(|tool| *tool.name == *args.name) else {
        bail!("there is no tool {:?}: see `toolyard tools`", args.name);
    };
    let arguments = match &args.json {
        Some(json) => object(json)?,
        None => arguments(&args.arguments, &tool.input_schema().map(Json::to_value).unwrap_or_default())?,
    };
    let call = server.call(Call::tool(&*args.name, arguments));
    match patiently(&args.name, call).await {
        Ok(Outcome::Done(output)) => Ok(show(&output, format)),
        Ok(Outcome::NeedsInput(_) | Outcome::Task(_)) => bail!("the tool wants more than one call"),
        Err(error) => Err(anyhow!(error)),
    }
}

/// Arguments that are written as one object.
pub(crate) fn object(json: &str) -> Result<Json, BadInput> {
    let object = Object::parse(json.to_owned()).map_err(|error| BadInput(format!("--json: {error}")))?;
    Ok(object.to_json())
}

/// Arguments that are written one by one, for a tool with this schema.
pub(crate) fn arguments(pairs: &[String], schema: &Value) -> Result<Json, BadInput> {
    let mut arguments = Object::new();
    for pair in pairs {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(BadInput(format!("{pair:?} is not KEY=VALUE")));
        };
        arguments.set(key, typed(value, &schema["properties"][key]["type"]));
    }
    Ok(arguments.to_json())
}

/// A value as the schema's type wants it: text where that may be, else JSON where it is JSON.
fn typed(value: &str, kind: &Value) -> Json {
    let is_text = kind == "string" || kind.as_array().is_some_and(|kinds| kinds.contains(&"string".into()));
    let json = (!is_text).then(|| Json::parse(value.to_owned()).ok()).flatten();
    json.unwrap_or_else(|| Json::string(value))
}

fn show(output: &Output, format: Format) -> ExitCode {
    print_foreign(&match format {
        Format::Json => output.body.to_json().as_text().to_owned(),
        Format::Text => text(output),
    });
    if output.is_error { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The texts of a result; what is no text is named by its type.
fn text(output: &Output) -> String {
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
