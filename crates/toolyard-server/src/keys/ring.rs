//! The keys as a running gateway knows them.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use futures_util::future::{BoxFuture, join_all};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, sleep_until};
use toolyard_core::access::{Allowance, Grant, Price};
use toolyard_core::store::{Store, StoreError, Trouble};
use toolyard_core::{Code, ToolError};

use super::door::{KeyLife, Visitor};
use super::key::{Amount, Key, Secret};
use super::quota::Quota;
use super::rate::Rate;
use super::record::{self, KEYS};

/// A key that is not known is asked for in the store, but not more often than that: whoever guesses must not keep it
/// busy.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// When a key is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Always: other machines reach the gateway.
    Always,
    /// As soon as there is one, and from then on: who is alone on a machine needs none.
    OnceThereIsOne,
    /// Never, but who shows one has what that opens and no more.
    Never,
}

/// The keys, kept up with the store.
pub struct KeyRing {
    store: Arc<dyn Store>,
    policy: Policy,
    known: RwLock<Known>,
    asking: Semaphore,
    /// One at a time reads, so that what was read before is never put in the place of what was read after.
    reading: Semaphore,
}

/// What is known of the keys.
struct Known {
    keys: HashMap<Box<str>, Arc<Held>>,
    /// Whoever came in without a key, for as long as none is asked for.
    anybody: Option<Anybody>,
    /// Which state of the store that is; `None` while it could not be read.
    revision: Option<u64>,
    /// When the store was last asked for them.
    looked_at: Option<Instant>,
}

/// Somebody who does not have to show a key, and what ends that.
struct Anybody {
    visitor: Visitor,
    _unasked: watch::Sender<()>,
}

impl Anybody {
    fn new() -> Self {
        let (sender, unchanged) = watch::channel(());
        Self { visitor: Visitor::anybody(KeyLife { unchanged, expires: None }), _unasked: sender }
    }
}

/// A key, and what it opens.
struct Held {
    key: Key,
    visitor: Visitor,
    spending: Option<Arc<Spending>>,
    /// Dropped with this, which ends what the key has opened.
    _unchanged: watch::Sender<()>,
}

/// What came of looking at what somebody shows.
#[derive(Debug)]
pub enum Verdict {
    /// It opens this.
    Open(Visitor),
    /// It opens nothing, or nothing was shown.
    Closed,
    /// Nobody can say now, because the store is in this trouble.
    Unknown(Trouble),
}

