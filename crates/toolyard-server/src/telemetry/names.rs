//! Names of every instrument, span and attribute. A test compares the tables in `docs/telemetry.md` with this file.

use std::borrow::Cow;

/// An instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricInstrument {
    /// Name of the instrument, after the prefix if it is an own one.
    pub name: &'static str,
    /// True if the name is an own one and begins with the configured prefix.
    pub is_own: bool,
    /// Kind of the instrument.
    pub kind: MetricKind,
    /// Unit, in UCUM notation.
    pub unit: &'static str,
    /// Description of the measurement.
    pub description: &'static str,
    /// Attributes of the values.
    pub attributes: &'static [&'static str],
}

/// Kind of an instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// A monotonic sum.
    Counter,
    /// A current value.
    Gauge,
    /// A distribution.
    Histogram,
}

impl MetricInstrument {
    const fn own(
        name: &'static str,
        kind: MetricKind,
        unit: &'static str,
        attributes: &'static [&'static str],
    ) -> Self {
        Self { name, is_own: true, kind, unit, description: "", attributes }
    }

    const fn conventional(name: &'static str, attributes: &'static [&'static str]) -> Self {
        Self { name, is_own: false, kind: MetricKind::Histogram, unit: "s", description: "", attributes }
    }

    const fn with_description(self, description: &'static str) -> Self {
        Self { description, ..self }
    }

    /// Full name of the instrument.
    #[must_use]
    pub fn full_name(&self, prefix: &str) -> Cow<'static, str> {
        match self.is_own {
            true => format!("{prefix}.{}", self.name).into(),
            false => self.name.into(),
        }
    }
}

/// Duration of calls, as in the specification.
pub const INVOKE_DURATION: MetricInstrument =
    MetricInstrument::own("tool.invoke.duration", MetricKind::Histogram, "ms", &[TOOL, STATUS])
        .with_description("Duration of a tool call, including waiting");

/// Number of calls, as in the specification.
pub const INVOCATIONS: MetricInstrument =
    MetricInstrument::own("tool.invocations", MetricKind::Counter, "{invocation}", &[TOOL, STATUS])
        .with_description("Tool calls");

/// Number of active calls.
pub const CALLS_ACTIVE: MetricInstrument =
    MetricInstrument::own("calls.active", MetricKind::Gauge, "{call}", &[])
        .with_description("Calls that run or wait");

/// Number of handlers by phase.
pub const HANDLERS: MetricInstrument =
    MetricInstrument::own("handlers", MetricKind::Gauge, "{handler}", &[PHASE])
        .with_description("Handlers by phase");

/// Readiness of each handler.
pub const HANDLER_READY: MetricInstrument =
    MetricInstrument::own("handler.ready", MetricKind::Gauge, "{handler}", &[HANDLER])
        .with_description("1 if the handler is ready, else 0");

/// Number of running programs of handlers.
pub const PROCESSES: MetricInstrument =
    MetricInstrument::own("processes", MetricKind::Gauge, "{process}", &[])
        .with_description("Running programs of handlers");

/// Notifications of servers that reached no client.
pub const NOTIFICATIONS_DROPPED: MetricInstrument =
    MetricInstrument::own("notifications.dropped", MetricKind::Counter, "{notification}", &[HANDLER])
        .with_description(
            "Notifications of a server that name no request, while several calls or none were running",
        );

/// Requests to the embedding endpoint of the search.
pub const EMBEDDING_REQUESTS: MetricInstrument =
    MetricInstrument::own("search.embedding.requests", MetricKind::Counter, "{request}", &[STATUS])
        .with_description("Requests to the embedding endpoint of the tool search, if there is one");

/// Telemetry that was not exported.
pub const TELEMETRY_LOST: MetricInstrument =
    MetricInstrument::own("telemetry.lost", MetricKind::Counter, "{item}", &[SIGNAL])
        .with_description("Spans and metric exports that did not reach the collector");

/// Audit records that were lost.
pub const AUDIT_LOST: MetricInstrument =
    MetricInstrument::own("audit.lost", MetricKind::Counter, "{record}", &[])
        .with_description("Audit records that were lost");

