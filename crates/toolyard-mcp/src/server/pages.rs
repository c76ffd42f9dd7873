//! Long lists in pages (2026-07-28, server/utilities/pagination).
//!
//! A cursor needs no memory, and any gateway with the same list takes it. It names the entries that stood last before
//! the page that it is of, so that the next page begins behind them wherever they stand by then: what stays on the list
//! is given once, whatever else comes and goes. Several are named, because the very last may be gone.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use toolyard_core::registry::Kind;
use toolyard_core::{Json, Registry};

use crate::wire::RpcError;

/// Entries that a cursor names.
const NAMED: usize = 8;

/// A part of a list, and the cursor of what is behind it.
pub(super) struct Page {
    pub(super) list: Bytes,
    pub(super) next: Option<String>,
}

/// The page that a client asks for. The only page of a list is its text as it is kept.
///
/// # Errors
/// When the cursor is none of this list.
pub(super) fn page(
    registry: &Registry,
    kind: Kind,
    most: usize,
    cursor: Option<&Json>,
) -> Result<Page, RpcError> {
    let cursor = match cursor.filter(|cursor| !cursor.is_null()) {
        Some(cursor) => {
            Some(cursor.to_str().and_then(|text| Cursor::read(&text, kind)).ok_or_else(no_cursor)?)
        }
        None => None,
    };
    let listing = registry.shown(kind);
    let entries = listing.entries();
    let place = cut(entries, |entry| &entry.name, most, cursor);
    if place == (0..entries.len()) {
        return Ok(Page { list: listing.json().bytes(), next: None });
    }
    let definitions = listing.iter().map(|(_, definition)| definition);
    let list = Json::array(definitions.skip(place.start).take(place.len())).bytes();
    let next =
        (place.end < entries.len()).then(|| Cursor::behind(&entries[..place.end], |entry| &entry.name));
    Ok(Page { list, next: next.map(|cursor| cursor.write(kind)) })
}

fn no_cursor() -> RpcError {
    RpcError::invalid_params("`params.cursor` is none that was given out")
}

/// Where a page stands among all entries.
fn cut<T>(entries: &[T], name: fn(&T) -> &str, most: usize, cursor: Option<Cursor>) -> Range<usize> {
    let start = cursor.map_or(0, |cursor| cursor.find(entries, name));
    start..entries.len().min(start.saturating_add(most.max(1)))
}

/// Where a page begins.
struct Cursor {
    /// How many entries stood before it.
    before: usize,
    /// The last of these.
    named: Vec<u64>,
}

impl Cursor {
    fn behind<T>(entries: &[T], name: fn(&T) -> &str) -> Self {
        let named = &entries[entries.len().saturating_sub(NAMED)..];
        Self { before: entries.len(), named: named.iter().map(|entry| digest(name(entry))).collect() }
    }

    /// Where the entries that it names end now. If none of them is there any more, where they began.
    fn find<T>(&self, entries: &[T], name: fn(&T) -> &str) -> usize {
        let places = entries.iter().enumerate().filter_map(|(place, entry)| {
            let digest = digest(name(entry));
            self.named.iter().position(|named| *named == digest).map(|named| (named, place))
        });
        let latest = places.max().map(|(_, place)| place + 1);
        latest.unwrap_or(self.before - self.named.len()).min(entries.len())
    }

    fn write(&self, kind: Kind) -> String {
        let before = u32::try_from(self.before).unwrap_or(u32::MAX);
        let mut bytes = vec![kind as u8];
        bytes.extend(before.to_be_bytes());
        self.named.iter().for_each(|named| bytes.extend(named.to_be_bytes()));
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn read(text: &str, kind: Kind) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (first, rest) = bytes.split_first()?;
        let (before, rest) = rest.split_first_chunk()?;
        let before = usize::try_from(u32::from_be_bytes(*before)).ok()?;
        let (named, rest) = rest.as_chunks();
        let fits = before > 0 && named.len() == before.min(NAMED) && rest.is_empty();
        let named = named.iter().map(|named| u64::from_be_bytes(*named)).collect();
        (*first == kind as u8 && fits).then_some(Self { before, named })
    }
}

/// What stands for a name, which may be long, at every gateway (FNV-1a). Who offers two names of one digest harms the
/// pages of his own entries.
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

    /// An edit of a list: places of entries that go, fewer than a cursor names, and where others come.
    fn edits() -> impl Strategy<Value = Vec<(Vec<prop::sample::Index>, Vec<prop::sample::Index>)>> {
        vec((vec(any::<prop::sample::Index>(), 0..NAMED), vec(any::<prop::sample::Index>(), 0..20)), 100)
    }

    fn edit(
        list: &mut Vec<String>,
        go: &[prop::sample::Index],
        come: &[prop::sample::Index],
        next: &mut usize,
    ) {
        for place in go {
            if !list.is_empty() {
                list.remove(place.index(list.len()));
            }
        }
        for place in come {
            list.insert(place.index(list.len() + 1), format!("n{next}"));
            *next += 1;
        }
    }

    proptest! {
        #[test]
        fn what_stays_is_given_once(count in 0_usize..60, most in 1_usize..20, edits in edits()) {
            let mut list: Vec<_> = (0..count).map(|number| number.to_string()).collect();
            let mut staying = list.clone();
            let (mut given, mut next, mut cursor) = (BTreeMap::new(), 0, None);
            for (round, (go, come)) in edits.iter().enumerate() {
                let place = cut(&list, |name| name, most, cursor.as_ref().and_then(|text: &String| Cursor::read(text, Kind::Tools)));
                prop_assert!(place.len() <= most);
                list[place.clone()].iter().for_each(|name| *given.entry(name.clone()).or_insert(0) += 1);
                if place.end == list.len() {
                    for name in staying {
                        prop_assert_eq!(given.get(&name), Some(&1), "{} in {:?}", name, given);
                    }
                    return Ok(());
                }
                cursor = Some(Cursor::behind(&list[..place.end], |name| name).write(Kind::Tools));
                // What comes in front of the page for ever would make the list endless.
                let come = if round < 10 { &come[..] } else { &[] };
                edit(&mut list, go, come, &mut next);
                staying.retain(|name| list.contains(name));
            }
            prop_assert!(false, "the list has no end");
        }

        #[test]
        fn a_cursor_that_is_none(text in "[A-Za-z0-9_=-]{0,120}") {
            if let Some(cursor) = Cursor::read(&text, Kind::Prompts) {
                prop_assert_eq!(cursor.write(Kind::Prompts), text);
            }
        }
    }

    #[test]
    fn a_cursor_is_of_one_list() {
        let cursor = Cursor::behind(&["a", "b"], |name| name).write(Kind::Tools);
        assert!(Cursor::read(&cursor, Kind::Tools).is_some());
        assert!(Cursor::read(&cursor, Kind::Prompts).is_none());
        assert!(Cursor::read(&cursor[..cursor.len() - 4], Kind::Tools).is_none());
    }
}
