//! Limits of calls: their number, their time, and the work that they leave behind.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::{Duration, timeout};
use toolyard_core::Caller;
use toolyard_manifest::WebSettings;

/// Limits of the calls of all tools together. Clones share them.
#[derive(Debug, Clone)]
pub struct WebCallLimits {
    permits: Arc<Semaphore>,
    /// Permits of each key with running or waiting calls.
    of_keys: Arc<Mutex<HashMap<Arc<str>, Weak<Semaphore>>>>,
    permits_per_key: usize,
    /// Permits of work on blocking threads, which goes on when its call has ended.
    work_permits: Arc<Semaphore>,
    /// Time limit of a call, in which it also waits for others.
    pub time: Duration,
}

impl WebCallLimits {
    /// Returns the limits of these settings.
    #[must_use]
    pub fn new(settings: &WebSettings) -> Self {
        let number = settings.concurrent.min(Semaphore::MAX_PERMITS);
        let [permits, work_permits] = [(); 2].map(|()| Arc::new(Semaphore::new(number)));
        let permits_per_key = settings.concurrent_per_key.unwrap_or_else(|| number.div_ceil(2)).min(number);
        Self { permits, of_keys: Arc::default(), permits_per_key, work_permits, time: settings.timeout }
    }

    /// Runs a call of a caller; `None` if it takes too long.
    pub async fn run<T>(&self, caller: &Caller, call: impl Future<Output = T>) -> Option<T> {
        let of_key = caller.principal.as_ref().map(|key| self.permits_of(key));
        let permitted = async {
            // The semaphores are never closed. That of the key comes first, so that its calls do not wait in the way of
            // others.
            let _of_key = match &of_key {
                Some(permits) => permits.acquire().await.ok(),
                None => None,
            };
            let _permit = self.permits.acquire().await;
            call.await
        };
        timeout(self.time, permitted).await.ok()
    }

    /// Returns the permits of a key, which its calls share.
    fn permits_of(&self, key: &Arc<str>) -> Arc<Semaphore> {
        let mut of_keys = self.of_keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(permits) = of_keys.get(key).and_then(Weak::upgrade) {
            return permits;
        }
        of_keys.retain(|_, permits| permits.strong_count() > 0);
        let permits = Arc::new(Semaphore::new(self.permits_per_key));
        of_keys.insert(key.clone(), Arc::downgrade(&permits));
        permits
    }

    /// Runs work on a blocking thread. It keeps its permit to its end, even if the call ends before.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        // The semaphore is never closed.
        let permit = self.work_permits.clone().acquire_owned().await;
        let permitted = move || {
            let done = work();
            drop(permit);
            done
        };
        spawn_blocking(permitted).await
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn calls_are_limited_in_time_and_number() {
        let settings =
            WebSettings { timeout: Duration::from_secs(7), concurrent: 1, ..WebSettings::default() };
        let limits = WebCallLimits::new(&settings);
        let caller = Caller::default();
        let (endless, waiting) =
            tokio::join!(limits.run(&caller, pending::<()>()), limits.run(&caller, ready(1)));
        assert_eq!((endless, waiting), (None, None));
        assert_eq!(limits.run(&caller, ready(2)).await, Some(2));
    }

    #[tokio::test(start_paused = true)]
    async fn slow_calls_of_a_key_leave_room_for_others() {
        let settings = WebSettings { concurrent: 4, ..WebSettings::default() };
        let limits = WebCallLimits::new(&settings);
        let [one, other] =
            ["one", "other"].map(|key| Caller { principal: Some(key.into()), ..Caller::default() });
        let slow = futures_util::future::join_all((0..9).map(|_| limits.run(&one, pending::<()>())));
        let quick = async {
            tokio::task::yield_now().await;
            (limits.run(&other, ready(1)).await, limits.of_keys.lock().unwrap().len())
        };
        let (slow, quick) = tokio::join!(slow, quick);
        assert_eq!((slow, quick), (vec![None; 9], (Some(1), 2)));
        assert_eq!(limits.run(&Caller::default(), ready(2)).await, Some(2));
    }

    #[tokio::test]
    async fn work_of_an_ended_call_keeps_its_permit() {
        let limits = WebCallLimits::new(&WebSettings { concurrent: 1, ..WebSettings::default() });
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let (began, begun) = tokio::sync::oneshot::channel();
        let mut call = Box::pin(limits.run_blocking(move || {
            let _no_reader = began.send(());
            ended.recv().ok();
        }));
        tokio::select! {
            _ = &mut call => panic!("it waits"),
            _ = begun => {}
        }
        drop(call);
        assert_eq!(limits.work_permits.available_permits(), 0);
        drop(end);
        assert_eq!(limits.run_blocking(|| 7).await.expect("no panic"), 7);
    }
}
