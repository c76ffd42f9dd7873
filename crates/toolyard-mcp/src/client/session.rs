//! How servers say that a session is over. The specification has one way for it, the status 404; there are others
//! in use, most of which say it only in words.

use http::StatusCode;
use memchr::memmem;
use toolyard_core::Object;

use crate::wire::{RpcError, error};

/// How much of the text of a refusal is looked at, in bytes.
const LOOKED_AT: usize = 4096;

/// What transports say of a session that is not there, and of nothing else; without what [`plain`] leaves out.
const LOST: [&str; 18] = [
    "session not found",
    "session not found or expired",
    "session expired",
    "session has expired",
    "session has been terminated",
    "session does not exist",
    "invalid session",
    "invalid or missing session",
    "invalid or expired session",
    "no valid session",
    "no valid session provided",
    "unknown session",
    "missing session",
    "no such session",
    "no session provided",
    "no active session",
    // A server that was started anew knows of no session at all.
    "server not initialized",
    "session required",
];

/// What more a refusal may say of one, which is no answer and has a status for what the client did wrong.
const OVER: [&str; 4] = ["session is required", "session terminated", "session closed", "no session"];

/// The codes of JSON-RPC with which sessions are refused. All three mean other things as well.
const CODES: [i32; 3] = [-32000, -32001, error::INVALID_REQUEST];

/// Whether a response that is no answer says so about the session that the request named.
pub(super) fn is_refused(status: StatusCode, text: &[u8]) -> bool {
    match status {
        StatusCode::NOT_FOUND => true,
        // About who is asking, whatever word it uses for that.
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => false,
        // Nothing of these says that the request was not read.
        status if status.is_server_error() => is_lost(&said(text)),
        _ => mentions_lost(&said(text)),
    }
}

/// Whether an answer says so. A tool that ran may have lost a session of its own, such as a browser's, and a call of it
/// must not be made again: so the whole message has to be one that transports use.
pub(super) fn is_over(error: &RpcError) -> bool {
    let message = || error.body().to_object().ok()?.get_str("message").map(|message| plain(&message));
    CODES.contains(&error.code) && message().is_some_and(|message| is_lost(&message))
}

fn is_lost(plain: &str) -> bool {
    LOST.contains(&plain)
}

fn mentions_lost(plain: &str) -> bool {
    let mentions = |words: &str| memmem::find(plain.as_bytes(), words.as_bytes()).is_some();
    LOST.into_iter().chain(OVER).any(mentions)
}

/// What a refusal says: the message of its error where it has one, else its text.
fn said(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(LOOKED_AT)]);
    let error = Object::parse(text.clone().into_owned()).ok().and_then(|body| body.get("error").cloned());
    let message = error.as_ref().and_then(|error| match error.to_object() {
        Ok(error) => error.get_str("message").map(|message| plain(&message)),
        Err(_) => error.to_str().map(|message| plain(&message)),
    });
    message.unwrap_or_else(|| plain(&text))
}

/// A text without what each server words in its own way.
fn plain(text: &str) -> String {
    let text = text.to_ascii_lowercase();
    let text = text.trim().trim_end_matches('.');
    let named = ["bad request: ", "not found: "].iter().find_map(|status| text.strip_prefix(status));
    let text = ["mcp-session-id header", "mcp-session-id", "session-id", "session id"]
        .iter()
        .fold(named.unwrap_or(text).to_owned(), |text, name| text.replace(name, "session"));
    text.replace("mcp session", "session")
}

#[cfg(test)]
mod tests {
    use toolyard_core::Json;

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
            (400, "`session` is an invalid argument", false),
            (400, "obsession", false),
            (500, "Browser session not found: abc", false),
            (500, r#"{"error":{"code":-32603,"message":"Session not found"},"id":null}"#, true),
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
            (-32600, "Not Found: Session has been terminated.", true),
            (-32000, "Bad Request: Invalid or missing MCP-Session-Id header", true),
            (-32000, "Browser session not found: abc", false),
            (-32000, "Session not found: abc", false),
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
