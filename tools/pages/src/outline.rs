//! Outlines of Markdown: what a page's headings, lists, tables, code and links have become, without its texts.

use std::fmt::Write;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

/// Maximum number of characters of a heading.
const MAX_HEADING: usize = 60;

/// Returns a line for each heading, list, table, quote and block of code, and one for the paragraphs between them.
pub(crate) fn outline(markdown: &str) -> String {
    let mut outline = String::new();
    let mut paragraphs = Block::default();
    let mut block = Block::default();
    let mut kind = None;
    let mut depth = 0_usize;
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        match event {
            Event::Start(tag) => {
                block.count(&tag);
                if depth == 0 {
                    kind = Some(tag);
                }
                depth += 1;
            }
            Event::End(_) => depth -= 1,
            Event::Text(text) | Event::Code(text) => block.text += &text,
            Event::SoftBreak | Event::HardBreak => block.text.push(' '),
            _ => {}
        }
        if depth == 0
            && let Some(kind) = kind.take()
        {
            let ended = std::mem::take(&mut block);
            match kind {
                Tag::Paragraph => paragraphs.add(&ended),
                kind => {
                    paragraphs.write_paragraphs(&mut outline);
                    ended.write(&kind, &mut outline);
                }
            }
        }
    }
    paragraphs.write_paragraphs(&mut outline);
    outline
}

/// The contents of a block.
#[derive(Default)]
struct Block {
    text: String,
    paragraphs: usize,
    items: usize,
    rows: usize,
    links: usize,
}

impl Block {
    fn count(&mut self, tag: &Tag<'_>) {
        // The texts of two blocks within this one are different words.
        if matches!(tag, Tag::Paragraph | Tag::List(_) | Tag::Item | Tag::TableCell) {
            self.text.push(' ');
        }
        match tag {
            Tag::Item => self.items += 1,
            Tag::TableRow => self.rows += 1,
            Tag::Link { .. } => self.links += 1,
            _ => {}
        }
    }

    fn add(&mut self, paragraph: &Self) {
        self.paragraphs += 1;
        self.links += paragraph.links;
        self.text.push(' ');
        self.text += &paragraph.text;
    }

    fn write_paragraphs(&mut self, outline: &mut String) {
        let Self { paragraphs, links, .. } = *self;
        if paragraphs > 0 {
            let words = self.words();
            let _ = writeln!(outline, "{paragraphs} paragraphs, {words} words, {links} links");
        }
        *self = Self::default();
    }

    fn write(&self, kind: &Tag<'_>, outline: &mut String) {
        let Self { items, rows, links, .. } = *self;
        let words = self.words();
        let _ = match kind {
            Tag::Heading { level, .. } => {
                let heading: String = self.text.trim().chars().take(MAX_HEADING).collect();
                writeln!(outline, "{} {heading}", "#".repeat(*level as usize))
            }
            Tag::List(_) => writeln!(outline, "- list: {items} items, {words} words, {links} links"),
            Tag::Table(columns) => {
                writeln!(outline, "| table: {} columns, {rows} rows, {words} words", columns.len())
            }
            Tag::CodeBlock(CodeBlockKind::Fenced(language)) => {
                writeln!(outline, "```{language}: {} lines", self.text.trim().lines().count())
            }
            Tag::BlockQuote(_) => writeln!(outline, "> quote: {words} words, {links} links"),
            _ => writeln!(outline, "other: {words} words"),
        };
    }

    fn words(&self) -> usize {
        self.text.split_whitespace().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_counted() {
        let markdown = "# A *b*\n\none [two](x)\n\nthree\n\n- a\n  - [b](y)\n- c\n\n| h | i |\n| - | - |\n| 1 | 2 |\n\n\
                        ```rust\nfn main() {}\nx\n```\n\n> said\n";
        let expected = "# A b\n2 paragraphs, 3 words, 1 links\n- list: 3 items, 3 words, 1 links\n\
                        | table: 2 columns, 1 rows, 4 words\n```rust: 2 lines\n> quote: 1 words, 0 links\n";
        assert_eq!(outline(markdown), expected);
    }
}
