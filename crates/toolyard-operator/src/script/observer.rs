//! Observation of one pod, by a watch or by polling.

use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use tokio::time::{Instant, sleep_until, timeout};

use crate::error::OperatorError;

/// Time limit of a response of the cluster.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Duration of one watch. A dead connection is detected at its end.
const WATCH_DURATION: Duration = Duration::from_secs(30);

/// Interval of polling without a watch.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

type PodWatch = BoxStream<'static, kube::Result<WatchEvent<Pod>>>;

/// Observes one pod from its creation.
pub(crate) struct PodObserver<'a> {
    pods: &'a Api<Pod>,
    name: &'a str,
    watch: Option<PodWatch>,
    /// Start of the watch or of the last attempt.
    since: Instant,
    /// Error of the last attempt.
    last_error: Option<OperatorError>,
}

impl<'a> PodObserver<'a> {
    pub(crate) async fn start(pods: &'a Api<Pod>, name: &'a str, created: &Pod) -> Self {
        let mut sightings = Self { pods, name, watch: None, since: Instant::now(), last_error: None };
        sightings.start_watch(created).await;
        sightings
    }

    /// Returns the next state of the pod, which may equal the previous one; `None` if there is no such pod. Waits while
    /// the cluster does not respond.
    ///
    /// # Errors
    /// If the cluster denies access to the pod.
    pub(crate) async fn next(&mut self) -> Result<Option<Pod>, OperatorError> {
        loop {
            match self.next_event().await {
                Some(WatchEvent::Added(pod) | WatchEvent::Modified(pod)) => return Ok(Some(pod)),
                Some(WatchEvent::Deleted(_)) => return Ok(None),
                Some(WatchEvent::Bookmark(_)) => continue,
                Some(WatchEvent::Error(_)) | None => {}
            }
            self.watch = None;
            // A watch that ends at once is not restarted immediately.
            sleep_until(self.since + POLL_INTERVAL).await;
            match self.read_pod().await {
                Ok(Some(pod)) => {
                    self.start_watch(&pod).await;
                    return Ok(Some(pod));
                }
                Ok(None) => return Ok(None),
                Err(error @ OperatorError::Lost { .. }) => return Err(error),
                Err(error) => {
                    self.since = Instant::now();
                    self.last_error = Some(error);
                }
            }
        }
    }

    /// Reads the pod; `None` if there is none.
    pub(crate) async fn read_pod(&mut self) -> Result<Option<Pod>, OperatorError> {
        let answer = timeout(ANSWER_TIMEOUT, self.pods.get(self.name)).await;
        let pod = answer.map_err(|late| OperatorError::Unreachable(late.into()))?;
        self.last_error = None;
        match pod {
            Ok(pod) => Ok(Some(pod)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(read_error(error)),
        }
    }

    /// Takes the error of the last attempt, if it failed.
    pub(crate) const fn take_error(&mut self) -> Option<OperatorError> {
        self.last_error.take()
    }

    async fn next_event(&mut self) -> Option<WatchEvent<Pod>> {
        let watch = self.watch.as_mut()?;
        let event = timeout(WATCH_DURATION + ANSWER_TIMEOUT, watch.try_next()).await.ok()?;
        match event {
            Ok(event) => event,
            Err(error) => {
                tracing::debug!(pod = self.name, %error, "the watch has failed");
                None
            }
        }
    }

    /// Watches from the version that was read, so that no event is missed. Without a watch the pod is polled.
    async fn start_watch(&mut self, seen: &Pod) {
        self.since = Instant::now();
        let selector = format!("metadata.name={}", self.name);
        let params = WatchParams::default().fields(&selector).timeout(WATCH_DURATION.as_secs() as u32);
        let version = seen.metadata.resource_version.as_deref().unwrap_or_default();
        match timeout(ANSWER_TIMEOUT, self.pods.watch(&params, version)).await {
            Ok(Ok(watch)) => self.watch = Some(watch.boxed()),
            Ok(Err(error)) => tracing::debug!(pod = self.name, %error, "cannot start the watch"),
            Err(_) => tracing::debug!(pod = self.name, "starting the watch timed out"),
        }
    }
}

/// Converts the error of reading a pod. The pod exists, so its script may be running.
fn read_error(error: kube::Error) -> OperatorError {
    match &error {
        kube::Error::Api(status) if matches!(status.code, 400..=428 | 430..=499) => {
            OperatorError::Lost { reason: "Unseen".to_owned(), detail: error.into() }
        }
        _ => OperatorError::Unreachable(error.into()),
    }
}
