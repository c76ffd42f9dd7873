//! `toolyard function invoke`: one call of a function, as the platform takes it.

use std::process::ExitCode;
use std::str::FromStr;

use anyhow::Context;
use http::Method;
use serde_json::Value;
use toolyard_core::{Json, Object};
use toolyard_functions::version::Wanted;

use super::id;
use crate::BadInput;
use crate::output::{Format, print_foreign};
use crate::remote::Remote;

/// Call a function with an event
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard function invoke weather '{\"city\": \"Berlin\"}'
  toolyard function invoke weather@1.2 @event.json
  echo '{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/list\"}' | toolyard function invoke weather@draft -

The answer is printed as it came. The exit status is 1 where it says that the function failed: it has an `error`, or a
`statusCode` of 400 or more. It is POST /api/v1/functions/ID/VERSION/invoke, which needs no more than a key.")]
pub(super) struct Args {
    /// The function, and its version: 1.2.0, 1.2, 1, latest or draft; the latest unless said otherwise
    #[arg(value_name = "ID[@VERSION]")]
    function: Function,

    /// What it is given: JSON, the name of a file behind an `@`, or `-` for standard input
    #[arg(default_value = "{}")]
    event: String,

    #[command(flatten)]
    remote: Remote,
}

#[derive(Clone)]
struct Function {
    id: String,
    version: Wanted,
}

impl FromStr for Function {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, version) = text.split_once('@').unwrap_or((text, "latest"));
        let version =
            version.parse().map_err(|error: toolyard_functions::version::BadVersion| error.to_string())?;
        Ok(Self { id: id(name)?, version })
    }
}

pub(super) async fn run(args: Args, _: Format) -> anyhow::Result<ExitCode> {
    let Function { id, version } = &args.function;
    let event = Json::parse(event(&args.event)?)
        .map_err(|error| BadInput(format!("the event is no JSON: {error}")))?;
    let body = Object::new().with("event", event).to_json().as_text().to_owned();
    let path = format!("/api/v1/functions/{id}/{version}/invoke");
    // The version says how long it may take.
    let (status, text) = args.remote.ask(Method::POST, &path, body, None).await?;
    if !status.is_success() {
        return Err(args.remote.refused(status, &text));
    }
    print_foreign(&String::from_utf8_lossy(&text));
    let answer: Value = serde_json::from_slice(&text).unwrap_or_default();
    let has_failed = !answer["error"].is_null() || answer["statusCode"].as_u64() >= Some(400);
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn event(text: &str) -> anyhow::Result<String> {
    match (text, text.strip_prefix('@')) {
        ("-", _) => std::io::read_to_string(std::io::stdin()).context("cannot read standard input"),
        (_, Some(path)) => std::fs::read_to_string(path).with_context(|| format!("cannot read {path}")),
        (text, None) => Ok(text.to_owned()),
    }
}
