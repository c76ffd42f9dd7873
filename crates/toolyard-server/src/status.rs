//! The status report: `GET /api/v1/status`.
//!
//! The first members are those of a `ToolRegistry`'s status, for all registries of the manifest together. The members
//! after them are specific to the gateway.

mod last_edit;
mod listeners;
mod notices;
mod overall_phase;

use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;
use tokio::sync::watch;
use toolyard_agent::search::{EmbeddingReport, ToolEmbeddings};
use toolyard_core::backend::Installation;
use toolyard_core::registry::{EntryKind, NoticeReason, RegistryEntry};
use toolyard_core::timestamp::iso_8601;
use toolyard_core::{BackendPhase, FailureCause, Gateway, Registry};
use toolyard_manifest::{FunctionSource, HandlerKind};
use toolyard_process::{ProcessInfo, ProcessTable};

use crate::audit::AuditQueue;
use crate::cluster_members::ClusterGateway;
use crate::dropped_notices::{dropped_notices, skipped_messages};
use crate::fleet::definitions::DefinitionDigest;
use crate::fleet::{DefinitionChange, HandlerOrigin, HandlerStatus, ServedDefinition};
use crate::keys::AuthenticatedCaller;
use crate::listeners::ListeningAddresses;
use crate::manifest_edits::ServedManifest;

pub use self::last_edit::LastEdit;
use self::listeners::ListenerStatus;
use self::notices::NoticeReport;
use self::overall_phase::{OverallPhase, count, is_pending};

