//! What is kept of a call.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest, Sha256};
use toolyard_core::secrets::REDACTED;
use toolyard_core::store::Record;
use toolyard_core::timestamp::iso_8601;
use toolyard_core::{Json, Target};
use toolyard_net::listener::ClientAddress;

use super::AuditOptions;
use crate::keys::key::hex;

/// Arguments that are larger are not kept, in bytes; their digest is.
const LARGEST: usize = 16 << 10;

/// The longest name of something that nobody has, in characters: it is the caller's invention.
const LONGEST_NAME: usize = 200;

/// Something that waits to be written.
#[derive(Debug)]
pub(super) enum Seen {
    Call(Box<SeenCall>),
    Event(Event),
}

/// A call that is over.
#[derive(Debug)]
pub(super) struct SeenCall {
    pub(super) time: SystemTime,
    pub(super) request: String,
    pub(super) by: By,
    pub(super) target: Target,
    /// Whose it was; `None` where nobody has it.
    pub(super) handler: Option<Arc<str>>,
    pub(super) arguments: Arguments,
    pub(super) outcome: &'static str,
    pub(super) took: Duration,
}

/// Who it was.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct By {
    /// The id of the key, or who else something in front has made sure of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<Arc<str>>,
    /// What the owner of the key calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_name: Option<Arc<str>>,
    /// The session of a client that keeps one. Its id is a secret, so it is written as the beginning of its SHA-256, as it stands in
    /// the keys of working memory.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_digest")]
    pub session: Option<Arc<str>>,
    /// Where the client is.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub address: Option<ClientAddress>,
}

fn as_digest<S: Serializer>(session: &Option<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    let digest = session.as_deref().map(|session| hex(&Sha256::digest(session)[..8]));
    digest.serialize(serializer)
}

fn as_text<S: Serializer>(address: &Option<ClientAddress>, serializer: S) -> Result<S::Ok, S::Error> {
    match address {
        Some(address) => serializer.collect_str(address),
        None => serializer.serialize_none(),
    }
}

/// Arguments: as they came, until there is time to make a digest of them.
#[derive(Debug)]
pub(super) enum Arguments {
    None,
    Whole(Json),
    Digest(String, usize),
}

/// Something that is no call.
#[derive(Debug, Clone)]
pub struct Event {
    /// Who did it.
    pub by: By,
    /// What was done.
    pub deed: Deed,
    /// To what: the id of a key, the name of a handler.
    pub object: String,
}

/// What operators do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// A key was made.
    KeyCreated,
    /// A key was revoked.
    KeyRevoked,
    /// The draft of a function was saved.
    FunctionSaved,
    /// A version of a function was published.
    FunctionPublished,
    /// A function, or a version of it, was deleted.
    FunctionDeleted,
    /// A handler's list was asked for again.
    HandlerRefreshed,
    /// What is logged was changed.
    LogChanged,
    /// So many records were lost.
    RecordsLost,
}

impl Deed {
    const fn word(self) -> &'static str {
        match self {
            Self::KeyCreated => "key_created",
            Self::KeyRevoked => "key_revoked",
            Self::FunctionSaved => "function_saved",
            Self::FunctionPublished => "function_published",
            Self::FunctionDeleted => "function_deleted",
            Self::HandlerRefreshed => "handler_refreshed",
            Self::LogChanged => "log_changed",
            Self::RecordsLost => "records_lost",
        }
    }
}

/// A record as it is written.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    time: String,
    /// What was done: `call`, or what operators do.
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    #[serde(flatten)]
    by: &'a By,
    /// What it was done to: `tool`, `prompt`, `resource`, `completion`.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handler: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments_digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Value>,
    /// `ok`, `tool_error`, or the code of an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<f64>,
}

impl Seen {
    /// Bytes that it holds.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Call(call) => match &call.arguments {
                Arguments::Whole(arguments) => arguments.as_bytes().len(),
                _ => 0,
            },
            Self::Event(_) => 0,
        }
    }

    /// Lets go of the arguments.
    pub(super) fn digest(&mut self) {
        if let Self::Call(call) = self
            && let Arguments::Whole(arguments) = &call.arguments
        {
            call.arguments = Arguments::Digest(digest(arguments), arguments.as_bytes().len());
        }
    }

    /// The record of it.
    pub(super) fn written(&self, options: &AuditOptions) -> Record {
        match self {
            Self::Call(call) => call.written(options),
            Self::Event(event) => event.written(),
        }
    }
}

