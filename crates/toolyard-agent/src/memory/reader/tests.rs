use std::sync::Arc;

use proptest::prelude::*;
use toolyard_manifest::{MemorySettings, ReadSettings};

use super::*;
use crate::chunk::{self, TextChunk};
use crate::memory::reading::range::LineRange;
use crate::memory::reading::{PartRequest, SourceText};
use crate::memory::testing::ManualStore;
use crate::memory::testing::observed_store::{ObservedStore, StoreOperation};
use crate::memory::{MemoryCaller, MemoryNamespace, NewEntry, RoomPolicy};

const BASE: &str = "key/abc/tool-t-a1b2c3";

/// A result in a store that counts its operations.
struct StoredResult {
    store: Arc<ObservedStore>,
    reader: MemoryReader,
    access: MemoryAccess,
}

impl StoredResult {
    async fn new(text: &str, chunks: &[TextChunk<'_>]) -> Self {
        let (inner, memory) = ManualStore::memory(MemorySettings::default());
        let store = ObservedStore::new(inner.clone());
        let memory = WorkingMemory::new(store.clone(), *memory.limits()).with_clock(inner.clock());
        let paths: Vec<_> = (0..chunks.len()).map(|number| chunk_keys::chunk_key(BASE, number)).collect();
        let index = chunk_keys::index_key(BASE);
        let stored = crate::large::places::StoredChunks::new(text, chunks);
        let entries = paths.iter().zip(stored);
        let entries = entries
            .map(|(path, (stored, place))| NewEntry { place: Some(place), ..NewEntry::new(path, stored) });
        let outline = NewEntry { chunks: Some(chunks.len()), ..NewEntry::new(&index, "outline") };
        let entries: Vec<_> = entries.chain([outline]).collect();
        let namespace = MemoryNamespace::new("key", "abc");
        memory.save_with("", &namespace, &entries, RoomPolicy::Refuse).await.expect("room");
        let caller = MemoryCaller { principal: Some("abc".to_owned()), ..MemoryCaller::default() };
        let access = memory.access(caller).await.expect("a store");
        let result = Self { store, reader: MemoryReader::new(memory), access };
        result.take_reads();
        result
    }

    /// Returns the number of index reads and value reads since the last call.
    fn take_reads(&self) -> (usize, usize) {
        (self.store.take_count(StoreOperation::Get), self.store.take_count(StoreOperation::List))
    }
}

/// Returns a text of 100 sections with two lines each.
fn sections() -> String {
    (0..100).map(|number| format!("# Section {number}\nwords\n")).collect()
}

#[tokio::test]
async fn whole_result_takes_one_read_of_the_index_and_concurrent_reads_of_values() {
    let text = sections();
    let chunks: Vec<_> = chunk::chunks(&text, 100).collect();
    let result = StoredResult::new(&text, &chunks).await;
    let result_text =
        result.reader.whole(&result.access, BASE, text.len()).await.expect("a store").expect("a result");
    assert_eq!(result_text.text, text);
    let (indexes, values) = result.take_reads();
    // The key is the beginning of others: it is not found itself, the outline is, and then the chunks are.
    assert!(indexes <= 3, "{indexes} reads of the index");
    assert_eq!(values, chunks.len() + 1, "the outline and each chunk");
    assert!((2..=8).contains(&result.store.most_running()), "{}", result.store.most_running());
}

#[tokio::test]
async fn chunks_of_a_result_over_the_limit_are_not_read() {
    let text = sections();
    let chunks: Vec<_> = chunk::chunks(&text, 100).collect();
    let result = StoredResult::new(&text, &chunks).await;
    let error = result.reader.whole(&result.access, BASE, text.len() - 1).await.expect_err("a long result");
    let expected = QueryError::LargeValue { bytes: text.len(), limit: text.len() - 1 };
    assert_eq!(error.to_string(), expected.to_string());
    let (_, values) = result.take_reads();
    assert_eq!(values, 1, "the outline");
}

#[tokio::test]
async fn lines_take_only_the_chunks_that_have_them() {
    let text = sections();
    let chunks: Vec<_> = chunk::chunks(&text, 100).collect();
    let result = StoredResult::new(&text, &chunks).await;
    for (first, last, expected) in [(1, 1, 3), (100, 100, 4), (100, 103, 5), (200, 200, 3), (500, 600, 2)] {
        let result_text = result.reader.lines(&result.access, BASE, first, last).await;
        let result_text = result_text.expect("a store").expect("a result");
        let (indexes, values) = result.take_reads();
        assert!(indexes <= 3, "{first}-{last}: {indexes} reads of the index");
        assert!(values <= expected + 1, "{first}-{last}: {values} reads of values");
        assert_eq!(lines_text(&result_text, first, last), shown_of(&text, first, last));
    }
}

#[tokio::test]
async fn result_without_a_chunk_is_incomplete() {
    let text = sections();
    let chunks: Vec<_> = chunk::chunks(&text, 100).collect();
    let result = StoredResult::new(&text, &chunks).await;
    let path = chunk_keys::chunk_key(BASE, 7);
    let key = FullKey { namespace: MemoryNamespace::new("key", "abc"), path };
    result.reader.memory().delete(&key).await.expect("a store");
    for lines in [None, Some((16, 16)), Some((1, 1))] {
        let result_text = result.reader.whole_or_lines(&result.access, BASE, lines, usize::MAX).await;
        assert!(
            matches!(result_text, Err(ReadError::Incomplete { number: 7, .. })),
            "{lines:?}: {result_text:?}"
        );
    }
}

/// Returns the lines that a tool shows of a found text.
fn lines_text(found: &FoundText, first: usize, last: usize) -> String {
    let FoundText { text, lines_before, lines_after, .. } = found.clone();
    let source = SourceText { text, lines_before, lines_after, is_part: false };
    let request = PartRequest { lines: Some(LineRange::Between(first, last)), ..PartRequest::default() };
    request.read(&source, &ReadSettings::default(), tokio::time::Instant::now()).text
}

/// Returns the lines that a tool shows of a whole text.
fn shown_of(text: &str, first: usize, last: usize) -> String {
    let result_text = FoundText { text: text.to_owned(), lines_before: 0, lines_after: 0, index: None };
    lines_text(&result_text, first, last)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// Lines of a part are those of the whole text, however that is split.
    #[test]
    fn lines_of_some_chunks_are_those_of_the_whole_text(
        text in "(# [ab]\n|[ab]{1,9}\n|\n|[ab]{1,9}){1,30}", max in 1_usize..20, packed: bool, first in 1_usize..40, count in 0_usize..9,
    ) {
        let chunks = if packed { chunk::packed_chunks(&text, max) } else { chunk::chunks(&text, max).collect() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let result_text = runtime.block_on(async {
            let result = StoredResult::new(&text, &chunks).await;
            result.reader.lines(&result.access, BASE, first, first + count).await
        });
        let result_text = result_text.expect("a store").expect("a result");
        prop_assert_eq!(lines_text(&result_text, first, first + count), shown_of(&text, first, first + count));
    }
}
