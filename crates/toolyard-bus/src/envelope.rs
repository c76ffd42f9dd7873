//! Envelopes: a message with its addresses and headers.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use toolyard_core::random::{hex, random_bytes};

use crate::bus::BusError;
use crate::headers::{self, WIRE_PREFIX};
use crate::message::{BusMessage, is_of_type};
use crate::topic::Topic;
use crate::wire::{self, WireHeaders};

/// Maximum number of headers. Further ones of a received message are ignored.
pub const MAX_HEADERS: usize = 64;

/// A message.
#[derive(Clone, PartialEq, Eq)]
pub struct Envelope {
    /// Id of the message: 32 hexadecimal digits.
    pub message_id: String,
    /// Full name of the type of the body, such as `RockBot.Tools.ToolInvokeRequest`. Compared without regard to case.
    pub message_type: String,
    /// Id that a reply repeats.
    pub correlation_id: Option<String>,
    /// Topic of the reply, as the sender wrote it: see [`Self::reply_topic`].
    pub reply_to: Option<String>,
    /// Name of the sender. Anyone can send any name: it grants no rights.
    pub source: String,
    /// Name of the receiver.
    pub destination: Option<String>,
    /// Time of sending, in milliseconds since 1970; 0 if it is unknown. AMQP transports whole seconds.
    pub timestamp: u64,
    /// Body: JSON in UTF-8.
    pub body: Bytes,
    /// Headers, by the names of [`headers`].
    pub headers: BTreeMap<String, String>,
    /// Trace that the message belongs to.
    pub trace: Option<TraceContext>,
}

/// The trace context of a message (W3C Trace Context).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// `traceparent`, version 00.
    pub parent: String,
    /// `tracestate`.
    pub state: Option<String>,
}

/// The body of a message cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBody {
    /// The message is of another type.
    #[error("the message type is {actual:?} and not {expected}")]
    Type {
        /// Type that is read.
        expected: &'static str,
        /// Type of the message, shortened.
        actual: String,
    },
    /// The body is no such record.
    #[error("the body is no {of}: {problem}")]
    Record {
        /// Type that is read.
        of: &'static str,
        /// Reason, without the content.
        problem: String,
    },
}

// === impl Envelope ===

impl Envelope {
    /// Returns the envelope of a message, with a new id.
    ///
    /// # Errors
    /// If the message cannot be written as JSON, or if the system provides no random bytes.
    pub fn of<M: BusMessage>(message: &M, source: &str) -> Result<Self, BusError> {
        let body = serde_json::to_vec(message).map_err(|error| BusError::invalid(error.to_string()))?;
        Self::with_body(M::TYPE, body.into(), source)
    }

    /// Returns the envelope of a message of another program's type, with a new id.
    ///
    /// # Errors
    /// If the system provides no random bytes.
    pub fn with_body(message_type: &str, body: Bytes, source: &str) -> Result<Self, BusError> {
        Ok(Self {
            message_id: new_id()?,
            message_type: message_type.to_owned(),
            correlation_id: None,
            reply_to: None,
            source: source.to_owned(),
            destination: None,
            timestamp: now_millis(),
            body,
            headers: BTreeMap::new(),
            trace: None,
        })
    }

    /// Sets the id that a reply repeats.
    #[must_use]
    pub fn correlated(self, id: impl Into<String>) -> Self {
        Self { correlation_id: Some(id.into()), ..self }
    }

    /// Sets the topic of the reply.
    #[must_use]
    pub fn replying_to(self, topic: &Topic) -> Self {
        Self { reply_to: Some(topic.as_str().to_owned()), ..self }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.insert(name.to_owned(), value.into());
        self
    }

    /// Sets the trace.
    #[must_use]
    pub fn traced(self, trace: Option<TraceContext>) -> Self {
        Self { trace, ..self }
    }

    /// Returns `true` if the message is of this type.
    #[must_use]
    pub fn is<M: BusMessage>(&self) -> bool {
        is_of_type(&self.message_type, M::TYPE)
    }

    /// Reads the body.
    ///
    /// # Errors
    /// If the message is of another type, or if the body is no such record.
    pub fn read<M: BusMessage>(&self) -> Result<M, InvalidBody> {
        if !self.is::<M>() {
            let actual = self.message_type.chars().take(100).collect();
            return Err(InvalidBody::Type { expected: M::TYPE, actual });
        }
        // A parser that limits the nesting, and whose errors quote names of members at most.
        serde_json::from_slice(&self.body)
            .map_err(|error| InvalidBody::Record { of: M::TYPE, problem: problem_of(&error) })
    }

    /// Returns the topic of the reply.
    ///
    /// # Errors
    /// If the sender wrote a text that is no topic.
    pub fn reply_topic(&self) -> Result<Option<Topic>, crate::topic::InvalidTopic> {
        self.reply_to.as_deref().map(str::parse).transpose()
    }

    /// Returns the time since the message was sent; zero if it is unknown or in the future.
    #[must_use]
    pub fn age(&self) -> Duration {
        match self.timestamp {
            0 => Duration::ZERO,
            sent => Duration::from_millis(now_millis().saturating_sub(sent)),
        }
    }

