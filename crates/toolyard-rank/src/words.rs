//! Words of texts and of identifiers.

/// Longer words are cut: nobody asks for them, and each is kept.
const LONGEST_WORD: usize = 64;

/// Gives each word of a text to `take`, in lower case. `getUserByID`, `get_user_by_id` and `get user by id` have the same words.
pub(crate) fn each(text: &str, mut take: impl FnMut(&str)) {
    let mut word = String::new();
    let mut chars = text.chars().peekable();
    let mut before = None;
    while let Some(char) = chars.next() {
        if !char.is_alphanumeric() {
            flush(&mut word, &mut take);
            before = None;
            continue;
        }
        if begins(before, char, chars.peek().copied()) {
            flush(&mut word, &mut take);
        }
        if word.len() < LONGEST_WORD {
            word.extend(char.to_lowercase().filter(|lowered| lowered.is_alphanumeric()));
        }
        before = Some(char);
    }
    flush(&mut word, &mut take);
}

fn flush(word: &mut String, take: &mut impl FnMut(&str)) {
    if !word.is_empty() {
        take(word);
        word.clear();
    }
}

/// Whether a word begins within an identifier: `get|User`, `HTTP|Server`, and before and after each letter of a script without blanks.
fn begins(before: Option<char>, char: char, after: Option<char>) -> bool {
    let Some(before) = before else { return false };
    let humps = char.is_uppercase()
        && (before.is_lowercase()
            || before.is_numeric()
            || (before.is_uppercase() && after.is_some_and(char::is_lowercase)));
    humps || is_ideograph(before) || is_ideograph(char)
}

/// Scripts whose words are not told apart by blanks: each letter is a word then.
fn is_ideograph(char: char) -> bool {
    matches!(char, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// The begin of a text, `most` bytes at most.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut words = Vec::new();
        each(text, |word| words.push(word.to_owned()));
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn identifiers_are_split_where_people_see_words() {
        check("getUserByID", "get user by id");
        check("get_user-by.id", "get user by id");
        check("HTTPServer2Go", "http server2 go");
        check("GET /pets/{petId}", "get pets pet id");
        check("k8s oauth2 base64", "k8s oauth2 base64");
        check("", "");
        check("_-_", "");
    }

    #[test]
    fn other_scripts_have_words_too() {
        check("Größe ändern", "größe ändern");
        check("İstanbul", "istanbul");
        check("天气 forecast", "天 气 forecast");
    }

    #[test]
    fn a_text_is_cut_between_letters() {
        assert_eq!(cut("äö", 3), "ä");
        assert_eq!(cut("äö", 4), "äö");
        assert_eq!(cut("äö", 1), "");
        assert_eq!(cut("", 1), "");
    }

    #[test]
    fn a_word_has_an_end() {
        let mut words = Vec::new();
        each(&"x".repeat(10_000), |word| words.push(word.len()));
        assert_eq!(words, [LONGEST_WORD]);
    }
}
