//! A client for running gateways, and the arguments that select one.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use tokio::time::timeout;
use toolyard_core::{Backend, BackendPhase, Catalog, CauseCode, SecretRedactor};
use toolyard_manifest::{FormatError, ProcessSettings};
use toolyard_mcp::client::{
    ClientOptions, DedicatedOptions, EraPreference, HttpEndpoint, McpBackend, ServerEndpoint, UpstreamRetry,
    UpstreamToolFilter,
};
use toolyard_net::auth::{HttpAuthScheme, SecretSource, UpstreamCredentials};
use toolyard_net::body;
use toolyard_net::client::HttpClient;

use crate::default_manifest;
use crate::output::{note, with_wait_notice};

/// The gateway that a command connects to.
#[derive(clap::Args)]
pub(crate) struct RemoteGateway {
    /// MCP endpoint of the gateway, or of any MCP server on streamable HTTP (default: that of the gateway of
    /// `toolyard.yaml` here or in ~/.config/toolyard, or else http://127.0.0.1:8080/mcp)
    #[arg(long = "url", value_name = "URL", env = "TOOLYARD_URL", value_parser = parse_url)]
    given_url: Option<Uri>,

    /// The default URL, once it is needed.
    #[arg(skip)]
    default_url: OnceLock<Uri>,

    /// Read the API key from FILE (default: $TOOLYARD_KEY, sent only to loopback or $TOOLYARD_URL)
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

/// Default time limit of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Parses a URL in the form that manifests accept.
pub(crate) fn parse_url(text: &str) -> Result<Uri, FormatError> {
    Ok(toolyard_manifest::EndpointUrl::parse(text)?.uri().clone())
}

/// Returns the endpoint of the gateway of the default manifest, or else that of a gateway without settings.
pub(crate) fn default_url() -> Uri {
    let fallback = || Uri::from_static("http://127.0.0.1:8080/mcp");
    // A manifest with problems is a matter of `toolyard check`.
    let manifest = default_manifest::find().and_then(|file| toolyard_manifest::load(&[file]).ok());
    manifest.and_then(|manifest| local_url(&manifest.process)).unwrap_or_else(fallback)
}

/// Returns the URL of the first TCP address of a gateway for clients on this machine.
fn local_url(process: &ProcessSettings) -> Option<Uri> {
    let scheme = if process.tls.is_some() { "https" } else { "http" };
    let address = process.listen.iter().find_map(|address| address.to_string().parse::<SocketAddr>().ok())?;
    let host = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => "127.0.0.1".to_owned(),
        IpAddr::V6(ip) if ip.is_unspecified() => "[::1]".to_owned(),
        IpAddr::V6(ip) => format!("[{ip}]"),
        IpAddr::V4(ip) => ip.to_string(),
    };
    // Port 0 is another one at each start.
    let port = Some(address.port()).filter(|port| *port != 0)?;
    format!("{scheme}://{host}:{port}/mcp").parse().ok()
}

impl RemoteGateway {
    fn url(&self) -> &Uri {
        self.given_url.as_ref().unwrap_or_else(|| self.default_url.get_or_init(default_url))
    }

    /// Returns the address of the console.
    pub(crate) fn page_url(&self) -> String {
        let url = self.url().to_string();
        let base = url.strip_suffix("/mcp").map_or(url.as_str(), |base| base).trim_end_matches('/');
        format!("{base}/")
    }

