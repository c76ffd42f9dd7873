//! For how long the lists of a modern server may be kept (2026-07-28, server/utilities/caching).

use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use toolyard_core::registry::Kind;
use toolyard_core::{CacheHint, CacheScope, Object};

use super::capabilities::Capabilities;
use super::stale::Lists;

/// For how long a list is kept at least. Calls are looked up in it, so that it is always kept; a server that wants it
/// kept for no time, as most do that have not thought about it, must not be asked without end.
const SHORTEST: Duration = Duration::from_secs(5);

/// What a page of a list says of that. Where it does not say what it must, it may be kept for no time, and by nobody
/// else.
pub(super) fn said_by(page: &Object) -> CacheHint {
    let ttl = page.get("ttlMs").and_then(|ttl| ttl.to_value().as_u64());
    let is_public = page.get_str("cacheScope").is_some_and(|scope| scope == "public");
    let scope = if is_public { CacheScope::Public } else { CacheScope::Private };
    CacheHint { ttl: Duration::from_millis(ttl.unwrap_or(0)), scope }
}

/// When each list is to be asked for again, though nobody says that it has changed.
#[derive(Debug, Default)]
pub(super) struct Expiry([Option<Instant>; 4]);

impl Expiry {
    /// Notes for how long these lists, which have just been asked for, may be kept. Those whose changes are announced
    /// are not asked for again.
    pub(super) fn renew(
        &mut self,
        lists: Lists,
        capabilities: &Capabilities,
        hints: &[Option<CacheHint>; 4],
    ) {
        let now = Instant::now();
        for kind in Kind::ALL.into_iter().filter(|kind| lists.has(*kind)) {
            let hint = hints[kind as usize].filter(|_| !capabilities.announces(kind));
            self.0[kind as usize] = hint.and_then(|hint| now.checked_add(hint.ttl.max(SHORTEST)));
        }
    }

    /// Waits until some are to be asked for again.
    pub(super) async fn wait(&self) -> Lists {
        let Some(next) = self.0.iter().flatten().min() else { return std::future::pending().await };
        sleep_until(*next).await;
        let is_over = |kind: &Kind| self.0[*kind as usize].is_some_and(|end| end <= Instant::now());
        Kind::ALL.into_iter().filter(is_over).map(|kind| Lists::of(&[kind])).fold(Lists::NONE, Lists::and)
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
    fn what_a_page_says() {
        let cases = [
            (r#"{"ttlMs":7,"cacheScope":"public"}"#, 7, CacheScope::Public),
            (r#"{"ttlMs":7,"cacheScope":"private"}"#, 7, CacheScope::Private),
            (r#"{"ttlMs":-7,"cacheScope":"public"}"#, 0, CacheScope::Public),
            (r#"{"ttlMs":"7","cacheScope":"shared"}"#, 0, CacheScope::Private),
            (r#"{}"#, 0, CacheScope::Private),
        ];
        for (page, ttl, scope) in cases {
            assert_eq!(
                said_by(&object(page)),
                CacheHint { ttl: Duration::from_millis(ttl), scope },
                "{page}"
            );
        }
    }

    /// Which lists are asked for again, and after how many seconds.
    #[tokio::test(start_paused = true)]
    async fn when_a_list_is_over() {
        const SILENT: &str =
            r#"{"tools":{},"prompts":{"listChanged":false},"resources":{"listChanged":true}}"#;
        let [tools, prompts] = [Lists::of(&[Kind::Tools]), Lists::of(&[Kind::Prompts])];
        let cases = [
            ([Some(30), Some(60), None, None], Some((30, tools))),
            ([Some(60), Some(30), None, None], Some((30, prompts))),
            ([Some(30), Some(30), Some(10), Some(10)], Some((30, tools.and(prompts)))),
            ([Some(0), Some(4), None, None], Some((5, tools.and(prompts)))),
            ([None, Some(7), Some(0), Some(0)], Some((7, prompts))),
            ([None, None, Some(7), Some(7)], None),
            ([Some(u64::MAX), None, None, None], None),
        ];
        for (ttls, expected) in cases {
            let of = |seconds| CacheHint { ttl: Duration::from_secs(seconds), scope: CacheScope::Public };
            let capabilities = Capabilities::of(&object(&format!(r#"{{"capabilities":{SILENT}}}"#)));
            let mut expiry = Expiry::default();
            expiry.renew(Lists::ALL, &capabilities, &ttls.map(|ttl| ttl.map(of)));
            let (since, most) = (Instant::now(), Duration::from_secs(1000));
            let over = tokio::time::timeout(most, expiry.wait()).await;
            assert_eq!(over.ok().map(|lists| (since.elapsed().as_secs(), lists)), expected, "{ttls:?}");
        }
    }

    /// A list that has been asked for is kept anew; the others are not.
    #[tokio::test(start_paused = true)]
    async fn each_list_has_a_time_of_its_own() {
        let hint = CacheHint { ttl: Duration::from_secs(10), scope: CacheScope::Public };
        let mut expiry = Expiry::default();
        expiry.renew(Lists::ALL, &Capabilities::default(), &[Some(hint); 4]);
        tokio::time::advance(Duration::from_secs(6)).await;
        let tools = Lists::of(&[Kind::Tools]);
        expiry.renew(tools, &Capabilities::default(), &[Some(hint); 4]);
        assert_eq!(expiry.wait().await, Lists::of(&[Kind::Prompts, Kind::Resources, Kind::Templates]));
    }
}
