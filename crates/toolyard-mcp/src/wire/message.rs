//! JSON-RPC 2.0 messages.

use std::fmt;

use bytes::Bytes;
use toolyard_core::json::NOT_AN_OBJECT;
use toolyard_core::{Json, JsonError, NotificationBody, Object};

#[cfg(doc)]
use super::ProtocolRevision;
use super::error::{INVALID_REQUEST, PARSE_ERROR, RpcError};

/// The id of a request as its sender wrote it: `1`, `1.0` and `"1"` are three ids.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RequestId(Json);

impl RequestId {
    /// Creates an id from a number.
    #[must_use]
    pub fn number(number: u64) -> Self {
        Self(Json::unsigned(number))
    }

    /// Returns the id of a response to a message whose id could not be read (JSON-RPC 2.0, section 5). Later revisions
    /// omit it: see [`ProtocolRevision::has_null_id`].
    #[must_use]
    pub fn null() -> Self {
        Self(Json::null())
    }

    /// Parses a string or a number.
    pub(crate) fn parse(json: &Json) -> Option<Self> {
        (json.is_number() || json.to_str().is_some()).then(|| Self(json.clone()))
    }

    /// Returns the number of an id that [`RequestId::number`] created.
    #[must_use]
    pub fn to_number(&self) -> Option<u64> {
        self.0.as_text().parse().ok()
    }

    /// Returns the number of an id, also if the peer turned it into a string, as some servers do.
    #[must_use]
    pub fn to_lenient_number(&self) -> Option<u64> {
        self.to_number().or_else(|| self.0.to_str()?.parse().ok())
    }

    /// Returns the id as JSON.
    #[must_use]
    pub fn to_json(&self) -> Json {
        self.0.clone()
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_text())
    }
}

/// A JSON-RPC message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RpcMessage {
    /// A request, which expects a response.
    Request {
        /// The id of the request.
        id: RequestId,
        /// The method.
        method: String,
        /// The parameters.
        params: Object,
        /// The members of `params._meta`.
        meta: Object,
    },
    /// A notification, which expects no response.
    Notification {
        /// The method.
        method: String,
        /// The parameters, and unknown members of the envelope.
        body: NotificationBody,
    },
    /// The response to a request.
    Response {
        /// The id of the request. Servers omit it if they could not read it.
        id: Option<RequestId>,
        /// The result or the error.
        answer: Result<Json, RpcError>,
    },
}

/// An invalid message: the error to respond with, and the id if it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedMessage {
    /// The id of the request, if the text has one.
    pub id: Option<RequestId>,
    /// The error to respond with.
    pub error: RpcError,
}

impl MalformedMessage {
    fn malformed_request(id: Option<RequestId>, problem: &'static str) -> Self {
        Self { id, error: RpcError::new(INVALID_REQUEST, format!("Invalid request: {problem}")) }
    }
}

impl RpcMessage {
    /// Parses a single message. A batch is not a message; only revision 2025-03-26 has batches.
    ///
    /// # Errors
    /// When the text is not JSON, not a JSON-RPC 2.0 message, or repeats a member of the envelope, of `params` or of
    /// `params._meta`.
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, MalformedMessage> {
        let envelope = Object::parse(text).map_err(|error| envelope_error(&error))?;
        let id = envelope.get("id").filter(|id| !id.is_null());
        let (id, has_bad_id) =
            (id.and_then(RequestId::parse), id.is_some_and(|id| RequestId::parse(id).is_none()));
        let version = envelope.get("jsonrpc").map(Json::as_bytes);
        // The second form may have escapes.
        if version != Some(b"\"2.0\"") && envelope.get_str("jsonrpc").as_deref() != Some("2.0") {
            return Err(MalformedMessage::malformed_request(id, "`jsonrpc` is not \"2.0\""));
        }
        if has_bad_id {
            return Err(MalformedMessage::malformed_request(None, "`id` is neither a string nor a number"));
        }
        match envelope.get("method") {
            Some(method) => Self::parse_request(id, &envelope, method),
            None => Self::parse_response(id, &envelope),
        }
    }

    fn parse_request(
        id: Option<RequestId>,
        envelope: &Object,
        method: &Json,
    ) -> Result<Self, MalformedMessage> {
        let Some(method) = method.to_str() else {
            return Err(MalformedMessage::malformed_request(id, "`method` is not a string"));
        };
        let (params, meta) = match params(envelope) {
            Ok(parts) => parts,
            Err(problem) => return Err(MalformedMessage { id, error: RpcError::invalid_params(problem) }),
        };
        let method = method.into_owned();
        match (id, envelope.get("id")) {
            (Some(id), _) => Ok(Self::Request { id, method, params, meta }),
            (None, None) => {
                let body = NotificationBody { params, envelope: unknown_members(envelope) };
                Ok(Self::Notification { method, body })
            }
            (None, Some(_)) => Err(MalformedMessage::malformed_request(None, "`id` is null")),
        }
    }

