//! From a call to the parameters of a request, and from its answer to an outcome.

use std::borrow::Cow;
use std::sync::Arc;

use http::StatusCode;
use toolyard_core::{Call, Client, Code, Json, Object, Outcome, Output, Reference, Target, ToolError};

use super::transport::{Answer, TransportError};
use crate::wire::{Era, Id, Revision, RpcError, error, meta};

/// The members of `_meta` that say of a modern request what a legacy one says in its handshake.
const MODERN_META: [&str; 4] =
    [meta::PROTOCOL_VERSION, meta::CLIENT_INFO, meta::CLIENT_CAPABILITIES, meta::LOG_LEVEL];

/// A call as the parameters of its method: what the client sent, with the owner's name for what is called, which is given
/// as well, and the gateway's own words about the request.
pub(super) fn call_params(call: Call, id: u64, revision: Revision, info: &Json) -> (Arc<str>, Object) {
    let mut params = call.params;
    match &call.target {
        Target::Tool(name) | Target::Prompt(name) => params.set("name", Json::string(name)),
        Target::Resource(uri) => params.set("uri", Json::string(uri)),
        Target::Task(task) => params.set("taskId", Json::string(&task.id)),
        // Its parameters say it all.
        Target::Function(_) => {}
        Target::Completion(Reference::Prompt(name)) => {
            params.set("ref", reference(&params).with("name", Json::string(name)).to_json());
        }
        Target::Completion(Reference::Template(uri)) => {
            params.set("ref", reference(&params).with("uri", Json::string(uri)).to_json());
        }
    }
    set_meta(&mut params, call.meta, id, revision, info, &*call.client);
    let name = match call.target {
        Target::Task(task) => task.id,
        target => target.name().clone(),
    };
    (name, params)
}

/// What an argument that is to be completed belongs to, as the client has put it.
fn reference(params: &Object) -> Object {
    params.get("ref").and_then(|reference| reference.to_object().ok()).unwrap_or_default()
}

/// Puts `meta` into the parameters, with the gateway's own words in the place of the client's.
pub(super) fn set_meta(
    params: &mut Object,
    mut meta: Object,
    id: u64,
    revision: Revision,
    info: &Json,
    client: &dyn Client,
) {
    match revision.era() {
        Era::Legacy => MODERN_META.iter().for_each(|name| drop(meta.remove(name))),
        Era::Modern => {
            match client.log_level() {
                Some(level) => meta.set(meta::LOG_LEVEL, Json::string(level.as_str())),
                None => drop(meta.remove(meta::LOG_LEVEL)),
            }
            meta.set(meta::PROTOCOL_VERSION, Json::string(revision.as_str()));
            meta.set(meta::CLIENT_CAPABILITIES, capabilities(client));
            if meta.get(meta::CLIENT_INFO).is_none() {
                meta.set(meta::CLIENT_INFO, info.clone());
            }
        }
    }
    // Tokens of different clients may be equal; the id of the request is not.
    match client.listens() {
        true => meta.set(meta::PROGRESS_TOKEN, Id::number(id).to_json()),
        false => drop(meta.remove(meta::PROGRESS_TOKEN)),
    }
    match meta.is_empty() {
        true => drop(params.remove("_meta")),
        false => params.set("_meta", meta.to_json()),
    }
}

/// What the client declares, its extensions among that.
fn capabilities(client: &dyn Client) -> Json {
    let declared = client.capabilities().filter(|declared| declared.is_object());
    declared.cloned().unwrap_or_else(|| Object::new().to_json())
}

/// What an answer to a call means.
pub(super) fn outcome(answer: Answer, era: Era) -> Result<Outcome, ToolError> {
    let body = answer.map_err(|error| peer_error(&error))?;
    let body = body.to_object().map_err(|error| {
        ToolError::new(Code::ExecutionFailed, "The server's result is malformed").caused_by(error)
    })?;
    match body.get("resultType").map(Json::to_str) {
        None => Ok(done(body)),
        // A member that means nothing to a legacy server is the tool's own.
        _ if era == Era::Legacy => Ok(done(body)),
        Some(Some(kind)) if kind == "complete" => Ok(done(body)),
        Some(Some(kind)) if kind == "input_required" => Ok(Outcome::NeedsInput(body)),
        Some(Some(kind)) if kind == "task" => Ok(Outcome::Task(body.into())),
        Some(_) => Err(ToolError::new(Code::ExecutionFailed, "The server's result is of an unknown type")),
    }
}

fn done(body: Object) -> Outcome {
    let is_error = body.get("isError").and_then(Json::to_bool) == Some(true);
    Outcome::Done(Output { body, is_error })
}

fn peer_error(error: &RpcError) -> ToolError {
    if [error::HEADER_MISMATCH, error::UNSUPPORTED_VERSION].contains(&error.code) {
        // What it says is about the gateway's own request; the client would take it to be about its own.
        return ToolError::new(Code::ExecutionFailed, "The server refused the gateway's request")
            .caused_by(format!("it answered with the error {}", error.code));
    }
    let body = error.body();
    let Some(message) = message_of(body) else {
        // Clients take a response with such an error for no message at all, and go on waiting.
        return ToolError::new(Code::ExecutionFailed, "The server's error is malformed");
    };
    ToolError::new(Code::ExecutionFailed, message).from_peer(body.clone())
}

/// The message of an error that is one: its code is a whole number, its message a string.
fn message_of(error: &Json) -> Option<String> {
    let error = error.to_object().ok()?;
    error.get("code")?.as_text().parse::<i64>().ok()?;
    error.get_str("message").map(Cow::into_owned)
}

/// A refusal that says nothing about the request.
pub(super) fn is_transient(status: StatusCode) -> bool {
    [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT].contains(&status)
}

/// The server did not answer.
impl From<TransportError> for ToolError {
    fn from(error: TransportError) -> Self {
        let (code, message) = match error {
            TransportError::Exchange(error) => return error,
            TransportError::Unreachable(_) => (Code::Unavailable, "The server cannot be reached"),
            TransportError::Broken(_) | TransportError::Interrupted(_) => {
                (Code::Unavailable, "The connection to the server broke")
            }
            TransportError::Credentials(_) => {
                (Code::Unavailable, "The credentials of this server cannot be read")
            }
            TransportError::SessionOver | TransportError::SessionLost => {
                (Code::Unavailable, "The server has ended the session")
            }
            TransportError::Status(status) if status.is_server_error() || is_transient(status) => {
                (Code::Unavailable, "The server failed to answer")
            }
            TransportError::Status(_) => (Code::ExecutionFailed, "The server refused the request"),
            TransportError::Malformed(_) => (Code::ExecutionFailed, "The server's answer is malformed"),
            TransportError::TooLarge(_) => (Code::ExecutionFailed, "The server's answer is too large"),
        };
        let is_unsent = matches!(
            error,
            TransportError::Unreachable(_) | TransportError::Credentials(_) | TransportError::SessionOver
        );
        let told = Self::new(code, message).caused_by(error);
        if is_unsent { told.unsent() } else { told }
    }
}

#[cfg(test)]
mod tests;
