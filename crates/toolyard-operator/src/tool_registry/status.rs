//! The status of a registry, as a pure function of what was observed.

use std::collections::HashMap;

use super::report::{GatewayReport, ReportedHandler};
use super::resolution::ResolvedHandler;
use super::validation::RegistryProblem;
use super::{RegistryCondition, RegistryTool, ToolRegistryStatus};
use crate::text::shortened;

/// Maximum length of a message in bytes.
const MESSAGE_BYTES: usize = 1000;

/// The state of a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GatewayState {
    /// It is being started or read; the reason why there is no report.
    Starting(String),
    /// It cannot be started; the reason.
    Failed(String),
    /// Its report.
    Reported(GatewayReport),
    /// Its report, while it serves the manifest before the last edit.
    Outdated(GatewayReport),
}

impl GatewayState {
    /// Returns the state of a gateway with this report that is to serve the manifest with this digest.
    #[must_use]
    pub fn of_report(report: GatewayReport, manifest_digest: &str) -> Self {
        match &report.manifest_digest {
            Some(served) if served != manifest_digest => Self::Outdated(report),
            _ => Self::Reported(report),
        }
    }

    /// Returns the report, if there is one.
    const fn report(&self) -> Option<&GatewayReport> {
        match self {
            Self::Reported(report) | Self::Outdated(report) => Some(report),
            Self::Starting(_) | Self::Failed(_) => None,
        }
    }

    /// Returns the reason why the gateway refuses a manifest.
    fn refusal(&self) -> Option<&str> {
        let edit = self.report()?.last_edit.as_ref()?;
        (!edit.applied).then_some(&*edit.message)
    }
}

/// Observed state that a status is computed from.
#[derive(Debug, Clone)]
pub struct Observation<'a> {
    /// Generation of the resource.
    pub generation: Option<i64>,
    /// Problems of the resource.
    pub problems: &'a [RegistryProblem],
    /// The resolved handlers, if the resource is valid.
    pub handlers: &'a [ResolvedHandler],
    /// State of the gateway.
    pub gateway: &'a GatewayState,
    /// URL of the gateway for MCP clients.
    pub endpoint: Option<String>,
}

/// Limits of the list of tools.
#[derive(Debug, Clone, Copy)]
pub struct ListBounds {
    /// Maximum number of tools.
    pub tools: usize,
    /// Maximum number of bytes.
    pub bytes: usize,
}

/// The state of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HandlerState {
    Ready,
    Pending,
    Unavailable,
}

