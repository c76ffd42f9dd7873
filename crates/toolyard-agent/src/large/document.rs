//! Long documents that a tool puts into working memory by itself, such as web pages.

use std::sync::Arc;

use tokio::time::Duration;

use super::message::{self, StoredText, VisibleKeys};
use super::places::StoredChunks;
use super::storage;
use crate::chunk::{self, TextChunk};
use crate::memory::chunk_keys as keys;
use crate::memory::{MemoryCaller, MemoryError, NewEntry, RoomPolicy, WorkingMemory};

/// Maximum number of chunks with one section each; beyond it several sections share a chunk.
const MAX_SECTIONS: usize = 100;

/// A document for working memory.
#[derive(Debug, Clone, Copy)]
pub struct LongDocument<'a> {
    /// Name in the keys, which is that of an earlier document if that is to be replaced.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
    /// Maximum length of a chunk in characters. Chunks of very long documents are longer.
    pub chunk_chars: usize,
    /// Lifetime of the entries.
    pub ttl: Duration,
    /// Time limit of the store.
    pub store_time: Duration,
}

impl LongDocument<'_> {
    /// Puts the document into the namespace of a caller: chunks with the keys `{namespace}/{name}-chunk{n}`, and their
    /// outline with the key `{namespace}/{name}-index`. Returns the description of what is stored.
    ///
    /// # Errors
    /// Returns the reason, for the model, if working memory refuses the document.
    pub async fn put(&self, memory: &WorkingMemory, caller: MemoryCaller) -> Result<StoredText, String> {
        let stored = storage::in_time(self.store_time, self.put_unbounded(memory, caller)).await;
        stored.map_err(|refusal| refusal.text(self.name))
    }

    async fn put_unbounded(
        &self,
        memory: &WorkingMemory,
        caller: MemoryCaller,
    ) -> Result<StoredText, MemoryError> {
        let access = memory.access(caller).await?;
        let result = access.result_namespace()?;
        let base = format!("{}/{}", result.namespace, self.name);
        let visible =
            VisibleKeys { base: access.visible_base(&result, &base, self.ttl), has_id: result.is_new };
        let chunks = self.chunks();
        let pieces = message::pieces(&visible, &chunks);
        let outline = message::outline(&visible, &pieces, &chunks);
        let index = keys::index_key(&base);
        let chunk_entries: Vec<_> = StoredChunks::new(self.text, &chunks)
            .map(|(stored, place)| (keys::chunk_key(&base, place.number), stored, place))
            .collect();
        let entries = chunk_entries
            .iter()
            .map(|(key, stored, place)| NewEntry { place: Some(*place), ..NewEntry::new(key, stored) });
        let outline = NewEntry { chunks: Some(chunks.len()), ..NewEntry::new(&index, &outline) };
        let (category, ttl) = (Some(message::CATEGORY), Some(self.ttl));
        let entries: Vec<_> =
            entries.chain([outline]).map(|entry| NewEntry { category, ttl, ..entry }).collect();
        memory.save_with(&access.address(), &result.namespace, &entries, RoomPolicy::DropResults).await?;
        let max_query = memory.limits().query.input_bytes;
        Ok(StoredText::new(Arc::from(self.name), self.text, pieces, &visible, max_query))
    }

    /// Returns one chunk for each section, or if that were too many, longer ones with several sections.
    fn chunks(&self) -> Vec<TextChunk<'_>> {
        let chunks: Vec<_> = chunk::chunks(self.text, self.chunk_chars).take(MAX_SECTIONS + 1).collect();
        if chunks.len() <= MAX_SECTIONS {
            return chunks;
        }
        let share = self.text.chars().count().div_ceil(MAX_SECTIONS);
        chunk::packed_chunks(self.text, self.chunk_chars.max(share))
    }
}

#[cfg(test)]
mod tests {
    use toolyard_manifest::MemorySettings;

    use super::*;
    use crate::memory::reader::MemoryReader;
    use crate::memory::testing::ManualStore;

    fn caller(session: &str) -> MemoryCaller {
        let session = (!session.is_empty()).then(|| session.to_owned());
        MemoryCaller { session, ..MemoryCaller::default() }
    }

