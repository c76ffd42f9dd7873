//! The work on a large result that takes time in proportion to its length: it is parsed, split and described.
//!
//! Short results are worked on at once. Others are one piece of [`LongWork`](toolyard_core::LongWork), so that they
//! neither block a thread of connections nor take more than their owner's share.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use toolyard_core::long_work::StopSignal;
use toolyard_core::output_schema::{STRUCTURED, StoredResult};
use toolyard_core::{CallOutput, Object};
use toolyard_manifest::ResultSettings;

use super::LargeSettings;
use super::content::{LargeContent, ResultLimit, WholePart};
use super::message::{self, StoredText, VisibleKeys};
use super::places::StoredChunks;
use super::rules;
use crate::chunk::{self, TextChunk};
use crate::memory::ChunkPlace;
use crate::memory::chunk_keys as keys;

#[cfg(test)]
mod tests;

/// Bound from which a reference has all instructions, in characters.
const MIN_FOR_NOTE: usize = 4000;

/// Maximum size in bytes of a result that is worked on at once, which takes a few milliseconds.
pub(super) const MAX_INLINE_BYTES: usize = 1024 * 1024;

/// A result before it is parsed.
pub(super) struct ResultPreparation {
    pub(super) output: CallOutput,
    pub(super) limit: ResultLimit,
    pub(super) settings: Arc<LargeSettings>,
    /// Published name of the tool.
    pub(super) tool: Arc<str>,
    /// The place for the result; `None` if the caller cannot read working memory.
    pub(super) target: Option<MemoryTarget>,
}

/// A place for a result in working memory.
pub(super) struct MemoryTarget {
    /// Maximum number of bytes of a namespace.
    pub(super) max_bytes: usize,
    /// Keys of the result, or the reason why there are none.
    pub(super) keys: Result<ResultKeys, String>,
}

/// Beginnings of the keys of a result.
#[derive(Debug, Clone)]
pub(super) struct ResultKeys {
    /// In working memory.
    pub(super) base: String,
    /// As the caller reads them.
    pub(super) visible: VisibleKeys,
    /// Maximum number of bytes that a query looks into.
    pub(super) max_query: usize,
}

/// A result after the work.
pub(super) enum PreparedResult {
    /// It is short.
    Unchanged,
    /// A part of it is left out, and nothing is stored.
    Shortened(Object),
    /// It is split, and can be stored.
    Split(Box<SplitResult>),
}

/// A large result that can be stored.
pub(super) struct SplitResult {
    pub(super) content: LargeContent,
    /// The text, if it consists of several parts of the content.
    joined: Option<String>,
    keys: ResultKeys,
    pub(super) entries: ResultEntries,
    /// Maximum length of a chunk in characters.
    chunk_size: usize,
}

/// The entries of a result in working memory.
pub(super) struct ResultEntries {
    /// Lengths in bytes of the stored texts, which are the whole text together, and the places of the chunks in them.
    chunks: Vec<(usize, ChunkPlace)>,
    pub(super) outline: String,
    pub(super) described: StoredText,
}

/// Returns the size in bytes of the parts of a result that may be large.
pub(super) fn size(output: &CallOutput) -> usize {
    let bytes = |name| output.body.get(name).map_or(0, |json| json.as_bytes().len());
    bytes("content") + bytes(STRUCTURED)
}

impl ResultPreparation {
    /// Parses and splits the result. The work ends early, with any result, once it is stopped.
    pub(super) fn run(self, stop: &StopSignal) -> PreparedResult {
        let Self { output, limit, settings, tool, target } = self;
        let Some(content) = LargeContent::open(&output, limit) else { return PreparedResult::Unchanged };
        if let Some(shortened) = content.without_storage(&output.body) {
            return PreparedResult::Shortened(shortened);
        }
        let keys = match target {
            None => Err(message::NO_READER.to_owned()),
            // Checked before the text is split, which takes longer the less fits.
            Some(MemoryTarget { max_bytes, .. }) if content.size() > max_bytes => {
                Err(message::larger_than_memory(content.size(), max_bytes))
            }
            Some(MemoryTarget { keys, .. }) => keys,
        };
        match keys {
            Err(why) => PreparedResult::Shortened(content.truncated(output.body, &why)),
            Ok(_) if stop.flag().load(Ordering::Relaxed) => PreparedResult::Unchanged,
            Ok(keys) => {
                PreparedResult::Split(Box::new(SplitResult::new(content, &settings.options, tool, keys)))
            }
        }
    }
}

