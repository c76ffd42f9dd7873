//! `toolyard accept`: accepts the current definitions of changed tools.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use http::Method;
use serde::Deserialize;
use serde_json::json;
use toolyard_manifest::HandlerName;

use crate::doctor::ChangedTool;
use crate::output::{OutputFormat, print};
use crate::remote::RemoteGateway;

/// Accept the current definitions of changed tools
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard doctor                         show the changed tools
  toolyard accept weather                 accept all changed and new tools of a handler
  toolyard accept weather forecast        accept one tool
  toolyard accept weather forecast --digest sha256:9f86d081...    accept this definition only

With `pin: hold`, the gateway serves the accepted definition until you accept the change, and does not serve new tools. With
`pin: warn`, it serves the current definition and reports the change in the log, the audit trail and the status. Requires a
key with the scope `admin` if the gateway has keys.")]
pub(crate) struct AcceptArgs {
    /// Name of the handler in the manifest
    #[arg(value_parser = HandlerName::parse)]
    handler: HandlerName,

    /// Name of the tool at its server (default: all changed tools)
    tool: Option<String>,

    /// Accept only the definition with this digest, as shown in the status
    #[arg(long, value_name = "DIGEST", requires = "tool")]
    digest: Option<String>,

    #[command(flatten)]
    remote: RemoteGateway,
}

/// Time limit of a request to the gateway.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct AcceptResponse {
    accepted: Vec<ChangedTool>,
}

pub(crate) async fn run(args: AcceptArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let AcceptArgs { handler, tool, digest, remote } = args;
    let path = format!("/api/v1/handlers/{handler}/accept");
    let request = json!({"tool": tool, "digest": digest}).to_string();
    let (status, body) = remote.request(Method::POST, &path, request, Some(REQUEST_TIMEOUT)).await?;
    if !status.is_success() {
        return Err(remote.response_error(status, &body));
    }
    let answer: AcceptResponse =
        serde_json::from_slice(&body).with_context(|| format!("unexpected response from {remote}"))?;
    print(&match format {
        OutputFormat::Json => String::from_utf8_lossy(&body).into_owned(),
        OutputFormat::Text if answer.accepted.is_empty() => format!("no changed tools in handler {handler}"),
        OutputFormat::Text => answer.accepted.iter().map(ChangedTool::line).collect::<Vec<_>>().join("\n"),
    });
    Ok(ExitCode::SUCCESS)
}