    /// Returns the size of the message for the limit: its body, and the texts around it.
    #[must_use]
    pub fn size(&self) -> usize {
        let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        let trace = self.trace.as_ref().map_or(0, |trace| trace.parent.len() + optional(&trace.state));
        let texts = [&self.message_id, &self.message_type, &self.source].map(String::len);
        let optionals = [&self.correlation_id, &self.reply_to, &self.destination].map(optional);
        self.body.len() + headers + trace + texts.iter().chain(&optionals).sum::<usize>()
    }

    /// Returns all members but the body as headers, in the form of NATS.
    #[must_use]
    pub fn to_headers(&self) -> Vec<(String, String)> {
        let timestamp = self.timestamp.to_string();
        let headers = wire::write(self, &timestamp);
        headers.map(|(name, value)| (name.to_string(), value.to_owned())).collect()
    }

    /// Reads an envelope in the form of NATS. Headers of others are ignored; absent members are empty.
    pub fn from_headers<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>, body: Bytes) -> Self {
        let mut read = WireHeaders::default();
        headers.into_iter().for_each(|(name, value)| read.add(name, value));
        wire::read(read, body)
    }

    /// Checks that the envelope can be written to the wire as it is.
    ///
    /// # Errors
    /// [`Invalid`](crate::BusErrorKind::Invalid) for a header that would be read as a member of the envelope or has
    /// control characters, and [`TooLarge`](crate::BusErrorKind::TooLarge) above the limit.
    pub fn check(&self, max_bytes: usize) -> Result<(), BusError> {
        if self.size() > max_bytes {
            return Err(BusError::too_large(self.size(), max_bytes));
        }
        if self.headers.len() > MAX_HEADERS {
            return Err(BusError::invalid(format!("a message has at most {MAX_HEADERS} headers")));
        }
        for (name, value) in &self.headers {
            let is_name =
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':');
            if !is_name || name.len() > 100 || is_reserved(name) {
                return Err(BusError::invalid(format!("{name:?} is no name of a header of an envelope")));
            }
            check_text(name, value)?;
        }
        check_text("messageId", &self.message_id)?;
        check_text("messageType", &self.message_type)?;
        check_text("source", &self.source)?;
        check_text("correlationId", self.correlation_id.as_deref().unwrap_or_default())?;
        check_text("replyTo", self.reply_to.as_deref().unwrap_or_default())?;
        check_text("destination", self.destination.as_deref().unwrap_or_default())
    }
}

/// Shows the envelope without its body and the values of its headers.
impl fmt::Debug for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Envelope")
            .field("message_id", &self.message_id)
            .field("message_type", &self.message_type)
            .field("correlation_id", &self.correlation_id)
            .field("reply_to", &self.reply_to)
            .field("source", &self.source)
            .field("bytes", &self.body.len())
            .field("headers", &self.headers.keys())
            .finish_non_exhaustive()
    }
}

/// Returns `true` if the header is a member of the envelope once it has the prefix of the wire.
fn is_reserved(name: &str) -> bool {
    let mut members = headers::wire::ALL.iter().filter_map(|reserved| reserved.strip_prefix(WIRE_PREFIX));
    members.any(|reserved| reserved.eq_ignore_ascii_case(name))
}

/// Texts of AMQP properties have at most 255 bytes, and a line break would begin another header of NATS.
fn check_text(name: &str, text: &str) -> Result<(), BusError> {
    let limit = if name.contains('-') { 8 << 10 } else { 255 };
    match text.len() <= limit && !text.chars().any(char::is_control) {
        true => Ok(()),
        false => Err(BusError::invalid(format!(
            "`{name}` of a message has at most {limit} bytes and no control characters"
        ))),
    }
}

/// Returns the reason why a body is no record, and never its content.
fn problem_of(error: &serde_json::Error) -> String {
    let message = error.to_string();
    // The position is part of it. The messages of records name members, in backquotes; those of the parser quote
    // invalid values of the content.
    match error.classify() {
        serde_json::error::Category::Data
            if !message.starts_with('`') && !message.starts_with("duplicate") =>
        {
            "a value has the wrong type".to_owned()
        }
        _ => message,
    }
}

// === impl TraceContext ===

impl TraceContext {
    /// Returns the trace context of these texts; `None` unless `traceparent` is one of version 00.
    #[must_use]
    pub fn parse(parent: &str, state: Option<&str>) -> Option<Self> {
        let mut parts = parent.split('-');
        let is_hex = |part: Option<&str>, digits: usize| {
            part.is_some_and(|part| {
                let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
                part.len() == digits && part.bytes().all(is_digit)
            })
        };
        let is_version = parts.next() == Some("00");
        let (trace, span) = (parts.next(), parts.next());
        let is_set = |part: Option<&str>| part.is_some_and(|part| part.bytes().any(|byte| byte != b'0'));
        let is_valid = is_version
            && is_hex(trace, 32)
            && is_hex(span, 16)
            && is_hex(parts.next(), 2)
            && parts.next().is_none()
            && is_set(trace)
            && is_set(span);
        let state =
            state.filter(|state| (1..=512).contains(&state.len()) && !state.chars().any(char::is_control));
        is_valid.then(|| Self { parent: parent.to_owned(), state: state.map(str::to_owned) })
    }
}

/// Returns a new id of 32 hexadecimal digits.
///
/// # Errors
/// If the system provides no random bytes.
pub fn new_id() -> Result<String, BusError> {
    let bytes = random_bytes::<16>().map_err(|error| BusError::unavailable("no id", error))?;
    Ok(hex(&bytes))
}

/// Returns the current time in milliseconds since 1970.
#[must_use]
pub fn now_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
