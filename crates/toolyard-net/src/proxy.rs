//! Proxies for requests to other servers: from the environment, as `curl` and most programs read it, or from a manifest.
//!
//! A server with `https` is reached through a tunnel (`CONNECT`, RFC 9110, section 9.3.6), one with `http` by a request to
//! the proxy.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use http::{HeaderValue, Uri};
use hyper_util::client::legacy::connect::{Connected, HttpConnector};
use hyper_util::rt::TokioIo;
use ipnet::IpNet;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower_service::Service;

use crate::annotated_stream::{AnnotatedStream, ConnectionNote};
use crate::egress::PolicyResolver;

/// Maximum size of a proxy's answer to `CONNECT`, in bytes.
const MAX_ANSWER_BYTES: usize = 8 << 10;

/// The proxies of a client.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProxySettings {
    http: Option<ProxyServer>,
    https: Option<ProxyServer>,
    exceptions: Vec<Exception>,
    /// True if servers on this machine are reached through the proxy too.
    is_for_loopback: bool,
}

/// A proxy.
#[derive(Clone, PartialEq, Eq)]
struct ProxyServer {
    url: Uri,
    credentials: Option<HeaderValue>,
}

/// A host that is reached without a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Exception {
    All,
    Network(IpNet),
    /// A domain and its subdomains, with a port if it is for one only.
    Domain(String, Option<u16>),
}

/// The connection through a proxy failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProxyError {
    #[error("the proxy cannot be reached")]
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
    #[error("the proxy refuses the connection with HTTP status {0}")]
    Refused(u16),
    #[error("the proxy does not speak HTTP")]
    NotHttp,
    #[error("the connection to the proxy broke")]
    Broken(#[from] io::Error),
}

impl ProxySettings {
    /// Returns the proxies of the environment: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, each also in
    /// lower case. Servers on this machine are reached directly.
    #[must_use]
    pub fn from_environment() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let value = |name: &str| {
            let either = [variable(&name.to_lowercase()), variable(name)];
            either.into_iter().flatten().find(|value| !value.is_empty())
        };
        let proxy = |name: &str| {
            let proxy = ProxyServer::parse(&value(name).or_else(|| value("ALL_PROXY"))?);
            if proxy.is_none() {
                tracing::warn!("{name} or ALL_PROXY is no URL of an HTTP proxy: it is ignored");
            }
            proxy
        };
        let exceptions = value("NO_PROXY").unwrap_or_default();
        let exceptions = exceptions.split([',', ' ']).filter_map(Exception::parse).collect();
        Self { http: proxy("HTTP_PROXY"), https: proxy("HTTPS_PROXY"), exceptions, is_for_loopback: false }
    }

    /// Returns no proxies.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns one proxy for all servers; `None` if the text is no URL of an HTTP proxy.
    #[must_use]
    pub fn all(url: &str) -> Option<Self> {
        let proxy = ProxyServer::parse(url);
        let (http, https) = (proxy.clone(), Some(proxy?));
        Some(Self { http, https, exceptions: Vec::new(), is_for_loopback: true })
    }

    /// Returns the proxy for a URL.
    fn proxy_for(&self, url: &Uri) -> Option<&ProxyServer> {
        let proxy = if url.scheme_str() == Some("https") { &self.https } else { &self.http };
        let proxy = proxy.as_ref()?;
        let host = url.host()?.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let address: Option<IpAddr> = host.parse().ok();
        let is_local = host == "localhost" || address.is_some_and(|address| address.is_loopback());
        let is_exception =
            self.exceptions.iter().any(|exception| exception.matches(&host, address, url.port_u16()));
        (!is_exception && (self.is_for_loopback || !is_local)).then_some(proxy)
    }

    /// Returns the credentials that a request to a server with `http` carries for its proxy.
    pub(crate) fn request_credentials(&self, url: &Uri) -> Option<&HeaderValue> {
        let is_tunnelled = url.scheme_str() == Some("https");
        self.proxy_for(url).filter(|_| !is_tunnelled)?.credentials.as_ref()
    }
}

