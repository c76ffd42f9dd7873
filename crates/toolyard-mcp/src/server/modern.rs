//! Validation of modern requests: their `_meta` and their headers.

use http::{HeaderMap, StatusCode};
use toolyard_core::{Json, Registry};

use super::McpRequest;
use crate::wire::{ProtocolEra, ProtocolRevision, RpcError, error, headers, meta, method};

/// True if the body names a revision, which only modern requests do.
pub(super) fn is_modern(request: &McpRequest) -> bool {
    request.meta.get(meta::PROTOCOL_VERSION).is_some()
}

/// Checks the required `_meta` of a modern request, and that the headers agree; returns the capabilities of the client.
/// Over stdio there are no headers.
///
/// # Errors
/// When a part is missing or differs, or the revision is not supported. All of these map to the HTTP status 400.
pub(super) fn check_request(
    request: &McpRequest,
    headers: Option<&HeaderMap>,
    registry: &Registry,
) -> Result<Json, RpcError> {
    let missing =
        |name| RpcError::invalid_params(format!("`params._meta[\"{name}\"]` is missing or malformed"));
    let mismatch = |problem: String| RpcError::header_mismatch(&problem);
    let version =
        request.meta.get_str(meta::PROTOCOL_VERSION).ok_or_else(|| missing(meta::PROTOCOL_VERSION))?;
    if let Some(headers) = headers {
        headers::check_plain(headers, &headers::PROTOCOL_VERSION, &version).map_err(mismatch)?;
    }
    match ProtocolRevision::parse(&version).map(ProtocolRevision::era) {
        Some(ProtocolEra::Modern) => {}
        // Legacy revisions are supported, but need a session.
        Some(ProtocolEra::Legacy) | None => return Err(RpcError::unsupported_version(&version)),
    }
    if let Some(headers) = headers {
        check_headers(request, headers, registry).map_err(mismatch)?;
    }
    let capabilities =
        request.meta.get(meta::CLIENT_CAPABILITIES).filter(|capabilities| capabilities.is_object());
    capabilities.cloned().ok_or_else(|| missing(meta::CLIENT_CAPABILITIES))
}

/// Compares the headers of the method and its target with the body.
fn check_headers(request: &McpRequest, headers: &HeaderMap, registry: &Registry) -> Result<(), String> {
    headers::check_plain(headers, &headers::METHOD, &request.method)?;
    let name = match &*request.method {
        method::TOOLS_CALL | method::PROMPTS_GET => request.params.get_str("name"),
        method::RESOURCES_READ => request.params.get_str("uri"),
        method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL => request.params.get_str("taskId"),
        _ => return Ok(()),
    };
    headers::check(headers, &headers::NAME, name.as_deref())?;
    match request.method == method::TOOLS_CALL {
        true => check_arguments(request, headers, registry),
        false => Ok(()),
    }
}

/// Compares the headers of mirrored arguments with the body.
fn check_arguments(request: &McpRequest, headers: &HeaderMap, registry: &Registry) -> Result<(), String> {
    let name = request.params.get_str("name").unwrap_or_default();
    let Ok(entry) = registry.tool(&name) else { return Ok(()) };
    // An invalid annotation is ignored.
    let params =
        headers::header_params(entry.tool.as_ref().and_then(|tool| tool.input_schema())).unwrap_or_default();
    if params.is_empty() {
        return Ok(());
    }
    let arguments = request.params.get("arguments").and_then(|arguments| arguments.to_object().ok());
    let arguments = arguments.unwrap_or_default();
    params.iter().try_for_each(|param| param.check(headers, &arguments))
}

/// Returns the HTTP status of an error response to a well-formed request.
pub(super) fn error_status(error: &RpcError) -> StatusCode {
    match error.code {
        error::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        error::MISSING_CLIENT_CAPABILITY => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}
