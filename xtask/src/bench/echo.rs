//! The upstream of every target: an MCP server on streamable HTTP that says what it is told.
//!
//! It speaks 2026-07-28 and, in sessions, the revisions before it. It is strict about what a gateway must get right
//! (the envelope, the headers that mirror it, sessions) and does little else, so that its own cost stays small.
//! It offers tools only, and its list never changes. What `echo` does it also does as a plain HTTP service.

use std::borrow::Cow;
use std::convert::Infallible;
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

use super::catalog::catalog;
use super::openapi::DOCUMENT;
use super::serve;
use crate::client::{LEGACY, MODERN, SESSION};

const OLDER: [&str; 3] = ["2025-06-18", "2025-03-26", "2024-11-05"];
const SERVER_INFO: &str = r#"{"name":"echo","version":"1.0.0"}"#;
const CAPABILITIES: &str = r#"{"tools":{"listChanged":true}}"#;

type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Serves until it is killed.
pub(super) fn run(tools: usize) -> anyhow::Result<()> {
    let echo = Arc::new(Echo { tools: catalog(tools).to_string(), sessions: AtomicU64::new(0) });
    serve::forever(move |request| answer(Arc::clone(&echo), request))
}

async fn answer(echo: Arc<Echo>, request: Request<Incoming>) -> Result<Answer, hyper::Error> {
    let (head, body) = request.into_parts();
    match (head.uri.path(), head.method) {
        ("/mcp", Method::POST) => Ok(echo.post(&head.headers, &body.collect().await?.to_bytes())),
        ("/mcp", Method::DELETE) => Ok(empty(StatusCode::OK)), // a session holds nothing that could be let go
        ("/mcp", _) => Ok(empty(StatusCode::METHOD_NOT_ALLOWED)),
        ("/openapi.json", Method::GET) => Ok(answer_json(StatusCode::OK, DOCUMENT.to_owned())),
        ("/v1/echo", Method::POST) => Ok(say(&body.collect().await?.to_bytes())),
        _ => Ok(empty(StatusCode::NOT_FOUND)),
    }
}

/// The server.
struct Echo {
    /// The `tools` member of every list, as it is sent.
    tools: String,
    /// How many sessions were given out: their ids are the numbers up to this one.
    sessions: AtomicU64,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Params<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(default)]
    arguments: Arguments,
    #[serde(borrow)]
    protocol_version: Option<Cow<'a, str>>,
    #[serde(default)]
    notifications: Filter,
    #[serde(borrow, default, rename = "_meta")]
    meta: Meta<'a>,
}

#[derive(Default, Deserialize)]
struct Arguments {
    text: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Filter {
    #[serde(default)]
    tools_list_changed: bool,
}

#[derive(Default, Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<&'a RawValue>,
}

// === A message in ===

