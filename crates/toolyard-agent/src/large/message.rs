//! The messages that replace a large result.

use std::fmt::Write;
use std::sync::Arc;

use super::shape;
use crate::chunk::{self, TextChunk};
use crate::memory::chunk_keys as keys;
use crate::memory::texts::grouped;

/// Category of chunks and outlines in working memory.
pub const CATEGORY: &str = "tool-result";

pub(super) const TOO_SLOW: &str = "Working memory took too long.";

pub(super) const NO_READER: &str =
    "This caller does not have the tools of working memory. Ask the tool for less.";

/// Maximum number of rows in the table. The outline has all chunks.
const MAX_ROWS: usize = 200;

/// Beginning of the table, after an empty line.
const TABLE_HEAD: &str =
    "\n| # | Heading | Key |\n|---|---------|--------------------------------------------------|\n";

/// Length of the message at which rows are left out, in characters, even if there is less room.
const MIN_CHARS: usize = 1200;

/// Number of chunks up to which all keys are whole, even if an id makes them long.
const MAX_LONG_KEYS: usize = 3;

/// Note of a reference beside a message.
pub(super) const BRIEF_NOTE: &str =
    "The result is too large, and is in working memory. `key` is the key of its outline.";

/// Stands for the common beginning of keys. No key begins like this.
pub(crate) const ABBREVIATION: &str = "…";

/// Characters of the lines after the table.
const LINES_AFTER_TABLE: usize = 250;

/// The line for a model that sees the text of a result and its structured content.
pub(super) const STRUCTURE_IS_WHOLE: &str =
    "\n\nThe structured content beside this text is the whole result.";

/// A stored chunk of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPiece {
    /// Heading of the chunk, or its number.
    pub label: String,
    /// Key in working memory, perhaps abbreviated.
    pub key: String,
}

/// The keys of a result as a model reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisibleKeys {
    /// Common beginning of the keys.
    pub base: String,
    /// True if the common beginning has an id, which costs many tokens.
    pub has_id: bool,
}

impl VisibleKeys {
    /// Returns the beginning of the keys in the table and in the outline of a result with this number of chunks.
    fn listed_base(&self, chunks: usize) -> &str {
        if self.has_id && chunks > MAX_LONG_KEYS { ABBREVIATION } else { &self.base }
    }

    /// Returns the sentence that explains abbreviated keys; `None` if the keys are whole.
    fn legend(&self, chunks: usize) -> Option<String> {
        let is_abbreviated = self.listed_base(chunks) == ABBREVIATION;
        is_abbreviated.then(|| {
            let [short, long] = [ABBREVIATION, &self.base].map(|base| keys::chunk_key(base, 0));
            format!("Keys are abbreviated: write `{long}` for `{short}`, and so on.")
        })
    }
}

