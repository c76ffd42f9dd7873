//! Finds entries by words.

use std::sync::Arc;

use tokio::task::spawn_blocking;

use super::error::MemoryError;
use super::record::MemoryRecord;
use super::working_memory::WorkingMemory;

/// Maximum number of hits.
pub const MAX_HITS: usize = 20;
/// Maximum length of a preview in characters.
const PREVIEW: usize = 120;
/// Maximum size in bytes of a value that is searched on the calling task, which takes a few milliseconds.
const MAX_INLINE_BYTES: usize = 64 * 1024;
/// Maximum number of words of a query.
const MAX_WORDS: usize = 32;

/// A search for entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemorySearch {
    /// Words of the key, the value, the tags or the category. Without any, the newest entries match.
    pub query: String,
    /// Category of the entries, or a parent of it.
    pub category: Option<String>,
    /// Tags that every entry must have.
    pub tags: Vec<String>,
}

/// An entry that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryHit {
    /// Metadata of the entry.
    pub record: MemoryRecord,
    /// Beginning of its value, in one line.
    pub preview: String,
}

/// Relevance of an entry: the number of different words that it has, then their total number of occurrences.
type MatchScore = (usize, usize);

impl MemorySearch {
    /// Searches the given entries. Returns the best hits first, and of equal ones the newest first.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn among(
        &self,
        memory: &WorkingMemory,
        records: Vec<MemoryRecord>,
    ) -> Result<Vec<MemoryHit>, MemoryError> {
        let words: Arc<[String]> = words(&self.query).into();
        let mut records: Vec<_> = records.into_iter().filter(|record| self.filters(record)).collect();
        records.sort_by_key(|record| std::cmp::Reverse(record.saved));
        if words.is_empty() {
            records.truncate(MAX_HITS);
        }
        let mut hits: Vec<(MatchScore, MemoryHit)> = Vec::new();
        for record in records {
            let Some(value) = memory.value(&record).await? else { continue };
            let (score, hit) = scored(&words, record, value).await;
            if words.is_empty() || score.0 > 0 {
                hits.push((score, hit));
            }
        }
        hits.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        Ok(hits.into_iter().map(|(_, hit)| hit).take(MAX_HITS).collect())
    }

    fn filters(&self, record: &MemoryRecord) -> bool {
        self.category.as_deref().is_none_or(|category| record.is_of(category))
            && self.tags.iter().all(|tag| record.has_tag(tag))
    }
}

/// Returns the different words of a query in lower case.
fn words(query: &str) -> Vec<String> {
    let mut words = Vec::new();
    for word in query.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        if words.len() < MAX_WORDS && !words.iter().any(|known| known == word) {
            words.push(word.to_owned());
        }
    }
    words
}

/// Rates an entry and renders it. A long value is searched on a blocking thread.
async fn scored(words: &Arc<[String]>, record: MemoryRecord, value: String) -> (MatchScore, MemoryHit) {
    let read = |words: &[String], record: MemoryRecord, value: &str| {
        (score(words, &record, value), MemoryHit { preview: preview(value), record })
    };
    if value.len() <= MAX_INLINE_BYTES {
        return read(words, record, &value);
    }
    let words = words.clone();
    match spawn_blocking(move || read(&words, record, &value)).await {
        Ok(scored) => scored,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

fn score(words: &[String], record: &MemoryRecord, value: &str) -> MatchScore {
    let labels = record.tags.iter().chain(&record.category).map(String::as_str);
    let text = labels.chain([record.key.as_str(), value]).collect::<Vec<_>>().join(" ").to_lowercase();
    let times: Vec<_> = words.iter().map(|word| text.matches(word.as_str()).count()).collect();
    (times.iter().filter(|times| **times > 0).count(), times.iter().sum())
}

/// Returns the beginning of a text in one line.
fn preview(value: &str) -> String {
    let mut preview = String::new();
    let mut chars = 0;
    for word in value.split_whitespace() {
        let blank = usize::from(chars > 0);
        let beginning: String = word.chars().take(PREVIEW.saturating_sub(chars + blank)).collect();
        if beginning.is_empty() {
            return preview + "…";
        }
        if blank > 0 {
            preview.push(' ');
        }
        preview.push_str(&beginning);
        chars += blank + beginning.chars().count();
        if beginning.len() < word.len() {
            return preview + "…";
        }
    }
    preview
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preview_is_one_line_of_at_most_120_characters() {
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
    fn query_is_split_into_words() {
        assert_eq!(words("Weekly-report, weekly REPORT/2026"), ["weekly", "report", "2026"]);
        assert!(words(" -_/ ").is_empty());
        assert_eq!(words(&(0..99).map(|n| format!("w{n} ")).collect::<String>()).len(), MAX_WORDS);
    }
}
