//! Pagination of lists (2026-07-28, server/utilities/pagination).
//!
//! A cursor is stateless, and valid at any gateway with the same list. It contains digests of the last entries before
//! the next page, so that the page starts behind them even if the list has changed: an entry that stays on the list is
//! returned exactly once. It contains several digests because the last entry may be gone.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use toolyard_core::registry::EntryKind;
use toolyard_core::{Json, Registry};

use crate::wire::{ProtocolEra, RpcError};

/// Number of entries that a cursor identifies.
const DIGESTS: usize = 8;

/// A page of a list, and the cursor of the next page.
pub(super) struct ListPage {
    pub(super) list: Bytes,
    pub(super) next: Option<String>,
}

/// Returns the page at a cursor. A list that fits one page is returned as its cached text.
///
/// # Errors
/// When the cursor is invalid for this list.
pub(super) fn read_page(
    registry: &Registry,
    (kind, era): (EntryKind, ProtocolEra),
    page_size: usize,
    cursor: Option<&Json>,
) -> Result<ListPage, RpcError> {
    let cursor = match cursor.filter(|cursor| !cursor.is_null()) {
        Some(cursor) => Some(
            cursor.to_str().and_then(|text| PageCursor::decode(&text, kind)).ok_or_else(invalid_cursor)?,
        ),
        None => None,
    };
    let listing = match era {
        ProtocolEra::Legacy => registry.advertised_objects(kind),
        ProtocolEra::Modern => registry.advertised(kind),
    };
    let entries = listing.entries();
    let range = page_range(entries, |entry| &entry.name, page_size, cursor);
    if range == (0..entries.len()) {
        return Ok(ListPage { list: listing.json().bytes(), next: None });
    }
    let definitions = listing.iter().map(|(_, definition)| definition);
    let list = Json::array(definitions.skip(range.start).take(range.len())).bytes();
    let next =
        (range.end < entries.len()).then(|| PageCursor::after(&entries[..range.end], |entry| &entry.name));
    Ok(ListPage { list, next: next.map(|cursor| cursor.encode(kind)) })
}

fn invalid_cursor() -> RpcError {
    RpcError::invalid_params("invalid cursor")
}

/// Returns the range of a page among all entries.
fn page_range<T>(
    entries: &[T],
    name: fn(&T) -> &str,
    page_size: usize,
    cursor: Option<PageCursor>,
) -> Range<usize> {
    let start = cursor.map_or(0, |cursor| cursor.start_in(entries, name));
    start..entries.len().min(start.saturating_add(page_size.max(1)))
}

/// The start of a page.
struct PageCursor {
    /// Number of entries before the page.
    offset: usize,
    /// Digests of the last of these entries.
    digests: Vec<u64>,
}

impl PageCursor {
    fn after<T>(entries: &[T], name: fn(&T) -> &str) -> Self {
        let last = &entries[entries.len().saturating_sub(DIGESTS)..];
        Self { offset: entries.len(), digests: last.iter().map(|entry| digest(name(entry))).collect() }
    }

    /// Returns the position behind the identified entries; if all of them are gone, the position where the first one
    /// was.
    fn start_in<T>(&self, entries: &[T], name: fn(&T) -> &str) -> usize {
        let positions = entries.iter().enumerate().filter_map(|(position, entry)| {
            let digest = digest(name(entry));
            self.digests.iter().position(|other| *other == digest).map(|rank| (rank, position))
        });
        let latest = positions.max().map(|(_, position)| position + 1);
        latest.unwrap_or(self.offset - self.digests.len()).min(entries.len())
    }

    fn encode(&self, kind: EntryKind) -> String {
        let offset = u32::try_from(self.offset).unwrap_or(u32::MAX);
        let mut bytes = vec![kind as u8];
        bytes.extend(offset.to_be_bytes());
        self.digests.iter().for_each(|digest| bytes.extend(digest.to_be_bytes()));
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn decode(text: &str, kind: EntryKind) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (first, rest) = bytes.split_first()?;
        let (offset, rest) = rest.split_first_chunk()?;
        let offset = usize::try_from(u32::from_be_bytes(*offset)).ok()?;
        let (digests, rest) = rest.as_chunks();
        let fits = offset > 0 && digests.len() == offset.min(DIGESTS) && rest.is_empty();
        let digests = digests.iter().map(|digest| u64::from_be_bytes(*digest)).collect();
        (*first == kind as u8 && fits).then_some(Self { offset, digests })
    }
}

/// Returns the digest of a name (FNV-1a), the same at every gateway. A collision affects only the pages of the handler
/// that causes it.
fn digest(name: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Edits of a list: entries to remove, fewer than a cursor identifies, and positions of entries to insert.
    fn edits() -> impl Strategy<Value = Vec<(Vec<prop::sample::Index>, Vec<prop::sample::Index>)>> {
        vec((vec(any::<prop::sample::Index>(), 0..DIGESTS), vec(any::<prop::sample::Index>(), 0..20)), 100)
    }

    fn edit(
        list: &mut Vec<String>,
        go: &[prop::sample::Index],
        come: &[prop::sample::Index],
        next: &mut usize,
    ) {
        for position in go {
            if !list.is_empty() {
                list.remove(position.index(list.len()));
            }
        }
        for position in come {
            list.insert(position.index(list.len() + 1), format!("n{next}"));
            *next += 1;
        }
    }

    proptest! {
        #[test]
        fn remaining_entries_are_returned_once(count in 0_usize..60, page_size in 1_usize..20, edits in edits()) {
            let mut list: Vec<_> = (0..count).map(|number| number.to_string()).collect();
            let mut staying = list.clone();
            let (mut returned, mut next, mut cursor) = (BTreeMap::new(), 0, None);
            for (round, (go, come)) in edits.iter().enumerate() {
                let position = page_range(&list, |name| name, page_size, cursor.as_ref().and_then(|text: &String| PageCursor::decode(text, EntryKind::Tools)));
                prop_assert!(position.len() <= page_size);
                list[position.clone()].iter().for_each(|name| *returned.entry(name.clone()).or_insert(0) += 1);
                if position.end == list.len() {
                    for name in staying {
                        prop_assert_eq!(returned.get(&name), Some(&1), "{} in {:?}", name, returned);
                    }
                    return Ok(());
                }
                cursor = Some(PageCursor::after(&list[..position.end], |name| name).encode(EntryKind::Tools));
                // Endless insertions before the page would make the list endless.
                let come = if round < 10 { &come[..] } else { &[] };
                edit(&mut list, go, come, &mut next);
                staying.retain(|name| list.contains(name));
            }
            prop_assert!(false, "the list has no end");
        }

        #[test]
        fn arbitrary_text_is_a_valid_cursor_or_refused(text in "[A-Za-z0-9_=-]{0,120}") {
            if let Some(cursor) = PageCursor::decode(&text, EntryKind::Prompts) {
                prop_assert_eq!(cursor.encode(EntryKind::Prompts), text);
            }
        }
    }

    #[test]
    fn cursor_is_valid_for_one_list() {
        let cursor = PageCursor::after(&["a", "b"], |name| name).encode(EntryKind::Tools);
        assert!(PageCursor::decode(&cursor, EntryKind::Tools).is_some());
        assert!(PageCursor::decode(&cursor, EntryKind::Prompts).is_none());
        assert!(PageCursor::decode(&cursor[..cursor.len() - 4], EntryKind::Tools).is_none());
    }
}
