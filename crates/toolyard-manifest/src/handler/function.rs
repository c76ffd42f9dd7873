//! Handlers of the types `function` and `cortexone`: functions that this gateway hosts, and those of the platform.

use std::path::PathBuf;

use super::{Credential, HttpRetry, RetryPolicy, ToolDefinition};
use crate::forms::Endpoint;

/// A function that runs here.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionHandler {
    /// `functionConfig`.
    pub source: FunctionSource,
    /// `tool`: the one tool that it is. None: it is an MCP server, and tells by itself which tools it has.
    pub tool: Option<ToolDefinition>,
    /// `retryPolicy`, or what `retries` stands for: calls that did not reach it, or broke off.
    pub retry: RetryPolicy,
}

/// Where the code of a function is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FunctionSource {
    /// It was published to this gateway.
    Published {
        /// `id`.
        id: String,
        /// `version`: a whole version, the newest of several, or the draft. `latest`.
        version: String,
    },
    /// `path`: in a folder, where its author works on it.
    Folder(PathBuf),
}

/// A function that runs on the `CortexOne` platform.
#[derive(Clone, Debug, PartialEq)]
pub struct CortexOneHandler {
    /// `id`.
    pub id: String,
    /// `version`.
    pub version: String,
    /// `baseURL`: where the platform is, without a query. <https://cortexconnect.rival.io>
    pub base_url: Endpoint,
    /// `apiKey` or `apiKeySecretRef`: what calls are paid with.
    pub api_key: Credential,
    /// `tool`: the one tool that it is. None: it is an MCP server, and tells by itself which tools it has.
    pub tool: Option<ToolDefinition>,
    /// `retryPolicy`, or what `retries` stands for.
    pub retry: HttpRetry,
}

// === impl FunctionSource ===

impl FunctionSource {
    /// Where it is, for people.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Published { id, version } => format!("function://{id}/{version}"),
            Self::Folder(path) => format!("file:{}", path.display()),
        }
    }
}

// === impl CortexOneHandler ===

impl CortexOneHandler {
    /// The URL that everything about this version of the function begins with.
    #[must_use]
    pub fn url(&self) -> String {
        let base = self.base_url.uri().to_string();
        format!("{}/api/v1/functions/{}/{}", base.trim_end_matches('/'), self.id, self.version)
    }
}
