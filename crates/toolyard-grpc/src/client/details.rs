//! The details of a status (google.rpc.Status, `grpc-status-details-bin`) as text.
//!
//! Only the standard messages of `google/rpc/error_details.proto` are shown; those for developers (`DebugInfo`) are
//! not.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use prost::Message;
use prost_types::{Any, Duration as ProtoDuration};

/// Maximum number of parts of the text.
const MAX_PARTS: usize = 16;

/// Maximum length of a part, in characters.
const MAX_PART_CHARS: usize = 200;

#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

#[derive(Clone, PartialEq, Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(string, tag = "2")]
    domain: String,
    #[prost(btree_map = "string, string", tag = "3")]
    metadata: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<ProtoDuration>,
}

/// `BadRequest`, whose violations have a field and a description.
#[derive(Clone, PartialEq, Message)]
struct BadRequest {
    #[prost(message, repeated, tag = "1")]
    field_violations: Vec<TextPair>,
}

/// `QuotaFailure`, whose violations have a subject and a description.
#[derive(Clone, PartialEq, Message)]
struct QuotaFailure {
    #[prost(message, repeated, tag = "1")]
    violations: Vec<TextPair>,
}

#[derive(Clone, PartialEq, Message)]
struct TextPair {
    #[prost(string, tag = "1")]
    subject: String,
    #[prost(string, tag = "2")]
    description: String,
}

#[derive(Clone, PartialEq, Message)]
struct PreconditionFailure {
    #[prost(message, repeated, tag = "1")]
    violations: Vec<PreconditionViolation>,
}

#[derive(Clone, PartialEq, Message)]
struct PreconditionViolation {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(string, tag = "2")]
    subject: String,
    #[prost(string, tag = "3")]
    description: String,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceInfo {
    #[prost(string, tag = "1")]
    resource_type: String,
    #[prost(string, tag = "2")]
    resource_name: String,
    #[prost(string, tag = "4")]
    description: String,
}

/// `LocalizedMessage`, with a locale and a message.
#[derive(Clone, PartialEq, Message)]
struct LocalizedMessage {
    #[prost(string, tag = "2")]
    message: String,
}

/// The readable details of a status.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StatusDetails {
    /// The details in words.
    pub(super) parts: Vec<String>,
    /// Time after which a retry makes sense.
    pub(super) retry_delay: Option<Duration>,
}

impl StatusDetails {
    /// Decodes details. What cannot be decoded is left out.
    pub(super) fn decode(bytes: &[u8]) -> Self {
        let mut details = Self::default();
        for detail in RpcStatus::decode(bytes).unwrap_or_default().details {
            details.add(&detail);
        }
        details
    }

    fn add(&mut self, detail: &Any) {
        match detail.type_url.rsplit('/').next().unwrap_or_default() {
            "google.rpc.RetryInfo" => {
                let delay = decode::<RetryInfo>(detail).retry_delay;
                self.retry_delay = delay.and_then(|delay| Duration::try_from(delay).ok());
            }
            "google.rpc.ErrorInfo" => self.add_error_info(&decode(detail)),
            "google.rpc.BadRequest" => {
                let violations = decode::<BadRequest>(detail).field_violations;
                violations.iter().for_each(|it| self.push(format!("`{}`: {}", it.subject, it.description)));
            }
            "google.rpc.QuotaFailure" => {
                let violations = decode::<QuotaFailure>(detail).violations;
                violations
                    .iter()
                    .for_each(|it| self.push(format!("quota of {}: {}", it.subject, it.description)));
            }
            "google.rpc.PreconditionFailure" => {
                let violations = decode::<PreconditionFailure>(detail).violations;
                violations
                    .iter()
                    .for_each(|it| self.push(format!("{} {}: {}", it.kind, it.subject, it.description)));
            }
            "google.rpc.ResourceInfo" => {
                let it: ResourceInfo = decode(detail);
                self.push(format!("{} {}: {}", it.resource_type, it.resource_name, it.description));
            }
            "google.rpc.LocalizedMessage" => self.push(decode::<LocalizedMessage>(detail).message),
            _ => {}
        }
    }

    fn add_error_info(&mut self, info: &ErrorInfo) {
        let mut text = format!("reason {}", info.reason);
        if !info.domain.is_empty() {
            let _infallible = write!(text, " of {}", info.domain);
        }
        for (name, value) in &info.metadata {
            let _infallible = write!(text, ", {name}={value}");
        }
        self.push(text);
    }

    fn push(&mut self, text: String) {
        let text = text.trim().trim_end_matches(':');
        if self.parts.len() < MAX_PARTS && !text.is_empty() {
            self.parts.push(shortened(text, MAX_PART_CHARS));
        }
    }
}

/// Returns a text of at most this number of characters.
pub(super) fn shortened(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn decode<M: Message + Default>(detail: &Any) -> M {
    M::decode(&*detail.value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any(name: &str, message: &impl Message) -> Any {
        Any { type_url: format!("type.googleapis.com/google.rpc.{name}"), value: message.encode_to_vec() }
    }

    #[track_caller]
    fn check(details: Vec<Any>, parts: &[&str], retry_delay: Option<u64>) {
        let decoded = StatusDetails::decode(&RpcStatus { details }.encode_to_vec());
        assert_eq!(decoded.parts, parts);
        assert_eq!(decoded.retry_delay, retry_delay.map(Duration::from_millis));
    }

    #[test]
    fn standard_details_become_text() {
        let metadata = BTreeMap::from([("limit".to_owned(), "3".to_owned())]);
        let info = ErrorInfo { reason: "TOO_MANY".into(), domain: "a.example".into(), metadata };
        let pair = |subject: &str, description: &str| TextPair {
            subject: subject.to_owned(),
            description: description.to_owned(),
        };
        let request = BadRequest { field_violations: vec![pair("a.b", "is empty"), pair("c", "")] };
        let retry = RetryInfo { retry_delay: Some(ProtoDuration { seconds: 1, nanos: 500_000_000 }) };
        let message = LocalizedMessage { message: "zu viele".to_owned() };
        check(vec![any("ErrorInfo", &info)], &["reason TOO_MANY of a.example, limit=3"], None);
        check(vec![any("BadRequest", &request)], &["`a.b`: is empty", "`c`"], None);
        check(vec![any("RetryInfo", &retry)], &[], Some(1500));
        check(vec![any("LocalizedMessage", &message), any("DebugInfo", &message)], &["zu viele"], None);
        let quota = QuotaFailure { violations: vec![pair("project", "used up")] };
        check(vec![any("QuotaFailure", &quota)], &["quota of project: used up"], None);
    }

    #[test]
    fn hostile_details_are_bounded() {
        let negative = RetryInfo { retry_delay: Some(ProtoDuration { seconds: -1, nanos: 0 }) };
        check(vec![any("RetryInfo", &negative)], &[], None);
        let garbage = Any { type_url: "google.rpc.ErrorInfo".into(), value: vec![0xff; 9] };
        check(vec![garbage], &["reason"], None);
        let long = LocalizedMessage { message: "é".repeat(MAX_PART_CHARS + 1) };
        let shown = format!("{}…", "é".repeat(MAX_PART_CHARS));
        check(vec![any("LocalizedMessage", &long); MAX_PARTS + 5], &vec![&*shown; MAX_PARTS], None);
        assert_eq!(StatusDetails::decode(b"\xff\xff"), StatusDetails::default());
    }
}
