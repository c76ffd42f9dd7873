//! `toolyard function invoke`: invokes a function in a gateway.

use std::process::ExitCode;
use std::str::FromStr;

use http::Method;
use serde_json::Value;
use toolyard_core::{Json, Object};
use toolyard_functions::version::VersionSelector;

use super::parse_id;
use crate::BadInput;
use crate::output::{OutputFormat, print_untrusted};
use crate::remote::RemoteGateway;
use crate::tool_arguments::read_argument;

/// Invoke a function with an event
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard function invoke weather '{\"city\": \"Berlin\"}'
  toolyard function invoke weather@1.2 @event.json
  echo '{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/list\"}' | toolyard function invoke weather@draft -

Prints the response unchanged. The exit status is 1 if the function failed: the response has an `error`, or a
`statusCode` of 400 or more. The request is POST /api/v1/functions/ID/VERSION/invoke.")]
pub(super) struct InvokeArgs {
    /// Function and version: 1.2.0, 1.2, 1, latest or draft (default: latest)
    #[arg(value_name = "ID[@VERSION]")]
    function: FunctionReference,

    /// Event: JSON, `@FILE`, or `-` for standard input
    #[arg(default_value = "{}")]
    event: String,

    #[command(flatten)]
    remote: RemoteGateway,
}

#[derive(Clone)]
struct FunctionReference {
    id: String,
    version: VersionSelector,
}

impl FromStr for FunctionReference {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, version) = text.split_once('@').unwrap_or((text, "latest"));
        let version = version
            .parse()
            .map_err(|error: toolyard_functions::version::InvalidVersion| error.to_string())?;
        Ok(Self { id: parse_id(name)?, version })
    }
}

pub(super) async fn run(args: InvokeArgs, _: OutputFormat) -> anyhow::Result<ExitCode> {
    let FunctionReference { id, version } = &args.function;
    let event = Json::parse(read_argument(&args.event)?.into_owned())
        .map_err(|error| BadInput(format!("the event is not valid JSON: {error}")))?;
    let body = Object::new().with("event", event).to_json().as_text().to_owned();
    let path = format!("/api/v1/functions/{id}/{version}/invoke");
    // The gateway enforces the time limit of the version.
    let (status, text) = args.remote.request(Method::POST, &path, body, None).await?;
    if !status.is_success() {
        return Err(args.remote.response_error(status, &text));
    }
    print_untrusted(&String::from_utf8_lossy(&text));
    let answer: Value = serde_json::from_slice(&text).unwrap_or_default();
    let has_failed = !answer["error"].is_null() || answer["statusCode"].as_u64() >= Some(400);
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
