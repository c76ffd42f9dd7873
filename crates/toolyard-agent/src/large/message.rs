//! The messages that replace a large result.

use std::fmt::Write;

use toolyard_core::Json;

use crate::chunk::{self, TextChunk};
use crate::memory::chunk_keys as keys;
use crate::memory::texts::grouped;

/// Category of chunks and outlines in working memory.
pub const CATEGORY: &str = "tool-result";

pub(super) const NO_SESSION: &str =
    "This call has neither a session nor a key, and therefore no working memory.";
pub(super) const TOO_SLOW: &str = "Working memory took too long.";

/// Maximum number of rows in the table. The outline has all chunks.
const MAX_ROWS: usize = 200;

/// A stored chunk of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPiece {
    /// Heading of the chunk, or its number.
    pub label: String,
    /// Key in working memory.
    pub key: String,
}

/// Returns the labels and keys of the chunks of a text.
#[must_use]
pub fn pieces(base: &str, chunks: &[TextChunk<'_>]) -> Vec<StoredPiece> {
    let piece = |(number, chunk): (usize, &TextChunk<'_>)| StoredPiece {
        label: chunk::label(&chunk.heading, chunk.continued, number).into_owned(),
        key: keys::chunk_key(base, number),
    };
    chunks.iter().enumerate().map(piece).collect()
}

/// Returns the outline that is stored with the chunks.
#[must_use]
pub fn outline(pieces: &[StoredPiece], chunks: &[TextChunk<'_>]) -> String {
    let leads = pieces.iter().zip(chunks).map(|(piece, chunk)| (chunk.level, &*piece.label, &*piece.key));
    chunk::outline(leads)
}

/// Returns the message that the model reads instead of the text.
#[must_use]
pub fn message(tool: &str, text: &str, pieces: &[StoredPiece], index: &str) -> String {
    let (chars, count) = (grouped(text.chars().count()), pieces.len());
    let mut message = format!(
        "Tool result for '{tool}' is large ({chars} chars) and has been split into {count} chunk(s)\n\
         stored in working memory.\n\
         A document outline is stored at key `{index}` — retrieve\n\
         it with get_from_working_memory to navigate the content by section heading.\n\
         Call get_from_working_memory(key) for each relevant chunk BEFORE drawing conclusions.\n\n\
         | # | Heading | Key |\n\
         |---|---------|--------------------------------------------------|\n"
    );
    for (number, StoredPiece { label, key }) in pieces.iter().enumerate().take(MAX_ROWS) {
        // A bar would end the table cell.
        let _ = writeln!(message, "| {number} | {} | `{key}` |", label.replace('|', "\\|"));
    }
    if count > MAX_ROWS {
        let _ = writeln!(message, "\n… and {} more, which the document outline lists.", count - MAX_ROWS);
    }
    if !is_json(text) {
        let lines = match text.lines().count() {
            1 => "1 line".to_owned(),
            lines => format!("{} lines", grouped(lines)),
        };
        let _ = writeln!(
            message,
            "\nThe text has {lines}. With the key of the outline, get_from_working_memory also finds lines in all chunks:\n\
             grep: \"PATTERN\" (with context: 3), or lines: \"120-180\"."
        );
    } else {
        let _ = writeln!(
            message,
            "\nThe result is JSON: query_working_memory(key, expression) with the key of the outline selects from all \
             chunks\nby a JMESPath expression, without reading them."
        );
    }
    message.truncate(message.trim_end().len());
    message
}

/// Returns the notice at the end of a truncated text.
#[must_use]
pub fn truncation(omitted: usize, why: &str) -> String {
    format!("\n[result truncated — {omitted} chars omitted]\nThe rest was not put into working memory. {why}")
}

/// Returns the reason for a result that exceeds even an empty working memory.
pub(super) fn larger_than_memory(bytes: usize, limit: usize) -> String {
    format!("The result has {bytes} bytes, and working memory holds {limit}. Ask the tool for less.")
}

/// Returns `true` if a text is a JSON object or array. Lines of a log may begin like one.
fn is_json(text: &str) -> bool {
    let looks_like_json = matches!(text.trim_start().as_bytes().first(), Some(b'{' | b'['));
    looks_like_json && Json::parse(text.to_owned()).is_ok()
}