impl KeyRing {
    /// The keys of a store, which are not read yet.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, policy: Policy) -> Self {
        let anybody = (policy != Policy::Always).then(Anybody::new);
        let known = Known { keys: HashMap::new(), anybody, revision: None, looked_at: None };
        Self {
            store,
            policy,
            known: RwLock::new(known),
            asking: Semaphore::new(1),
            reading: Semaphore::new(1),
        }
    }

    /// Reads the keys; says whether there are any, those that open nothing any more among them.
    ///
    /// # Errors
    /// When the store is in trouble. What was known before stays known.
    pub async fn read(&self) -> Result<bool, StoreError> {
        // It is never closed.
        let _turn = self.reading.acquire().await;
        // First: what changes while they are read is read again.
        let revision = self.store.revision(KEYS).await?;
        let keys = record::list(&*self.store).await?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut known.keys);
        for key in keys {
            // What is left to spend does not begin anew.
            let held = match before.remove(&*key.id) {
                Some(held) if held.key == key => held,
                _ => Arc::new(Held::new(key, &self.store)),
            };
            known.keys.insert(held.key.id.as_str().into(), held);
        }
        if self.policy == Policy::OnceThereIsOne && !known.keys.is_empty() {
            // That the last key is gone does not open the doors again.
            known.anybody = None;
        }
        known.revision = Some(revision);
        known.looked_at = Some(Instant::now());
        Ok(!known.keys.is_empty())
    }

    /// Reads the keys if they are others than those that are known.
    async fn refresh(&self) -> Result<(), StoreError> {
        let revision = self.store.revision(KEYS).await?;
        if self.known().revision != Some(revision) {
            return self.read().await.map(drop);
        }
        self.known.write().unwrap_or_else(PoisonError::into_inner).looked_at = Some(Instant::now());
        Ok(())
    }

    /// Follows the changes of other processes, for as long as it is polled. A change is known after `every` at most.
    pub async fn follow(&self, every: Duration) {
        let mut is_well = true;
        loop {
            sleep(every).await;
            let outcome = self.refresh().await;
            if let (Err(error), true) = (&outcome, is_well) {
                tracing::error!(
                    error = error as &dyn std::error::Error,
                    "cannot read the keys: those that are known go on"
                );
            }
            is_well = outcome.is_ok();
        }
    }

    /// Who shows this, as far as that is known without asking the store: `Err` where that may help.
    pub(super) fn look(&self, shown: Option<&str>) -> Result<Verdict, Option<Secret>> {
        let known = self.known();
        // What is no key of ours may be for somebody in front, and says nothing here.
        let shown = shown.filter(|shown| Secret::is_meant(shown) || known.anybody.is_none());
        let Some(shown) = shown else {
            return match &known.anybody {
                // Whether there are any keys is not known yet.
                Some(_) if self.policy == Policy::OnceThereIsOne && known.revision.is_none() => Err(None),
                Some(anybody) => Ok(Verdict::Open(anybody.visitor.clone())),
                None => Ok(Verdict::Closed),
            };
        };
        let Some(secret) = Secret::parse(shown) else { return Ok(Verdict::Closed) };
        match known.keys.get(secret.id()) {
            Some(held) => Ok(held.opened_by(&secret)),
            None => Err(Some(secret)),
        }
    }

    /// Who shows this, after a look at the store.
    pub async fn ask(&self, secret: Option<Secret>) -> Verdict {
        let came = Instant::now();
        // It is never closed.
        let _turn = self.asking.acquire().await;
        let looked_at = self.known().looked_at;
        // Somebody else may have asked while this one waited.
        if looked_at.is_none_or(|at| at < came) {
            if let Some(at) = looked_at {
                sleep_until(at + ASK_EVERY).await;
            }
            if let Err(error) = self.refresh().await {
                tracing::debug!(error = &error as &dyn std::error::Error, "cannot read the keys");
                return Verdict::Unknown(error.trouble);
            }
        }
        let known = self.known();
        match secret {
            Some(secret) => {
                known.keys.get(secret.id()).map_or(Verdict::Closed, |held| held.opened_by(&secret))
            }
            None => {
                let anybody = known.anybody.as_ref();
                anybody.map_or(Verdict::Closed, |anybody| Verdict::Open(anybody.visitor.clone()))
            }
        }
    }

    /// Gives the store back what was taken of quotas and not used.
    pub async fn stop(&self) {
        let spendings: Vec<_> = self.known().keys.values().filter_map(|held| held.spending.clone()).collect();
        join_all(spendings.iter().map(|spending| spending.stop())).await;
    }

    /// Whether it is known who may come in.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.policy == Policy::Never || self.known().revision.is_some()
    }

    /// The store that they are in.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    fn known(&self) -> std::sync::RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn new(key: Key, store: &Arc<dyn Store>) -> Self {
        let spending = Spending::of(&key, store).map(Arc::new);
        let allowance = spending.clone().map(|spending| spending as Arc<dyn Allowance>);
        let model = key.model.as_deref().map(Into::into);
        let chunk_threshold = key.chunk_threshold.and_then(|threshold| usize::try_from(threshold).ok());
        let (scope, memory) = (key.scope(), key.memory());
        let grant = Grant { scope, allowance, memory, model, chunk_threshold };
        let (sender, unchanged) = watch::channel(());
        let expires = key.expires.map(|millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis));
        let visitor = Visitor::with_key(&key, Arc::new(grant), KeyLife { unchanged, expires });
        Self { key, visitor, spending, _unchanged: sender }
    }

    fn opened_by(&self, secret: &Secret) -> Verdict {
        match self.key.is_opened_by(secret) && self.key.is_valid(SystemTime::now()) {
            true => Verdict::Open(self.visitor.clone()),
            false => Verdict::Closed,
        }
    }
}

/// What a key may use: how often, how many calls, and at what cost.
#[derive(Debug)]
struct Spending {
    rate: Option<(Amount, Rate)>,
    calls: Option<Quota>,
    cost: Option<Quota>,
}

impl Spending {
    /// `None` where nothing is bounded.
    fn of(key: &Key, store: &Arc<dyn Store>) -> Option<Self> {
        let rate = key.rate.and_then(|rate| Some((rate, Rate::new(rate.millionths, rate.per?.length()))));
        let quota =
            |name: &str, limit: Option<Amount>| Some(Quota::new(store.clone(), &key.id, name, limit?));
        let (calls, cost) = (quota("calls", key.calls), quota("cost", key.cost));
        (rate.is_some() || calls.is_some() || cost.is_some()).then_some(Self { rate, calls, cost })
    }

    async fn stop(&self) {
        for quota in [&self.calls, &self.cost].into_iter().flatten() {
            quota.stop().await;
        }
    }
}

impl Allowance for Spending {
    fn take(&self, price: Price) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(async move {
            if let Some((amount, rate)) = &self.rate
                && let Err(wait) = rate.take()
            {
                let message = format!("At most {amount} calls: try again in {:.1} s", wait.as_secs_f64());
                return Err(ToolError::new(Code::RateLimited, message).retry_after(wait));
            }
            if let Some(calls) = &self.calls {
                calls.take(Amount::ONE).await?;
            }
            let Some(cost) = &self.cost else { return Ok(()) };
            let paid = cost.take(price).await;
            if let (Err(_), Some(calls)) = (&paid, &self.calls) {
                calls.give_back(Amount::ONE);
            }
            paid
        })
    }

    fn give_back(&self, price: Price) {
        if let Some(calls) = &self.calls {
            calls.give_back(Amount::ONE);
        }
        if let Some(cost) = &self.cost {
            cost.give_back(price);
        }
    }
}
