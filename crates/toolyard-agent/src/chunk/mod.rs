//! Long texts in pieces that a model can read one by one.
//!
//! - `sections`: a text between its headings;
//! - `pieces`: a section that is too long for one piece;
//! - [`packed`]: many small sections in few pieces;
//! - [`outline`]: which piece has what.
//!
//! A piece is a slice of the text, and pieces are made one at a time: however long a text is, cutting it takes no memory
//! beside it, and time in proportion to its length. Lengths are in characters, so that no piece ends inside of a code point.
//!
//! What of a text is in no piece: the lines of headings, which are the labels of their pieces; the blank line at which
//! a section was cut; and blank lines that would be a piece of their own.

mod outline;
mod packed;
mod pieces;
mod sections;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use outline::{label, outline};
pub use packed::packed;
use pieces::Pieces;
use sections::Sections;
pub use sections::has_empty_sections;

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// The heading that it stands under. Empty: there is none.
    pub heading: Cow<'a, str>,
    /// How deep that heading is, from 1 to 3; 0 where there is none.
    pub level: u8,
    /// How many pieces of the same section come before it.
    pub continued: usize,
    /// The piece itself.
    pub content: &'a str,
}

/// The pieces of a text, each of at most `max` characters: cut at headings (`# `, `## `, `### `), sections that are too long
/// at blank lines, and paragraphs that are too long wherever they must be. There is always one at least: the last section is a piece even if
/// it is blank.
pub fn chunks(text: &str, max: usize) -> impl Iterator<Item = Chunk<'_>> {
    let max = max.max(1);
    let mut sections = Sections::new(text).peekable();
    std::iter::from_fn(move || {
        loop {
            let section = sections.next()?;
            let is_last = sections.peek().is_none();
            if is_last || !section.is_blank() {
                return Some((section, is_last));
            }
        }
    })
    .flat_map(move |(section, is_last)| Pieces::new(section, max, is_last))
}
