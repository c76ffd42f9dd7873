//! Words of texts and of identifiers.

/// Maximum length of a word in bytes. Longer words are cut, because they are never searched for and use memory.
const MAX_WORD_BYTES: usize = 64;

/// Passes each word of a text in lower case to `take`. `getUserByID`, `get_user_by_id` and `get user by id` have the
/// same words. Text in a script without spaces is passed as pairs of adjacent letters.
pub(crate) fn each_word(text: &str, mut take: impl FnMut(&str)) {
    let mut word = String::new();
    let mut letters = LetterPairs::default();
    let mut chars = text.chars().peekable();
    let mut before = None;
    while let Some(char) = chars.next() {
        if is_ideograph(char) {
            flush(&mut word, &mut take);
            letters.push(char, &mut take);
            before = None;
            continue;
        }
        letters.end(&mut take);
        if !char.is_alphanumeric() {
            flush(&mut word, &mut take);
            before = None;
            continue;
        }
        if starts_word(before, char, chars.peek().copied()) {
            flush(&mut word, &mut take);
        }
        if word.len() < MAX_WORD_BYTES {
            word.extend(char.to_lowercase().filter(|lowered| lowered.is_alphanumeric()));
        }
        before = Some(char);
    }
    flush(&mut word, &mut take);
    letters.end(&mut take);
}

/// Passes each identifier of a text that consists of several words, in one piece and in lower case: `getuserbyid` for
/// `getUserByID`, `youtube` for `YouTube`. Those that are cut as words are left out.
pub(crate) fn each_compound(text: &str, mut take: impl FnMut(&str)) {
    for run in text.split(|char: char| !char.is_alphanumeric() || is_ideograph(char)) {
        let mut before = None;
        let mut chars = run.chars().peekable();
        let mut is_compound = false;
        while let Some(char) = chars.next() {
            is_compound |= starts_word(before, char, chars.peek().copied());
            before = Some(char);
        }
        if is_compound && run.len() <= MAX_WORD_BYTES {
            take(&joined(run));
        }
    }
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

fn flush(word: &mut String, take: &mut impl FnMut(&str)) {
    if !word.is_empty() {
        take(word);
        word.clear();
    }
}

/// A run of letters of a script without spaces. A single letter has many meanings and occurs in many words, two
/// adjacent letters are mostly a word or a part of one.
#[derive(Default)]
struct LetterPairs {
    last: Option<char>,
    has_pair: bool,
}

impl LetterPairs {
    fn push(&mut self, letter: char, take: &mut impl FnMut(&str)) {
        if let Some(last) = self.last.replace(letter) {
            take(&String::from_iter([last, letter]));
            self.has_pair = true;
        }
    }

    /// Ends the run. Only a letter that stands alone is a word.
    fn end(&mut self, take: &mut impl FnMut(&str)) {
        let Self { last, has_pair } = std::mem::take(self);
        if let (Some(letter), false) = (last, has_pair) {
            take(letter.encode_utf8(&mut [0; 4]));
        }
    }
}

/// True if a word starts within an identifier: `get|User`, `HTTP|Server`.
fn starts_word(before: Option<char>, char: char, after: Option<char>) -> bool {
    let Some(before) = before else { return false };
    char.is_uppercase()
        && (before.is_lowercase()
            || before.is_numeric()
            || (before.is_uppercase() && after.is_some_and(char::is_lowercase)))
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
            each_compound(text, |compound| compounds.push(compound.to_owned()));
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
