//! The configuration files of MCP clients: paths and the form of their entries.

use std::path::PathBuf;

use clap::ValueEnum;
use http::Uri;
use serde_json::{Value, json};

use crate::BadInput;

/// A supported MCP client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum McpClient {
    /// Claude Desktop, for all projects of the user
    Claude,
    /// Claude Code, for the project in this directory (`.mcp.json`)
    ClaudeCode,
    /// Cursor, for all projects of the user
    Cursor,
    /// VS Code, for the project in this directory (`.vscode/mcp.json`)
    Vscode,
}

/// The connection from a client to the gateway.
pub(super) enum ConnectMethod {
    /// The URL of a running gateway.
    Url {
        /// MCP endpoint of the gateway.
        url: Uri,
        /// Environment variable of the client that holds the API key.
        key_env: Option<String>,
    },
    /// A gateway that the client starts.
    Stdio {
        /// Path of the toolyard program.
        program: PathBuf,
        /// Manifests of the gateway.
        files: Vec<PathBuf>,
    },
}

impl McpClient {
    /// Returns the default path of the configuration file, or `None` without a home directory.
    pub(super) fn path(self) -> Option<PathBuf> {
        let home = || std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
        Some(match self {
            Self::Claude if cfg!(target_os = "macos") => {
                home()?.join("Library/Application Support/Claude/claude_desktop_config.json")
            }
            Self::Claude => home()?.join(".config/Claude/claude_desktop_config.json"),
            Self::ClaudeCode => ".mcp.json".into(),
            Self::Cursor => home()?.join(".cursor/mcp.json"),
            Self::Vscode => ".vscode/mcp.json".into(),
        })
    }

    /// Returns the member of the file that contains the servers.
    pub(super) const fn section(self) -> &'static str {
        match self {
            Self::Vscode => "servers",
            Self::Claude | Self::ClaudeCode | Self::Cursor => "mcpServers",
        }
    }

    /// Returns the entry for the gateway.
    ///
    /// # Errors
    /// Fails if the client does not support the connection.
    pub(super) fn entry(self, way: &ConnectMethod) -> Result<Value, BadInput> {
        match way {
            ConnectMethod::Stdio { program, files } => Ok(self.stdio_entry(program, files)),
            ConnectMethod::Url { .. } if self == Self::Claude => {
                Err(BadInput("Claude Desktop only starts local servers; use `--stdio -f FILE`".to_owned()))
            }
            ConnectMethod::Url { url, key_env } => Ok(self.http_entry(url, key_env.as_deref())),
        }
    }

    fn stdio_entry(self, program: &std::path::Path, files: &[PathBuf]) -> Value {
        let files = files.iter().flat_map(|file| ["-f".to_owned(), file.display().to_string()]);
        let args: Vec<_> = std::iter::once("stdio".to_owned()).chain(files).collect();
        let mut entry = json!({"command": program, "args": args});
        if self.has_type_member() {
            entry = json!({"type": "stdio", "command": program, "args": args});
        }
        entry
    }

    fn http_entry(self, url: &Uri, key_env: Option<&str>) -> Value {
        let mut entry = if self.has_type_member() { json!({"type": "http"}) } else { json!({}) };
        entry["url"] = json!(url.to_string());
        if let Some(name) = key_env {
            let reference = match self {
                Self::Claude | Self::ClaudeCode => format!("${{{name}}}"),
                Self::Cursor | Self::Vscode => format!("${{env:{name}}}"),
            };
            entry["headers"] = json!({"Authorization": format!("Bearer {reference}")});
        }
        entry
    }

    /// True if the entries have a `type`. Other clients infer the transport from the other members.
    const fn has_type_member(self) -> bool {
        matches!(self, Self::ClaudeCode | Self::Vscode)
    }
}
