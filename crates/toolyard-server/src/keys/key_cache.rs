//! The keys in a running gateway.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use futures_util::future::{BoxFuture, join_all};
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until};
use toolyard_core::access::{AccessGrant, CallAllowance, CallPrice};
use toolyard_core::store::{Store, StoreError, StoreErrorKind};
use toolyard_core::{ErrorCode, ToolError};

use super::auth_layer::{AuthenticatedCaller, KeyLifetime};
use super::key::{ApiKey, KeySecret, QuotaAmount};
use super::marker::KeyMarker;
use super::open_gateways::OpenGateway;
use super::quota::{CALLS_QUOTA, COST_QUOTA, KeyQuota};
use super::rate::CallRateLimiter;
use super::record::{self, KEYS};
use super::sessions::KeySessions;

/// Minimum time between two lookups of unknown keys in the store, so that guessing keys does not keep the store busy.
const LOOKUP_INTERVAL: Duration = Duration::from_millis(100);

/// The requirement of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPolicy {
    /// Always required: the gateway is reachable from other machines.
    Always,
    /// Required once the first key exists: the only user of a machine needs none.
    OnceCreated,
    /// Never required, but a request with a key gets that key's scopes only.
    Never,
}

/// The keys, kept up to date with the store.
pub struct KeyCache {
    store: Arc<dyn Store>,
    policy: KeyPolicy,
    marker: KeyMarker,
    /// True once the marker is set.
    is_marker_set: AtomicBool,
    /// The entry of this gateway while requests need no key.
    open_gateway: OpenGateway,
    cached: RwLock<CachedKeys>,
    sessions: KeySessions,
    lookup_turn: Semaphore,
    /// Held by the one task that reads, so that an older state never replaces a newer one.
    read_turn: Semaphore,
}

/// The cached keys and their state.
struct CachedKeys {
    keys: HashMap<Box<str>, Arc<CachedKey>>,
    /// Access of requests without a key, while none is required.
    anonymous: Option<AnonymousAccess>,
    /// Revision of the cached keys in the store. `None` until they could be read.
    revision: Option<u64>,
    /// Time of the last check of the store.
    checked_at: Option<Instant>,
}

/// Access without a key. Dropping it ends the access.
struct AnonymousAccess {
    caller: AuthenticatedCaller,
    _sender: watch::Sender<()>,
}

impl AnonymousAccess {
    fn new() -> Self {
        let (sender, unchanged) = watch::channel(());
        Self {
            caller: AuthenticatedCaller::anonymous(KeyLifetime { unchanged, expires: None }),
            _sender: sender,
        }
    }
}

/// A key and its access.
struct CachedKey {
    key: ApiKey,
    caller: AuthenticatedCaller,
    allowance: Option<Arc<KeyAllowance>>,
    /// Dropping it ends the access of the key.
    _sender: watch::Sender<()>,
}

/// Outcome of the authentication of a request.
#[derive(Debug)]
pub enum KeyVerdict {
    /// The request is admitted.
    Granted(AuthenticatedCaller),
    /// The key is missing or wrong.
    Denied,
    /// The key has expired. Only its holder learns this.
    Expired,
    /// The key was revoked. Only its holder learns this.
    Revoked,
    /// The token of a session is unknown or has expired.
    SessionEnded,
    /// Unknown, because the store fails with an error of this kind.
    Unavailable(StoreErrorKind),
}

