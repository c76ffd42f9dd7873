//! Every pod is deleted: at the end of its script, when nobody waits for that any more, and when its gateway has died.

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

use super::options::PodOptions;
use super::pod::selector;
use super::sightings::ANSWER;
use crate::error::{Cause, OperatorError};

/// How many seconds are waited before each further attempt to delete a pod. After the last one it is left to whoever looks for
/// orphans; its deadline ends it in any case.
const PATIENCE: [u64; 5] = [1, 2, 4, 8, 16];

/// How often is looked for pods that nobody has deleted.
const ROUND: Duration = Duration::from_secs(300);

/// How many pods one look tells of.
const PAGE: u32 = 500;

/// Deletes pods as long as it lives.
pub(crate) struct Cleaner {
    left: mpsc::Sender<Owed>,
    pods: Api<Pod>,
    task: JoinHandle<()>,
}

/// A pod that is to be deleted, and the place that it takes until then.
struct Owed {
    name: String,
    _place: OwnedSemaphorePermit,
}

/// The duty to delete a pod: it goes to the cleaner when this is dropped.
pub(crate) struct Debt {
    owed: Option<Owed>,
    left: mpsc::Sender<Owed>,
    pods: Api<Pod>,
}

impl Cleaner {
    /// Begins, and looks for orphans at once.
    pub(crate) fn start(pods: Api<Pod>, options: Arc<PodOptions>) -> Self {
        // Whoever owes has a place, so there is always room.
        let (left, mut queue) = mpsc::channel::<Owed>(options.concurrent);
        let (ours, orphans) = (pods.clone(), pods.clone());
        let task = tokio::spawn(async move {
            let owed = stream::poll_fn(|context| queue.poll_recv(context));
            let cleaning = owed.for_each_concurrent(None, |owed| insist(ours.clone(), owed));
            join(cleaning, sweep_now_and_then(&orphans, &options)).await;
        });
        Self { left, pods, task }
    }

    /// Takes the duty to delete a pod that is about to be made.
    pub(crate) fn owe(&self, name: String, place: OwnedSemaphorePermit) -> Debt {
        let owed = Some(Owed { name, _place: place });
        Debt { owed, left: self.left.clone(), pods: self.pods.clone() }
    }
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Debt {
    /// Deletes the pod now. What does not work at once is tried again by the cleaner.
    pub(crate) async fn settle(mut self) {
        let Some(owed) = &self.owed else { return };
        match delete(&self.pods, &owed.name).await {
            Ok(()) => self.forget(),
            Err(error) => tracing::debug!(pod = owed.name, error, "a pod is not deleted yet"),
        }
    }

    /// There is no such pod.
    pub(crate) fn forget(&mut self) {
        self.owed = None;
    }
}

impl Drop for Debt {
    fn drop(&mut self) {
        if let Some(owed) = self.owed.take() {
            // Without a cleaner nobody is left who could.
            self.left.try_send(owed).ok();
        }
    }
}

async fn insist(pods: Api<Pod>, owed: Owed) {
    let (pods, name) = (&pods, &*owed.name);
    let mut trouble = match delete(pods, name).await {
        Ok(()) => return,
        Err(trouble) => trouble,
    };
    for seconds in PATIENCE {
        sleep(Duration::from_secs(seconds)).await;
        match delete(pods, name).await {
            Ok(()) => return,
            Err(error) => trouble = error,
        }
    }
    tracing::warn!(pod = name, error = trouble, "the pod of a script cannot be deleted");
}

/// A pod that is gone is deleted.
async fn delete(pods: &Api<Pod>, name: &str) -> Result<(), Cause> {
    match timeout(ANSWER, pods.delete(name, &DeleteParams::default())).await? {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn sweep_now_and_then(pods: &Api<Pod>, options: &PodOptions) {
    let mut rounds = interval(ROUND);
    loop {
        rounds.tick().await;
        match sweep(pods, options).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "pods of scripts that nobody waited for are deleted"),
            Err(error) => tracing::warn!(error = Cause::from(error), "orphaned pods cannot be looked for"),
        }
    }
}

/// Deletes orphans, and says how many.
pub(crate) async fn sweep(pods: &Api<Pod>, options: &PodOptions) -> Result<usize, OperatorError> {
    let params = ListParams::default().labels(&selector(options)).limit(PAGE);
    let listed = timeout(ANSWER, pods.list(&params)).await;
    let listed = listed.map_err(|late| OperatorError::Unreachable(late.into()))?;
    let now = Timestamp::now();
    let mut count = 0;
    for pod in listed.map_err(OperatorError::of)?.items {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        if is_orphan(&pod, now, options.orphaned_after) {
            delete(pods, name).await.map_err(OperatorError::Unreachable)?;
            count += 1;
        }
    }
    Ok(count)
}

/// Whether nobody can wait for a pod any more, whoever has made it: another gateway of the same name may have.
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
    fn a_pod_is_an_orphan_when_nobody_can_wait_for_it_any_more() {
        check(0, Some(30), false);
        check(85, Some(30), false);
        check(95, Some(30), true);
        check(95, Some(300), false);
        check(400, Some(300), true);
        check(70, None, true);
    }

    #[test]
    fn a_pod_from_the_future_is_no_orphan() {
        check(-1000, Some(30), false);
    }

    #[test]
    fn a_pod_that_is_not_made_yet_is_no_orphan() {
        assert!(!is_orphan(&Pod::default(), Timestamp::now(), Duration::ZERO));
    }
}
