//! Handlers of the types `function` and `cortexone`: functions of this gateway, and of the `CortexOne` platform.

use std::path::PathBuf;

use super::{CredentialSource, HttpRetry, RetryPolicy, ToolDefinition};
use crate::formats::EndpointUrl;

/// A function that this gateway hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionHandler {
    /// `functionConfig`: the source of its code.
    pub source: FunctionSource,
    /// `tool`: the one tool that it implements. `None`: it is an MCP server, which lists its tools itself.
    pub tool: Option<ToolDefinition>,
    /// `retryPolicy` or `retries`: the policy for calls that did not reach it or broke off.
    pub retry: RetryPolicy,
}

/// The source of a function's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FunctionSource {
    /// A function that was published to this gateway.
    Published {
        /// `id`.
        id: String,
        /// `version`: a full version, a prefix that selects the newest one, or `draft`. Default: `latest`.
        version: String,
    },
    /// `path`: a folder with code under development.
    Folder(PathBuf),
}

/// A function that runs on the `CortexOne` platform.
#[derive(Clone, Debug, PartialEq)]
pub struct CortexOneHandler {
    /// `id`.
    pub id: String,
    /// `version`.
    pub version: String,
    /// `baseURL`: the base URL of the platform, without a query. Default: <https://cortexconnect.rival.io>
    pub base_url: EndpointUrl,
    /// `apiKey` or `apiKeySecretRef`: the key that pays for calls.
    pub api_key: CredentialSource,
    /// `tool`: the one tool that it implements. `None`: it is an MCP server, which lists its tools itself.
    pub tool: Option<ToolDefinition>,
    /// `retryPolicy` or `retries`.
    pub retry: HttpRetry,
}

// === impl FunctionSource ===

impl FunctionSource {
    /// The location of the code, for display.
    pub(super) fn display_location(&self) -> String {
        match self {
            Self::Published { id, version } => format!("function://{id}/{version}"),
            Self::Folder(path) => format!("file:{}", path.display()),
        }
    }
}

// === impl CortexOneHandler ===

impl CortexOneHandler {
    /// The base URL of this version of the function.
    #[must_use]
    pub fn url(&self) -> String {
        let base = self.base_url.uri().to_string();
        format!("{}/api/v1/functions/{}/{}", base.trim_end_matches('/'), self.id, self.version)
    }
}
