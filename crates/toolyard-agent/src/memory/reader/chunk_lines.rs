//! The chunks of a result that have some lines of its text.

use std::ops::Range;

use crate::memory::record::ChunkPlace;

/// Returns the chunks whose stored texts have the lines from `first` to `last`, of which perhaps some next to them have
/// none; the last chunk if there are no such lines.
pub(super) fn chunks_with(places: &[ChunkPlace], first: usize, last: usize) -> Range<usize> {
    let chunks = places.len();
    // The stored text begins after the preceding chunk begins, and some bytes, and no more lines, before its own chunk.
    let begins_in_time = |number: &usize| {
        let own = places[*number].lines.saturating_sub(places[*number].before);
        own.max(number.checked_sub(1).map_or(0, |before| places[before].lines)) < last
    };
    // It ends with the line in which the next chunk begins, at the latest.
    let ends_in_time = |number: &usize| places.get(number + 1).is_none_or(|next| next.lines + 1 >= first);
    let start = (0..chunks).find(ends_in_time).unwrap_or_default();
    let end = (0..chunks).rfind(begins_in_time).map_or(0, |number| number + 1);
    if start < end { start..end } else { chunks.saturating_sub(1)..chunks }
}

/// Returns the number of lines of the whole text that end before a stored text.
pub(super) fn lines_before(place: ChunkPlace, stored: &str) -> usize {
    let before = stored.as_bytes().get(..place.before).unwrap_or_default();
    place.lines.saturating_sub(memchr::memchr_iter(b'\n', before).count())
}