/// Builds status reports.
pub struct StatusReporter {
    /// The gateway and its registry.
    pub gateway: Arc<Gateway>,
    /// Status of each handler.
    pub statuses: watch::Receiver<Arc<[HandlerStatus]>>,
    /// The programs of the handlers.
    pub processes: ProcessTable,
    /// The manifest that is served.
    pub manifest: watch::Receiver<ServedManifest>,
    /// The running gateways of the cluster.
    pub cluster_members: watch::Receiver<Arc<[ClusterGateway]>>,
    /// Location of the store, without its password.
    pub store_location: Option<Arc<str>>,
    /// The audit trail, whose lost records are counted.
    pub(crate) audit: Arc<AuditQueue>,
    /// Outcome of the last edit of the manifest.
    pub last_edit: watch::Receiver<Option<LastEdit>>,
    /// Embeddings of tools for the search, if an endpoint is configured.
    pub embeddings: Option<Arc<ToolEmbeddings>>,
    /// The bound addresses.
    pub(crate) listening: ListeningAddresses,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct GatewayStatus {
    phase: OverallPhase,
    discovered_tools_count: usize,
    available_tools_count: usize,
    discovered_tools: Vec<ToolStatus>,
    conditions: Vec<StatusCondition>,
    handlers: Vec<HandlerStatusReport>,
    list: ToolListCost,
    /// The listening addresses, for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    listeners: Option<Vec<ListenerStatus>>,
    /// Digest of the manifest's texts, for callers that no scope limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    manifest_digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_edit: Option<LastEdit>,
    /// Location of the store, for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<Arc<str>>,
    /// Number of lost records of the audit trail, for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_audit_records: Option<u64>,
    /// The running gateways of the cluster, for operators.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    cluster: Arc<[ClusterGateway]>,
    version: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolStatus {
    handler_name: Arc<str>,
    name: Arc<str>,
    status: ToolAvailability,
    endpoint: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum ToolAvailability {
    Available,
    Unavailable,
    Unknown,
}

/// A Kubernetes condition.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusCondition {
    r#type: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HandlerStatusReport {
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
    installation: Option<InstallationReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<LastError>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    processes: Vec<ProcessStatus>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<ToolChangeReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unchecked: Vec<UncheckedToolReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<NoticeReport>,
    /// Items that are published with repairs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repaired: Vec<NoticeReport>,
    /// Number of tools with arguments that are published under other names.
    #[serde(skip_serializing_if = "is_zero")]
    tools_with_renamed_arguments: usize,
    /// Number of tools with arguments whose names the interfaces of models refuse.
    #[serde(skip_serializing_if = "is_zero")]
    tools_with_illegal_arguments: usize,
    /// Number of notifications of the server that belonged to no client for certain.
    #[serde(skip_serializing_if = "is_none_dropped")]
    dropped_notifications: u64,
    /// Number of lines and events of the server that are not messages.
    #[serde(skip_serializing_if = "is_none_dropped")]
    skipped_messages: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none_dropped(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A tool whose arguments are not validated.
#[derive(Debug, Serialize)]
struct UncheckedToolReport {
    tool: Arc<str>,
    reason: String,
}

/// A tool whose definition differs from the accepted one.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolChangeReport {
    tool: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_digest: Option<DefinitionDigest>,
    new_digest: DefinitionDigest,
    time: String,
    served: &'static str,
}

#[derive(Debug, Serialize)]
struct LastError {
    time: String,
    code: &'static str,
    message: String,
    /// The last lines that the program of the server has written to its standard error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    output: Vec<String>,
}

impl LastError {
    fn new(cause: FailureCause, time: SystemTime) -> Self {
        let FailureCause { code, message, output } = cause;
        Self { time: iso_8601(time), code: code.row().wire, message, output }
    }
}

/// The installation of a server's program.
#[derive(Debug, Serialize)]
struct InstallationReport {
    launcher: Arc<str>,
    /// True while it waits for other installations.
    waiting: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<String>,
}

impl From<Installation> for InstallationReport {
    fn from(installation: Installation) -> Self {
        let Installation { launcher, is_waiting, line } = installation;
        Self { launcher, waiting: is_waiting, line }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProcessStatus {
    pid: u32,
    since: String,
    restarts: u64,
    processes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_bytes: Option<u64>,
}

/// Size of the tool list that a client reads.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolListCost {
    tools: usize,
    characters: usize,
    estimated_tokens: usize,
}

impl StatusReporter {
    /// Returns the status visible to a caller, as JSON. Reads the system's process tables and checks new schemas, which
    /// may block for a moment.
    #[must_use]
    pub fn status(&self, caller: &AuthenticatedCaller) -> String {
        // Before the handlers, so that it is never that of a later manifest.
        let manifest_digest = sees_all(caller).then(|| self.manifest.borrow().digest.clone());
        let registry = Registry::view_for(self.gateway.registry(), &caller.to_caller());
        let statuses = self.visible_statuses(caller, &registry);
        let (handlers, discovered_tools) = self.handler_reports(&registry, &statuses);
        let available =
            discovered_tools.iter().filter(|tool| tool.status == ToolAvailability::Available).count();
        let advertised = registry.advertised(EntryKind::Tools);
        let status = GatewayStatus {
            phase: OverallPhase::of(&statuses),
            discovered_tools_count: discovered_tools.len(),
            available_tools_count: available,
            conditions: self.conditions(caller, &statuses, discovered_tools.len()),
            discovered_tools,
            handlers,
            list: ToolListCost {
                tools: advertised.entries().len(),
                characters: advertised.json().as_text().chars().count(),
                estimated_tokens: advertised.tokens(),
            },
            listeners: caller.access.admin.then(|| ListenerStatus::of(&self.listening)),
            manifest_digest,
            last_edit: self.last_edit.borrow().clone().filter(|_| sees_all(caller)),
            store: self.store_location.clone().filter(|_| caller.access.admin),
            lost_audit_records: Some(self.audit.lost()).filter(|lost| caller.access.admin && *lost > 0),
            cluster: if caller.access.admin { self.cluster_members.borrow().clone() } else { Arc::from([]) },
            version: env!("CARGO_PKG_VERSION"),
        };
        // Serializing these types cannot fail.
        serde_json::to_string(&status).unwrap_or_default()
    }

    /// Returns the handlers of the status, as JSON.
    #[must_use]
    pub fn handlers(&self, caller: &AuthenticatedCaller) -> String {
        let registry = Registry::view_for(self.gateway.registry(), &caller.to_caller());
        let (handlers, _) = self.handler_reports(&registry, &self.visible_statuses(caller, &registry));
        serde_json::to_string(&serde_json::json!({"handlers": handlers})).unwrap_or_default()
    }

    /// Returns the conditions; that of the embeddings for operators only, because it counts the tools of all handlers.
    fn conditions(
        &self,
        caller: &AuthenticatedCaller,
        statuses: &[HandlerStatus],
        tools: usize,
    ) -> Vec<StatusCondition> {
        let embeddings = self.embeddings.as_ref().filter(|_| caller.access.admin);
        let mut conditions = conditions(statuses, tools);
        conditions.extend(embeddings.map(|embeddings| embedding_condition(&embeddings.report())));
        conditions
    }

    /// Returns the names of the handlers of a published function.
    #[must_use]
    pub fn handlers_of_function(&self, id: &str) -> Vec<String> {
        let is_published = |handler: &&HandlerStatus| match &handler.declared.kind {
            HandlerKind::Function(function) => {
                matches!(&function.source, FunctionSource::Published { id: published, .. } if published == id)
            }
            _ => false,
        };
        let statuses = self.statuses.borrow();
        statuses.iter().filter(is_published).map(|handler| handler.declared.name.to_string()).collect()
    }

    /// Returns the type of a handler.
    #[must_use]
    pub fn kind_of(&self, name: &str) -> Option<String> {
        let statuses = self.statuses.borrow();
        let handler = statuses.iter().find(|handler| handler.declared.name.as_str() == name)?;
        Some(handler.declared.kind.name().to_owned())
    }

    /// Returns the handlers visible to a caller: all for operators and for callers without a key, otherwise those with
    /// something callable.
    fn visible_statuses(&self, caller: &AuthenticatedCaller, registry: &Registry) -> Vec<HandlerStatus> {
        let has_something = |standing: &HandlerStatus| {
            registry.phases().iter().any(|(handler, _)| **handler == *standing.declared.name.as_str())
        };
        let statuses = self.statuses.borrow().clone();
        let handler_reports = statuses.iter().filter(|standing| sees_all(caller) || has_something(standing));
        // Changed tools are reported to operators only: others may not be allowed to see all of them.
        let changes = |standing: &HandlerStatus| match caller.access.admin {
            true => standing.changes.clone(),
            false => Arc::default(),
        };
        handler_reports
            .map(|standing| {
                let mut visible = standing.clone();
                visible.changes = changes(standing);
                visible
            })
            .collect()
    }

    fn handler_reports(
        &self,
        registry: &Registry,
        statuses: &[HandlerStatus],
    ) -> (Vec<HandlerStatusReport>, Vec<ToolStatus>) {
        let mut running = self.processes.list();
        let mut discovered_tools = Vec::new();
        let mut handlers = Vec::new();
        let mut tools: Vec<_> = registry.callable_entries(EntryKind::Tools).collect();
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        let (dropped, skipped) = (dropped_notices(registry), skipped_messages(registry));
        for standing in statuses.iter() {
            let name = standing.declared.name.as_str();
            let endpoint = standing.service_url.clone();
            let endpoint = endpoint.unwrap_or_else(|| standing.declared.endpoint().into());
            let own = || tools.iter().filter(|entry| &*entry.handler.name == name);
            let before = discovered_tools.len();
            discovered_tools.extend(own().map(|entry| ToolStatus::new(entry, standing, &endpoint)));
            let processes = running.extract_if(.., |process| &*process.name == name).map(ProcessStatus::from);
            handlers.push(HandlerStatusReport {
                tools: discovered_tools.len() - before,
                processes: processes.collect(),
                unchecked: own().filter_map(|entry| UncheckedToolReport::of(entry)).collect(),
                left_out: NoticeReport::all(registry, name, |what| match what {
                    NoticeReason::LeftOut(reason) => Some(reason),
                    _ => None,
                }),
                repaired: NoticeReport::all(registry, name, |what| match what {
                    NoticeReason::Repaired(repairs) => Some(repairs),
                    _ => None,
                }),
                tools_with_renamed_arguments: own().filter(|entry| has_renamed_arguments(entry)).count(),
                tools_with_illegal_arguments: own().filter(|entry| has_illegal_arguments(entry)).count(),
                dropped_notifications: dropped.get(name).copied().unwrap_or_default(),
                skipped_messages: skipped.get(name).copied().unwrap_or_default(),
                ..HandlerStatusReport::new(standing, endpoint)
            });
        }
        (handlers, discovered_tools)
    }
}

/// True if all handlers exist for a caller: an operator, or one without a key, which no scope limits.
fn sees_all(caller: &AuthenticatedCaller) -> bool {
    caller.access.admin || caller.grant.is_none()
}

/// Returns the conditions of the specification, then those of its reference implementation.
fn conditions(statuses: &[HandlerStatus], tools: usize) -> Vec<StatusCondition> {
    let ready = count(statuses).0;
    let handlers = format!("{ready} of {} handlers are ready", statuses.len());
    let condition = |r#type, is_true, [yes, no]: [&'static str; 2], message: &str| StatusCondition {
        r#type,
        status: if is_true { "True" } else { "False" },
        reason: if is_true { yes } else { no },
        message: message.to_owned(),
    };
    let discovered = format!("{tools} tools are known");
    vec![
        condition("HandlersAvailable", ready > 0, ["HandlerReady", "NoHandlerReady"], &handlers),
        condition("AllHandlersReady", ready == statuses.len(), ["AllReady", "SomeNotReady"], &handlers),
        condition("ToolsDiscovered", tools > 0, ["ToolsFound", "NoTools"], &discovered),
        // Only valid manifests are served.
        condition("HandlersValid", true, ["Valid", "Invalid"], "the manifest is valid"),
    ]
}

/// Returns the condition of the embeddings, which is true while searches use those of all tools.
fn embedding_condition(report: &EmbeddingReport) -> StatusCondition {
    let EmbeddingReport { tools, vectors, tool_error, query_error } = report;
    let counts = format!("{vectors} of {tools} tools have an embedding");
    let (status, reason, message) = match tool_error.as_ref().or(query_error.as_ref()) {
        Some(error) => ("False", "EndpointFailed", format!("{counts}; {error}")),
        None if vectors < tools => ("False", "Incomplete", counts),
        None => ("True", "Complete", counts),
    };
    StatusCondition { r#type: "SearchEmbeddings", status, reason, message }
}

impl ToolStatus {
    fn new(entry: &RegistryEntry, standing: &HandlerStatus, endpoint: &Arc<str>) -> Self {
        let (status, error) = match &standing.phase {
            BackendPhase::Ready => (ToolAvailability::Available, None),
            BackendPhase::Connecting => (ToolAvailability::Unknown, None),
            BackendPhase::Unavailable { reason } => {
                (ToolAvailability::Unavailable, Some(reason.message.clone()))
            }
        };
        let (handler_name, name) = (entry.handler.name.clone(), entry.name.clone());
        Self { handler_name, name, status, endpoint: endpoint.clone(), error }
    }
}

fn has_renamed_arguments(entry: &RegistryEntry) -> bool {
    entry.additions.as_ref().is_some_and(|additions| additions.renamed() > 0)
}

fn has_illegal_arguments(entry: &RegistryEntry) -> bool {
    entry.tool.as_ref().is_some_and(|tool| tool.illegal_arguments() > 0)
}

impl UncheckedToolReport {
    /// Returns the tool of an entry if its arguments cannot be validated.
    fn of(entry: &RegistryEntry) -> Option<Self> {
        let reason = entry.tool.as_ref()?.unchecked()?;
        Some(Self { tool: entry.name.clone(), reason })
    }
}

impl HandlerStatusReport {
    fn new(standing: &HandlerStatus, endpoint: Arc<str>) -> Self {
        let installation = standing.installation();
        Self {
            name: standing.declared.name.as_str().to_owned(),
            registry: standing.declared.registry.clone(),
            origin: match standing.origin {
                HandlerOrigin::Manifest => "manifest",
                HandlerOrigin::RunTime => "runtime",
            },
            r#type: standing.declared.kind.name(),
            endpoint,
            phase: match standing.phase {
                BackendPhase::Connecting if installation.is_some() => "Installing",
                ref phase if is_pending(phase) => "Pending",
                BackendPhase::Connecting => "Pending",
                BackendPhase::Ready => "Ready",
                BackendPhase::Unavailable { .. } => "Unavailable",
            },
            since: iso_8601(standing.since),
            tools: 0,
            protocol: standing.protocol.clone(),
            installation: installation.map(InstallationReport::from),
            last_error: standing.last_failure().map(|(cause, time)| LastError::new(cause, time)),
            processes: Vec::new(),
            changes: standing.changes.iter().map(ToolChangeReport::from).collect(),
            unchecked: Vec::new(),
            left_out: Vec::new(),
            repaired: Vec::new(),
            tools_with_renamed_arguments: 0,
            tools_with_illegal_arguments: 0,
            dropped_notifications: 0,
            skipped_messages: 0,
        }
    }
}

impl From<&DefinitionChange> for ToolChangeReport {
    fn from(change: &DefinitionChange) -> Self {
        let DefinitionChange { tool, old, new, time, served } = change.clone();
        let served = match served {
            ServedDefinition::Old => "old",
            ServedDefinition::New => "new",
            ServedDefinition::Nothing => "nothing",
        };
        Self { tool, old_digest: old, new_digest: new, time: iso_8601(time), served }
    }
}

impl From<ProcessInfo> for ProcessStatus {
    fn from(process: ProcessInfo) -> Self {
        let ProcessInfo { pid, since, restarts, processes, memory_bytes, .. } = process;
        Self { pid, since: iso_8601(since), restarts, processes, memory_bytes }
    }
}
