//! The workers that there are: who waits for one, who has one, and which are kept warm.
//!
//! Two bounds are kept, each a fair queue: how many calls of one version run at a time, and how many workers there are
//! in all. No version runs in more than half of those, so that one whose calls are slow does not stop all others. Where all places are taken, the worker that has been idle the longest makes room, whosever it is; while
//! somebody waits for a place, a worker that becomes free gives up its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::worker::Worker;
use super::{RuntimeOptions, WorkerInfo};
use crate::code::Code;
use crate::run::RunError;

/// How often is looked for workers that are not to be kept.
const SWEEP: Duration = Duration::from_secs(2);

pub(super) struct Pools {
    pub(super) options: RuntimeOptions,
    places: Arc<Semaphore>,
    state: Mutex<State>,
    /// Workers that are being started for later.
    starting: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct State {
    by_code: HashMap<Arc<str>, Pool>,
    /// How many wait for a place.
    starving: usize,
    /// Whether somebody ends what is idle for too long.
    is_swept: bool,
}

/// The workers of one code.
struct Pool {
    turns: Arc<Semaphore>,
    /// How many calls run or wait.
    calls: usize,
    /// How many may run at a time.
    concurrent: usize,
    /// The one that was used last is the last one.
    idle: Vec<Placed>,
}

/// A worker and its place.
pub(super) struct Placed {
    pub(super) worker: Worker,
    _place: OwnedSemaphorePermit,
}

/// When a worker that is kept is used.
#[derive(Clone, Copy)]
enum Order {
    /// Before the others: it is the warmest.
    Next,
    /// After them: they are to be used up.
    Last,
}

/// A call that runs, or waits for its turn.
pub(super) struct Visit {
    pools: Arc<Pools>,
    code: Arc<Code>,
    _turn: Option<OwnedSemaphorePermit>,
}

impl Pools {
    pub(super) fn new(options: RuntimeOptions) -> Self {
        let places = Arc::new(Semaphore::new(options.workers.clamp(1, Semaphore::MAX_PERMITS)));
        Self { options, places, state: Mutex::default(), starting: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn of a call.
    pub(super) async fn enter(
        self: &Arc<Self>,
        code: &Arc<Code>,
        deadline: Instant,
    ) -> Result<Visit, RunError> {
        let share = (self.options.workers / 2).max(1);
        let turns = self.lock().enter(code, share, self.options.waiting)?;
        let mut visit = Visit { pools: self.clone(), code: code.clone(), _turn: None };
        let turn = timeout_at(deadline, turns.acquire_owned()).await;
        visit._turn = Some(turn.ok().and_then(Result::ok).ok_or(RunError::Busy)?);
        self.sweep_from_now_on();
        Ok(visit)
    }

    /// The workers, those that are in use apart.
    pub(super) fn info(&self) -> Vec<WorkerInfo> {
        let state = self.lock();
        let mut all: Vec<_> = state.by_code.iter().map(|(key, pool)| pool.info(key)).collect();
        all.sort_by(|one, other| one.code.cmp(&other.code));
        all
    }

    async fn start(&self, code: &Code, place: OwnedSemaphorePermit) -> Result<Placed, RunError> {
        let worker = Worker::start(&self.options.launcher(), code, self.options.fetch.clone()).await?;
        Ok(Placed { worker, _place: place })
    }

    /// A place for a worker, at the cost of one that is idle where there is none.
    async fn place(self: &Arc<Self>, deadline: Instant) -> Result<OwnedSemaphorePermit, RunError> {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return Ok(place);
        }
        let _starving = Starving::new(self);
        drop(self.lock().longest_idle());
        let place = timeout_at(deadline, self.places.clone().acquire_owned()).await;
        place.ok().and_then(Result::ok).ok_or(RunError::Busy)
    }

    /// From how many calls on a worker is old: then another one is started, which is ready when this one has had its last
    /// call.
    fn old_age(&self) -> u64 {
        let most = self.options.calls_per_worker;
        most - most / 4
    }

    /// Whether no worker is idle but such as will not be there for long.
    fn wants_spare(&self, key: &Arc<str>) -> bool {
        let old_age = self.old_age();
        let is_old = |placed: &Placed| placed.worker.calls >= old_age;
        self.lock().by_code.get(key).is_some_and(|pool| pool.idle.iter().all(is_old))
    }

    /// Starts a worker for later, where none is there and there is room for it.
    fn start_spare(self: &Arc<Self>, code: &Arc<Code>) {
        if !self.wants_spare(&code.key) {
            return;
        }
        let Ok(place) = self.places.clone().try_acquire_owned() else { return };
        let (pools, code) = (Arc::downgrade(self), code.clone());
        let mut starting = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        while starting.try_join_next().is_some() {}
        let launcher = self.options.launcher();
        let fetch = self.options.fetch.clone();
        starting.spawn(async move {
            let started = timeout(code.limits.wall, Worker::start(&launcher, &code, fetch)).await;
            // Where it cannot be started the next call will say why.
            if let (Ok(Ok(worker)), Some(pools)) = (started, pools.upgrade()) {
                pools.keep_spare(&code.key, Placed { worker, _place: place });
            }
        });
    }

    /// Keeps a worker for later, where nobody needs its place now.
    fn keep(&self, key: &Arc<str>, mut placed: Placed, order: Order) {
        placed.worker.idle_since = Instant::now();
        let mut state = self.lock();
        if state.starving > 0 {
            drop(state);
            return drop(placed);
        }
        match state.by_code.get_mut(key) {
            Some(pool) => pool.keep(placed, order),
            None => drop(state),
        }
    }

    /// Keeps a worker that was started for later, where none has come to be free meanwhile.
    fn keep_spare(&self, key: &Arc<str>, placed: Placed) {
        if self.wants_spare(key) {
            self.keep(key, placed, Order::Last);
        }
    }

    /// Has those ended that are idle for too long. The task ends with the pools, or when there are no workers.
    fn sweep_from_now_on(self: &Arc<Self>) {
        if std::mem::replace(&mut self.lock().is_swept, true) {
            return;
        }
        let (pools, idle_time) = (Arc::downgrade(self), self.options.idle_time);
        let mut tasks = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.spawn(async move {
            loop {
                tokio::time::sleep((idle_time / 4).min(SWEEP)).await;
                let Some(pools) = pools.upgrade() else { return };
                let mut state = pools.lock();
                let old = state.idle_longer_than(idle_time);
                state.is_swept = !state.by_code.is_empty();
                let is_done = !state.is_swept;
                drop(state);
                drop(old);
                if is_done {
                    return;
                }
            }
        });
    }
}

impl State {
    fn enter(&mut self, code: &Arc<Code>, share: usize, waiting: usize) -> Result<Arc<Semaphore>, RunError> {
        let concurrent = code.limits.concurrent.min(share).clamp(1, Semaphore::MAX_PERMITS);
        let pool = self.by_code.entry(code.key.clone()).or_insert_with(|| Pool {
            turns: Arc::new(Semaphore::new(concurrent)),
            calls: 0,
            concurrent,
            idle: Vec::new(),
        });
        if pool.calls >= concurrent.saturating_add(waiting) {
            return Err(RunError::Busy);
        }
        pool.calls += 1;
        Ok(pool.turns.clone())
    }

