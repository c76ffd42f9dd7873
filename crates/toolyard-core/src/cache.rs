//! For how long, and for whom, what is listed may be kept.

use std::time::Duration;

/// For whom a result may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheScope {
    /// For everybody.
    Public,
    /// For who asked.
    Private,
}

/// How long who has asked for a list may keep it (2026-07-28, server/utilities/caching).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheHint {
    /// For how long. Where changes are announced, this only bounds what somebody misses who does not listen.
    pub ttl: Duration,
    /// For whom.
    pub scope: CacheScope,
}

impl Default for CacheHint {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(30), scope: CacheScope::Public }
    }
}

impl CacheHint {
    /// What holds for two lists that are given as one.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let is_private = [self.scope, other.scope].contains(&CacheScope::Private);
        let scope = if is_private { CacheScope::Private } else { CacheScope::Public };
        Self { ttl: self.ttl.min(other.ttl), scope }
    }
}
