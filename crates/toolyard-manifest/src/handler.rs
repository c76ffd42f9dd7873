//! A handler: one entry of a `ToolRegistry`, from which the gateway builds a backend.

mod grpc;
mod http;
mod names;
mod openapi;

use std::{fmt, path::PathBuf, time::Duration};

pub use self::names::{Argument, Change, Override, Prefix};
pub use self::{
    grpc::{GrpcHandler, GrpcRetryPolicy, Tls},
    http::{
        Auth, AuthScheme, Credential, HttpHandler, Mapping, RetryPolicy, Secret, StaticBody, ToolDefinition,
        Url,
    },
    openapi::OpenApiHandler,
};

use crate::forms::{Endpoint, HandlerName};

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
    /// How to reach it.
    pub kind: HandlerKind,
}

/// What kind of server is behind a handler.
#[derive(Clone, Debug, PartialEq)]
pub enum HandlerKind {
    /// An MCP server, which tells by itself which tools it has.
    Mcp(McpTransport),
    /// An HTTP endpoint that is one tool.
    Http(Box<HttpHandler>),
    /// A gRPC service that is one tool.
    Grpc(Box<GrpcHandler>),
    /// A service with a description of its operations, which are its tools.
    OpenApi(Box<OpenApiHandler>),
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
        }
    }

    /// Where its calls go, for people: a URL without its query, or `stdio://` and a command without its arguments.
    #[must_use]
    pub fn endpoint(&self) -> String {
        match self {
            Self::Mcp(McpTransport::StreamableHttp { endpoint }) => endpoint.shown(),
            Self::Mcp(McpTransport::Stdio { command, .. }) => format!("stdio://{command}"),
            Self::Http(http) => match &http.url {
                Url::Fixed(endpoint) => endpoint.shown(),
                Url::Template(template) => template.shown().to_owned(),
            },
            Self::Grpc(grpc) => grpc.endpoint.to_string(),
            Self::OpenApi(openapi) => openapi.base_url.as_ref().unwrap_or(&openapi.spec_url).shown(),
        }
    }
}

/// How messages reach an MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpTransport {
    /// Over HTTP to a server that runs by itself.
    StreamableHttp {
        /// Where it listens.
        endpoint: Endpoint,
    },
    /// Over the standard streams of a process that the gateway starts.
    Stdio {
        /// The program: a path, or a name that is looked up in `PATH`.
        command: String,
        /// Its arguments.
        args: Args,
        /// Where it runs; the gateway's own folder unless set.
        work_dir: Option<PathBuf>,
        /// Variables that it gets beside those it inherits.
        env: Env,
    },
}

/// The arguments of a command. They may hold tokens, so `Debug` shows only how many there are.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Args(Vec<String>);

/// Variables of a process's environment. Their values may be secret, so `Debug` shows only the names.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Env(Vec<(String, String)>);

// === impl Args ===

impl Args {
    /// The arguments, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl FromIterator<String> for Args {
    fn from_iter<I: IntoIterator<Item = String>>(args: I) -> Self {
        Self(args.into_iter().collect())
    }
}

impl fmt::Debug for Args {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Args({} hidden)", self.0.len())
    }
}

// === impl Env ===

impl Env {
    /// Names and values, in the order of the document.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl FromIterator<(String, String)> for Env {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        Self(variables.into_iter().collect())
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Env")?;
        f.debug_list().entries(self.iter().map(|(name, _)| name)).finish()
    }
}
