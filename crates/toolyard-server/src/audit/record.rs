//! The format of a record.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest, Sha256};
use toolyard_core::secrets::hide_sealed_ids;
use toolyard_core::store::{LogRecord, RecordTag};
use toolyard_core::timestamp::iso_8601;
use toolyard_core::{CallTarget, Json, ParentCall};
use toolyard_net::listener::ClientAddress;

use super::AuditOptions;
use super::arguments::{digest, redacted_value};
use crate::fleet::DefinitionChange;
use crate::fleet::definitions::DefinitionDigest;
use crate::keys::key::hex;

/// Maximum bytes of recorded arguments. Of larger ones only the digest is recorded.
const MAX_ARGUMENT_BYTES: usize = 16 << 10;

/// Maximum bytes of arguments without a digest. Short texts can be guessed from their digest, and for most calls it would
/// be the largest part of the record.
pub(super) const MAX_BYTES_WITHOUT_DIGEST: usize = 128;

/// Estimated bytes of a queued record beside its arguments.
const RECORD_BYTES: usize = 512;

/// Maximum characters of an unknown name, which a caller may have invented.
const MAX_UNKNOWN_NAME_CHARS: usize = 200;

/// A queued record.
#[derive(Debug)]
pub(super) enum QueuedRecord {
    Call(Box<QueuedCall>),
    Event(AuditEvent),
    Change(Box<AuditedToolChange>),
    Run(Box<AuditedRun>),
}

/// A call that has ended.
#[derive(Debug)]
pub(super) struct QueuedCall {
    pub(super) time: SystemTime,
    pub(super) request: String,
    /// Id of the trace that the call belongs to.
    pub(super) trace: Option<TraceId>,
    /// The call that made this one.
    pub(super) parent: Option<Arc<ParentCall>>,
    pub(super) actor: AuditActor,
    pub(super) target: CallTarget,
    /// The handler of the call. `None` for an unknown name.
    pub(super) handler: Option<Arc<str>>,
    pub(super) arguments: AuditArguments,
    pub(super) outcome: &'static str,
    pub(super) took: Duration,
}

/// Id of a trace (W3C Trace Context, section 3.2.2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TraceId(u128);

impl TraceId {
    /// Reads the id in a `traceparent`.
    pub(super) fn of_parent(traceparent: &str) -> Option<Self> {
        let id = traceparent.split('-').nth(1).filter(|id| id.len() == 32)?;
        u128::from_str_radix(id, 16).ok().filter(|id| *id != 0).map(Self)
    }
}

impl Serialize for TraceId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:032x}", self.0))
    }
}

/// The principal and client behind a record.
#[derive(Debug, Clone, Default)]
pub struct AuditActor {
    /// Id of the key, or another authenticated principal.
    pub principal: Option<Arc<str>>,
    /// Name of the key.
    pub key_name: Option<Arc<str>>,
    /// Session of the client. Its id is a secret, so the record has the beginning of its SHA-256, as in the keys of
    /// working memory.
    pub session: Option<Arc<str>>,
    /// Address of the client.
    pub address: Option<ClientAddress>,
}

/// Encodes the records of one write. Most of them come from few sessions and addresses, whose texts are computed once.
#[derive(Default)]
pub(super) struct RecordEncoder {
    /// Digests of sessions by their ids.
    sessions: HashMap<Arc<str>, String>,
    addresses: HashMap<ClientAddress, String>,
}

/// The fields of a record that come from its actor.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct ActorFields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<&'a str>,
}

impl RecordEncoder {
    fn actor<'a>(&'a mut self, actor: &'a AuditActor) -> ActorFields<'a> {
        let AuditActor { principal, key_name, session, address } = actor;
        let session = session.as_ref().map(|session| {
            let digest = || hex(&Sha256::digest(&**session)[..8]);
            &**self.sessions.entry(session.clone()).or_insert_with(digest)
        });
        let address =
            address.map(|address| &**self.addresses.entry(address).or_insert_with(|| address.to_string()));
        ActorFields { principal: principal.as_deref(), key_name: key_name.as_deref(), session, address }
    }
}

