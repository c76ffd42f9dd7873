//! Splits long texts into chunks that a model can read one by one.
//!
//! - `sections`: splits a text at its headings;
//! - `labels`: labels each section with the headings that it belongs to;
//! - `pieces`: splits a section that is too long for one chunk;
//! - `packing`: packs many small sections into few chunks;
//! - [`outline`]: lists the chunks of a text with their headings and keys.
//!
//! A chunk is a slice of the text, and chunks are produced one at a time: splitting a text of any length takes no
//! additional memory, and time in proportion to its length. Lengths are in characters, so that no chunk ends inside a
//! code point.
//!
//! Chunks leave out the lines of headings, which are the labels of their chunks; the blank line at which a section was
//! split; and blank lines that would be a chunk of their own. [`TextChunk::start`] tells where these are.

mod fences;
mod labels;
mod outline;
mod packing;
mod pieces;
mod sections;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use labels::LabelledSections;
pub use labels::empty_sections;
pub use outline::{label, outline};
pub use packing::packed_chunks;
use pieces::SectionPieces;

/// A chunk of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextChunk<'a> {
    /// Heading of the section, after those headings above it that have no text of their own, such as `Fruits > Prices`.
    /// Empty if it has none.
    pub heading: Cow<'a, str>,
    /// Level of the heading, from 1 to 3; 0 without a heading.
    pub level: u8,
    /// Number of chunks of the same section before this one.
    pub continued: usize,
    /// Start of the content, in bytes of the whole text.
    pub start: usize,
    /// The text of the chunk.
    pub content: &'a str,
}

impl TextChunk<'_> {
    /// Returns the end of the content, in bytes of the whole text.
    #[must_use]
    pub const fn end(&self) -> usize {
        self.start + self.content.len()
    }
}

/// Returns the chunks of a text, each of at most `max` characters. Splits at headings (`# `, `## `, `### `), splits
/// sections that are too long at blank lines, and splits paragraphs that are too long at any character. There is always
/// at least one chunk: the last section is a chunk even if it is blank.
///
/// A heading without text is a part of the labels of the sections below it. If there are none, it is a part of the chunk
/// that follows, with its line.
pub fn chunks(text: &str, max: usize) -> impl Iterator<Item = TextChunk<'_>> {
    let max = max.max(1);
    LabelledSections::new(text).flat_map(move |section| SectionPieces::new(section, max))
}
