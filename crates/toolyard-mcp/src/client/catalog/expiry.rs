//! Expiry of the lists of a modern server (2026-07-28, server/utilities/caching).

use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use toolyard_core::registry::EntryKind;
use toolyard_core::{CacheHint, CacheScope, Object};

use super::list_invalidation::ListSet;
use crate::client::connection::capabilities::ServerCapabilities;

/// Minimum time between two listings. Servers that set no time to live, as most do that do not care, must not be listed
/// in a busy loop.
const MIN_TTL: Duration = Duration::from_secs(5);

/// Reads the cache hint of a page of a list. A missing time to live counts as zero, a missing scope as private.
pub(super) fn cache_hint(page: &Object) -> CacheHint {
    let ttl = page.get("ttlMs").and_then(|ttl| ttl.to_value().as_u64());
    let is_public = page.get_str("cacheScope").is_some_and(|scope| scope == "public");
    let scope = if is_public { CacheScope::Public } else { CacheScope::Private };
    CacheHint { ttl: Duration::from_millis(ttl.unwrap_or(0)), scope }
}

/// The time at which each list is fetched again without a notification of a change.
#[derive(Debug, Default)]
pub(in crate::client) struct ListExpiry([Option<Instant>; 4]);

impl ListExpiry {
    /// Sets the expiry of lists that were just fetched. A list whose changes are announced does not expire.
    pub(in crate::client) fn renew(
        &mut self,
        lists: ListSet,
        capabilities: &ServerCapabilities,
        hints: &[Option<CacheHint>; 4],
    ) {
        let now = Instant::now();
        for kind in EntryKind::ALL.into_iter().filter(|kind| lists.contains(*kind)) {
            let hint = hints[kind as usize].filter(|_| !capabilities.announces(kind));
            self.0[kind as usize] = hint.and_then(|hint| now.checked_add(hint.ttl.max(MIN_TTL)));
        }
    }

    /// Waits until some lists have expired.
    pub(in crate::client) async fn wait_until_due(&self) -> ListSet {
        let Some(next) = self.0.iter().flatten().min() else { return std::future::pending().await };
        sleep_until(*next).await;
        let is_over = |kind: &EntryKind| self.0[*kind as usize].is_some_and(|end| end <= Instant::now());
        EntryKind::ALL
            .into_iter()
            .filter(is_over)
            .map(|kind| ListSet::of(&[kind]))
            .fold(ListSet::NONE, ListSet::union)
    }
}

#[cfg(test)]
mod tests {
    use toolyard_core::Json;

    use super::*;

    fn object(text: &str) -> Object {
        Json::parse(text.to_owned()).unwrap().to_object().unwrap()
    }

    #[test]
    fn cache_hints_of_pages() {
        let cases = [
            (r#"{"ttlMs":7,"cacheScope":"public"}"#, 7, CacheScope::Public),
            (r#"{"ttlMs":7,"cacheScope":"private"}"#, 7, CacheScope::Private),
            (r#"{"ttlMs":-7,"cacheScope":"public"}"#, 0, CacheScope::Public),
            (r#"{"ttlMs":"7","cacheScope":"shared"}"#, 0, CacheScope::Private),
            (r#"{}"#, 0, CacheScope::Private),
        ];
        for (page, ttl, scope) in cases {
            assert_eq!(
                cache_hint(&object(page)),
                CacheHint { ttl: Duration::from_millis(ttl), scope },
                "{page}"
            );
        }
    }

    /// The expired lists and the seconds after which they expire.
    #[tokio::test(start_paused = true)]
    async fn lists_expire_after_their_ttl() {
        const SILENT: &str =
            r#"{"tools":{},"prompts":{"listChanged":false},"resources":{"listChanged":true}}"#;
        let [tools, prompts] = [ListSet::of(&[EntryKind::Tools]), ListSet::of(&[EntryKind::Prompts])];
        let cases = [
            ([Some(30), Some(60), None, None], Some((30, tools))),
            ([Some(60), Some(30), None, None], Some((30, prompts))),
            ([Some(30), Some(30), Some(10), Some(10)], Some((30, tools.union(prompts)))),
            ([Some(0), Some(4), None, None], Some((5, tools.union(prompts)))),
            ([None, Some(7), Some(0), Some(0)], Some((7, prompts))),
            ([None, None, Some(7), Some(7)], None),
            ([Some(u64::MAX), None, None, None], None),
        ];
        for (ttls, expected) in cases {
            let of = |seconds| CacheHint { ttl: Duration::from_secs(seconds), scope: CacheScope::Public };
            let capabilities = ServerCapabilities::of(&object(&format!(r#"{{"capabilities":{SILENT}}}"#)));
            let mut expiry = ListExpiry::default();
            expiry.renew(ListSet::ALL, &capabilities, &ttls.map(|ttl| ttl.map(of)));
            let (since, limit) = (Instant::now(), Duration::from_secs(1000));
            let expired = tokio::time::timeout(limit, expiry.wait_until_due()).await;
            assert_eq!(expired.ok().map(|lists| (since.elapsed().as_secs(), lists)), expected, "{ttls:?}");
        }
    }

    /// Fetching one list does not extend the others.
    #[tokio::test(start_paused = true)]
    async fn lists_expire_independently() {
        let hint = CacheHint { ttl: Duration::from_secs(10), scope: CacheScope::Public };
        let mut expiry = ListExpiry::default();
        expiry.renew(ListSet::ALL, &ServerCapabilities::default(), &[Some(hint); 4]);
        tokio::time::advance(Duration::from_secs(6)).await;
        let tools = ListSet::of(&[EntryKind::Tools]);
        expiry.renew(tools, &ServerCapabilities::default(), &[Some(hint); 4]);
        assert_eq!(
            expiry.wait_until_due().await,
            ListSet::of(&[EntryKind::Prompts, EntryKind::Resources, EntryKind::Templates])
        );
    }
}