/// Shows no credentials.
impl fmt::Debug for ProxySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProxySettings")
    }
}

impl ProxyServer {
    /// Parses the URL of an HTTP proxy, which may lack the scheme.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_end_matches('/');
        let rest = match text.split_once("://") {
            Some(("http", rest)) => rest,
            Some(_) => return None,
            None => text,
        };
        let (user, host) = match rest.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, rest),
        };
        let url = format!("http://{host}/").parse().ok().filter(|url: &Uri| url.host().is_some())?;
        let credentials = user.map(|user| {
            let user = STANDARD.encode(percent_decoded(user));
            let mut value = HeaderValue::from_str(&format!("Basic {user}")).ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        Some(Self { url, credentials: credentials.flatten() })
    }
}

/// Decodes percent-encoded bytes.
fn percent_decoded(text: &str) -> Vec<u8> {
    let (mut decoded, mut rest) = (Vec::new(), text.as_bytes());
    while let [byte, after @ ..] = rest {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let value = hex.filter(|_| *byte == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        decoded.push(value.unwrap_or(*byte));
        rest = if value.is_some() { &after[2..] } else { after };
    }
    decoded
}

impl Exception {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        if text.is_empty() {
            return None;
        }
        if text == "*" {
            return Some(Self::All);
        }
        if let Ok(network) = text.parse() {
            return Some(Self::Network(network));
        }
        if let Ok(address) = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            return Some(Self::Network(address.into()));
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (&*text, None),
        };
        Some(Self::Domain(host.trim_start_matches("*.").trim_start_matches('.').to_owned(), port))
    }

    fn matches(&self, host: &str, address: Option<IpAddr>, port: Option<u16>) -> bool {
        match self {
            Self::All => true,
            Self::Network(network) => address.is_some_and(|address| network.contains(&address)),
            Self::Domain(domain, only) => {
                let is_inside = || host.strip_suffix(&**domain).is_some_and(|above| above.ends_with('.'));
                (host == domain || is_inside()) && (only.is_none() || *only == port)
            }
        }
    }
}

/// Opens connections, through a proxy if there is one for the server.
#[derive(Clone, Debug)]
pub(crate) struct ProxyConnector {
    pub(crate) direct: HttpConnector<PolicyResolver>,
    pub(crate) proxies: Arc<ProxySettings>,
}

impl Service<Uri> for ProxyConnector {
    type Response = ProxyStream;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<ProxyStream, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.direct.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, url: Uri) -> Self::Future {
        let Some(proxy) = self.proxies.proxy_for(&url).cloned() else {
            let connection = self.direct.call(url);
            return Box::pin(async move {
                Ok(ProxyStream { stream: connection.await?, note: RequestForm::Path })
            });
        };
        let connection = self.direct.call(proxy.url.clone());
        Box::pin(async move {
            let stream = connection.await.map_err(|error| ProxyError::Unreachable(error.into()))?;
            if url.scheme_str() != Some("https") {
                return Ok(ProxyStream { stream, note: RequestForm::WholeUrl });
            }
            let mut stream = stream.into_inner();
            open_tunnel(&mut stream, &url, proxy.credentials.as_ref()).await?;
            Ok(ProxyStream { stream: TokioIo::new(stream), note: RequestForm::Path })
        })
    }
}

/// Asks a proxy for a tunnel to the host of a URL.
async fn open_tunnel(
    stream: &mut TcpStream,
    url: &Uri,
    credentials: Option<&HeaderValue>,
) -> Result<(), ProxyError> {
    let authority = format!("{}:{}", url.host().unwrap_or_default(), url.port_u16().unwrap_or(443));
    let mut request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n").into_bytes();
    if let Some(credentials) = credentials {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(credentials.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    stream.write_all(&request).await?;
    let mut answer = Vec::new();
    // The server speaks only after the client's part of the handshake: nothing follows the answer.
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() >= MAX_ANSWER_BYTES {
            return Err(ProxyError::NotHttp);
        }
        answer.push(stream.read_u8().await?);
    }
    match status_of(&answer) {
        Some(200..300) => Ok(()),
        Some(status) => Err(ProxyError::Refused(status)),
        None => Err(ProxyError::NotHttp),
    }
}

/// Returns the status of a response.
fn status_of(answer: &[u8]) -> Option<u16> {
    let line = std::str::from_utf8(answer.split(|&byte| byte == b'\r').next()?).ok()?;
    line.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()
}

/// A connection, possibly to a proxy.
pub(crate) type ProxyStream = AnnotatedStream<TokioIo<TcpStream>, RequestForm>;

/// The form of the requests on a connection: those to a proxy name the whole URL.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RequestForm {
    Path,
    WholeUrl,
}

