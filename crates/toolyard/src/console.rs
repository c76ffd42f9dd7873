//! `toolyard console`: a link that opens the console signed in.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;

use crate::output::{OutputFormat, print};
use crate::remote::RemoteGateway;

/// Print a link that opens the console of a running gateway
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard console                                                of the gateway on this machine
  toolyard console --url https://tools.example.com/mcp --key-file ops.key
  xdg-open $(toolyard console)                                    in the default browser

If the gateway has keys, the link contains a one-time code in place of the key, which is valid for a minute. The browser
that opens it has the rights of the key until the session ends, so do not pass it on. Requires one of the scopes `rest`, `admin`,
`functions` or `publish:PATTERN`.")]
pub(crate) struct ConsoleArgs {
    #[command(flatten)]
    remote: RemoteGateway,
}

/// Time limit of a request to the gateway.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct CodeResponse {
    code: String,
}

/// The part of the status that names the addresses of the gateway.
#[derive(Deserialize)]
struct ListenerList {
    #[serde(default)]
    listeners: Vec<Listener>,
}

#[derive(Deserialize)]
struct Listener {
    protocol: String,
    address: String,
}

/// Returns the URL of the console. A gateway on this machine may serve it at an address of its own (`console.listen`),
/// which operators see.
async fn page_url(remote: &RemoteGateway) -> String {
    let page = remote.page_url();
    let host =
        page.parse::<http::Uri>().ok().and_then(|url| url.host().map(str::to_owned)).unwrap_or_default();
    if !["localhost", "127.0.0.1", "[::1]"].contains(&&*host) {
        return page;
    }
    let status = remote.get("/api/v1/status").await.ok();
    let status = status.and_then(|body| serde_json::from_slice::<ListenerList>(&body).ok());
    let listeners = status.map(|status| status.listeners).unwrap_or_default();
    let own = listeners.iter().filter(|listener| listener.protocol == "console");
    let port =
        own.filter_map(|listener| listener.address.parse::<SocketAddr>().ok()).map(|own| own.port()).next();
    match port {
        Some(port) if page.starts_with("http://") => format!("http://{host}:{port}/"),
        _ => page,
    }
}

pub(crate) async fn run(args: ConsoleArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let ConsoleArgs { remote } = args;
    let request = remote.request(Method::POST, "/api/v1/session-codes", String::new(), Some(REQUEST_TIMEOUT));
    let (status, body) = request.await?;
    let page = page_url(&remote).await;
    let link = match status {
        // No key is needed.
        StatusCode::CONFLICT => page,
        status if status.is_success() => {
            let CodeResponse { code } = serde_json::from_slice(&body)
                .with_context(|| format!("unexpected response from {remote}"))?;
            // A fragment is sent to no server and is in no log.
            format!("{page}#/sign-in?code={code}")
        }
        status => return Err(remote.response_error(status, &body)),
    };
    print(&match format {
        OutputFormat::Text => link,
        OutputFormat::Json => json!({"url": link}).to_string(),
    });
    Ok(ExitCode::SUCCESS)
}