    /// Sends a GET request to a path of the gateway and returns the body.
    ///
    /// # Errors
    /// Fails if the gateway is unreachable or answers with an error status.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Bytes> {
        let (status, body) = self.request(Method::GET, path, String::new(), Some(REQUEST_TIMEOUT)).await?;
        if status.is_success() { Ok(body) } else { Err(self.response_error(status, &body)) }
    }

    /// Sends a request to a path of the gateway and returns the status and the body of the response. Waits without limit
    /// if `time_limit` is `None`.
    ///
    /// # Errors
    /// Fails if the gateway is unreachable or the time limit expires.
    pub(crate) async fn request(
        &self,
        method: Method,
        path: &str,
        body: String,
        time_limit: Option<Duration>,
    ) -> anyhow::Result<(StatusCode, Bytes)> {
        let base = self.url().path().strip_suffix("/mcp").unwrap_or_default();
        let mut parts = self.url().clone().into_parts();
        parts.path_and_query = Some(format!("{base}{path}").parse()?);
        let mut request = Request::builder().method(method).uri(Uri::from_parts(parts)?);
        if let Some(auth) = self.auth() {
            request =
                request.header(header::AUTHORIZATION, auth.header().await.with_context(|| self.key_fault())?);
        }
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::from(body))?;
        let answer = async {
            let response = self.client()?.send(request).await?;
            let status = response.status();
            let body =
                body::read(response.into_body(), ProcessSettings::default().limits.response_bytes).await?;
            anyhow::Ok((status, body))
        };
        let answer = async {
            match time_limit {
                Some(time) => timeout(time, answer).await.context("timed out")?,
                None => answer.await,
            }
        };
        with_wait_notice(self, answer).await.with_context(|| format!("request to {self} failed"))
    }

    /// Returns the reason why the gateway refuses the key, or another server a request without one.
    async fn unauthenticated(&self) -> anyhow::Error {
        match self.request(Method::GET, "/api/v1/status", String::new(), Some(REQUEST_TIMEOUT)).await {
            Ok((status, body)) if status == StatusCode::UNAUTHORIZED && body.starts_with(b"{") => {
                self.response_error(status, &body)
            }
            _ if self.auth().is_some() => anyhow!("{self} refused the key of TOOLYARD_KEY or `--key-file`"),
            _ => anyhow!("{self} requires a key: set TOOLYARD_KEY, or use `--key-file`"),
        }
    }

    /// Returns the error of a response: the `detail` of its problem document, or else the status.
    pub(crate) fn response_error(&self, status: StatusCode, body: &[u8]) -> anyhow::Error {
        let problem: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        match problem["detail"].as_str() {
            Some(detail) => anyhow!("{self} refused the request: {detail}"),
            None => anyhow!("request to {self} failed: HTTP status {status}"),
        }
    }

    /// Returns the credentials to send. The key of the environment is sent only to the gateway that it is meant for, so
    /// that a request to another server does not disclose it.
    fn auth(&self) -> Option<UpstreamCredentials> {
        let source = match &self.key_file {
            Some(file) => SecretSource::File(file.clone()),
            None => {
                let key = std::env::var("TOOLYARD_KEY").ok().filter(|key| !key.is_empty())?;
                if !self.may_receive_env_key(std::env::var("TOOLYARD_URL").ok().as_deref()) {
                    note(&format!(
                        "the key in TOOLYARD_KEY is not sent to {self}, only to loopback or $TOOLYARD_URL; use \
                         `--key-file` to send a key there"
                    ));
                    return None;
                }
                SecretSource::Value(key)
            }
        };
        // The server may repeat the key in its response, which is printed.
        let secrets = SecretRedactor::default();
        if let SecretSource::Value(key) = &source {
            secrets.learn(key);
        }
        Some(UpstreamCredentials { scheme: HttpAuthScheme::Bearer, source, secrets })
    }

    /// Says which API key cannot be used.
    fn key_fault(&self) -> String {
        match &self.key_file {
            Some(file) => format!("cannot use the API key in {}", file.display()),
            None => "cannot use the API key in TOOLYARD_KEY".to_owned(),
        }
    }

    /// True if the key of the environment may be sent to this gateway. `named` is the value of `TOOLYARD_URL`.
    fn may_receive_env_key(&self, named: Option<&str>) -> bool {
        let host = self.url().host().unwrap_or_default().trim_matches(['[', ']']);
        let is_here = host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        is_here || named.is_some_and(|named| parse_url(named).is_ok_and(|named| named == *self.url()))
    }

    fn client(&self) -> anyhow::Result<HttpClient> {
        match self.url().scheme_str() {
            Some("https") => {
                HttpClient::with_system_roots().context("cannot read the system's root certificates")
            }
            _ => Ok(HttpClient::without_roots()?),
        }
    }

    /// Connects by MCP and returns the server and its catalog.
    pub(crate) async fn connect(&self) -> anyhow::Result<(McpBackend, Arc<Catalog>)> {
        let ProcessSettings { limits, timeouts, .. } = ProcessSettings::default();
        let auth = self.auth();
        let options = ClientOptions {
            dropped_notices: Arc::default(),
            skipped_messages: Arc::default(),
            error_lines: Default::default(),
            launcher: None,
            name: "toolyard".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            max_message_bytes: limits.response_bytes,
            max_list_items: limits.tools_per_handler,
            max_depth: limits.json_depth,
            connect_timeout: REQUEST_TIMEOUT,
            discover_timeout: timeouts.era_probe,
            idle_timeout: None,
            era: EraPreference::default(),
            filter: UpstreamToolFilter::default(),
            retry: UpstreamRetry::never(),
            dedicated: DedicatedOptions::SHARED,
            probe: None,
            budget: toolyard_net::budget::ByteBudget::default(),
            secrets: auth.as_ref().map(|auth| auth.secrets.clone()).unwrap_or_default(),
        };
        let mut endpoint = HttpEndpoint::new(self.url().clone(), self.client()?);
        if let Some(auth) = auth {
            endpoint = endpoint.with_auth(auth);
        }
        let backend = McpBackend::start("gateway", ServerEndpoint::Http(endpoint), options);
        let mut catalog = backend.catalog();
        let connected = catalog.wait_for(|catalog| catalog.phase != BackendPhase::Connecting);
        let catalog = with_wait_notice(self, connected).await?.clone();
        match &catalog.phase {
            BackendPhase::Unavailable { reason } if reason.code == CauseCode::Unauthorized => {
                Err(self.unauthenticated().await)
            }
            BackendPhase::Unavailable { reason } => bail!("cannot connect to {self}: {reason}"),
            BackendPhase::Connecting | BackendPhase::Ready => Ok((backend, catalog)),
        }
    }
}

