//! Regular expressions within limits, and errors that say what to write.

use regex::{Regex, RegexBuilder};

/// Maximum length of a pattern in bytes.
const MAX_PATTERN_LENGTH: usize = 1_000;
/// Maximum size of a compiled pattern, and of the states that a search keeps, in bytes.
const MAX_COMPILED: usize = 1 << 20;
/// Maximum nesting of a pattern.
const MAX_NESTING: u32 = 50;

/// Maximum length of a pattern that an error repeats, in bytes.
const MAX_REPEATED: usize = 100;

/// A pattern of lines.
#[derive(Debug, Clone)]
pub struct LinePattern(Regex);

/// Error of a pattern. A model reads the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The pattern is too long, or too large when it is compiled.
    #[error("grep: the pattern is too large. Look for a shorter text, with small numbers in `{{m,n}}`.")]
    TooLarge,
    /// The pattern is not a regular expression.
    #[error("grep: not a regular expression: {fault}. {hint}")]
    Syntax {
        /// Fault that the engine names.
        fault: String,
        /// Remedy.
        hint: String,
    },
}

/// Faults that have another remedy than to write the text itself.
const HINTS: [(&str, &str); 3] = [
    ("look-around", "Look for a simpler pattern; `context` shows the lines around it."),
    ("backreference", "Look for a simpler pattern; `context` shows the lines around it."),
    ("nested", "Write it with fewer groups."),
];

impl LinePattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// Returns an error that says what to write.
    pub fn new(pattern: &str, ignores_case: bool) -> Result<Self, PatternError> {
        if pattern.len() > MAX_PATTERN_LENGTH {
            return Err(PatternError::TooLarge);
        }
        let compiled = RegexBuilder::new(pattern)
            .case_insensitive(ignores_case)
            .size_limit(MAX_COMPILED)
            .dfa_size_limit(MAX_COMPILED)
            .nest_limit(MAX_NESTING)
            .build();
        compiled.map(Self).map_err(|error| syntax_error(pattern, &error))
    }

    /// Returns the place of the first match that begins at `start` or after it, in bytes.
    pub(super) fn find_at(&self, text: &str, start: usize) -> Option<(usize, usize)> {
        self.0.find_at(text, start).map(|found| (found.start(), found.end()))
    }
}

impl PartialEq for LinePattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for LinePattern {}

fn syntax_error(pattern: &str, error: &regex::Error) -> PatternError {
    let regex::Error::Syntax(text) = error else { return PatternError::TooLarge };
    // The text repeats the pattern with marks below it; the fault is in its last line.
    let fault = text.lines().rev().find_map(|line| line.strip_prefix("error: "));
    let fault = fault.unwrap_or("invalid").to_owned();
    let hint = HINTS.iter().find(|(part, _)| fault.contains(part)).map(|(_, hint)| (*hint).to_owned());
    let literal = || match pattern.len() {
        0..=MAX_REPEATED => format!("To find this text as it stands, write `{}`.", regex::escape(pattern)),
        _ => "Look for a shorter text.".to_owned(),
    };
    PatternError::Syntax { hint: hint.unwrap_or_else(literal), fault }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_patterns_are_explained() {
        let cases = [
            "foo(",
            "[ERROR",
            "*.log",
            "a{2",
            "a{9,1}",
            r"\d+(?=px)",
            r"(a)\1",
            r"\y",
            "(?P<n",
            "a**",
            "]",
            "x{1000}{1000}",
            r"\pL{500}",
        ];
        let nested = "(".repeat(60) + &")".repeat(60);
        let long = "a".repeat(MAX_PATTERN_LENGTH + 1);
        let explain = |pattern: &str| {
            let explained = LinePattern::new(pattern, false)
                .map_or_else(|error| error.to_string(), |_| "valid".to_owned());
            format!("{}: {explained}", pattern.chars().take(20).collect::<String>())
        };
        let explained = cases.into_iter().chain([&*nested, &*long]).map(explain);
        insta::assert_snapshot!(explained.collect::<Vec<_>>().join("\n"));
    }
}
