//! The wire format, independent of transports.

pub mod batch;
pub mod error;
pub mod headers;
pub mod message;
pub mod revision;
mod task;

use toolyard_core::{CallTarget, InputRequest, InputRequestKind, Json, Object, TaskAction};

pub use error::RpcError;
pub use message::{RequestId, RpcMessage};
pub use revision::{ProtocolEra, ProtocolRevision};
pub use task::ToolTaskSupport;

/// The methods that the gateway handles.
pub mod method {
    /// Opens a session (legacy).
    pub const INITIALIZE: &str = "initialize";
    /// Reports that the client is ready (legacy).
    pub const INITIALIZED: &str = "notifications/initialized";
    /// Describes the server (modern).
    pub const DISCOVER: &str = "server/discover";
    /// Opens a stream of change notifications (modern).
    pub const LISTEN: &str = "subscriptions/listen";
    /// The first message of a stream of change notifications (modern).
    pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
    /// Checks that the peer is alive (legacy).
    pub const PING: &str = "ping";
    /// Lists tools.
    pub const TOOLS_LIST: &str = "tools/list";
    /// Calls a tool.
    pub const TOOLS_CALL: &str = "tools/call";
    /// Lists prompts.
    pub const PROMPTS_LIST: &str = "prompts/list";
    /// Gets a prompt.
    pub const PROMPTS_GET: &str = "prompts/get";
    /// Lists resources.
    pub const RESOURCES_LIST: &str = "resources/list";
    /// Lists resource templates.
    pub const TEMPLATES_LIST: &str = "resources/templates/list";
    /// Reads a resource.
    pub const RESOURCES_READ: &str = "resources/read";
    /// Subscribes to a resource (legacy).
    pub const SUBSCRIBE: &str = "resources/subscribe";
    /// Unsubscribes from a resource (legacy).
    pub const UNSUBSCRIBE: &str = "resources/unsubscribe";
    /// Completes an argument.
    pub const COMPLETE: &str = "completion/complete";
    /// Sets the log level of a session (legacy).
    pub const SET_LEVEL: &str = "logging/setLevel";
    /// Waits for the result of a task (2025-11-25, experimental).
    pub const TASKS_RESULT: &str = "tasks/result";
    /// Gets the status of a task (modern, tasks extension).
    pub const TASKS_GET: &str = "tasks/get";
    /// Sends input for a task (modern, tasks extension).
    pub const TASKS_UPDATE: &str = "tasks/update";
    /// Cancels a task (modern, tasks extension).
    pub const TASKS_CANCEL: &str = "tasks/cancel";
    /// Reports the status of a task (modern, tasks extension).
    pub const TASK_CHANGED: &str = "notifications/tasks";
    /// Reports the status of a task (2025-11-25, experimental).
    pub const LEGACY_TASK_CHANGED: &str = "notifications/tasks/status";
    /// Requests input from the user.
    pub const ELICIT: &str = "elicitation/create";
    /// Reports that a URL elicitation is complete (2025-11-25).
    pub const ELICIT_COMPLETE: &str = "notifications/elicitation/complete";
    /// Requests a completion from the client's model.
    pub const SAMPLE: &str = "sampling/createMessage";
    /// Requests the client's roots.
    pub const ROOTS_LIST: &str = "roots/list";
    /// Reports that the client's roots have changed (legacy).
    pub const ROOTS_CHANGED: &str = "notifications/roots/list_changed";
    /// Reports that the list of tools has changed.
    pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
    /// Reports that the list of prompts has changed.
    pub const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
    /// Reports that the list of resources, or of their templates, has changed.
    pub const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
    /// Reports that a resource has changed.
    pub const RESOURCE_UPDATED: &str = "notifications/resources/updated";
    /// A log message.
    pub const LOG: &str = "notifications/message";
    /// Reports the progress of a request.
    pub const PROGRESS: &str = "notifications/progress";
    /// Cancels a request.
    pub const CANCELLED: &str = "notifications/cancelled";
    /// The notifications that the gateway handles itself. They are never forwarded as they are.
    pub const OWN_NOTIFICATIONS: [&str; 11] = [
        INITIALIZED,
        ACKNOWLEDGED,
        TASK_CHANGED,
        LEGACY_TASK_CHANGED,
        TOOLS_CHANGED,
        PROMPTS_CHANGED,
        RESOURCES_CHANGED,
        RESOURCE_UPDATED,
        LOG,
        PROGRESS,
        CANCELLED,
    ];

    /// Returns `true` for notifications of changed lists and resources.
    pub fn is_change(method: &str) -> bool {
        [TOOLS_CHANGED, PROMPTS_CHANGED, RESOURCES_CHANGED, RESOURCE_UPDATED].contains(&method)
    }
}

/// Returns the method of a target. Functions, which are not called by MCP, get a name for telemetry.
#[must_use]
pub const fn target_method(target: &CallTarget) -> &'static str {
    match target {
        CallTarget::Tool(_) => method::TOOLS_CALL,
        CallTarget::Prompt(_) => method::PROMPTS_GET,
        CallTarget::Resource(_) => method::RESOURCES_READ,
        CallTarget::Completion(_) => method::COMPLETE,
        CallTarget::Task(task) => match task.action {
            TaskAction::Get => method::TASKS_GET,
            TaskAction::Update => method::TASKS_UPDATE,
            TaskAction::Cancel => method::TASKS_CANCEL,
        },
        // Not a method of MCP.
        CallTarget::Function(_) => "functions/invoke",
    }
}

/// Returns the method of a request to a client.
#[must_use]
pub const fn ask_method(kind: InputRequestKind) -> &'static str {
    match kind {
        InputRequestKind::Elicit => method::ELICIT,
        InputRequestKind::Sample => method::SAMPLE,
        InputRequestKind::Roots => method::ROOTS_LIST,
    }
}

/// Returns the kind of request to a client that this method is; `None` for any other method.
#[must_use]
pub fn ask_kind(method: &str) -> Option<InputRequestKind> {
    InputRequestKind::ALL.into_iter().find(|kind| ask_method(*kind) == method)
}

/// Parses a request to a client that is part of a result (2026-07-28, basic/patterns/mrtr): its `method` and `params`.
/// `None` if it is not a request to a client.
#[must_use]
pub fn parse_ask(request: &Json) -> Option<InputRequest> {
    let request = request.to_object().ok()?;
    let kind = ask_kind(&request.get_str("method")?)?;
    let params = request.get("params").map_or_else(|| Ok(Object::new()), Json::to_object).ok()?;
    Some(InputRequest { kind, params })
}

/// The members of `_meta` that the specification reserves.
pub mod meta {
    /// The revision of a modern request.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// The client that sent a modern request.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// The capabilities of the client that sent a modern request.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// The log level of a modern request.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// The server that sent a result.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// The subscription that a notification belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// The tasks extension.
    pub const TASKS: &str = "io.modelcontextprotocol/tasks";
    /// The token of progress notifications of a request.
    pub const PROGRESS_TOKEN: &str = "progressToken";
}
