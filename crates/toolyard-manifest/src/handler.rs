//! A handler: one entry of a `ToolRegistry`, from which the gateway builds a backend.

mod auth;
mod function;
mod grpc;
mod http;
mod mcp;
mod names;
mod openapi;
mod retry;
mod secrets;

use std::time::Duration;

use toolyard_core::{access::Price, overrides::Chunking};

pub use self::{
    auth::{Auth, AuthScheme, Credential, Secret},
    function::{CortexOneHandler, FunctionHandler, FunctionSource},
    grpc::{GrpcHandler, GrpcRetry, Tls},
    http::{HttpHandler, HttpRetry, Mapping, StaticBody, ToolDefinition, Url},
    mcp::{Args, Env, Lane, McpHandler, McpHttp, McpHttpStyle, McpTransport, ToolFilter},
    names::{Argument, Change, Override, Prefix},
    openapi::{OAuthClient, OpenApiHandler, OpenApiSpec, OperationFilter, SchemeCredential},
    retry::RetryPolicy,
};

use crate::{forms::HandlerName, process::Builtins};

/// What nothing is tried again by.
const ONCE: RetryPolicy = RetryPolicy::attempts(1);

/// How long a call of a built-in tool may take: a script has up to five minutes, and its packages may have to be installed.
const BUILTIN_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Where tools come from.
#[derive(Clone, Debug, PartialEq)]
pub struct Handler {
    /// Unique among the handlers of all registries.
    pub name: HandlerName,
    /// The name of the registry that declares it.
    pub registry: String,
    /// How long one attempt of a call may take; 30 s unless the handler says otherwise.
    pub timeout: Duration,
    /// `prefix`: when its name stands before those of its tools.
    pub prefix: Prefix,
    /// `overrides`: what is changed about its tools, by the names that its server has for them.
    pub overrides: Vec<(String, Override)>,
    /// `price`: what a call costs of those of its tools that have no price of their own. Where it is not said, a hosted function
    /// has its own, and all else costs nothing.
    pub price: Option<Price>,
    /// `displayName`: what people call its server. None: by its name.
    pub display_name: Option<String>,
    /// `description`: what its server is for, as a summary for those who look for one. None: it is written from its tools.
    pub description: Option<String>,
    /// `chunk` and `chunkThreshold`: what becomes of large results of its tools, where their overrides do not say.
    pub chunking: Chunking,
    /// `probe` of its registry: how a server that hangs is found. `None`: it is not.
    pub probe: Option<Probe>,
    /// How to reach it.
    pub kind: HandlerKind,
    /// What its references stood for: see [`Handler::secrets`].
    pub from_outside: Vec<Secret>,
}

impl Handler {
    /// The name of the handler that is the gateway itself, which no other has.
    pub const BUILTINS: &str = "builtins";

    /// The handler that is the gateway itself.
    pub(crate) fn of_builtins(builtins: Builtins) -> Option<Self> {
        Some(Self {
            name: HandlerName::parse(Self::BUILTINS).ok()?,
            registry: Self::BUILTINS.to_owned(),
            timeout: BUILTIN_TIMEOUT,
            prefix: Prefix::default(),
            overrides: Vec::new(),
            price: None,
            display_name: None,
            description: None,
            chunking: Chunking::default(),
            probe: None,
            kind: HandlerKind::Builtins(Box::new(builtins)),
            from_outside: Vec::new(),
        })
    }
}

/// How servers that are connected and silent are asked whether they are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// `interval`: how long one is silent before it is asked, and then asked again. 60 s.
    pub interval: Duration,
    /// `timeout`: how long it may take to answer. 5 s.
    pub timeout: Duration,
}

impl Default for Probe {
    fn default() -> Self {
        Self { interval: Duration::from_secs(60), timeout: Duration::from_secs(5) }
    }
}

/// What kind of server is behind a handler.
#[derive(Clone, Debug, PartialEq)]
pub enum HandlerKind {
    /// An MCP server, which tells by itself which tools it has.
    Mcp(Box<McpHandler>),
    /// An HTTP endpoint that is one tool.
    Http(Box<HttpHandler>),
    /// A gRPC service that is one tool.
    Grpc(Box<GrpcHandler>),
    /// A service with a description of its operations, which are its tools.
    OpenApi(Box<OpenApiHandler>),
    /// The gateway itself. No registry declares it: `builtins` of the process does.
    Builtins(Box<Builtins>),
    /// A function that this gateway hosts: an MCP server, or one tool.
    Function(Box<FunctionHandler>),
    /// The same on the `CortexOne` platform.
    CortexOne(Box<CortexOneHandler>),
}

impl HandlerKind {
    /// What the manifest calls it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Mcp(_) => "mcp",
            Self::Http(_) => "http",
            Self::Grpc(_) => "grpc",
            Self::OpenApi(_) => "openapi",
            Self::Builtins(_) => "builtins",
            Self::Function(_) => "function",
            Self::CortexOne(_) => "cortexone",
        }
    }

    /// Where its calls go, for people: a URL without its query, or `stdio://` and a command without its arguments.
    fn endpoint(&self) -> String {
        match self {
            Self::Mcp(mcp) => match &mcp.transport {
                McpTransport::Http(http) => http.endpoint.shown(),
                McpTransport::Stdio { command, .. } => format!("stdio://{command}"),
            },
            Self::Http(http) => match &http.url {
                Url::Fixed(endpoint) => endpoint.shown(),
                Url::Template(template) => template.shown().to_owned(),
            },
            Self::Grpc(grpc) => grpc.endpoint.to_string(),
            Self::OpenApi(openapi) => match &openapi.base_url {
                Some(base_url) => base_url.shown(),
                None => openapi.spec.shown(),
            },
            Self::Builtins(_) => "the gateway itself".to_owned(),
            Self::Function(function) => function.source.shown(),
            Self::CortexOne(function) => function.url(),
        }
    }

    /// How often a call is tried, and after which waits.
    #[must_use]
    pub const fn retry(&self) -> &RetryPolicy {
        match self {
            Self::Mcp(mcp) => &mcp.retry,
            Self::Http(http) => &http.retry.policy,
            Self::Grpc(grpc) => &grpc.retry.policy,
            Self::OpenApi(openapi) => &openapi.retry.policy,
            Self::Builtins(_) => &ONCE,
            Self::Function(function) => &function.retry,
            Self::CortexOne(function) => &function.retry.policy,
        }
    }
}
