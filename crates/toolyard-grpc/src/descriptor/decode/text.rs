//! JSON text under construction.

use std::fmt::{Debug, Display, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{DecodeError, Decoded};

/// A text with a limit, which is checked at each value.
pub(super) struct JsonText {
    text: String,
    max_bytes: usize,
}

impl JsonText {
    pub(super) fn with_limit(capacity: usize, max_bytes: usize) -> Self {
        Self { text: String::with_capacity(capacity), max_bytes }
    }

    /// Returns an error if the text is too large.
    pub(super) const fn check(&self) -> Decoded<()> {
        if self.text.len() > self.max_bytes {
            return Err(DecodeError::new("the JSON is too large"));
        }
        Ok(())
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    pub(super) const fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn truncate(&mut self, length: usize) {
        self.text.truncate(length);
    }

    pub(super) fn push(&mut self, text: &str) {
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
