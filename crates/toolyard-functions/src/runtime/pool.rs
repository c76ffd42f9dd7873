//! Pool of workers: queues of calls, and idle workers.
//!
//! Two fair queues enforce two limits: the number of concurrent calls of one version, and the total number of workers.
//! One version uses at most half of the workers, so that slow calls of one version do not block all others. If the
//! total is reached, the worker of any version that has been idle longest is stopped; while a call waits for a permit,
//! workers that become free are stopped, too.

mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use state::{IdlePosition, PoolState};

use super::worker::FunctionWorker;
use super::{RuntimeOptions, WorkerInfo};
use crate::code::FunctionCode;
use crate::run::RunError;

/// Interval of checks for expired workers.
const SWEEP_INTERVAL: Duration = Duration::from_secs(2);

pub(super) struct WorkerPools {
    pub(super) options: RuntimeOptions,
    places: Arc<Semaphore>,
    state: Mutex<PoolState>,
    /// Spare workers that are being started.
    starting: Mutex<JoinSet<()>>,
}

/// A worker and its permit.
pub(super) struct PooledWorker {
    pub(super) worker: FunctionWorker,
    _permit: OwnedSemaphorePermit,
}

/// A running or waiting call.
pub(super) struct CallPermit {
    pools: Arc<WorkerPools>,
    code: Arc<FunctionCode>,
    _turn: Option<OwnedSemaphorePermit>,
}

impl WorkerPools {
    pub(super) fn new(options: RuntimeOptions) -> Self {
        let permits = Arc::new(Semaphore::new(options.workers.clamp(1, Semaphore::MAX_PERMITS)));
        Self { options, places: permits, state: Mutex::default(), starting: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn of a call.
    pub(super) async fn acquire_call(
        self: &Arc<Self>,
        code: &Arc<FunctionCode>,
        deadline: Instant,
    ) -> Result<CallPermit, RunError> {
        let share = (self.options.workers / 2).max(1);
        let turns = self.lock().add_call(code, share, self.options.max_waiting)?;
        let mut visit = CallPermit { pools: self.clone(), code: code.clone(), _turn: None };
        let turn = timeout_at(deadline, turns.acquire_owned()).await;
        visit._turn = Some(turn.ok().and_then(Result::ok).ok_or(RunError::Busy)?);
        self.start_sweeper();
        Ok(visit)
    }

    /// Returns the workers, except for those in use.
    pub(super) fn info(&self) -> Vec<WorkerInfo> {
        let state = self.lock();
        let mut all: Vec<_> = state.by_code.iter().map(|(key, pool)| pool.info(key)).collect();
        all.sort_by(|one, other| one.code.cmp(&other.code));
        all
    }

    async fn start(
        &self,
        code: &FunctionCode,
        place: OwnedSemaphorePermit,
        deadline: Instant,
    ) -> Result<PooledWorker, RunError> {
        let fetch = self.options.fetch.clone();
        let worker = FunctionWorker::start(&self.options.launcher(), code, fetch, deadline).await?;
        Ok(PooledWorker { worker, _permit: place })
    }

    /// Acquires a permit for a worker; stops an idle one if necessary.
    async fn acquire_worker_permit(
        self: &Arc<Self>,
        deadline: Instant,
    ) -> Result<OwnedSemaphorePermit, RunError> {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return Ok(place);
        }
        let _starving = StarvationGuard::new(self);
        drop(self.lock().longest_idle());
        let place = timeout_at(deadline, self.places.clone().acquire_owned()).await;
        place.ok().and_then(Result::ok).ok_or(RunError::Busy)
    }

    /// Number of calls after which a replacement is started, so that it is ready when the worker reaches its last call.
    fn replacement_age(&self) -> u64 {
        let most = self.options.calls_per_worker;
        most - most / 4
    }

    /// True if all idle workers will soon be replaced, or there are none.
    fn needs_spare(&self, key: &Arc<str>) -> bool {
        let old_age = self.replacement_age();
        let is_old = |placed: &PooledWorker| placed.worker.calls >= old_age;
        self.lock().by_code.get(key).is_some_and(|pool| pool.idle.iter().all(is_old))
    }

    /// Starts a spare worker if none is idle and a permit is available.
    fn start_spare(self: &Arc<Self>, code: &Arc<FunctionCode>) {
        if !self.needs_spare(&code.key) {
            return;
        }
        let Ok(place) = self.places.clone().try_acquire_owned() else { return };
        let (pools, code) = (Arc::downgrade(self), code.clone());
        let mut starting = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        while starting.try_join_next().is_some() {}
        let launcher = self.options.launcher();
        let fetch = self.options.fetch.clone();
        starting.spawn(async move {
            let deadline = Instant::now() + code.limits.time_limit;
            let started = FunctionWorker::start(&launcher, &code, fetch, deadline).await;
            // The next call reports a failure.
            if let (Ok(worker), Some(pools)) = (started, pools.upgrade()) {
                pools.keep_spare(&code.key, PooledWorker { worker, _permit: place });
            }
        });
    }

    /// Keeps a worker for later calls, unless a call waits for its permit.
    fn keep_idle(&self, key: &Arc<str>, mut placed: PooledWorker, order: IdlePosition) {
        placed.worker.idle_since = Instant::now();
        let mut state = self.lock();
        if state.waiting_for_permit > 0 {
            drop(state);
            return drop(placed);
        }
        match state.by_code.get_mut(key) {
            Some(pool) => pool.keep(placed, order),
            None => drop(state),
        }
    }

    /// Keeps a spare worker, unless another one has become idle meanwhile.
    fn keep_spare(&self, key: &Arc<str>, placed: PooledWorker) {
        if self.needs_spare(key) {
            self.keep_idle(key, placed, IdlePosition::Last);
        }
    }

    /// Stops expired idle workers periodically. The task ends with the pool, or when there are no workers.
    fn start_sweeper(self: &Arc<Self>) {
        if std::mem::replace(&mut self.lock().is_swept, true) {
            return;
        }
        let (pools, idle_time) = (Arc::downgrade(self), self.options.idle_time);
        let mut tasks = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.spawn(async move {
            loop {
                tokio::time::sleep((idle_time / 4).min(SWEEP_INTERVAL)).await;
                let Some(pools) = pools.upgrade() else { return };
                let mut state = pools.lock();
                let (old, lost) = state.take_expired(idle_time);
                state.is_swept = !state.by_code.is_empty();
                let is_done = !state.is_swept;
                drop(state);
                drop(old);
                lost.iter().for_each(|code| pools.start_spare(code));
                if is_done {
                    return;
                }
            }
        });
    }

    /// Replaces an idle worker that ends by itself, for example because it could not clean up after a call.
    fn replace_on_exit(self: &Arc<Self>, code: &Arc<FunctionCode>, worker: &FunctionWorker) {
        let (pools, code, mut ending) = (Arc::downgrade(self), code.clone(), worker.ending());
        let mut tasks = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            ending.wait().await;
            let Some(pools) = pools.upgrade() else { return };
            let lost = pools.lock().take_ended(&code.key);
            // A worker that ends before its first call is not replaced, because its successor would end, too.
            let is_replaced = lost.iter().any(|placed| placed.worker.calls > 0);
            drop(lost);
            if is_replaced {
                pools.start_spare(&code);
            }
        });
    }
}

