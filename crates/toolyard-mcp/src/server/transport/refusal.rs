//! Refusals by the gateway itself: it is stopping, its store is unavailable, or a budget is exhausted.
//!
//! If the id of the request is known, the response is HTTP 200 with a JSON-RPC error whose `data` has `code`, `reason`
//! and `retryable`: clients pass that on to the model, while most of them treat a 5xx as a broken server.
//! [`refuse_request`] builds this response; [`refuse_http`] first reads the request within limits, to learn the id. A
//! message without a known id gets the HTTP status of the error.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use tokio::time::timeout;
use toolyard_core::{ErrorCode, Json, ToolError};
use toolyard_net::body::{self, BodyEnds};
use toolyard_net::budget::{BudgetExhausted, ByteBudget};

use super::batch;
use super::http::is_json;
use super::reply::{empty_response, error_response, json_response};
use crate::wire::headers::{PROTOCOL_VERSION, SESSION_ID};
use crate::wire::message::MalformedMessage;
use crate::wire::{ProtocolRevision, RequestId, RpcError, RpcMessage, message};

/// The limits of a body that is read only to learn the id of its request.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimits {
    /// Maximum size in bytes.
    pub max_bytes: usize,
    /// Maximum time to receive it.
    pub timeout: Duration,
}

/// Responds to the request with this id: HTTP 200 and a JSON-RPC error.
#[must_use]
pub fn refuse_request(id: &RequestId, error: &ToolError) -> Response {
    error_response(StatusCode::OK, Some(id), RpcError::from(error))
}

