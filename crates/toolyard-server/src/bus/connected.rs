//! The parts that need a broker: the worker, publishers, and dead letters.
//!
//! - `agents`: agents of other processes, and the gateway as an agent;
//! - `bridge`: the bridge with MCP servers, and the servers of one;
//! - `scripts`: the scripts manager, and the runner of its senders.

pub(super) mod agents;
pub(super) mod bridge;
pub(super) mod scripts;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, UNIX_EPOCH};

use futures_util::future::{BoxFuture, FutureExt};
use toolyard_bus::headers::{self, ContentTrust};
use toolyard_bus::stored_results::with_store;
use toolyard_bus::worker::{BusWorker, WorkerPrincipal};
use toolyard_bus::{BusError, DeadLetter, Envelope, MessageBus, Topic, TopicPattern};
use toolyard_core::access::{AccessGrant, ScopePattern};
use toolyard_core::store::Store;
use toolyard_core::timestamp::iso_8601;
use toolyard_core::{Caller, ErrorCode, ToolError};
use toolyard_manifest::{BusSettings, BusWorkerSettings};
use toolyard_schedule::{MessagePublisher, TaskMessage};

use super::{BusFailure, DeadLetterQuery, DeadMessage};
use crate::context::GatewayContext;
use crate::frontends::FrontendDeps;
use crate::keys::KeyCache;
use crate::keys::key_cache::KeyVerdict;
use crate::shutdown::Subsystem;

/// Connects to the broker of these settings, with the store for large results.
///
/// # Errors
/// If the settings have no URL that a broker's client accepts.
pub(crate) fn connect(
    settings: &BusSettings,
    store: &Arc<dyn Store>,
) -> Result<Arc<dyn MessageBus>, BusError> {
    Ok(with_store(toolyard_bus::connect(settings)?, store.clone(), settings))
}

/// Checks that there is a URL of a broker.
///
/// # Errors
/// If the settings have none.
pub(super) fn check(settings: &BusSettings) -> Result<(), BusFailure> {
    Ok(toolyard_bus::broker_url(settings).map(drop)?)
}

/// Starts a worker on the bus of the settings.
///
/// # Errors
/// If the settings have no URL that a broker's client accepts.
pub(super) fn start_worker(
    context: &GatewayContext,
    deps: &FrontendDeps<'_>,
) -> Result<Box<dyn Subsystem>, BusFailure> {
    let settings = &context.process.bus;
    let bus = connect(settings, &context.store)?;
    let principal = principal(settings, deps.keys);
    Ok(Box::new(BusWorker::start(bus, deps.gateway.clone(), principal, settings)?))
}

/// Returns the caller of all calls that arrive on the bus.
fn principal(settings: &BusSettings, keys: &Arc<KeyCache>) -> Arc<dyn WorkerPrincipal> {
    match &settings.worker.key {
        Some(id) => Arc::new(KeyPrincipal { keys: keys.clone(), id: id.clone() }),
        None => Arc::new(FixedPrincipal(fixed_caller(&settings.worker))),
    }
}

/// Returns the publisher of the messages of scheduled tasks. It connects with the first message.
pub(crate) fn publisher(settings: &BusSettings) -> Arc<dyn MessagePublisher> {
    Arc::new(BusPublisher { settings: settings.clone(), bus: OnceLock::new() })
}

/// Publishes the messages of scheduled tasks.
struct BusPublisher {
    settings: BusSettings,
    bus: OnceLock<Arc<dyn MessageBus>>,
}

impl BusPublisher {
    fn connected(&self) -> Result<&Arc<dyn MessageBus>, BusError> {
        match self.bus.get() {
            Some(bus) => Ok(bus),
            None => {
                let bus = toolyard_bus::connect(&self.settings)?;
                Ok(self.bus.get_or_init(|| bus))
            }
        }
    }

    async fn send(&self, message: TaskMessage) -> Result<(), BusError> {
        let TaskMessage { topic, message_type, run_id, body } = message;
        let topic: Topic =
            topic.parse().map_err(|_| BusError::invalid("`topic` of the action is no topic"))?;
        // Its content is written by a model.
        let envelope = Envelope::with_body(&message_type, body.into(), &self.settings.source)?
            .correlated(run_id)
            .header(headers::CONTENT_TRUST, ContentTrust::AgentMessage.as_str());
        self.connected()?.publish(&topic, envelope).await
    }
}

