//! A handler of the type `mcp`: a server that lists its tools itself.

use std::{fmt, path::PathBuf};

use http::HeaderName;

use super::{RequestAuth, RetryPolicy, SecretString};
use crate::formats::EndpointUrl;

/// An MCP server and the filter of its tools.
#[derive(Clone, Debug, PartialEq)]
pub struct McpHandler {
    /// The transport to the server.
    pub transport: McpTransport,
    /// `lane`: the sharing of its connections. Default: clients share one, except for clients that accept server
    /// requests when the server's protocol revision does not relate them to a call.
    pub lane: Option<ConnectionSharing>,
    /// `toolFilter`. Default: all tools.
    pub filter: McpToolFilter,
    /// `retryPolicy` or `retries`: the policy for calls that did not reach the server, or whose connection broke before
    /// any response.
    pub retry: RetryPolicy,
}

/// The sharing of connections to a server between clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionSharing {
    /// One connection for all clients. Requests of a server with a session-based protocol revision reach no client.
    Shared,
    /// A dedicated connection for each client, so that the state of the server belongs to that client.
    Client,
}

/// The transport to an MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpTransport {
    /// HTTP to a running server.
    Http(McpHttp),
    /// The standard streams of a process that the gateway starts.
    Stdio {
        /// The program: a path, or a name that is looked up in `PATH`.
        command: String,
        /// The arguments of the program.
        args: CommandArgs,
        /// The working directory. Default: that of the gateway.
        work_dir: Option<PathBuf>,
        /// Additional environment variables.
        env: CommandEnv,
    },
}

/// A server that is reached over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpHttp {
    /// `transport`: the transport to try first. A server with the other one is detected.
    pub style: McpHttpStyle,
    /// The URL of the server.
    pub endpoint: EndpointUrl,
    /// `headers`: headers of every request, in addition to those of the protocol.
    pub headers: Vec<(HeaderName, SecretString)>,
    /// `auth` of the handler, or `authType` and the related fields. Applies to every request and replaces an
    /// `Authorization` among the headers.
    pub auth: Option<RequestAuth>,
}

/// The two HTTP transports of MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpHttpStyle {
    /// Streamable HTTP: one endpoint.
    Streamable,
    /// HTTP+SSE, the older one: a stream for server messages, and another endpoint for client messages.
    Sse,
}

/// The filter of a server's tools. Names are compared exactly, as everywhere in MCP: case matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McpToolFilter {
    /// `allowlist`: only these, regardless of the block list. An empty list allows all.
    pub allow: Vec<String>,
    /// `blocklist`: all but these.
    pub block: Vec<String>,
}

/// The arguments of a command. They may contain tokens, so `Debug` shows only their number.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CommandArgs(Vec<String>);

/// Environment variables of a process. Their values may be secret, so `Debug` shows only the names.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CommandEnv(Vec<(String, String)>);

// === impl Args ===

impl CommandArgs {
    /// The arguments, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl FromIterator<String> for CommandArgs {
    fn from_iter<I: IntoIterator<Item = String>>(args: I) -> Self {
        Self(args.into_iter().collect())
    }
}

impl fmt::Debug for CommandArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommandArgs({} hidden)", self.0.len())
    }
}

// === impl Env ===

impl CommandEnv {
    /// Names and values, in the order of the document.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl FromIterator<(String, String)> for CommandEnv {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        Self(variables.into_iter().collect())
    }
}

impl fmt::Debug for CommandEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CommandEnv")?;
        f.debug_list().entries(self.iter().map(|(name, _)| name)).finish()
    }
}
