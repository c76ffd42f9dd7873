//! The part of working memory that callers without a key share.
//!
//! The ledger lists the namespaces of these callers with their sizes and addresses. A save first enters what it is going
//! to write. If there is no room, the ledger marks the older namespaces that have to go; these are deleted and then removed
//! from the ledger, and the save tries again. Afterwards it enters the difference to what it has written. So sizes are never
//! too low, also with several gateways, or when one of them dies, or a save is cancelled.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use toolyard_manifest::MemorySettings;

use super::error::MemoryError;
use super::namespace::MemoryNamespace;
use super::record::millis;

/// Maximum number of namespaces, and of those with one address.
const MAX_NAMESPACES: usize = 1024;
const MAX_NAMESPACES_OF_ADDRESS: usize = MAX_NAMESPACES / 4;

/// The namespaces of callers without a key.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeylessLedger {
    namespaces: Vec<LedgerEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LedgerEntry {
    #[serde(rename = "n")]
    namespace: String,
    #[serde(rename = "a")]
    address: String,
    #[serde(rename = "b")]
    bytes: usize,
    /// Time of the last write, in milliseconds since 1970.
    #[serde(rename = "w")]
    written: u64,
    /// Expiry of all entries, in milliseconds since 1970.
    #[serde(rename = "e")]
    expires: u64,
    /// True while the namespace is being deleted, so that others have room.
    #[serde(rename = "d", default, skip_serializing_if = "std::ops::Not::not")]
    is_evicted: bool,
}

/// Entries that a caller is about to save.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeylessClaim<'a> {
    pub(super) namespace: &'a MemoryNamespace,
    /// Address of the caller.
    pub(super) address: &'a str,
    /// Size of the entries, without that of those that they replace.
    pub(super) bytes: usize,
    /// Expiry of the entries, in milliseconds since 1970.
    pub(super) expires: u64,
}

impl KeylessLedger {
    /// Removes what has expired.
    pub(super) fn living(mut self, now: SystemTime) -> Self {
        self.namespaces.retain(|entry| entry.expires > millis(now));
        self
    }

    /// Returns the time at which the last namespace expires, in milliseconds since 1970.
    pub(super) fn expires(&self) -> u64 {
        self.namespaces.iter().map(|entry| entry.expires).max().unwrap_or_default()
    }

    /// Enters entries that are about to be saved, if there is room for them. Otherwise marks the namespaces that have to
    /// go: the least recently written ones of the same address while it exceeds its part, and then those of the address
    /// with most bytes while all together exceed theirs. Returns all marked ones. Once they are deleted,
    /// [`KeylessLedger::forget`] makes room for another attempt.
    ///
    /// # Errors
    /// Returns an error if the namespace itself would exceed the part of its address.
    pub(super) fn claim(
        &mut self,
        claim: KeylessClaim<'_>,
        limits: &MemorySettings,
        now: SystemTime,
    ) -> Result<Vec<MemoryNamespace>, MemoryError> {
        let (name, part) = (claim.namespace.as_str(), limits.keyless_address_bytes());
        let before = self.take(name);
        if let Some(before) = before.clone().filter(|before| before.is_evicted) {
            self.namespaces.push(before);
            return Ok(self.evicted());
        }
        let mut own = before.clone().unwrap_or_else(|| LedgerEntry {
            namespace: name.to_owned(),
            address: claim.address.to_owned(),
            bytes: 0,
            written: 0,
            expires: 0,
            is_evicted: false,
        });
        let needed = own.bytes.saturating_add(claim.bytes);
        if needed > part {
            return Err(MemoryError::KeylessFull { limit: part, needed });
        }
        (own.bytes, own.written, own.expires) = (needed, millis(now), own.expires.max(claim.expires));
        if self.has_room_for(&own, limits, |_| true) {
            self.namespaces.push(own);
            return Ok(Vec::new());
        }
        // The own entry counts, but is not among those that can go.
        while !self.address_has_room_for(&own, limits, LedgerEntry::stays) {
            if !self.evict_oldest(&own.address) {
                break;
            }
        }
        while !self.has_room_for(&own, limits, LedgerEntry::stays) {
            let largest = self.largest_address(&own);
            if !largest.is_some_and(|address| self.evict_oldest(&address)) {
                break;
            }
        }
        self.namespaces.extend(before);
        Ok(self.evicted())
    }

