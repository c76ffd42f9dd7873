//! Text that grows within a bound.

use toolyard_core::{Code, ToolError};

/// What is being written. Names are repeated for each value below them, so that a small argument can stand for a large
/// text: beyond the bound nothing more is kept, and the text comes to nothing in the end.
#[derive(Debug)]
pub(crate) struct Out {
    bytes: Vec<u8>,
    largest: usize,
    is_full: bool,
}

/// What a URL can be in all, in bytes: [`http::Uri`] holds no longer one.
const LONGEST_URL: usize = 65_534;

/// What a body may be, in bytes, besides four times its arguments: a text of many short items has more around them than
/// in them.
const LARGEST_BODY: usize = 16 * 1024 * 1024;

impl Out {
    /// A part of a URL.
    pub(crate) const fn url() -> Self {
        Self { bytes: Vec::new(), largest: LONGEST_URL, is_full: false }
    }

    /// A body that is made of so many bytes of arguments.
    pub(crate) const fn body(arguments: usize) -> Self {
        Self { bytes: Vec::new(), largest: largest_body(arguments), is_full: false }
    }

    pub(crate) fn push(&mut self, piece: impl AsRef<[u8]>) {
        let piece = piece.as_ref();
        self.is_full |= piece.len() > self.largest - self.bytes.len();
        if !self.is_full {
            self.bytes.extend_from_slice(piece);
        }
    }

    /// Adds a pair, behind others after `between`.
    pub(crate) fn pair(&mut self, between: &str, name: &str, value: &str) {
        self.next(between, name);
        self.push("=");
        self.push(value);
    }

    /// Adds a text, behind others after `between`.
    pub(crate) fn next(&mut self, between: &str, text: &str) {
        if !self.bytes.is_empty() {
            self.push(between);
        }
        self.push(text);
    }

    /// Ends what would write into nothing.
    pub(crate) fn check(&self) -> Result<(), ToolError> {
        if self.is_full { Err(too_long()) } else { Ok(()) }
    }

    pub(crate) fn finish(self) -> Result<Vec<u8>, ToolError> {
        self.check().map(|()| self.bytes)
    }

    /// What was written, of which each piece was text.
    pub(crate) fn finish_text(self) -> Result<String, ToolError> {
        Ok(String::from_utf8(self.finish()?).unwrap_or_default())
    }
}

/// What a body of so many bytes of arguments may be, in bytes.
pub(crate) const fn largest_body(arguments: usize) -> usize {
    LARGEST_BODY.saturating_add(arguments.saturating_mul(4))
}

pub(crate) fn too_long() -> ToolError {
    ToolError::new(Code::InvalidArguments, "Invalid arguments: they make a request that is too long")
}
