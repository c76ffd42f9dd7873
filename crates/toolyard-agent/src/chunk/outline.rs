//! Which piece has what.

use std::borrow::Cow;
use std::fmt::Write;

/// What a piece is called: by its heading, else by its number.
#[must_use]
pub fn label<'a>(heading: &'a str, continued: usize, number: usize) -> Cow<'a, str> {
    match (heading.trim().is_empty(), continued) {
        (true, _) => Cow::Owned(format!("Part {number}")),
        (false, 0) => Cow::Borrowed(heading),
        (false, continued) => Cow::Owned(format!("{heading} (continued {continued})")),
    }
}

/// The outline of a text: for each piece the level of its heading, its label, and the key that it is kept under.
#[must_use]
pub fn outline<'a>(pieces: impl IntoIterator<Item = (u8, &'a str, &'a str)>) -> String {
    let mut outline = String::from("## Document Outline\n\n");
    for (level, label, key) in pieces {
        let indent = usize::from(level.saturating_sub(1)) * 2;
        let _ = writeln!(outline, "{:indent$}- **{label}** → `{key}`", "");
    }
    outline
}
