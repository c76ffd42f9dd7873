//! A call: one request, independent of the protocol that it arrived by.

use std::any::Any;
use std::net::IpAddr;
use std::sync::Arc;

use tokio::time::Instant;

use crate::access::AccessGrant;
use crate::client::{Client, NoClient};
use crate::json::{Json, Object};
use crate::nested::ParentCall;

/// Member of `_meta` with the session of a host: clients of 2026-07-28 and later have none themselves. Results have the
/// handle of one in it, which the host sends back in its requests; with a key, it may name any session.
pub const SESSION_META: &str = "toolyard/session";

/// One request on its way to a backend.
#[derive(Debug, Clone)]
pub struct Call {
    /// The called entry.
    pub target: CallTarget,
    /// Parameters of the request as the client sent them, in their order: `arguments`, `_meta`, and any other members.
    /// If they contain a name, [`Call::target`] takes precedence.
    pub params: Object,
    /// Members of `_meta` that concern the request. `_meta` is opened once, here; changes are made here, and replace
    /// `_meta` when the call is sent on.
    pub meta: Object,
    /// The caller.
    pub caller: Caller,
    /// Protocol-specific origin of the call: for HTTP the head of the request. Backends in the process of the frontend
    /// may read it; it is not sent anywhere.
    pub origin: Option<Arc<dyn Any + Send + Sync>>,
    /// Time at which the caller stops waiting. A frontend may set it; [`crate::Gateway::invoke`] limits it to the
    /// handler's timeout.
    pub deadline: Option<Instant>,
    /// Time at which the handler's timeout ends. [`crate::Gateway::invoke`] sets it.
    pub handler_deadline: Option<Instant>,
    /// The call that makes this one; `None` for a call of a client.
    pub parent: Option<Arc<ParentCall>>,
    /// The client of the running call.
    pub client: Arc<dyn Client>,
}

impl Call {
    /// Creates a call of a tool from a caller that receives no notifications.
    pub fn tool(name: impl Into<Arc<str>>, arguments: Json) -> Self {
        Self {
            target: CallTarget::Tool(name.into()),
            params: Object::new().with("arguments", arguments),
            meta: Object::new(),
            caller: Caller::default(),
            origin: None,
            deadline: None,
            handler_deadline: None,
            parent: None,
            client: Arc::new(NoClient),
        }
    }

    /// Returns the deadline, and if the caller has chosen it.
    #[must_use]
    pub fn time_limit(&self) -> CallTimeLimit {
        let is_of_caller =
            self.deadline.is_some_and(|at| self.handler_deadline.is_none_or(|handler| at < handler));
        CallTimeLimit { at: self.deadline, is_of_caller }
    }

    /// Creates a call of another tool by the same caller. All else is kept, including answers to questions of that
    /// tool.
    #[must_use]
    pub fn of(&self, tool: impl Into<Arc<str>>, arguments: Json) -> Self {
        let mut params = self.params.clone();
        params.set("arguments", arguments);
        Self { target: CallTarget::Tool(tool.into()), params, ..self.clone() }
    }

    /// Returns the arguments; `None` if they are missing or `null`.
    #[must_use]
    pub fn arguments(&self) -> Option<&Json> {
        self.params.get("arguments").filter(|arguments| !arguments.is_null())
    }
}

/// The time limit of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallTimeLimit {
    /// Time at which the call ends.
    pub at: Option<Instant>,
    /// True if the caller chose it, and not the timeout of the handler: a call that ends at it says nothing about its
    /// server.
    pub is_of_caller: bool,
}

impl CallTimeLimit {
    /// Returns true once the call has ended.
    #[must_use]
    pub fn is_over(self) -> bool {
        self.at.is_some_and(|at| at <= Instant::now())
    }

    /// Returns true once the call has ended because its caller waits no longer.
    #[must_use]
    pub fn is_cut_by_caller(self) -> bool {
        self.is_of_caller && self.is_over()
    }
}

