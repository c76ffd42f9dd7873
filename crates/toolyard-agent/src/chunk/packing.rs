//! Packs many small sections into few chunks.

use std::borrow::Cow;

use super::TextChunk;
use super::labels::LabelledSection;
use super::pieces::SectionPieces;
use super::sections::{TextSection, TextSections};

/// Returns the chunks of a text, each of at most `max` characters, with as many whole sections in each as fit. The
/// headings stay in the content; the label names the first and the last one. Used for texts with so many headings that
/// one chunk per section would make the table of chunks longer than the text.
#[must_use]
pub fn packed_chunks(text: &str, max: usize) -> Vec<TextChunk<'_>> {
    let max = max.max(1);
    let mut packing = SectionPacker { text, max, run: None, packed: Vec::new() };
    for section in TextSections::new(text) {
        packing.add(section);
    }
    packing.finish_run();
    if packing.packed.is_empty() {
        let (heading, content) = (Cow::Borrowed(""), "");
        packing.packed.push(TextChunk { heading, level: 0, continued: 0, start: text.len(), content });
    }
    packing.packed
}

struct SectionPacker<'a> {
    text: &'a str,
    max: usize,
    run: Option<SectionRun<'a>>,
    packed: Vec<TextChunk<'a>>,
}

/// Consecutive sections of one chunk.
struct SectionRun<'a> {
    first: TextSection<'a>,
    last: TextSection<'a>,
    chars: usize,
}

impl<'a> SectionPacker<'a> {
    fn add(&mut self, section: TextSection<'a>) {
        if section.heading.is_empty() && section.is_blank() {
            return;
        }
        let chars = self.text[section.start..section.end].chars().count();
        if let Some(run) = &mut self.run
            && run.last.end == section.start
            && run.chars + chars <= self.max
        {
            run.last = section;
            run.chars += chars;
            return;
        }
        self.finish_run();
        match chars <= self.max {
            true => self.run = Some(SectionRun { first: section, last: section, chars }),
            false => self.packed.extend(SectionPieces::new(unlabelled(section), self.max)),
        }
    }

    fn finish_run(&mut self) {
        let Some(SectionRun { first, last, .. }) = self.run.take() else { return };
        let heading = match first.heading == last.heading || first.heading.is_empty() {
            true => Cow::Borrowed(first.heading),
            false => Cow::Owned(format!("{} … {}", first.heading, last.heading)),
        };
        let content = &self.text[first.start..last.end];
        self.packed.push(TextChunk {
            heading,
            level: first.level,
            continued: 0,
            start: first.start,
            content,
        });
    }
}

/// Returns a section with its own heading only.
const fn unlabelled(section: TextSection<'_>) -> LabelledSection<'_> {
    let TextSection { heading, level, content, end, .. } = section;
    LabelledSection { heading: Cow::Borrowed(heading), level, content, end, is_required: false }
}
