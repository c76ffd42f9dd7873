//! Notifications of servers that reached no client, and what servers sent that is not a message.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolyard_core::registry::EntryKind;
use toolyard_core::{Backend, Registry};

/// Returns the number of dropped notifications by handler.
pub(crate) fn dropped_notices(registry: &Registry) -> BTreeMap<Arc<str>, u64> {
    counts(registry, |backend| backend.dropped_notices())
}

/// Returns the number of skipped messages by handler.
pub(crate) fn skipped_messages(registry: &Registry) -> BTreeMap<Arc<str>, u64> {
    counts(registry, |backend| backend.skipped_messages())
}

/// Returns a count by handler, for each handler with an entry in the registry.
fn counts(registry: &Registry, count: impl Fn(&dyn Backend) -> u64) -> BTreeMap<Arc<str>, u64> {
    let mut counts = BTreeMap::new();
    for entry in EntryKind::ALL.into_iter().flat_map(|kind| registry.callable_entries(kind)) {
        if !counts.contains_key(&entry.handler.name) {
            counts.insert(entry.handler.name.clone(), count(&*entry.handler.backend));
        }
    }
    counts
}
