//! The frontend: turns messages of clients into calls, and outcomes into responses.
//!
//! The way of a `tools/call`: [`http`] or [`duplex`] (`handle_request`: bytes -> message, session) ->
//! `McpFrontend::answer` (dispatch by method) -> `handle_call` (request -> call) -> [`toolyard_core::Gateway::invoke`],
//! and back the same way.
//!
//! - `methods`, `modern`, `describe`, `pages`: dispatch, validation of modern requests, the description of the server,
//!   and pagination;
//! - `call`, `convert`: from a request to a call, and from an outcome to a response;
//! - `transport`: [`http`], `sse` and [`duplex`], responses and resumable streams; [`refusal`]: refusals by the gateway
//!   itself;
//! - `session`: the sessions of legacy clients and their owners;
//! - `interaction`: the client of a running call, requests for input in each era, and suspended calls;
//! - `tasks`: calls that continue after their response: here, at another gateway, or at an upstream server;
//! - `notify`: notifications of calls, progress, and changes.

mod call;
mod convert;
mod describe;
mod interaction;
mod methods;
mod modern;
mod notify;
mod pages;
mod session;
mod tasks;
mod transport;

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};
pub use toolyard_core::{CacheHint, CacheScope};
use toolyard_core::{Caller, Gateway, Object};
use toolyard_net::budget::ByteBudget;

use crate::wire::{ProtocolEra, RequestId, RpcError};
use describe::ServerDescription;
use interaction::request_client::{AskQuestion, RequestClient};
use interaction::suspended_calls::SuspendedCalls;
use interaction::ticket::TicketIssuer;
use session::legacy_client::LegacyClient;
use tasks::TaskTable;

pub use session::SessionLimits;
pub use session::owner::{owner_of, owner_of_request};
pub use transport::{duplex, http, refusal};

/// The description of the server.
#[derive(Debug, Clone, Default)]
pub struct ServerInfo {
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
    /// The display name.
    pub title: Option<String>,
    /// Instructions for the model.
    pub instructions: Option<String>,
}

/// The offered features. Methods of other features are unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OfferedFeatures {
    /// Tools.
    pub tools: bool,
    /// Prompts.
    pub prompts: bool,
    /// Resources, their templates, and subscriptions.
    pub resources: bool,
    /// Completion of arguments.
    pub completions: bool,
    /// Log messages of running calls.
    pub logging: bool,
    /// Calls that continue as tasks.
    pub tasks: TaskOffer,
}

/// The calls that may continue as tasks, for clients with the extension `io.modelcontextprotocol/tasks`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TaskOffer {
    /// No calls.
    #[default]
    Never,
    /// Calls of tools with declared `execution.taskSupport`, also when they ask for input.
    Declared,
    /// Long calls of any tool. Tasks of upstream servers are passed on.
    Any,
}

/// One of several gateways that serve the same clients.
#[derive(Clone)]
pub struct ClusterMember {
    /// Address of this gateway for the others, such as `http://10.0.0.5:8080`.
    pub address: Arc<str>,
    /// Key shared by all gateways, for sealed state.
    pub key: [u8; 32],
}

impl fmt::Debug for ClusterMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterMember").field("address", &self.address).finish_non_exhaustive()
    }
}

/// The limits of clients. The defaults are those of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrontendLimits {
    /// Maximum number of queued notifications per client; further ones are dropped.
    pub max_queued_notices: usize,
    /// Number of entries on a page of a list.
    pub list_page_size: usize,
    /// Time without progress after which a client that wants progress gets a heartbeat.
    pub heartbeat: Duration,
    /// Maximum number of calls that wait for input of a modern client. Further calls fail.
    pub suspended_calls: usize,
    /// Maximum time that a call waits for input of its client.
    pub ask_timeout: Duration,
    /// Maximum number of tasks, running or finished.
    pub tasks: usize,
    /// Time from its creation after which a task is dropped.
    pub task_ttl: Duration,
    /// Minimum time of a call that continues as a task; a shorter one is answered.
    pub task_after: Duration,
    /// Poll interval that clients are told.
    pub task_poll_interval: Duration,
    /// Maximum size of a task result from another gateway, in bytes.
    pub max_response_bytes: usize,
}