/// Arguments, whole until there is time to compute their digest.
#[derive(Debug)]
pub(super) enum AuditArguments {
    None,
    /// The bytes of short arguments.
    Short(usize),
    Whole(Json),
    Digest(String, usize),
}

/// An action other than a call.
#[derive(Debug, Clone)]
pub struct AuditEvent {
    /// The principal of the action.
    pub actor: AuditActor,
    /// The kind of action.
    pub action: AuditAction,
    /// The object of the action, such as the id of a key or the name of a handler.
    pub object: String,
}

/// A run of a scheduled task that has ended.
#[derive(Debug, Clone)]
pub struct AuditedRun {
    /// The key of the task.
    pub actor: AuditActor,
    /// Id of the run, which a webhook has too.
    pub id: String,
    /// Name of the task.
    pub task: String,
    /// `ok`, `failed` or `interrupted`.
    pub outcome: &'static str,
    /// Duration, if it is known.
    pub took: Option<Duration>,
}

impl AuditedRun {
    fn to_record(&self, encoder: &mut RecordEncoder) -> LogRecord {
        let Self { actor, id, task, outcome, took } = self;
        let action = AuditAction::TaskFired.name();
        let mut tags =
            vec![("action", action.into()), ("outcome", (*outcome).into()), ("name", task.clone().into())];
        tags.extend(principal_tag(actor));
        let time = SystemTime::now();
        let body = AuditRecord {
            request_id: Some(id),
            kind: Some("schedule"),
            outcome: Some(*outcome),
            duration_ms: took.map(milliseconds),
            ..AuditRecord::of(time, action, encoder.actor(actor), Cow::Borrowed(task))
        };
        record(time, tags, &body)
    }
}

/// A changed definition of a tool, or its acceptance.
#[derive(Debug, Clone)]
pub struct AuditedToolChange {
    actor: AuditActor,
    action: AuditAction,
    handler: String,
    change: DefinitionChange,
}

impl AuditedToolChange {
    /// Creates the record of a change of a handler's tool.
    #[must_use]
    pub fn new(actor: AuditActor, action: AuditAction, handler: &str, change: &DefinitionChange) -> Self {
        Self { actor, action, handler: handler.to_owned(), change: change.clone() }
    }

    fn to_record(&self, encoder: &mut RecordEncoder) -> LogRecord {
        let Self { actor, action, handler, change } = self;
        let (action, tool) =
            (action.name(), change.tool.chars().take(MAX_UNKNOWN_NAME_CHARS).collect::<String>());
        let mut tags = vec![
            ("action", action.into()),
            ("name", tool.clone().into()),
            ("handler", handler.clone().into()),
        ];
        tags.extend(principal_tag(actor));
        let time = SystemTime::now();
        let body = AuditRecord {
            kind: Some("tool"),
            handler: Some(handler),
            old_digest: change.old.as_ref(),
            new_digest: Some(&change.new),
            ..AuditRecord::of(time, action, encoder.actor(actor), Cow::Owned(tool))
        };
        record(time, tags, &body)
    }
}

/// Actions other than calls, most of them by operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditAction {
    /// A key was created.
    KeyCreated,
    /// A key was revoked.
    KeyRevoked,
    /// The draft of a function was saved.
    FunctionSaved,
    /// A version of a function was published.
    FunctionPublished,
    /// A function, or a version of it, was deleted.
    FunctionDeleted,
    /// A refresh of a handler's tool list was requested.
    HandlerRefreshed,
    /// A restart of a handler was requested.
    HandlerRestarted,
    /// A handler was disabled.
    HandlerDisabled,
    /// A browser has signed in with a key.
    SessionStarted,
    /// A browser has signed out.
    SessionEnded,
    /// A tool's definition differs from the accepted one.
    ToolChanged,
    /// A new tool waits to be accepted.
    ToolAdded,
    /// A changed or new tool was accepted.
    ToolAccepted,
    /// A scheduled task has fired.
    TaskFired,
    /// A scheduled task of any key was cancelled by an operator.
    TaskCancelled,
    /// The log filter was changed.
    LogChanged,
    /// Records were lost.
    RecordsLost,
    /// The oldest records were removed, because the trail had reached its size.
    RecordsRemoved,
}