impl fmt::Display for RemoteGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_of_a_gateway_on_this_machine() {
        let check = |listen: &[&str], expected: Option<&str>| {
            let listen = listen.iter().map(|address| address.parse().unwrap()).collect();
            let process = ProcessSettings { listen, ..ProcessSettings::default() };
            assert_eq!(local_url(&process).map(|url| url.to_string()).as_deref(), expected);
        };
        check(&[], None);
        check(&["127.0.0.1:9000"], Some("http://127.0.0.1:9000/mcp"));
        check(&["unix:/run/a.sock", "0.0.0.0:9000"], Some("http://127.0.0.1:9000/mcp"));
        check(&["[::]:9000"], Some("http://[::1]:9000/mcp"));
        check(&["127.0.0.1:0"], None);
    }

    #[test]
    fn environment_key_is_sent_to_loopback_and_named_url_only() {
        let check = |target: &str, named: Option<&str>, expected: bool| {
            let given_url = Some(parse_url(target).unwrap());
            let remote = RemoteGateway { given_url, default_url: OnceLock::new(), key_file: None };
            assert_eq!(remote.may_receive_env_key(named), expected, "{target} {named:?}");
        };
        for loopback in [
            "http://127.0.0.1:8080/mcp",
            "http://127.8.8.8/mcp",
            "http://[::1]:1/mcp",
            "http://localhost/mcp",
        ] {
            check(loopback, None, true);
        }
        let remote = "https://yard.example/mcp";
        check(remote, None, false);
        check(remote, Some(remote), true);
        for named in
            ["http://yard.example/mcp", "https://yard.example.org/mcp", "https://yard.example/", "no URL", ""]
        {
            check(remote, Some(named), false);
        }
        for other in ["http://localhost.example/mcp", "http://127.0.0.1.example/mcp", "http://10.0.0.1/mcp"] {
            check(other, Some(remote), false);
        }
    }
}
