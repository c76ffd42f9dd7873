//! What comes back: taken apart, and refused unless it is what was asked for.

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

use super::Era;

/// The result in a message, if that is the answer to the request with this id, and a good one. An error that is the
/// answer is a [`Refused`].
pub(crate) fn result<'a, R: Deserialize<'a>>(body: &'a [u8], id: u64, era: Era) -> anyhow::Result<R> {
    let reply: Reply<'a> = serde_json::from_slice(body).with_context(|| shown(body))?;
    ensure!(reply.id == id, "asked {id} and got the answer to {}", reply.id);
    if let Some(refused) = reply.error {
        return Err(refused.into());
    }
    let result = reply.result.with_context(|| shown(body))?.get();
    if era == Era::Modern {
        let kind: Kind<'_> = serde_json::from_str(result).with_context(|| shown(body))?;
        ensure!(kind.result_type == "complete", "the result is not complete: {}", shown(body));
    }
    serde_json::from_str(result).with_context(|| shown(body))
}

#[derive(Deserialize)]
struct Reply<'a> {
    id: u64,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<Refused>,
}

/// What an error says.
#[derive(Debug, Deserialize)]
pub(crate) struct Refused {
    code: i64,
    message: String,
    data: Option<Reason>,
}

/// What the gateway adds to the errors that are its own.
#[derive(Debug, Deserialize)]
struct Reason {
    code: Option<String>,
}

impl Refused {
    /// What kind of an error it is: in the gateway's words, or else as the number of JSON-RPC.
    pub(crate) fn kind(&self) -> String {
        let own = self.data.as_ref().and_then(|data| data.code.clone());
        own.unwrap_or_else(|| self.code.to_string())
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.kind(), self.message)
    }
}

impl Error for Refused {}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kind<'a> {
    #[serde(borrow)]
    result_type: Cow<'a, str>,
}

/// What `initialize` gives.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Agreed {
    pub protocol_version: String,
}

/// What `tools/call` gives.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Called<'a> {
    #[serde(borrow)]
    pub content: Vec<Content<'a>>,
    #[serde(default)]
    pub is_error: bool,
}

/// The bench knows texts only.
#[derive(Deserialize)]
pub(crate) struct Content<'a> {
    #[serde(borrow)]
    pub text: Cow<'a, str>,
}

/// What `tools/list` gives.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page {
    pub tools: Vec<IgnoredAny>,
    pub next_cursor: Option<String>,
}

/// The JSON-RPC message in an answer, which a server may send as it is or as the last event of a stream.
pub(crate) fn payload(head: &Parts, body: Bytes) -> anyhow::Result<Bytes> {
    let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if head.status != StatusCode::OK {
        // The modern era has statuses for some of the errors.
        let refused = serde_json::from_slice::<Reply<'_>>(&body).ok().and_then(|reply| reply.error);
        return Err(refused.map_or_else(|| anyhow!("{}: {}", head.status, shown(&body)), Into::into));
    }
    match kind.split(';').next() {
        Some("application/json") => Ok(body),
        Some("text/event-stream") => last_event(&body),
        _ => bail!("an answer of the type {kind:?}: {}", shown(&body)),
    }
}

fn last_event(stream: &[u8]) -> anyhow::Result<Bytes> {
    let stream = std::str::from_utf8(stream)?.replace("\r\n", "\n");
    let data =
        |event: &str| -> String { event.lines().filter_map(|line| line.strip_prefix("data:")).collect() };
    let last = stream.split("\n\n").map(data).filter(|data| !data.is_empty()).last();
    last.map(Bytes::from).with_context(|| format!("a stream without a message: {stream:?}"))
}

/// As much of a body as belongs into an error.
fn shown(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(500)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(body: &str, reason: &str) {
        let error = result::<Called>(body.as_bytes(), 7, Era::Modern).err().map(|error| format!("{error:#}"));
        assert!(error.as_ref().is_some_and(|error| error.contains(reason)), "{error:?}");
    }

    #[test]
    fn only_a_complete_result_with_the_right_id_is_accepted() {
        let good = r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","content":[]}}"#;
        assert!(result::<Called>(good.as_bytes(), 7, Era::Modern).is_ok());
        refused(
            r#"{"jsonrpc":"2.0","id":8,"result":{"resultType":"complete","content":[]}}"#,
            "the answer to 8",
        );
        refused(r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"task","content":[]}}"#, "not complete");
        refused(r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#, "resultType");
        refused(r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"broken"}}"#, "broken");
        refused("<html>", "<html>");
    }

    #[test]
    fn the_last_event_of_a_stream_is_the_answer() {
        let stream = b"id: 1\ndata:\n\ndata: {\"method\":\"x\"}\n\n: alive\r\n\r\nevent: message\r\ndata: {\"id\":1}\r\n\r\n";
        assert_eq!(last_event(stream).unwrap().trim_ascii(), b"{\"id\":1}");
    }
}
