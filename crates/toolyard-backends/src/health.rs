//! Health of a service that is known by its calls: the last failure, and whether the service can be reached.
//!
//! A failed connection is checked at once by another one, and a service that several calls in a row have failed at is
//! left alone for a while. Meanwhile it counts as unavailable; connections that are opened for no other purpose decide
//! when it is available again. A probe in the manifest checks it at all times.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use ::http::{Method, Request, StatusCode, Uri};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::Full;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolyard_core::{BackendPhase, Catalog, CauseCode, CircuitBreaker, ErrorCode, FailureCause, ToolError};
use toolyard_net::client::{HttpClient, RequestError};

/// Pause between two checks of an unavailable service: the first one, and the longest.
const CHECK_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Time limit of a check, unless a probe has one.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// Regular checks of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceProbe {
    /// Time between two checks.
    pub interval: Duration,
    /// Time limit of a check.
    pub timeout: Duration,
    /// Path of a GET request, any answer to which but a status of 500 or more is a success. `None`: a connection is
    /// opened and closed.
    pub path: Option<String>,
}

/// A check of a service that answers no call.
pub trait ServiceCheck: Send + Sync {
    /// Checks whether the service at this URL is available.
    fn check(&self, target: Uri) -> BoxFuture<'_, Result<(), FailureCause>>;
}

/// A check by a connection, or by the request of the probe.
struct HttpCheck {
    client: HttpClient,
    path: Option<String>,
}

/// Times of the regular checks of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckTimes {
    /// Time between two checks.
    pub interval: Duration,
    /// Time limit of a check.
    pub timeout: Duration,
}

/// The health of a service. Clones share it.
#[derive(Clone)]
pub struct ServiceHealth {
    shared: Arc<SharedHealth>,
    /// The task that checks the service. Dropping the last clone ends it.
    checks: Arc<Mutex<JoinSet<()>>>,
}

struct SharedHealth {
    name: Arc<str>,
    catalog: watch::Sender<Arc<Catalog>>,
    service_check: Box<dyn ServiceCheck>,
    breaker: CircuitBreaker,
    probe: Option<CheckTimes>,
    /// True while the service is unavailable, so that a successful call takes no lock.
    is_down: AtomicBool,
    state: Mutex<HealthState>,
    /// Requests a check.
    check: Notify,
}

#[derive(Default)]
struct HealthState {
    /// The reason why the service is unavailable.
    down: Option<FailureCause>,
    last_failure: Option<(FailureCause, SystemTime)>,
    /// The service, once it is known.
    target: Option<Uri>,
    /// True while a task checks it.
    is_checking: bool,
}

/// The outcome of a request for the health of its service.
pub enum RequestEnd {
    /// The service has answered.
    Answered,
    /// It has failed to answer properly.
    Failed(FailureCause),
    /// The connection could not be opened.
    NotConnected(FailureCause),
}

impl ServiceHealth {
    /// Creates the health of a service over HTTP.
    pub(crate) fn of_http(
        name: Arc<str>,
        catalog: Catalog,
        client: HttpClient,
        probe: Option<ServiceProbe>,
    ) -> Self {
        let times =
            probe.as_ref().map(|probe| CheckTimes { interval: probe.interval, timeout: probe.timeout });
        let check = HttpCheck { client, path: probe.and_then(|probe| probe.path) };
        Self::new(name, catalog, Box::new(check), times)
    }

    /// Creates the health of a handler's service. With `probe` it is checked at all times.
    #[must_use]
    pub fn new(
        name: Arc<str>,
        catalog: Catalog,
        service_check: Box<dyn ServiceCheck>,
        probe: Option<CheckTimes>,
    ) -> Self {
        let shared = Arc::new(SharedHealth {
            name,
            catalog: watch::Sender::new(Arc::new(catalog)),
            service_check,
            breaker: CircuitBreaker::default(),
            probe,
            is_down: AtomicBool::new(false),
            state: Mutex::default(),
            check: Notify::new(),
        });
        Self { shared, checks: Arc::default() }
    }

