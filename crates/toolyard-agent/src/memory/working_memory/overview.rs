//! An overview of all namespaces, for operators.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{KEYLESS, MAX_PAGES, OWNED, PAGE, WorkingMemory, parse};
use crate::memory::error::MemoryError;
use crate::memory::namespace::MemoryNamespace;
use crate::memory::record::NamespaceIndex;

/// The entries of a namespace in numbers. It has at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceSummary {
    /// Namespace.
    pub namespace: MemoryNamespace,
    /// Number of entries.
    pub entries: usize,
    /// Size of all values in bytes.
    pub bytes: usize,
    /// Time of the last save.
    pub saved: SystemTime,
    /// Time at which the last entry expires.
    pub expires: SystemTime,
}

/// The namespaces of all callers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryOverview {
    /// The namespaces, by name.
    pub namespaces: Vec<NamespaceSummary>,
    /// True if there are more: only the first thousand or so are examined.
    pub is_truncated: bool,
}

impl WorkingMemory {
    /// Returns the namespaces of all callers.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn overview(&self) -> Result<MemoryOverview, MemoryError> {
        let mut overview = MemoryOverview::default();
        for spaces in [OWNED, KEYLESS] {
            let mut after = None::<String>;
            let mut is_complete = false;
            for _ in 0..MAX_PAGES {
                let page = self.store.list(spaces.index, "", after.as_deref(), PAGE).await?;
                for (name, value) in &page {
                    let index = parse::<NamespaceIndex>(&value.bytes)?.living(self.now());
                    let summary = MemoryNamespace::from_text(name).and_then(|name| summary(name, &index));
                    overview.namespaces.extend(summary);
                }
                is_complete = page.len() < PAGE;
                after = page.into_iter().next_back().map(|(name, _)| name);
                if is_complete {
                    break;
                }
            }
            overview.is_truncated |= !is_complete;
        }
        overview.namespaces.sort_by(|one, other| one.namespace.cmp(&other.namespace));
        Ok(overview)
    }
}

/// Returns the summary of a namespace; `None` if all of its entries have expired.
fn summary(namespace: MemoryNamespace, index: &NamespaceIndex) -> Option<NamespaceSummary> {
    let entries = &index.entries;
    let time = |millis: u64| UNIX_EPOCH + Duration::from_millis(millis);
    Some(NamespaceSummary {
        namespace,
        entries: entries.len(),
        bytes: entries.iter().map(|record| record.bytes).sum(),
        saved: time(entries.iter().map(|record| record.saved).max()?),
        expires: entries.iter().map(|record| record.expires_at()).max()?,
    })
}