/// Returns the labels and keys of the chunks of a text.
#[must_use]
pub fn pieces(visible: &VisibleKeys, chunks: &[TextChunk<'_>]) -> Vec<StoredPiece> {
    let base = visible.listed_base(chunks.len());
    let piece = |(number, chunk): (usize, &TextChunk<'_>)| StoredPiece {
        label: chunk::label(&chunk.heading, chunk.continued, number).into_owned(),
        key: keys::chunk_key(base, number),
    };
    chunks.iter().enumerate().map(piece).collect()
}

/// Returns the outline that is stored with the chunks.
#[must_use]
pub fn outline(visible: &VisibleKeys, pieces: &[StoredPiece], chunks: &[TextChunk<'_>]) -> String {
    let leads = pieces.iter().zip(chunks).map(|(piece, chunk)| (chunk.level, &*piece.label, &*piece.key));
    let outline = chunk::outline(leads);
    match visible.legend(pieces.len()) {
        Some(legend) => format!("{outline}\n{legend}\n"),
        None => outline,
    }
}

/// A result in working memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredText {
    /// Published name of the tool.
    pub tool: Arc<str>,
    /// Length of the result in characters.
    pub chars: usize,
    /// Number of its lines.
    pub lines: usize,
    /// Shape of the result, if it is JSON that can be queried.
    pub shape: Option<String>,
    /// Its chunks.
    pub pieces: Vec<StoredPiece>,
    /// Key of the outline.
    pub index: String,
    /// Sentence that explains the keys of the chunks, if they are abbreviated.
    pub legend: Option<String>,
}

impl StoredText {
    /// Describes a text and its chunks. A longer text than `max_query` bytes cannot be queried.
    #[must_use]
    pub fn new(
        tool: Arc<str>,
        text: &str,
        pieces: Vec<StoredPiece>,
        visible: &VisibleKeys,
        max_query: usize,
    ) -> Self {
        Self {
            index: keys::index_key(&visible.base),
            legend: visible.legend(pieces.len()),
            tool,
            chars: text.chars().count(),
            lines: text.lines().count(),
            shape: (text.len() <= max_query).then(|| shape::shape(text)).flatten(),
            pieces,
        }
    }

    /// Returns the message that the model reads instead of the text. It has as many rows as fit `room` characters, or
    /// 1,200 if that is more.
    #[must_use]
    pub fn message(&self, room: usize) -> String {
        self.message_about(&format!("Tool result for '{}' is large", self.tool), room)
    }

    /// Returns the message that begins with `subject`, such as `The page is large`.
    #[must_use]
    pub fn message_about(&self, subject: &str, room: usize) -> String {
        let Self { pieces, index, .. } = self;
        let (chars, count) = (grouped(self.chars), pieces.len());
        let mut message = format!(
            "{subject} ({chars} chars) and has been split into {count} chunk(s)\n\
             stored in working memory.\n\
             A document outline is stored at key `{index}` — retrieve\n\
             it with get_from_working_memory to navigate the content by section heading.\n\
             Call get_from_working_memory(key) for each relevant chunk BEFORE drawing conclusions.\n"
        );
        if let Some(legend) = &self.legend {
            let _ = writeln!(message, "{legend}");
        }
        message.push_str(TABLE_HEAD);
        let (mut rows, room) = (0, room.max(MIN_CHARS));
        let of_shape = self.shape.as_ref().map_or(0, |shape| shape.chars().count());
        let leaves_shape = message.chars().count() + LINES_AFTER_TABLE + of_shape <= room;
        let after = LINES_AFTER_TABLE + if leaves_shape { of_shape } else { 0 };
        for (number, StoredPiece { label, key }) in pieces.iter().enumerate().take(MAX_ROWS) {
            // A bar would end the table cell.
            let row = format!("| {number} | {} | `{key}` |\n", label.replace('|', "\\|"));
            if message.chars().count() + row.chars().count() + after > room {
                break;
            }
            message.push_str(&row);
            rows += 1;
        }
        if rows < count {
            let _ = writeln!(message, "\n… and {} more, which the document outline lists.", count - rows);
        }
        let _ = match &self.shape {
            Some(_) if !leaves_shape => write!(
                message,
                "\nThe result is JSON: query_working_memory(key, expression) with the key of the outline selects from all \
                 chunks\nby a JMESPath expression, without reading them."
            ),
            Some(shape) => write!(
                message,
                "\nThe result is JSON: query_working_memory(key, expression) with the key of the outline selects from all \
                 chunks\nby a JMESPath expression, without reading them. Its shape:\n{shape}"
            ),
            None => write!(
                message,
                "\nThe text has {}. With the key of the outline, get_from_working_memory also finds lines in all chunks:\n\
                 grep: \"PATTERN\" (with context: 3), or lines: \"120-180\".",
                count_of_lines(self.lines)
            ),
        };
        message.truncate(message.trim_end().len());
        message
    }

    /// Returns the note in a reference that replaces structured content.
    #[must_use]
    pub fn note(&self) -> String {
        let keys = match &*self.pieces {
            [first, .., last] if self.legend.is_some() => {
                let [first, last] = [first, last].map(|piece| piece.key.trim_start_matches(ABBREVIATION));
                format!("chunks, whose keys end with `{first}` to `{last}` instead of `-index`")
            }
            [only] => format!("a chunk with the key `{}`", only.key),
            [first, .., last] => format!("chunks with the keys `{}` to `{}`", first.key, last.key),
            [] => "no chunks".to_owned(),
        };
        let query = self.shape.as_ref().map_or_else(String::new, |shape| {
            format!(
                " It is JSON: query_working_memory(key, expression) selects from all of it by a JMESPath expression. Its \
                 shape: {shape}"
            )
        });
        format!(
            "The result is too large, and is in working memory in {keys}. Read the relevant ones with \
             get_from_working_memory(key). `key` is the key of their outline.{query}"
        )
    }
}

fn count_of_lines(lines: usize) -> String {
    match lines {
        1 => "1 line".to_owned(),
        lines => format!("{} lines", grouped(lines)),
    }
}

/// Returns the note in a reference to a text that stays in the result, but was not stored.
pub(super) fn text_is_whole(why: &str) -> String {
    format!("The text of this result is all of it. {why}")
}

/// Returns the notice at the end of a truncated text.
#[must_use]
pub fn truncation(omitted: usize, why: &str) -> String {
    format!("\n[result truncated — {omitted} chars omitted]\nThe rest was not put into working memory. {why}")
}

/// Returns the notice at the end of a truncated result of a tool of working memory.
pub(super) fn entry_truncation(omitted: usize) -> String {
    format!(
        "\n[result truncated — {omitted} chars omitted]\nRead a part of it: get_from_working_memory with `lines` or `grep`, or \
         query_working_memory for JSON."
    )
}

/// Returns the reason for a result that exceeds even an empty working memory.
pub(super) fn larger_than_memory(bytes: usize, limit: usize) -> String {
    format!("The result has {bytes} bytes, and working memory holds {limit}. Ask the tool for less.")
}
