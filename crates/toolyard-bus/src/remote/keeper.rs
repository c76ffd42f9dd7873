//! The task that listens to announcements and publishes the tools of workers.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use toolyard_core::{BackendPhase, Catalog, CauseCode, FailureCause, FailureLog};

use super::RemoteOptions;
use super::directory::{Consequence, DirectoryLimits, RemoteTools, WorkerDirectory};
use crate::announcement::{WorkerQuery, WorkerState, WorkerTools};
use crate::bus::{BusError, Deliveries, Delivery, MessageBus, Subscription};
use crate::caller::ToolCaller;
use crate::envelope::Envelope;
use crate::pump::Backoff;
use crate::topic::{Topic, WORKER_ANNOUNCE, WORKER_QUERY};

/// Time for the first announcements. Until then the tools are unknown.
const FIRST_ANSWERS: Duration = Duration::from_secs(1);

/// Time between two checks of the broker while no worker is known.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Time in which workers whose tools are unknown are asked once.
const ASK_PAUSE: Duration = Duration::from_millis(200);

/// Time between two attempts to reach the broker while workers are overdue.
const CHECK_PAUSE: Duration = Duration::from_millis(200);

/// Maximum number of announcements that wait.
const WAITING: usize = 10_000;

/// The task of a backend.
pub(super) struct WorkersKeeper {
    bus: Arc<dyn MessageBus>,
    options: RemoteOptions,
    directory: WorkerDirectory,
    catalog: watch::Sender<Arc<Catalog>>,
    tools: watch::Sender<Arc<RemoteTools>>,
    caller: watch::Sender<Option<Arc<ToolCaller>>>,
    refresh: Arc<Notify>,
    failures: FailureLog,
    /// True while the broker cannot be reached.
    is_broker_down: bool,
}

impl WorkersKeeper {
    pub(super) fn new(
        bus: Arc<dyn MessageBus>,
        options: RemoteOptions,
        catalog: watch::Sender<Arc<Catalog>>,
        tools: watch::Sender<Arc<RemoteTools>>,
        caller: watch::Sender<Option<Arc<ToolCaller>>>,
        refresh: Arc<Notify>,
    ) -> Self {
        let limits = DirectoryLimits {
            groups: options.handler.groups.clone(),
            missed_announcements: options.handler.missed_announcements,
            workers: options.handler.max_workers,
            tools: options.max_tools,
            definition_bytes: options.max_definition_bytes,
        };
        let (directory, failures) = (WorkerDirectory::new(limits), FailureLog::default());
        Self { bus, options, directory, catalog, tools, caller, refresh, failures, is_broker_down: false }
    }

    pub(super) async fn run(mut self) {
        let mut announcements = self.connect().await;
        let mut known_at = Some(Instant::now() + FIRST_ANSWERS);
        let mut ask_at = None;
        let mut check_at = Instant::now() + CHECK_INTERVAL;
        self.ask(None).await;
        loop {
            let overdue_at = self.directory.next_overdue().unwrap_or(check_at);
            tokio::select! {
                delivery = announcements.next() => {
                    // The bus ends with the process.
                    let Some(delivery) = delivery else { return };
                    if self.note(&delivery) {
                        ask_at.get_or_insert_with(|| Instant::now() + ASK_PAUSE);
                    }
                    // Subscriptions without a group do not deliver again.
                    drop(delivery.ack().await);
                }
                () = until(known_at) => {
                    known_at = None;
                    self.publish();
                }
                () = until(ask_at) => {
                    ask_at = None;
                    for worker in self.directory.incomplete() {
                        self.ask(Some(worker)).await;
                    }
                }
                () = self.refresh.notified() => drop(self.ask(None).await),
                () = sleep_until(overdue_at) => {
                    self.check().await;
                    check_at = Instant::now() + CHECK_INTERVAL;
                }
            }
        }
    }

    /// Subscribes as soon as the broker can be reached.
    async fn connect(&mut self) -> Deliveries {
        let settings = self.options.settings.clone();
        let mut backoff = Backoff::new(&settings);
        loop {
            let connected = async {
                let announcements = Subscription::alone(Topic::of(WORKER_ANNOUNCE)).prefetching(WAITING);
                let announcements = self.bus.subscribe(announcements).await?;
                let caller = ToolCaller::start(self.bus.clone(), &settings.source, settings.pending_requests);
                Ok::<_, BusError>((announcements, caller.await?))
            };
            match connected.await {
                Ok((announcements, caller)) => {
                    self.caller.send_replace(Some(Arc::new(caller)));
                    return announcements;
                }
                Err(error) => self.report_broker(&error),
            }
            let _early = timeout(backoff.next(), self.refresh.notified()).await;
        }
    }

