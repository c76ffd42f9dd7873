//! Comments of declarations as descriptions.

use std::collections::HashMap;

use super::raw::RawComment;

/// The comments of a file, by path.
pub(super) struct FileComments<'c>(HashMap<&'c [i32], (&'c str, &'c str)>);

/// Maximum length of a comment that is read, in bytes. Descriptions are shorter.
const MAX_COMMENT_BYTES: usize = 8 * 1024;

impl<'c> FileComments<'c> {
    pub(super) fn new(comments: &'c [RawComment<'_>]) -> Self {
        let text = |comment: &'c RawComment<'_>| (comment.leading, comment.trailing);
        Self(comments.iter().map(|comment| (comment.path.as_slice(), text(comment))).collect())
    }

    /// Returns the comment of a declaration: the leading one, or else the trailing one. The path is that of the
    /// surrounding declaration with a step further.
    pub(super) fn at(&self, outer: &[i32], step: &[i32]) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let comment = match step {
            [] => self.0.get(outer),
            step => self.0.get([outer, step].concat().as_slice()),
        };
        let Some((leading, trailing)) = comment else { return String::new() };
        let text = text_of(leading);
        if text.is_empty() { text_of(trailing) } else { text }
    }
}

/// Returns a comment as text: without the margin, notes for tools, and the targets of references.
fn text_of(comment: &str) -> String {
    let end = (0..=comment.len().min(MAX_COMMENT_BYTES)).rev().find(|end| comment.is_char_boundary(*end));
    let comment = &comment[..end.unwrap_or_default()];
    let mut out = String::with_capacity(comment.len());
    let mut is_internal = false;
    for line in comment.lines() {
        let line = line.strip_prefix(' ').unwrap_or(line).trim_end();
        // Internal comments (AIP-192) and instructions for linters and generators.
        is_internal |= line.trim_start().starts_with("(--");
        if is_internal {
            is_internal = !line.ends_with("--)");
            continue;
        }
        let word = line.trim_start();
        if ["buf:lint:", "@exclude", "protolint:"].iter().any(|note| word.starts_with(note)) {
            continue;
        }
        out.push_str(line);
        out.push('\n');
    }
    let out = out.trim();
    if out.contains("][") { without_targets(out) } else { out.to_owned() }
}

/// Returns a text with `[Topic][google.pubsub.v1.Topic]` as `Topic`.
fn without_targets(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        out.push_str(before);
        let reference = link.split_once("][").and_then(|(label, target)| {
            let (target, after) = target.split_once(']')?;
            let is_name = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
            let is_plain = !label.contains(['[', ']', '\n']);
            (is_plain && target.chars().all(is_name)).then_some((label, after))
        });
        match reference {
            Some((label, after)) => {
                out.push_str(label);
                rest = after;
            }
            None => {
                out.push('[');
                rest = link;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margin_notes_and_targets_are_left_out() {
        let check = |comment: &str, expected: &str| assert_eq!(text_of(comment), expected, "{comment:?}");
        check(" One line.\n", "One line.");
        check(" First.\n   indented\n\n Last. \n", "First.\n  indented\n\nLast.");
        check(" A.\n (-- api-linter: x\n     y --)\n B.\n", "A.\nB.");
        check(" A.\n buf:lint:ignore X\n @exclude no\n", "A.");
        check(
            " Lists [topics][google.Topic] of [a] [b](c), [x][y z].",
            "Lists topics of [a] [b](c), [x][y z].",
        );
        check(" [Open][", "[Open][");
        check("", "");
    }
}
