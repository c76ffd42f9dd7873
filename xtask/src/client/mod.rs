//! An MCP client on one HTTP/1.1 connection, which believes nothing: every reply is checked against what was asked.
//!
//! It is not a general client: it knows what the bench and the arena ask, and no notification or request of a server is awaited.

mod idle;
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

use self::reply::{Agreed, Called, Page, payload, result};

pub(crate) use self::idle::IdleSession;
pub(crate) use self::reply::Refused;

/// The revision without sessions.
pub(crate) const MODERN: &str = "2026-07-28";
/// The newest revision with sessions.
pub(crate) const LEGACY: &str = "2025-11-25";
/// The header that names a session.
pub(crate) const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
/// Longer than any answer takes on a machine that can be measured on at all.
const PATIENCE: Duration = Duration::from_secs(30);

/// How the client speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Era {
    /// With a session: 2025-11-25.
    Legacy,
    /// Without: 2026-07-28.
    Modern,
}

impl Era {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Era::Legacy => "legacy",
            Era::Modern => "modern",
        }
    }
}

/// A connection, and in the legacy era its session.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    era: Era,
    headers: HeaderMap,
    last_id: u64,
    waited: Duration,
}

/// What a whole list came to, over all its pages.
pub(crate) struct Listing {
    pub tools: usize,
    pub bytes: usize,
}

impl Connection {
    /// Connects and, in the legacy era, opens a session.
    pub(crate) async fn open(address: SocketAddr, era: Era) -> anyhow::Result<Connection> {
        Connection::open_with_key(address, era, None).await
    }

    /// The same, with a key that each request shows.
    pub(crate) async fn open_with_key(
        address: SocketAddr,
        era: Era,
        key: Option<&str>,
    ) -> anyhow::Result<Connection> {
        let mut connection = Connection::connect(address, era).await?;
        if let Some(key) = key {
            let shown = HeaderValue::from_str(&format!("Bearer {key}"))?;
            connection.headers.insert(AUTHORIZATION, shown);
        }
        if era == Era::Legacy {
            connection.initialize().await?;
        }
        Ok(connection)
    }

    async fn connect(address: SocketAddr, era: Era) -> anyhow::Result<Connection> {
        let stream =
            TcpStream::connect(address).await.with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(driver);
        let headers = standing_headers(address, era)?;
        Ok(Connection { sender, era, headers, last_id: 0, waited: Duration::ZERO })
    }

    /// Calls `echo` once. `unique` must not repeat while an answer could still be mistaken for another.
    pub(crate) async fn call_echo(&mut self, unique: &str) -> anyhow::Result<()> {
        let text = speech(unique);
        let heard = self.call("echo", &text).await?;
        ensure!(heard == text, "said {text:?} and heard {heard:?}");
        Ok(())
    }

    /// The same as a plain HTTP request.
    pub(crate) async fn post_echo(&mut self, unique: &str) -> anyhow::Result<()> {
        let text = speech(unique);
        let mut request = self.http(Method::POST, json!({"text": text}).to_string().into())?;
        *request.uri_mut() = Uri::from_static("/v1/echo");
        let (_, body) = self.exchange(request).await?;
        let heard: String = serde_json::from_slice(&body)?;
        ensure!(heard == text, "said {text:?} and heard {heard:?}");
        Ok(())
    }

    /// Calls a tool that takes a `text` and returns one text.
    ///
    /// # Errors
    /// With a [`Refused`] where the answer is an error; this connection can then be used on. With anything else, it
    /// cannot.
    pub(crate) async fn call(&mut self, tool: &str, text: &str) -> anyhow::Result<String> {
        let body = self.request("tools/call", Some(tool), text_params(tool, text)).await?;
        let called: Called = result(&body, self.last_id, self.era)?;
        let mut said = called.content.into_iter().map(|content| content.text.into_owned());
        match (called.is_error, said.next(), said.next()) {
            (false, Some(said), None) => Ok(said),
            (is_error, first, _) => bail!("isError is {is_error}, and the first text {first:?}"),
        }
    }

    /// Reads the list of tools, all its pages.
    pub(crate) async fn list(&mut self) -> anyhow::Result<Listing> {
        let mut listing = Listing { tools: 0, bytes: 0 };
        let mut params = json!({});
        loop {
            let body = self.request("tools/list", None, params).await?;
            let page: Page = result(&body, self.last_id, self.era)?;
            listing.tools += page.tools.len();
            listing.bytes += body.len();
            match page.next_cursor {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return Ok(listing),
            }
        }
    }