/// Audit records that were removed for their size.
pub const AUDIT_REMOVED: MetricInstrument =
    MetricInstrument::own("audit.removed", MetricKind::Counter, "{record}", &[])
        .with_description("Audit records that were removed because the trail reached its size");

/// Duration of calls by the semantic conventions for MCP servers.
pub const SERVER_DURATION: MetricInstrument = MetricInstrument::conventional(
    "mcp.server.operation.duration",
    &[METHOD, GEN_AI_TOOL, GEN_AI_OPERATION, ERROR_TYPE, TRANSPORT],
)
.with_description("Duration of a request, from its arrival to the response");

/// Duration of upstream requests by the semantic conventions for MCP clients.
pub const CLIENT_DURATION: MetricInstrument = MetricInstrument::conventional(
    "mcp.client.operation.duration",
    &[METHOD, GEN_AI_TOOL, GEN_AI_OPERATION, ERROR_TYPE],
)
.with_description("Duration of an upstream request, including retries");

/// Every instrument.
pub const INSTRUMENTS: [&MetricInstrument; 13] = [
    &INVOKE_DURATION,
    &INVOCATIONS,
    &CALLS_ACTIVE,
    &HANDLERS,
    &HANDLER_READY,
    &PROCESSES,
    &NOTIFICATIONS_DROPPED,
    &EMBEDDING_REQUESTS,
    &TELEMETRY_LOST,
    &AUDIT_LOST,
    &AUDIT_REMOVED,
    &SERVER_DURATION,
    &CLIENT_DURATION,
];

/// The published name of a tool, or [`OTHER`].
pub const TOOL: &str = "tool_name";
/// [`OK`], [`TOOL_ERROR`], or the error code of the gateway.
pub const STATUS: &str = "status";
/// `connecting`, `ready` or `unavailable`.
pub const PHASE: &str = "phase";
/// The name of a handler in the manifest.
pub const HANDLER: &str = "handler";
/// `traces` or `metrics`.
pub const SIGNAL: &str = "signal";
/// MCP method.
pub const METHOD: &str = "mcp.method.name";
/// MCP session, if there is one.
pub const SESSION: &str = "mcp.session.id";
/// MCP revision of the client, if its request names one.
pub const PROTOCOL_VERSION: &str = "mcp.protocol.version";
/// URI of the requested resource.
pub const RESOURCE: &str = "mcp.resource.uri";
/// The invoked hosted function with its version.
pub const FUNCTION: &str = "toolyard.function";
/// Name of a tool: the published one, or in upstream requests the upstream's.
pub const GEN_AI_TOOL: &str = "gen_ai.tool.name";
/// The name of a prompt.
pub const GEN_AI_PROMPT: &str = "gen_ai.prompt.name";
/// `execute_tool`, for tools.
pub const GEN_AI_OPERATION: &str = "gen_ai.operation.name";
/// The error code of the gateway, or [`TOOL_ERROR`]. Absent if the call succeeded.
pub const ERROR_TYPE: &str = "error.type";
/// The JSON-RPC error code, if the gateway refuses the call.
pub const RPC_STATUS: &str = "rpc.response.status_code";
/// `tcp`, or `pipe` on standard input and output.
pub const TRANSPORT: &str = "network.transport";
/// The handler of a call.
pub const TOOLYARD_HANDLER: &str = "toolyard.handler";

/// Attributes of spans.
pub const SPAN_ATTRIBUTES: [&str; 12] = [
    METHOD,
    SESSION,
    PROTOCOL_VERSION,
    RESOURCE,
    FUNCTION,
    GEN_AI_TOOL,
    GEN_AI_PROMPT,
    GEN_AI_OPERATION,
    ERROR_TYPE,
    RPC_STATUS,
    TRANSPORT,
    TOOLYARD_HANDLER,
];

/// The [`STATUS`] of a call or request that succeeded.
pub const OK: &str = "ok";
/// The [`STATUS`] of a request that failed.
pub const FAILED: &str = "failed";
/// The [`STATUS`] and the [`ERROR_TYPE`] of a call whose tool ran and reported an error, as in the semantic
/// conventions. It is not an error code of the gateway, so that alerts about the gateway and its upstreams do not fire
/// for errors of tools.
pub const TOOL_ERROR: &str = "tool_error";
/// Name that stands for the tools beyond the limit.
pub const OTHER: &str = "other";
