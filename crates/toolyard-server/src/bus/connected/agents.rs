//! Agents on the bus: those of other processes as the tools see them, and the gateway itself.
//!
//! - `convert`: records of the bus as messages of A2A, and the other way.

mod convert;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::watch;
use toolyard_a2a::bus::{AgentAnnouncement, AgentBus, BusEvents, BusTask};
use toolyard_a2a::client::error::AgentError;
use toolyard_a2a::server::{A2aServer, TaskClaim};
use toolyard_a2a::wire::task::{Task, TaskState};
use toolyard_bus::agents::record::{AgentTaskError, AgentTaskRequest, codes};
use toolyard_bus::agents::{AgentCaller, AgentListener, AgentTaskHandler, AgentTaskOutcome, BusAgent};
use toolyard_bus::worker::WorkerPrincipal;
use toolyard_bus::{BusError, MessageBus};
use toolyard_core::store::Store;
use toolyard_core::{Caller, ErrorCode};
use toolyard_manifest::{A2aSettings, BusSettings};

use super::{connect, principal};
use crate::bus::BusFailure;
use crate::context::GatewayContext;
use crate::frontends::FrontendDeps;
use crate::shutdown::Subsystem;

/// Returns the agents on the bus of these settings.
pub(in crate::bus) fn bus(settings: &BusSettings, store: &Arc<dyn Store>) -> Option<Arc<dyn AgentBus>> {
    let (settings, store) = (settings.clone(), store.clone());
    Some(Arc::new(ConnectedAgents { settings, store, connected: OnceLock::new() }))
}

/// Starts the gateway as an agent on the bus.
///
/// # Errors
/// If the settings have no URL that a broker's client accepts, or the name cannot be part of a topic.
pub(in crate::bus) fn start(
    context: &GatewayContext,
    deps: &FrontendDeps<'_>,
    server: &A2aServer,
    settings: &A2aSettings,
) -> Result<Box<dyn Subsystem>, BusFailure> {
    let bus_settings = &context.process.bus;
    let bus = connect(bus_settings, &context.store)?;
    let tasks = Arc::new(BusTasks {
        server: server.clone(),
        principal: principal(bus_settings, deps.keys),
        skills: settings.skills.iter().map(|skill| skill.id().to_owned()).collect(),
    });
    let (card, concurrent) = (convert::announced(settings), bus_settings.worker.concurrent_calls);
    let agent = BusAgent::start(bus, card, tasks, concurrent, bus_settings);
    // Only the name can be invalid.
    Ok(Box::new(agent.map_err(|error| BusFailure {
        code: ErrorCode::InvalidArguments,
        message: format!("`a2a.name`: {error}, or set `a2a.bus: false`"),
    })?))
}

impl Subsystem for BusAgent {
    fn stop(self: Box<Self>, drain: Duration) -> BoxFuture<'static, ()> {
        BusAgent::stop(*self, drain).boxed()
    }
}

/// The agents on a bus, which is connected to when they are used.
struct ConnectedAgents {
    settings: BusSettings,
    store: Arc<dyn Store>,
    connected: OnceLock<Connection>,
}

struct Connection {
    bus: Arc<dyn MessageBus>,
    caller: AgentCaller,
}

impl ConnectedAgents {
    fn connection(&self) -> Result<&Connection, BusError> {
        if let Some(connection) = self.connected.get() {
            return Ok(connection);
        }
        let bus = connect(&self.settings, &self.store)?;
        let caller = AgentCaller::new(bus.clone(), &self.settings);
        Ok(self.connected.get_or_init(|| Connection { bus, caller }))
    }

    async fn dispatch(&self, task: BusTask) -> Result<BusEvents, BusError> {
        let (agent, time) = (task.agent.clone(), task.time);
        let sent = self.connection()?.caller.send(&agent, &convert::request(task), time).await?;
        let events = stream::unfold(Some(sent), async |sent| {
            let mut sent = sent?;
            let event = sent.next().await.map_err(failure).and_then(convert::event);
            let is_end = !matches!(&event, Ok(event) if convert::is_progress(event));
            Some((event, (!is_end).then_some(sent)))
        });
        Ok(events.boxed())
    }
}

impl AgentBus for ConnectedAgents {
    fn announcements(&self) -> BoxStream<'static, AgentAnnouncement> {
        let listener = match self.connection() {
            Ok(Connection { bus, .. }) => AgentListener::new(bus.clone(), &self.settings),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "cannot listen to the agents on the message bus");
                return stream::empty().boxed();
            }
        };
        let cards = stream::unfold(listener, async |mut listener| Some((listener.next().await?, listener)));
        cards.filter_map(async |card| convert::announcement(card)).boxed()
    }

    fn send(&self, task: BusTask) -> BoxFuture<'_, Result<BusEvents, AgentError>> {
        self.dispatch(task).map(|sent| sent.map_err(failure)).boxed()
    }
}

fn failure(error: BusError) -> AgentError {
    AgentError::Bus(error.to_string())
}

/// Runs tasks that arrive on the bus, as the caller that the configuration of the worker gives.
struct BusTasks {
    server: A2aServer,
    principal: Arc<dyn WorkerPrincipal>,
    /// Ids of the skills.
    skills: Vec<String>,
}

impl BusTasks {
    async fn run_to_end(
        &self,
        request: &AgentTaskRequest,
        progress: &watch::Sender<String>,
    ) -> Result<Task, (&'static str, String)> {
        let skill = request.skill.trim();
        if !skill.is_empty() && !self.skills.iter().any(|id| id.eq_ignore_ascii_case(skill)) {
            let skills = self.skills.join(", ");
            let reason = format!("There is no skill {skill:?}: expected one of {skills}.");
            return Err((codes::SKILL_NOT_SUPPORTED, reason));
        }
        let caller = self.principal.caller().await;
        let caller = caller.map_err(|error| (codes::EXECUTION_FAILED, error.message().to_owned()))?;
        let message = convert::message(request);
        let claim = self.server.start_task(&caller, message);
        let claim = claim.map_err(|error| (codes::INVALID_REQUEST, error.message))?;
        let mut running = RunningTask { server: &self.server, caller, claim };
        loop {
            let task = running.claim.now();
            if task.status.state.is_at_rest() {
                return Ok(task);
            }
            if let Some(message) = &task.status.message {
                progress.send_replace(message.to_text());
            }
            if running.claim.changed().await.is_none() {
                return Ok(running.claim.now());
            }
        }
    }
}

impl AgentTaskHandler for BusTasks {
    fn run(
        &self,
        request: AgentTaskRequest,
        progress: watch::Sender<String>,
    ) -> BoxFuture<'_, AgentTaskOutcome> {
        async move {
            let refused = |(code, message): (&str, String)| AgentTaskError {
                task_id: request.task_id.clone(),
                context_id: request.context_id.clone(),
                code: code.to_owned(),
                message,
                is_retryable: false,
            };
            let task = self.run_to_end(&request, &progress).await.map_err(refused)?;
            match task.status.state {
                TaskState::Rejected => Err(refused((codes::INVALID_REQUEST, task.to_text()))),
                _ => Ok(convert::result(&request, task)),
            }
        }
        .boxed()
    }
}

/// A task, which is cancelled when it is dropped before its end.
struct RunningTask<'a> {
    server: &'a A2aServer,
    caller: Caller,
    claim: TaskClaim,
}

impl Drop for RunningTask<'_> {
    fn drop(&mut self) {
        let task = self.claim.now();
        if !task.status.state.is_final() {
            // It may have ended meanwhile.
            let _ended = self.server.cancel_task(&self.caller, &task.id);
        }
    }
}
