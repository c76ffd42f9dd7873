//! Parsing of responses: anything but the expected response is an error.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use anyhow::{Context, anyhow, bail, ensure};
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::CONTENT_TYPE;
use hyper::http::response::Parts;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::McpEra;

/// The result in a message, if it is the successful response to the request with this ID. An error response is a
/// [`RpcReplyError`].
pub(crate) fn result<'a, R: Deserialize<'a>>(body: &'a [u8], id: u64, era: McpEra) -> anyhow::Result<R> {
    let reply: RpcReply<'a> = serde_json::from_slice(body).with_context(|| excerpt(body))?;
    ensure!(reply.id == id, "sent request {id}, got the response to {}", reply.id);
    if let Some(error) = reply.error {
        return Err(error.into());
    }
    let result = reply.result.with_context(|| excerpt(body))?.get();
    if era == McpEra::Modern {
        let kind: ResultKind<'_> = serde_json::from_str(result).with_context(|| excerpt(body))?;
        ensure!(kind.result_type == "complete", "incomplete result: {}", excerpt(body));
    }
    serde_json::from_str(result).with_context(|| excerpt(body))
}

#[derive(Deserialize)]
struct RpcReply<'a> {
    id: u64,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<RpcReplyError>,
}

/// A JSON-RPC error.
#[derive(Debug, Deserialize)]
pub struct RpcReplyError {
    code: i64,
    message: String,
    data: Option<RpcErrorData>,
}

/// The data that the gateway adds to its own errors.
#[derive(Debug, Deserialize)]
struct RpcErrorData {
    code: Option<String>,
}

impl RpcReplyError {
    /// The error code of the gateway, or else of JSON-RPC.
    pub fn kind(&self) -> String {
        let own = self.data.as_ref().and_then(|data| data.code.clone());
        own.unwrap_or_else(|| self.code.to_string())
    }
}

impl fmt::Display for RpcReplyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.kind(), self.message)
    }
}

impl Error for RpcReplyError {}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultKind<'a> {
    #[serde(borrow)]
    result_type: Cow<'a, str>,
}

/// The result of `initialize`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitializeReply {
    pub protocol_version: String,
}

/// The result of `tools/call`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallReply<'a> {
    #[serde(borrow)]
    pub content: Vec<TextContent<'a>>,
    #[serde(default)]
    pub is_error: bool,
}

/// A text; the bench uses no other content.
#[derive(Deserialize)]
pub(crate) struct TextContent<'a> {
    #[serde(borrow)]
    pub text: Cow<'a, str>,
}

/// The result of `tools/list`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolsPage {
    pub tools: Vec<IgnoredAny>,
    pub next_cursor: Option<String>,
}

/// The JSON-RPC message in a response: the body itself, or the last event of a stream.
pub(crate) fn payload(head: &Parts, body: Bytes) -> anyhow::Result<Bytes> {
    let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if head.status != StatusCode::OK {
        // The modern era sends some errors with a status of their own.
        let error = serde_json::from_slice::<RpcReply<'_>>(&body).ok().and_then(|reply| reply.error);
        return Err(error.map_or_else(|| anyhow!("{}: {}", head.status, excerpt(&body)), Into::into));
    }
    match kind.split(';').next() {
        Some("application/json") => Ok(body),
        Some("text/event-stream") => last_event(&body),
        _ => bail!("unexpected content type {kind:?}: {}", excerpt(&body)),
    }
}

fn last_event(stream: &[u8]) -> anyhow::Result<Bytes> {
    let stream = std::str::from_utf8(stream)?.replace("\r\n", "\n");
    let data =
        |event: &str| -> String { event.lines().filter_map(|line| line.strip_prefix("data:")).collect() };
    let last = stream.split("\n\n").map(data).filter(|data| !data.is_empty()).last();
    last.map(Bytes::from).with_context(|| format!("no message in the stream: {stream:?}"))
}

/// The beginning of a body, for an error.
fn excerpt(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(500)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(body: &str, reason: &str) {
        let error =
            result::<CallReply>(body.as_bytes(), 7, McpEra::Modern).err().map(|error| format!("{error:#}"));
        assert!(error.as_ref().is_some_and(|error| error.contains(reason)), "{error:?}");
    }

    #[test]
    fn only_a_complete_result_with_the_right_id_is_accepted() {
        let good = r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","content":[]}}"#;
        assert!(result::<CallReply>(good.as_bytes(), 7, McpEra::Modern).is_ok());
        refused(
            r#"{"jsonrpc":"2.0","id":8,"result":{"resultType":"complete","content":[]}}"#,
            "the response to 8",
        );
        refused(
            r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"task","content":[]}}"#,
            "incomplete result",
        );
        refused(r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#, "resultType");
        refused(r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"broken"}}"#, "broken");
        refused("<html>", "<html>");
    }

    #[test]
    fn last_event_of_a_stream_is_the_response() {
        let stream = b"id: 1\ndata:\n\ndata: {\"method\":\"x\"}\n\n: alive\r\n\r\nevent: message\r\ndata: {\"id\":1}\r\n\r\n";
        assert_eq!(last_event(stream).unwrap().trim_ascii(), b"{\"id\":1}");
    }
}
