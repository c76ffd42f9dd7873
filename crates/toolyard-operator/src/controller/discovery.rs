//! Discovery of the tools of a server.

use futures_util::future::BoxFuture;
use serde_json::Value;

/// Lists the tools of servers. The composition root implements it, since this crate does not know MCP.
pub trait ToolDiscovery: Send + Sync {
    /// Lists the tools of the server at an endpoint without a path, such as `http://a.b.svc.cluster.local:8080`. Callers
    /// set a time limit by dropping the future.
    ///
    /// # Errors
    /// If the server does not respond, or not as MCP requires.
    fn tools<'a>(&'a self, endpoint: &'a str) -> BoxFuture<'a, Result<Vec<ListedTool>, DiscoveryError>>;
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedTool {
    /// Name.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// JSON Schema of the arguments, unchanged.
    pub input_schema: Value,
}

/// A reason why the tools of a server are unknown. Safe for a status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DiscoveryError(pub String);
