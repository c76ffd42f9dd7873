//! Notifications of servers that reached no client.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolyard_core::Registry;
use toolyard_core::registry::EntryKind;

/// Returns the number of dropped notifications by handler, for each handler with an entry in the registry.
pub(crate) fn dropped_notices(registry: &Registry) -> BTreeMap<Arc<str>, u64> {
    let mut counts = BTreeMap::new();
    for entry in EntryKind::ALL.into_iter().flat_map(|kind| registry.callable_entries(kind)) {
        if !counts.contains_key(&entry.handler.name) {
            counts.insert(entry.handler.name.clone(), entry.handler.backend.dropped_notices());
        }
    }
    counts
}
