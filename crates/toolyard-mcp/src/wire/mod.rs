//! What goes over the wire, whoever carries it.

pub mod error;
pub mod headers;
pub mod message;
pub mod revision;
mod task;

use toolyard_core::{Ask, AskKind, Json, Object, Target, TaskAction};

pub use error::RpcError;
pub use message::{Id, Message};
pub use revision::{Era, Revision};
pub use task::TaskSupport;

/// The methods that the gateway takes part in.
pub mod method {
    /// Opens a session (legacy).
    pub const INITIALIZE: &str = "initialize";
    /// The client is ready (legacy).
    pub const INITIALIZED: &str = "notifications/initialized";
    /// Says what a server is and can (modern).
    pub const DISCOVER: &str = "server/discover";
    /// Opens a stream of changes (modern).
    pub const LISTEN: &str = "subscriptions/listen";
    /// The first message of a stream of changes (modern).
    pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
    /// Asks whether the other side is there (legacy).
    pub const PING: &str = "ping";
    /// Lists tools.
    pub const TOOLS_LIST: &str = "tools/list";
    /// Calls a tool.
    pub const TOOLS_CALL: &str = "tools/call";
    /// Lists prompts.
    pub const PROMPTS_LIST: &str = "prompts/list";
    /// Fills in a prompt.
    pub const PROMPTS_GET: &str = "prompts/get";
    /// Lists resources.
    pub const RESOURCES_LIST: &str = "resources/list";
    /// Lists templates of resources.
    pub const TEMPLATES_LIST: &str = "resources/templates/list";
    /// Reads a resource.
    pub const RESOURCES_READ: &str = "resources/read";
    /// Follows a resource (legacy).
    pub const SUBSCRIBE: &str = "resources/subscribe";
    /// Follows a resource no more (legacy).
    pub const UNSUBSCRIBE: &str = "resources/unsubscribe";
    /// Asks what could stand in an argument.
    pub const COMPLETE: &str = "completion/complete";
    /// Says how much log a session wants (legacy).
    pub const SET_LEVEL: &str = "logging/setLevel";
    /// Waits for the result of a task (legacy, experimental).
    pub const TASKS_RESULT: &str = "tasks/result";
    /// Asks how a task is (modern, tasks extension).
    pub const TASKS_GET: &str = "tasks/get";
    /// Answers what a task asks (modern, tasks extension).
    pub const TASKS_UPDATE: &str = "tasks/update";
    /// Ends a task (modern, tasks extension).
    pub const TASKS_CANCEL: &str = "tasks/cancel";
    /// How a task is (modern, tasks extension).
    pub const TASK_CHANGED: &str = "notifications/tasks";
    /// How a task is (2025-11-25, experimental).
    pub const OLD_TASK_CHANGED: &str = "notifications/tasks/status";
    /// Asks the user for input.
    pub const ELICIT: &str = "elicitation/create";
    /// The user is done at a URL (2025-11-25).
    pub const ELICIT_COMPLETE: &str = "notifications/elicitation/complete";
    /// Asks the client's model.
    pub const SAMPLE: &str = "sampling/createMessage";
    /// Asks for the folders that a server may work on.
    pub const ROOTS_LIST: &str = "roots/list";
    /// The client's folders are not what they were (legacy).
    pub const ROOTS_CHANGED: &str = "notifications/roots/list_changed";
    /// The list of tools is not what it was.
    pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
    /// The list of prompts is not what it was.
    pub const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
    /// The list of resources, or of their templates, is not what it was.
    pub const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
    /// A resource is not what it was.
    pub const RESOURCE_UPDATED: &str = "notifications/resources/updated";
    /// A line of log.
    pub const LOG: &str = "notifications/message";
    /// How far a request is.
    pub const PROGRESS: &str = "notifications/progress";
    /// A request is not wanted any more.
    pub const CANCELLED: &str = "notifications/cancelled";
    /// The notifications that mean something to the gateway itself, or would be misunderstood behind it.
    pub const OWN_NOTIFICATIONS: [&str; 11] = [
        INITIALIZED,
        ACKNOWLEDGED,
        TASK_CHANGED,
        OLD_TASK_CHANGED,
        TOOLS_CHANGED,
        PROMPTS_CHANGED,
        RESOURCES_CHANGED,
        RESOURCE_UPDATED,
        LOG,
        PROGRESS,
        CANCELLED,
    ];
}

/// The method by which something is called, for telemetry also where it is none of MCP.
#[must_use]
pub const fn method_for(target: &Target) -> &'static str {
    match target {
        Target::Tool(_) => method::TOOLS_CALL,
        Target::Prompt(_) => method::PROMPTS_GET,
        Target::Resource(_) => method::RESOURCES_READ,
        Target::Completion(_) => method::COMPLETE,
        Target::Task(task) => match task.action {
            TaskAction::Get => method::TASKS_GET,
            TaskAction::Update => method::TASKS_UPDATE,
            TaskAction::Cancel => method::TASKS_CANCEL,
        },
        // Not by MCP.
        Target::Function(_) => "functions/invoke",
    }
}

/// The method by which a client is asked.
#[must_use]
pub const fn method_of(kind: AskKind) -> &'static str {
    match kind {
        AskKind::Elicit => method::ELICIT,
        AskKind::Sample => method::SAMPLE,
        AskKind::Roots => method::ROOTS_LIST,
    }
}

/// What a client is asked by this method; `None` where it is another one.
#[must_use]
pub fn kind_of(method: &str) -> Option<AskKind> {
    AskKind::ALL.into_iter().find(|kind| method_of(*kind) == method)
}

/// What a client is asked by a request that stands in a result (2026-07-28, basic/patterns/mrtr): its `method` and
/// `params`. `None` where it is no question to a client.
#[must_use]
pub fn ask_of(request: &Json) -> Option<Ask> {
    let request = request.to_object().ok()?;
    let kind = kind_of(&request.get_str("method")?)?;
    let params = request.get("params").map_or_else(|| Ok(Object::new()), Json::to_object).ok()?;
    Some(Ask { kind, params })
}

/// Members of `_meta` that the specification reserves.
pub mod meta {
    /// The revision that a modern request speaks.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// Who sent a modern request.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// What the sender of a modern request can be asked.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// How much log a modern request wants.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// Who answered.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// Which stream of changes a message belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// The extension that lets a call go on after its answer.
    pub const TASKS: &str = "io.modelcontextprotocol/tasks";
    /// What progress of a request is to be called.
    pub const PROGRESS_TOKEN: &str = "progressToken";
}