/// Refuses an HTTP request to `/mcp`, like [`refuse_request`] if it is a JSON-RPC request within `bounds`.
pub async fn refuse_http(parts: &Parts, body: Body, bounds: BodyLimits, error: &ToolError) -> Response {
    if parts.method != Method::POST {
        return refuse_without_id(error);
    }
    if !is_json(&parts.headers) {
        return empty_response(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    let read = body::read_request(&parts.headers, body, bounds.max_bytes, ByteBudget::default);
    match timeout(bounds.timeout, read).await {
        Ok(Ok(text)) => refuse_text(&parts.headers, text, error),
        Ok(Err(_)) | Err(_) => refuse_without_id(error),
    }
}

/// Refuses a message that did not fit the memory budget, of which the ends are known.
pub(super) fn refuse_unbuffered(used_up: BudgetExhausted, ends: &BodyEnds) -> Response {
    let error = ToolError::new(ErrorCode::Unavailable, format!("The gateway has no memory left: {used_up}"));
    match id_in_ends(ends) {
        Some(id) => refuse_request(&id, &error),
        None => refuse_without_id(&error),
    }
}

/// Finds the id of a request in its ends: before the first composite value, or at the end, where SDKs write it.
fn id_in_ends(ends: &BodyEnds) -> Option<RequestId> {
    const BEHIND: &[u8] = b"\"jsonrpc\":\"2.0\",\"id\":";
    let at_the_end = || {
        let at = memchr::memmem::rfind(&ends.last, BEHIND)? + BEHIND.len();
        let text = ends.last[at..].trim_ascii_end().strip_suffix(b"}")?;
        RequestId::parse(&Json::parse(text.to_vec()).ok()?)
    };
    id_in_front(&ends.first).or_else(at_the_end)
}

/// Finds the id among the leading members, as long as these are strings and numbers.
fn id_in_front(text: &[u8]) -> Option<RequestId> {
    let mut rest = text.trim_ascii_start().strip_prefix(b"{")?;
    loop {
        let (name, after) = scalar(rest)?;
        let (value, after) = scalar(after.strip_prefix(b":")?)?;
        if name == b"\"id\"" {
            return RequestId::parse(&Json::parse(value.to_vec()).ok()?);
        }
        rest = after.strip_prefix(b",")?;
    }
}

/// Splits off a leading string or number; `None` if it is incomplete.
fn scalar(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let mut is_escaped = false;
    let end = match text.first()? {
        b'"' => {
            2 + text[1..].iter().position(|byte| {
                let is_end = *byte == b'"' && !is_escaped;
                is_escaped = *byte == b'\\' && !is_escaped;
                is_end
            })?
        }
        b'-' | b'0'..=b'9' => text.iter().position(|byte| b",}: \t\r\n".contains(byte))?,
        _ => return None,
    };
    Some((&text[..end], text[end..].trim_ascii_start()))
}

/// Refuses a message that is malformed. `revision` is that of the client, if it is known.
///
/// A request without any header of the protocol gets HTTP 200, as the contract of tools has it for all errors.
pub(super) fn refuse_malformed(
    headers: &HeaderMap,
    revision: Option<ProtocolRevision>,
    bad: MalformedMessage,
) -> Response {
    let has_protocol = [PROTOCOL_VERSION, SESSION_ID].iter().any(|name| headers.contains_key(name));
    let status = if has_protocol { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let revision = revision.or_else(|| has_protocol.then_some(ProtocolRevision::LATEST_LEGACY));
    error_response(status, bad.id.or_else(|| unread_id(revision)).as_ref(), bad.error)
}

/// Returns the id of the response to a message whose id could not be read. A client of an unknown revision expects that
/// of JSON-RPC.
pub(super) fn unread_id(revision: Option<ProtocolRevision>) -> Option<RequestId> {
    revision.is_none_or(ProtocolRevision::has_null_id).then(RequestId::null)
}

/// Returns the revision in the version header.
pub(super) fn revision_of(headers: &HeaderMap) -> Option<ProtocolRevision> {
    ProtocolRevision::parse(headers.get(PROTOCOL_VERSION)?.to_str().ok()?)
}

fn refuse_text(headers: &HeaderMap, text: Bytes, error: &ToolError) -> Response {
    if batch::is_array(&text) {
        let messages = batch::split(text).unwrap_or_default();
        let responses: Vec<_> = messages.into_iter().filter_map(|text| batch_response(text, error)).collect();
        return match responses.is_empty() {
            true => refuse_without_id(error),
            false => json_response(StatusCode::OK, batch::join(responses)),
        };
    }
    match RpcMessage::parse(text) {
        Ok(RpcMessage::Request { id, .. }) => refuse_request(&id, error),
        Ok(RpcMessage::Notification { .. } | RpcMessage::Response { .. }) => refuse_without_id(error),
        Err(bad) => refuse_malformed(headers, revision_of(headers), bad),
    }
}

/// Returns the response to a message of a batch, if it is a request.
fn batch_response(text: Bytes, error: &ToolError) -> Option<Vec<Bytes>> {
    match RpcMessage::parse(text) {
        Ok(RpcMessage::Request { id, .. }) => Some(message::response(Some(&id), Err(RpcError::from(error)))),
        _ => None,
    }
}

/// Refuses a message without a known id: the status of the error, and when to retry.
#[must_use]
pub fn refuse_without_id(error: &ToolError) -> Response {
    let row = error.code().row();
    let mut response =
        empty_response(StatusCode::from_u16(row.http).unwrap_or(StatusCode::SERVICE_UNAVAILABLE));
    if row.retryable {
        let seconds = error.wait().map_or(1, |wait| wait.as_millis().div_ceil(1000).max(1));
        let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

#[cfg(test)]
mod tests {
    use http::Request;
    use http_body_util::BodyExt;
    use toolyard_core::ErrorCode;

    use super::*;

    const BOUNDS: BodyLimits = BodyLimits { max_bytes: 100, timeout: Duration::from_secs(60) };

    /// Returns the status, the `Retry-After` header and the body.
    async fn refused(method: &str, kind: &str, body: &str) -> String {
        let request = Request::builder().method(method).header(header::CONTENT_TYPE, kind).body(()).unwrap();
        let error = ToolError::new(ErrorCode::Unavailable, "Gone").retry_after(Duration::from_millis(1200));
        let body = Body::from(body.to_owned());
        let response = refuse_http(&request.into_parts().0, body, BOUNDS, &error).await;
        let retry = response.headers().get(header::RETRY_AFTER).map(|value| value.to_str().unwrap());
        let head = format!("{} {}", response.status().as_u16(), retry.unwrap_or("-"));
        let body = response.into_body().collect().await.unwrap().to_bytes();
        format!("{head} {}", String::from_utf8_lossy(&body))
    }

    #[tokio::test]
    async fn only_known_ids_are_answered_with_200() {
        let json = "application/json";
        let (request, notice) =
            (r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#, r#"{"jsonrpc":"2.0","method":"m"}"#);
        let data = r#""error":{"code":-32603,"message":"Gone","data":{"code":"unavailable","reason":"temporarily unavailable","retryable":true}}}"#;
        let answer = format!(r#"{{"jsonrpc":"2.0","id":"a",{data}"#);
        let cases = [
            ("request", "POST", json, request.to_owned(), format!("200 - {answer}")),
            ("batch", "POST", json, format!("[{notice},{request}]"), format!("200 - [{answer}]")),
            ("batch of notices", "POST", json, format!("[{notice}]"), "503 2 ".to_owned()),
            ("notice", "POST", json, notice.to_owned(), "503 2 ".to_owned()),
            (
                "response",
                "POST",
                json,
                r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(),
                "503 2 ".to_owned(),
            ),
            ("too large", "POST", json, format!("{request}{}", " ".repeat(100)), "503 2 ".to_owned()),
            ("stream", "GET", json, String::new(), "503 2 ".to_owned()),
            ("form", "POST", "text/plain", request.to_owned(), "415 - ".to_owned()),
        ];
        for (case, method, kind, body, expected) in cases {
            assert_eq!(refused(method, kind, &body).await, expected, "{case}");
        }
        assert!(
            refused("POST", json, "{}")
                .await
                .starts_with(r#"200 - {"jsonrpc":"2.0","id":null,"error":{"code":-32600"#)
        );
    }

    #[test]
    fn id_of_unbuffered_request() {
        let long = "x".repeat(600);
        for (text, expected) in [
            (format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{{"a":"{long}"}}}}"#), Some("7")),
            (format!(r#" {{ "id" : "a\"b" , "params":{{"a":"{long}"}}}}"#), Some(r#""a\"b""#)),
            (
                format!(r#"{{"method":"m","params":{{"id":1,"a":"{long}"}},"jsonrpc":"2.0","id":8}}"#),
                Some("8"),
            ),
            (format!(r#"{{"method":"m","params":{{"id":1,"a":"{long}"}}}}"#), None),
            (format!(r#"{{"params":{{"a":"{long}"}},"id":1}}"#), None),
            (format!(r#"{{"jsonrpc":"2.0","id":null,"params":"{long}"}}"#), None),
            (long.clone(), None),
            (String::new(), None),
        ] {
            let (first, rest) = text.as_bytes().split_at(text.len().min(BodyEnds::LENGTH));
            let last = &rest[rest.len().saturating_sub(BodyEnds::LENGTH)..];
            let id = id_in_ends(&BodyEnds { first: first.to_vec(), last: last.to_vec() });
            assert_eq!(id.map(|id| id.to_json().as_text().to_owned()).as_deref(), expected, "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slow_body_times_out() {
        let request =
            Request::post("/mcp").header(header::CONTENT_TYPE, "application/json").body(()).unwrap();
        let body =
            Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::convert::Infallible>>());
        let error = ToolError::new(ErrorCode::Overloaded, "Full");
        let response = refuse_http(&request.into_parts().0, body, BOUNDS, &error).await;
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    }
}
