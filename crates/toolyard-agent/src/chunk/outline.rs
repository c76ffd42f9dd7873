//! The outline of a text: its headings, and the keys of its chunks.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns the label of a chunk: its heading, or its number if it has none.
#[must_use]
pub fn label<'a>(heading: &'a str, continued: usize, number: usize) -> Cow<'a, str> {
    match (heading.trim().is_empty(), continued) {
        (true, _) => Cow::Owned(format!("Part {number}")),
        (false, 0) => Cow::Borrowed(heading),
        (false, continued) => Cow::Owned(format!("{heading} (continued {continued})")),
    }
}

/// Returns the outline of a text. Each item is the level of a heading, a label, and the key of the stored chunk.
#[must_use]
pub fn outline<'a>(pieces: impl IntoIterator<Item = (u8, &'a str, &'a str)>) -> String {
    let mut outline = String::from("## Document Outline\n\n");
    for (level, label, key) in pieces {
        let indent = usize::from(level.saturating_sub(1)) * 2;
        let _ = writeln!(outline, "{:indent$}- **{label}** → `{key}`", "");
    }
    outline
}