    /// Removes namespaces that were marked, and that are deleted now.
    pub(super) fn forget(&mut self, deleted: &[MemoryNamespace]) {
        let is_deleted = |entry: &LedgerEntry| deleted.iter().any(|name| name.as_str() == entry.namespace);
        self.namespaces.retain(|entry| entry.stays() || !is_deleted(entry));
    }

    /// Returns `true` if there is room for an entry beside those that count.
    fn has_room_for(
        &self,
        own: &LedgerEntry,
        limits: &MemorySettings,
        counts: impl Fn(&LedgerEntry) -> bool + Copy,
    ) -> bool {
        let (count, bytes) = total(self.namespaces.iter().filter(|entry| counts(entry)));
        self.address_has_room_for(own, limits, counts)
            && count < MAX_NAMESPACES
            && bytes + own.bytes <= limits.keyless_bytes()
    }

    /// Returns `true` if the part of its address has room for an entry beside those that count.
    fn address_has_room_for(
        &self,
        own: &LedgerEntry,
        limits: &MemorySettings,
        counts: impl Fn(&LedgerEntry) -> bool,
    ) -> bool {
        let of_address = self.namespaces.iter().filter(|entry| entry.address == own.address);
        let (count, bytes) = total(of_address.filter(|entry| counts(entry)));
        count < MAX_NAMESPACES_OF_ADDRESS && bytes + own.bytes <= limits.keyless_address_bytes()
    }

    fn evicted(&self) -> Vec<MemoryNamespace> {
        let evicted = self.namespaces.iter().filter(|entry| entry.is_evicted);
        evicted.filter_map(|entry| MemoryNamespace::from_text(&entry.namespace)).collect()
    }

    /// Corrects the size of a namespace after a change: `claimed` bytes were entered, and it grew from `before` to
    /// `after` bytes.
    pub(super) fn settle(
        &mut self,
        namespace: &MemoryNamespace,
        claimed: usize,
        before: usize,
        after: usize,
    ) {
        let Some(at) = self.position(namespace.as_str()) else { return };
        let entry = &mut self.namespaces[at];
        entry.bytes = entry.bytes.saturating_add(after).saturating_sub(before).saturating_sub(claimed);
        if entry.bytes == 0 {
            self.namespaces.remove(at);
        }
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.namespaces.iter().position(|entry| entry.namespace == name)
    }

    fn take(&mut self, name: &str) -> Option<LedgerEntry> {
        self.position(name).map(|at| self.namespaces.remove(at))
    }

    /// Marks the least recently written namespace of an address. Returns `false` if all are marked.
    fn evict_oldest(&mut self, address: &str) -> bool {
        let of_address = self.namespaces.iter_mut().filter(|entry| entry.address == address && entry.stays());
        let oldest = of_address.min_by_key(|entry| entry.written);
        oldest.map(|entry| entry.is_evicted = true).is_some()
    }

    /// Returns the address with most bytes, of those whose namespaces are listed and not marked; `own` counts for its address.
    fn largest_address(&self, own: &LedgerEntry) -> Option<String> {
        let mut sizes = BTreeMap::<&str, usize>::new();
        for entry in self.namespaces.iter().filter(|entry| entry.stays()) {
            *sizes.entry(&entry.address).or_default() += entry.bytes;
        }
        sizes.entry(&own.address).and_modify(|size| *size += own.bytes);
        sizes.into_iter().max_by_key(|(_, size)| *size).map(|(address, _)| address.to_owned())
    }
}

impl LedgerEntry {
    const fn stays(&self) -> bool {
        !self.is_evicted
    }
}

