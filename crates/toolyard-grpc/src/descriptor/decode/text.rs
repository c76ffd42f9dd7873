//! JSON text under construction.

use std::fmt::{Debug, Display, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use toolyard_net::budget::{BudgetExhausted, ByteBudget, ByteReservation, SMALL_MESSAGE};

use super::{DecodeError, Decoded};

/// A text with a maximum size and a budget, which are checked at each value.
#[derive(Debug, Default)]
pub(crate) struct JsonText {
    text: String,
    max_bytes: usize,
    budget: ByteBudget,
    reserved: ByteReservation,
    /// Number of bytes that the reservation was made for.
    reserved_bytes: usize,
}

/// The limit that a text exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextLimit {
    /// The maximum size, in bytes.
    Size(usize),
    /// The budget of bytes in flight.
    Budget(BudgetExhausted),
}

impl JsonText {
    /// Creates an empty text. More than [`SMALL_MESSAGE`] bytes are reserved from the budget.
    pub(crate) fn new(max_bytes: usize, budget: ByteBudget) -> Self {
        Self { max_bytes, budget, ..Self::default() }
    }

    /// Allocates memory for further bytes, as far as the maximum size allows them.
    pub(super) fn allocate(&mut self, bytes: usize) {
        self.text.reserve(bytes.min(self.max_bytes.saturating_sub(self.text.len())));
    }

    /// Returns an error if the text is too large, or its bytes cannot be reserved.
    pub(super) fn check(&mut self) -> Decoded<()> {
        let length = self.text.len();
        if length > self.max_bytes {
            return Err(DecodeError::beyond(TextLimit::Size(self.max_bytes)));
        }
        if length > self.reserved_bytes.max(SMALL_MESSAGE) {
            // Some more than needed: a text of short values is reserved in few steps.
            let bytes = (length - self.reserved_bytes).max(SMALL_MESSAGE);
            let reserved = self.budget.try_reserve(bytes);
            self.reserved.add(reserved.map_err(|error| DecodeError::beyond(TextLimit::Budget(error)))?);
            self.reserved_bytes += bytes;
        }
        Ok(())
    }

    /// Returns the text, which keeps its reservation.
    pub(crate) fn into_bytes(mut self) -> Bytes {
        self.reserved.shrink(self.text.len());
        self.reserved.hold(self.text.into())
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    pub(crate) const fn len(&self) -> usize {
        self.text.len()
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        self.text.truncate(length);
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Writes the name of a member with its colon.
    pub(super) fn name(&mut self, name: &str) {
        self.quoted(name);
        self.text.push(':');
    }

    pub(super) fn display(&mut self, value: impl Display) {
        let _ = write!(self.text, "{value}");
    }

    pub(super) fn display_quoted(&mut self, value: impl Display) {
        let _ = write!(self.text, "\"{value}\"");
    }

    pub(super) fn double(&mut self, value: f64) {
        match value {
            value if value.is_finite() => self.finite(value),
            value => self.special(value),
        }
    }

    pub(super) fn float(&mut self, value: f32) {
        match value {
            value if value.is_finite() => self.finite(value),
            value => self.special(value.into()),
        }
    }

    /// Writes the shortest text that reads as the same number.
    fn finite(&mut self, value: impl Debug) {
        let _ = write!(self.text, "{value:?}");
        if self.text.ends_with(".0") {
            self.text.truncate(self.text.len() - 2);
        }
    }

    fn special(&mut self, value: f64) {
        self.push(match value {
            f64::INFINITY => "\"Infinity\"",
            f64::NEG_INFINITY => "\"-Infinity\"",
            _ => "\"NaN\"",
        });
    }

    pub(super) fn base64(&mut self, bytes: &[u8]) {
        self.text.push('"');
        STANDARD.encode_string(bytes, &mut self.text);
        self.text.push('"');
    }

    /// Writes a string.
    pub(super) fn quoted(&mut self, text: &str) {
        self.text.push('"');
        let mut start = 0;
        for (at, byte) in text.bytes().enumerate() {
            let escape = match byte {
                b'"' => "\\\"",
                b'\\' => "\\\\",
                b'\n' => "\\n",
                b'\r' => "\\r",
                b'\t' => "\\t",
                0..0x20 => "",
                _ => continue,
            };
            self.text.push_str(&text[start..at]);
            match escape {
                "" => _ = write!(self.text, "\\u{byte:04x}"),
                escape => self.text.push_str(escape),
            }
            start = at + 1;
        }
        self.text.push_str(&text[start..]);
        self.text.push('"');
    }
}
