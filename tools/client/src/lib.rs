//! An MCP client on one HTTP/1.1 connection that checks every response against its request.
//!
//! It is no general client: it supports the requests of the bench and the arena, and no server messages.

mod idle_session;
mod plain_http;
mod reply;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use clap::ValueEnum;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::http::response::Parts;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use self::reply::{CallReply, InitializeReply, ToolsPage, payload, result};

pub use self::idle_session::IdleSession;
pub use self::plain_http::exchange;
pub use self::reply::RpcReplyError;

/// The revision without sessions.
pub const MODERN: &str = "2026-07-28";
/// The newest revision with sessions.
pub const LEGACY: &str = "2025-11-25";
/// The header with the ID of a session.
pub const SESSION_HEADER: &str = "mcp-session-id";
const VERSION_HEADER: &str = "mcp-protocol-version";
/// Longer than any response takes on a machine that is fit for measurements.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// The era of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum McpEra {
    /// With a session: 2025-11-25.
    Legacy,
    /// Without: 2026-07-28.
    Modern,
}

impl McpEra {
    /// Returns the name for tables and files.
    pub fn name(self) -> &'static str {
        match self {
            McpEra::Legacy => "legacy",
            McpEra::Modern => "modern",
        }
    }
}

/// A connection and, in the legacy era, its session.
pub struct McpConnection {
    sender: SendRequest<Full<Bytes>>,
    era: McpEra,
    headers: HeaderMap,
    last_id: u64,
    wait_time: Duration,
}

/// Totals of a list over all its pages.
pub struct ToolListing {
    /// Number of tools.
    pub tools: usize,
    /// Length of all responses.
    pub bytes: usize,
}

impl McpConnection {
    /// Connects and, in the legacy era, opens a session.
    pub async fn open(address: SocketAddr, era: McpEra) -> anyhow::Result<McpConnection> {
        McpConnection::open_with_key(address, era, None).await
    }

    /// As [`McpConnection::open`], with an API key.
    pub async fn open_with_key(
        address: SocketAddr,
        era: McpEra,
        key: Option<&str>,
    ) -> anyhow::Result<McpConnection> {
        McpConnection::open_on(connect(address).await?, era, key).await
    }

    /// As [`McpConnection::open_with_key`], on a connected stream.
    pub async fn open_on(stream: TcpStream, era: McpEra, key: Option<&str>) -> anyhow::Result<McpConnection> {
        let mut connection = McpConnection::new(stream, era).await?;
        if let Some(key) = key {
            let credentials = HeaderValue::from_str(&format!("Bearer {key}"))?;
            connection.headers.insert(AUTHORIZATION, credentials);
        }
        if era == McpEra::Legacy {
            connection.initialize().await?;
        }
        Ok(connection)
    }

    async fn new(stream: TcpStream, era: McpEra) -> anyhow::Result<McpConnection> {
        let address = stream.peer_addr()?;
        stream.set_nodelay(true)?;
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(driver);
        let headers = default_headers(address, era)?;
        Ok(McpConnection { sender, era, headers, last_id: 0, wait_time: Duration::ZERO })
    }

    /// Calls `echo` once. `unique` distinguishes the call from all others in flight. The reply is the text, or an object
    /// with it.
    pub async fn call_echo(&mut self, unique: &str) -> anyhow::Result<()> {
        let text = echo_text(unique);
        let reply = self.call("echo", &text).await?;
        let object = || json!({"text": text}).to_string();
        ensure!(reply == text || reply.as_str() == object().as_str(), "sent {text:?}, received {reply:?}");
        Ok(())
    }

    /// The same as a plain HTTP request.
    pub async fn post_echo(&mut self, unique: &str) -> anyhow::Result<()> {
        let text = echo_text(unique);
        let mut request = self.http(Method::POST, json!({"text": text}).to_string().into())?;
        *request.uri_mut() = Uri::from_static("/v1/echo");
        let (_, body) = self.exchange(request).await?;
        let reply: String = serde_json::from_slice(&body)?;
        ensure!(reply == text, "sent {text:?}, received {reply:?}");
        Ok(())
    }

    /// Calls a tool that takes a `text` and returns one text.
    ///
    /// # Errors
    /// Errors with [`RpcReplyError`] if the response is an error; the connection stays usable. After any other error it
    /// is not.
    pub async fn call(&mut self, tool: &str, text: &str) -> anyhow::Result<String> {
        self.call_with(tool, json!({"text": text})).await
    }

    /// Calls a tool that returns one text. Errors as [`McpConnection::call`].
    pub async fn call_with(&mut self, tool: &str, arguments: Value) -> anyhow::Result<String> {
        let params = json!({"name": tool, "arguments": arguments});
        let body = self.request("tools/call", Some(tool), params).await?;
        let called: CallReply = result(&body, self.last_id, self.era)?;
        let mut texts = called.content.into_iter().map(|content| content.text.into_owned());
        match (called.is_error, texts.next(), texts.next()) {
            (false, Some(texts), None) => Ok(texts),
            (is_error, first, _) => bail!("unexpected result: isError {is_error}, first text {first:?}"),
        }
    }

    /// Calls a tool, and returns the response as soon as its head has arrived. The connection is not usable until the
    /// body has been read.
    pub async fn start_call(&mut self, tool: &str, arguments: Value) -> anyhow::Result<Response<Incoming>> {
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": 1}});
        let request = self.message("tools/call", Some(tool), params)?;
        self.send(request).await
    }

