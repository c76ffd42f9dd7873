//! Many small sections in few pieces.

use std::borrow::Cow;

use super::Chunk;
use super::pieces::Pieces;
use super::sections::{Section, Sections};

/// The pieces of a text, each of at most `max` characters, with as many whole sections in each as fit. Their headings
/// stay in them, beside the label, which names the first and the last. For texts of so many headings that a table of the
/// sections would be longer than what it leads to.
#[must_use]
pub fn packed(text: &str, max: usize) -> Vec<Chunk<'_>> {
    let max = max.max(1);
    let mut packing = Packing { text, max, run: None, packed: Vec::new() };
    for section in Sections::new(text) {
        packing.add(section);
    }
    packing.finish_run();
    if packing.packed.is_empty() {
        packing.packed.push(Chunk { heading: Cow::Borrowed(""), level: 0, continued: 0, content: "" });
    }
    packing.packed
}

struct Packing<'a> {
    text: &'a str,
    max: usize,
    run: Option<Run<'a>>,
    packed: Vec<Chunk<'a>>,
}

/// Sections that follow each other.
struct Run<'a> {
    first: Section<'a>,
    last: Section<'a>,
    chars: usize,
}

impl<'a> Packing<'a> {
    fn add(&mut self, section: Section<'a>) {
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
            true => self.run = Some(Run { first: section, last: section, chars }),
            false => self.packed.extend(Pieces::new(section, self.max, false)),
        }
    }

    fn finish_run(&mut self) {
        let Some(Run { first, last, .. }) = self.run.take() else { return };
        let heading = match first.heading == last.heading || first.heading.is_empty() {
            true => Cow::Borrowed(first.heading),
            false => Cow::Owned(format!("{} … {}", first.heading, last.heading)),
        };
        let content = &self.text[first.start..last.end];
        self.packed.push(Chunk { heading, level: first.level, continued: 0, content });
    }
}