impl AuditAction {
    const fn name(self) -> &'static str {
        match self {
            Self::KeyCreated => "key_created",
            Self::KeyRevoked => "key_revoked",
            Self::FunctionSaved => "function_saved",
            Self::FunctionPublished => "function_published",
            Self::FunctionDeleted => "function_deleted",
            Self::HandlerRefreshed => "handler_refreshed",
            Self::HandlerRestarted => "handler_restarted",
            Self::HandlerDisabled => "handler_disabled",
            Self::SessionStarted => "session_started",
            Self::SessionEnded => "session_ended",
            Self::ToolChanged => "tool_changed",
            Self::ToolAdded => "tool_added",
            Self::ToolAccepted => "tool_accepted",
            Self::TaskFired => "task_fired",
            Self::TaskCancelled => "task_cancelled",
            Self::LogChanged => "log_changed",
            Self::RecordsLost => "records_lost",
            Self::RecordsRemoved => "records_removed",
        }
    }
}

/// A record as written.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AuditRecord<'a> {
    time: String,
    /// `call`, `task_fired`, or an operator's action.
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<TraceId>,
    /// Id of the activity that made the call, such as that of a subagent.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'a str>,
    #[serde(flatten)]
    actor: ActorFields<'a>,
    /// Kind of the object: `tool`, `prompt`, `resource`, `completion`, `task`, `function` or `schedule`.
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
    /// `ok`, `tool_error`, or the code of an error; of a scheduled task, `ok`, `failed` or `interrupted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<f64>,
    /// Digests of a tool's previous and new definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    old_digest: Option<&'a DefinitionDigest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_digest: Option<&'a DefinitionDigest>,
}

impl<'a> AuditRecord<'a> {
    /// Creates a record with the fields that all records have.
    fn of(time: SystemTime, action: &'static str, actor: ActorFields<'a>, name: Cow<'a, str>) -> Self {
        Self {
            time: iso_8601(time),
            action,
            request_id: None,
            trace_id: None,
            parent: None,
            actor,
            kind: None,
            name,
            handler: None,
            arguments_digest: None,
            arguments_bytes: None,
            arguments: None,
            outcome: None,
            duration_ms: None,
            old_digest: None,
            new_digest: None,
        }
    }
}

impl QueuedRecord {
    /// Bytes held by the record.
    pub(super) fn bytes(&self) -> usize {
        let variable = match self {
            Self::Call(call) => {
                let arguments = match &call.arguments {
                    AuditArguments::Whole(arguments) => arguments.as_bytes().len(),
                    _ => 0,
                };
                arguments + call.target.name().len()
            }
            Self::Event(event) => event.object.len(),
            Self::Change(change) => change.handler.len() + change.change.tool.len(),
            Self::Run(run) => run.task.len(),
        };
        RECORD_BYTES + variable
    }

    /// Replaces the arguments by their digest.
    pub(super) fn digest(&mut self) {
        if let Self::Call(call) = self
            && let AuditArguments::Whole(arguments) = &call.arguments
        {
            call.arguments = AuditArguments::Digest(digest(arguments), arguments.as_bytes().len());
        }
    }

