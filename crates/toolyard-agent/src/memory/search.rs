//! Finds entries by words.

use std::sync::Arc;

use super::blocking::{BlockingRunner, WorkError, WorkPermit};
use super::error::MemoryError;
use super::reading::excerpt;
use super::record::MemoryRecord;
use super::working_memory::{PARTS_AT_ONCE, WorkingMemory};

/// Maximum number of hits.
pub const MAX_HITS: usize = 20;
/// Maximum length of a preview in characters.
const PREVIEW: usize = 120;
/// Maximum size in bytes of all values of a search without a permit, which takes a few milliseconds.
const MAX_FREE_BYTES: usize = 64 * 1024;
/// Number of characters before and after the words in a preview.
const AROUND: usize = 60;
/// Maximum number of places of each word that are compared.
const MAX_PLACES: usize = 500;
/// Maximum number of words of a query, which are the bits of a `u32`.
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
    /// Part of its value in one line: the surroundings of the words, or else the beginning.
    pub preview: String,
    /// Number of the line with these words, if the value has several lines.
    pub line: Option<usize>,
}

/// Relevance of an entry: the number of different words that it has, then their total number of occurrences.
type MatchScore = (usize, usize);

/// Error of a search. A model reads the texts.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The memory fails.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The search waits or takes too long.
    #[error("The search took too long. Search in one namespace, or for a category or a tag.")]
    TooSlow,
    /// The search failed for an internal reason, such as a panic.
    #[error("The search failed because of a fault in the server.")]
    Fault,
}

impl From<WorkError> for SearchError {
    fn from(error: WorkError) -> Self {
        match error {
            WorkError::TooSlow => Self::TooSlow,
            WorkError::Fault => Self::Fault,
        }
    }
}

