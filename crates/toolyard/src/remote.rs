//! A running gateway, as the commands that ask one see it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use toolyard_core::{Backend, Catalog, Phase};
use toolyard_manifest::{Invalid, Process};
use toolyard_mcp::client::{ClientOptions, Endpoint, McpBackend};
use toolyard_net::client::Client;

/// Which gateway to ask.
#[derive(clap::Args)]
pub(crate) struct Remote {
    /// The MCP endpoint to ask; any MCP server on streamable HTTP will do
    #[arg(
        long,
        value_name = "URL",
        env = "TOOLYARD_URL",
        default_value = "http://127.0.0.1:8080/mcp",
        value_parser = url
    )]
    url: http::Uri,
}

/// A URL as a manifest has it.
fn url(text: &str) -> Result<http::Uri, Invalid> {
    Ok(toolyard_manifest::Endpoint::parse(text)?.uri().clone())
}

impl Remote {
    /// Connects; gives the server and what it offers.
    pub(crate) async fn connect(&self) -> anyhow::Result<(McpBackend, Arc<Catalog>)> {
        let client = match self.url.scheme_str() {
            Some("https") => {
                Client::with_system_roots().context("cannot read the system's root certificates")?
            }
            _ => Client::without_roots()?,
        };
        let Process { limits, timeouts, .. } = Process::default();
        let options = ClientOptions {
            name: "toolyard".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            message_bytes: limits.response_bytes,
            tools: limits.tools_per_handler,
            connect_time: Duration::from_secs(10),
            probe_time: timeouts.era_probe,
            idle_time: None,
        };
        let backend = McpBackend::start("gateway", Endpoint::Http { url: self.url.clone(), client }, options);
        let mut catalog = backend.catalog();
        let catalog = catalog.wait_for(|catalog| catalog.phase != Phase::Connecting).await?.clone();
        match &catalog.phase {
            Phase::Unavailable { reason } => bail!("cannot ask {}: {reason}", self.url),
            Phase::Connecting | Phase::Ready => Ok((backend, catalog)),
        }
    }
}