impl KeyCache {
    /// Creates a cache of the keys in a store, without reading them.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, policy: KeyPolicy) -> Self {
        let anonymous = (policy != KeyPolicy::Always).then(AnonymousAccess::new);
        let cached = CachedKeys { keys: HashMap::new(), anonymous, revision: None, checked_at: None };
        Self {
            store,
            policy,
            marker: KeyMarker::at([]),
            is_marker_set: AtomicBool::new(false),
            open_gateway: OpenGateway::default(),
            cached: RwLock::new(cached),
            sessions: KeySessions::default(),
            lookup_turn: Semaphore::new(1),
            read_turn: Semaphore::new(1),
        }
    }

    /// Lets requests without a key administer nothing.
    #[must_use]
    pub fn without_anonymous_admin(mut self) -> Self {
        let cached = self.cached.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(anonymous) = &mut cached.anonymous {
            anonymous.caller.restrict_to_tools();
        }
        self
    }

    /// Returns `true` if requests need a key.
    #[must_use]
    pub fn requires_key(&self) -> bool {
        self.cached().anonymous.is_none()
    }

    /// Sets the marker to write as soon as there is a key.
    #[must_use]
    pub fn with_marker(self, marker: KeyMarker) -> Self {
        Self { marker, ..self }
    }

    /// Sets the sessions of browsers.
    #[must_use]
    pub fn with_sessions(self, sessions: KeySessions) -> Self {
        Self { sessions, ..self }
    }

    /// The sessions of browsers.
    #[must_use]
    pub const fn sessions(&self) -> &KeySessions {
        &self.sessions
    }

    /// Tells `toolyard key create` that requests need no key here until the first one is read. A gateway whose store
    /// fails has no entry, because it admits no request.
    pub async fn announce(&self) {
        if self.policy == KeyPolicy::OnceCreated && self.cached().anonymous.is_some() {
            self.open_gateway.announce(&*self.store).await;
        }
    }

    /// Reads the keys. Returns true if there are any, including revoked and expired ones.
    ///
    /// # Errors
    /// If the store fails. The cached keys stay.
    pub async fn read(&self) -> Result<bool, StoreError> {
        // The semaphore is never closed.
        let _turn = self.read_turn.acquire().await;
        // The revision comes first, so that a change during the read causes another read.
        let revision = self.store.revision(KEYS).await?;
        let keys = record::list(&*self.store).await?;
        let has_keys = self.replace(keys, revision);
        if has_keys {
            self.open_gateway.withdraw(&*self.store).await;
        }
        if has_keys && !self.is_marker_set.swap(true, Ordering::Relaxed) {
            self.set_marker().await;
        }
        Ok(has_keys)
    }

    /// Replaces the cached keys. Returns true if there are any.
    fn replace(&self, keys: Vec<ApiKey>, revision: u64) -> bool {
        let mut cached = self.cached.write().unwrap_or_else(PoisonError::into_inner);
        let mut previous = std::mem::take(&mut cached.keys);
        for key in keys {
            // An unchanged key keeps its remaining limits.
            let entry = match previous.remove(&*key.id) {
                Some(entry) if entry.key == key => entry,
                _ => Arc::new(CachedKey::new(key, &self.store)),
            };
            cached.keys.insert(entry.key.id.as_str().into(), entry);
        }
        if self.policy == KeyPolicy::OnceCreated && !cached.keys.is_empty() {
            // Deleting the last key does not make keys optional again.
            cached.anonymous = None;
        }
        cached.revision = Some(revision);
        cached.checked_at = Some(Instant::now());
        !cached.keys.is_empty()
    }

    /// Sets the marker for later starts. The gateway also serves without it.
    async fn set_marker(&self) {
        let marker = self.marker.clone();
        let set = spawn_blocking(move || marker.set().map(|file| file.map(Path::to_owned))).await;
        match set.map_err(io::Error::other).and_then(|set| set) {
            Ok(Some(file)) => tracing::info!(file = %file.display(), "wrote the marker of keys"),
            Ok(None) => {}
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot write the marker of keys: if the store is lost, the next start does not require them"
            ),
        }
    }

    /// Reads the keys if they have changed in the store.
    async fn refresh(&self) -> Result<(), StoreError> {
        let revision = self.store.revision(KEYS).await?;
        if self.cached().revision != Some(revision) {
            return self.read().await.map(drop);
        }
        self.cached.write().unwrap_or_else(PoisonError::into_inner).checked_at = Some(Instant::now());
        Ok(())
    }

    /// Follows changes by other processes for as long as the future is polled. A change is seen after `every` at most.
    pub async fn follow(&self, every: Duration) {
        let mut is_healthy = true;
        loop {
            sleep(every).await;
            let outcome = self.refresh().await;
            if self.open_gateway.is_announced() {
                self.announce().await;
            }
            if let (Err(error), true) = (&outcome, is_healthy) {
                tracing::error!(
                    error = error as &dyn std::error::Error,
                    "cannot read the keys; the cached ones stay in use"
                );
            }
            is_healthy = outcome.is_ok();
        }
    }

    /// Authenticates a request by the cached keys. `Err`: only the store can tell.
    pub(super) fn lookup_cached(&self, presented: Option<&str>) -> Result<KeyVerdict, Option<KeySecret>> {
        let cached = self.cached();
        if let Some(token) = presented.filter(|presented| KeySessions::is_token(presented)) {
            return Ok(self.session_verdict(&cached, token));
        }
        // Another kind of token may be for a proxy in front, and is ignored while keys are optional.
        let presented =
            presented.filter(|presented| KeySecret::looks_like_key(presented) || cached.anonymous.is_none());
        let Some(presented) = presented else {
            return match &cached.anonymous {
                // It is not known yet whether there are keys.
                Some(_) if self.policy == KeyPolicy::OnceCreated && cached.revision.is_none() => Err(None),
                Some(anonymous) => Ok(KeyVerdict::Granted(anonymous.caller.clone())),
                None => Ok(KeyVerdict::Denied),
            };
        };
        let Some(secret) = KeySecret::parse(presented) else { return Ok(KeyVerdict::Denied) };
        match cached.keys.get(secret.id()) {
            Some(entry) => Ok(entry.verdict(&secret)),
            None => Err(Some(secret)),
        }
    }

    /// Authenticates the token of a session, which has the access of its key until it ends.
    fn session_verdict(&self, cached: &CachedKeys, token: &str) -> KeyVerdict {
        let Some((key, end)) = self.sessions.key_of(token) else { return KeyVerdict::SessionEnded };
        match cached.keys.get(&*key).map(|entry| entry.current_verdict()) {
            Some(KeyVerdict::Granted(caller)) => KeyVerdict::Granted(caller.until(end)),
            Some(verdict) => verdict,
            None => KeyVerdict::SessionEnded,
        }
    }

    /// Authenticates a request after a check of the store.
    pub async fn lookup(&self, secret: Option<KeySecret>) -> KeyVerdict {
        let arrival = Instant::now();
        // The semaphore is never closed.
        let _turn = self.lookup_turn.acquire().await;
        let checked_at = self.cached().checked_at;
        // Another request may have checked the store while this one waited.
        if checked_at.is_none_or(|at| at < arrival) {
            if let Some(at) = checked_at {
                sleep_until(at + LOOKUP_INTERVAL).await;
            }
            if let Err(error) = self.refresh().await {
                tracing::debug!(error = &error as &dyn std::error::Error, "cannot read the keys");
                return KeyVerdict::Unavailable(error.kind);
            }
        }
        let cached = self.cached();
        match secret {
            Some(secret) => {
                cached.keys.get(secret.id()).map_or(KeyVerdict::Denied, |entry| entry.verdict(&secret))
            }
            None => cached.anonymous_verdict(),
        }
    }

    /// Returns the current access of the key with this id, or of requests without a key, after a check of the store.
    pub async fn current_by_id(&self, id: Option<&str>) -> KeyVerdict {
        if let Err(error) = self.refresh().await {
            tracing::debug!(error = &error as &dyn std::error::Error, "cannot read the keys");
            return KeyVerdict::Unavailable(error.kind);
        }
        let cached = self.cached();
        match id {
            Some(id) => cached.keys.get(id).map_or(KeyVerdict::Denied, |entry| entry.current_verdict()),
            None => cached.anonymous_verdict(),
        }
    }

    /// Returns id and name of the key with this id, as cached.
    #[must_use]
    pub fn id_and_name(&self, id: &str) -> Option<Arc<(Arc<str>, Arc<str>)>> {
        self.cached().keys.get(id).and_then(|entry| entry.caller.key.clone())
    }

    /// Returns the unspent reservations of quotas to the store.
    pub async fn stop(&self) {
        self.open_gateway.withdraw(&*self.store).await;
        let allowances: Vec<_> =
            self.cached().keys.values().filter_map(|entry| entry.allowance.clone()).collect();
        join_all(allowances.iter().map(|allowance| allowance.stop())).await;
    }

    /// True once the keys are loaded or not required.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.policy == KeyPolicy::Never || self.cached().revision.is_some()
    }

    /// The store of the keys.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    fn cached(&self) -> std::sync::RwLockReadGuard<'_, CachedKeys> {
        self.cached.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CachedKeys {
    /// Returns the access of requests without a key.
    fn anonymous_verdict(&self) -> KeyVerdict {
        let anonymous = self.anonymous.as_ref();
        anonymous.map_or(KeyVerdict::Denied, |anonymous| KeyVerdict::Granted(anonymous.caller.clone()))
    }
}

