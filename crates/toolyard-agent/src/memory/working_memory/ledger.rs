//! The ledger of callers without a key, in the store.

#[cfg(test)]
mod tests;

use std::time::{Duration, UNIX_EPOCH};

use toolyard_core::store::{KeySpace, PutRequest, WriteCondition};

use super::backoff::backoff;
use super::{ATTEMPTS, KEYLESS, SizeChange, WorkingMemory, parse, to_bytes};
use crate::memory::error::MemoryError;
use crate::memory::keyless_ledger::{KeylessClaim, KeylessLedger};
use crate::memory::namespace::MemoryNamespace;

/// Key space of the [`KeylessLedger`], and the key in it.
const LEDGER: KeySpace = KeySpace("working-memory-ledger");
const LEDGER_KEY: &str = "ledger";

impl WorkingMemory {
    /// Enters entries of a caller without a key into the ledger, after deleting what has to go for them.
    pub(super) async fn claim_keyless(&self, claim: KeylessClaim<'_>) -> Result<(), MemoryError> {
        let mut deleted = Vec::new();
        for _ in 0..ATTEMPTS {
            let claimed = self.change_ledger(|ledger| {
                ledger.forget(&deleted);
                ledger.claim(claim, &self.limits, self.now())
            });
            let evicted = claimed.await?;
            if evicted.is_empty() {
                return Ok(());
            }
            for namespace in &evicted {
                let entries = self.read(namespace).await?.index.entries;
                self.store.delete(KEYLESS.index, namespace.as_str()).await?;
                self.discard(&entries).await;
            }
            deleted = evicted;
        }
        Err(MemoryError::Contended)
    }

    /// Corrects the ledger after a change. If that fails, it is too high until the namespace expires.
    pub(super) async fn settle_keyless(
        &self,
        namespace: &MemoryNamespace,
        claimed: usize,
        sizes: SizeChange,
    ) {
        if !namespace.is_keyless() {
            return;
        }
        let settled = self.change_ledger(|ledger| {
            ledger.settle(namespace, claimed, sizes.before, sizes.after);
            Ok(())
        });
        if let Err(error) = settled.await {
            let error = &error as &dyn std::error::Error;
            tracing::debug!(
                error,
                "failed to correct the ledger of working memory, which is too high for a while"
            );
        }
    }

    /// Changes the ledger, and tries again if others change it concurrently.
    async fn change_ledger<T>(
        &self,
        mut change: impl FnMut(&mut KeylessLedger) -> Result<T, MemoryError>,
    ) -> Result<T, MemoryError> {
        for attempt in 0..ATTEMPTS {
            let stored = self.store.get(LEDGER, LEDGER_KEY).await?;
            let mut ledger: KeylessLedger = match &stored {
                Some(stored) => parse(&stored.bytes)?,
                None => KeylessLedger::default(),
            };
            ledger = ledger.living(self.now());
            let changed = change(&mut ledger)?;
            let condition = stored.map_or(WriteCondition::Absent, |it| WriteCondition::Version(it.version));
            let expires = Some(UNIX_EPOCH + Duration::from_millis(ledger.expires()));
            let put = PutRequest { bytes: to_bytes(&ledger)?, condition, expires };
            if self.store.put(LEDGER, LEDGER_KEY, put).await?.is_some() {
                return Ok(changed);
            }
            backoff(attempt).await;
        }
        Err(MemoryError::Contended)
    }
}