    /// Returns the catalog and its changes.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Arc<Catalog>> {
        self.shared.catalog.subscribe()
    }

    /// Returns the breaker of its calls.
    #[must_use]
    pub fn breaker(&self) -> &CircuitBreaker {
        &self.shared.breaker
    }

    /// Returns the last failure of a call or a check.
    #[must_use]
    pub fn last_failure(&self) -> Option<(FailureCause, SystemTime)> {
        self.shared.state().last_failure.clone()
    }

    /// Sets the service to check, and starts the regular checks if there are any.
    pub fn set_target(&self, target: &Uri) {
        self.shared.state().target = origin(target);
        if self.shared.probe.is_some() {
            self.start_checks();
        }
    }

    /// Publishes lists. The service is available unless it is known to be down.
    pub fn publish(&self, change: impl FnOnce(&mut Catalog)) {
        let down = self.shared.state().down.clone();
        self.shared.catalog.send_modify(|catalog| {
            let mut changed = Catalog::clone(catalog);
            changed.phase = down.map_or(BackendPhase::Ready, |reason| BackendPhase::Unavailable { reason });
            change(&mut changed);
            *catalog = Arc::new(changed);
        });
    }

    /// Publishes these lists in the place of the earlier ones. Their phase is not used.
    pub fn publish_lists(&self, lists: Catalog) {
        self.publish(|catalog| {
            let phase = catalog.phase.clone();
            *catalog = Catalog { phase, ..lists };
        });
    }

    /// Returns what a task reads of the service, once it has published it; `is_empty` tells that it has not. Calls of
    /// tools of the last run wait here.
    ///
    /// # Errors
    /// With this message if it cannot be read.
    pub async fn loaded<T>(
        &self,
        loaded: &watch::Receiver<Arc<T>>,
        is_empty: impl Fn(&T) -> bool,
        message: &'static str,
    ) -> Result<Arc<T>, ToolError> {
        let current = loaded.borrow().clone();
        if !is_empty(&current) {
            return Ok(current);
        }
        let mut catalog = self.subscribe();
        // The sender lives as long as this.
        let _open = catalog.wait_for(|catalog| catalog.phase != BackendPhase::Connecting).await.map(drop);
        let current = loaded.borrow().clone();
        match &catalog.borrow().phase {
            BackendPhase::Unavailable { reason } if is_empty(&current) => {
                Err(ToolError::new(ErrorCode::Unavailable, message).unsent().caused_by(reason.to_string()))
            }
            _ => Ok(current),
        }
    }

    /// Records the end of a request to `target`.
    pub fn record(&self, target: &Uri, end: RequestEnd) {
        let is_down = self.shared.is_down.load(Ordering::Relaxed);
        let (cause, is_connected) = match end {
            RequestEnd::Answered if !is_down => return,
            RequestEnd::Answered => return self.shared.set_up(),
            RequestEnd::Failed(cause) => (cause, true),
            RequestEnd::NotConnected(cause) => (cause, false),
        };
        {
            let mut state = self.shared.state();
            state.last_failure = Some((cause.clone(), SystemTime::now()));
            state.target = origin(target).or(state.target.take());
        }
        if self.shared.breaker.is_open() {
            let message = format!("several calls in a row have failed; the last one: {}", cause.message);
            self.shared.set_down(FailureCause::new(CauseCode::BreakerOpen, message));
        } else if is_connected {
            return;
        }
        self.start_checks();
        self.shared.check.notify_one();
    }

    /// Starts the task that checks the service, unless it runs.
    fn start_checks(&self) {
        let Ok(runtime) = Handle::try_current() else { return };
        if !std::mem::replace(&mut self.shared.state().is_checking, true) {
            let checks = self.shared.clone().run_checks();
            self.checks.lock().unwrap_or_else(PoisonError::into_inner).spawn_on(checks, &runtime);
        }
    }
}

