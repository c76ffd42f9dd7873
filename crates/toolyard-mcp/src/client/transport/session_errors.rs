//! Detects a lost session. The specification has one way to report it, the status 404; servers use others as well, most
//! of them in text only.

use http::StatusCode;
use memchr::memmem;
use toolyard_core::Object;

use crate::wire::{RpcError, error};

/// Maximum length of the inspected text in bytes.
const MAX_TEXT_BYTES: usize = 4096;

/// Normalized messages that report a lost session and nothing else.
const SESSION_MESSAGES: [&str; 18] = [
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
    // A restarted server knows no sessions.
    "server not initialized",
    "session required",
];

/// Phrases that report a lost session in a client error without an answer.
const SESSION_PHRASES: [&str; 4] =
    ["session is required", "session terminated", "session closed", "no session"];

/// JSON-RPC codes of lost sessions. All three have other meanings as well.
const SESSION_CODES: [i32; 3] = [-32000, -32001, error::INVALID_REQUEST];

/// True if a response without an answer reports that the session is lost.
pub(super) fn is_session_refusal(status: StatusCode, text: &[u8]) -> bool {
    match status {
        StatusCode::NOT_FOUND => true,
        // These are about credentials, whatever the text says.
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => false,
        // The request may have been executed.
        status if status.is_server_error() => is_session_message(&refusal_text(text)),
        _ => mentions_session(&refusal_text(text)),
    }
}

/// True if an error response reports that the session is lost. A tool may have lost a session of its own, such as that
/// of a browser, and its call must not be repeated: so the whole message has to match.
pub(super) fn is_session_error(error: &RpcError) -> bool {
    let message = || error.body().to_object().ok()?.get_str("message").map(|message| normalize(&message));
    SESSION_CODES.contains(&error.code) && message().is_some_and(|message| is_session_message(&message))
}

fn is_session_message(plain: &str) -> bool {
    SESSION_MESSAGES.contains(&plain)
}

fn mentions_session(plain: &str) -> bool {
    let mentions = |words: &str| memmem::find(plain.as_bytes(), words.as_bytes()).is_some();
    SESSION_MESSAGES.into_iter().chain(SESSION_PHRASES).any(mentions)
}

/// Returns the message of a JSON error, else the text.
fn refusal_text(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(MAX_TEXT_BYTES)]);
    let error = Object::parse(text.clone().into_owned()).ok().and_then(|body| body.get("error").cloned());
    let message = error.as_ref().and_then(|error| match error.to_object() {
        Ok(error) => error.get_str("message").map(|message| normalize(&message)),
        Err(_) => error.to_str().map(|message| normalize(&message)),
    });
    message.unwrap_or_else(|| normalize(&text))
}

/// Normalizes a message: lower case, without prefixes and with one name for the session header.
fn normalize(text: &str) -> String {
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
    fn session_refusals_are_detected() {
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
            assert_eq!(is_session_refusal(status, text.as_bytes()), expect, "{status} {text}");
        }
        let late = " ".repeat(MAX_TEXT_BYTES) + "session not found";
        assert!(!is_session_refusal(StatusCode::BAD_REQUEST, late.as_bytes()));
    }

    #[test]
    fn session_errors_are_detected() {
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
            assert_eq!(is_session_error(&RpcError::new(code, message)), expect, "{code} {message}");
        }
        assert!(!is_session_error(&RpcError::from_peer(Json::string("session not found"))));
    }
}