/// The called entry, of any kind, so that policy, audit and limits see every call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallTarget {
    /// A tool, by its published name in front of the registry and by its backend's own name behind it.
    Tool(Arc<str>),
    /// A prompt to be filled in, by its name as for tools.
    Prompt(Arc<str>),
    /// A resource to be read, by its URI.
    Resource(Arc<str>),
    /// A completion of an argument.
    Completion(CompletionReference),
    /// A task in which a server continues the call of a tool.
    Task(TaskReference),
    /// A hosted function that is invoked directly, by id and version (see [`FunctionLookup`](crate::FunctionLookup)).
    /// The arguments are its event.
    Function(Arc<str>),
}

/// A request about a task of a server (MCP extension `io.modelcontextprotocol/tasks`, SEP-2663).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskReference {
    /// Name of the called tool, as in [`CallTarget::Tool`]: a caller that may not use the tool has none of its tasks.
    pub tool: Arc<str>,
    /// Handler that had the tool when the task began; the name may belong to another one by now.
    pub handler: Arc<str>,
    /// Id of the task at its server.
    pub id: Arc<str>,
    /// Requested action.
    pub action: TaskAction,
}

/// A request about a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskAction {
    /// Returns the state of the task.
    Get,
    /// Passes the client's answers to the task.
    Update,
    /// Cancels the task.
    Cancel,
}

/// The owner of an argument to be completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionReference {
    /// A prompt, by its name.
    Prompt(Arc<str>),
    /// A resource template, by its text.
    Template(Arc<str>),
}

impl CallTarget {
    /// Returns the name, URI, template or function that is called; for a task, the name of its tool.
    #[must_use]
    pub const fn name(&self) -> &Arc<str> {
        match self {
            Self::Tool(name) | Self::Prompt(name) | Self::Resource(name) | Self::Function(name) => name,
            Self::Completion(CompletionReference::Prompt(name) | CompletionReference::Template(name)) => name,
            Self::Task(task) => &task.tool,
        }
    }

    /// Returns the same target with another name.
    #[must_use]
    pub fn renamed(&self, name: Arc<str>) -> Self {
        match self {
            Self::Tool(_) => Self::Tool(name),
            Self::Prompt(_) => Self::Prompt(name),
            Self::Resource(_) => Self::Resource(name),
            Self::Completion(CompletionReference::Prompt(_)) => {
                Self::Completion(CompletionReference::Prompt(name))
            }
            Self::Completion(CompletionReference::Template(_)) => {
                Self::Completion(CompletionReference::Template(name))
            }
            Self::Task(task) => Self::Task(TaskReference { tool: name, ..task.clone() }),
            Self::Function(_) => Self::Function(name),
        }
    }
}

/// The origin of a call. Callers are compared by identity, not by rights.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// Session of the client, if it has one.
    pub session: Option<Arc<str>>,
    /// Authenticated principal, if there is one.
    pub principal: Option<Arc<str>>,
    /// Rights of the caller. `None`: everything.
    pub grant: Option<Arc<AccessGrant>>,
    /// Other end of the client's connection.
    pub peer: CallerPeer,
    /// True if the model of the client can be used after the call: in its session, or by the input that a task requests.
    /// Tools that need it exist for such callers only.
    pub lends_model: bool,
}

/// The other end of a client's connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum CallerPeer {
    /// Not known, as for calls by the gateway itself.
    #[default]
    Unknown,
    /// An IP address.
    Address(IpAddr),
    /// The user of this machine with this id, on a Unix socket or on standard input.
    User(u32),
}

/// The identity that a client has in all of its calls.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ClientIdentity {
    /// A session: a single client.
    Session(Arc<str>),
    /// A principal: perhaps several clients without a session.
    Principal(Arc<str>),
}

impl ClientIdentity {
    /// Returns the identity of a caller; `None` for one without session and principal.
    #[must_use]
    pub fn of(caller: &Caller) -> Option<Self> {
        let session = caller.session.clone().map(Self::Session);
        session.or_else(|| caller.principal.clone().map(Self::Principal))
    }
}

impl PartialEq for Caller {
    fn eq(&self, other: &Self) -> bool {
        (&self.session, &self.principal) == (&other.session, &other.principal)
    }
}

impl Eq for Caller {}
