//! Every instrument, span and attribute by its name: `docs/telemetry.md` has them as tables, which a test holds to this file.

use std::borrow::Cow;

/// Something that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instrument {
    /// Its name; where it is our own, what stands behind the prefix.
    pub name: &'static str,
    /// Whether the name is our own, and begins with the prefix that the manifest says.
    pub is_own: bool,
    /// What it is.
    pub kind: Kind,
    /// What it is measured in, as UCUM writes it.
    pub unit: &'static str,
    /// What it tells.
    pub description: &'static str,
    /// What its values are told apart by.
    pub attributes: &'static [&'static str],
}

/// How something is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number that grows.
    Counter,
    /// A number that is what it is when it is looked at.
    Gauge,
    /// Many numbers, of each of which the range is known.
    Histogram,
}

impl Instrument {
    const fn own(
        name: &'static str,
        kind: Kind,
        unit: &'static str,
        attributes: &'static [&'static str],
    ) -> Self {
        Self { name, is_own: true, kind, unit, description: "", attributes }
    }

    const fn conventional(name: &'static str, attributes: &'static [&'static str]) -> Self {
        Self { name, is_own: false, kind: Kind::Histogram, unit: "s", description: "", attributes }
    }

    const fn tells(self, description: &'static str) -> Self {
        Self { description, ..self }
    }

    /// The whole name.
    #[must_use]
    pub fn full_name(&self, prefix: &str) -> Cow<'static, str> {
        match self.is_own {
            true => format!("{prefix}.{}", self.name).into(),
            false => self.name.into(),
        }
    }
}

/// How long calls took, as the contract has it.
pub const INVOKE_DURATION: Instrument =
    Instrument::own("tool.invoke.duration", Kind::Histogram, "ms", &[TOOL, STATUS])
        .tells("Time of a call of a tool, waiting included");

/// How many calls there were, as the contract has it.
pub const INVOCATIONS: Instrument =
    Instrument::own("tool.invocations", Kind::Counter, "{invocation}", &[TOOL, STATUS])
        .tells("Calls of tools");

/// Calls that run now.
pub const CALLS_ACTIVE: Instrument =
    Instrument::own("calls.active", Kind::Gauge, "{call}", &[]).tells("Calls that run or wait now");

/// Handlers by their phase.
pub const HANDLERS: Instrument =
    Instrument::own("handlers", Kind::Gauge, "{handler}", &[PHASE]).tells("Handlers by their phase");

/// Whether a handler is ready.
pub const HANDLER_READY: Instrument = Instrument::own("handler.ready", Kind::Gauge, "{handler}", &[HANDLER])
    .tells("Whether a handler is ready: 1, or 0");

/// Programs of handlers that run now.
pub const PROCESSES: Instrument =
    Instrument::own("processes", Kind::Gauge, "{process}", &[]).tells("Programs of handlers that run now");

/// What was not sent to the collector.
pub const TELEMETRY_LOST: Instrument = Instrument::own("telemetry.lost", Kind::Counter, "{item}", &[SIGNAL])
    .tells("Spans, and pages of metrics, that did not reach the collector");

/// Records that the audit trail has not got.
pub const AUDIT_LOST: Instrument = Instrument::own("audit.lost", Kind::Counter, "{record}", &[])
    .tells("Records that the audit trail has not got");

/// How long calls took, as the semantic conventions have it for servers of MCP.
pub const SERVER_DURATION: Instrument = Instrument::conventional(
    "mcp.server.operation.duration",
    &[METHOD, GEN_AI_TOOL, GEN_AI_OPERATION, ERROR_TYPE, TRANSPORT],
)
.tells("Time of a request that runs something, from its arrival to the answer");

/// How long the servers behind the gateway took, as the semantic conventions have it for clients of MCP.
pub const CLIENT_DURATION: Instrument = Instrument::conventional(
    "mcp.client.operation.duration",
    &[METHOD, GEN_AI_TOOL, GEN_AI_OPERATION, ERROR_TYPE],
)
.tells("Time of a request to what runs it, all attempts together");

/// Every instrument.
pub const INSTRUMENTS: [&Instrument; 10] = [
    &INVOKE_DURATION,
    &INVOCATIONS,
    &CALLS_ACTIVE,
    &HANDLERS,
    &HANDLER_READY,
    &PROCESSES,
    &TELEMETRY_LOST,
    &AUDIT_LOST,
    &SERVER_DURATION,
    &CLIENT_DURATION,
];

/// The published name of a tool, or [`OTHER`].
pub const TOOL: &str = "tool_name";
/// [`OK`], [`TOOL_ERROR`], or the code of what the yard said.
pub const STATUS: &str = "status";
/// `connecting`, `ready` or `unavailable`.
pub const PHASE: &str = "phase";
/// The name of a handler in the manifest.
pub const HANDLER: &str = "handler";
/// `traces` or `metrics`.
pub const SIGNAL: &str = "signal";
/// The method of MCP.
pub const METHOD: &str = "mcp.method.name";
/// The session of MCP, where there is one.
pub const SESSION: &str = "mcp.session.id";
/// The revision of MCP that the client speaks, where its request says so.
pub const PROTOCOL_VERSION: &str = "mcp.protocol.version";
/// The URI of the resource that is read.
pub const RESOURCE: &str = "mcp.resource.uri";
/// The hosted function that is invoked, with its version.
pub const FUNCTION: &str = "toolyard.function";
/// The name of a tool: the published one, or behind the gateway its owner's.
pub const GEN_AI_TOOL: &str = "gen_ai.tool.name";
/// The name of a prompt.
pub const GEN_AI_PROMPT: &str = "gen_ai.prompt.name";
/// `execute_tool`, for tools.
pub const GEN_AI_OPERATION: &str = "gen_ai.operation.name";
/// The code of what the yard said, or [`TOOL_ERROR`]. Absent where a call succeeded.
pub const ERROR_TYPE: &str = "error.type";
/// The code of JSON-RPC, where the yard says no.
pub const RPC_STATUS: &str = "rpc.response.status_code";
/// `tcp`, or `pipe` on standard input and output.
pub const TRANSPORT: &str = "network.transport";
/// The handler that a call goes to.
pub const TOOLYARD_HANDLER: &str = "toolyard.handler";

/// What spans carry.
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

/// The [`STATUS`] of a call that succeeded.
pub const OK: &str = "ok";
/// The [`STATUS`] and the [`ERROR_TYPE`] of a call whose tool ran and said that it failed: the conventions' word. It is none of the
/// codes, so that an alarm about the gateway and its servers does not ring for what a tool says of its arguments.
pub const TOOL_ERROR: &str = "tool_error";
/// What stands for the tools that are too many to be named.
pub const OTHER: &str = "other";
