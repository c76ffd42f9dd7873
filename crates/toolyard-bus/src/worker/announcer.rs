//! Announces the worker and its tools: at the start, regularly, after each change, on request, and when it stops.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use toolyard_core::Json;
use toolyard_core::registry::{EntryKind, Registry, RegistryEntry};

use super::WorkerShared;
use crate::announcement::{WorkerPhase, WorkerQuery, WorkerState, WorkerTools, divide};
use crate::bus::Subscription;
use crate::envelope::{Envelope, new_id};
use crate::message::BusMessage;
use crate::pump::{Backoff, subscribe_when_reachable};
use crate::topic::{Topic, WORKER_ANNOUNCE, WORKER_QUERY};

/// Time in which requests for announcements are collected: many gateways may start at once, and one answer is for all.
const QUERY_PAUSE: Duration = Duration::from_millis(50);

/// Announces a worker until its phase is [`WorkerPhase::Stopped`].
pub(super) async fn announce(shared: Arc<WorkerShared>, mut phase: watch::Receiver<WorkerPhase>) {
    let mut announcer = match new_id() {
        Ok(id) => {
            Announcer { shared: &shared, id, revision: 0, tools: Vec::new(), parts: Vec::new(), last: None }
        }
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            return tracing::error!(error, "the worker announces no tools: it has no id");
        }
    };
    let subscription = Subscription::alone(Topic::of(WORKER_QUERY));
    let mut backoff = Backoff::new(&shared.settings);
    let mut queries = match subscribe_when_reachable(&*shared.bus, &subscription, &mut backoff).await {
        Ok(queries) => queries,
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            return tracing::error!(
                error,
                "the broker refuses requests for announcements; the worker announces no tools"
            );
        }
    };
    let mut changes = shared.gateway.watch();
    let mut ticks = interval(shared.settings.worker.announce_interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut answer_at = None;
    loop {
        tokio::select! {
            _ = ticks.tick() => match announcer.reload().await {
                true => announcer.send_all(&phase).await,
                false => announcer.send_state(&phase).await,
            },
            Ok(()) = changes.changed() => {
                if announcer.reload().await {
                    announcer.send_all(&phase).await;
                }
            }
            Some(delivery) = queries.next() => {
                let query = delivery.envelope.read::<WorkerQuery>().ok();
                // Subscriptions without a group do not deliver again.
                drop(delivery.ack().await);
                let is_for_this = |query: WorkerQuery| query.worker_id.is_none_or(|id| id == announcer.id);
                if query.is_some_and(is_for_this) {
                    answer_at.get_or_insert_with(|| Instant::now() + QUERY_PAUSE);
                }
            }
            () = until(answer_at) => {
                answer_at = None;
                announcer.send_all(&phase).await;
            }
            changed = phase.changed() => {
                announcer.send_state(&phase).await;
                // Without its sender the worker was dropped.
                if changed.is_err() || *phase.borrow() == WorkerPhase::Stopped {
                    return;
                }
            }
        }
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}

/// The tools of a worker as they are announced.
struct Announcer<'a> {
    shared: &'a WorkerShared,
    id: String,
    revision: i64,
    /// Definitions as texts, in the order of their names.
    tools: Vec<String>,
    parts: Vec<Vec<String>>,
    /// The registry that they are from.
    last: Option<Arc<Registry>>,
}

impl Announcer<'_> {
    /// Reads the tools that the caller of the worker has. Returns `true` if they have changed.
    async fn reload(&mut self) -> bool {
        let registry = match self.shared.principal.caller().await {
            Ok(caller) => Some(self.shared.gateway.settled_for(&caller).await),
            // Without rights there are no tools.
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "the worker has no caller");
                None
            }
        };
        let is_same = match (&self.last, &registry) {
            (Some(last), Some(registry)) => Arc::ptr_eq(last, registry),
            _ => false,
        };
        if is_same {
            return false;
        }
        let tools = registry.as_deref().map(definitions).unwrap_or_default();
        self.last = registry;
        if self.revision > 0 && tools == self.tools {
            return false;
        }
        // Half of the limit is for the members around the tools, and for characters that JSON writes in a longer form.
        let (parts, left_out) = divide(&tools, self.shared.settings.max_message_bytes / 2);
        if left_out > 0 {
            tracing::warn!(
                left_out,
                "tools whose definitions exceed half of `bus.maxMessageBytes` are not announced"
            );
        }
        self.revision += 1;
        (self.tools, self.parts) = (tools, parts);
        true
    }

    async fn send_all(&self, phase: &watch::Receiver<WorkerPhase>) {
        self.send_state(phase).await;
        for (part, tools) in self.parts.iter().enumerate() {
            let (worker_id, revision) = (self.id.clone(), self.revision);
            let part = i64::try_from(part).unwrap_or(i64::MAX);
            self.send(&WorkerTools { worker_id, revision, part, tools: tools.clone() }).await;
        }
    }

    async fn send_state(&self, phase: &watch::Receiver<WorkerPhase>) {
        let settings = &self.shared.settings.worker;
        let state = WorkerState {
            worker_id: self.id.clone(),
            group: settings.group.clone(),
            revision: self.revision,
            parts: i64::try_from(self.parts.len()).unwrap_or(i64::MAX),
            interval_ms: i64::try_from(settings.announce_interval.as_millis()).unwrap_or(i64::MAX),
            phase: phase.borrow().as_str().to_owned(),
        };
        self.send(&state).await;
    }

    /// Sends a message to all gateways. One that is lost is repeated at the next interval.
    async fn send<M: BusMessage>(&self, message: &M) {
        let sent = async {
            let envelope = Envelope::of(message, &self.shared.settings.source)?;
            self.shared.bus.broadcast(&Topic::of(WORKER_ANNOUNCE), envelope).await
        };
        if let Err(error) = sent.await {
            tracing::debug!(error = &error as &dyn std::error::Error, "cannot announce the worker");
        }
    }
}

/// Returns the definitions of the tools that calls on the bus reach, without those of the gateway itself.
fn definitions(registry: &Registry) -> Vec<String> {
    let is_announced = |entry: &&Arc<RegistryEntry>| !entry.handler.is_builtin && !entry.handler.is_on_bus;
    let mut entries: Vec<_> = registry.callable_entries(EntryKind::Tools).filter(is_announced).collect();
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    let definition = |entry: &Arc<RegistryEntry>| {
        let mut definition = entry.tool.as_ref()?.definition.clone();
        definition.set("name", Json::string(&entry.name));
        Some(definition.to_json().as_text().to_owned())
    };
    entries.into_iter().filter_map(definition).collect()
}