impl CallPermit {
    /// Returns a worker for the call, preferably an idle one.
    pub(super) async fn worker(&self, deadline: Instant) -> Result<PooledWorker, RunError> {
        if let Some(placed) = self.idle_worker() {
            return Ok(placed);
        }
        self.new_worker(deadline).await
    }

    /// Starts a worker for the call.
    pub(super) async fn new_worker(&self, deadline: Instant) -> Result<PooledWorker, RunError> {
        let place = self.pools.acquire_worker_permit(deadline).await?;
        self.pools.start(&self.code, place, deadline).await
    }

    fn idle_worker(&self) -> Option<PooledWorker> {
        loop {
            let placed = self.pools.lock().by_code.get_mut(&self.code.key)?.idle.pop()?;
            if placed.worker.is_alive() {
                return Some(placed);
            }
        }
    }

    /// Returns a worker to the pool after a call.
    pub(super) fn release(&self, placed: PooledWorker) {
        let calls = placed.worker.calls;
        // Requests of a handler that has ended may be left in its pipes, and its code is that of a caller.
        let is_spent =
            placed.worker.is_finished || self.code.tools || calls >= self.pools.options.calls_per_worker;
        match is_spent {
            true => drop(placed),
            false => {
                if calls == 1 {
                    self.pools.replace_on_exit(&self.code, &placed.worker);
                }
                self.pools.keep_idle(&self.code.key, placed, IdlePosition::Next);
            }
        }
        if is_spent || calls == self.pools.replacement_age() {
            self.pools.start_spare(&self.code);
        }
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        if let Some(pool) = self.pools.lock().by_code.get_mut(&self.code.key) {
            pool.calls -= 1;
        }
    }
}

/// While it exists, workers that become free are stopped to release their permits.
struct StarvationGuard<'a>(&'a WorkerPools);

impl<'a> StarvationGuard<'a> {
    fn new(pools: &'a WorkerPools) -> Self {
        pools.lock().waiting_for_permit += 1;
        Self(pools)
    }
}

impl Drop for StarvationGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting_for_permit -= 1;
    }
}
