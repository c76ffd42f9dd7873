//! Servers that do what a test wants: `scripts/server.py`.

use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use super::gateway::stdio;
use super::{eventually, peers};

/// A server on stdio, and the files by which a test talks to it.
pub(crate) struct Scripted {
    folder: TempDir,
    name: &'static str,
    manner: &'static str,
}

/// A script beside the tests.
pub(crate) fn script(name: &str) -> PathBuf {
    peers::root().join("crates/toolyard/tests/it/scripts").join(name)
}

impl Scripted {
    /// A server that does as it should.
    pub(crate) fn new(name: &'static str) -> Self {
        Self { folder: TempDir::new().unwrap(), name, manner: "good" }
    }

    /// A server that has this manner, and is called after it.
    pub(crate) fn with_manner(manner: &'static str) -> Self {
        Self { manner, ..Self::new(manner) }
    }

    /// The handler of a manifest that starts it.
    #[track_caller]
    pub(crate) fn handler(&self) -> Value {
        let args = self.command();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        stdio(self.name, args[0], &args[1..])
    }

    /// The same, as a child of a shell that stays.
    #[track_caller]
    pub(crate) fn handler_in_a_shell(&self) -> Value {
        self.handler_of_a_script("SERVER; exit $?")
    }

    /// The same, started by a script of a shell, in which it is called SERVER.
    #[track_caller]
    pub(crate) fn handler_of_a_script(&self, script: &str) -> Value {
        let server = format!("'{}'", self.command().join("' '"));
        stdio(self.name, "sh", &["-c", &script.replace("SERVER", &server)])
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

    /// What it was told so far.
    #[track_caller]
    pub(crate) fn received(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("received")).unwrap_or_default();
        // The last line may be half written.
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits until it was told something of this method.
    #[track_caller]
    pub(crate) fn wait_for(&self, method: &str) -> Value {
        eventually(&format!("{method} at the server"), || {
            self.received().into_iter().find(|message| message["method"] == method)
        })
    }

    /// Lets the tool `wait` answer.
    pub(crate) fn open_gate(&self) {
        std::fs::write(self.folder.path().join("gate"), "").unwrap();
    }
}