    /// Reads all pages of the list of tools.
    pub async fn list(&mut self) -> anyhow::Result<ToolListing> {
        let mut listing = ToolListing { tools: 0, bytes: 0 };
        let mut params = json!({});
        loop {
            let body = self.request("tools/list", None, params).await?;
            let page: ToolsPage = result(&body, self.last_id, self.era)?;
            listing.tools += page.tools.len();
            listing.bytes += body.len();
            match page.next_cursor {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return Ok(listing),
            }
        }
    }

    /// Ends the session, so that the target does not keep it until it expires.
    pub async fn close(mut self) -> anyhow::Result<()> {
        if self.era == McpEra::Legacy {
            let request = self.http(Method::DELETE, Bytes::new())?;
            self.exchange(request).await?;
        }
        Ok(())
    }

    /// Time spent waiting for responses since the last call of this method. It excludes the client's own work, such
    /// as parsing 5,000 tools.
    pub fn take_wait_time(&mut self) -> Duration {
        std::mem::take(&mut self.wait_time)
    }

    async fn initialize(&mut self) -> anyhow::Result<()> {
        let about = json!({
            "protocolVersion": LEGACY,
            "capabilities": {},
            "clientInfo": {"name": "xtask", "version": "1.0.0"}
        });
        let request = self.http(Method::POST, message(self.last_id, "initialize", &about))?;
        let (head, body) = self.exchange(request).await?;
        let initialized: InitializeReply = result(&payload(&head, body)?, self.last_id, self.era)?;
        ensure!(
            initialized.protocol_version == LEGACY,
            "requested {LEGACY}, got {}",
            initialized.protocol_version
        );
        let session =
            head.headers.get(SESSION_HEADER).context("no session ID in the response to initialize")?;
        self.headers.insert(SESSION_HEADER, session.clone());
        self.headers.insert(VERSION_HEADER, HeaderValue::from_static(LEGACY));
        self.notify_initialized().await
    }

    async fn notify_initialized(&mut self) -> anyhow::Result<()> {
        let notice = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let request = self.http(Method::POST, notice.to_string().into())?;
        let (head, _) = self.exchange(request).await?;
        ensure!(head.status == StatusCode::ACCEPTED, "unexpected status {} for a notification", head.status);
        Ok(())
    }

    /// Sends a request and returns the JSON-RPC message of the response.
    async fn request(
        &mut self,
        method: &'static str,
        name: Option<&str>,
        params: Value,
    ) -> anyhow::Result<Bytes> {
        let request = self.message(method, name, params)?;
        let (head, body) = self.exchange(request).await?;
        payload(&head, body)
    }

    /// The next request, with the `_meta` members and headers of its era.
    fn message(
        &mut self,
        method: &'static str,
        name: Option<&str>,
        mut params: Value,
    ) -> anyhow::Result<Request<Full<Bytes>>> {
        self.last_id += 1;
        if self.era == McpEra::Modern {
            for (name, value) in envelope() {
                params["_meta"][name] = value;
            }
        }
        let mut request = self.http(Method::POST, message(self.last_id, method, &params))?;
        if self.era == McpEra::Modern {
            let headers = request.headers_mut();
            headers.insert("mcp-method", HeaderValue::from_static(method));
            if let Some(name) = name {
                headers.insert("mcp-name", HeaderValue::from_str(name)?);
            }
        }
        Ok(request)
    }

    fn http(&self, method: Method, body: Bytes) -> anyhow::Result<Request<Full<Bytes>>> {
        let mut request = Request::builder().method(method).uri("/mcp").body(Full::new(body))?;
        request.headers_mut().clone_from(&self.headers);
        Ok(request)
    }

    async fn exchange(&mut self, request: Request<Full<Bytes>>) -> anyhow::Result<(Parts, Bytes)> {
        let started = Instant::now();
        let exchange = async {
            let (head, body) = self.send(request).await?.into_parts();
            Ok((head, body.collect().await?.to_bytes()))
        };
        let answer = tokio::time::timeout(RESPONSE_TIMEOUT, exchange).await.context("no response in time")?;
        self.wait_time += started.elapsed();
        answer
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> anyhow::Result<Response<Incoming>> {
        self.sender.ready().await?;
        Ok(self.sender.send_request(request).await?)
    }
}

async fn connect(address: SocketAddr) -> anyhow::Result<TcpStream> {
    TcpStream::connect(address).await.with_context(|| format!("cannot connect to {address}"))
}

fn message(id: u64, method: &str, params: &Value) -> Bytes {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string().into()
}

/// The argument of `echo`: quotes, a backslash and non-ASCII letters, so that wrong escaping is detected. The padding
/// makes a legacy request about 290 bytes long.
pub fn echo_text(unique: &str) -> String {
    format!(
        "{unique}: \"grüße\" \\ {}",
        "to whom it may concern, and to all of the others as well. ".repeat(3)
    )
}

/// The `_meta` members of a modern request.
fn envelope() -> [(&'static str, Value); 3] {
    [
        ("io.modelcontextprotocol/protocolVersion", MODERN.into()),
        ("io.modelcontextprotocol/clientInfo", json!({"name": "xtask", "version": "1.0.0"})),
        ("io.modelcontextprotocol/clientCapabilities", json!({})),
    ]
}

/// The headers of every request; a session adds its own.
fn default_headers(address: SocketAddr, era: McpEra) -> anyhow::Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(HOST, HeaderValue::from_str(&address.to_string())?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    if era == McpEra::Modern {
        headers.insert(VERSION_HEADER, HeaderValue::from_static(MODERN));
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legacy_request_has_about_290_bytes() {
        let params = json!({"name": "echo", "arguments": {"text": echo_text("63-100000")}});
        let size = message(1_000, "tools/call", &params).len();
        assert!((280..=300).contains(&size), "{size}");
    }
}