    /// Converts it for the store.
    pub(super) fn to_record(&self, encoder: &mut RecordEncoder, options: &AuditOptions) -> LogRecord {
        match self {
            Self::Call(call) => call.to_record(encoder, options),
            Self::Event(event) => event.to_record(),
            Self::Change(change) => change.to_record(encoder),
            Self::Run(run) => run.to_record(encoder),
        }
    }
}

impl QueuedCall {
    fn to_record(&self, encoder: &mut RecordEncoder, options: &AuditOptions) -> LogRecord {
        let (digest, bytes, arguments) = match &self.arguments {
            AuditArguments::None => (None, None, None),
            AuditArguments::Short(bytes) => (None, Some(*bytes), None),
            AuditArguments::Digest(digest, bytes) => (Some(digest.clone()), Some(*bytes), None),
            AuditArguments::Whole(json) => {
                let bytes = json.as_bytes().len();
                let arguments = (options.arguments && bytes <= MAX_ARGUMENT_BYTES)
                    .then(|| redacted_value(json, &options.redact));
                let digest = (bytes > MAX_BYTES_WITHOUT_DIGEST).then(|| digest(json));
                (digest, Some(bytes), arguments)
            }
        };
        let name: Cow<'_, str> = match &self.handler {
            Some(_) => Cow::Borrowed(self.target.name()),
            None => hide_sealed_ids(self.target.name()).chars().take(MAX_UNKNOWN_NAME_CHARS).collect(),
        };
        let mut tags = vec![
            ("action", "call".into()),
            ("outcome", self.outcome.into()),
            ("name", name.clone().into_owned().into()),
        ];
        tags.extend(self.handler.as_ref().map(|handler| ("handler", handler.to_string().into())));
        tags.extend(principal_tag(&self.actor));
        let body = AuditRecord {
            request_id: Some(&self.request),
            trace_id: self.trace,
            parent: self.parent.as_ref().map(|parent| &*parent.id),
            kind: Some(kind(&self.target)),
            handler: self.handler.as_deref(),
            arguments_digest: digest,
            arguments_bytes: bytes,
            arguments,
            outcome: Some(self.outcome),
            duration_ms: Some(milliseconds(self.took)),
            ..AuditRecord::of(self.time, "call", encoder.actor(&self.actor), name)
        };
        record(self.time, tags, &body)
    }
}

impl AuditEvent {
    /// Converts it for the store, with the current time.
    #[must_use]
    pub fn to_record(&self) -> LogRecord {
        let time = SystemTime::now();
        let action = self.action.name();
        let mut tags = vec![("action", action.into()), ("name", self.object.clone().into())];
        tags.extend(principal_tag(&self.actor));
        let mut encoder = RecordEncoder::default();
        let body = AuditRecord::of(time, action, encoder.actor(&self.actor), Cow::Borrowed(&self.object));
        record(time, tags, &body)
    }
}

fn principal_tag(actor: &AuditActor) -> Option<RecordTag> {
    actor.principal.as_ref().map(|principal| ("principal", principal.to_string().into()))
}

fn record(time: SystemTime, tags: Vec<RecordTag>, body: &AuditRecord<'_>) -> LogRecord {
    // Serializing a record cannot fail.
    LogRecord { time, tags, body: serde_json::to_string(body).unwrap_or_default() }
}

const fn kind(target: &CallTarget) -> &'static str {
    match target {
        CallTarget::Tool(_) => "tool",
        CallTarget::Prompt(_) => "prompt",
        CallTarget::Resource(_) => "resource",
        CallTarget::Completion(_) => "completion",
        CallTarget::Task(_) => "task",
        CallTarget::Function(_) => "function",
    }
}

/// Returns a duration in milliseconds, with a precision of one microsecond.
fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_id_is_recorded_as_digest() {
        let actor = AuditActor { session: Some("3f2a".into()), ..AuditActor::default() };
        let json = serde_json::to_value(RecordEncoder::default().actor(&actor)).expect("JSON");
        assert_eq!(json, serde_json::json!({"session": "10c78973b5c61b1e"}));
    }
}