    /// Notes an announcement. Returns `true` if the tools of its worker are unknown.
    fn note(&mut self, delivery: &Delivery) -> bool {
        let now = Instant::now();
        let consequence = if let Ok(state) = delivery.envelope.read::<WorkerState>() {
            self.directory.note_state(&state, now)
        } else if let Ok(tools) = delivery.envelope.read::<WorkerTools>() {
            self.directory.note_tools(&tools, now)
        } else {
            tracing::debug!(message_type = %delivery.envelope.message_type, "dropped a message on {WORKER_ANNOUNCE}");
            Consequence::Nothing
        };
        if consequence == Consequence::Changed {
            self.publish();
        }
        consequence == Consequence::Ask
    }

    /// Asks a worker, or all of them, for their tools. Returns `false` if the broker cannot be reached.
    async fn ask(&mut self, worker_id: Option<String>) -> bool {
        let asked = async {
            let envelope = Envelope::of(&WorkerQuery { worker_id }, &self.options.settings.source)?;
            self.bus.broadcast(&Topic::of(WORKER_QUERY), envelope).await
        };
        match asked.await {
            Ok(()) => {
                if std::mem::take(&mut self.is_broker_down) {
                    self.directory.mark_all_seen(Instant::now());
                }
                true
            }
            Err(error) => {
                self.report_broker(&error);
                false
            }
        }
    }

    /// Forgets workers that are overdue, unless it is the broker that cannot be reached.
    async fn check(&mut self) {
        if !self.ask(None).await {
            return sleep(CHECK_PAUSE).await;
        }
        let forgotten = self.directory.forget_overdue(Instant::now());
        if forgotten > 0 {
            let (handler, limit) = (&self.options.name, self.options.handler.missed_announcements);
            tracing::warn!(%handler, forgotten, "workers have missed {limit} announcements in a row");
        }
        self.publish();
    }

    /// Publishes the tools, and the phase that follows from them.
    fn publish(&mut self) {
        let view = self.directory.view();
        let phase = match self.directory.is_empty() {
            true => BackendPhase::Unavailable {
                reason: FailureCause::new(
                    CauseCode::NoWorker,
                    "no worker announces itself on the message bus",
                ),
            },
            false => BackendPhase::Ready,
        };
        if self.failures.clear() > 0 {
            tracing::info!(handler = %self.options.name, "the message broker is available again");
        }
        let tools = Arc::new(view.tools);
        // Publish the routes first: every listed tool can be called.
        self.tools.send_if_modified(|current| {
            let is_change = **current != *tools;
            *current = tools;
            is_change
        });
        let catalog = Catalog {
            phase,
            protocol: Some("message bus".into()),
            tools: view.definitions,
            left_out: [view.left_out, Vec::new(), Vec::new(), Vec::new()],
            ..Catalog::default()
        };
        self.set_catalog(catalog);
    }

    fn set_catalog(&self, catalog: Catalog) {
        self.catalog.send_if_modified(|current| {
            let is_change = **current != catalog;
            if is_change {
                tracing::info!(handler = %self.options.name, tools = catalog.tools.len(), "the tools of workers have changed");
                *current = Arc::new(catalog);
            }
            is_change
        });
    }

    /// Publishes that the broker cannot be reached. The tools stay known, because their workers may still run.
    fn report_broker(&mut self, error: &BusError) {
        self.is_broker_down = true;
        let (name, error) = (&self.options.name, error as &dyn std::error::Error);
        let cause =
            FailureCause::new(CauseCode::Broker, format!("the message broker cannot be used: {error}"));
        match self.failures.record(&cause) {
            Some(_) => tracing::warn!(handler = %name, error, "cannot listen to workers"),
            None => tracing::debug!(handler = %name, error, "still cannot listen to workers"),
        }
        let current = self.catalog.borrow().clone();
        let phase = BackendPhase::Unavailable { reason: cause };
        self.set_catalog(Catalog { phase, ..Catalog::clone(&current) });
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}
