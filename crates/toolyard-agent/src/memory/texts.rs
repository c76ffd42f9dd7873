//! The results of the tools, as a model reads them.

use std::borrow::Cow;
use std::fmt::Write;
use std::time::SystemTime;

use super::namespace::MemoryNamespace;
use super::record::MemoryRecord;
use super::search::MemoryHit;
use super::working_memory::format_duration;

/// Maximum number of entries in a list.
const MAX_SHOWN: usize = 200;

/// Maximum length of an argument in a message, in characters. A full path has 512 at most.
const MAX_ARGUMENT_CHARS: usize = 512;

pub(super) fn saved(record: &MemoryRecord, now: SystemTime) -> String {
    let time = format_duration(record.left(now));
    format!("Saved to working memory as `{}` ({} chars, expires in {time}).", record.key, record.chars)
}

pub(crate) fn missing(key: &str) -> String {
    format!("Working memory entry '{}' not found or has expired.", excerpt(key.trim()))
}

/// Returns an argument for a message, shortened if it is long.
fn excerpt(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_ARGUMENT_CHARS) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

pub(super) fn deleted(record: &MemoryRecord) -> String {
    format!("Deleted working memory entry '{}'.", record.key)
}

pub(super) fn whole_text(index: &str) -> String {
    format!("This is a chunk: the key of the whole text is `{index}`.")
}

pub(super) fn incomplete(base: &str, number: usize) -> String {
    format!(
        "Chunk {number} of `{base}` is not in working memory any more, so that the whole result cannot be read. Call the tool \
         again."
    )
}

pub(super) fn entry_list(
    records: &[MemoryRecord],
    now: SystemTime,
    prefix: Option<&str>,
    own: Option<&MemoryNamespace>,
) -> String {
    if records.is_empty() {
        return nothing("There is nothing in working memory", prefix, own);
    }
    let mut text = format!("{}:\n", counted(records.len()));
    for record in records.iter().take(MAX_SHOWN) {
        let _ = writeln!(text, "- `{}` ({})", record.key, about(record, now));
    }
    if records.len() > MAX_SHOWN {
        let more = records.len() - MAX_SHOWN;
        let _ = writeln!(text, "… and {more} more: say a namespace, or use search_working_memory.");
    }
    text.truncate(text.trim_end().len());
    text
}

pub(super) fn search_result(
    hits: &[MemoryHit],
    now: SystemTime,
    prefix: Option<&str>,
    own: Option<&MemoryNamespace>,
) -> String {
    if hits.is_empty() {
        return nothing("No working memory entries found", prefix, own);
    }
    let mut text = format!("{}:\n", counted(hits.len()));
    for MemoryHit { record, preview, line } in hits {
        let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        let _ = writeln!(text, "- `{}` ({}): {line}{preview}", record.key, about(record, now));
    }
    text.truncate(text.trim_end().len());
    text
}

fn nothing(what: &str, prefix: Option<&str>, own: Option<&MemoryNamespace>) -> String {
    let prefix = prefix.map(|prefix| format!(" under '{}'", excerpt(prefix))).unwrap_or_default();
    let own = own.map(|own| format!(" Your own entries are under `{own}`.")).unwrap_or_default();
    format!("{what}{prefix}.{own}")
}

fn counted(entries: usize) -> String {
    match entries {
        1 => "1 working memory entry".to_owned(),
        entries => format!("{entries} working memory entries"),
    }
}

/// Formats a number with a blank between thousands.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

/// Describes an entry: its remaining time, its length, its category and its tags.
fn about(record: &MemoryRecord, now: SystemTime) -> String {
    let mut about = format!("{} left, {} chars", format_duration(record.left(now)), record.chars);
    if let Some(category) = &record.category {
        let _ = write!(about, ", category: {category}");
    }
    if !record.tags.is_empty() {
        let _ = write!(about, ", tags: {}", record.tags.join(", "));
    }
    about
}
