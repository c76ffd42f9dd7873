//! The upstream of every target: an MCP server on streamable HTTP that echoes its input.
//!
//! It implements 2026-07-28 and, in sessions, the revisions before. It is strict about the duties of a gateway
//! (the envelope, the headers that mirror it, sessions) and does little else, so that its own cost stays small.
//! It has tools only, and its list never changes. `echo` is also a plain HTTP service.

use std::borrow::Cow;
use std::convert::Infallible;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Method, Request, Response, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use xtask_client::{LEGACY, MODERN, SESSION_HEADER};

use super::catalog::catalog;
use super::openapi::DOCUMENT;
use super::serve;

const OLDER_VERSIONS: [&str; 3] = ["2025-06-18", "2025-03-26", "2024-11-05"];
const SERVER_INFO: &str = r#"{"name":"echo","version":"1.0.0"}"#;
const CAPABILITIES: &str = r#"{"tools":{"listChanged":true}}"#;

type EchoResponse = Response<BoxBody<Bytes, Infallible>>;

/// Serves until the process is killed.
pub(super) fn run(tools: usize) -> anyhow::Result<()> {
    let echo = Arc::new(EchoServer::new(tools));
    serve::serve_forever(move |request| answer(Arc::clone(&echo), request))
}

/// Serves over stdio until the end of the input, in the revisions with a handshake.
pub(super) fn run_stdio() -> anyhow::Result<()> {
    let echo = EchoServer::new(1);
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        if let Some(message) = echo.line(&line?) {
            writeln!(output, "{message}")?;
            output.flush()?;
        }
    }
    Ok(())
}

async fn answer(echo: Arc<EchoServer>, request: Request<Incoming>) -> Result<EchoResponse, hyper::Error> {
    let (head, body) = request.into_parts();
    match (head.uri.path(), head.method) {
        ("/mcp", Method::POST) => Ok(echo.post(&head.headers, &body.collect().await?.to_bytes())),
        ("/mcp", Method::DELETE) => Ok(empty(StatusCode::OK)), // a session holds no state
        ("/mcp", _) => Ok(empty(StatusCode::METHOD_NOT_ALLOWED)),
        ("/openapi.json", Method::GET) => Ok(answer_json(StatusCode::OK, DOCUMENT.to_owned())),
        ("/v1/echo", Method::POST) => Ok(plain_echo(&body.collect().await?.to_bytes())),
        _ => Ok(empty(StatusCode::NOT_FOUND)),
    }
}

/// The server.
struct EchoServer {
    /// The `tools` member of every list, serialized.
    tools: String,
    /// Number of sessions; their IDs are the numbers up to this one.
    sessions: AtomicU64,
}

#[derive(Deserialize)]
struct EchoMessage<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: EchoParams<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EchoParams<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(default)]
    arguments: EchoArguments,
    #[serde(borrow)]
    protocol_version: Option<Cow<'a, str>>,
    #[serde(default)]
    notifications: EchoFilter,
    #[serde(borrow, default, rename = "_meta")]
    meta: EchoMeta<'a>,
}

#[derive(Default, Deserialize)]
struct EchoArguments {
    text: Option<String>,
    /// Minimum length of the returned text, which repeats the argument.
    answer_bytes: Option<usize>,
    /// Number of the first bytes of the text that are returned.
    first_bytes: Option<usize>,
    /// `true` if the answer is a stream of one event.
    #[serde(default)]
    stream: bool,
}