    /// Ends the session, so that the target does not keep it until it runs out.
    pub(crate) async fn close(mut self) -> anyhow::Result<()> {
        if self.era == Era::Legacy {
            let request = self.http(Method::DELETE, Bytes::new())?;
            self.exchange(request).await?;
        }
        Ok(())
    }

    /// How long answers were waited for since this was asked last. What the client itself does with a reply, such as
    /// reading 5,000 tools, is no part of it.
    pub(crate) fn take_waited(&mut self) -> Duration {
        std::mem::take(&mut self.waited)
    }

    async fn initialize(&mut self) -> anyhow::Result<()> {
        let about = json!({
            "protocolVersion": LEGACY,
            "capabilities": {},
            "clientInfo": {"name": "xtask", "version": "1.0.0"}
        });
        let request = self.http(Method::POST, message(self.last_id, "initialize", &about))?;
        let (head, body) = self.exchange(request).await?;
        let agreed: Agreed = result(&payload(&head, body)?, self.last_id, self.era)?;
        ensure!(agreed.protocol_version == LEGACY, "asked for {LEGACY} and got {}", agreed.protocol_version);
        let session = head.headers.get(SESSION).context("initialize opened no session")?;
        self.headers.insert(SESSION, session.clone());
        self.headers.insert(VERSION, HeaderValue::from_static(LEGACY));
        self.notify_initialized().await
    }

    async fn notify_initialized(&mut self) -> anyhow::Result<()> {
        let notice = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let request = self.http(Method::POST, notice.to_string().into())?;
        let (head, _) = self.exchange(request).await?;
        ensure!(head.status == StatusCode::ACCEPTED, "a notification was answered with {}", head.status);
        Ok(())
    }

    /// Sends a request and gives the JSON-RPC message that came back.
    async fn request(
        &mut self,
        method: &'static str,
        name: Option<&str>,
        mut params: Value,
    ) -> anyhow::Result<Bytes> {
        self.last_id += 1;
        if self.era == Era::Modern {
            params["_meta"] = envelope();
        }
        let mut request = self.http(Method::POST, message(self.last_id, method, &params))?;
        if self.era == Era::Modern {
            let headers = request.headers_mut();
            headers.insert("mcp-method", HeaderValue::from_static(method));
            if let Some(name) = name {
                headers.insert("mcp-name", HeaderValue::from_str(name)?);
            }
        }
        let (head, body) = self.exchange(request).await?;
        payload(&head, body)
    }

    fn http(&self, method: Method, body: Bytes) -> anyhow::Result<Request<Full<Bytes>>> {
        let mut request = Request::builder().method(method).uri("/mcp").body(Full::new(body))?;
        request.headers_mut().clone_from(&self.headers);
        Ok(request)
    }

    async fn exchange(&mut self, request: Request<Full<Bytes>>) -> anyhow::Result<(Parts, Bytes)> {
        let begun = Instant::now();
        let exchange = async {
            let (head, body) = self.send(request).await?.into_parts();
            Ok((head, body.collect().await?.to_bytes()))
        };
        let answer = tokio::time::timeout(PATIENCE, exchange).await.context("there was no answer in time")?;
        self.waited += begun.elapsed();
        answer
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> anyhow::Result<Response<Incoming>> {
        self.sender.ready().await?;
        Ok(self.sender.send_request(request).await?)
    }
}

fn message(id: u64, method: &str, params: &Value) -> Bytes {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string().into()
}

fn text_params(tool: &str, text: &str) -> Value {
    json!({"name": tool, "arguments": {"text": text}})
}

/// What `echo` is told: quotes, a backslash and letters that are not ASCII, so that a reply which was escaped wrongly
/// anywhere is noticed. With the filling a legacy request has about 290 bytes.
fn speech(unique: &str) -> String {
    format!(
        "{unique}: \"grüße\" \\ {}",
        "to whom it may concern, and to all of the others as well. ".repeat(3)
    )
}

/// What a modern request carries in its `_meta`.
fn envelope() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "xtask", "version": "1.0.0"},
        "io.modelcontextprotocol/clientCapabilities": {}
    })
}

/// The headers of every request; a session adds its own.
fn standing_headers(address: SocketAddr, era: Era) -> anyhow::Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(HOST, HeaderValue::from_str(&address.to_string())?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    if era == Era::Modern {
        headers.insert(VERSION, HeaderValue::from_static(MODERN));
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legacy_request_has_about_290_bytes() {
        let size = message(1_000, "tools/call", &text_params("echo", &speech("63-100000"))).len();
        assert!((280..=300).contains(&size), "{size}");
    }
}