impl SharedHealth {
    fn state(&self) -> MutexGuard<'_, HealthState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks the service until it is available and has no probe.
    async fn run_checks(self: Arc<Self>) {
        let mut pause = CHECK_PAUSE.0;
        loop {
            pause = self.check_now(pause).await;
            let wait = {
                let mut state = self.state();
                match (&state.down, &self.probe) {
                    (Some(_), _) => pause,
                    (None, Some(probe)) => probe.interval,
                    (None, None) => {
                        state.is_checking = false;
                        return;
                    }
                }
            };
            let _early = timeout(wait, self.check.notified()).await;
        }
    }

    /// Checks the service, and returns the pause before the next check.
    async fn check_now(&self, pause: Duration) -> Duration {
        let Some(target) = self.state().target.clone() else { return CHECK_PAUSE.0 };
        let time = self.probe.as_ref().map_or(CHECK_TIMEOUT, |probe| probe.timeout);
        let late = || Err(FailureCause::new(CauseCode::Timeout, "no answer to the probe in time"));
        match timeout(time, self.service_check.check(target)).await.unwrap_or_else(|_| late()) {
            Ok(()) if self.breaker.is_open() => CHECK_PAUSE.0,
            Ok(()) => {
                self.set_up();
                CHECK_PAUSE.0
            }
            Err(cause) => {
                self.set_down(cause);
                (pause * 2).min(CHECK_PAUSE.1)
            }
        }
    }

    fn set_up(&self) {
        if self.is_down.swap(false, Ordering::Relaxed) {
            self.state().down = None;
            tracing::info!(handler = %self.name, "the service is available again");
            self.set_phase(BackendPhase::Ready);
        }
    }

    fn set_down(&self, cause: FailureCause) {
        let was_same = {
            let mut state = self.state();
            let was_same = state.down.as_ref().is_some_and(|down| down.is_same(&cause));
            if !was_same {
                state.last_failure = Some((cause.clone(), SystemTime::now()));
                state.down = Some(cause.clone());
            }
            was_same
        };
        self.is_down.store(true, Ordering::Relaxed);
        if !was_same {
            let code = cause.code.row().wire;
            tracing::warn!(handler = %self.name, code, reason = %cause, "the service is unavailable");
            self.set_phase(BackendPhase::Unavailable { reason: cause });
        }
    }

    /// Publishes a phase, unless the lists are not known yet.
    fn set_phase(&self, phase: BackendPhase) {
        self.catalog.send_if_modified(|catalog| {
            let is_change = catalog.phase != phase && !catalog.tools.is_empty();
            if is_change {
                *catalog = Arc::new(Catalog { phase, ..Catalog::clone(catalog) });
            }
            is_change
        });
    }
}

impl HttpCheck {
    async fn run(&self, target: Uri) -> Result<(), FailureCause> {
        let Some(path) = &self.path else {
            return self.client.check_connection(target).await.map_err(|error| unreachable(&error));
        };
        let mut parts = target.into_parts();
        parts.path_and_query = path.parse().ok();
        let mut request = Request::new(Full::<Bytes>::default());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
        match self.client.send(request).await.map_err(|error| unreachable(&error))?.status() {
            status if status.is_server_error() => Err(status_cause(status)),
            _ => Ok(()),
        }
    }
}

impl ServiceCheck for HttpCheck {
    fn check(&self, target: Uri) -> BoxFuture<'_, Result<(), FailureCause>> {
        Box::pin(self.run(target))
    }
}

/// Returns the cause of a request that has not reached the service.
#[must_use]
pub fn unreachable(error: &RequestError) -> FailureCause {
    FailureCause::new(error.code(), format!("the server cannot be reached: {}", error.reason()))
}

/// Returns the cause of a status of failure.
pub(crate) fn status_cause(status: StatusCode) -> FailureCause {
    FailureCause::new(CauseCode::of_status(status.as_u16()), format!("HTTP status {}", status.as_u16()))
}

/// Returns the scheme and the host of a URL.
fn origin(url: &Uri) -> Option<Uri> {
    let (scheme, authority) = (url.scheme_str()?, url.authority()?);
    Uri::builder().scheme(scheme).authority(authority.as_str()).path_and_query("/").build().ok()
}