impl Echo {
    fn post(&self, headers: &HeaderMap, body: &[u8]) -> Answer {
        let Ok(message) = serde_json::from_slice::<Message<'_>>(body) else {
            return Refusal(StatusCode::BAD_REQUEST, -32700, "this is not a JSON-RPC message").answer("null");
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
        params: &Params<'_>,
    ) -> Result<Answer, Refusal> {
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
            _ => return Err(Refusal(StatusCode::NOT_FOUND, -32601, "there is no such method")),
        };
        let meta = format!(r#"{{"io.modelcontextprotocol/serverInfo":{SERVER_INFO}}}"#);
        Ok(result(id, &format!(r#""resultType":"complete",{members},"_meta":{meta}"#)))
    }

    fn legacy(
        &self,
        headers: &HeaderMap,
        id: &str,
        method: &str,
        params: &Params<'_>,
    ) -> Result<Answer, Refusal> {
        if method == "initialize" {
            return Ok(self.initialize(id, params));
        }
        self.check_session(headers)?;
        match method {
            "ping" => Ok(result(id, "")),
            "tools/list" => Ok(result(id, &format!(r#""tools":{}"#, self.tools))),
            "tools/call" => Ok(result(id, &call(params)?)),
            _ => Err(Refusal(StatusCode::OK, -32601, "there is no such method")),
        }
    }

    fn initialize(&self, id: &str, params: &Params<'_>) -> Answer {
        let asked = params.protocol_version.as_deref();
        let version = OLDER.into_iter().find(|older| asked == Some(older)).unwrap_or(LEGACY);
        let about = format!(
            r#""protocolVersion":"{version}","capabilities":{CAPABILITIES},"serverInfo":{SERVER_INFO}"#
        );
        let session = self.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        let mut answer = result(id, &about);
        answer.headers_mut().insert(SESSION, session.into());
        answer
    }

    fn check_session(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let session =
            header(headers, SESSION).ok_or(Refusal(StatusCode::BAD_REQUEST, -32600, "no session"))?;
        let known = 1..=self.sessions.load(Ordering::Relaxed);
        match session.parse().is_ok_and(|number| known.contains(&number)) {
            true => Ok(()),
            false => Err(Refusal(StatusCode::NOT_FOUND, -32600, "there is no such session")),
        }
    }
}

/// What 2026-07-28 wants of each request, and of the headers that repeat it.
fn check_envelope(headers: &HeaderMap, method: &str, params: &Params<'_>) -> Result<(), Refusal> {
    let mirrors = |name, value: Option<&str>| header(headers, name) == value;
    let version = params.meta.version.as_deref();
    if version.is_none() || params.meta.capabilities.is_none() {
        return Err(Refusal(StatusCode::BAD_REQUEST, -32602, "_meta lacks what every request carries"));
    }
    if !mirrors("mcp-protocol-version", version) || !mirrors("mcp-method", Some(method)) {
        return Err(Refusal(StatusCode::BAD_REQUEST, -32020, "a header does not say what the body says"));
    }
    if method == "tools/call" && !mirrors("mcp-name", params.name.as_deref()) {
        return Err(Refusal(StatusCode::BAD_REQUEST, -32020, "Mcp-Name is not the name of the tool"));
    }
    match version == Some(MODERN) {
        true => Ok(()),
        false => Err(Refusal(StatusCode::BAD_REQUEST, -32022, "this protocol version is not served")),
    }
}

/// The members of a tool's result. Only the first tool can be called: the others are there to be listed.
fn call(params: &Params<'_>) -> Result<String, Refusal> {
    let text = params.arguments.text.as_deref().filter(|_| params.name.as_deref() == Some("echo"));
    let text = text.ok_or(Refusal(StatusCode::OK, -32602, "only `echo` can be called, with a `text`"))?;
    Ok(format!(r#""content":[{{"type":"text","text":{}}}]"#, Value::from(text)))
}

/// What `echo` does, without MCP.
fn say(body: &[u8]) -> Answer {
    match serde_json::from_slice(body) {
        Ok(Arguments { text: Some(text) }) => answer_json(StatusCode::OK, Value::from(text).to_string()),
        _ => empty(StatusCode::BAD_REQUEST),
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

// === An answer out ===

/// A JSON-RPC error and the HTTP status that it travels under.
struct Refusal(StatusCode, i32, &'static str);

impl Refusal {
    fn answer(self, id: &str) -> Answer {
        let Refusal(status, code, message) = self;
        // Only this error has data that a client needs, to choose another version.
        let data = match code {
            -32022 => format!(r#","data":{{"supported":["{MODERN}","{LEGACY}"]}}"#),
            _ => String::new(),
        };
        let error = format!(r#"{{"code":{code},"message":"{message}"{data}}}"#);
        answer_json(status, format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
    }
}

fn result(id: &str, members: &str) -> Answer {
    answer_json(StatusCode::OK, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{{members}}}}}"#))
}

/// A stream that begins with the acknowledgment and stays open until the client closes it.
fn subscription(id: &str, asked: &Filter) -> Answer {
    let granted = if asked.tools_list_changed { r#"{"toolsListChanged":true}"# } else { "{}" };
    let method = "notifications/subscriptions/acknowledged";
    let meta = format!(r#"{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
    let params = format!(r#"{{"notifications":{granted},"_meta":{meta}}}"#);
    let event = format!("data: {{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}\n\n");
    let frames = stream::iter([Ok(Frame::data(Bytes::from(event)))]).chain(stream::pending());
    content("text/event-stream", Response::new(BodyExt::boxed(StreamBody::new(frames))))
}

fn answer_json(status: StatusCode, text: String) -> Answer {
    let mut answer = Response::new(Full::from(text).boxed());
    *answer.status_mut() = status;
    content("application/json", answer)
}

fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Empty::new().boxed());
    *answer.status_mut() = status;
    answer
}

fn content(kind: &'static str, mut answer: Answer) -> Answer {
    answer.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    answer
}
