//! The descriptions of tools and arguments.

use std::borrow::Cow;

use http::Method;
use toolyard_core::text::truncate_at_sentence;

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
}
