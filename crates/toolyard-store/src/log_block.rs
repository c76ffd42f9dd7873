//! Blocks of log records, the form in which both databases keep them: records that arrive together are one row,
//! compressed, beside what a search needs to skip it.
//!
//! The body of a block is a Zstandard frame. It contains a [`Columns`] as JSON, a line feed, and the bodies of the
//! records one after the other.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Read};

use serde::{Deserialize, Serialize};
use toolyard_core::store::{LogRecord, RecordQuery, StoredRecord};

use crate::convert;

/// Maximum number of records of a block.
const MAX_RECORDS: usize = 500;

/// Size at which a block is complete: maximum bytes of the bodies of its records but the last.
const MAX_BODY_BYTES: usize = 1 << 20;

/// Maximum bytes of a block after decompression. A longer one is damaged.
const MAX_DECOMPRESSED_BYTES: u64 = 256 << 20;

/// The fastest level. The next ones take twice the time, and the blocks have the same size.
const COMPRESSION_LEVEL: i32 = 1;

/// A block as a row.
pub(crate) struct EncodedBlock {
    /// Number of the first record.
    pub(crate) first: i64,
    pub(crate) records: i64,
    pub(crate) earliest_ms: i64,
    pub(crate) latest_ms: i64,
    /// Hashes of the tags of all records, sorted, without duplicates.
    pub(crate) tags: Vec<i32>,
    pub(crate) body: Vec<u8>,
}

/// The records of a block without their bodies, column by column: similar values stand together and compress well.
#[derive(Default, Serialize, Deserialize)]
struct Columns<'a> {
    /// Number of each record: the difference to the previous one.
    numbers: Vec<i64>,
    /// Time of each record in milliseconds since the Unix epoch: the difference to the previous one.
    times: Vec<i64>,
    /// Bytes of the body of each record.
    lengths: Vec<usize>,
    /// Names and values of the tags of all records.
    #[serde(borrow)]
    tags: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Tags of each record: positions in `tags`.
    tagged: Vec<Vec<usize>>,
}

/// A record of a block.
struct BlockRecord<'a> {
    number: i64,
    time_ms: i64,
    tags: &'a [usize],
    body: &'a str,
}

/// A decompressed block.
pub(crate) struct DecodedBlock<'a> {
    first: i64,
    columns: Columns<'a>,
    bodies: &'a str,
}

/// Collects records for a block.
#[derive(Default)]
pub(crate) struct BlockBuilder {
    columns: Columns<'static>,
    bodies: String,
    /// Positions in `tags` by name, zero byte and value.
    positions: HashMap<String, usize>,
    /// Number of the first record; number and time of the last one.
    first: i64,
    last: (i64, i64),
    earliest_ms: i64,
    latest_ms: i64,
}

/// Returns `true` if a block of `records` records and `bytes` bytes is rewritten together with `added` new records,
/// because it has at most as many: each record is rewritten a few times at most, and few calls do not leave a row each.
pub(crate) fn is_merged(records: i64, bytes: usize, added: usize) -> bool {
    let records = usize::try_from(records).unwrap_or(usize::MAX);
    records <= added && records.saturating_add(added) <= MAX_RECORDS && bytes < MAX_BODY_BYTES / 4
}

