//! How servers say that a session is over. The specification has one way for it, the status 404; there are others
//! in use, most of which say it only in words.

use http::StatusCode;
use memchr::memmem;
use toolyard_core::Json;

use crate::wire::{RpcError, error};

/// How much of the text of a refusal is looked at, in bytes.
const LOOKED_AT: usize = 4096;

/// What is said of a session that is not there.
const LOST: [&str; 12] = [
    "not found",
    "invalid",
    "no valid",
    "expired",
    "unknown",
    "missing",
    "not exist",
    "no such",
    "no session",
    "no active",
    "terminated",
    "closed",
];

/// What a server says that was started anew and knows of no session at all.
const NOT_BEGUN: &str = "server not initialized";

/// What is said of nothing else. A tool that ran may have lost a session of its own, such as a browser's, and a call of
/// it must not be made again.
const UNMISTAKABLE: [&str; 13] = [
    "session not found",
    "session id not found",
    "session expired",
    "session has expired",
    "session does not exist",
    "invalid session",
    "no valid session",
    "unknown session",
    "missing session",
    "no such session",
    "no session id",
    "no active session",
    NOT_BEGUN,
];

/// The codes of JSON-RPC with which sessions are refused. All three mean other things as well.
const CODES: [i32; 3] = [-32000, -32001, error::INVALID_REQUEST];

/// Whether a response that is no answer says so about the session that the request named.
pub(super) fn is_refused(status: StatusCode, text: &[u8]) -> bool {
    match status {
        StatusCode::NOT_FOUND => true,
        // About who is asking, whatever word it uses for that.
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => false,
        StatusCode::BAD_REQUEST => is_lost(text) || mentions_session(text),
        // Nothing of these says that the request was not read.
        status if status.is_server_error() => is_unmistakable(text),
        _ => is_lost(text),
    }
}

/// Whether an answer says so.
pub(super) fn is_over(error: &RpcError) -> bool {
    let message = || error.body().to_object().ok()?.get("message").and_then(Json::to_str).map(String::from);
    CODES.contains(&error.code) && message().is_some_and(|message| is_unmistakable(message.as_bytes()))
}

fn mentions_session(text: &[u8]) -> bool {
    memmem::find(&start(text), b"session").is_some()
}

fn is_unmistakable(text: &[u8]) -> bool {
    let text = start(text);
    UNMISTAKABLE.into_iter().any(|words| memmem::find(&text, words.as_bytes()).is_some())
}

fn is_lost(text: &[u8]) -> bool {
    let text = start(text);
    let says = |words: &str| memmem::find(&text, words.as_bytes()).is_some();
    says(NOT_BEGUN) || (says("session") && LOST.into_iter().any(says))
}

fn start(text: &[u8]) -> Vec<u8> {
    text[..text.len().min(LOOKED_AT)].to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals() {
        let cases = [
            (404, "", true),
            (404, "page not found", true),
            (400, "Bad Request: No valid session ID provided", true),
            (400, r#"{"error":{"code":-32000,"message":"Session required"},"id":null}"#, true),
            (400, "Bad Request: Server not initialized", true),
            (400, "Bad Request", false),
            (410, "Session terminated", true),
            (422, "unknown session", true),
            (500, "Invalid session ID", true),
            (500, "the session service is down", false),
            (500, "the session of the database is closed", false),
            (410, "session closed", true),
            (503, "", false),
            (401, "session expired", false),
            (403, "invalid session", false),
        ];
        for (status, text, expect) in cases {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(is_refused(status, text.as_bytes()), expect, "{status} {text}");
        }
        let late = " ".repeat(LOOKED_AT) + "session not found";
        assert!(!is_refused(StatusCode::BAD_REQUEST, late.as_bytes()));
    }

    #[test]
    fn answers() {
        let cases = [
            (-32001, "Session not found", true),
            (-32000, "Bad Request: No valid session ID provided", true),
            (-32000, "Bad Request: Server not initialized", true),
            (-32600, "Invalid session ID", true),
            (-32001, "Request timed out", false),
            (-32000, "Connection closed", false),
            (-32000, "Browser session closed while clicking Buy", false),
            (-32000, "The session of the user was terminated", false),
            (-32000, "The database is not initialized", false),
            (-32602, "session not found", false),
            (-32002, "Resource session://1 not found", false),
            (-32603, "Session expired", false),
        ];
        for (code, message, expect) in cases {
            assert_eq!(is_over(&RpcError::new(code, message)), expect, "{code} {message}");
        }
        assert!(!is_over(&RpcError::from_peer(Json::string("session not found"))));
    }
}