impl EchoArguments {
    fn answer(&self, message: String) -> EchoResponse {
        match self.stream {
            true => {
                let event = Full::from(format!("data: {message}\n\n")).boxed();
                with_content_type("text/event-stream", Response::new(event))
            }
            false => answer_json(StatusCode::OK, message),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EchoFilter {
    #[serde(default)]
    tools_list_changed: bool,
}

#[derive(Default, Deserialize)]
struct EchoMeta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<&'a RawValue>,
}

// === A message in ===

impl EchoServer {
    fn new(tools: usize) -> EchoServer {
        EchoServer { tools: catalog(tools).to_string(), sessions: AtomicU64::new(0) }
    }

    /// Answers a message on stdio; `None` to a notification.
    fn line(&self, line: &str) -> Option<String> {
        let Ok(message) = serde_json::from_str::<EchoMessage<'_>>(line) else {
            return Some(EchoError(StatusCode::BAD_REQUEST, -32700, "invalid JSON-RPC message").text("null"));
        };
        let (id, method) = (message.id?.get(), message.method.as_deref()?);
        let members = match method {
            "initialize" => Ok(initialize_members(&message.params)),
            _ => self.legacy_members(method, &message.params),
        };
        Some(members.map_or_else(|error| error.text(id), |members| result_text(id, &members)))
    }

    fn post(&self, headers: &HeaderMap, body: &[u8]) -> EchoResponse {
        let Ok(message) = serde_json::from_slice::<EchoMessage<'_>>(body) else {
            return EchoError(StatusCode::BAD_REQUEST, -32700, "invalid JSON-RPC message").answer("null");
        };
        let (Some(id), Some(method)) = (message.id, message.method.as_deref()) else {
            return empty(StatusCode::ACCEPTED);
        };
        let modern =
            header(headers, "mcp-protocol-version") == Some(MODERN) || message.params.meta.version.is_some();
        let answer = match modern {
            true => self.modern(headers, id.get(), method, &message.params),
            false => self.legacy(headers, id.get(), method, &message.params),
        };
        answer.unwrap_or_else(|refusal| refusal.answer(id.get()))
    }

