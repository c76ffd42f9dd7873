//! What goes in: one request, whatever protocol it came by.

use std::any::Any;
use std::sync::Arc;

use tokio::time::Instant;

use crate::access::Grant;
use crate::client::{Client, NoClient};
use crate::json::{Json, Object};

/// One request on its way to a backend.
#[derive(Debug, Clone)]
pub struct Call {
    /// What is called.
    pub target: Target,
    /// The request's parameters as the client sent them, in their order: `arguments`, `_meta`, and
    /// whatever else it put there. Where a name stands in them, [`Call::target`] is the one that counts.
    pub params: Object,
    /// What `_meta` of the parameters says about the request rather than to the tool. It is opened here
    /// once; who changes it changes this, and it takes the place of `_meta` when the call is sent on.
    pub meta: Object,
    /// Who calls.
    pub caller: Caller,
    /// What the call came by, as its door has it: for HTTP the head of the request. Backends that share a process with
    /// the door may look at it; it goes nowhere else.
    pub origin: Option<Arc<dyn Any + Send + Sync>>,
    /// When the caller stops waiting. A door may set it; [`crate::Gateway::invoke`] sees to it that it is
    /// no later than the handler's limit allows.
    pub deadline: Option<Instant>,
    /// The way back while the call runs.
    pub client: Arc<dyn Client>,
}

impl Call {
    /// A call of a tool by somebody who does not listen while it runs.
    pub fn tool(name: impl Into<Arc<str>>, arguments: Json) -> Self {
        Self {
            target: Target::Tool(name.into()),
            params: Object::new().with("arguments", arguments),
            meta: Object::new(),
            caller: Caller::default(),
            origin: None,
            deadline: None,
            client: Arc::new(NoClient),
        }
    }

    /// The call of another tool by the same caller, with all else as it is: answers to what that tool has asked among it.
    #[must_use]
    pub fn of(&self, tool: impl Into<Arc<str>>, arguments: Json) -> Self {
        let mut params = self.params.clone();
        params.set("arguments", arguments);
        Self { target: Target::Tool(tool.into()), params, ..self.clone() }
    }

    /// The arguments; `None` where there are none, which is said by leaving them out or by `null`.
    #[must_use]
    pub fn arguments(&self) -> Option<&Json> {
        self.params.get("arguments").filter(|arguments| !arguments.is_null())
    }
}

/// What is called. One door for all kinds, so that policy, audit and limits see everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A tool, by the name under which it was found: the published one in front of the registry, its
    /// owner's behind it.
    Tool(Arc<str>),
    /// A prompt that is to be filled in, by its name, as with tools.
    Prompt(Arc<str>),
    /// A resource that is to be read, by its URI.
    Resource(Arc<str>),
    /// What could stand in an argument.
    Completion(Reference),
    /// A call of a tool that its server goes on with as a task.
    Task(Task),
    /// A hosted function that is invoked by itself, by its id and version: see [`Functions`](crate::Functions). Its event
    /// is the arguments.
    Function(Arc<str>),
}

/// A task of a server, and what is wanted of it (MCP extension `io.modelcontextprotocol/tasks`, SEP-2663).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The tool whose call it is, by its name, as in [`Target::Tool`]: whoever may not use it has no task of it.
    pub tool: Arc<str>,
    /// The handler that had the tool when the task began: by now the name may be another's.
    pub handler: Arc<str>,
    /// What its server calls it.
    pub id: Arc<str>,
    /// What is wanted.
    pub action: TaskAction,
}

/// What can be wanted of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskAction {
    /// To know how it is.
    Get,
    /// That it takes the client's answers.
    Update,
    /// That it ends.
    Cancel,
}

/// What an argument that is to be completed belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// A prompt, by its name.
    Prompt(Arc<str>),
    /// A resource template, by its text.
    Template(Arc<str>),
}

impl Target {
    /// The name, URI, template or function that is called; of a task, the name of its tool.
    #[must_use]
    pub const fn name(&self) -> &Arc<str> {
        match self {
            Self::Tool(name) | Self::Prompt(name) | Self::Resource(name) | Self::Function(name) => name,
            Self::Completion(Reference::Prompt(name) | Reference::Template(name)) => name,
            Self::Task(task) => &task.tool,
        }
    }

    /// The same kind of thing under another name.
    #[must_use]
    pub fn renamed(&self, name: Arc<str>) -> Self {
        match self {
            Self::Tool(_) => Self::Tool(name),
            Self::Prompt(_) => Self::Prompt(name),
            Self::Resource(_) => Self::Resource(name),
            Self::Completion(Reference::Prompt(_)) => Self::Completion(Reference::Prompt(name)),
            Self::Completion(Reference::Template(_)) => Self::Completion(Reference::Template(name)),
            Self::Task(task) => Self::Task(Task { tool: name, ..task.clone() }),
            Self::Function(_) => Self::Function(name),
        }
    }
}

/// Who calls. Callers are compared by who they are, whatever they may use.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// The session of a client that keeps one.
    pub session: Option<Arc<str>>,
    /// Whom the client acts for, where something has made sure of that.
    pub principal: Option<Arc<str>>,
    /// What the caller may use. `None`: everything.
    pub grant: Option<Arc<Grant>>,
}

impl PartialEq for Caller {
    fn eq(&self, other: &Self) -> bool {
        (&self.session, &self.principal) == (&other.session, &other.principal)
    }
}

impl Eq for Caller {}
