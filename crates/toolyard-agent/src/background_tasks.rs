//! Work that outlives the call that has started it.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinSet};

/// Tasks that run on the runtime of the gateway. That of the thread of a connection, on which calls arrive, ends before the
/// gateway can record the end of what runs. Clones share the tasks, which end with the last clone.
#[derive(Clone)]
pub struct BackgroundTasks(Arc<BackgroundState>);

struct BackgroundState {
    /// `None` outside of a runtime: each task runs on that of its caller.
    runtime: Option<Handle>,
    /// `None` once they are stopped.
    tasks: Mutex<Option<JoinSet<()>>>,
}

impl BackgroundTasks {
    /// Creates an empty set of tasks, which will run on the current runtime.
    #[must_use]
    pub fn new() -> Self {
        let (runtime, tasks) = (Handle::try_current().ok(), Mutex::new(Some(JoinSet::new())));
        Self(Arc::new(BackgroundState { runtime, tasks }))
    }

    /// Starts a task; `None` once the tasks are stopped.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> Option<AbortHandle> {
        let mut tasks = self.tasks();
        let tasks = tasks.as_mut()?;
        // Ended tasks would otherwise stay in the set.
        while tasks.try_join_next().is_some() {}
        Some(match &self.0.runtime {
            Some(runtime) => tasks.spawn_on(work, runtime),
            None => tasks.spawn(work),
        })
    }

    /// Aborts all tasks. Others can be started.
    pub fn abort_all(&self) {
        if let Some(tasks) = &mut *self.tasks() {
            tasks.abort_all();
        }
    }

    /// Aborts all tasks, waits for their end, and starts no others.
    pub async fn stop(&self) {
        let tasks = self.tasks().take();
        if let Some(mut tasks) = tasks {
            tasks.shutdown().await;
        }
    }

    fn tasks(&self) -> MutexGuard<'_, Option<JoinSet<()>>> {
        self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for BackgroundTasks {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for BackgroundTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackgroundTasks").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::runtime::Builder;
    use tokio::sync::oneshot;

    use super::*;

    /// Reports its end when dropped.
    struct EndReport(Option<oneshot::Sender<()>>);

    impl Drop for EndReport {
        fn drop(&mut self) {
            if let Some(sender) = self.0.take() {
                sender.send(()).ok();
            }
        }
    }

    #[tokio::test]
    async fn task_outlives_the_runtime_of_its_call() {
        let tasks = BackgroundTasks::new();
        let (release, released) = oneshot::channel::<()>();
        let (done, is_done) = oneshot::channel();
        let of_call = tasks.clone();
        let call = move || {
            let connection = Builder::new_current_thread().build().expect("a runtime");
            connection.block_on(async {
                let work = async move {
                    released.await.ok();
                    done.send(()).ok();
                };
                of_call.spawn(work).expect("it is not stopped");
            });
        };
        std::thread::spawn(call).join().expect("no panic");
        release.send(()).expect("the task runs");
        is_done.await.expect("the task ends");
    }

    #[tokio::test]
    async fn tasks_end_with_their_owner() {
        let begin = async |tasks: &BackgroundTasks| {
            let (report, ended) = oneshot::channel();
            let report = EndReport(Some(report));
            let work = async move {
                let _report = report;
                pending::<()>().await;
            };
            (tasks.spawn(work).is_some(), ended)
        };
        let tasks = BackgroundTasks::new();
        let (_, aborted) = begin(&tasks).await;
        tasks.abort_all();
        aborted.await.expect("a report");
        let (is_started, stopped) = begin(&tasks).await;
        tasks.stop().await;
        stopped.await.expect("a report");
        assert_eq!((is_started, begin(&tasks).await.0), (true, false));

        let tasks = BackgroundTasks::new();
        let (_, dropped) = begin(&tasks).await;
        drop(tasks);
        dropped.await.expect("a report");
    }
}