/// Returns the status of a registry. `previous` is the current status, whose times are kept while nothing changes.
#[must_use]
pub fn status(
    observed: &Observation<'_>,
    previous: Option<&ToolRegistryStatus>,
    now: &str,
    bounds: ListBounds,
) -> ToolRegistryStatus {
    let empty = GatewayReport::default();
    let report = observed.gateway.report().unwrap_or(&empty);
    let reported: HashMap<_, _> =
        report.handlers.iter().map(|handler| (handler.name.as_str(), handler)).collect();
    let handlers: Vec<_> =
        observed.handlers.iter().map(|handler| handler_state(handler, &reported, observed.gateway)).collect();
    let tools = tools(observed.handlers, report);
    let available = tools.iter().filter(|tool| tool.status == "Available").count();
    let count = tools.len();
    let (discovered_tools, left_out) = bounded(tools, bounds);
    let mut conditions = conditions(observed, &handlers, count, left_out);
    for condition in &mut conditions {
        condition.observed_generation = observed.generation;
        let before = previous.and_then(|status| {
            let mut conditions = status.conditions.iter();
            conditions.find(|old| old.r#type == condition.r#type && old.status == condition.status)
        });
        condition.last_transition_time =
            before.map_or_else(|| now.to_owned(), |before| before.last_transition_time.clone());
    }
    let last_discovery_time = match previous {
        Some(previous) if previous.discovered_tools == discovered_tools => {
            previous.last_discovery_time.clone()
        }
        _ if discovered_tools.is_empty() => None,
        _ => Some(now.to_owned()),
    };
    ToolRegistryStatus {
        observed_generation: observed.generation,
        phase: phase(observed, &handlers).to_owned(),
        endpoint: observed.endpoint.clone(),
        discovered_tools_count: count,
        available_tools_count: available,
        last_discovery_time,
        discovered_tools,
        conditions,
    }
}

fn phase(observed: &Observation<'_>, handlers: &[(HandlerState, String)]) -> &'static str {
    let count = |state| handlers.iter().filter(|(other, _)| *other == state).count();
    let (ready, pending) = (count(HandlerState::Ready), count(HandlerState::Pending));
    match observed.gateway {
        _ if !observed.problems.is_empty() => "Failed",
        GatewayState::Failed(_) => "Failed",
        GatewayState::Outdated(_) if observed.gateway.refusal().is_some() => "Failed",
        GatewayState::Starting(_) | GatewayState::Outdated(_) => "Pending",
        GatewayState::Reported(_) if ready == handlers.len() => "Ready",
        GatewayState::Reported(_) if ready + pending == handlers.len() => "Pending",
        GatewayState::Reported(_) if ready + pending == 0 => "Failed",
        GatewayState::Reported(_) => "Degraded",
    }
}

/// Returns the state of a handler of the resource, and the reason if it is not ready.
fn handler_state(
    handler: &ResolvedHandler,
    reported: &HashMap<&str, &ReportedHandler>,
    gateway: &GatewayState,
) -> (HandlerState, String) {
    if handler.served.is_empty() {
        let reason = match &handler.notes[..] {
            [] => "no Service matches the selector".to_owned(),
            notes => notes.join("; "),
        };
        return (HandlerState::Unavailable, reason);
    }
    if gateway.report().is_none() {
        return (HandlerState::Pending, String::new());
    }
    let mut worst = (HandlerState::Ready, String::new());
    for name in &handler.served {
        let state = match reported.get(name.as_str()) {
            None => (HandlerState::Pending, "the gateway has not read it yet".to_owned()),
            Some(handler) if handler.phase == "Ready" => continue,
            Some(handler) if handler.phase == "Unavailable" => {
                let error = handler.last_error.as_ref().map(|error| error.message.clone());
                (HandlerState::Unavailable, error.unwrap_or_else(|| "unavailable".to_owned()))
            }
            Some(_) => (HandlerState::Pending, "connecting".to_owned()),
        };
        if worst.0 != HandlerState::Unavailable {
            worst = state;
        }
    }
    if worst.0 == HandlerState::Ready {
        // Services without a tool are mentioned only.
        worst.1 = handler.notes.join("; ");
    }
    worst
}

/// Returns the tools of the handlers, under the names of the resource. A handler without Services is one unavailable tool.
fn tools(handlers: &[ResolvedHandler], report: &GatewayReport) -> Vec<RegistryTool> {
    let mut reported: HashMap<&str, Vec<_>> = HashMap::new();
    for tool in &report.discovered_tools {
        reported.entry(&tool.handler_name).or_default().push(tool);
    }
    let mut tools = Vec::new();
    for handler in handlers {
        for tool in handler.served.iter().filter_map(|name| reported.get(name.as_str())).flatten() {
            tools.push(RegistryTool {
                handler_name: handler.name.clone(),
                name: tool.name.clone(),
                status: tool.status.clone(),
                endpoint: tool.endpoint.clone(),
                error: tool.error.as_deref().map(|error| shortened(error, MESSAGE_BYTES)),
            });
        }
        if let (true, Some(selector)) = (handler.served.is_empty(), &handler.selector) {
            tools.push(RegistryTool {
                handler_name: handler.name.clone(),
                name: handler.name.clone(),
                status: "Unavailable".to_owned(),
                endpoint: selector.clone(),
                error: Some("no Service matches the selector".to_owned()),
            });
        }
    }
    tools
}

/// Cuts the list of tools. Returns the number of tools that were left out.
fn bounded(mut tools: Vec<RegistryTool>, bounds: ListBounds) -> (Vec<RegistryTool>, usize) {
    let all = tools.len();
    let mut bytes = 0;
    let size = |tool: &RegistryTool| serde_json::to_string(tool).map_or(0, |text| text.len() + 1);
    let fitting = tools.iter().take(bounds.tools).take_while(|tool| {
        bytes += size(tool);
        bytes <= bounds.bytes
    });
    let fitting = fitting.count();
    tools.truncate(fitting);
    (tools, all - fitting)
}

/// Returns the conditions of the specification, then those of its reference implementation.
fn conditions(
    observed: &Observation<'_>,
    handlers: &[(HandlerState, String)],
    tools: usize,
    left_out: usize,
) -> Vec<RegistryCondition> {
    let ready = handlers.iter().filter(|(state, _)| *state == HandlerState::Ready).count();
    let total = handlers.len();
    let mut summary = match observed.gateway {
        GatewayState::Starting(reason) | GatewayState::Failed(reason) => reason.clone(),
        GatewayState::Reported(_) => format!("{ready} of {total} handlers are ready"),
        GatewayState::Outdated(_) => {
            format!(
                "the gateway serves the manifest before the last edit, with {ready} of {total} handlers ready"
            )
        }
    };
    let names = observed.handlers.iter().map(|handler| &handler.name);
    for (name, (_, reason)) in names.zip(handlers).filter(|(_, (_, reason))| !reason.is_empty()) {
        summary.push_str(&format!("; {name}: {reason}"));
    }
    let mut discovered = match observed.gateway {
        GatewayState::Outdated(_) => {
            format!("{tools} tools are known from the manifest before the last edit")
        }
        _ => format!("{tools} tools are known"),
    };
    if left_out > 0 {
        discovered = format!("{discovered}; the list has the first {}", tools - left_out);
    }
    let problems: Vec<_> = observed.problems.iter().map(ToString::to_string).collect();
    let (is_valid, validity) = match (problems.is_empty(), observed.gateway.refusal()) {
        (false, _) => (false, problems.join("; ")),
        (true, Some(refusal)) => (false, format!("the gateway refuses the manifest: {refusal}")),
        (true, None) => (true, "the resource is valid".to_owned()),
    };
    let is_current = matches!(observed.gateway, GatewayState::Reported(_));
    let not_all = match observed.gateway {
        GatewayState::Outdated(_) => "ManifestNotServed",
        _ => "SomeNotReady",
    };
    vec![
        condition("HandlersAvailable", ready > 0, ["HandlerReady", "NoHandlerReady"], &summary),
        condition(
            "AllHandlersReady",
            ready == total && observed.problems.is_empty() && is_current,
            ["AllReady", not_all],
            &summary,
        ),
        condition("ToolsDiscovered", tools > 0, ["ToolsFound", "NoTools"], &discovered),
        condition("HandlersValid", is_valid, ["Valid", "Invalid"], &validity),
    ]
}

fn condition(kind: &str, is_true: bool, [yes, no]: [&str; 2], text: &str) -> RegistryCondition {
    RegistryCondition {
        r#type: kind.to_owned(),
        status: if is_true { "True" } else { "False" }.to_owned(),
        reason: if is_true { yes } else { no }.to_owned(),
        message: shortened(text, MESSAGE_BYTES),
        last_transition_time: String::new(),
        observed_generation: None,
    }
}