impl MemorySearch {
    /// Searches the given entries. Returns the best hits first, and of equal ones the newest first. A search of many
    /// bytes takes a permit.
    ///
    /// # Errors
    /// Returns an error if the store fails, or if the search waits or takes too long.
    pub async fn among(
        &self,
        memory: &WorkingMemory,
        runner: &BlockingRunner,
        records: Vec<MemoryRecord>,
    ) -> Result<Vec<MemoryHit>, SearchError> {
        let words: Arc<[String]> = words(&self.query).into();
        let mut records: Vec<_> = records.into_iter().filter(|record| self.filters(record)).collect();
        records.sort_by_key(|record| std::cmp::Reverse(record.saved));
        if words.is_empty() {
            records.truncate(MAX_HITS);
        }
        let bytes: usize = records.iter().map(|record| record.bytes).sum();
        let permit = if bytes > MAX_FREE_BYTES { Some(runner.permit().await?) } else { None };
        let mut hits = runner.in_time(hits(memory, words, &records, permit)).await?;
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

/// Returns the entries that match. With a permit, values are searched on a blocking thread.
async fn hits(
    memory: &WorkingMemory,
    words: Arc<[String]>,
    records: &[MemoryRecord],
    permit: Option<WorkPermit>,
) -> Result<Vec<(MatchScore, MemoryHit)>, SearchError> {
    let mut hits = Vec::new();
    for records in records.chunks(PARTS_AT_ONCE) {
        let values = memory.values(records).await?;
        let values: Vec<_> = records.iter().cloned().zip(values).collect();
        let words = words.clone();
        let scored = move || {
            let matches = values.into_iter().filter_map(|(record, value)| scored(&words, record, &value?));
            matches.collect::<Vec<_>>()
        };
        hits.extend(match &permit {
            Some(permit) => permit.run(scored).await?,
            None => scored(),
        });
    }
    Ok(hits)
}

/// Rates an entry and renders it; `None` if it has none of the words.
fn scored(words: &[String], record: MemoryRecord, value: &str) -> Option<(MatchScore, MemoryHit)> {
    let lower = value.to_lowercase();
    let score = score(words, &record, &lower);
    let matches = words.is_empty() || score.0 > 0;
    matches.then(|| (score, hit(words, record, value, &lower)))
}

/// Counts the words in the texts of an entry. No word has a blank, so that none is in two of them.
fn score(words: &[String], record: &MemoryRecord, lower: &str) -> MatchScore {
    let labels = record.tags.iter().chain(&record.category).chain([&record.key]);
    let labels = labels.map(|label| label.to_lowercase()).collect::<Vec<_>>().join(" ");
    let count =
        |word: &String| [&*labels, lower].map(|text| text.matches(word.as_str()).count()).iter().sum();
    let times: Vec<usize> = words.iter().map(count).collect();
    (times.iter().filter(|times| **times > 0).count(), times.iter().sum())
}

/// Renders an entry with the surroundings of the words. `lower` is its value in lower case.
fn hit(words: &[String], record: MemoryRecord, value: &str, lower: &str) -> MemoryHit {
    let Some((start, end)) = place(words, value, lower) else {
        return MemoryHit { preview: preview(value), record, line: None };
    };
    let before = record.lines_before() + value[..start].matches('\n').count();
    let has_lines = before > 0 || value.trim_end().contains('\n');
    let (part, _) = excerpt(value, (start, end), AROUND);
    let preview = part.split_whitespace().collect::<Vec<_>>().join(" ");
    MemoryHit { preview, record, line: has_lines.then_some(before + 1) }
}

/// Returns the place in a value (a range of bytes) that has most of the words close to each other; `None` if it has none.
fn place(words: &[String], value: &str, lower: &str) -> Option<(usize, usize)> {
    let of_word = |(number, word): (usize, &String)| {
        lower
            .match_indices(word.as_str())
            .take(MAX_PLACES)
            .map(move |(at, found)| (at, at + found.len(), number))
            .collect::<Vec<_>>()
    };
    let mut places: Vec<_> = words.iter().enumerate().flat_map(of_word).collect();
    places.sort_unstable();
    let near = |first: usize| {
        let (start, ..) = places[first];
        places[first..].iter().take_while(move |(_, end, _)| end - start <= AROUND)
    };
    let distinct =
        |first: usize| near(first).map(|(.., word)| 1_u32 << word).fold(0, |all, one| all | one).count_ones();
    let best = (0..places.len()).max_by_key(|first| (distinct(*first), std::cmp::Reverse(*first)))?;
    let (start, first_end, _) = places[best];
    // Of each word the first place counts.
    let mut seen = 0_u32;
    let first_of_word = near(best).filter(|(.., word)| {
        let is_new = seen & (1 << word) == 0;
        seen |= 1 << word;
        is_new
    });
    let end = first_of_word.map(|(_, end, _)| *end).max().unwrap_or(first_end);
    Some((original(value, start), original(value, end)))
}

/// Returns the place in a text that corresponds to one in its lower case.
fn original(value: &str, at: usize) -> usize {
    if value.is_ascii() {
        return at;
    }
    let mut length = 0;
    let reached = value.char_indices().find(|(_, c)| {
        let is_reached = length >= at;
        length += c.to_lowercase().map(char::len_utf8).sum::<usize>();
        is_reached
    });
    reached.map_or(value.len(), |(place, _)| place)
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
mod limit_tests;

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
    fn preview_shows_the_surroundings_of_the_words() {
        #[track_caller]
        fn check(query: &str, value: &str, expected: Option<&str>) {
            let excerpt =
                place(&words(query), value, &value.to_lowercase()).map(|place| excerpt(value, place, 6).0);
            assert_eq!(excerpt.as_deref(), expected, "{query}");
        }
        let text = "first came an error in the log, and then a fatal error of the disk: it was full";
        check("error", text, Some("…me an error in th…"));
        check("ERROR fatal", text, Some("…me an error in the log, and then a fatal error…"));
        check("disk fatal", text, Some("…hen a fatal error of the disk: it w…"));
        check("full", text, Some("…t was full"));
        check("nothing", text, None);
        check("", text, None);
        // Lengths in lower case differ.
        check("disk", &format!("{} Disk ﬀ", "İ".repeat(9)), Some("…İİİİİ Disk ﬀ"));
        check("straße", "DIE STRASSE, die Straße", Some("…, die Straße"));
        let far = format!("{}needle{}", "x\n".repeat(9_000), "y".repeat(9_000));
        check("needle", &far, Some("…x\nx\nx\nneedleyyyyyy…"));
    }

    #[test]
    fn query_is_split_into_words() {
        assert_eq!(words("Weekly-report, weekly REPORT/2026"), ["weekly", "report", "2026"]);
        assert!(words(" -_/ ").is_empty());
        assert_eq!(words(&(0..99).map(|n| format!("w{n} ")).collect::<String>()).len(), MAX_WORDS);
    }
}
