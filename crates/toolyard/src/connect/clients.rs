//! The clients: where each keeps its servers, and how it writes one.

use std::path::PathBuf;

use clap::ValueEnum;
use http::Uri;
use serde_json::{Value, json};

use crate::BadInput;

/// A client whose file we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Client {
    /// Claude Desktop, for all that its user does
    Claude,
    /// Claude Code, for the project in this folder: `.mcp.json`
    ClaudeCode,
    /// Cursor, for all that its user does
    Cursor,
    /// VS Code, for the project in this folder: `.vscode/mcp.json`
    Vscode,
}

/// How a client reaches the gateway.
pub(super) enum Way {
    /// It runs already.
    Url {
        /// Its MCP endpoint.
        url: Uri,
        /// The variable of the client's environment that has the key.
        key_env: Option<String>,
    },
    /// The client starts one for itself.
    Stdio {
        /// Our own program.
        program: PathBuf,
        /// Its manifests.
        files: Vec<PathBuf>,
    },
}

impl Client {
    /// The file, where its client has it by default; `None` without a home.
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

    /// The member of the file that has the servers.
    pub(super) const fn section(self) -> &'static str {
        match self {
            Self::Vscode => "servers",
            Self::Claude | Self::ClaudeCode | Self::Cursor => "mcpServers",
        }
    }

    /// The entry of a server.
    ///
    /// # Errors
    /// When the client cannot reach one in this way.
    pub(super) fn entry(self, way: &Way) -> Result<Value, BadInput> {
        match way {
            Way::Stdio { program, files } => Ok(self.program(program, files)),
            Way::Url { .. } if self == Self::Claude => Err(BadInput(
                "Claude Desktop starts its servers and connects to none: use `--stdio -f FILE`".to_owned(),
            )),
            Way::Url { url, key_env } => Ok(self.remote(url, key_env.as_deref())),
        }
    }

    fn program(self, program: &std::path::Path, files: &[PathBuf]) -> Value {
        let files = files.iter().flat_map(|file| ["-f".to_owned(), file.display().to_string()]);
        let args: Vec<_> = std::iter::once("stdio".to_owned()).chain(files).collect();
        let mut entry = json!({"command": program, "args": args});
        if self.says_type() {
            entry = json!({"type": "stdio", "command": program, "args": args});
        }
        entry
    }

    fn remote(self, url: &Uri, key_env: Option<&str>) -> Value {
        let mut entry = if self.says_type() { json!({"type": "http"}) } else { json!({}) };
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

    /// Whether its entries name their transport. The others tell it by the members.
    const fn says_type(self) -> bool {
        matches!(self, Self::ClaudeCode | Self::Vscode)
    }
}