impl MessagePublisher for BusPublisher {
    fn publish(&self, message: TaskMessage) -> BoxFuture<'_, Result<(), String>> {
        async move { self.send(message).await.map_err(|error| BusFailure::from(error).message) }.boxed()
    }
}

impl From<BusError> for BusFailure {
    fn from(error: BusError) -> Self {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        let message = format!("{error}{}", cause.unwrap_or_default());
        Self { code: ToolError::from(error).code(), message }
    }
}

impl Subsystem for BusWorker {
    fn stop(self: Box<Self>, drain: Duration) -> BoxFuture<'static, ()> {
        BusWorker::stop(*self, drain).boxed()
    }
}

/// A caller with the name and the tools of the manifest.
struct FixedPrincipal(Caller);

impl WorkerPrincipal for FixedPrincipal {
    fn caller(&self) -> BoxFuture<'_, Result<Caller, ToolError>> {
        std::future::ready(Ok(self.0.clone())).boxed()
    }
}

fn fixed_caller(worker: &BusWorkerSettings) -> Caller {
    // The manifest has validated the patterns.
    let scope = worker.tools.iter().filter_map(|tool| tool.parse::<ScopePattern>().ok()).collect();
    let grant = AccessGrant { scope, ..AccessGrant::default() };
    let principal = Some(worker.principal.as_str().into());
    Caller { principal, grant: Some(Arc::new(grant)), ..Caller::default() }
}

/// An API key as the caller.
struct KeyPrincipal {
    keys: Arc<KeyCache>,
    id: String,
}

impl WorkerPrincipal for KeyPrincipal {
    fn caller(&self) -> BoxFuture<'_, Result<Caller, ToolError>> {
        async move {
            let refused = |reason: &str| {
                let message = format!("The key of the worker {reason}");
                Err(ToolError::new(ErrorCode::Denied, message))
            };
            match self.keys.current_by_id(Some(&self.id)).await {
                KeyVerdict::Granted(caller) => Ok(caller.to_caller()),
                KeyVerdict::Revoked => refused("was revoked"),
                KeyVerdict::Expired => refused("has expired"),
                // An id belongs to no session.
                KeyVerdict::Denied | KeyVerdict::SessionEnded => refused("does not exist"),
                KeyVerdict::Unavailable(kind) => {
                    let message = format!("The store with the keys is unavailable: {kind}");
                    Err(ToolError::new(ErrorCode::Unavailable, message))
                }
            }
        }
        .boxed()
    }
}

/// Returns dead letters, without removing them.
///
/// # Errors
/// If the broker cannot be reached, or refuses.
pub async fn dead_letters(
    settings: &BusSettings,
    query: &DeadLetterQuery,
) -> Result<Vec<DeadMessage>, BusFailure> {
    let pattern: TopicPattern = query.topic.parse().map_err(|invalid| BusFailure {
        code: ErrorCode::InvalidArguments,
        message: format!("{:?}: {invalid}", query.topic),
    })?;
    let bus = toolyard_bus::connect(settings)?;
    let letters = bus.dead_letters(&query.group, &pattern, query.limit).await?;
    Ok(letters.into_iter().map(|letter| message_of(letter, query.bodies)).collect())
}

fn message_of(letter: DeadLetter, with_body: bool) -> DeadMessage {
    let DeadLetter { topic, envelope, reason, attempts } = letter;
    let time = UNIX_EPOCH.checked_add(Duration::from_millis(envelope.timestamp));
    DeadMessage {
        topic,
        message_id: envelope.message_id,
        message_type: envelope.message_type,
        source: envelope.source,
        time: time.filter(|_| envelope.timestamp > 0).map(iso_8601),
        reason,
        attempts,
        bytes: envelope.body.len(),
        body: with_body.then(|| String::from_utf8_lossy(&envelope.body).into_owned()),
    }
}
