//! Splits a section that is too long for one chunk.

use super::TextChunk;
use super::labels::LabelledSection;

/// Part of a chunk (an eighth) that may stay unused so that the chunk ends at the end of a line, an item or a word.
const UNUSED_FRACTION: usize = 8;

/// Iterator over the chunks of one section.
pub(super) struct SectionPieces<'a> {
    section: LabelledSection<'a>,
    max: usize,
    rest: &'a str,
    continued: usize,
}

impl<'a> SectionPieces<'a> {
    pub(super) fn new(section: LabelledSection<'a>, max: usize) -> Self {
        // Blank content of any length is one chunk at most.
        let rest = if section.content.trim().is_empty() { "" } else { section.content };
        Self { section, max, rest, continued: 0 }
    }

    fn chunk(&mut self, start: usize, content: &'a str) -> TextChunk<'a> {
        let (heading, level) = (self.section.heading.clone(), self.section.level);
        let chunk = TextChunk { heading, level, continued: self.continued, start, content };
        self.continued += 1;
        // Further chunks are returned only if they are not blank.
        self.section.is_required = false;
        chunk
    }
}

impl<'a> Iterator for SectionPieces<'a> {
    type Item = TextChunk<'a>;

    fn next(&mut self) -> Option<TextChunk<'a>> {
        while !self.rest.is_empty() {
            let start = self.section.end - self.rest.len();
            let FirstPiece { piece, rest, can_be_dropped } = first_piece(self.rest, self.max);
            self.rest = rest;
            if !can_be_dropped || !piece.trim().is_empty() {
                return Some(self.chunk(start, piece));
            }
        }
        self.section.is_required.then(|| self.chunk(self.section.end, ""))
    }
}

/// The beginning of a text, and the rest of it.
struct FirstPiece<'a> {
    piece: &'a str,
    rest: &'a str,
    /// True if the piece can be left out when it is blank. Blanks in the middle of a line may be part of a string.
    can_be_dropped: bool,
}

/// Returns the longest beginning of a text that fits and ends at a blank line, or else the longest that fits.
fn first_piece(text: &str, max: usize) -> FirstPiece<'_> {
    let Some(end) = end_of(text, max) else {
        return FirstPiece { piece: text, rest: "", can_be_dropped: true };
    };
    // The piece can also end at a blank line that begins right behind it.
    let search_end = (end + 2).min(text.len());
    if let Some(at) = memchr::memmem::rfind(&text.as_bytes()[..search_end], b"\n\n") {
        return FirstPiece { piece: &text[..at], rest: &text[at + 2..], can_be_dropped: true };
    }
    let (piece, rest) = text.split_at(soft_end(text.as_bytes(), end));
    FirstPiece { piece, rest, can_be_dropped: false }
}

/// Returns the end of the first `max` characters in bytes; `None` if the text has no more than that.
fn end_of(text: &str, max: usize) -> Option<usize> {
    if text.len() <= max {
        return None;
    }
    text.char_indices().nth(max).map(|(end, _)| end)
}

/// Returns the position after the last line, list item or word that ends shortly before `end`, or else `end`. The cut
/// stays readable, records of data stay whole, and no text is lost.
fn soft_end(text: &[u8], end: usize) -> usize {
    // Continuation bytes never match, so the position is a character boundary.
    let from = end - end / UNUSED_FRACTION;
    let tail = &text[from..end];
    let end_at = [b'\n', b',', b' '].iter().find_map(|byte| memchr::memrchr(*byte, tail));
    end_at.map_or(end, |at| from + at + 1)
}
