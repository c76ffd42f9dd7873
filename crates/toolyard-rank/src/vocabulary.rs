//! The words of all tools as they are written, for the correction of misspelled words of a query.

use std::collections::HashMap;
use std::sync::Arc;

/// Minimum length of a correction, in bytes. Shorter words have too many neighbours.
pub(crate) const MIN_CORRECTED_LENGTH: usize = 5;
/// Maximum number of corrections of a word.
const MAX_CORRECTIONS: usize = 3;

/// The words of all tools, by their first two and by their last two bytes. A word of at least five letters with one
/// wrong, missing or additional letter, or with two swapped ones, has the same beginning or the same end.
#[derive(Clone, Default)]
pub(crate) struct WordVocabulary {
    by_start: HashMap<[u8; 2], Arc<Vec<VocabularyWord>>>,
    by_end: HashMap<[u8; 2], Arc<Vec<Arc<str>>>>,
}

#[derive(Clone)]
struct VocabularyWord {
    word: Arc<str>,
    /// Number of servers with the word.
    servers: u32,
}

impl WordVocabulary {
    /// Adds the words of a server.
    pub(crate) fn add(&mut self, words: &[Arc<str>]) {
        for word in words {
            let Some([start, end]) = keys(word) else { continue };
            let starts = Arc::make_mut(self.by_start.entry(start).or_default());
            match position(starts, word) {
                Ok(at) => starts[at].servers += 1,
                Err(at) => {
                    starts.insert(at, VocabularyWord { word: Arc::clone(word), servers: 1 });
                    let ends = Arc::make_mut(self.by_end.entry(end).or_default());
                    let at = ends.binary_search(word).unwrap_or_else(|at| at);
                    ends.insert(at, Arc::clone(word));
                }
            }
        }
    }

    /// Removes the words of a server, which were added.
    pub(crate) fn remove(&mut self, words: &[Arc<str>]) {
        for word in words {
            let Some([start, end]) = keys(word) else { continue };
            let Some(starts) = self.by_start.get_mut(&start).map(Arc::make_mut) else { continue };
            let Ok(at) = position(starts, word) else { continue };
            starts[at].servers -= 1;
            if starts[at].servers > 0 {
                continue;
            }
            starts.remove(at);
            if starts.is_empty() {
                self.by_start.remove(&start);
            }
            let Some(ends) = self.by_end.get_mut(&end).map(Arc::make_mut) else { continue };
            ends.retain(|other| other != word);
            if ends.is_empty() {
                self.by_end.remove(&end);
            }
        }
    }

    /// Returns the words that differ from this one by a single letter or by two swapped ones: those of most servers
    /// first, three at most.
    pub(crate) fn corrections(&self, word: &str) -> Vec<&str> {
        let Some([start, end]) = keys(word) else { return Vec::new() };
        let mut near: Vec<(u32, &str)> = Vec::new();
        for other in self.by_start.get(&start).into_iter().flat_map(|words| words.iter()) {
            if is_one_edit(word, &other.word) {
                near.push((other.servers, &other.word));
            }
        }
        for other in self.by_end.get(&end).into_iter().flat_map(|words| words.iter()) {
            if !other.as_bytes().starts_with(&start) && is_one_edit(word, other) {
                near.push((self.servers(other), other));
            }
        }
        near.retain(|(_, other)| word.len().max(other.len()) >= MIN_CORRECTED_LENGTH);
        near.sort_unstable_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(other.1)));
        near.truncate(MAX_CORRECTIONS);
        near.into_iter().map(|(_, word)| word).collect()
    }

    /// Number of servers with a word.
    fn servers(&self, word: &str) -> u32 {
        let words = keys(word).and_then(|[start, _]| self.by_start.get(&start));
        words.and_then(|words| Some(words[position(words, word).ok()?].servers)).unwrap_or_default()
    }
}

/// The position of a word, or the one at which it is missing.
fn position(words: &[VocabularyWord], word: &str) -> Result<usize, usize> {
    words.binary_search_by(|other| (*other.word).cmp(word))
}

/// The first two and the last two bytes of a word that can be a correction. Words with digits are identifiers, which
/// are not misspelled words of a language.
fn keys(word: &str) -> Option<[[u8; 2]; 2]> {
    let is_word = word.len() >= MIN_CORRECTED_LENGTH - 1 && !word.bytes().any(|byte| byte.is_ascii_digit());
    match (is_word, word.as_bytes()) {
        (true, [first, second, .., last_but_one, last]) => Some([[*first, *second], [*last_but_one, *last]]),
        _ => None,
    }
}

/// True if the words differ by one substituted, missing or additional byte or by two swapped ones.
fn is_one_edit(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len().abs_diff(other.len()) > 1 {
        return false;
    }
    let start = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let (one, other) = (&one[start..], &other[start..]);
    let end = one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count();
    match (&one[..one.len() - end], &other[..other.len() - end]) {
        ([_], [_] | []) | ([], [_]) => true,
        ([a, b], [c, d]) => a == d && b == c,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<Arc<str>> {
        words.iter().map(|word| (*word).into()).collect()
    }

    #[track_caller]
    fn check(word: &str, expected: &[&str]) {
        let mut vocabulary = WordVocabulary::default();
        vocabulary.add(&words(&["calendar", "meeting", "weather", "whether", "mail", "files", "base64"]));
        vocabulary.add(&words(&["calendar", "whether"]));
        assert_eq!(vocabulary.corrections(word), expected, "{word}");
    }

    #[test]
    fn words_with_one_wrong_letter_or_two_swapped_are_corrected() {
        check("calendsr", &["calendar"]);
        check("xalendar", &["calendar"]);
        check("calendax", &["calendar"]);
        check("claendar", &["calendar"]);
        check("calednar", &["calendar"]);
        check("calendra", &["calendar"]);
        check("caelndar", &["calendar"]);
        check("calendr", &["calendar"]);
        check("calenddar", &["calendar"]);
        check("calend1r", &[]);
        check("emails", &[]);
        check("fiels", &["files"]);
        check("ifles", &["files"]);
    }

    #[test]
    fn short_and_distant_words_are_not_corrected() {
        check("mial", &[]);
        check("iles", &["files"]);
        check("filed", &["files"]);
        check("clanedar", &[]);
        check("metting", &["meeting"]);
        check("base46", &[]);
        check("", &[]);
    }

    #[test]
    fn corrections_of_most_servers_come_first() {
        check("wether", &["whether", "weather"]);
    }

    #[test]
    fn removed_words_are_forgotten() {
        let mut vocabulary = WordVocabulary::default();
        vocabulary.add(&words(&["calendar", "weather"]));
        vocabulary.add(&words(&["calendar"]));
        vocabulary.remove(&words(&["calendar", "weather"]));
        assert_eq!(vocabulary.corrections("calendra"), ["calendar"]);
        assert_eq!(vocabulary.corrections("weahter"), [""; 0]);
        vocabulary.remove(&words(&["calendar"]));
        assert!(vocabulary.by_start.is_empty() && vocabulary.by_end.is_empty());
    }
}