    fn parse_response(id: Option<RequestId>, envelope: &Object) -> Result<Self, MalformedMessage> {
        match (envelope.get("result"), envelope.get("error")) {
            (Some(result), None) => Ok(Self::Response { id, answer: Ok(result.clone()) }),
            (None, Some(error)) => Ok(Self::Response { id, answer: Err(RpcError::from_peer(error.clone())) }),
            (Some(_), Some(_)) => Err(MalformedMessage::malformed_request(id, "both `result` and `error`")),
            (None, None) => {
                Err(MalformedMessage::malformed_request(id, "none of `method`, `result` and `error`"))
            }
        }
    }
}

fn envelope_error(error: &JsonError) -> MalformedMessage {
    match error.problem {
        NOT_AN_OBJECT => MalformedMessage::malformed_request(None, "a message is an object"),
        _ => {
            MalformedMessage { id: None, error: RpcError::new(PARSE_ERROR, format!("Parse error: {error}")) }
        }
    }
}

/// Returns the members of a notification that JSON-RPC does not define.
fn unknown_members(envelope: &Object) -> Object {
    let mut unknown = envelope.clone();
    ["jsonrpc", "method", "params"].iter().for_each(|name| drop(unknown.remove(name)));
    unknown
}

/// Returns the parameters, which may be missing or `null`, and their `_meta`.
fn params(envelope: &Object) -> Result<(Object, Object), &'static str> {
    let Some(params) = envelope.get("params").filter(|params| !params.is_null()) else {
        return Ok((Object::new(), Object::new()));
    };
    let params = params.to_object().map_err(|_| "`params` is not an object with unique members")?;
    let meta = params.get("_meta").filter(|meta| !meta.is_null());
    let meta = meta.map_or_else(|| Ok(Object::new()), Json::to_object);
    let meta = meta.map_err(|_| "`params._meta` is not an object with unique members")?;
    Ok((params, meta))
}

/// Writes a request.
#[must_use]
pub fn request(id: &RequestId, method: &str, params: &Object) -> Bytes {
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.0.as_bytes());
    write_method(method, params, &mut out);
    out.into()
}

/// Writes a notification.
#[must_use]
pub fn notification(method: &str, params: &Object) -> Bytes {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    write_method(method, params, &mut out);
    out.into()
}

/// Writes a notification with the unknown members of its envelope, which come last.
#[must_use]
pub fn notification_with(method: &str, body: &NotificationBody) -> Bytes {
    let plain = notification(method, &body.params);
    if body.envelope.is_empty() {
        return plain;
    }
    let mut out = plain[..plain.len() - 1].to_vec();
    let start = out.len();
    body.envelope.write(&mut out);
    // The members continue those of the notification.
    out[start] = b',';
    out.into()
}

fn write_method(method: &str, params: &Object, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"method\":");
    Json::write_string(method, out);
    out.extend_from_slice(b",\"params\":");
    params.write(out);
    out.push(b'}');
}

/// Maximum size in bytes of a result that is copied into one piece with its envelope.
const WORTH_COPYING: usize = 8 * 1024;

/// Writes a response in pieces, or in one if it is small. Without an `id`, it has no such member.
#[must_use]
pub fn response(id: Option<&RequestId>, answer: Result<Vec<Bytes>, RpcError>) -> Vec<Bytes> {
    let (name, body) = match answer {
        Ok(result) => ("result", result),
        Err(error) => ("error", vec![error.body().bytes()]),
    };
    let length: usize = body.iter().map(Bytes::len).sum();
    let is_small = length <= WORTH_COPYING;
    let mut head = Vec::with_capacity(64 + if is_small { length } else { 0 });
    head.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    if let Some(id) = id {
        head.extend_from_slice(b",\"id\":");
        head.extend_from_slice(id.0.as_bytes());
    }
    head.extend_from_slice(b",\"");
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b"\":");
    if is_small {
        body.iter().for_each(|piece| head.extend_from_slice(piece));
        head.push(b'}');
        return vec![head.into()];
    }
    let head = std::iter::once(Bytes::from(head));
    head.chain(body).chain(std::iter::once(Bytes::from_static(b"}"))).collect()
}

#[cfg(test)]
mod tests;
