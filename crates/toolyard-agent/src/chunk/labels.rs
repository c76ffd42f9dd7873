//! Labels each section with the headings that it belongs to.

use std::borrow::Cow;
use std::iter::Peekable;

use super::sections::{TextSection, TextSections};

/// A section that is split into chunks.
#[derive(Debug, Clone)]
pub(super) struct LabelledSection<'a> {
    /// Heading, with those above it that have no text of their own. Empty if there is none.
    pub(super) heading: Cow<'a, str>,
    /// Level of the heading, from 1 to 3; 0 without a heading.
    pub(super) level: u8,
    /// Text of the section.
    pub(super) content: &'a str,
    /// End of the content, in bytes of the whole text.
    pub(super) end: usize,
    /// True if the section needs a chunk even when it is blank.
    pub(super) is_required: bool,
}

/// Iterator over the sections with text, and the last section.
pub(super) struct LabelledSections<'a> {
    text: &'a str,
    sections: Peekable<TextSections<'a>>,
    /// The headings above the current section.
    parents: Vec<TextSection<'a>>,
    /// First of the preceding headings that have neither text nor headings below them.
    empty: Option<EmptyHeading<'a>>,
}

struct EmptyHeading<'a> {
    label: Cow<'a, str>,
    level: u8,
    start: usize,
}

impl<'a> LabelledSections<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, sections: TextSections::new(text).peekable(), parents: Vec::new(), empty: None }
    }

    /// Returns the heading of a section, after the headings directly above it that have no text.
    fn label(&self, section: &TextSection<'a>) -> Cow<'a, str> {
        let without_text = self.parents.iter().rev().take_while(|parent| parent.is_blank()).count();
        match &self.parents[self.parents.len() - without_text..] {
            [] => Cow::Borrowed(section.heading),
            parents => {
                let headings = parents.iter().chain([section]).map(|section| section.heading);
                Cow::Owned(headings.filter(|heading| !heading.is_empty()).collect::<Vec<_>>().join(" > "))
            }
        }
    }

    fn labelled(&mut self, section: &TextSection<'a>, is_last: bool) -> LabelledSection<'a> {
        let heading = self.label(section);
        let TextSection { level, content, end, .. } = *section;
        match self.empty.take() {
            None => LabelledSection { heading, level, content, end, is_required: is_last },
            Some(EmptyHeading { label, level, start }) => LabelledSection {
                heading: Cow::Owned(format!("{label} … {heading}")),
                level,
                content: &self.text[start..end],
                end,
                is_required: is_last,
            },
        }
    }
}

impl<'a> Iterator for LabelledSections<'a> {
    type Item = LabelledSection<'a>;

    fn next(&mut self) -> Option<LabelledSection<'a>> {
        loop {
            let section = self.sections.next()?;
            self.parents.retain(|parent| parent.level < section.level);
            let next_level = self.sections.peek().map(|next| next.level);
            if !section.is_blank() || next_level.is_none() {
                let labelled = self.labelled(&section, next_level.is_none());
                self.parents.push(section);
                return Some(labelled);
            }
            if is_empty(&section, next_level) && self.empty.is_none() {
                let (label, level, start) = (self.label(&section), section.level, section.start);
                self.empty = Some(EmptyHeading { label, level, start });
            }
            self.parents.push(section);
        }
    }
}

/// Returns `true` for a heading without text and without deeper headings below it.
fn is_empty(section: &TextSection<'_>, next_level: Option<u8>) -> bool {
    section.level > 0 && section.is_blank() && next_level.is_some_and(|next| next <= section.level)
}

/// Returns the number of headings without text and without deeper headings below them. Many of them are no headings:
/// comments in a program, or lines of a list.
#[must_use]
pub fn empty_sections(text: &str) -> usize {
    let mut sections = TextSections::new(text).peekable();
    let mut count = 0;
    while let Some(section) = sections.next() {
        count += usize::from(is_empty(&section, sections.peek().map(|next| next.level)));
    }
    count
}
