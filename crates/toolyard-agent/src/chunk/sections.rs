//! Splits a text at its headings.

use super::fences::code_block;

/// Maximum length of a heading in bytes. A longer line is not a heading, because labels appear in tables.
const MAX_HEADING_LENGTH: usize = 200;

/// The text under one heading.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextSection<'a> {
    /// Text of the heading. Empty if no heading precedes this section.
    pub(super) heading: &'a str,
    /// Level of the heading, from 1 to 3; 0 without a heading.
    pub(super) level: u8,
    /// Start of the heading's line, in bytes of the whole text.
    pub(super) start: usize,
    /// Text after that line, up to the next heading.
    pub(super) content: &'a str,
    /// End of the content, in bytes of the whole text.
    pub(super) end: usize,
}

impl TextSection<'_> {
    pub(super) fn is_blank(&self) -> bool {
        self.content.trim().is_empty()
    }
}

/// Iterator over the sections of a text. There is always at least one.
pub(super) struct TextSections<'a> {
    text: &'a str,
    /// Heading of the next section, and the start of its content. `None` at the end.
    next: Option<(SectionHeading<'a>, usize)>,
    /// False after a block of code that does not end: then lines that look like fences are none.
    has_fences: bool,
}

#[derive(Clone, Copy)]
struct SectionHeading<'a> {
    text: &'a str,
    level: u8,
    start: usize,
}

impl<'a> TextSections<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, next: Some((SectionHeading { text: "", level: 0, start: 0 }, 0)), has_fences: true }
    }
}

impl<'a> Iterator for TextSections<'a> {
    type Item = TextSection<'a>;

    fn next(&mut self) -> Option<TextSection<'a>> {
        let (heading, from) = self.next.take()?;
        let mut line_start = from;
        let mut end = self.text.len();
        while line_start < self.text.len() {
            let rest = &self.text[line_start..];
            let length = memchr::memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |at| at + 1);
            let block = if self.has_fences { code_block(rest) } else { None };
            match block {
                Some(Some(block)) => {
                    line_start += block;
                    continue;
                }
                Some(None) => self.has_fences = false,
                None => {}
            }
            if let Some((text, level)) = heading_of(&rest[..length]) {
                end = line_start;
                self.next = Some((SectionHeading { text, level, start: line_start }, line_start + length));
                break;
            }
            line_start += length;
        }
        let SectionHeading { text, level, start } = heading;
        Some(TextSection { heading: text, level, start, content: &self.text[from..end], end })
    }
}

/// Returns the text and the level of a heading line: one to three marks, followed by a blank.
fn heading_of(line: &str) -> Option<(&str, u8)> {
    let level = ["# ", "## ", "### "].iter().position(|marks| line.starts_with(marks))?;
    let is_short = line.len() <= MAX_HEADING_LENGTH;
    is_short.then(|| (line.trim_matches(|c: char| c == '#' || c.is_whitespace()), [1, 2, 3][level]))
}