    fn modern(
        &self,
        headers: &HeaderMap,
        id: &str,
        method: &str,
        params: &EchoParams<'_>,
    ) -> Result<EchoResponse, EchoError> {
        check_envelope(headers, method, params)?;
        let cached = r#""ttlMs":60000,"cacheScope":"public""#;
        let members = match method {
            "server/discover" => {
                format!(
                    r#""supportedVersions":["{MODERN}","{LEGACY}"],"capabilities":{CAPABILITIES},{cached}"#
                )
            }
            "tools/list" => format!(r#""tools":{},{cached}"#, self.tools),
            "tools/call" => call(params)?,
            "subscriptions/listen" => return Ok(subscription(id, &params.notifications)),
            _ => return Err(EchoError(StatusCode::NOT_FOUND, -32601, "method not found")),
        };
        let meta = format!(r#"{{"io.modelcontextprotocol/serverInfo":{SERVER_INFO}}}"#);
        let members = format!(r#""resultType":"complete",{members},"_meta":{meta}"#);
        Ok(params.arguments.answer(result_text(id, &members)))
    }

    fn legacy(
        &self,
        headers: &HeaderMap,
        id: &str,
        method: &str,
        params: &EchoParams<'_>,
    ) -> Result<EchoResponse, EchoError> {
        if method == "initialize" {
            return Ok(self.initialize(id, params));
        }
        self.check_session(headers)?;
        let members = self.legacy_members(method, params)?;
        Ok(params.arguments.answer(result_text(id, &members)))
    }

    /// The members of a result after the handshake.
    fn legacy_members(&self, method: &str, params: &EchoParams<'_>) -> Result<String, EchoError> {
        match method {
            "ping" => Ok(String::new()),
            "tools/list" => Ok(format!(r#""tools":{}"#, self.tools)),
            "tools/call" => call(params),
            _ => Err(EchoError(StatusCode::OK, -32601, "method not found")),
        }
    }

    fn initialize(&self, id: &str, params: &EchoParams<'_>) -> EchoResponse {
        let session = self.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        let mut answer = answer_json(StatusCode::OK, result_text(id, &initialize_members(params)));
        answer.headers_mut().insert(SESSION_HEADER, session.into());
        answer
    }

    fn check_session(&self, headers: &HeaderMap) -> Result<(), EchoError> {
        let session = header(headers, SESSION_HEADER).ok_or(EchoError(
            StatusCode::BAD_REQUEST,
            -32600,
            "missing session ID",
        ))?;
        let valid = 1..=self.sessions.load(Ordering::Relaxed);
        match session.parse().is_ok_and(|number| valid.contains(&number)) {
            true => Ok(()),
            false => Err(EchoError(StatusCode::NOT_FOUND, -32600, "session not found")),
        }
    }
}

fn initialize_members(params: &EchoParams<'_>) -> String {
    let requested = params.protocol_version.as_deref();
    let version = OLDER_VERSIONS.into_iter().find(|older| requested == Some(older)).unwrap_or(LEGACY);
    format!(r#""protocolVersion":"{version}","capabilities":{CAPABILITIES},"serverInfo":{SERVER_INFO}"#)
}

/// Checks the members that 2026-07-28 requires in each request, and the headers that mirror them.
fn check_envelope(headers: &HeaderMap, method: &str, params: &EchoParams<'_>) -> Result<(), EchoError> {
    let mirrors = |name, value: Option<&str>| header(headers, name) == value;
    let version = params.meta.version.as_deref();
    if version.is_none() || params.meta.capabilities.is_none() {
        return Err(EchoError(StatusCode::BAD_REQUEST, -32602, "missing member of _meta"));
    }
    if !mirrors("mcp-protocol-version", version) || !mirrors("mcp-method", Some(method)) {
        return Err(EchoError(StatusCode::BAD_REQUEST, -32020, "header does not match the body"));
    }
    if method == "tools/call" && !mirrors("mcp-name", params.name.as_deref()) {
        return Err(EchoError(StatusCode::BAD_REQUEST, -32020, "Mcp-Name does not match the body"));
    }
    match version == Some(MODERN) {
        true => Ok(()),
        false => Err(EchoError(StatusCode::BAD_REQUEST, -32022, "unsupported protocol version")),
    }
}

/// The members of a tool's result. Only `echo` can be called; the other tools are only listed.
fn call(params: &EchoParams<'_>) -> Result<String, EchoError> {
    let text = params.arguments.text.as_deref().filter(|_| params.name.as_deref() == Some("echo"));
    let text = text.ok_or(EchoError(StatusCode::OK, -32602, "unknown tool, or missing argument `text`"))?;
    let text = match (params.arguments.answer_bytes, params.arguments.first_bytes) {
        (Some(bytes), _) => Value::from(text.repeat(bytes.div_ceil(text.len().max(1)))),
        (None, Some(bytes)) => Value::from(text.get(..bytes).unwrap_or(text)),
        (None, None) => Value::from(text),
    };
    Ok(format!(r#""content":[{{"type":"text","text":{text}}}]"#))
}

/// `echo` without MCP.
fn plain_echo(body: &[u8]) -> EchoResponse {
    match serde_json::from_slice(body) {
        Ok(EchoArguments { text: Some(text), .. }) => {
            answer_json(StatusCode::OK, Value::from(text).to_string())
        }
        _ => empty(StatusCode::BAD_REQUEST),
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

// === An answer out ===

/// A JSON-RPC error and the HTTP status that carries it.
struct EchoError(StatusCode, i32, &'static str);

impl EchoError {
    fn answer(self, id: &str) -> EchoResponse {
        answer_json(self.0, self.text(id))
    }

    fn text(&self, id: &str) -> String {
        let EchoError(_, code, message) = self;
        // Only this error has data: the supported versions.
        let data = match code {
            -32022 => format!(r#","data":{{"supported":["{MODERN}","{LEGACY}"]}}"#),
            _ => String::new(),
        };
        let error = format!(r#"{{"code":{code},"message":"{message}"{data}}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
    }
}

fn result_text(id: &str, members: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{{members}}}}}"#)
}

/// A stream that starts with the acknowledgement and stays open until the client closes it.
fn subscription(id: &str, requested: &EchoFilter) -> EchoResponse {
    let granted = if requested.tools_list_changed { r#"{"toolsListChanged":true}"# } else { "{}" };
    let method = "notifications/subscriptions/acknowledged";
    let meta = format!(r#"{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
    let params = format!(r#"{{"notifications":{granted},"_meta":{meta}}}"#);
    let event = format!("data: {{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}\n\n");
    let frames = stream::iter([Ok(Frame::data(Bytes::from(event)))]).chain(stream::pending());
    with_content_type("text/event-stream", Response::new(BodyExt::boxed(StreamBody::new(frames))))
}

fn answer_json(status: StatusCode, text: String) -> EchoResponse {
    let mut answer = Response::new(Full::from(text).boxed());
    *answer.status_mut() = status;
    with_content_type("application/json", answer)
}

fn empty(status: StatusCode) -> EchoResponse {
    let mut answer = Response::new(Empty::new().boxed());
    *answer.status_mut() = status;
    answer
}

fn with_content_type(kind: &'static str, mut answer: EchoResponse) -> EchoResponse {
    answer.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    answer
}
