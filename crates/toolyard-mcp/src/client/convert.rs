//! Conversion of a call into request parameters, and of the answer into an outcome.

use std::borrow::Cow;
use std::sync::Arc;

use http::StatusCode;
use toolyard_core::{
    Call, CallOutput, CallTarget, Client, CompletionReference, ErrorCode, Json, JsonError, Object, Outcome,
    ToolError, json,
};

use super::transport::{TransportError, UpstreamResult};
use crate::wire::{ProtocolEra, ProtocolRevision, RequestId, RpcError, error, meta};

/// The members of `_meta` that replace the handshake in the modern era.
const MODERN_META: [&str; 4] =
    [meta::PROTOCOL_VERSION, meta::CLIENT_INFO, meta::CLIENT_CAPABILITIES, meta::LOG_LEVEL];

/// Returns the parameters of a call: those of the client, with the server's own name of the target, which is returned
/// as well, and with the gateway's `_meta`.
pub(super) fn call_params(
    call: &Call,
    id: u64,
    revision: ProtocolRevision,
    info: &Json,
) -> (Arc<str>, Object) {
    let mut params = call.params.clone();
    match &call.target {
        CallTarget::Tool(name) | CallTarget::Prompt(name) => params.set_string("name", name),
        CallTarget::Resource(uri) => params.set_string("uri", uri),
        CallTarget::Task(task) => params.set("taskId", Json::string(&task.id)),
        // The parameters are complete.
        CallTarget::Function(_) => {}
        CallTarget::Completion(CompletionReference::Prompt(name)) => {
            params.set("ref", client_reference(&params).with("name", Json::string(name)).to_json());
        }
        CallTarget::Completion(CompletionReference::Template(uri)) => {
            params.set("ref", client_reference(&params).with("uri", Json::string(uri)).to_json());
        }
    }
    set_meta(&mut params, call.meta.clone(), id, revision, info, &*call.client);
    let name = match &call.target {
        CallTarget::Task(task) => task.id.clone(),
        target => target.name().clone(),
    };
    (name, params)
}

/// Returns the reference of a completion as the client wrote it.
fn client_reference(params: &Object) -> Object {
    params.get("ref").and_then(|reference| reference.to_object().ok()).unwrap_or_default()
}

/// Sets `_meta`: that of the client, with the gateway's values of the reserved members.
pub(super) fn set_meta(
    params: &mut Object,
    mut meta: Object,
    id: u64,
    revision: ProtocolRevision,
    info: &Json,
    client: &dyn Client,
) {
    match revision.era() {
        ProtocolEra::Legacy => MODERN_META.iter().for_each(|name| drop(meta.remove(name))),
        ProtocolEra::Modern => {
            match client.log_level() {
                Some(level) => meta.set_string(meta::LOG_LEVEL, level.as_str()),
                None => drop(meta.remove(meta::LOG_LEVEL)),
            }
            meta.set_string(meta::PROTOCOL_VERSION, revision.as_str());
            meta.set(meta::CLIENT_CAPABILITIES, client_capabilities(client));
            if meta.get(meta::CLIENT_INFO).is_none() {
                meta.set(meta::CLIENT_INFO, info.clone());
            }
        }
    }
    // Tokens of different clients may be equal; the id of the request is unique.
    match client.listens() {
        true => meta.set(meta::PROGRESS_TOKEN, RequestId::number(id).to_json()),
        false => drop(meta.remove(meta::PROGRESS_TOKEN)),
    }
    match meta.is_empty() {
        true => drop(params.remove("_meta")),
        false => params.set("_meta", meta.to_json()),
    }
}

/// Returns the capabilities that the client declares, including extensions.
fn client_capabilities(client: &dyn Client) -> Json {
    let declared = client.capabilities().filter(|declared| declared.is_object());
    declared.cloned().unwrap_or_else(Json::empty_object)
}

/// Returns the levels of nesting around the content of an answer: the result, and the task that has it.
pub(super) const fn message_levels(target: &CallTarget) -> usize {
    if let CallTarget::Task(_) = target { 2 } else { 1 }
}

