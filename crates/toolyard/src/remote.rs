//! A running gateway, as the commands that ask one see it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::Full;
use tokio::time::timeout;
use toolyard_core::{Backend, Catalog, Phase};
use toolyard_manifest::{Invalid, Process};
use toolyard_mcp::client::{
    Attempts, ClientOptions, Endpoint, HttpEndpoint, LaneOptions, McpBackend, ToolFilter,
};
use toolyard_net::body;
use toolyard_net::client::Client;

use crate::output::patiently;

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
    url: Uri,
}

/// How long a gateway may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A URL as a manifest has it.
pub(crate) fn url(text: &str) -> Result<Uri, Invalid> {
    Ok(toolyard_manifest::Endpoint::parse(text)?.uri().clone())
}

impl Remote {
    /// Gets what the gateway says at a path beside its MCP endpoint.
    ///
    /// # Errors
    /// When it cannot be reached, or what is there is no gateway.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Bytes> {
        let beside = self.url.path().strip_suffix("/mcp").unwrap_or_default();
        let mut parts = self.url.clone().into_parts();
        parts.path_and_query = Some(format!("{beside}{path}").parse()?);
        let request = Request::get(Uri::from_parts(parts)?).body(Full::default())?;
        let answer = timeout(PATIENCE, async {
            let response = self.client()?.send(request).await?;
            let status = response.status();
            let body = body::read(response.into_body(), Process::default().limits.response_bytes).await?;
            if status.is_success() { Ok(body) } else { bail!("it answers with HTTP status {status}") }
        });
        patiently(self, answer)
            .await
            .context("it takes too long")
            .and_then(|answer| answer)
            .with_context(|| format!("cannot ask {self}"))
    }

    fn client(&self) -> anyhow::Result<Client> {
        match self.url.scheme_str() {
            Some("https") => {
                Client::with_system_roots().context("cannot read the system's root certificates")
            }
            _ => Ok(Client::without_roots()?),
        }
    }

    /// Connects; gives the server and what it offers.
    pub(crate) async fn connect(&self) -> anyhow::Result<(McpBackend, Arc<Catalog>)> {
        let Process { limits, timeouts, .. } = Process::default();
        let options = ClientOptions {
            name: "toolyard".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            message_bytes: limits.response_bytes,
            tools: limits.tools_per_handler,
            connect_time: PATIENCE,
            probe_time: timeouts.era_probe,
            idle_time: None,
            filter: ToolFilter::default(),
            attempts: Attempts::one(),
            lanes: LaneOptions::SHARED,
            probe: None,
        };
        let backend = McpBackend::start(
            "gateway",
            Endpoint::Http(HttpEndpoint::new(self.url.clone(), self.client()?)),
            options,
        );
        let mut catalog = backend.catalog();
        let connected = catalog.wait_for(|catalog| catalog.phase != Phase::Connecting);
        let catalog = patiently(self, connected).await?.clone();
        match &catalog.phase {
            Phase::Unavailable { reason } => bail!("cannot ask {self}: {reason}"),
            Phase::Connecting | Phase::Ready => Ok((backend, catalog)),
        }
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}
