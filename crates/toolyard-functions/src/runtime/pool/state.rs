//! Idle workers and calls of each version.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::PooledWorker;
use crate::code::FunctionCode;
use crate::run::RunError;
use crate::runtime::WorkerInfo;

#[derive(Default)]
pub(super) struct PoolState {
    pub(super) by_code: HashMap<Arc<str>, CodePool>,
    /// Number of calls that wait for a worker permit.
    pub(super) waiting_for_permit: usize,
    /// True if the sweeper runs.
    pub(super) is_swept: bool,
}

/// Workers and calls of one version.
pub(super) struct CodePool {
    code: Arc<FunctionCode>,
    call_permits: Arc<Semaphore>,
    /// Number of running and waiting calls.
    pub(super) calls: usize,
    /// Maximum number of running calls.
    concurrent: usize,
    /// Idle workers; the most recently used one is last.
    pub(super) idle: Vec<PooledWorker>,
}

/// Position of a worker among the idle ones.
#[derive(Clone, Copy)]
pub(super) enum IdlePosition {
    /// Used next, because it was used last.
    Next,
    /// Used after the others, which will soon be replaced.
    Last,
}

impl PoolState {
    pub(super) fn add_call(
        &mut self,
        code: &Arc<FunctionCode>,
        share: usize,
        waiting: usize,
    ) -> Result<Arc<Semaphore>, RunError> {
        let concurrent = code.limits.max_concurrent.min(share).clamp(1, Semaphore::MAX_PERMITS);
        let pool = self.by_code.entry(code.key.clone()).or_insert_with(|| CodePool {
            code: code.clone(),
            call_permits: Arc::new(Semaphore::new(concurrent)),
            calls: 0,
            concurrent,
            idle: Vec::new(),
        });
        if pool.calls >= concurrent.saturating_add(waiting) {
            return Err(RunError::Busy);
        }
        pool.calls += 1;
        Ok(pool.call_permits.clone())
    }

    pub(super) fn longest_idle(&mut self) -> Option<PooledWorker> {
        let oldest = |pool: &&mut CodePool| pool.idle.first().map(|placed| placed.worker.idle_since);
        let pools = self.by_code.values_mut().filter(|pool| !pool.idle.is_empty());
        pools.min_by_key(oldest).map(|pool| pool.idle.remove(0))
    }

    /// Removes and returns the idle workers of a version that have ended.
    pub(super) fn take_ended(&mut self, key: &Arc<str>) -> Vec<PooledWorker> {
        let pool = self.by_code.get_mut(key);
        pool.map(|pool| pool.idle.extract_if(.., has_ended).collect()).unwrap_or_default()
    }

    /// Removes and returns expired workers, and those that have ended or are stuck. Also returns the versions whose
    /// workers are to be replaced.
    pub(super) fn take_expired(
        &mut self,
        idle_time: Duration,
    ) -> (Vec<PooledWorker>, Vec<Arc<FunctionCode>>) {
        let (mut old, mut lost) = (Vec::new(), Vec::new());
        for pool in self.by_code.values_mut() {
            let expired = pool.idle.partition_point(|placed| placed.worker.idle_since.elapsed() > idle_time);
            old.extend(pool.idle.drain(..expired));
            let over: Vec<_> = pool.idle.extract_if(.., has_ended).collect();
            // A worker that ends before its first call is not replaced, because its successor would end, too.
            if over.iter().any(|placed| placed.worker.calls > 0) {
                lost.push(pool.code.clone());
            }
            old.extend(over);
        }
        let is_replaced = |key: &Arc<str>| lost.iter().any(|code| code.key == *key);
        self.by_code.retain(|key, pool| pool.calls > 0 || !pool.idle.is_empty() || is_replaced(key));
        (old, lost)
    }
}

/// True if a worker has ended by itself, or does not finish the clean-up after its last call.
fn has_ended(placed: &mut PooledWorker) -> bool {
    !placed.worker.is_alive() || placed.worker.is_stuck()
}

impl CodePool {
    pub(super) fn keep(&mut self, mut placed: PooledWorker, order: IdlePosition) {
        match (order, self.idle.first()) {
            (IdlePosition::Last, Some(first)) => {
                // Sorted by the idle time.
                placed.worker.idle_since = first.worker.idle_since;
                self.idle.insert(0, placed);
            }
            _ => self.idle.push(placed),
        }
    }

    pub(super) fn info(&self, key: &Arc<str>) -> WorkerInfo {
        let running = self.concurrent - self.call_permits.available_permits();
        let waiting = self.calls.saturating_sub(running);
        WorkerInfo { code: key.clone(), running, waiting, idle: self.idle.len() }
    }
}
