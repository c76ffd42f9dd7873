//! What is seen of one pod, one state after the other: by a watch, and where there is none, by looking.

use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use tokio::time::{Instant, sleep_until, timeout};

use crate::error::OperatorError;

/// How long the cluster may take to answer what it can answer at once.
pub(crate) const ANSWER: Duration = Duration::from_secs(5);

/// How long one watch goes on. A connection that has died in silence is noticed then.
const WATCH: Duration = Duration::from_secs(30);

/// Where there is no watch, how long it takes to look again.
const POLL: Duration = Duration::from_secs(1);

type Watch = BoxStream<'static, kube::Result<WatchEvent<Pod>>>;

/// What is seen of one pod from when it was made.
pub(crate) struct Sightings<'a> {
    pods: &'a Api<Pod>,
    name: &'a str,
    watch: Option<Watch>,
    /// When it was begun, or was to be.
    since: Instant,
    /// Why nothing was seen the last time.
    trouble: Option<OperatorError>,
}

impl<'a> Sightings<'a> {
    pub(crate) async fn begin(pods: &'a Api<Pod>, name: &'a str, created: &Pod) -> Self {
        let mut sightings = Self { pods, name, watch: None, since: Instant::now(), trouble: None };
        sightings.open(created).await;
        sightings
    }

    /// What is seen next, maybe the same as before; `None` once there is no such pod. As long as the cluster does not
    /// answer this waits.
    ///
    /// # Errors
    /// When the cluster does not let us look.
    pub(crate) async fn next(&mut self) -> Result<Option<Pod>, OperatorError> {
        loop {
            match self.watched().await {
                Some(WatchEvent::Added(pod) | WatchEvent::Modified(pod)) => return Ok(Some(pod)),
                Some(WatchEvent::Deleted(_)) => return Ok(None),
                Some(WatchEvent::Bookmark(_)) => continue,
                Some(WatchEvent::Error(_)) | None => {}
            }
            self.watch = None;
            // One that ends at once is not begun again and again.
            sleep_until(self.since + POLL).await;
            match self.look().await {
                Ok(Some(pod)) => {
                    self.open(&pod).await;
                    return Ok(Some(pod));
                }
                Ok(None) => return Ok(None),
                Err(error @ OperatorError::Lost { .. }) => return Err(error),
                Err(error) => {
                    self.since = Instant::now();
                    self.trouble = Some(error);
                }
            }
        }
    }

    /// The pod as it is now; `None` where there is none.
    pub(crate) async fn look(&mut self) -> Result<Option<Pod>, OperatorError> {
        let answer = timeout(ANSWER, self.pods.get(self.name)).await;
        let pod = answer.map_err(|late| OperatorError::Unreachable(late.into()))?;
        self.trouble = None;
        match pod {
            Ok(pod) => Ok(Some(pod)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(unseen(error)),
        }
    }

    /// Why nothing was seen the last time, if nothing was.
    pub(crate) const fn trouble(&mut self) -> Option<OperatorError> {
        self.trouble.take()
    }

    async fn watched(&mut self) -> Option<WatchEvent<Pod>> {
        let watch = self.watch.as_mut()?;
        let event = timeout(WATCH + ANSWER, watch.try_next()).await.ok()?;
        match event {
            Ok(event) => event,
            Err(error) => {
                tracing::debug!(pod = self.name, %error, "the watch has failed");
                None
            }
        }
    }

    /// Watches from what was seen on, so that nothing is missed in between. Without a watch it is looked.
    async fn open(&mut self, seen: &Pod) {
        self.since = Instant::now();
        let selector = format!("metadata.name={}", self.name);
        let params = WatchParams::default().fields(&selector).timeout(WATCH.as_secs() as u32);
        let version = seen.metadata.resource_version.as_deref().unwrap_or_default();
        match timeout(ANSWER, self.pods.watch(&params, version)).await {
            Ok(Ok(watch)) => self.watch = Some(watch.boxed()),
            Ok(Err(error)) => tracing::debug!(pod = self.name, %error, "there is no watch"),
            Err(_) => tracing::debug!(pod = self.name, "there is no watch in time"),
        }
    }
}

/// What it means that the cluster does not show a pod. There is one, so its script may run.
fn unseen(error: kube::Error) -> OperatorError {
    match &error {
        kube::Error::Api(status) if matches!(status.code, 400..=428 | 430..=499) => {
            OperatorError::Lost { reason: "Unseen".to_owned(), detail: error.into() }
        }
        _ => OperatorError::Unreachable(error.into()),
    }
}
