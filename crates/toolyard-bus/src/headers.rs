//! Names of headers.
//!
//! Headers of an envelope are named as here. On the wire each has the prefix `rb-` a second time: the header
//! `rb-mcp-server` is `rb-rb-mcp-server`, and exactly one prefix is removed on receipt.

/// Prefix of every header on the wire.
pub const WIRE_PREFIX: &str = "rb-";

/// Origin of the content: one of [`ContentTrust`].
pub const CONTENT_TRUST: &str = "rb-content-trust";
/// Provider of the called tool, such as `mcp`.
pub const TOOL_PROVIDER: &str = "rb-tool-provider";
/// Time limit of a call in milliseconds, counted from the timestamp of its message.
pub const TIMEOUT_MS: &str = "rb-timeout-ms";
/// Name of the MCP server that a call is for.
pub const MCP_SERVER: &str = "rb-mcp-server";
/// Request for notices while a call runs: `true` sends [`ToolProgress`](crate::message::ToolProgress) to the topic of
/// the reply. Not RockBot's, as the next one.
pub const PROGRESS: &str = "rb-progress";
/// Least severe level of log messages that are sent likewise, as [`ToolLog`](crate::message::ToolLog).
pub const LOG_LEVEL: &str = "rb-log-level";
/// Form of the answer: [`FULL_RESULT`] asks for a [`ToolResult`](crate::message::ToolResult). Not RockBot's.
pub const RESULT: &str = "rb-result";
/// Value of [`RESULT`].
pub const FULL_RESULT: &str = "full";
/// `true` in a request whose sender reads large results from a store. Not RockBot's, as the next one.
pub const RESULT_STORE: &str = "rb-result-store";
/// A [`ResultReference`](crate::stored_results::ResultReference) in JSON: the result of this answer is in the store.
pub const RESULT_REFERENCE: &str = "rb-result-reference";
/// Code of the error in a response that has no member for it: one of [`codes`](crate::record::codes). Not RockBot's, as
/// the next one.
pub const ERROR_CODE: &str = "rb-error-code";
/// `true` if the request can be sent again after this error.
pub const ERROR_RETRYABLE: &str = "rb-error-retryable";

/// Members of an envelope that are headers on the wire, with the prefix. No header of an envelope has such a name without
/// the prefix, which would be read as the member.
pub mod wire {
    /// `source` of the envelope.
    pub const SOURCE: &str = "rb-source";
    /// `destination` of the envelope.
    pub const DESTINATION: &str = "rb-destination";
    /// W3C trace context: `traceparent`.
    pub const TRACE_PARENT: &str = "rb-traceparent";
    /// W3C trace context: `tracestate`.
    pub const TRACE_STATE: &str = "rb-tracestate";
    /// `messageId`; NATS only, AMQP has a property for this and the following ones.
    pub const MESSAGE_ID: &str = "rb-message-id";
    /// `messageType`.
    pub const MESSAGE_TYPE: &str = "rb-type";
    /// `correlationId`.
    pub const CORRELATION_ID: &str = "rb-correlation-id";
    /// `replyTo`.
    pub const REPLY_TO: &str = "rb-reply-to";
    /// `timestamp`, in milliseconds since 1970.
    pub const TIMESTAMP: &str = "rb-timestamp";
    /// Reason why a message is a dead letter.
    pub const DEAD_REASON: &str = "rb-dead-reason";
    /// Topic of a dead letter.
    pub const DEAD_TOPIC: &str = "rb-dead-topic";
    /// Number of deliveries of a dead letter.
    pub const DEAD_ATTEMPTS: &str = "rb-dead-attempts";
    /// Topic of a message that a worker has returned to its queue; RabbitMQ only, as the next one.
    pub const RETRY_TOPIC: &str = "rb-retry-topic";
    /// Number of its deliveries that failed.
    pub const RETRY_COUNT: &str = "rb-retry-count";

    /// All of them.
    pub const ALL: [&str; 14] = [
        SOURCE,
        DESTINATION,
        TRACE_PARENT,
        TRACE_STATE,
        MESSAGE_ID,
        MESSAGE_TYPE,
        CORRELATION_ID,
        REPLY_TO,
        TIMESTAMP,
        DEAD_REASON,
        DEAD_TOPIC,
        DEAD_ATTEMPTS,
        RETRY_TOPIC,
        RETRY_COUNT,
    ];
}

/// Values of [`CONTENT_TRUST`]. They describe a message, and grant no rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentTrust {
    /// Written by the system itself.
    System,
    /// Written by a user.
    UserInput,
    /// A call of a tool.
    ToolRequest,
    /// The output of a tool.
    ToolOutput,
    /// Written by another agent.
    AgentMessage,
}

impl ContentTrust {
    /// Returns the value on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::UserInput => "user-input",
            Self::ToolRequest => "tool-request",
            Self::ToolOutput => "tool-output",
            Self::AgentMessage => "agent-message",
        }
    }
}
