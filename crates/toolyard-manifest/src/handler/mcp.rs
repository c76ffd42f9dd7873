//! A handler of the type `mcp`: a server that tells by itself which tools it has.

use std::{fmt, path::PathBuf};

use http::HeaderName;

use super::{Auth, RetryPolicy, Secret};
use crate::forms::Endpoint;

/// An MCP server, and which of its tools are served.
#[derive(Clone, Debug, PartialEq)]
pub struct McpHandler {
    /// How messages reach it.
    pub transport: McpTransport,
    /// `lane`: whose its connections are. Unset, clients share one, but for those that can be asked something by a
    /// server of the era in which questions do not say which call they belong to.
    pub lane: Option<Lane>,
    /// `toolFilter`: all its tools unless set.
    pub filter: ToolFilter,
    /// `retryPolicy`, or what `retries` stands for: calls that did not reach the server, or whose connection
    /// broke before it had said anything.
    pub retry: RetryPolicy,
}

/// Whose the connections to a server are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Everybody's: there is one. No client is asked anything by a server of the old era.
    Shared,
    /// One client's each, so that what the server remembers is that client's.
    Client,
}

/// How messages reach an MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpTransport {
    /// Over HTTP to a server that runs by itself.
    Http(McpHttp),
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

/// A server that is reached over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpHttp {
    /// `transport`: what is tried first. A server that speaks the other one is found all the same.
    pub style: McpHttpStyle,
    /// Where it listens.
    pub endpoint: Endpoint,
    /// `headers`: what every request carries beside what the protocol says.
    pub headers: Vec<(HeaderName, Secret)>,
    /// `auth` of the handler, or `authType` and what belongs to it. Goes into every request, and takes the place of
    /// an `Authorization` among the headers.
    pub auth: Option<Auth>,
}

/// The two ways in which MCP uses HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpHttpStyle {
    /// One endpoint for everything.
    Streamable,
    /// The older one: a stream for what the server says, and another endpoint for what it is told.
    Sse,
}

/// Which tools of a server are served. Names are compared exactly, as everywhere in MCP: case matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// `allowlist`: these and no others, whatever the other list says. Empty, it allows all.
    pub allow: Vec<String>,
    /// `blocklist`: all but these.
    pub block: Vec<String>,
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
