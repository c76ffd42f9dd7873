//! The interface between the management tools and the gateway.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use toolyard_core::store::StoreError;
use toolyard_core::{Caller, Registry};

/// The servers of a gateway, some of them added at run time.
pub trait ServerManager: Send + Sync {
    /// Returns the registry as a caller sees it, after the handlers have had time to connect.
    fn seen_by<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Arc<Registry>>;

    /// Returns the names of all servers added at run time, whether or not a caller sees them.
    fn added(&self) -> Vec<Arc<str>>;

    /// Returns `true` for the handler of the gateway's own tools, which is not a server.
    fn is_own(&self, handler: &str) -> bool;

    /// Adds a server and waits until it has answered. A server that does not answer is removed again.
    fn register(&self, server: NewServer) -> BoxFuture<'_, Result<RegisteredServer, RegistrationError>>;

    /// Removes a server that was added at run time.
    fn unregister<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), RegistrationError>>;
}

/// A server to add.
#[derive(Clone, PartialEq, Eq)]
pub struct NewServer {
    /// Name in lower case. The gateway checks it.
    pub name: String,
    /// Address of the server.
    pub address: ServerAddress,
    /// Name for people.
    pub display_name: Option<String>,
    /// Description of its purpose.
    pub description: Option<String>,
}

/// Address of a server.
#[derive(Clone, PartialEq, Eq)]
pub enum ServerAddress {
    /// A program that the gateway starts and talks to over its standard streams.
    Program {
        /// Path of the program, or a name that is looked up in `PATH`. No shell interprets it.
        command: String,
        /// Arguments of the program.
        args: Vec<String>,
        /// Environment variables in addition to those of the gateway.
        env: Vec<(String, String)>,
    },
    /// A server that is reached over HTTP.
    Url {
        /// URL of the endpoint.
        url: String,
        /// Transport that is tried first.
        transport: HttpTransportKind,
    },
}

/// The two HTTP transports of MCP. If the first fails, the gateway tries the other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpTransportKind {
    /// Streamable HTTP, with one endpoint.
    StreamableHttp,
    /// The older HTTP+SSE transport.
    Sse,
}

/// A server that was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredServer {
    /// Number of its tools.
    pub tools: usize,
}

/// Reason why a server is not added or not removed. A model reads the text and tells its user.
#[derive(Debug, thiserror::Error)]
pub enum RegistrationError {
    /// The operator allows no servers.
    #[error(
        "no server may be added at run time: the operator allows none. This line of the gateway's configuration would \
         allow it: `{0}`"
    )]
    NothingAllowed(String),
    /// The operator does not allow the program.
    #[error("the command '{0}' is not allowed: the operator allows others{line}", line = allowing("commands", .0))]
    Command(String),
    /// The operator does not allow the host of the URL.
    #[error("the host '{0}' is not allowed: the operator allows others{line}", line = allowing("hosts", .0))]
    Host(String),
    /// The URL points to the gateway, which would publish all of its own tools again.
    #[error("the URL is that of this gateway itself")]
    Itself,
    /// The operator does not allow the variable.
    #[error("the variable '{0}' may not be set: the operator allows others{line}", line = allowing("env", .0))]
    Variable(String),
    /// The settings are invalid for this reason.
    #[error("{0}")]
    Invalid(String),
    /// Another server has the name.
    #[error("the name is in use, and a server cannot be replaced: choose another name")]
    Taken,
    /// Another call is adding a server of this name.
    #[error("a server of this name is being added: check mcp_list_services")]
    InTheMaking,
    /// The maximum number of servers is reached.
    #[error("there are {limit} servers that were added at run time, which is the maximum: remove one first")]
    TooMany {
        /// Maximum number of servers added at run time.
        limit: usize,
    },
    /// The server failed to start or to answer.
    #[error("the server failed to start and was not added: {0}")]
    NotUp(String),
    /// The server did not answer in time.
    #[error("the server did not answer within {} s and was not added{output}", .time.as_secs())]
    TooSlow {
        /// Time that it had.
        time: Duration,
        /// Last lines of its error output, without secrets, or nothing.
        output: String,
    },
    /// No server has this name.
    #[error("unknown server")]
    Unknown,
    /// The server is part of the manifest.
    #[error(
        "it was configured by the operator: only servers that were added with mcp_register_server can be removed"
    )]
    Configured,
    /// The store failed.
    #[error("{0}: try again later")]
    Store(#[from] StoreError),
    /// The file with the servers cannot be used.
    #[error("the gateway's file with servers cannot be used: {0}")]
    File(String),
    /// The gateway is stopping.
    #[error("the gateway is stopping")]
    Stopping,
}

/// Returns the addition to a list of `builtins.mcp.allow` that would allow a value.
fn allowing(list: &str, value: &str) -> String {
    // A JSON string is a YAML string. Serializing a string cannot fail.
    let value = serde_json::to_string(value).unwrap_or_default();
    format!(
        ". This line in `builtins.mcp.allow` of the gateway's configuration would allow it: `{list}: [{value}]`"
    )
}

/// Shows the kind of address, without arguments and values, which may be secret.
impl fmt::Debug for NewServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("NewServer");
        debug.field("name", &self.name);
        match &self.address {
            ServerAddress::Program { command, args, env } => {
                let names: Vec<_> = env.iter().map(|(name, _)| name).collect();
                debug.field("command", command).field("args", &args.len()).field("env", &names);
            }
            ServerAddress::Url { transport, .. } => {
                debug.field("transport", transport);
            }
        }
        debug.finish_non_exhaustive()
    }
}
