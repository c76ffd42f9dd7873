//! Evidence that a call failed because of its era (see [`super`]), and the text for callers that have to call again.

use toolyard_core::{InputRequestKind, Json, Object, Outcome, ToolError};

use crate::client::connection::declared_capabilities::DeclaredCapabilities;
use crate::client::retry::AttemptError;
use crate::wire::{ProtocolEra, ProtocolRevision, RpcError, ask_method, error};

/// Maximum number of bytes of an error that are searched for names.
const SEARCHED_BYTES: usize = 4096;

/// Names of requests to clients, beside their methods, in lower case.
const REQUEST_NAMES: [&str; 5] = ["elicit", "sampling", "roots", "server-initiated", "server-to-client"];

/// Names of the answer that asks for input, in lower case.
const INPUT_REQUIRED_NAMES: [&str; 3] = ["input_required", "input-required", "inputrequired"];

/// The text of the SDK for Python about a result that it cannot send, in lower case.
const INVALID_RESULT: &str = "handler returned an invalid result";

type AttemptResult = Result<Outcome, AttemptError>;

/// True if an answer exists in the modern era only.
pub(super) fn needs_modern_era(result: &AttemptResult) -> bool {
    matches!(result, Ok(Outcome::NeedsInput(_) | Outcome::Task(_)))
}

/// True if a call of a client with these capabilities may have failed because it was made in this era.
pub(super) fn may_be_of_era(
    result: &AttemptResult,
    era: ProtocolEra,
    declared: &DeclaredCapabilities,
) -> bool {
    match (result, era) {
        (Ok(Outcome::Done(output)), ProtocolEra::Modern) if output.is_error => {
            output.body.get("content").is_some_and(names_request)
        }
        (Err(failure), _) => failure.peer().is_some_and(|body| {
            let code = RpcError::from_peer(body.clone()).code;
            match era {
                ProtocolEra::Modern => {
                    [error::INVALID_REQUEST, error::METHOD_NOT_FOUND].contains(&code)
                        || (code == error::MISSING_CLIENT_CAPABILITY && requires_declared(body, declared))
                        || names_request(body)
                }
                ProtocolEra::Legacy => {
                    code == error::MISSING_CLIENT_CAPABILITY
                        || names_input_required(body)
                        || (code == error::INTERNAL_ERROR && searched_text(body).contains(INVALID_RESULT))
                }
            }
        }),
        (Ok(_), _) => false,
    }
}

/// True if the server refused a call before it did anything, because of a capability (2026-07-28, basic, missing client
/// capabilities).
pub(super) fn is_refused_for_capability(result: &AttemptResult) -> bool {
    let Err(failure) = result else { return false };
    let code = failure.peer().map(|body| RpcError::from_peer(body.clone()).code);
    code == Some(error::MISSING_CLIENT_CAPABILITY)
}

/// True if an error requires a capability for requests that the client has declared: the server does not see it in this
/// era.
fn requires_declared(error: &Json, declared: &DeclaredCapabilities) -> bool {
    let member = |json: &Json, name: &str| json.to_object().ok()?.get(name).cloned();
    let required = member(error, "data").and_then(|data| member(&data, "requiredCapabilities"));
    let Some(Ok(required)) = required.map(|required| required.to_object()) else { return false };
    let is_declared =
        |kind: InputRequestKind| required.get(kind.capability()).is_some() && declared.contains(kind);
    InputRequestKind::ALL.into_iter().any(is_declared)
}

/// True if the text names a request to clients by its method, or by another name together with the modern revision.
fn names_request(text: &Json) -> bool {
    let text = searched_text(text);
    let has = |name: &str| text.contains(name);
    let mut methods = InputRequestKind::ALL.into_iter().map(|kind| ask_method(kind).to_ascii_lowercase());
    let has_revision = has(ProtocolRevision::LATEST_MODERN.as_str());
    methods.any(|method| has(&method)) || (has_revision && REQUEST_NAMES.into_iter().any(has))
}

fn names_input_required(text: &Json) -> bool {
    let text = searched_text(text);
    INPUT_REQUIRED_NAMES.into_iter().any(|name| text.contains(name))
}

fn searched_text(text: &Json) -> String {
    let bytes = text.as_bytes();
    String::from_utf8_lossy(&bytes[..bytes.len().min(SEARCHED_BYTES)]).to_ascii_lowercase()
}

/// Adds to a failure that the next call uses the other era. `era` is that of the failed call.
pub(super) fn with_hint(result: AttemptResult, era: ProtocolEra) -> AttemptResult {
    let hint = match era {
        ProtocolEra::Modern => {
            "If the tool asked its client, it did so in an era without requests to clients (2026-07-28). Call it again: the gateway then uses the session-based era."
        }
        ProtocolEra::Legacy => {
            "If the tool answered `input_required`, it did so in an era without such answers (2025-11-25). Call it again: the gateway then uses 2026-07-28."
        }
    };
    match result {
        Ok(Outcome::Done(mut output)) => {
            let item = Object::new().with("type", Json::string("text")).with("text", Json::string(hint));
            let mut content =
                output.body.get("content").and_then(|content| content.to_items().ok()).unwrap_or_default();
            content.push(item.to_json());
            output.body.set("content", Json::array(&content));
            Ok(Outcome::Done(output))
        }
        Err(failure) => Err(failure.map(|error| error_with_hint(error, hint))),
        Ok(_) => result,
    }
}

/// Adds a hint to the message of a server's error.
fn error_with_hint(error: ToolError, hint: &str) -> ToolError {
    let Some(mut body) = error.peer().and_then(|body| body.to_object().ok()) else { return error };
    let message = error.message().trim_end();
    let end = if message.ends_with(['.', '!', '?', ':']) { "" } else { "." };
    let message = format!("{message}{end} {hint}");
    body.set("message", Json::string(&message));
    ToolError::new(error.code(), message).from_peer(body.to_json()).caused_by(error)
}

#[cfg(test)]
mod tests;
