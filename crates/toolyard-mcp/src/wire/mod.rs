//! What goes over the wire, whoever carries it.

pub mod error;
pub mod headers;
pub mod message;
pub mod revision;

pub use error::RpcError;
pub use message::{Id, Message};
pub use revision::{Era, Revision};

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
    /// Fills in a prompt.
    pub const PROMPTS_GET: &str = "prompts/get";
    /// Reads a resource.
    pub const RESOURCES_READ: &str = "resources/read";
    /// The list of tools is not what it was.
    pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
    /// How far a request is.
    pub const PROGRESS: &str = "notifications/progress";
    /// A request is not wanted any more.
    pub const CANCELLED: &str = "notifications/cancelled";
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
    /// What progress of a request is to be called.
    pub const PROGRESS_TOKEN: &str = "progressToken";
}