impl CachedKey {
    fn new(key: ApiKey, store: &Arc<dyn Store>) -> Self {
        let key_allowance = KeyAllowance::of(&key, store).map(Arc::new);
        let allowance = key_allowance.clone().map(|allowance| allowance as Arc<dyn CallAllowance>);
        let model = key.model.as_deref().map(Into::into);
        let chunk_threshold = key.chunk_threshold.and_then(|threshold| usize::try_from(threshold).ok());
        let (scope, memory) = (key.scope(), key.memory_scope());
        let grant = AccessGrant { scope, allowance, memory, model, chunk_threshold };
        let (sender, unchanged) = watch::channel(());
        let expires = key.expires.map(|millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis));
        let caller = AuthenticatedCaller::with_key(&key, Arc::new(grant), KeyLifetime { unchanged, expires });
        Self { key, caller, allowance: key_allowance, _sender: sender }
    }

    fn verdict(&self, secret: &KeySecret) -> KeyVerdict {
        if self.key.matches(secret) { self.current_verdict() } else { KeyVerdict::Denied }
    }

    fn current_verdict(&self) -> KeyVerdict {
        match self.key.is_valid(SystemTime::now()) {
            true => KeyVerdict::Granted(self.caller.clone()),
            false if self.key.revoked.is_some() => KeyVerdict::Revoked,
            false => KeyVerdict::Expired,
        }
    }
}

