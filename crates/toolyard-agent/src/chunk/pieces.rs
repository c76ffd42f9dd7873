//! A section that is too long for one piece.

use std::borrow::Cow;

use super::Chunk;
use super::sections::Section;

/// What part of a piece may be given up, so that it ends where something ends: an eighth.
const GIVEN_UP: usize = 8;

/// The pieces of one section.
pub(super) struct Pieces<'a> {
    section: Section<'a>,
    max: usize,
    rest: &'a str,
    continued: usize,
    /// Whether there is to be a piece even if it is blank, and was none yet.
    is_owed: bool,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(section: Section<'a>, max: usize, is_owed: bool) -> Self {
        // However long nothing is, it is one piece at most.
        let rest = if section.is_blank() { "" } else { section.content };
        Self { section, max, rest, continued: 0, is_owed }
    }

    fn chunk(&mut self, content: &'a str) -> Chunk<'a> {
        let Section { heading, level, .. } = self.section;
        let chunk = Chunk { heading: Cow::Borrowed(heading), level, continued: self.continued, content };
        self.continued += 1;
        self.is_owed = false;
        chunk
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Chunk<'a>;

    fn next(&mut self) -> Option<Chunk<'a>> {
        while !self.rest.is_empty() {
            let First { piece, rest, may_be_dropped } = first_piece(self.rest, self.max);
            self.rest = rest;
            if !may_be_dropped || !piece.trim().is_empty() {
                return Some(self.chunk(piece));
            }
        }
        self.is_owed.then(|| self.chunk(""))
    }
}

/// The beginning of a text, and what is left of it.
struct First<'a> {
    piece: &'a str,
    rest: &'a str,
    /// Whether it means nothing if it is blank. Blanks in the middle of a line may be part of a string.
    may_be_dropped: bool,
}

/// The longest beginning of a text that fits and ends at a blank line, else as much as fits.
fn first_piece(text: &str, max: usize) -> First<'_> {
    let Some(end) = end_of(text, max) else { return First { piece: text, rest: "", may_be_dropped: true } };
    // A blank line that begins where the piece would end is one that it can end at, too.
    let reach = (end + 2).min(text.len());
    if let Some(at) = memchr::memmem::rfind(&text.as_bytes()[..reach], b"\n\n") {
        return First { piece: &text[..at], rest: &text[at + 2..], may_be_dropped: true };
    }
    let (piece, rest) = text.split_at(soft_end(text.as_bytes(), end));
    First { piece, rest, may_be_dropped: false }
}

/// Where the first `max` characters end, in bytes; `None` where there are no more than that.
fn end_of(text: &str, max: usize) -> Option<usize> {
    if text.len() <= max {
        return None;
    }
    text.char_indices().nth(max).map(|(end, _)| end)
}

/// Behind the last line, list item or word that ends shortly before `end`: what is cut there can be read, and records of data
/// stay whole. A piece is no longer than it may be, and nothing is lost.
fn soft_end(text: &[u8], end: usize) -> usize {
    // Continuation bytes are none of these: what is found lies between characters.
    let from = end - end / GIVEN_UP;
    let tail = &text[from..end];
    let found = [b'\n', b',', b' '].iter().find_map(|byte| memchr::memrchr(*byte, tail));
    found.map_or(end, |at| from + at + 1)
}
