//! From what a call came to, to what MCP says of it.

use bytes::Bytes;
use serde_json::json;
use toolyard_core::{Code, Json, Object, Outcome, Output, Target, ToolError};

use super::{Answer, parked};
use crate::wire::error::{INVALID_PARAMS, MISSING_CLIENT_CAPABILITY, RESOURCE_NOT_FOUND};
use crate::wire::{Era, RpcError};

/// The result or the error of a call.
pub(super) fn answer(answer: Result<Outcome, ToolError>, target: &Target, era: Era) -> Answer {
    match answer {
        Ok(Outcome::Done(output)) => Ok(done(output.body, target, era)),
        // Only modern clients declare what such an outcome needs; they are passed on as they came.
        Ok(Outcome::NeedsInput(body)) if may_need(target, era) => Ok(needed(body)),
        Ok(Outcome::Task(started)) if may_be_task(target, era) => Ok(started.body.to_pieces()),
        Ok(Outcome::NeedsInput(_) | Outcome::Task(_)) => Err(RpcError::from(&ToolError::new(
            Code::ExecutionFailed,
            "The tool asks for something that this client cannot do",
        ))),
        Err(error) => failure(&error, target, era),
    }
}

/// What a modern client is to give before it sends its request again.
fn needed(mut body: Object) -> Vec<Bytes> {
    if body.get("resultType").is_none() {
        body.set("resultType", Json::string("input_required"));
    }
    parked::pass_on(body).to_pieces()
}

/// Whether a request may go on as a task (SEP-2663, supported methods).
fn may_be_task(target: &Target, era: Era) -> bool {
    era == Era::Modern && matches!(target, Target::Tool(_))
}

/// Whether a request may end with what it needs (2026-07-28, basic/patterns/mrtr, supported requests).
fn may_need(target: &Target, era: Era) -> bool {
    era == Era::Modern && !matches!(target, Target::Completion(_) | Target::Task(_))
}

/// A result of a legacy server does not say that it is complete, and means it. Nor does it say for how long what was
/// read may be kept, which modern ones must: not at all, then (2026-07-28, server/utilities/caching).
fn done(mut body: Object, target: &Target, era: Era) -> Vec<Bytes> {
    let mut fill = |name: &str, value: Json| {
        if body.get(name).is_none() {
            body.set(name, value);
        }
    };
    if era == Era::Modern {
        fill("resultType", Json::string("complete"));
        if let Target::Resource(_) = target {
            fill("ttlMs", Json::integer(0));
            fill("cacheScope", Json::string("private"));
        }
    }
    body.to_pieces()
}

/// Arguments of a tool that do not fit are told to the model, which can mend them; everything else is an error
/// of the protocol.
fn failure(error: &ToolError, target: &Target, era: Era) -> Answer {
    match (error.code(), target) {
        (Code::InvalidArguments, Target::Tool(_)) => {
            return Ok(done(Output::failure(error.message()).body, target, era));
        }
        (Code::ResourceNotFound, _) if error.peer().is_none() => {
            return Err(resource_not_found(target.name(), era));
        }
        (_, Target::Resource(uri)) if era == Era::Modern => {
            if let Some(error) = renumbered(error, uri) {
                return Err(error);
            }
        }
        _ => {}
    }
    let code = error.code().row().wire;
    tracing::debug!(code, error = format_args!("{:#}", error.outline()), "a call failed");
    match error.required_capabilities() {
        Some(capabilities) if era == Era::Modern => Err(missing_capability(capabilities)),
        _ => Err(RpcError::from(error)),
    }
}

/// What a legacy server says of a resource that it does not have, in the words of the modern era; `None` where that is
/// not what it says.
fn renumbered(error: &ToolError, uri: &str) -> Option<RpcError> {
    let mut body = error.peer()?.to_object().ok()?;
    if RpcError::from_peer(error.peer()?.clone()).code != RESOURCE_NOT_FOUND {
        return None;
    }
    body.set("code", Json::integer(INVALID_PARAMS.into()));
    let data = body.get("data").map_or_else(|| Ok(Object::new()), Json::to_object);
    if let Some(data) = data.ok().filter(|data| data.get("uri").is_none()) {
        body.set("data", data.with("uri", Json::string(uri)).to_json());
    }
    Some(RpcError::from_peer(body.to_json()))
}

/// The client would have to declare these capabilities.
pub(super) fn missing_capability(capabilities: &Object) -> RpcError {
    let data = Object::new().with("requiredCapabilities", capabilities.to_json());
    RpcError::with_data(MISSING_CLIENT_CAPABILITY, "Missing required client capability", data.to_json())
}

/// There is no resource of this URI. The code for that has changed (2026-07-28, server/resources, error handling).
pub(super) fn resource_not_found(uri: &str, era: Era) -> RpcError {
    let code = match era {
        Era::Legacy => RESOURCE_NOT_FOUND,
        Era::Modern => INVALID_PARAMS,
    };
    let row = Code::ResourceNotFound.row();
    let data = json!({"uri": uri, "code": row.wire, "retryable": row.retryable});
    let data = Json::from_value(&data).to_object().unwrap_or_default();
    RpcError::with_data(code, "Resource not found", data.to_json())
}

#[cfg(test)]
mod tests;
