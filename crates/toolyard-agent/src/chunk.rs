//! Splits long texts into chunks that a model can read one by one.
//!
//! - `sections`: splits a text at its headings;
//! - `pieces`: splits a section that is too long for one chunk;
//! - `packing`: packs many small sections into few chunks;
//! - [`outline`]: lists the chunks of a text with their headings and keys.
//!
//! A chunk is a slice of the text, and chunks are produced one at a time: splitting a text of any length takes no
//! additional memory, and time in proportion to its length. Lengths are in characters, so that no chunk ends inside a
//! code point.
//!
//! Chunks leave out the lines of headings, which are the labels of their chunks; the blank line at which a section was
//! split; and blank lines that would be a chunk of their own.

mod outline;
mod packing;
mod pieces;
mod sections;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use outline::{label, outline};
pub use packing::packed_chunks;
use pieces::SectionPieces;
use sections::TextSections;
pub use sections::has_empty_sections;

/// A chunk of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextChunk<'a> {
    /// Heading of the section. Empty if it has none.
    pub heading: Cow<'a, str>,
    /// Level of the heading, from 1 to 3; 0 without a heading.
    pub level: u8,
    /// Number of chunks of the same section before this one.
    pub continued: usize,
    /// The text of the chunk.
    pub content: &'a str,
}

/// Returns the chunks of a text, each of at most `max` characters. Splits at headings (`# `, `## `, `### `), splits
/// sections that are too long at blank lines, and splits paragraphs that are too long at any character. There is always
/// at least one chunk: the last section is a chunk even if it is blank.
pub fn chunks(text: &str, max: usize) -> impl Iterator<Item = TextChunk<'_>> {
    let max = max.max(1);
    let mut sections = TextSections::new(text).peekable();
    std::iter::from_fn(move || {
        loop {
            let section = sections.next()?;
            let is_last = sections.peek().is_none();
            if is_last || !section.is_blank() {
                return Some((section, is_last));
            }
        }
    })
    .flat_map(move |(section, is_last)| SectionPieces::new(section, max, is_last))
}