/// The limits of a key: rate, number of calls and cost.
#[derive(Debug)]
struct KeyAllowance {
    rate: Option<(QuotaAmount, CallRateLimiter)>,
    calls: Option<KeyQuota>,
    cost: Option<KeyQuota>,
}

impl KeyAllowance {
    /// `None` without limits.
    fn of(key: &ApiKey, store: &Arc<dyn Store>) -> Option<Self> {
        let rate =
            key.rate.and_then(|rate| Some((rate, CallRateLimiter::new(rate.millionths, rate.per?.length()))));
        let quota = |name: &str, limit: Option<QuotaAmount>| {
            Some(KeyQuota::new(store.clone(), &key.id, name, limit?))
        };
        let (calls, cost) = (quota(CALLS_QUOTA, key.calls), quota(COST_QUOTA, key.cost));
        (rate.is_some() || calls.is_some() || cost.is_some()).then_some(Self { rate, calls, cost })
    }

    async fn stop(&self) {
        for quota in [&self.calls, &self.cost].into_iter().flatten() {
            quota.stop().await;
        }
    }
}

impl CallAllowance for KeyAllowance {
    fn check(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(async move {
            self.admit()?;
            for quota in [&self.calls, &self.cost].into_iter().flatten() {
                quota.check().await?;
            }
            Ok(())
        })
    }

    fn take(&self, price: CallPrice) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(async move {
            self.admit()?;
            if let Some(calls) = &self.calls {
                calls.take(QuotaAmount::ONE).await?;
            }
            let Some(cost) = &self.cost else { return Ok(()) };
            let paid = cost.take(price).await;
            if let (Err(_), Some(calls)) = (&paid, &self.calls) {
                calls.give_back(QuotaAmount::ONE);
            }
            paid
        })
    }

    fn admit(&self) -> Result<(), ToolError> {
        let Some((amount, rate)) = &self.rate else { return Ok(()) };
        rate.take().map_err(|wait| {
            let message = format!("rate limit of {amount} exceeded: retry in {:.1} s", wait.as_secs_f64());
            let reason = format!("the key may send {amount}");
            ToolError::new(ErrorCode::RateLimited, message).because(reason).retry_after(wait)
        })
    }

    fn give_back(&self, price: CallPrice) {
        if let Some(calls) = &self.calls {
            calls.give_back(QuotaAmount::ONE);
        }
        if let Some(cost) = &self.cost {
            cost.give_back(price);
        }
    }
}
