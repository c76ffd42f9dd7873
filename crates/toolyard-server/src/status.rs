//! How the gateway is: `GET /api/v1/status`.
//!
//! The first members are those of the status of a `ToolRegistry`, for all registries of the manifest together. Behind
//! them stands what only a gateway can tell.

use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;
use tokio::sync::watch;
use toolyard_core::registry::{Entry, Kind};
use toolyard_core::timestamp::iso_8601;
use toolyard_core::{Gateway, Phase, Registry};
use toolyard_process::{ProcessInfo, Processes};

use crate::fleet::{Origin, Standing};
use crate::keys::Visitor;

/// Knows everything that a status says.
pub struct Observatory {
    /// What can be called.
    pub gateway: Arc<Gateway>,
    /// How the handlers are.
    pub standings: watch::Receiver<Arc<[Standing]>>,
    /// Their programs.
    pub processes: Processes,
    /// What came of the last edit of the manifest.
    pub last_edit: watch::Receiver<Option<LastEdit>>,
}

/// What came of an edit of the manifest.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LastEdit {
    /// When it was.
    pub time: String,
    /// Whether it was applied. If not, nothing has changed.
    pub applied: bool,
    /// What has changed, or why nothing has.
    pub message: String,
}

impl LastEdit {
    /// An edit that has just been applied, or refused.
    #[must_use]
    pub fn now(applied: bool, message: String) -> Self {
        Self { time: iso_8601(SystemTime::now()), applied, message }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    phase: Overall,
    discovered_tools_count: usize,
    available_tools_count: usize,
    discovered_tools: Vec<Tool>,
    conditions: Vec<Condition>,
    handlers: Vec<Handler>,
    list: List,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_edit: Option<LastEdit>,
    version: &'static str,
}

/// The phase of a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum Overall {
    /// Some handlers have not answered yet, and none has failed.
    Pending,
    /// All handlers are ready.
    Ready,
    /// Some are not.
    Degraded,
    /// None is.
    Failed,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    handler_name: Arc<str>,
    name: Arc<str>,
    status: Availability,
    endpoint: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum Availability {
    Available,
    Unavailable,
    Unknown,
}

/// One of Kubernetes' conditions.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    r#type: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Handler {
    name: String,
    registry: String,
    origin: &'static str,
    r#type: &'static str,
    endpoint: Arc<str>,
    phase: &'static str,
    since: String,
    tools: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<LastError>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    processes: Vec<Process>,
}

#[derive(Debug, Serialize)]
struct LastError {
    time: String,
    message: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Process {
    pid: u32,
    since: String,
    restarts: u64,
    processes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_bytes: Option<u64>,
}

/// What a client has to read before it can do anything.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct List {
    tools: usize,
    characters: usize,
    estimated_tokens: usize,
}

impl Observatory {
    /// What is seen of a gateway.
    #[must_use]
    pub fn new(
        gateway: &Arc<Gateway>,
        standings: watch::Receiver<Arc<[Standing]>>,
        processes: &Processes,
        last_edit: watch::Receiver<Option<LastEdit>>,
    ) -> Self {
        Self { gateway: gateway.clone(), standings, processes: processes.clone(), last_edit }
    }

    /// The status now, as JSON, of what exists for a visitor. It reads the system's tables of processes, which may take a
    /// moment.
    #[must_use]
    pub fn status(&self, visitor: &Visitor) -> String {
        let registry = Registry::seen_by(self.gateway.registry(), &visitor.caller());
        let standings = self.standings_for(visitor, &registry);
        let (handlers, discovered_tools) = self.seen(&registry, &standings);
        let available = discovered_tools.iter().filter(|tool| tool.status == Availability::Available).count();
        let shown = registry.shown(Kind::Tools);
        let status = Status {
            phase: Overall::of(&standings),
            discovered_tools_count: discovered_tools.len(),
            available_tools_count: available,
            conditions: conditions(&standings, discovered_tools.len()),
            discovered_tools,
            handlers,
            list: List {
                tools: shown.entries().len(),
                characters: shown.json().as_text().chars().count(),
                estimated_tokens: shown.tokens(),
            },
            last_edit: self.last_edit.borrow().clone().filter(|_| visitor.access.admin),
            version: env!("CARGO_PKG_VERSION"),
        };
        // Nothing in it can fail to be written.
        serde_json::to_string(&status).unwrap_or_default()
    }

    /// The handlers, as the status has them, as JSON.
    #[must_use]
    pub fn handlers(&self, visitor: &Visitor) -> String {
        let registry = Registry::seen_by(self.gateway.registry(), &visitor.caller());
        let (handlers, _) = self.seen(&registry, &self.standings_for(visitor, &registry));
        serde_json::to_string(&serde_json::json!({"handlers": handlers})).unwrap_or_default()
    }

    /// Of which type a handler is.
    #[must_use]
    pub fn kind_of(&self, name: &str) -> Option<String> {
        let standings = self.standings.borrow();
        let standing = standings.iter().find(|standing| standing.declared.name.as_str() == name)?;
        Some(standing.declared.kind.name().to_owned())
    }