    fn document(text: &str) -> LongDocument<'_> {
        let time = Duration::from_secs(60);
        LongDocument { name: "web-example.com_page", text, chunk_chars: 100, ttl: time, store_time: time }
    }

    #[tokio::test]
    async fn document_is_stored_in_chunks_with_an_outline() {
        let (_, memory) = ManualStore::memory(MemorySettings::default());
        let text = "Intro\n\n# A\n\naaa\n\n## B | C\n\nbbb";
        let stored = document(text).put(&memory, caller("3f2a")).await.expect("room");
        insta::assert_snapshot!(stored.message_about("The page is large", 4000), @r#"
        The page is large (30 chars) and has been split into 3 chunk(s)
        stored in working memory.
        A document outline is stored at key `session/10c78973b5c61b1e/web-example.com_page-index` — retrieve
        it with get_from_working_memory to navigate the content by section heading.
        Call get_from_working_memory(key) for each relevant chunk BEFORE drawing conclusions.

        | # | Heading | Key |
        |---|---------|--------------------------------------------------|
        | 0 | Part 0 | `session/10c78973b5c61b1e/web-example.com_page-chunk0` |
        | 1 | A | `session/10c78973b5c61b1e/web-example.com_page-chunk1` |
        | 2 | B \| C | `session/10c78973b5c61b1e/web-example.com_page-chunk2` |

        The text has 9 lines. With the key of the outline, get_from_working_memory also finds lines in all chunks:
        grep: "PATTERN" (with context: 3), or lines: "120-180".
        "#);
        let reader = MemoryReader::new(memory.clone());
        let access = memory.access(caller("3f2a")).await.expect("a store");
        let whole = reader.text(&access, &stored.index).await.expect("a store").expect("an entry");
        assert_eq!(whole.text, text);
    }

    #[tokio::test]
    async fn same_page_replaces_its_entries() {
        let (store, memory) = ManualStore::memory(MemorySettings::default());
        document("# A\n\naaa").put(&memory, caller("3f2a")).await.expect("room");
        let count = store.len();
        document("# B\n\nbbb").put(&memory, caller("3f2a")).await.expect("room");
        let access = memory.access(caller("3f2a")).await.expect("a store");
        let reader = MemoryReader::new(memory.clone());
        let key = "session/10c78973b5c61b1e/web-example.com_page-chunk0";
        let entry = reader.find_or_index(&access, key).await.expect("a store").expect("an entry");
        assert_eq!(entry.value.trim(), "bbb");
        assert_eq!(store.len(), count);
    }

    #[tokio::test]
    async fn long_document_has_few_chunks() {
        let (_, memory) = ManualStore::memory(MemorySettings::default());
        let text: String = (0..1000).map(|number| format!("# {number}\n\n{}\n\n", "x".repeat(90))).collect();
        let stored = document(&text).put(&memory, caller("3f2a")).await.expect("room");
        assert!((50..=MAX_SECTIONS * 2).contains(&stored.pieces.len()), "{}", stored.pieces.len());
    }

    #[tokio::test]
    async fn document_larger_than_memory_has_a_reason() {
        let (_, memory) = ManualStore::memory(MemorySettings { bytes: 4096, ..MemorySettings::default() });
        let why = document(&"x".repeat(10_000)).put(&memory, caller("3f2a")).await.expect_err("no room");
        assert!(why.contains("4096"), "{why}");
    }

    #[tokio::test]
    async fn caller_without_a_namespace_gets_keys_with_an_id() {
        let (_, memory) = ManualStore::memory(MemorySettings::default());
        let stored = document("# A\n\naaa").put(&memory, caller("")).await.expect("room");
        assert!(stored.index.starts_with("session/tyid_"), "{}", stored.index);
        let access = memory.access(caller("")).await.expect("a store");
        let reader = MemoryReader::new(memory.clone());
        let whole = reader.text(&access, &stored.index).await.expect("a store").expect("an entry");
        assert_eq!(whole.text, "# A\n\naaa");
    }
}
