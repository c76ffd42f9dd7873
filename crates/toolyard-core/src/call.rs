//! What goes in: one request, whatever protocol it came by.

use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;

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
            deadline: None,
            client: Arc::new(NoClient),
        }
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
}

/// Who calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The session of a client that keeps one.
    pub session: Option<Arc<str>>,
}

/// The client of a running call, seen from the backend.
pub trait Client: Send + Sync + fmt::Debug {
    /// The capabilities that the backend may make use of during this call: an object as MCP clients
    /// declare it. `None` where nothing can be asked.
    fn capabilities(&self) -> Option<&Json>;

    /// Whether notices reach anybody: a backend may save itself the work.
    fn listens(&self) -> bool;

    /// Tells the client something while its call runs. Never waits: where the client does not keep
    /// up, notices are dropped, and the outcome is not.
    fn notify(&self, notice: Notice);
}

/// Something told while a call runs. The object is the notification's parameters as they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// How far the work is. The token is put in by the door that made the call.
    Progress(Object),
}

/// Nobody listens.
#[derive(Debug, Clone, Copy)]
pub struct NoClient;

impl Client for NoClient {
    fn capabilities(&self) -> Option<&Json> {
        None
    }

    fn listens(&self) -> bool {
        false
    }

    fn notify(&self, _notice: Notice) {}
}