    /// The handlers that exist for a visitor: operators see all of them, others those that have something for them.
    fn standings_for(&self, visitor: &Visitor, registry: &Registry) -> Vec<Standing> {
        let has_something = |standing: &Standing| {
            registry.phases().iter().any(|(handler, _)| **handler == *standing.declared.name.as_str())
        };
        let standings = self.standings.borrow().clone();
        let seen = standings.iter().filter(|standing| visitor.access.admin || has_something(standing));
        seen.cloned().collect()
    }

    fn seen(&self, registry: &Registry, standings: &[Standing]) -> (Vec<Handler>, Vec<Tool>) {
        let mut running = self.processes.list();
        let mut discovered_tools = Vec::new();
        let mut handlers = Vec::new();
        let mut known: Vec<_> = registry.known(Kind::Tools).collect();
        known.sort_by(|one, other| one.name.cmp(&other.name));
        for standing in standings.iter() {
            let name = standing.declared.name.as_str();
            let endpoint: Arc<str> = standing.declared.endpoint().into();
            let own = known.iter().filter(|entry| &*entry.handler.name == name);
            let before = discovered_tools.len();
            discovered_tools.extend(own.map(|entry| Tool::new(entry, standing, &endpoint)));
            let processes = running.extract_if(.., |process| &*process.name == name).map(Process::from);
            handlers.push(Handler {
                tools: discovered_tools.len() - before,
                processes: processes.collect(),
                ..Handler::new(standing, endpoint)
            });
        }
        (handlers, discovered_tools)
    }
}

/// How many handlers are ready, and how many have not answered yet.
fn count(standings: &[Standing]) -> (usize, usize) {
    let of = |phase: &Phase| standings.iter().filter(|standing| standing.phase == *phase).count();
    (of(&Phase::Ready), of(&Phase::Connecting))
}

impl Overall {
    fn of(standings: &[Standing]) -> Self {
        match count(standings) {
            (ready, _) if ready == standings.len() => Self::Ready,
            (ready, waiting) if ready + waiting == standings.len() => Self::Pending,
            (0, 0) => Self::Failed,
            _ => Self::Degraded,
        }
    }
}

/// Those of the contract, then those of its own software.
fn conditions(standings: &[Standing], tools: usize) -> Vec<Condition> {
    let ready = count(standings).0;
    let handlers = format!("{ready} of {} handlers are ready", standings.len());
    let condition = |r#type, is_true, [yes, no]: [&'static str; 2], message: &str| Condition {
        r#type,
        status: if is_true { "True" } else { "False" },
        reason: if is_true { yes } else { no },
        message: message.to_owned(),
    };
    let found = format!("{tools} tools are known");
    vec![
        condition("HandlersAvailable", ready > 0, ["HandlerReady", "NoHandlerReady"], &handlers),
        condition("AllHandlersReady", ready == standings.len(), ["AllReady", "SomeNotReady"], &handlers),
        condition("ToolsDiscovered", tools > 0, ["ToolsFound", "NoTools"], &found),
        // A manifest that is not valid is not served.
        condition("HandlersValid", true, ["Valid", "Invalid"], "the manifest is valid"),
    ]
}

impl Tool {
    fn new(entry: &Entry, standing: &Standing, endpoint: &Arc<str>) -> Self {
        let (status, error) = match &standing.phase {
            Phase::Ready => (Availability::Available, None),
            Phase::Connecting => (Availability::Unknown, None),
            Phase::Unavailable { reason } => (Availability::Unavailable, Some(reason.clone())),
        };
        let (handler_name, name) = (entry.handler.name.clone(), entry.name.clone());
        Self { handler_name, name, status, endpoint: endpoint.clone(), error }
    }
}

impl Handler {
    fn new(standing: &Standing, endpoint: Arc<str>) -> Self {
        let last_error = standing.last_error.as_ref();
        Self {
            name: standing.declared.name.as_str().to_owned(),
            registry: standing.declared.registry.clone(),
            origin: match standing.origin {
                Origin::Manifest => "manifest",
                Origin::RunTime => "runtime",
            },
            r#type: standing.declared.kind.name(),
            endpoint,
            phase: match standing.phase {
                Phase::Connecting => "Pending",
                Phase::Ready => "Ready",
                Phase::Unavailable { .. } => "Unavailable",
            },
            since: iso_8601(standing.since),
            tools: 0,
            protocol: standing.protocol.clone(),
            last_error: last_error
                .map(|(message, time)| LastError { time: iso_8601(*time), message: message.clone() }),
            processes: Vec::new(),
        }
    }
}

impl From<ProcessInfo> for Process {
    fn from(process: ProcessInfo) -> Self {
        let ProcessInfo { pid, since, restarts, processes, memory_bytes, .. } = process;
        Self { pid, since: iso_8601(since), restarts, processes, memory_bytes }
    }
}
