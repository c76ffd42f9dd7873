//! What a request of the modern era says about itself, in its body and in its headers.

use http::{HeaderMap, StatusCode};
use toolyard_core::{Json, Registry};

use super::Request;
use crate::wire::{Era, Revision, RpcError, error, headers, meta, method};

/// Whether the body says that it is of the modern era: it names a revision. Legacy ones never do.
pub(super) fn is_modern(request: &Request) -> bool {
    request.meta.get(meta::PROTOCOL_VERSION).is_some()
}

/// Checks what every modern request must say, and that its headers say the same; gives the
/// capabilities of the client. Over stdio there are no headers.
///
/// # Errors
/// When a part is missing or differs, or the revision is not spoken here. All of these are answered
/// with the HTTP status 400.
pub(super) fn check(
    request: &Request,
    map: Option<&HeaderMap>,
    registry: &Registry,
) -> Result<Json, RpcError> {
    let missing =
        |name| RpcError::invalid_params(format!("`params._meta[\"{name}\"]` is missing or malformed"));
    let mismatch = |problem: String| RpcError::header_mismatch(&problem);
    let version =
        request.meta.get_str(meta::PROTOCOL_VERSION).ok_or_else(|| missing(meta::PROTOCOL_VERSION))?;
    if let Some(map) = map {
        headers::check_word(map, &headers::PROTOCOL_VERSION, &version).map_err(mismatch)?;
    }
    match Revision::parse(&version).map(Revision::era) {
        Some(Era::Modern) => {}
        // Legacy revisions are spoken, but not like this.
        Some(Era::Legacy) | None => return Err(RpcError::unsupported_version(&version)),
    }
    if let Some(map) = map {
        check_headers(request, map, registry).map_err(mismatch)?;
    }
    let capabilities =
        request.meta.get(meta::CLIENT_CAPABILITIES).filter(|capabilities| capabilities.is_object());
    capabilities.cloned().ok_or_else(|| missing(meta::CLIENT_CAPABILITIES))
}

/// Compares the headers that tell of the method and its target with the body.
fn check_headers(request: &Request, map: &HeaderMap, registry: &Registry) -> Result<(), String> {
    headers::check_word(map, &headers::METHOD, &request.method)?;
    let name = match &*request.method {
        method::TOOLS_CALL | method::PROMPTS_GET => request.params.get_str("name"),
        method::RESOURCES_READ => request.params.get_str("uri"),
        method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL => request.params.get_str("taskId"),
        _ => return Ok(()),
    };
    headers::check(map, &headers::NAME, name.as_deref())?;
    match request.method == method::TOOLS_CALL {
        true => check_arguments(request, map, registry),
        false => Ok(()),
    }
}

/// Compares the mirrored arguments of a tool that asks for them.
fn check_arguments(request: &Request, map: &HeaderMap, registry: &Registry) -> Result<(), String> {
    let name = request.params.get_str("name").unwrap_or_default();
    let Ok(entry) = registry.tool(&name) else { return Ok(()) };
    // An illegal annotation asks for nothing.
    let params =
        headers::header_params(entry.tool.as_ref().and_then(|tool| tool.input_schema())).unwrap_or_default();
    if params.is_empty() {
        return Ok(());
    }
    let arguments = request.params.get("arguments").and_then(|arguments| arguments.to_object().ok());
    let arguments = arguments.unwrap_or_default();
    params.iter().try_for_each(|param| param.check(map, &arguments))
}

/// The status of a response to a request that was well formed.
pub(super) fn status(error: &RpcError) -> StatusCode {
    match error.code {
        error::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        error::MISSING_CLIENT_CAPABILITY => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}
