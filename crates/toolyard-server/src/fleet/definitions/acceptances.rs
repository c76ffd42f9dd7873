//! Definitions of a handler's tools that operators have accepted, shared by all gateways on a store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::DefinitionDigest;

/// Maximum number of tools whose last acceptance is kept, per handler.
const MAX_ACCEPTANCES: usize = 2000;

/// The last acceptance of each tool.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct AcceptanceLog(BTreeMap<Arc<str>, AcceptanceEntry>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct AcceptanceEntry {
    digest: DefinitionDigest,
    /// Milliseconds since 1970.
    time: u64,
}

impl AcceptanceLog {
    /// Decodes a record. A damaged one counts as empty.
    pub(super) fn decode(record: &Bytes) -> Self {
        serde_json::from_slice(record).unwrap_or_default()
    }

    /// Encodes the record. `None`: nothing was accepted.
    pub(super) fn encode(&self) -> Option<Bytes> {
        // Serializing acceptances cannot fail.
        (!self.0.is_empty()).then(|| Bytes::from(serde_json::to_vec(self).unwrap_or_default()))
    }

    /// Adds an acceptance with a time later than the previous one's, whatever the clocks of gateways say.
    pub(super) fn add(&mut self, tool: &Arc<str>, digest: &DefinitionDigest) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let earliest = self.0.get(tool).map_or(0, |stored| stored.time.saturating_add(1));
        let time = u64::try_from(now.as_millis()).unwrap_or_default().max(earliest);
        self.0.insert(tool.clone(), AcceptanceEntry { digest: digest.clone(), time });
        self.trim();
    }

    /// Merges acceptances of another gateway. The latest of each tool wins. Returns true if something has changed.
    pub(super) fn merge(&mut self, others: Self) -> bool {
        let mut is_changed = false;
        for (tool, acceptance) in others.0 {
            let order = |acceptance: &AcceptanceEntry| (acceptance.time, acceptance.digest.0.clone());
            if self.0.get(&tool).is_none_or(|stored| order(stored) < order(&acceptance)) {
                self.0.insert(tool, acceptance);
                is_changed = true;
            }
        }
        self.trim();
        is_changed
    }

    /// Returns true if this definition was accepted last.
    pub(super) fn contains(&self, tool: &str, digest: &DefinitionDigest) -> bool {
        self.0.get(tool).is_some_and(|acceptance| acceptance.digest == *digest)
    }

    fn trim(&mut self) {
        while self.0.len() > MAX_ACCEPTANCES {
            let oldest = self.0.iter().min_by_key(|(_, acceptance)| acceptance.time);
            let Some(oldest) = oldest.map(|(tool, _)| tool.clone()) else { return };
            self.0.remove(&oldest);
        }
    }
}
