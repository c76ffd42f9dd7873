//! What is said of a tool.

use std::borrow::Cow;

use http::Method;

use crate::document::Node;

/// The longest description of a tool, in characters: some are pages of a manual, and each costs every conversation.
const LONGEST: usize = 1024;

/// The longest description of an argument, in characters.
const LONGEST_OF_ARGUMENT: usize = 512;

/// The description of an operation's tool: its summary and its description, or its method and path where it has neither.
pub(super) fn of_operation(operation: &Node<'_>, method: &Method, path: &str) -> String {
    let word = |name| operation.text(name).map(str::trim).filter(|text| !text.is_empty());
    let text = match (word("summary"), word("description")) {
        (Some(summary), Some(description)) if !description.starts_with(summary) => {
            let stop = if summary.ends_with(['.', '!', '?', ':']) { "" } else { "." };
            Cow::Owned(format!("{summary}{stop}\n\n{description}"))
        }
        (_, Some(text)) | (Some(text), None) => Cow::Borrowed(text),
        (None, None) => Cow::Owned(format!("{method} {path}")),
    };
    let mut text = cut(&text, LONGEST).into_owned();
    if operation.is("deprecated") {
        text.push_str("\n\nDeprecated.");
    }
    text
}

/// The description of an argument.
pub(super) fn of_argument(text: &str) -> Cow<'_, str> {
    cut(text.trim(), LONGEST_OF_ARGUMENT)
}

/// The text, or its beginning: up to the end of a sentence if there is one in the latter half, or else of a word.
fn cut(text: &str, longest: usize) -> Cow<'_, str> {
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
    fn a_tool_says_what_its_operation_does() {
        let check = |operation: &str, expected: &str| {
            let node = Node::parse(operation).unwrap();
            assert_eq!(of_operation(&node, &Method::GET, "/pets"), expected, "{operation}");
        };
        check("{}", "GET /pets");
        check("summary: List pets", "List pets");
        check("summary: List pets\ndescription: All of them.", "List pets.\n\nAll of them.");
        check("summary: List pets\ndescription: List pets, all of them.", "List pets, all of them.");
        check("summary: ' '\ndescription: x\ndeprecated: true", "x\n\nDeprecated.");
    }

    #[test]
    fn long_words_are_cut_where_a_sentence_ends() {
        let check = |text: &str, expected: &str| assert_eq!(cut(text, 20), expected);
        check("short", "short");
        check("exactly twenty chars", "exactly twenty chars");
        check("One sentence. Another one.", "One sentence. \u{2026}");
        check("words without any stop at all", "words without any \u{2026}");
        check("ééééééééééééééééééééééé", "éééééééééééééééééééé \u{2026}");
    }
}
