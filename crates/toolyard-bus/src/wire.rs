//! Headers of envelopes on the wire of both brokers.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;

use crate::envelope::{Envelope, MAX_HEADERS, TraceContext};
use crate::headers::{WIRE_PREFIX, wire};

/// The headers of a received message.
#[derive(Debug, Default)]
pub(crate) struct WireHeaders {
    /// Members of the envelope, in the order of [`wire::ALL`].
    members: [Option<String>; wire::ALL.len()],
    /// Headers of the envelope, without the prefix of the wire.
    headers: BTreeMap<String, String>,
}

/// Name of a header on the wire.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WireName<'a> {
    /// A member of the envelope, with the prefix.
    Member(&'static str),
    /// A header of the envelope, without the prefix of the wire.
    Own(&'a str),
}

/// Shows the name as it is on the wire.
impl fmt::Display for WireName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member(name) => f.write_str(name),
            Self::Own(name) => write!(f, "{WIRE_PREFIX}{name}"),
        }
    }
}

/// Returns the headers that both brokers transport: the members that AMQP has no property for, and the envelope's own
/// headers with one more prefix.
pub(crate) fn headers_of(envelope: &Envelope) -> impl Iterator<Item = (WireName<'_>, &str)> {
    let trace = envelope.trace.as_ref();
    let members = [
        (wire::SOURCE, Some(&envelope.source)),
        (wire::DESTINATION, envelope.destination.as_ref()),
        (wire::TRACE_PARENT, trace.map(|trace| &trace.parent)),
        (wire::TRACE_STATE, trace.and_then(|trace| trace.state.as_ref())),
    ];
    let own = envelope.headers.iter().map(|(name, value)| (WireName::Own(name), &**value));
    of_members(members).chain(own)
}

fn of_members<'a, const N: usize>(
    members: [(&'static str, Option<&'a String>); N],
) -> impl Iterator<Item = (WireName<'a>, &'a str)> {
    members.into_iter().filter_map(|(name, value)| Some((WireName::Member(name), &**value?)))
}

/// Returns all members of an envelope but its body as headers, for a wire without properties. [`read`] is the inverse.
/// `timestamp` is that of the envelope as text.
pub(crate) fn write<'a>(
    envelope: &'a Envelope,
    timestamp: &'a String,
) -> impl Iterator<Item = (WireName<'a>, &'a str)> {
    let members = [
        (wire::MESSAGE_ID, Some(&envelope.message_id)),
        (wire::MESSAGE_TYPE, Some(&envelope.message_type)),
        (wire::CORRELATION_ID, envelope.correlation_id.as_ref()),
        (wire::REPLY_TO, envelope.reply_to.as_ref()),
        (wire::TIMESTAMP, Some(timestamp)),
    ];
    of_members(members).chain(headers_of(envelope))
}

/// Reads an envelope from headers. Absent ones are empty members.
pub(crate) fn read(mut headers: WireHeaders, body: Bytes) -> Envelope {
    let timestamp = headers.take(wire::TIMESTAMP).and_then(|timestamp| timestamp.parse().ok());
    let envelope = Envelope {
        message_id: headers.take(wire::MESSAGE_ID).unwrap_or_default(),
        message_type: headers.take(wire::MESSAGE_TYPE).unwrap_or_default(),
        correlation_id: headers.take(wire::CORRELATION_ID),
        reply_to: headers.take(wire::REPLY_TO),
        timestamp: timestamp.unwrap_or_default(),
        body,
        ..empty_envelope()
    };
    headers.fill(envelope)
}

impl WireHeaders {
    /// Adds a header of a message. One without the prefix is the broker's or a stranger's, and is ignored; exactly one
    /// prefix is removed from the others.
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        let Some((prefix, own)) = name.split_at_checked(WIRE_PREFIX.len()) else { return };
        if !prefix.eq_ignore_ascii_case(WIRE_PREFIX) {
            return;
        }
        if let Some(member) = self.member(name) {
            *member = Some(value.to_owned());
        } else if self.headers.len() < MAX_HEADERS {
            self.headers.insert(own.to_owned(), value.to_owned());
        }
    }

    /// Takes a member of the envelope; `None` for an empty one.
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        self.member(name)?.take().filter(|value| !value.is_empty())
    }

    /// Returns the place of a member; `None` for another header.
    fn member(&mut self, name: &str) -> Option<&mut Option<String>> {
        let position = wire::ALL.iter().position(|member| member.eq_ignore_ascii_case(name))?;
        self.members.get_mut(position)
    }

    /// Fills the members of an envelope that both brokers transport as headers.
    pub(crate) fn fill(mut self, envelope: Envelope) -> Envelope {
        let (parent, state) = (self.take(wire::TRACE_PARENT), self.take(wire::TRACE_STATE));
        Envelope {
            source: self.take(wire::SOURCE).unwrap_or_default(),
            destination: self.take(wire::DESTINATION),
            trace: parent.and_then(|parent| TraceContext::parse(&parent, state.as_deref())),
            headers: self.headers,
            ..envelope
        }
    }
}

/// Returns an envelope without any content.
pub(crate) fn empty_envelope() -> Envelope {
    Envelope {
        message_id: String::new(),
        message_type: String::new(),
        correlation_id: None,
        reply_to: None,
        source: String::new(),
        destination: None,
        timestamp: 0,
        body: Bytes::new(),
        headers: BTreeMap::new(),
        trace: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_prefix_is_added_and_removed() {
        let envelope = Envelope { source: "agent".into(), ..empty_envelope() }
            .header("rb-mcp-server", "weather")
            .header("other", "x");
        let headers = || headers_of(&envelope).map(|(name, value)| (name.to_string(), value));
        let names: Vec<_> = headers().map(|(name, _)| name).collect();
        assert_eq!(names, ["rb-source", "rb-other", "rb-rb-mcp-server"]);
        let mut read = WireHeaders::default();
        headers().for_each(|(name, value)| read.add(&name, value));
        read.add("x-death", "ignored");
        read.add("rb", "ignored");
        read.add("räb", "ignored");
        assert_eq!(read.fill(empty_envelope()), envelope);
    }

    #[test]
    fn members_cannot_be_set_by_headers_of_an_envelope() {
        for name in ["source", "Type", "reply-to", "traceparent", "dead-reason"] {
            let envelope = empty_envelope().header(name, "forged");
            assert!(envelope.check(1000).is_err(), "{name}");
        }
    }
}