impl Default for FrontendLimits {
    fn default() -> Self {
        Self {
            max_queued_notices: 256,
            list_page_size: 1000,
            heartbeat: Duration::from_secs(20),
            suspended_calls: 1000,
            ask_timeout: Duration::from_secs(600),
            tasks: 1000,
            task_ttl: Duration::from_secs(3600),
            task_after: Duration::from_secs(15),
            task_poll_interval: Duration::from_secs(1),
            max_response_bytes: 64 << 20,
        }
    }
}

/// The options of a frontend.
#[derive(Debug, Clone, Default)]
pub struct FrontendOptions {
    /// Description of the server.
    pub info: ServerInfo,
    /// Offered features.
    pub offers: OfferedFeatures,
    /// Cache hint of lists; handlers may set a shorter one.
    pub cache: CacheHint,
    /// Limits of clients.
    pub limits: FrontendLimits,
    /// The cluster that this gateway is a member of; `None` for a single gateway.
    pub cluster: Option<ClusterMember>,
    /// Memory budget of large and of queued messages.
    pub budget: ByteBudget,
    /// Instructions that differ between callers, instead of those of `info`.
    pub instructions: Option<InstructionSource>,
}

/// Returns the instructions for the model of a caller.
#[derive(Clone)]
pub struct InstructionSource(pub Arc<InstructionFunction>);

/// Returns the instructions for a caller; `None` if there are none.
pub type InstructionFunction = dyn Fn(&Caller) -> Option<String> + Send + Sync;

impl fmt::Debug for InstructionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InstructionSource")
    }
}

/// The principal of an HTTP request. The authentication layer puts it into the request extensions; calls, suspended
/// calls and tasks are bound to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpPrincipal(pub Arc<str>);

/// An MCP server over a gateway, independent of the transport.
pub struct McpFrontend {
    gateway: Arc<Gateway>,
    offers: OfferedFeatures,
    limits: FrontendLimits,
    budget: ByteBudget,
    description: ServerDescription,
    tickets: Arc<TicketIssuer>,
    suspended: Arc<SuspendedCalls>,
    tasks: Arc<TaskTable>,
    /// True once streams have to end.
    stopping: watch::Receiver<bool>,
}

/// A parsed request.
#[derive(Debug)]
pub(crate) struct McpRequest {
    pub(crate) id: RequestId,
    pub(crate) method: String,
    pub(crate) params: Object,
    pub(crate) meta: Object,
}

/// The context of a request: its sender, and how it is answered.
struct RequestContext {
    era: ProtocolEra,
    caller: Caller,
    /// The head of the HTTP request, if there is one.
    origin: Option<Arc<dyn Any + Send + Sync>>,
    client: Arc<RequestClient>,
    /// State of a legacy client.
    peer: Option<Arc<LegacyClient>>,
    /// Questions of the call to a modern client.
    questions: Option<mpsc::Receiver<AskQuestion>>,
}

/// A result in pieces, or an error.
pub(crate) type McpAnswer = Result<Vec<Bytes>, RpcError>;

impl McpFrontend {
    /// Creates a frontend of `gateway`. Streams of changes end once `stopping` is true.
    #[must_use]
    pub fn new(gateway: Arc<Gateway>, options: FrontendOptions, stopping: watch::Receiver<bool>) -> Self {
        let FrontendOptions { info, offers, cache, limits, cluster, budget, instructions } = options;
        let tickets = Arc::new(TicketIssuer::new(cluster));
        Self {
            gateway,
            offers,
            limits,
            budget,
            description: ServerDescription::new(&info, offers, cache, instructions),
            suspended: Arc::new(SuspendedCalls::new(limits, tickets.clone())),
            tasks: Arc::new(TaskTable::new(limits, tickets.clone())),
            tickets,
            stopping,
        }
    }

    /// Ends the calls without an open request: tasks, and suspended calls. To be called once no request can come any
    /// more. When it returns, observers of calls have been notified of their end.
    pub async fn stop(&self) {
        self.tasks.stop().await;
        self.suspended.stop().await;
    }
}
