//! Texts for models and people.

use std::borrow::Cow;

/// Bounds of the texts that service descriptions define for tools: each takes part in every conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextBounds {
    /// Maximum length of a tool's description, in characters.
    pub tool_chars: usize,
    /// Maximum length of an argument's description, in characters.
    pub argument_chars: usize,
    /// Maximum size of an example as JSON, in bytes.
    pub example_bytes: usize,
}

impl TextBounds {
    /// The bounds of a gateway without configuration.
    pub const DEFAULT: Self = Self { tool_chars: 1024, argument_chars: 512, example_bytes: 400 };
}

impl Default for TextBounds {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Truncates a text: at the end of a sentence in its latter half if there is one, or else of a word.
#[must_use]
pub fn truncate_at_sentence(text: &str, max_chars: usize) -> Cow<'_, str> {
    if text.len() <= max_chars {
        return Cow::Borrowed(text);
    }
    let Some((end, _)) = text.char_indices().nth(max_chars) else { return Cow::Borrowed(text) };
    let start = &text[..end];
    let sentence = start.rfind(". ").max(start.rfind(".\n")).filter(|at| *at > end / 2).map(|at| at + 1);
    let word = start.rfind(char::is_whitespace).filter(|at| *at > end / 2);
    Cow::Owned(format!("{} \u{2026}", start[..sentence.or(word).unwrap_or(end)].trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
