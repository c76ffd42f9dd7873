//! Entries by their words.

use std::sync::Arc;

use tokio::task::spawn_blocking;

use super::limits::MemoryError;
use super::record::Record;
use super::working::WorkingMemory;

/// How many entries are found at most.
pub const MOST_HITS: usize = 20;
/// How much is shown of a value, in characters.
const PREVIEW: usize = 120;
/// Up to so many bytes a value is read at once: that takes a few milliseconds.
const AT_ONCE: usize = 64 * 1024;
/// How many words of a query count.
const MOST_WORDS: usize = 32;

/// What is looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Search {
    /// Words of the key, the value, the tags or the category; without any, the newest entries are found.
    pub query: String,
    /// Of this category, or of one below it.
    pub category: Option<String>,
    /// With all of these tags.
    pub tags: Vec<String>,
}

/// An entry that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// What is known of it.
    pub record: Record,
    /// The beginning of its value, in one line.
    pub preview: String,
}

/// How well an entry fits: how many of the words it has, then how often.
type Score = (usize, usize);

impl Search {
    /// Finds entries among those given: the best first, and of equals the newest.
    ///
    /// # Errors
    /// Where the store does not give the values.
    pub async fn among(&self, memory: &WorkingMemory, records: Vec<Record>) -> Result<Vec<Hit>, MemoryError> {
        let words: Arc<[String]> = words(&self.query).into();
        let mut records: Vec<_> = records.into_iter().filter(|record| self.filters(record)).collect();
        records.sort_by_key(|record| std::cmp::Reverse(record.saved));
        if words.is_empty() {
            records.truncate(MOST_HITS);
        }
        let mut found: Vec<(Score, Hit)> = Vec::new();
        for record in records {
            let Some(value) = memory.value(&record).await? else { continue };
            let (score, hit) = scored(&words, record, value).await;
            if words.is_empty() || score.0 > 0 {
                found.push((score, hit));
            }
        }
        found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        Ok(found.into_iter().map(|(_, hit)| hit).take(MOST_HITS).collect())
    }

    fn filters(&self, record: &Record) -> bool {
        self.category.as_deref().is_none_or(|category| record.is_of(category))
            && self.tags.iter().all(|tag| record.has_tag(tag))
    }
}

/// The different words of a query, in lower case.
fn words(query: &str) -> Vec<String> {
    let mut words = Vec::new();
    for word in query.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        if words.len() < MOST_WORDS && !words.iter().any(|known| known == word) {
            words.push(word.to_owned());
        }
    }
    words
}

/// How well an entry fits, and how it is shown. A long one is read where no other call waits for it.
async fn scored(words: &Arc<[String]>, record: Record, value: String) -> (Score, Hit) {
    let read = |words: &[String], record: Record, value: &str| {
        (score(words, &record, value), Hit { preview: preview(value), record })
    };
    if value.len() <= AT_ONCE {
        return read(words, record, &value);
    }
    let words = words.clone();
    match spawn_blocking(move || read(&words, record, &value)).await {
        Ok(scored) => scored,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

fn score(words: &[String], record: &Record, value: &str) -> Score {
    let labels = record.tags.iter().chain(&record.category).map(String::as_str);
    let text = labels.chain([record.key.as_str(), value]).collect::<Vec<_>>().join(" ").to_lowercase();
    let times: Vec<_> = words.iter().map(|word| text.matches(word.as_str()).count()).collect();
    (times.iter().filter(|times| **times > 0).count(), times.iter().sum())
}

/// The beginning of a text, in one line.
fn preview(value: &str) -> String {
    let mut preview = String::new();
    let mut chars = 0;
    for word in value.split_whitespace() {
        let blank = usize::from(chars > 0);
        let taken: String = word.chars().take(PREVIEW.saturating_sub(chars + blank)).collect();
        if taken.is_empty() {
            return preview + "…";
        }
        if blank > 0 {
            preview.push(' ');
        }
        preview.push_str(&taken);
        chars += blank + taken.chars().count();
        if taken.len() < word.len() {
            return preview + "…";
        }
    }
    preview
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_is_one_line_of_120_characters_at_most() {
        #[track_caller]
        fn check(value: &str, expected: &str) {
            assert_eq!(preview(value), expected);
        }
        check("", "");
        check(" a\n\tb ", "a b");
        check(&"é".repeat(120), &"é".repeat(120));
        check(&"é".repeat(121), &format!("{}…", "é".repeat(120)));
        check(&format!("{} b", "a".repeat(118)), &format!("{} b", "a".repeat(118)));
        check(&format!("{} b", "a".repeat(119)), &format!("{}…", "a".repeat(119)));
    }

    #[test]
    fn the_words_of_a_query() {
        assert_eq!(words("Weekly-report, weekly REPORT/2026"), ["weekly", "report", "2026"]);
        assert!(words(" -_/ ").is_empty());
        assert_eq!(words(&(0..99).map(|n| format!("w{n} ")).collect::<String>()).len(), MOST_WORDS);
    }
}