impl SplitResult {
    fn new(content: LargeContent, options: &ResultSettings, tool: Arc<str>, keys: ResultKeys) -> Self {
        let threshold = content.threshold();
        let joined = content.joined_text();
        let text = text_of(&content, joined.as_deref());
        let chunks = rules::chunks(options, text, threshold);
        let entries = ResultEntries::of(text, &chunks, tool, &keys);
        let chunk_size = rules::chunk_size(options, threshold);
        Self { content, joined, keys, entries, chunk_size }
    }

    /// Returns the text that is put aside.
    fn text(&self) -> &str {
        text_of(&self.content, self.joined.as_deref())
    }

    /// Splits the text again, with several sections in a chunk.
    pub(super) fn packed(mut self: Box<Self>) -> Box<Self> {
        let chunks = chunk::packed_chunks(self.text(), self.chunk_size);
        let entries =
            ResultEntries::of(self.text(), &chunks, self.entries.described.tool.clone(), &self.keys);
        self.entries = entries;
        self
    }

    /// Returns the size of the text in bytes.
    pub(super) fn size(&self) -> usize {
        self.text().len()
    }

    /// Returns the keys and the stored texts of the chunks, with the places of the chunks in them.
    pub(super) fn chunks(&self) -> impl Iterator<Item = (String, &str, ChunkPlace)> {
        let mut rest = self.text();
        self.entries.chunks.iter().enumerate().map(move |(number, (length, place))| {
            let (stored, after) = rest.split_at(*length);
            rest = after;
            (keys::chunk_key(&self.keys.base, number), stored, *place)
        })
    }

    /// Returns the result with a message about what is stored instead of that.
    pub(super) fn replaced(self, body: Object) -> Object {
        let (content, stored) = (self.content, self.entries.described);
        let place = Some((&*stored.index, stored.pieces.len()));
        let reference = |note: &str| StoredResult { stored: place, chars: stored.chars, note }.to_json();
        // Beside a message, which has the same instructions, the reference is brief if there is little room.
        let note = stored.note();
        let is_brief = content.threshold() < MIN_FOR_NOTE && content.whole_part() != Some(WholePart::Text);
        let reference = if is_brief { reference(message::BRIEF_NOTE) } else { reference(&note) };
        let room = content.room().saturating_sub(reference.as_text().chars().count());
        let mut message = stored.message(room);
        if content.whole_part() == Some(WholePart::Structure) {
            message.push_str(message::STRUCTURE_IS_WHOLE);
        }
        content.with_message(body, &message, reference)
    }

    /// Returns the key of the outline in working memory.
    pub(super) fn index_key(&self) -> String {
        keys::index_key(&self.keys.base)
    }
}

impl ResultEntries {
    fn of(text: &str, chunks: &[TextChunk<'_>], tool: Arc<str>, keys: &ResultKeys) -> Self {
        let pieces = message::pieces(&keys.visible, chunks);
        let outline = message::outline(&keys.visible, &pieces, chunks);
        let described = StoredText::new(tool, text, pieces, &keys.visible, keys.max_query);
        let stored = StoredChunks::new(text, chunks).map(|(stored, place)| (stored.len(), place));
        Self { chunks: stored.collect(), outline, described }
    }
}

fn text_of<'a>(content: &'a LargeContent, joined: Option<&'a str>) -> &'a str {
    joined.or_else(|| content.aside().next()).unwrap_or_default()
}