/// Returns the number of entries and of their bytes.
fn total<'a>(entries: impl Iterator<Item = &'a LedgerEntry>) -> (usize, usize) {
    entries.fold((0, 0), |(count, bytes), entry| (count + 1, bytes + entry.bytes))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    /// Enters a claim, and deletes what has to go. Returns what was deleted.
    fn claim_with_room(
        ledger: &mut KeylessLedger,
        claim: KeylessClaim<'_>,
        limits: &MemorySettings,
        now: SystemTime,
    ) -> Result<Vec<MemoryNamespace>, MemoryError> {
        let evicted = ledger.claim(claim, limits, now)?;
        if !evicted.is_empty() {
            assert_eq!(ledger.claim(claim, limits, now)?, evicted, "they are not deleted yet");
            ledger.forget(&evicted);
            assert_eq!(ledger.claim(claim, limits, now)?, [], "there is room now");
        }
        Ok(evicted)
    }

    fn bytes_of(ledger: &KeylessLedger) -> usize {
        total(ledger.namespaces.iter()).1
    }

    /// Enters claims of `(namespace, address, bytes)` in order, a second apart, with 100 bytes in all and 40 for each
    /// address. Returns what each removes, or `-` if it is refused.
    #[track_caller]
    fn check(claims: &[(&str, &str, usize)], expected: &[&str]) {
        let limits = MemorySettings {
            keyless_bytes: Some(100),
            keyless_address_bytes: Some(40),
            ..MemorySettings::default()
        };
        let mut ledger = KeylessLedger::default();
        let mut removed = Vec::new();
        for (at, (name, address, bytes)) in (1..).zip(claims) {
            let namespace = &MemoryNamespace::new("session", name);
            let claim = KeylessClaim { namespace, address, bytes: *bytes, expires: 1_000_000 };
            let now = UNIX_EPOCH + Duration::from_secs(at);
            let names = claim_with_room(&mut ledger, claim, &limits, now).map(|names| {
                names
                    .iter()
                    .map(|name| name.as_str()["session/".len()..].to_owned())
                    .collect::<Vec<_>>()
                    .join(" ")
            });
            removed.push(names.unwrap_or_else(|_| "-".to_owned()));
            let of_address = ledger.namespaces.iter().filter(|entry| entry.address == *address);
            assert!(bytes_of(&ledger) <= 100 && total(of_address).1 <= 40, "{ledger:?}");
        }
        assert_eq!(removed, expected, "{claims:?}");
    }

    #[test]
    fn address_pushes_out_its_own_namespaces_first() {
        check(&[("a", "x", 30), ("b", "y", 30), ("c", "x", 10), ("d", "x", 5)], &["", "", "", "a"]);
        check(&[("a", "x", 30), ("b", "x", 10), ("a", "x", 5)], &["", "", "b"]);
        check(&[("a", "x", 10), ("b", "x", 10), ("c", "x", 10), ("d", "x", 30)], &["", "", "", "a b"]);
        check(&[("a", "x", 41)], &["-"]);
        check(&[("a", "x", 40), ("a", "x", 1)], &["", "-"]);
    }

    #[test]
    fn the_address_with_most_bytes_makes_room() {
        let full = [("a", "x", 20), ("b", "x", 20), ("c", "y", 31), ("d", "z", 29)];
        let with = |last: (&'static str, &'static str, usize)| [&full[..], &[last]].concat();
        check(&with(("e", "w", 1)), &["", "", "", "", "a"]);
        check(&with(("e", "w", 40)), &["", "", "", "", "a c"]);
        check(&with(("e", "z", 10)), &["", "", "", "", "a"]);
    }

    #[test]
    fn number_of_namespaces_is_limited() {
        let limits = MemorySettings::default();
        let mut ledger = KeylessLedger::default();
        for number in 0..3 * MAX_NAMESPACES {
            let namespace = &MemoryNamespace::new("session", &number.to_string());
            let address = &(number % 7).to_string();
            let claim = KeylessClaim { namespace, address, bytes: 1, expires: 1 };
            let now = UNIX_EPOCH + Duration::from_secs(number as u64);
            claim_with_room(&mut ledger, claim, &limits, now).expect("room");
            assert!(ledger.namespaces.len() <= MAX_NAMESPACES);
            let of_address = ledger.namespaces.iter().filter(|entry| entry.address == *address);
            assert!(of_address.count() <= MAX_NAMESPACES_OF_ADDRESS);
        }
    }

    #[test]
    fn settled_size_is_that_of_the_namespace() {
        let (limits, namespace) = (MemorySettings::default(), &MemoryNamespace::new("session", "a"));
        let mut ledger = KeylessLedger::default();
        let claim = KeylessClaim { namespace, address: "x", bytes: 10, expires: 5000 };
        // Two at a time, of which the second replaces the first, and a third one that fails.
        for _ in 0..3 {
            ledger.claim(claim, &limits, UNIX_EPOCH).expect("room");
        }
        assert_eq!(bytes_of(&ledger), 30);
        ledger.settle(namespace, 10, 0, 10);
        ledger.settle(namespace, 10, 10, 10);
        ledger.settle(namespace, 10, 0, 0);
        assert_eq!(bytes_of(&ledger), 10);
        ledger.settle(namespace, 0, 10, 0);
        assert_eq!(ledger, KeylessLedger::default());
        ledger.claim(claim, &limits, UNIX_EPOCH).expect("room");
        assert_eq!(ledger.living(UNIX_EPOCH + Duration::from_secs(5)), KeylessLedger::default());
    }
}
