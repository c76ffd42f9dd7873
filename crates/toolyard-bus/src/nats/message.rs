//! Envelopes as headers and bodies of NATS.

use async_nats::header::{HeaderMap, HeaderName, HeaderValue, NATS_MESSAGE_ID};
use bytes::Bytes;

use crate::bus::BusError;
use crate::envelope::Envelope;
use crate::wire::{self, WireHeaders, WireName};

/// Returns the headers of an envelope.
///
/// # Errors
/// If a name or a value is no header, which [`Envelope::check`] excludes.
pub(super) fn headers(envelope: &Envelope) -> Result<HeaderMap, BusError> {
    let mut headers = HeaderMap::new();
    let timestamp = envelope.timestamp.to_string();
    for (name, value) in wire::write(envelope, &timestamp) {
        let name = match name {
            WireName::Member(name) => HeaderName::from_static(name),
            WireName::Own(_) => name.to_string().parse().map_err(|_| invalid_name())?,
        };
        headers.insert(name, header_value(value)?);
    }
    Ok(headers)
}

/// Adds the header by which JetStream stores a message once that is sent twice.
pub(super) fn store_once(headers: &mut HeaderMap, envelope: &Envelope) {
    headers.insert(NATS_MESSAGE_ID, envelope.message_id.as_str());
}

/// Returns the envelope of a message. Absent headers are empty members.
pub(super) fn read(headers: Option<&HeaderMap>, body: Bytes) -> Envelope {
    wire::read(wire_headers(headers), body)
}

/// Returns the headers with the prefix of the bus.
pub(super) fn wire_headers(headers: Option<&HeaderMap>) -> WireHeaders {
    let mut read = WireHeaders::default();
    for (name, values) in headers.iter().flat_map(|headers| headers.iter()) {
        if let Some(value) = values.first() {
            read.add(AsRef::<str>::as_ref(name), value.as_str());
        }
    }
    read
}

/// Sets a header that the bus itself adds.
///
/// # Errors
/// If the value is not valid in a header.
pub(super) fn insert(headers: &mut HeaderMap, name: &'static str, value: &str) -> Result<(), BusError> {
    headers.insert(HeaderName::from_static(name), header_value(value)?);
    Ok(())
}

fn header_value(value: &str) -> Result<HeaderValue, BusError> {
    value.parse().map_err(|_| BusError::invalid("the value is not valid in a header of NATS"))
}

fn invalid_name() -> BusError {
    BusError::invalid("the name is not valid as a header of NATS")
}
