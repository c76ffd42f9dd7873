//! JSON-RPC 2.0 messages.

use std::fmt;

use bytes::Bytes;
use toolyard_core::json::NOT_AN_OBJECT;
use toolyard_core::{Json, JsonError, Object};

use super::error::{INVALID_REQUEST, PARSE_ERROR, RpcError};

/// The id of a request, as its sender wrote it: `1`, `1.0` and `"1"` are three ids.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Id(Json);

impl Id {
    /// An id of our own making.
    #[must_use]
    pub fn number(number: u64) -> Self {
        Self(Json::unsigned(number))
    }

    /// A string or a number.
    pub(crate) fn parse(json: &Json) -> Option<Self> {
        (json.is_number() || json.to_str().is_some()).then(|| Self(json.clone()))
    }

    /// The id, if [`Id::number`] made it.
    #[must_use]
    pub fn to_number(&self) -> Option<u64> {
        self.0.as_text().parse().ok()
    }

    /// The same, also where who answers has made a text of the number, as some servers do.
    #[must_use]
    pub fn to_number_or_text(&self) -> Option<u64> {
        self.to_number().or_else(|| self.0.to_str()?.parse().ok())
    }

    /// The id as a value.
    #[must_use]
    pub fn to_json(&self) -> Json {
        self.0.clone()
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_text())
    }
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Wants a response.
    Request {
        /// What the response is to be called.
        id: Id,
        /// What is asked for.
        method: String,
        /// With what.
        params: Object,
        /// The members of `params._meta`.
        meta: Object,
    },
    /// Wants none.
    Notification {
        /// What happened.
        method: String,
        /// The particulars.
        params: Object,
    },
    /// Answers a request.
    Response {
        /// Which one. Servers leave it out where they could not read it.
        id: Option<Id>,
        /// The result, or the error.
        answer: Result<Json, RpcError>,
    },
}

/// A text that is no message: the error to answer with, and the id where one could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// The request that the text may have been.
    pub id: Option<Id>,
    /// What is wrong with it.
    pub error: RpcError,
}

impl Malformed {
    fn request(id: Option<Id>, problem: &'static str) -> Self {
        Self { id, error: RpcError::new(INVALID_REQUEST, format!("Invalid request: {problem}")) }
    }
}

impl Message {
    /// Reads one message. Batches are not messages: only the revision 2025-03-26 has them.
    ///
    /// # Errors
    /// When the text is not JSON, not a JSON-RPC 2.0 message, or names a member of the envelope, of
    /// `params` or of `params._meta` twice.
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, Malformed> {
        let envelope = Object::parse(text).map_err(|error| no_envelope(&error))?;
        let id = envelope.get("id").filter(|id| !id.is_null());
        let (id, bad_id) = (id.and_then(Id::parse), id.is_some_and(|id| Id::parse(id).is_none()));
        if envelope.get_str("jsonrpc").as_deref() != Some("2.0") {
            return Err(Malformed::request(id, "`jsonrpc` is not \"2.0\""));
        }
        if bad_id {
            return Err(Malformed::request(None, "`id` is neither a string nor a number"));
        }
        match envelope.get("method") {
            Some(method) => Self::asking(id, &envelope, method),
            None => Self::answering(id, &envelope),
        }
    }

    fn asking(id: Option<Id>, envelope: &Object, method: &Json) -> Result<Self, Malformed> {
        let Some(method) = method.to_str() else {
            return Err(Malformed::request(id, "`method` is not a string"));
        };
        let (params, meta) = match params(envelope) {
            Ok(opened) => opened,
            Err(problem) => return Err(Malformed { id, error: RpcError::invalid_params(problem) }),
        };
        let method = method.into_owned();
        match (id, envelope.get("id")) {
            (Some(id), _) => Ok(Self::Request { id, method, params, meta }),
            (None, None) => Ok(Self::Notification { method, params }),
            (None, Some(_)) => Err(Malformed::request(None, "`id` is null")),
        }
    }

    fn answering(id: Option<Id>, envelope: &Object) -> Result<Self, Malformed> {
        match (envelope.get("result"), envelope.get("error")) {
            (Some(result), None) => Ok(Self::Response { id, answer: Ok(result.clone()) }),
            (None, Some(error)) => Ok(Self::Response { id, answer: Err(RpcError::from_peer(error.clone())) }),
            (Some(_), Some(_)) => Err(Malformed::request(id, "both `result` and `error`")),
            (None, None) => Err(Malformed::request(id, "none of `method`, `result` and `error`")),
        }
    }
}

fn no_envelope(error: &JsonError) -> Malformed {
    match error.problem {
        NOT_AN_OBJECT => Malformed::request(None, "a message is an object"),
        _ => Malformed { id: None, error: RpcError::new(PARSE_ERROR, format!("Parse error: {error}")) },
    }
}

/// The parameters, which may be left out or `null`, and what they say about the message.
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

/// The text of a request.
#[must_use]
pub fn request(id: &Id, method: &str, params: &Object) -> Bytes {
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.0.as_bytes());
    write_method(method, params, &mut out);
    out.into()
}

/// The text of a notification.
#[must_use]
pub fn notification(method: &str, params: &Object) -> Bytes {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    write_method(method, params, &mut out);
    out.into()
}

fn write_method(method: &str, params: &Object, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"method\":");
    out.extend_from_slice(Json::string(method).as_bytes());
    out.extend_from_slice(b",\"params\":");
    params.write(out);
    out.push(b'}');
}

/// The pieces of a response. It has no `id` where none could be read: unlike in JSON-RPC, it is never `null`
/// (2026-07-28, schema, `JSONRPCErrorResponse`).
#[must_use]
pub fn response(id: Option<&Id>, answer: Result<Vec<Bytes>, RpcError>) -> Vec<Bytes> {
    let (name, body) = match answer {
        Ok(result) => ("result", result),
        Err(error) => ("error", vec![error.body().bytes()]),
    };
    let mut head = Vec::with_capacity(64);
    head.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    if let Some(id) = id {
        head.extend_from_slice(b",\"id\":");
        head.extend_from_slice(id.0.as_bytes());
    }
    head.extend_from_slice(b",\"");
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b"\":");
    let head = std::iter::once(Bytes::from(head));
    head.chain(body).chain(std::iter::once(Bytes::from_static(b"}"))).collect()
}

#[cfg(test)]
mod tests;
