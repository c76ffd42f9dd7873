//! A text between its headings.

/// How long a heading may be, in bytes: a longer line is no heading, and stays where it is. Labels stand in tables.
const LONGEST_HEADING: usize = 200;

/// What stands under one heading.
#[derive(Debug, Clone, Copy)]
pub(super) struct Section<'a> {
    /// The heading's text. Empty: nothing stands before this section.
    pub(super) heading: &'a str,
    /// From 1 to 3; 0 where there is no heading.
    pub(super) level: u8,
    /// Where the line of the heading begins, in bytes of the whole text.
    pub(super) start: usize,
    /// What follows that line, up to the next heading.
    pub(super) content: &'a str,
    /// Where that ends.
    pub(super) end: usize,
}

impl Section<'_> {
    pub(super) fn is_blank(&self) -> bool {
        self.content.trim().is_empty()
    }
}

/// The sections of a text, one after the other. There is always one.
pub(super) struct Sections<'a> {
    text: &'a str,
    /// The heading of the next section, and where its content begins. `None`: there is none.
    next: Option<(Heading<'a>, usize)>,
}

#[derive(Clone, Copy)]
struct Heading<'a> {
    text: &'a str,
    level: u8,
    start: usize,
}

impl<'a> Sections<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, next: Some((Heading { text: "", level: 0, start: 0 }, 0)) }
    }
}

impl<'a> Iterator for Sections<'a> {
    type Item = Section<'a>;

    fn next(&mut self) -> Option<Section<'a>> {
        let (heading, from) = self.next.take()?;
        let mut line_start = from;
        let mut end = self.text.len();
        while line_start < self.text.len() {
            let rest = &self.text[line_start..];
            let length = memchr::memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |at| at + 1);
            if let Some((text, level)) = heading_of(&rest[..length]) {
                end = line_start;
                self.next = Some((Heading { text, level, start: line_start }, line_start + length));
                break;
            }
            line_start += length;
        }
        let Heading { text, level, start } = heading;
        Some(Section { heading: text, level, start, content: &self.text[from..end], end })
    }
}

/// Whether a text has headings under which there is nothing, not even a deeper heading: comments in a program, or lines of a list.
/// Its chunks would be without them.
#[must_use]
pub fn has_empty_sections(text: &str) -> bool {
    let mut sections = Sections::new(text).peekable();
    while let Some(section) = sections.next() {
        let is_empty = section.level > 0 && section.is_blank();
        if is_empty && sections.peek().is_some_and(|next| next.level <= section.level) {
            return true;
        }
    }
    false
}

/// The text and the level of a line that is a heading: three marks at most, and a blank behind them.
fn heading_of(line: &str) -> Option<(&str, u8)> {
    let level = ["# ", "## ", "### "].iter().position(|marks| line.starts_with(marks))?;
    let is_short = line.len() <= LONGEST_HEADING;
    is_short.then(|| (line.trim_matches(|c: char| c == '#' || c.is_whitespace()), [1, 2, 3][level]))
}