impl ConnectionNote for RequestForm {
    fn describe(&self, connected: Connected) -> Connected {
        connected.proxy(matches!(self, Self::WholeUrl))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the proxies for URLs with variables, which are separated by spaces; `-` is none.
    #[track_caller]
    fn check(variables: &[(&str, &str)], cases: &[(&str, &str)]) {
        let value = |name: &str| {
            let entry = variables.iter().find(|(variable, _)| *variable == name)?;
            Some(entry.1.to_owned())
        };
        let settings = ProxySettings::from_variables(value);
        for (url, expected) in cases {
            let proxy = settings.proxy_for(&url.parse().unwrap());
            let proxy = proxy.map_or("-".to_owned(), |proxy| proxy.url.authority().unwrap().to_string());
            assert_eq!(proxy, *expected, "{url} {variables:?}");
        }
    }

    #[test]
    fn proxies_of_the_environment() {
        check(&[], &[("http://a", "-"), ("https://a", "-")]);
        check(
            &[("HTTPS_PROXY", "http://p:1"), ("http_proxy", "q:2")],
            &[
                ("http://a", "q:2"),
                ("https://a/x", "p:1"),
                ("https://localhost:8", "-"),
                ("http://[::1]", "-"),
            ],
        );
        check(
            &[("ALL_PROXY", "http://p"), ("https_proxy", "http://q")],
            &[("http://a", "p"), ("https://a", "q")],
        );
        check(&[("ALL_PROXY", "socks5://p"), ("HTTPS_PROXY", "")], &[("http://a", "-"), ("https://a", "-")]);
    }

    #[test]
    fn exceptions_of_the_environment() {
        let check = |exceptions: &str, cases: &[(&str, &str)]| {
            check(&[("ALL_PROXY", "p:1"), ("NO_PROXY", exceptions)], cases);
        };
        check("*", &[("http://a", "-")]);
        check(
            "a.example, .b.example",
            &[
                ("https://a.example", "-"),
                ("https://x.A.example", "-"),
                ("https://xa.example", "p:1"),
                ("https://b.example", "-"),
                ("https://example", "p:1"),
            ],
        );
        check(
            "10.0.0.0/8,192.168.1.1,a:8080",
            &[
                ("http://10.1.2.3", "-"),
                ("http://192.168.1.1:80", "-"),
                ("http://192.168.1.2", "p:1"),
                ("http://a:8080", "-"),
                ("http://a", "p:1"),
            ],
        );
    }

    #[test]
    fn credentials_are_sent_to_the_proxy_only() {
        let settings = ProxySettings::all("http://me:s%40cret@p:1").unwrap();
        let credentials = |url: &str| settings.request_credentials(&url.parse().unwrap()).cloned();
        assert_eq!(credentials("http://a").unwrap(), format!("Basic {}", STANDARD.encode("me:s@cret")));
        assert_eq!(credentials("https://a"), None);
        assert!(!format!("{settings:?}").contains("me"));
    }

    #[test]
    fn status_of_an_answer() {
        let cases = [
            ("HTTP/1.1 200 Connection established\r\n\r\n", Some(200)),
            ("HTTP/1.0 407 \r\n\r\n", Some(407)),
            ("220 hello\r\n\r\n", None),
            ("HTTP/1.1\r\n\r\n", None),
        ];
        for (answer, expected) in cases {
            assert_eq!(status_of(answer.as_bytes()), expected, "{answer}");
        }
    }
}
