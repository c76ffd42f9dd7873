//! Words of identifiers, such as `getUserByID`.

/// Returns `true` if a word starts within an identifier: `get|User`, `HTTP|Server`.
#[must_use]
pub fn starts_word(before: Option<char>, char: char, after: Option<char>) -> bool {
    let Some(before) = before else { return false };
    char.is_uppercase()
        && (before.is_lowercase()
            || before.is_numeric()
            || (before.is_uppercase() && after.is_some_and(char::is_lowercase)))
}

/// Returns `true` if an identifier has several words without separators between them.
#[must_use]
pub fn is_compound(identifier: &str) -> bool {
    let mut before = None;
    let mut chars = identifier.chars().peekable();
    std::iter::from_fn(|| {
        let char = chars.next()?;
        let starts = starts_word(before, char, chars.peek().copied());
        before = Some(char);
        Some(starts)
    })
    .any(|starts| starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_of_several_words_are_compounds() {
        for compound in ["getUser", "HTTPServer", "GitHub", "oauth2Token", "get_userID"] {
            assert!(is_compound(compound), "{compound}");
        }
        for word in ["get_user", "HTTP", "github", "Github", "base64", ""] {
            assert!(!is_compound(word), "{word}");
        }
    }
}
