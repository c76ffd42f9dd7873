//! What the tools need of the gateway.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use toolyard_core::store::StoreError;
use toolyard_core::{Caller, Registry};

/// The servers of a gateway, and how some are added and removed.
pub trait Servers: Send + Sync {
    /// What there is for a caller, once the handlers have had their time to answer.
    fn seen_by<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Arc<Registry>>;

    /// The servers that were added at run time, whoever sees them.
    fn added(&self) -> Vec<Arc<str>>;

    /// Whether this is the handler of the gateway's own tools, which is no server.
    fn is_own(&self, handler: &str) -> bool;

    /// Adds a server, and waits until it has answered. One that does not is not kept.
    fn register(&self, server: NewServer) -> BoxFuture<'_, Result<Registered, Refusal>>;

    /// Removes a server that was added at run time.
    fn unregister<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Refusal>>;
}

/// A server that is to be added.
#[derive(Clone, PartialEq, Eq)]
pub struct NewServer {
    /// What it is to be called, in lower case. Whether that can be a name is for the gateway to say.
    pub name: String,
    /// How it is reached.
    pub reach: Reach,
    /// What it is called for people.
    pub display_name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum Reach {
    /// A program that the gateway starts, on its standard streams.
    Program {
        /// The program: a path, or a name that is looked up in `PATH`. No shell looks at it.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables that it gets beside those of the gateway.
        env: Vec<(String, String)>,
    },
    /// A server that runs by itself.
    Url {
        /// Where.
        url: String,
        /// What is tried first.
        transport: Transport,
    },
}

/// The two ways in which MCP uses HTTP. A server that speaks the other one is found all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// One endpoint for everything.
    StreamableHttp,
    /// The older one.
    Sse,
}

/// A server that has been added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// How many tools it has.
    pub tools: usize,
}

/// Why a server is not added, or not removed. Each is told to a model, which tells its user.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Nobody has said which servers may be added.
    #[error(
        "no server may be added at run time: the operator has not said which ones may be (`builtins.mcp.allow` of the gateway)"
    )]
    NothingAllowed,
    /// The program is none that may be started.
    #[error("the command '{0}' is not allowed: the operator allows others (`builtins.mcp.allow.commands`)")]
    Command(String),
    /// The URL points to a host that is not allowed.
    #[error("the host '{0}' is not allowed: the operator allows others (`builtins.mcp.allow.hosts`)")]
    Host(String),
    /// The URL points back to the gateway, which would have all of its own tools again, and those of these.
    #[error("that is this gateway itself")]
    Itself,
    /// A variable may not be set.
    #[error("the variable '{0}' may not be set: the operator allows others (`builtins.mcp.allow.env`)")]
    Variable(String),
    /// It cannot be a server: this is why.
    #[error("{0}")]
    Invalid(String),
    /// The name belongs to another one.
    #[error("the name is in use, and a server cannot be replaced: choose another name")]
    Taken,
    /// Somebody else is adding one of this name just now.
    #[error("a server of this name is just being added: look with mcp_list_services whether it is there")]
    InTheMaking,
    /// There are as many as there may be.
    #[error(
        "there are {limit} servers already that were added at run time, which is as many as there may be: remove one first"
    )]
    TooMany {
        /// How many there may be.
        limit: usize,
    },
    /// It was started, or asked, and did not come up.
    #[error("the server did not come up, and is not kept: {0}")]
    NotUp(String),
    /// It did not answer in time.
    #[error("the server did not answer within {} s, and is not kept", .0.as_secs())]
    TooSlow(Duration),
    /// No server of this name exists.
    #[error("there is no server of this name")]
    Unknown,
    /// It stands in the manifest.
    #[error(
        "it was configured by the operator: only servers that were added with mcp_register_server can be removed"
    )]
    Configured,
    /// It could not be noted down.
    #[error("{0}: try again later")]
    Store(#[from] StoreError),
    /// The gateway is about to end.
    #[error("the gateway is stopping")]
    Stopping,
}

/// Shows how it is reached, and neither arguments nor values, which may be secret.
impl fmt::Debug for NewServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("NewServer");
        shown.field("name", &self.name);
        match &self.reach {
            Reach::Program { command, args, env } => {
                let names: Vec<_> = env.iter().map(|(name, _)| name).collect();
                shown.field("command", command).field("args", &args.len()).field("env", &names);
            }
            Reach::Url { transport, .. } => {
                shown.field("transport", transport);
            }
        }
        shown.finish_non_exhaustive()
    }
}
