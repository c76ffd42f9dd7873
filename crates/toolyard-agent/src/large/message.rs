//! How a model is told where a result is.

use std::fmt::Write;

use toolyard_core::Json;

use crate::chunk::{self, Chunk};
use crate::memory::chunked as keys;

/// What pieces and outlines are, in working memory.
pub const CATEGORY: &str = "tool-result";

pub(super) const NO_SESSION: &str =
    "This call belongs to no session and shows no key, so that it has no working memory.";
pub(super) const TOO_SLOW: &str = "Working memory took too long.";

/// How many pieces the table shows. The outline has all of them.
const MOST_ROWS: usize = 200;

/// A piece, as it is called and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Its heading, or its number.
    pub label: String,
    /// Its key.
    pub key: String,
}

/// What the pieces of a text are called.
#[must_use]
pub fn pieces(base: &str, chunks: &[Chunk<'_>]) -> Vec<Piece> {
    let piece = |(number, chunk): (usize, &Chunk<'_>)| Piece {
        label: chunk::label(&chunk.heading, chunk.continued, number).into_owned(),
        key: keys::chunk(base, number),
    };
    chunks.iter().enumerate().map(piece).collect()
}

/// The outline that is kept beside the pieces.
#[must_use]
pub fn outline(pieces: &[Piece], chunks: &[Chunk<'_>]) -> String {
    let leads = pieces.iter().zip(chunks).map(|(piece, chunk)| (chunk.level, &*piece.label, &*piece.key));
    chunk::outline(leads)
}

/// What the model reads in the place of a text.
#[must_use]
pub fn message(tool: &str, text: &str, pieces: &[Piece], index: &str) -> String {
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
    for (number, Piece { label, key }) in pieces.iter().enumerate().take(MOST_ROWS) {
        // A bar would end the cell.
        let _ = writeln!(message, "| {number} | {} | `{key}` |", label.replace('|', "\\|"));
    }
    if count > MOST_ROWS {
        let _ = writeln!(message, "\n… and {} more, which the document outline lists.", count - MOST_ROWS);
    }
    if is_json(text) {
        let _ = writeln!(
            message,
            "\nThe result is JSON: query_working_memory(key, expression) with the key of the outline selects from all \
             chunks\nby a JMESPath expression, without reading them."
        );
    }
    message.truncate(message.trim_end().len());
    message
}

/// What stands behind a text of which the rest is gone.
#[must_use]
pub fn truncation(omitted: usize, why: &str) -> String {
    format!("\n[result truncated — {omitted} chars omitted]\nThe rest was not put into working memory. {why}")
}

/// Why a result is not put into a memory that could not hold it even if it were empty.
pub(super) fn larger_than_memory(bytes: usize, limit: usize) -> String {
    format!("The result has {bytes} bytes, and working memory holds {limit}. Ask the tool for less.")
}

/// Whether a text is an object or an array. Lines of a log may begin as one does.
fn is_json(text: &str) -> bool {
    let looks_so = matches!(text.trim_start().as_bytes().first(), Some(b'{' | b'['));
    looks_so && Json::parse(text.to_owned()).is_ok()
}

/// A number with a blank between thousands.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}
