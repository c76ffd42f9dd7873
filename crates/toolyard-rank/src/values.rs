//! Values in queries: numbers, addresses and quoted texts, which are arguments of a tool and not its subject.

/// Quotes that begin a value, and those that end it.
const QUOTES: [(char, char); 5] = [('"', '"'), ('\'', '\''), ('“', '”'), ('‘', '’'), ('«', '»')];
/// Endings of ordinal numbers and of times.
const NUMBER_ENDS: [&str; 8] = ["st", "nd", "rd", "th", "am", "pm", "AM", "PM"];
/// Number of digits from which a word with letters is a code: `lmn321` is one, `base64` is not.
const CODE_DIGITS: usize = 3;

/// Splits a text into parts, in their order. `true` marks those that are values.
pub(crate) fn parts(text: &str) -> Vec<(&str, bool)> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, value, after)) = split_quoted(rest) {
        push_tokens(before, &mut parts);
        parts.push((value, true));
        rest = after;
    }
    push_tokens(rest, &mut parts);
    parts
}

/// Splits a text at its first quoted text. Apostrophes within words are no quotes.
fn split_quoted(text: &str) -> Option<(&str, &str, &str)> {
    let is_in_word = |char: Option<char>| char.is_some_and(char::is_alphanumeric);
    let mut before = None;
    for (at, char) in text.char_indices() {
        if !is_in_word(before)
            && let Some((_, close)) = QUOTES.iter().find(|(open, _)| *open == char)
        {
            let (start, rest) = (at + char.len_utf8(), &text[at + char.len_utf8()..]);
            let mut ends = rest
                .match_indices(*close)
                .filter(|(end, quote)| !is_in_word(rest[end + quote.len()..].chars().next()));
            // An open quote ends the search, which would be quadratic otherwise.
            return match ends.next() {
                Some((end, quote)) if end > 0 => {
                    let after = start + end + quote.len();
                    Some((&text[..at], &text[at..after], &text[after..]))
                }
                _ => None,
            };
        }
        before = Some(char);
    }
    None
}

/// Adds the values among the words of a text, and the texts between them.
fn push_tokens<'t>(text: &'t str, parts: &mut Vec<(&'t str, bool)>) {
    let mut rest = text;
    for token in text.split_whitespace().filter(|token| is_value(token)) {
        // A token is a slice of the text, so its offset is the distance of the pointers.
        let (before, value) = rest.split_at(token.as_ptr() as usize - rest.as_ptr() as usize);
        parts.extend([(before, false), (token, true)]);
        rest = &value[token.len()..];
    }
    parts.push((rest, false));
}

fn is_value(token: &str) -> bool {
    if token.contains("://") || token.contains('@') {
        return true;
    }
    let token = token.trim_matches(|char: char| !char.is_alphanumeric());
    let digits = token.bytes().filter(u8::is_ascii_digit).count();
    let is_number = !token.contains(char::is_alphabetic)
        || token.starts_with(|char: char| char.is_ascii_digit())
            && NUMBER_ENDS.iter().any(|end| token.ends_with(end));
    digits > 0 && (is_number || digits >= CODE_DIGITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let parts = parts(text);
        let values: Vec<&str> =
            parts.iter().filter(|(_, is_value)| *is_value).map(|(part, _)| *part).collect();
        assert_eq!(values, expected, "{text}");
        assert_eq!(parts.iter().map(|(part, _)| *part).collect::<String>(), text);
    }

    #[test]
    fn numbers_codes_and_addresses_are_values() {
        check("page 1, limit 10", &["1,", "10"]);
        check("on 2023-10-07 at 7pm, the 5th", &["2023-10-07", "7pm,", "5th"]);
        check("user U123456 of 192.168.95.226", &["U123456", "192.168.95.226"]);
        check(
            "mail ann@example.com from https://example.com/a",
            &["ann@example.com", "https://example.com/a"],
        );
        check("decode base64 as mp3 in 3D, k8s and s3", &[]);
        check("", &[]);
    }

    #[test]
    fn quoted_texts_are_values() {
        check("play 'One Piece' and \"how\"", &["'One Piece'", "\"how\""]);
        check("it's Peter's dog, the users' list", &[]);
        check("“Hello” or «bonjour» or ‘it’s’", &["“Hello”", "«bonjour»", "‘it’s’"]);
        check("an 'open quote", &[]);
        check("''", &[]);
    }
}
