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

use toolyard_core::{access::CallPrice, overrides::ChunkingPolicy};

pub use self::{
    auth::{AuthScheme, CredentialSource, RequestAuth, SecretString},
    function::{CortexOneHandler, FunctionHandler, FunctionSource},
    grpc::{GrpcHandler, GrpcRetry, GrpcTls},
    http::{HttpHandler, HttpRetry, HttpUrl, JmesPathMapping, StaticBody, ToolDefinition},
    mcp::{
        CommandArgs, CommandEnv, ConnectionSharing, McpHandler, McpHttp, McpHttpStyle, McpToolFilter,
        McpTransport,
    },
    names::{ArgumentOverride, DefinitionPin, PrefixMode, ToolModification, ToolOverride},
    openapi::{OAuthClient, OpenApiHandler, OpenApiSpec, OperationFilter, SchemeCredential},
    retry::RetryPolicy,
};

use crate::{formats::HandlerName, process::BuiltinSettings};

/// The retry policy of handlers that are never retried.
const NO_RETRY: RetryPolicy = RetryPolicy::attempts(1);

/// Time-out of a call of a built-in tool: a script may run for five minutes, after the installation of its packages.
const BUILTIN_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// A handler of a manifest: a source of tools.
#[derive(Clone, Debug, PartialEq)]
pub struct HandlerConfig {
    /// Name, unique among the handlers of all registries.
    pub name: HandlerName,
    /// Name of the registry that declares it.
    pub registry: String,
    /// Time limit of one attempt of a call. Default: 30 s.
    pub timeout: Duration,
    /// `prefix`: when tool names get the name of the handler as a prefix.
    pub prefix: PrefixMode,
    /// `pin`: the treatment of tools whose definitions change.
    pub pin: DefinitionPin,
    /// `overrides`: changes of its tools, by their upstream names.
    pub overrides: Vec<(String, ToolOverride)>,
    /// `price`: the price of a call of tools without a price of their own. Default: the price of the hosted function,
    /// else free.
    pub price: Option<CallPrice>,
    /// `displayName`: the display name of its server. Default: the name.
    pub display_name: Option<String>,
    /// `description`: a summary of its server, for searches. Default: one is generated from its tools.
    pub description: Option<String>,
    /// `chunk` and `chunkThreshold`: the treatment of large results, unless an override sets it.
    pub chunking: ChunkingPolicy,
    /// `renameArguments`: publish arguments whose names the interfaces of models refuse under others. Default: `true`,
    /// except for the type `mcp`.
    pub rename_arguments: Option<bool>,
    /// `probe` of its registry: liveness checks of its server. `None` disables them.
    pub probe: Option<ProbeSettings>,
    /// The type of its server and how to reach it.
    pub kind: HandlerKind,
    /// Values of its references: see [`HandlerConfig::secrets`].
    pub reference_values: Vec<SecretString>,
}

impl HandlerConfig {
    /// The reserved name of the handler of the built-in tools.
    pub const BUILTINS: &str = "builtins";

    /// Returns the handler of the built-in tools.
    pub(crate) fn for_builtins(builtins: BuiltinSettings) -> Option<Self> {
        Some(Self {
            name: HandlerName::parse(Self::BUILTINS).ok()?,
            registry: Self::BUILTINS.to_owned(),
            timeout: BUILTIN_TIMEOUT,
            prefix: PrefixMode::default(),
            pin: DefinitionPin::default(),
            overrides: Vec::new(),
            price: None,
            display_name: None,
            description: None,
            chunking: ChunkingPolicy::default(),
            rename_arguments: None,
            probe: None,
            kind: HandlerKind::Builtins(Box::new(builtins)),
            reference_values: Vec::new(),
        })
    }
}

/// Liveness checks of servers that are connected and silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeSettings {
    /// `interval`: silence before the first check, and the time between two checks. Default: 60 s.
    pub interval: Duration,
    /// `timeout`: time limit of the answer. Default: 5 s.
    pub timeout: Duration,
}

impl Default for ProbeSettings {
    fn default() -> Self {
        Self { interval: Duration::from_secs(60), timeout: Duration::from_secs(5) }
    }
}

/// The type of the server behind a handler.
#[derive(Clone, Debug, PartialEq)]
pub enum HandlerKind {
    /// An MCP server, which lists its tools itself.
    Mcp(Box<McpHandler>),
    /// An HTTP endpoint that is one tool.
    Http(Box<HttpHandler>),
    /// A gRPC service that is one tool.
    Grpc(Box<GrpcHandler>),
    /// A service with an OpenAPI description, whose operations are tools.
    OpenApi(Box<OpenApiHandler>),
    /// The built-in tools of the gateway. `builtins` of the process declares them, not a registry.
    Builtins(Box<BuiltinSettings>),
    /// A function that this gateway hosts: an MCP server or one tool.
    Function(Box<FunctionHandler>),
    /// A function on the `CortexOne` platform: an MCP server or one tool.
    CortexOne(Box<CortexOneHandler>),
}

impl HandlerKind {
    /// The `type` in the manifest.
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

    /// The target of its calls, for display: a URL without its query, or `stdio://` and a command without its
    /// arguments.
    fn endpoint(&self) -> String {
        match self {
            Self::Mcp(mcp) => match &mcp.transport {
                McpTransport::Http(http) => http.endpoint.display_url(),
                McpTransport::Stdio { command, .. } => format!("stdio://{command}"),
            },
            Self::Http(http) => match &http.url {
                HttpUrl::Fixed(endpoint) => endpoint.display_url(),
                HttpUrl::Template(template) => template.display_url().to_owned(),
            },
            Self::Grpc(grpc) => grpc.endpoint.to_string(),
            Self::OpenApi(openapi) => match &openapi.base_url {
                Some(base_url) => base_url.display_url(),
                None => openapi.spec.display_location(),
            },
            Self::Builtins(_) => "the gateway itself".to_owned(),
            Self::Function(function) => function.source.display_location(),
            Self::CortexOne(function) => function.url(),
        }
    }

    /// The retry policy of its calls.
    #[must_use]
    pub const fn retry(&self) -> &RetryPolicy {
        match self {
            Self::Mcp(mcp) => &mcp.retry,
            Self::Http(http) => &http.retry.policy,
            Self::Grpc(grpc) => &grpc.retry.policy,
            Self::OpenApi(openapi) => &openapi.retry.policy,
            Self::Builtins(_) => &NO_RETRY,
            Self::Function(function) => &function.retry,
            Self::CortexOne(function) => &function.retry.policy,
        }
    }
}
