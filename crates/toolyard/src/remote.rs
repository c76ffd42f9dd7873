//! A running gateway, as the commands that ask one see it.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use tokio::time::timeout;
use toolyard_core::{Backend, Catalog, Phase, Secrets};
use toolyard_manifest::{Invalid, Process};
use toolyard_mcp::client::{
    Attempts, ClientOptions, Endpoint, HttpEndpoint, LaneOptions, McpBackend, ToolFilter,
};
use toolyard_net::auth::{Auth, Scheme, Source};
use toolyard_net::body;
use toolyard_net::client::Client;

use crate::output::{note, patiently};

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

    /// A file with the key that the gateway is shown; without it, what `TOOLYARD_KEY` holds, if the gateway is on this
    /// machine or `TOOLYARD_URL` names it
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
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
        let (status, body) = self.ask(Method::GET, path, String::new(), Some(PATIENCE)).await?;
        if status.is_success() { Ok(body) } else { Err(self.refused(status, &body)) }
    }

    /// Asks the gateway something at a path beside its MCP endpoint; gives what it answers, whatever that is. Without
    /// `patience` it may take as long as it likes.
    ///
    /// # Errors
    /// When it cannot be reached.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: String,
        patience: Option<Duration>,
    ) -> anyhow::Result<(StatusCode, Bytes)> {
        let beside = self.url.path().strip_suffix("/mcp").unwrap_or_default();
        let mut parts = self.url.clone().into_parts();
        parts.path_and_query = Some(format!("{beside}{path}").parse()?);
        let mut request = Request::builder().method(method).uri(Uri::from_parts(parts)?);
        if let Some(auth) = self.auth() {
            request = request
                .header(header::AUTHORIZATION, auth.header().await.context("there is no key in the file")?);
        }
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::from(body))?;
        let answer = async {
            let response = self.client()?.send(request).await?;
            let status = response.status();
            let body = body::read(response.into_body(), Process::default().limits.response_bytes).await?;
            anyhow::Ok((status, body))
        };
        let answer = async {
            match patience {
                Some(time) => timeout(time, answer).await.context("it takes too long")?,
                None => answer.await,
            }
        };
        patiently(self, answer).await.with_context(|| format!("cannot ask {self}"))
    }

    /// Why the gateway does not do what it is asked, in its own words where it has some.
    pub(crate) fn refused(&self, status: StatusCode, body: &[u8]) -> anyhow::Error {
        let problem: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        match problem["detail"].as_str() {
            Some(detail) => anyhow!("{self} refuses: {detail}"),
            None => anyhow!("cannot ask {self}: it answers with HTTP status {status}"),
        }
    }

    /// The key to show. The one of the environment goes to nobody but whom the environment means: whoever asks a stranger
    /// something does not want to hand it the key of their gateway.
    fn auth(&self) -> Option<Auth> {
        let source = match &self.key_file {
            Some(file) => Source::File(file.clone()),
            None => {
                let key = std::env::var("TOOLYARD_KEY").ok().filter(|key| !key.is_empty())?;
                if !self.is_meant(std::env::var("TOOLYARD_URL").ok().as_deref()) {
                    note(&format!(
                        "{self} is not shown the key in TOOLYARD_KEY, which is for a gateway on this machine or the one \
                         that TOOLYARD_URL names: use `--key-file` if this one is to have it"
                    ));
                    return None;
                }
                Source::Value(key)
            }
        };
        // Whoever is asked may repeat it in what is printed here.
        let secrets = Secrets::default();
        if let Source::Value(key) = &source {
            secrets.learn(key);
        }
        Some(Auth { scheme: Scheme::Bearer, source, secrets })
    }

    /// Whether the key of the environment is for this gateway, where the environment names one.
    fn is_meant(&self, named: Option<&str>) -> bool {
        let host = self.url.host().unwrap_or_default().trim_matches(['[', ']']);
        let is_here = host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        is_here || named.is_some_and(|named| url(named).is_ok_and(|named| named == self.url))
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
        let auth = self.auth();
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
            secrets: auth.as_ref().map(|auth| auth.secrets.clone()).unwrap_or_default(),
        };
        let mut endpoint = HttpEndpoint::new(self.url.clone(), self.client()?);
        if let Some(auth) = auth {
            endpoint = endpoint.with_auth(auth);
        }
        let backend = McpBackend::start("gateway", Endpoint::Http(endpoint), options);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_the_key_of_the_environment_is_for() {
        let check = |asked: &str, named: Option<&str>, expected: bool| {
            let remote = Remote { url: url(asked).unwrap(), key_file: None };
            assert_eq!(remote.is_meant(named), expected, "{asked} {named:?}");
        };
        for here in [
            "http://127.0.0.1:8080/mcp",
            "http://127.8.8.8/mcp",
            "http://[::1]:1/mcp",
            "http://localhost/mcp",
        ] {
            check(here, None, true);
        }
        let there = "https://yard.example/mcp";
        check(there, None, false);
        check(there, Some(there), true);
        for named in
            ["http://yard.example/mcp", "https://yard.example.org/mcp", "https://yard.example/", "no URL", ""]
        {
            check(there, Some(named), false);
        }
        for stranger in
            ["http://localhost.example/mcp", "http://127.0.0.1.example/mcp", "http://10.0.0.1/mcp"]
        {
            check(stranger, Some(there), false);
        }
    }
}
