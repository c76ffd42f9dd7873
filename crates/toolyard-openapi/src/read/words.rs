//! The descriptions of tools and arguments.

use std::borrow::Cow;

use http::Method;

use crate::document::SpecNode;

/// Maximum length of a tool description, in characters: some are pages of a manual, and each takes part in every
/// conversation.
const MAX_TOOL_CHARS: usize = 1024;

/// Maximum length of an argument description, in characters.
const MAX_ARGUMENT_CHARS: usize = 512;

/// Returns the description of an operation's tool: summary and description, or method and path without them.
pub(super) fn operation_description(operation: &SpecNode<'_>, method: &Method, path: &str) -> String {
    let word = |name| operation.text(name).map(str::trim).filter(|text| !text.is_empty());
    let text = match (word("summary"), word("description")) {
        (Some(summary), Some(description)) if !description.starts_with(summary) => {
            let stop = if summary.ends_with(['.', '!', '?', ':']) { "" } else { "." };
            Cow::Owned(format!("{summary}{stop}\n\n{description}"))
        }
        (_, Some(text)) | (Some(text), None) => Cow::Borrowed(text),
        (None, None) => Cow::Owned(format!("{method} {path}")),
    };
    let mut text = truncate_at_sentence(&text, MAX_TOOL_CHARS).into_owned();
    if operation.is_true("deprecated") {
        text.push_str("\n\nDeprecated.");
    }
    text
}

/// Returns the description of an argument.
pub(super) fn argument_description(text: &str) -> Cow<'_, str> {
    truncate_at_sentence(text.trim(), MAX_ARGUMENT_CHARS)
}

/// Truncates a text: at the end of a sentence in its latter half if there is one, or else of a word.
fn truncate_at_sentence(text: &str, longest: usize) -> Cow<'_, str> {
    let Some((end, _)) = text.char_indices().nth(longest) else { return Cow::Borrowed(text) };
    let start = &text[..end];
    let sentence = start.rfind(". ").max(start.rfind(".\n")).filter(|at| *at > end / 2).map(|at| at + 1);
    let word = start.rfind(char::is_whitespace).filter(|at| *at > end / 2);
    Cow::Owned(format!("{} \u{2026}", start[..sentence.or(word).unwrap_or(end)].trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn description_joins_summary_and_description() {
        let check = |operation: &str, expected: &str| {
            let node = SpecNode::parse(operation).unwrap();
            assert_eq!(operation_description(&node, &Method::GET, "/pets"), expected, "{operation}");
        };
        check("{}", "GET /pets");
        check("summary: List pets", "List pets");
        check("summary: List pets\ndescription: All of them.", "List pets.\n\nAll of them.");
        check("summary: List pets\ndescription: List pets, all of them.", "List pets, all of them.");
        check("summary: ' '\ndescription: x\ndeprecated: true", "x\n\nDeprecated.");
    }

    #[test]
    fn long_text_is_truncated_at_a_sentence() {
        let check = |text: &str, expected: &str| assert_eq!(truncate_at_sentence(text, 20), expected);
        check("short", "short");
        check("exactly twenty chars", "exactly twenty chars");
        check("One sentence. Another one.", "One sentence. \u{2026}");
        check("words without any stop at all", "words without any \u{2026}");
        check("ééééééééééééééééééééééé", "éééééééééééééééééééé \u{2026}");
    }
}
