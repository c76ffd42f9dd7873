//! What a model reads.

use std::fmt::Write;
use std::time::SystemTime;

use super::namespace::Namespace;
use super::record::Record;
use super::search::Hit;
use super::working::shown_time;

/// How many entries a list shows.
const MOST_SHOWN: usize = 200;

pub(super) const NO_SESSION: &str = "\
There is no working memory for this call: it belongs to no session and shows no key. The host can name a session in the \
request's `_meta`, as `toolyard/session`.";

pub(super) fn saved(record: &Record, now: SystemTime) -> String {
    let time = shown_time(record.left(now));
    format!("Saved to working memory as `{}` ({} chars, expires in {time}).", record.key, record.chars)
}

pub(super) fn missing(key: &str) -> String {
    format!("Working memory entry '{}' not found or has expired.", key.trim())
}

pub(super) fn deleted(record: &Record) -> String {
    format!("Deleted working memory entry '{}'.", record.key)
}

pub(super) fn incomplete(base: &str, number: usize) -> String {
    format!(
        "Chunk {number} of `{base}` is not in working memory any more, so that the whole result cannot be queried. Call the \
         tool again."
    )
}

pub(super) fn listed(records: &[Record], now: SystemTime, wanted: Option<&str>, own: &Namespace) -> String {
    if records.is_empty() {
        return nothing("There is nothing in working memory", wanted, own);
    }
    let mut text = format!("{}:\n", counted(records.len()));
    for record in records.iter().take(MOST_SHOWN) {
        let _ = writeln!(text, "- `{}` ({})", record.key, about(record, now));
    }
    if records.len() > MOST_SHOWN {
        let more = records.len() - MOST_SHOWN;
        let _ = writeln!(text, "… and {more} more: say a namespace, or use search_working_memory.");
    }
    text.truncate(text.trim_end().len());
    text
}

pub(super) fn found(hits: &[Hit], now: SystemTime, wanted: Option<&str>, own: &Namespace) -> String {
    if hits.is_empty() {
        return nothing("No working memory entries found", wanted, own);
    }
    let mut text = format!("{}:\n", counted(hits.len()));
    for Hit { record, preview } in hits {
        let _ = writeln!(text, "- `{}` ({}): {preview}", record.key, about(record, now));
    }
    text.truncate(text.trim_end().len());
    text
}

fn nothing(what: &str, wanted: Option<&str>, own: &Namespace) -> String {
    match wanted {
        Some(wanted) => format!("{what} under '{wanted}'. Your own entries are under `{own}`."),
        None => format!("{what}. Your own entries are under `{own}`."),
    }
}

fn counted(entries: usize) -> String {
    match entries {
        1 => "1 working memory entry".to_owned(),
        entries => format!("{entries} working memory entries"),
    }
}

/// How long it lives, how much it is, and what it can be found by.
fn about(record: &Record, now: SystemTime) -> String {
    let mut about = format!("{} left, {} chars", shown_time(record.left(now)), record.chars);
    if let Some(category) = &record.category {
        let _ = write!(about, ", category: {category}");
    }
    if !record.tags.is_empty() {
        let _ = write!(about, ", tags: {}", record.tags.join(", "));
    }
    about
}
