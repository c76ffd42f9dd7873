//! The frontend: messages of clients become calls, outcomes become messages.
//!
//! The way of a `tools/call`: [`http`] or [`duplex`] (bytes -> message, session) -> `Frontend::answer`
//! (what is asked for) -> `call` (message -> call) -> [`toolyard_core::Gateway::invoke`], and back by the same stairs.
//!
//! - `methods`, `describe`, `pages`: which method does what, what the server says of itself, and long lists;
//! - `call`, `convert`: from a request to a call, from an outcome to a response;
//! - `requester`, `outlet`, `rounds`: the client of a running call, what it is told, and how it is asked in each era;
//!   `visit`: to open a URL;
//! - `progress`: what it is told of progress, also where there is none;
//! - `parked`, `tasks`: calls that outlive their request, and `ticket`, how clients come back to them;
//! - `forward`, `remote_tasks`: requests for what goes on at another gateway, and tasks there that are followed;
//! - `foreign_task`: calls that their server goes on with as a task;
//! - `session`, `peer`, `asks`: what is remembered of a legacy client, and `batch`, what some of them send;
//! - `streams`, `replay`, `answers`: how such a client comes back to a stream that broke;
//! - `modern`: what a request of the modern era must say of itself;
//! - `changes`, `listen`: telling clients that something is not what it was;
//! - [`http`], `sse`, [`duplex`]: how messages come, and `reply`, how they go back.

mod answers;
mod asks;
mod batch;
mod call;
mod changes;
mod convert;
mod describe;
pub mod duplex;
mod foreign_task;
mod forward;
pub mod http;
mod listen;
mod methods;
mod modern;
mod outlet;
mod pages;
mod parked;
mod peer;
mod progress;
mod remote_tasks;
mod replay;
mod reply;
mod requester;
mod rounds;
mod session;
mod sse;
mod streams;
mod tasks;
mod ticket;
mod visit;

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};
pub use toolyard_core::{CacheHint, CacheScope};
use toolyard_core::{Caller, Gateway, Object};

use crate::wire::{Era, Id, RpcError};
use describe::Described;
use parked::Parked;
use peer::Peer;
use requester::{Question, Requester};
use tasks::Tasks;
use ticket::Tickets;

pub use session::SessionLimits;

/// What the server says of itself.
#[derive(Debug, Clone, Default)]
pub struct ServerInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its name for people.
    pub title: Option<String>,
    /// What a model should know before it uses the tools.
    pub instructions: Option<String>,
}

/// Which of the protocol's features are offered. What is not answers that the method is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offers {
    /// Tools.
    pub tools: bool,
    /// Prompts.
    pub prompts: bool,
    /// Resources, their templates, and news of their changes.
    pub resources: bool,
    /// Completion of arguments.
    pub completions: bool,
    /// Log of running calls.
    pub logging: bool,
    /// Calls that go on as tasks.
    pub tasks: TaskOffer,
}

/// Which calls may go on after their answer, for clients that take tasks (extension `io.modelcontextprotocol/tasks`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TaskOffer {
    /// None.
    #[default]
    Never,
    /// Those of tools whose definition says so in `execution.taskSupport`. They do so, too, when they ask something.
    Declared,
    /// Those of any tool that take long. What servers behind the gateway go on with as tasks is passed on.
    Any,
}

/// Several gateways that serve the same clients by turns, seen from one of them.
#[derive(Clone)]
pub struct Cluster {
    /// Where the others reach this one, such as `http://10.0.0.5:8080`.
    pub address: Arc<str>,
    /// What all of them seal with what clients bring back.
    pub key: [u8; 32],
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("address", &self.address).finish_non_exhaustive()
    }
}

/// What clients may take.
#[derive(Debug, Clone, Copy)]
pub struct FrontendLimits {
    /// Notices that may wait for one client; more are dropped.
    pub queued_notices: usize,
    /// Entries on one page of a list.
    pub list_page: usize,
    /// After how long without progress a client that wants some is told that its request goes on.
    pub heartbeat: Duration,
    /// Calls that wait for an answer of a modern client. A call that would be one more fails.
    pub parked_calls: usize,
    /// How long a call waits for an answer of its client.
    pub ask_time: Duration,
    /// Tasks that are remembered, running or over.
    pub tasks: usize,
    /// How long a task is remembered, from its beginning.
    pub task_ttl: Duration,
    /// A call that is over sooner is answered, though it may go on as a task.
    pub task_after: Duration,
    /// How often clients should look after a task.
    pub task_poll: Duration,
}

impl Default for FrontendLimits {
    fn default() -> Self {
        Self {
            queued_notices: 64,
            list_page: 1000,
            heartbeat: Duration::from_secs(20),
            parked_calls: 1000,
            ask_time: Duration::from_secs(600),
            tasks: 1000,
            task_ttl: Duration::from_secs(3600),
            task_after: Duration::from_millis(50),
            task_poll: Duration::from_secs(1),
        }
    }
}

/// Everything that a frontend is told.
#[derive(Debug, Clone, Default)]
pub struct FrontendOptions {
    /// What the server says of itself.
    pub info: ServerInfo,
    /// Which features there are.
    pub offers: Offers,
    /// How long lists may be kept, where nobody says less of his own.
    pub cache: CacheHint,
    /// What clients may take.
    pub limits: FrontendLimits,
    /// The gateways that this is one of; `None` where it is the only one.
    pub cluster: Option<Cluster>,
}

/// Whom a request over HTTP acts for. What has made sure of that, such as a layer in front of the routes, puts it into the
/// request's extensions; calls, parked calls and tasks are bound to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal(pub Arc<str>);

/// A server of MCP over a gateway, whatever carries the messages.
pub struct Frontend {
    gateway: Arc<Gateway>,
    offers: Offers,
    limits: FrontendLimits,
    described: Described,
    tickets: Arc<Tickets>,
    parked: Arc<Parked>,
    tasks: Arc<Tasks>,
    /// Turns true when streams are to end.
    stopping: watch::Receiver<bool>,
}

/// A request, read.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: Id,
    pub(crate) method: String,
    pub(crate) params: Object,
    pub(crate) meta: Object,
}

/// Who sent a request, and how it is answered.
struct Sender {
    era: Era,
    caller: Caller,
    /// What the request came by.
    origin: Option<Arc<dyn Any + Send + Sync>>,
    client: Arc<Requester>,
    /// What is remembered of a legacy client.
    peer: Option<Arc<Peer>>,
    /// What the call asks of a modern client.
    questions: Option<mpsc::Receiver<Question>>,
}

/// The pieces of a result, or the error.
pub(crate) type Answer = Result<Vec<Bytes>, RpcError>;

impl Frontend {
    /// A frontend of `gateway`. Streams of changes end once `stopping` is true.
    #[must_use]
    pub fn new(gateway: Arc<Gateway>, options: FrontendOptions, stopping: watch::Receiver<bool>) -> Self {
        let FrontendOptions { info, offers, cache, limits, cluster } = options;
        let tickets = Arc::new(Tickets::new(cluster));
        Self {
            gateway,
            offers,
            limits,
            described: Described::new(&info, offers, cache),
            parked: Arc::new(Parked::new(limits, tickets.clone())),
            tasks: Arc::new(Tasks::new(limits, tickets.clone())),
            tickets,
            stopping,
        }
    }

    /// Ends the calls that go on without a request: tasks, and those that wait for their client to come back. To be
    /// called when no request comes any more. When this returns, whoever observes calls has been told of their end.
    pub async fn stop(&self) {
        self.tasks.stop().await;
        self.parked.stop().await;
    }
}
