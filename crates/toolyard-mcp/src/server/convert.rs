//! Conversion of the outcome of a call into a result or an error.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use toolyard_core::{
    CallOutput, CallTarget, CompletionReference, ErrorCode, Json, Object, Outcome, ToolError,
};

use super::McpAnswer;
use super::interaction::suspended_calls;
use crate::wire::error::{INVALID_PARAMS, MISSING_CLIENT_CAPABILITY, RESOURCE_NOT_FOUND};
use crate::wire::{ProtocolEra, RpcError};

/// Converts the outcome of a call.
pub(super) fn to_answer(
    answer: Result<Outcome, ToolError>,
    target: &CallTarget,
    era: ProtocolEra,
) -> McpAnswer {
    match answer {
        Ok(Outcome::Done(output)) => Ok(completed(output.body, target, era)),
        // Only modern clients declare the capabilities for these outcomes, which are passed on unchanged.
        Ok(Outcome::NeedsInput(body)) if allows_input(target, era) => Ok(input_required(body)),
        Ok(Outcome::Task(started)) if allows_task(target, era) => Ok(started.body.to_pieces()),
        Ok(Outcome::NeedsInput(_) | Outcome::Task(_)) => Err(RpcError::from(&ToolError::new(
            ErrorCode::ExecutionFailed,
            "The tool needs something that this client does not support",
        ))),
        Err(error) => failure(&error, target, era),
    }
}

/// Returns the result that asks a modern client for input.
fn input_required(mut body: Object) -> Vec<Bytes> {
    if body.get("resultType").is_none() {
        body.set("resultType", Json::string("input_required"));
    }
    suspended_calls::escape_state(body).to_pieces()
}

/// True if a request may continue as a task (SEP-2663, supported methods).
fn allows_task(target: &CallTarget, era: ProtocolEra) -> bool {
    era == ProtocolEra::Modern && matches!(target, CallTarget::Tool(_))
}

/// True if a request may ask for input (2026-07-28, basic/patterns/mrtr, supported requests).
fn allows_input(target: &CallTarget, era: ProtocolEra) -> bool {
    era == ProtocolEra::Modern && !matches!(target, CallTarget::Completion(_) | CallTarget::Task(_))
}

/// Completes the result of a legacy server for a modern client: the result type, and for a resource the cache hint,
/// which forbids caching (2026-07-28, server/utilities/caching).
fn completed(mut body: Object, target: &CallTarget, era: ProtocolEra) -> Vec<Bytes> {
    let mut fill = |name: &str, value: Json| {
        if body.get(name).is_none() {
            body.set(name, value);
        }
    };
    if era == ProtocolEra::Modern {
        fill("resultType", Json::string("complete"));
        if let CallTarget::Resource(_) = target {
            fill("ttlMs", Json::integer(0));
            fill("cacheScope", Json::string("private"));
        }
    }
    body.to_pieces()
}

/// Converts an error. Invalid arguments of a tool become a result, which the model can react to; everything else
/// becomes a JSON-RPC error.
fn failure(error: &ToolError, target: &CallTarget, era: ProtocolEra) -> McpAnswer {
    match (error.code(), target) {
        (ErrorCode::InvalidArguments, CallTarget::Tool(_)) => {
            return Ok(completed(CallOutput::failure(error.message()).body, target, era));
        }
        (ErrorCode::ResourceNotFound, _) if error.peer().is_none() => {
            return Err(resource_not_found(target.name(), era));
        }
        _ if era == ProtocolEra::Modern => {
            if let Some(error) = requested_uri(target).and_then(|uri| modern_not_found(error, uri)) {
                return Err(error);
            }
        }
        _ => {}
    }
    let code = error.code().row().wire;
    tracing::debug!(code, error = format_args!("{:#}", error.outline()), "a call failed");
    match error.required_capabilities() {
        Some(capabilities) if era == ProtocolEra::Modern => Err(missing_capability(capabilities)),
        _ => Err(RpcError::from(error)),
    }
}

/// Returns the URI that a request names.
const fn requested_uri(target: &CallTarget) -> Option<&Arc<str>> {
    match target {
        CallTarget::Resource(uri) | CallTarget::Completion(CompletionReference::Template(uri)) => Some(uri),
        _ => None,
    }
}

/// Converts the resource-not-found error of a legacy server into that of the modern era, whose `data` names the URI;
/// `None` for any other error. Data that is not an object becomes its member `data`.
fn modern_not_found(error: &ToolError, uri: &str) -> Option<RpcError> {
    let mut body = error.peer()?.to_object().ok()?;
    if RpcError::from_peer(error.peer()?.clone()).code != RESOURCE_NOT_FOUND {
        return None;
    }
    body.set("code", Json::integer(INVALID_PARAMS.into()));
    let data = match body.get("data").filter(|data| !data.is_null()) {
        None => Object::new(),
        Some(data) => data.to_object().unwrap_or_else(|_| Object::new().with("data", data.clone())),
    };
    if data.get("uri").is_none() {
        body.set("data", data.with("uri", Json::string(uri)).to_json());
    }
    Some(RpcError::from_peer(body.to_json()))
}

/// Returns the error for missing client capabilities.
pub(super) fn missing_capability(capabilities: &Object) -> RpcError {
    let data = Object::new().with("requiredCapabilities", capabilities.to_json());
    RpcError::with_data(MISSING_CLIENT_CAPABILITY, "Missing required client capability", data.to_json())
}

/// Returns the error for an unknown resource. Its code differs between the eras (2026-07-28, server/resources, error
/// handling).
pub(super) fn resource_not_found(uri: &str, era: ProtocolEra) -> RpcError {
    let code = match era {
        ProtocolEra::Legacy => RESOURCE_NOT_FOUND,
        ProtocolEra::Modern => INVALID_PARAMS,
    };
    let row = ErrorCode::ResourceNotFound.row();
    let data = json!({"uri": uri, "code": row.wire, "retryable": row.retryable});
    let data = Json::from_value(&data).to_object().unwrap_or_default();
    RpcError::with_data(code, "Resource not found", data.to_json())
}

#[cfg(test)]
mod tests;