    fn longest_idle(&mut self) -> Option<Placed> {
        let oldest = |pool: &&mut Pool| pool.idle.first().map(|placed| placed.worker.idle_since);
        let pools = self.by_code.values_mut().filter(|pool| !pool.idle.is_empty());
        pools.min_by_key(oldest).map(|pool| pool.idle.remove(0))
    }

    fn idle_longer_than(&mut self, idle_time: Duration) -> Vec<Placed> {
        let mut old = Vec::new();
        for pool in self.by_code.values_mut() {
            let kept = pool.idle.partition_point(|placed| placed.worker.idle_since.elapsed() > idle_time);
            old.extend(pool.idle.drain(..kept));
            // Also those that have ended by themselves.
            let is_over = |placed: &mut Placed| !placed.worker.is_alive() || placed.worker.is_stuck();
            old.extend(pool.idle.extract_if(.., is_over));
        }
        self.by_code.retain(|_, pool| pool.calls > 0 || !pool.idle.is_empty());
        old
    }
}

impl Pool {
    fn keep(&mut self, mut placed: Placed, order: Order) {
        match (order, self.idle.first()) {
            (Order::Last, Some(first)) => {
                // They stand in the order of their times.
                placed.worker.idle_since = first.worker.idle_since;
                self.idle.insert(0, placed);
            }
            _ => self.idle.push(placed),
        }
    }

    fn info(&self, key: &Arc<str>) -> WorkerInfo {
        let running = self.concurrent - self.turns.available_permits();
        let waiting = self.calls.saturating_sub(running);
        WorkerInfo { code: key.clone(), running, waiting, idle: self.idle.len() }
    }
}

impl Visit {
    /// A worker for the call: a warm one where there is one.
    pub(super) async fn worker(&self, deadline: Instant) -> Result<Placed, RunError> {
        if let Some(placed) = self.warm() {
            return Ok(placed);
        }
        self.fresh(deadline).await
    }

    /// A worker that was started just now.
    pub(super) async fn fresh(&self, deadline: Instant) -> Result<Placed, RunError> {
        let place = self.pools.place(deadline).await?;
        self.pools.start(&self.code, place).await
    }

    fn warm(&self) -> Option<Placed> {
        loop {
            let placed = self.pools.lock().by_code.get_mut(&self.code.key)?.idle.pop()?;
            if placed.worker.is_alive() {
                return Some(placed);
            }
        }
    }

    /// Gives a worker back after a call.
    pub(super) fn give_back(&self, placed: Placed) {
        let calls = placed.worker.calls;
        let is_spent = placed.worker.is_spent || calls >= self.pools.options.calls_per_worker;
        match is_spent {
            true => drop(placed),
            false => self.pools.keep(&self.code.key, placed, Order::Next),
        }
        if is_spent || calls == self.pools.old_age() {
            self.pools.start_spare(&self.code);
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if let Some(pool) = self.pools.lock().by_code.get_mut(&self.code.key) {
            pool.calls -= 1;
        }
    }
}

/// While it exists, workers that become free give up their places.
struct Starving<'a>(&'a Pools);

impl<'a> Starving<'a> {
    fn new(pools: &'a Pools) -> Self {
        pools.lock().starving += 1;
        Self(pools)
    }
}

impl Drop for Starving<'_> {
    fn drop(&mut self) {
        self.0.lock().starving -= 1;
    }
}
