//! A scripted MCP server on stdio: `scripts/server.py`.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::manifest::stdio_handler;
use crate::peers;
use crate::wait::eventually;

/// A server on stdio and the files that control it.
pub struct ScriptedServer {
    folder: TempDir,
    name: &'static str,
    manner: &'static str,
}

/// Returns the path of a script of the tests.
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(name)
}

impl ScriptedServer {
    /// Creates a well-behaved server.
    pub fn new(name: &'static str) -> Self {
        Self { folder: TempDir::new().unwrap(), name, manner: "good" }
    }

    /// Creates a server with this mode, which is also its name.
    pub fn with_mode(manner: &'static str) -> Self {
        Self { manner, ..Self::new(manner) }
    }

    /// Returns a handler that starts the server.
    #[track_caller]
    pub fn handler(&self) -> Value {
        let args = self.command();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        stdio_handler(self.name, args[0], &args[1..])
    }

    /// Returns a handler that starts the server as the child of a shell.
    #[track_caller]
    pub fn handler_below_shell(&self) -> Value {
        self.handler_from_script("SERVER; exit $?")
    }

    /// Returns a handler that runs a shell script in which `SERVER` is the command of the server.
    #[track_caller]
    pub fn handler_from_script(&self, script: &str) -> Value {
        let server = format!("'{}'", self.command().join("' '"));
        stdio_handler(self.name, "sh", &["-c", &script.replace("SERVER", &server)])
    }

    #[track_caller]
    fn command(&self) -> Vec<String> {
        let path = |path: PathBuf| path.to_str().unwrap().to_owned();
        let folder = self.folder.path().to_owned();
        vec![
            path(peers::peer("python/bin/python")),
            path(script("server.py")),
            path(folder),
            self.manner.into(),
        ]
    }

    /// Returns the messages that the server has received.
    #[track_caller]
    pub fn received(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("received")).unwrap_or_default();
        // The last line may be incomplete.
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits until the server has received a message with this method.
    #[track_caller]
    pub fn wait_for(&self, method: &str) -> Value {
        eventually(&format!("{method} at the server"), || {
            self.received().into_iter().find(|message| message["method"] == method)
        })
    }

    /// Lets the tool `wait` return.
    pub fn open_gate(&self) {
        std::fs::write(self.folder.path().join("gate"), "").unwrap();
    }
}
