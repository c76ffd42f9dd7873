//! Words of texts and of identifiers.

use toolyard_core::identifier_words::starts_word;

/// Maximum length of a word in bytes. Longer words are cut, because they are never searched for and use memory.
const MAX_WORD_BYTES: usize = 64;

/// A token of a text.
pub(crate) enum TextToken<'t> {
    /// A word in lower case.
    Word(&'t str),
    /// An identifier that consists of several words, such as `getUserByID`, as it is written.
    Compound(&'t str),
}

/// Passes each word of a text in lower case to `take`. `getUserByID`, `get_user_by_id` and `get user by id` have the
/// same words. Text in a script without spaces is passed as bigrams of letters.
pub(crate) fn each_word(text: &str, mut take: impl FnMut(&str)) {
    each_token(text, |token| match token {
        TextToken::Word(word) => take(word),
        TextToken::Compound(_) => {}
    });
}

/// Passes the words of a text to `take` as [`each_word`] does, and its compounds, except those that are cut as words.
pub(crate) fn each_token(text: &str, mut take: impl FnMut(TextToken<'_>)) {
    let mut word = String::new();
    let mut letters = CharacterBigrams::default();
    let mut chars = text.char_indices().peekable();
    let mut before = None;
    // The start of the identifier, and whether it has several words.
    let (mut start, mut is_compound) = (0, false);
    while let Some((at, char)) = chars.next() {
        let is_ideograph = !char.is_ascii() && is_ideograph(char);
        if is_ideograph || !char.is_alphanumeric() {
            flush(&mut word, &mut take);
            if is_compound && at - start <= MAX_WORD_BYTES {
                take(TextToken::Compound(&text[start..at]));
            }
            (before, is_compound) = (None, false);
            if is_ideograph {
                letters.push(char, &mut take);
            } else {
                letters.end(&mut take);
            }
            continue;
        }
        letters.end(&mut take);
        if before.is_none() {
            start = at;
        } else if starts_word(before, char, chars.peek().map(|(_, next)| *next)) {
            flush(&mut word, &mut take);
            is_compound = true;
        }
        if word.len() < MAX_WORD_BYTES {
            if char.is_ascii() {
                word.push(char.to_ascii_lowercase());
            } else {
                word.extend(char.to_lowercase().filter(|lowered| lowered.is_alphanumeric()));
            }
        }
        before = Some(char);
    }
    flush(&mut word, &mut take);
    if is_compound && text.len() - start <= MAX_WORD_BYTES {
        take(TextToken::Compound(&text[start..]));
    }
    letters.end(&mut take);
}

/// Returns the number of words of a text.
pub(crate) fn count(text: &str) -> usize {
    let mut count = 0;
    each_word(text, |_| count += 1);
    count
}

/// Returns the letters and digits of a text in lower case, without what separates them.
pub(crate) fn joined(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).filter(|char| char.is_alphanumeric()).collect()
}

fn flush(word: &mut String, take: &mut impl FnMut(TextToken<'_>)) {
    if !word.is_empty() {
        take(TextToken::Word(word));
        word.clear();
    }
}

/// A run of letters of a script without spaces. A single letter has many meanings and occurs in many words, two
/// adjacent letters are mostly a word or a part of one.
#[derive(Default)]
struct CharacterBigrams {
    last: Option<char>,
    has_bigram: bool,
}

impl CharacterBigrams {
    fn push(&mut self, letter: char, take: &mut impl FnMut(TextToken<'_>)) {
        if let Some(last) = self.last.replace(letter) {
            take(TextToken::Word(&String::from_iter([last, letter])));
            self.has_bigram = true;
        }
    }

    /// Ends the run. Only a letter that stands alone is a word.
    fn end(&mut self, take: &mut impl FnMut(TextToken<'_>)) {
        if self.last.is_none() {
            return;
        }
        let Self { last, has_bigram } = std::mem::take(self);
        if let (Some(letter), false) = (last, has_bigram) {
            take(TextToken::Word(letter.encode_utf8(&mut [0; 4])));
        }
    }
}

/// True for letters of scripts that do not separate words with spaces, and of Korean, whose words have endings.
fn is_ideograph(char: char) -> bool {
    matches!(char,
        '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
        && char.is_alphanumeric()
}

/// The beginning of a text, at most `max_bytes` long.
pub(crate) fn truncate(text: &str, max_bytes: usize) -> &str {
    let end = (0..=max_bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut words = Vec::new();
        each_word(text, |word| words.push(word.to_owned()));
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn identifiers_are_split_into_words() {
        check("getUserByID", "get user by id");
        check("get_user-by.id", "get user by id");
        check("HTTPServer2Go", "http server2 go");
        check("GET /pets/{petId}", "get pets pet id");
        check("k8s oauth2 base64", "k8s oauth2 base64");
        check("", "");
        check("_-_", "");
    }

    fn each_compound(text: &str, mut take: impl FnMut(&str)) {
        each_token(text, |token| match token {
            TextToken::Compound(compound) => take(compound),
            TextToken::Word(_) => {}
        });
    }

    #[test]
    fn identifiers_of_several_words_are_compounds() {
        for (text, expected) in [
            ("getUserByID on YouTube", "getuserbyid youtube"),
            ("HTTPServerStatus, PostgreSQL", "httpserverstatus postgresql"),
            ("get_user by-id HTTP Server2go", ""),
            ("图YouTube图", "youtube"),
            ("", ""),
        ] {
            let mut compounds = Vec::new();
            each_compound(text, |compound| compounds.push(joined(compound)));
            assert_eq!(compounds.join(" "), expected, "{text}");
        }
        each_compound(&"Ab".repeat(10_000), |compound| panic!("{} bytes", compound.len()));
    }

    #[test]
    fn other_scripts_are_split_into_words() {
        check("Größe ändern", "größe ändern");
        check("İstanbul", "istanbul");
        check("天气 forecast", "天气 forecast");
        check("查询天气预报", "查询 询天 天气 气预 预报");
        check("图 2张图片x", "图 2 张图 图片 x");
        check("날씨를 알려줘", "날씨 씨를 알려 려줘");
        check("カタカナ・ひら", "カタ タカ カナ ひら");
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(truncate("äö", 3), "ä");
        assert_eq!(truncate("äö", 4), "äö");
        assert_eq!(truncate("äö", 1), "");
        assert_eq!(truncate("", 1), "");
    }

    #[test]
    fn long_word_is_cut() {
        let mut words = Vec::new();
        each_word(&"x".repeat(10_000), |word| words.push(word.len()));
        assert_eq!(words, [MAX_WORD_BYTES]);
    }
}
