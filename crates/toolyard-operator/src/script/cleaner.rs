//! Deletion of pods: at the end of a script, after a caller has left, and after the death of a gateway.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join;
use futures_util::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{interval, sleep, timeout};

use super::observer::ANSWER_TIMEOUT;
use super::options::PodOptions;
use super::pod::selector;
use crate::error::{ErrorCause, OperatorError};

/// Delays between the attempts to delete a pod, in seconds. After the last one the pod is left to the sweep for
/// orphans; its deadline ends it in any case.
const RETRY_DELAYS: [u64; 5] = [1, 2, 4, 8, 16];

/// Interval of sweeps for orphaned pods.
const SWEEP_INTERVAL: Duration = Duration::from_secs(300);

/// Maximum number of pods in one list.
const PAGE_SIZE: u32 = 500;

/// Deletes pods in a background task, until it is dropped.
pub(crate) struct PodCleaner {
    queue: mpsc::Sender<PendingDeletion>,
    pods: Api<Pod>,
    task: JoinHandle<()>,
}

/// A pod to delete, and the permit that it holds until then.
struct PendingDeletion {
    name: String,
    _permit: OwnedSemaphorePermit,
}

/// Guard that schedules the deletion of a pod when it is dropped.
pub(crate) struct PodDeletion {
    pending: Option<PendingDeletion>,
    queue: mpsc::Sender<PendingDeletion>,
    pods: Api<Pod>,
}

impl PodCleaner {
    /// Starts the task, which sweeps for orphans at once.
    pub(crate) fn start(pods: Api<Pod>, options: Arc<PodOptions>) -> Self {
        // Each entry holds a permit, so the queue never overflows.
        let (left, mut queue) = mpsc::channel::<PendingDeletion>(options.concurrent);
        let (ours, orphans) = (pods.clone(), pods.clone());
        let task = tokio::spawn(async move {
            let pending = stream::poll_fn(|context| queue.poll_recv(context));
            let cleaning =
                pending.for_each_concurrent(None, |pending| delete_with_retries(ours.clone(), pending));
            join(cleaning, sweep_periodically(&orphans, &options)).await;
        });
        Self { queue: left, pods, task }
    }

    /// Registers a pod before it is created.
    pub(crate) fn register(&self, name: String, permit: OwnedSemaphorePermit) -> PodDeletion {
        let pending = Some(PendingDeletion { name, _permit: permit });
        PodDeletion { pending, queue: self.queue.clone(), pods: self.pods.clone() }
    }
}

impl Drop for PodCleaner {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl PodDeletion {
    /// Deletes the pod now. After a failure the background task retries.
    pub(crate) async fn delete_now(mut self) {
        let Some(pending) = &self.pending else { return };
        match delete(&self.pods, &pending.name).await {
            Ok(()) => self.cancel(),
            Err(error) => {
                tracing::debug!(pod = pending.name, error, "the deletion of a pod failed, it is retried")
            }
        }
    }

    /// Cancels the deletion, because there is no such pod.
    pub(crate) fn cancel(&mut self) {
        self.pending = None;
    }
}

impl Drop for PodDeletion {
    fn drop(&mut self) {
        if let Some(pending) = self.pending.take() {
            // Without a cleaner the pod remains until its deadline.
            self.queue.try_send(pending).ok();
        }
    }
}

async fn delete_with_retries(pods: Api<Pod>, pending: PendingDeletion) {
    let (pods, name) = (&pods, &*pending.name);
    let mut failure = match delete(pods, name).await {
        Ok(()) => return,
        Err(failure) => failure,
    };
    for seconds in RETRY_DELAYS {
        sleep(Duration::from_secs(seconds)).await;
        match delete(pods, name).await {
            Ok(()) => return,
            Err(error) => failure = error,
        }
    }
    tracing::warn!(pod = name, error = failure, "cannot delete the pod of a script");
}

/// Deletes a pod. A missing pod counts as deleted.
async fn delete(pods: &Api<Pod>, name: &str) -> Result<(), ErrorCause> {
    match timeout(ANSWER_TIMEOUT, pods.delete(name, &DeleteParams::default())).await? {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn sweep_periodically(pods: &Api<Pod>, options: &PodOptions) {
    let mut rounds = interval(SWEEP_INTERVAL);
    loop {
        rounds.tick().await;
        match sweep(pods, options).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "deleted orphaned pods of scripts"),
            Err(error) => tracing::warn!(error = ErrorCause::from(error), "cannot list orphaned pods"),
        }
    }
}

/// Deletes orphans and returns their number.
pub(crate) async fn sweep(pods: &Api<Pod>, options: &PodOptions) -> Result<usize, OperatorError> {
    let params = ListParams::default().labels(&selector(options)).limit(PAGE_SIZE);
    let response = timeout(ANSWER_TIMEOUT, pods.list(&params)).await;
    let response = response.map_err(|late| OperatorError::Unreachable(late.into()))?;
    let now = Timestamp::now();
    let mut count = 0;
    for pod in response.map_err(OperatorError::from_create)?.items {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        if is_orphan(&pod, now, options.orphaned_after) {
            delete(pods, name).await.map_err(OperatorError::Unreachable)?;
            count += 1;
        }
    }
    Ok(count)
}

/// True if no gateway can wait for the pod any more; another gateway of the same name may have created it.
fn is_orphan(pod: &Pod, now: Timestamp, after: Duration) -> bool {
    let deadline = pod.spec.as_ref().and_then(|spec| spec.active_deadline_seconds).unwrap_or_default();
    let life = Duration::from_secs(deadline.unsigned_abs()).saturating_add(after);
    let created = pod.metadata.creation_timestamp.as_ref();
    created.is_some_and(|created| now.duration_since(created.0).unsigned_abs() > life && now > created.0)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodSpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use kube::api::ObjectMeta;

    use super::*;

    #[track_caller]
    fn check(age: i64, deadline: Option<i64>, is_one: bool) {
        let now = Timestamp::now();
        let created = Timestamp::from_second(now.as_second() - age).unwrap();
        let pod = Pod {
            metadata: ObjectMeta { creation_timestamp: Some(Time(created)), ..ObjectMeta::default() },
            spec: Some(PodSpec { active_deadline_seconds: deadline, ..PodSpec::default() }),
            status: None,
        };
        assert_eq!(
            is_orphan(&pod, now, Duration::from_secs(60)),
            is_one,
            "{age} s old, may run {deadline:?} s"
        );
    }

    #[test]
    fn pod_past_its_lifetime_is_orphaned() {
        check(0, Some(30), false);
        check(85, Some(30), false);
        check(95, Some(30), true);
        check(95, Some(300), false);
        check(400, Some(300), true);
        check(70, None, true);
    }

    #[test]
    fn pod_from_the_future_is_not_orphaned() {
        check(-1000, Some(30), false);
    }

    #[test]
    fn pod_without_creation_time_is_not_orphaned() {
        assert!(!is_orphan(&Pod::default(), Timestamp::now(), Duration::ZERO));
    }
}
