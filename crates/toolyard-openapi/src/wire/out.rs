//! Text with a size limit.

use toolyard_core::{ErrorCode, ToolError};

/// A text under construction. Names are repeated for each value below them, so that a small argument can expand to a
/// large text: beyond the limit nothing is added, and the text fails in the end.
#[derive(Debug)]
pub(crate) struct BoundedText {
    bytes: Vec<u8>,
    max_bytes: usize,
    is_full: bool,
}

/// Maximum length of a URL in [`http::Uri`], in bytes.
const MAX_URL_BYTES: usize = 65_534;

/// Maximum size of a body in bytes, in addition to four times its arguments: a text with many short items has more
/// overhead than content.
const MAX_BODY_BASE_BYTES: usize = 16 * 1024 * 1024;

impl BoundedText {
    /// Creates a part of a URL.
    pub(crate) const fn url() -> Self {
        Self { bytes: Vec::new(), max_bytes: MAX_URL_BYTES, is_full: false }
    }

    /// Creates a body for a number of bytes of arguments.
    pub(crate) const fn body(arguments: usize) -> Self {
        Self { bytes: Vec::new(), max_bytes: max_body_bytes(arguments), is_full: false }
    }

    pub(crate) fn push(&mut self, piece: impl AsRef<[u8]>) {
        let piece = piece.as_ref();
        self.is_full |= piece.len() > self.max_bytes - self.bytes.len();
        if !self.is_full {
            self.bytes.extend_from_slice(piece);
        }
    }

    /// Adds a pair, with `between` before it if the text is not empty.
    pub(crate) fn pair(&mut self, between: &str, name: &str, value: &str) {
        self.next(between, name);
        self.push("=");
        self.push(value);
    }

    /// Adds a text, with `between` before it if the text is not empty.
    pub(crate) fn next(&mut self, between: &str, text: &str) {
        if !self.bytes.is_empty() {
            self.push(between);
        }
        self.push(text);
    }

    /// Fails early if the text exceeds the limit.
    pub(crate) fn check(&self) -> Result<(), ToolError> {
        if self.is_full { Err(too_long()) } else { Ok(()) }
    }

    pub(crate) fn finish(self) -> Result<Vec<u8>, ToolError> {
        self.check().map(|()| self.bytes)
    }

    /// Returns the text.
    pub(crate) fn finish_text(self) -> Result<String, ToolError> {
        Ok(String::from_utf8(self.finish()?).unwrap_or_default())
    }
}

/// Maximum size of a body for a number of bytes of arguments, in bytes.
pub(crate) const fn max_body_bytes(arguments: usize) -> usize {
    MAX_BODY_BASE_BYTES.saturating_add(arguments.saturating_mul(4))
}

pub(crate) fn too_long() -> ToolError {
    ToolError::new(ErrorCode::InvalidArguments, "Invalid arguments: the request would be too long")
}