/// Decompresses the body of a block into a text for [`DecodedBlock::read`].
pub(crate) fn decompress(body: &[u8]) -> io::Result<String> {
    let mut text = String::new();
    zstd::Decoder::new(body)?.take(MAX_DECOMPRESSED_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// Returns the hash of a tag: FNV-1a over the name, a zero byte and the value. Stored blocks depend on it.
pub(crate) fn tag_hash(name: &str, value: &str) -> i32 {
    let bytes = name.bytes().chain([0]).chain(value.bytes());
    bytes.fold(0x811C_9DC5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)).cast_signed()
}

impl BlockBuilder {
    /// Returns `true` if the block has enough records.
    pub(crate) fn is_full(&self) -> bool {
        self.columns.numbers.len() >= MAX_RECORDS || self.bodies.len() >= MAX_BODY_BYTES
    }

    /// Adds a new record.
    pub(crate) fn add(&mut self, number: i64, record: &LogRecord) {
        let tags = record.tags.iter().map(|(name, value)| (*name, &**value));
        self.push(number, convert::unix_millis(record.time), tags, &record.body);
    }

    /// Adds the records of a block for which `keep` is true of their time in milliseconds since the Unix epoch. Returns
    /// the number of the others.
    pub(crate) fn add_block(&mut self, block: &DecodedBlock<'_>, keep: impl Fn(i64) -> bool) -> u64 {
        let mut others = 0;
        for record in block.records() {
            if keep(record.time_ms) {
                self.push(record.number, record.time_ms, block.tags(&record), record.body);
            } else {
                others += 1;
            }
        }
        others
    }

    fn push<'a>(
        &mut self,
        number: i64,
        time_ms: i64,
        tags: impl Iterator<Item = (&'a str, &'a str)>,
        body: &str,
    ) {
        if self.columns.numbers.is_empty() {
            (self.first, self.last) = (number, (number, 0));
            (self.earliest_ms, self.latest_ms) = (time_ms, time_ms);
        }
        let Columns { numbers, times, lengths, tags: all_tags, tagged } = &mut self.columns;
        numbers.push(number - self.last.0);
        times.push(time_ms.wrapping_sub(self.last.1));
        lengths.push(body.len());
        let mut key = String::new();
        let mut previous = tagged.last().map(Vec::as_slice).unwrap_or_default().iter();
        let positions = tags.map(|(name, value)| {
            // Most records have the tags of the one before.
            if let Some(position) = previous.next()
                && all_tags[*position] == (Cow::Borrowed(name), Cow::Borrowed(value))
            {
                return *position;
            }
            key.clear();
            key.extend([name, "\0", value]);
            if let Some(position) = self.positions.get(&key) {
                return *position;
            }
            all_tags.push((Cow::Owned(name.to_owned()), Cow::Owned(value.to_owned())));
            self.positions.insert(key.clone(), all_tags.len() - 1);
            all_tags.len() - 1
        });
        let positions = positions.collect();
        tagged.push(positions);
        self.bodies.push_str(body);
        self.last = (number, time_ms);
        self.earliest_ms = self.earliest_ms.min(time_ms);
        self.latest_ms = self.latest_ms.max(time_ms);
    }

    /// Encodes the block. `None` if it has no records.
    pub(crate) fn finish(self) -> io::Result<Option<EncodedBlock>> {
        let Self { columns, bodies, first, earliest_ms, latest_ms, .. } = self;
        if columns.numbers.is_empty() {
            return Ok(None);
        }
        let mut text = serde_json::to_string(&columns)?;
        text.push('\n');
        text.push_str(&bodies);
        let mut tags: Vec<_> = columns.tags.iter().map(|(name, value)| tag_hash(name, value)).collect();
        tags.sort_unstable();
        tags.dedup();
        let body = zstd::bulk::compress(text.as_bytes(), COMPRESSION_LEVEL)?;
        let records = convert::row_limit(columns.numbers.len());
        Ok(Some(EncodedBlock { first, records, earliest_ms, latest_ms, tags, body }))
    }
}

impl<'a> DecodedBlock<'a> {
    /// Reads a block with this number of its first record.
    pub(crate) fn read(first: i64, text: &'a str) -> io::Result<Self> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "the block of log records is damaged");
        let (columns, bodies) = text.split_once('\n').ok_or_else(damaged)?;
        let columns: Columns<'_> = serde_json::from_str(columns)?;
        let Columns { numbers, times, lengths, tags, tagged } = &columns;
        let count = numbers.len();
        let mut end = 0_usize;
        let is_valid = [times.len(), lengths.len(), tagged.len()] == [count; 3]
            && tagged.iter().flatten().all(|position| *position < tags.len())
            && lengths.iter().all(|length| {
                end = end.saturating_add(*length);
                bodies.is_char_boundary(end)
            });
        if !is_valid {
            return Err(damaged());
        }
        Ok(Self { first, columns, bodies })
    }

    /// Returns at most `limit` records that match a query, newest first.
    pub(crate) fn select(&self, query: &RecordQuery, limit: usize) -> Vec<StoredRecord> {
        let since = query.since.map_or(i64::MIN, convert::unix_millis);
        let until = query.until.map_or(i64::MAX, convert::unix_millis);
        let before = query.before.map_or(i64::MAX, convert::saturating_i64);
        let matches = |record: &BlockRecord<'_>| {
            let has_tag =
                |(name, value): &(&str, String)| self.tags(record).any(|tag| tag == (*name, value.as_str()));
            record.number < before
                && (since..until).contains(&record.time_ms)
                && query.tags.iter().all(has_tag)
        };
        let records: Vec<_> = self.records().filter(matches).collect();
        let newest_first = records.into_iter().rev().take(limit);
        newest_first
            .map(|record| StoredRecord {
                number: convert::to_unsigned(record.number),
                time: convert::system_time(record.time_ms),
                body: record.body.to_owned(),
            })
            .collect()
    }

    fn records(&self) -> impl Iterator<Item = BlockRecord<'_>> {
        let Columns { numbers, times, lengths, tagged, .. } = &self.columns;
        let (mut number, mut time_ms, mut rest) = (self.first, 0_i64, self.bodies);
        numbers.iter().zip(times).zip(lengths).zip(tagged).map(
            move |(((number_step, time_step), length), tags)| {
                let body;
                // The lengths were checked when the block was read.
                (body, rest) = rest.split_at(*length);
                number = number.wrapping_add(*number_step);
                time_ms = time_ms.wrapping_add(*time_step);
                BlockRecord { number, time_ms, tags, body }
            },
        )
    }

    fn tags<'b>(
        &'b self,
        record: &BlockRecord<'b>,
    ) -> impl Iterator<Item = (&'b str, &'b str)> + use<'a, 'b> {
        let tags = &self.columns.tags;
        record.tags.iter().map(|position| (&*tags[*position].0, &*tags[*position].1))
    }
}