impl SeenCall {
    fn written(&self, options: &AuditOptions) -> Record {
        let (digest, bytes, arguments) = match &self.arguments {
            Arguments::None => (None, None, None),
            Arguments::Digest(digest, bytes) => (Some(digest.clone()), Some(*bytes), None),
            Arguments::Whole(whole) => {
                let bytes = whole.as_bytes().len();
                let kept = (options.arguments && bytes <= LARGEST).then(|| redacted(whole, &options.redact));
                (Some(digest(whole)), Some(bytes), kept)
            }
        };
        let name: Cow<'_, str> = match &self.handler {
            Some(_) => Cow::Borrowed(self.target.name()),
            None => self.target.name().chars().take(LONGEST_NAME).collect(),
        };
        let mut tags = vec![
            ("action", "call".to_owned()),
            ("outcome", self.outcome.to_owned()),
            ("name", name.clone().into_owned()),
        ];
        tags.extend(self.handler.as_ref().map(|handler| ("handler", handler.to_string())));
        tags.extend(self.by.principal.as_ref().map(|principal| ("principal", principal.to_string())));
        let written = Written {
            time: iso_8601(self.time),
            action: "call",
            request_id: Some(&self.request),
            by: &self.by,
            kind: Some(kind(&self.target)),
            name,
            handler: self.handler.as_deref(),
            arguments_digest: digest,
            arguments_bytes: bytes,
            arguments,
            outcome: Some(self.outcome),
            duration_ms: Some(self.took.as_secs_f64() * 1000.0),
        };
        record(self.time, tags, &written)
    }
}

impl Event {
    /// The record of it, as something that happens now.
    #[must_use]
    pub fn written(&self) -> Record {
        let time = SystemTime::now();
        let action = self.deed.word();
        let mut tags = vec![("action", action.to_owned()), ("name", self.object.clone())];
        tags.extend(self.by.principal.as_ref().map(|principal| ("principal", principal.to_string())));
        let written = Written {
            time: iso_8601(time),
            action,
            request_id: None,
            by: &self.by,
            kind: None,
            name: Cow::Borrowed(&self.object),
            handler: None,
            arguments_digest: None,
            arguments_bytes: None,
            arguments: None,
            outcome: None,
            duration_ms: None,
        };
        record(time, tags, &written)
    }
}

fn record(time: SystemTime, tags: Vec<(&'static str, String)>, written: &Written<'_>) -> Record {
    // Nothing in it can fail to be written.
    Record { time, tags, body: serde_json::to_string(written).unwrap_or_default() }
}

const fn kind(target: &Target) -> &'static str {
    match target {
        Target::Tool(_) => "tool",
        Target::Prompt(_) => "prompt",
        Target::Resource(_) => "resource",
        Target::Completion(_) => "completion",
        Target::Task(_) => "task",
        Target::Function(_) => "function",
    }
}

/// The digest of the text that was sent: the same arguments in another order have another one.
fn digest(arguments: &Json) -> String {
    format!("sha256:{}", hex(&Sha256::digest(arguments.as_bytes())))
}

fn redacted(arguments: &Json, redact: &[String]) -> Value {
    let mut value = arguments.to_value();
    hide(&mut value, redact);
    value
}

fn hide(value: &mut Value, redact: &[String]) {
    match value {
        Value::Object(members) => {
            for (name, value) in members.iter_mut() {
                match redact.contains(&name.to_lowercase()) {
                    true => *value = Value::from(REDACTED),
                    false => hide(value, redact),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, redact)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_session_is_not_written() {
        let by = By { session: Some("3f2a".into()), ..By::default() };
        let written = serde_json::to_value(by).expect("JSON");
        assert_eq!(written, serde_json::json!({"session": "10c78973b5c61b1e"}));
    }
}