/// Converts the answer to a call. Its content, inside of `levels` others, is nested `max_depth` levels deep at most.
pub(super) fn outcome(
    answer: UpstreamResult,
    era: ProtocolEra,
    max_depth: usize,
    levels: usize,
) -> Result<Outcome, ToolError> {
    let body = answer.map_err(|error| peer_error(&error, max_depth))?;
    let body = body.to_object_within(max_depth.saturating_add(levels));
    let body = body.map_err(|error| malformed("result", error, max_depth))?;
    match body.get("resultType").map(Json::to_str) {
        None => Ok(completed(body)),
        // For a legacy server the member has no meaning: it belongs to the tool's own result.
        _ if era == ProtocolEra::Legacy => Ok(completed(body)),
        Some(Some(kind)) if kind == "complete" => Ok(completed(body)),
        Some(Some(kind)) if kind == "input_required" => Ok(Outcome::NeedsInput(body)),
        Some(Some(kind)) if kind == "task" => Ok(Outcome::Task(body.into())),
        Some(_) => {
            let error =
                ToolError::new(ErrorCode::ExecutionFailed, "The server's result is of an unknown type");
            Err(error.because("unknown `resultType`"))
        }
    }
}

fn completed(body: Object) -> Outcome {
    let is_error = body.get("isError").and_then(Json::to_bool) == Some(true);
    Outcome::Done(CallOutput { body, is_error })
}

/// Returns the error for an invalid answer.
fn malformed(part: &str, error: JsonError, max_depth: usize) -> ToolError {
    let (problem, reason) = match error.problem {
        json::TOO_DEEP => {
            (format!("The server's {part} is {}", json::too_deep(max_depth)), "nested too deeply".to_owned())
        }
        _ => (
            format!("The server's {part} is malformed"),
            format!("the {part} is not an object with unique members"),
        ),
    };
    ToolError::new(ErrorCode::ExecutionFailed, problem).because(reason).caused_by(error)
}

fn peer_error(error: &RpcError, max_depth: usize) -> ToolError {
    if [error::HEADER_MISMATCH, error::UNSUPPORTED_VERSION].contains(&error.code) {
        // The error is about the gateway's request; the client would take it for an error of its own request.
        return ToolError::new(ErrorCode::ExecutionFailed, "The server refused the gateway's request")
            .because(format!("error {} of the server", error.code))
            .caused_by(format!("it answered with the error {}", error.code));
    }
    let body = error.body();
    if let Err(error) = body.to_object_within(max_depth.saturating_add(1)) {
        return malformed("error", error, max_depth);
    }
    let Some(message) = error_message(body) else {
        // Clients ignore a response with an invalid error and keep waiting.
        let error = ToolError::new(ErrorCode::ExecutionFailed, "The server's error is malformed");
        return error.because("an error without an integer code and a message");
    };
    ToolError::new(ErrorCode::ExecutionFailed, message).from_peer(body.clone())
}

/// Returns the message of a valid error: its code is an integer and its message a string.
fn error_message(error: &Json) -> Option<String> {
    let error = error.to_object().ok()?;
    error.get("code")?.as_text().parse::<i64>().ok()?;
    error.get_str("message").map(Cow::into_owned)
}

/// True for a refusal that is not caused by the request.
pub(super) fn is_transient(status: StatusCode) -> bool {
    [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT].contains(&status)
}

/// Converts a failure of the transport.
impl From<TransportError> for ToolError {
    fn from(error: TransportError) -> Self {
        let (code, message) = match error {
            TransportError::Function(error) => return error,
            TransportError::Unreachable(_) => (ErrorCode::Unavailable, "The server cannot be reached"),
            TransportError::Broken(_) | TransportError::Interrupted(_) => {
                (ErrorCode::Unavailable, "The connection to the server broke")
            }
            TransportError::Credentials(_) => {
                (ErrorCode::Unavailable, "The credentials of this server cannot be read")
            }
            TransportError::SessionExpired | TransportError::SessionLost => {
                (ErrorCode::Unavailable, "The server has ended the session")
            }
            TransportError::Status(status) if status.is_server_error() || is_transient(status) => {
                (ErrorCode::Unavailable, "The server failed to answer")
            }
            TransportError::Status(_) | TransportError::Unauthorized(_) => {
                (ErrorCode::ExecutionFailed, "The server refused the request")
            }
            TransportError::Malformed(_) => (ErrorCode::ExecutionFailed, "The server's answer is malformed"),
            TransportError::TooLarge(_) => (ErrorCode::ExecutionFailed, "The server's answer is too large"),
            TransportError::NoMemory(_) => (
                ErrorCode::Unavailable,
                "The gateway has no memory left for the server's answer: read earlier answers, or raise `limits.bytesInFlight`",
            ),
        };
        let is_unsent = matches!(
            error,
            TransportError::Unreachable(_) | TransportError::Credentials(_) | TransportError::SessionExpired
        );
        let error = Self::new(code, message).because(error.reason()).caused_by(error);
        if is_unsent { error.unsent() } else { error }
    }
}

#[cfg(test)]
mod tests;
