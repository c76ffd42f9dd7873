//! Time and audience for which lists may be cached.

use std::time::Duration;

/// The audience of a cached result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheScope {
    /// All callers.
    Public,
    /// The caller that requested it.
    Private,
}

/// A server's statement about caching of a list (2026-07-28, server/utilities/caching).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheHint {
    /// Time to live. For lists with change notifications it bounds the staleness of clients that do not subscribe.
    pub ttl: Duration,
    /// Audience.
    pub scope: CacheScope,
}

impl Default for CacheHint {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(30), scope: CacheScope::Public }
    }
}

impl CacheHint {
    /// Returns the hint that holds for two lists that are served as one.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let is_private = [self.scope, other.scope].contains(&CacheScope::Private);
        let scope = if is_private { CacheScope::Private } else { CacheScope::Public };
        Self { ttl: self.ttl.min(other.ttl), scope }
    }
}
