//! A gateway that serves.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::http::{self, Exchange, Response};
use super::peers;
use super::process::Process;

/// The binary under test, in an environment that has nothing but a search path and a home. What it keeps is in that,
/// too.
#[track_caller]
pub(crate) fn toolyard(home: &Path) -> Command {
    peers::command(env!("CARGO_BIN_EXE_toolyard"), home)
}

/// A gateway that serves until it is dropped.
pub(crate) struct Gateway {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
    pub(crate) folder: TempDir,
}

impl Gateway {
    /// Serves these handlers.
    #[track_caller]
    pub(crate) fn of(handlers: &[Value]) -> Self {
        Self::with(handlers, json!({}))
    }

    /// Serves these handlers, with this `spec` of the process. Unless that says otherwise the gateway waits for
    /// them however long they take: what a test sees is not for a busy machine to decide.
    #[track_caller]
    pub(crate) fn with(handlers: &[Value], process: Value) -> Self {
        let (folder, mut command) = Self::command(handlers, process);
        Self::start(folder, &mut command)
    }

    /// The command of such a gateway, and the folder of its files.
    #[track_caller]
    pub(crate) fn command(handlers: &[Value], mut process: Value) -> (TempDir, Command) {
        for patience in ["firstList", "eraProbe"] {
            let timeout = &mut process["timeouts"][patience];
            if timeout.is_null() {
                *timeout = json!("30s");
            }
        }
        let folder = TempDir::new().unwrap();
        let mut command = toolyard(folder.path());
        command.args(["serve", "-f"]).arg(registry_document(folder.path(), handlers));
        command.arg("-f").arg(process_document(folder.path(), process));
        (folder, command)
    }

    /// Starts `toolyard serve` as the command says, on a free port.
    #[track_caller]
    pub(crate) fn start(folder: TempDir, command: &mut Command) -> Self {
        let process = Process::start(command.args(["--listen", "127.0.0.1:0"]));
        let address = process.stdout.wait_for("the URL", |text| {
            let (_, rest) = text.split_once("://")?;
            rest.split_once("/mcp\n").map(|(address, _)| address.parse().unwrap())
        });
        Self { process, address, folder }
    }

    /// Rewrites the file of its handlers.
    #[track_caller]
    pub(crate) fn edit(&self, handlers: &[Value]) {
        registry_document(self.folder.path(), handlers);
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The answer to the health check; `None` where the connection was closed without any.
    #[track_caller]
    pub(crate) fn health(&self) -> Option<Response> {
        http::open(self.address, "GET /health", &[], "").response()
    }

    /// What the gateway says at a path.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Response {
        let response = http::open(self.address, &format!("GET {path}"), &[], "").response();
        response.expect("the connection was closed without an answer")
    }

    /// A request without a handshake, as operators send it.
    #[track_caller]
    pub(crate) fn ask(&self, method: &str, params: Value) -> Response {
        self.post(&[], &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
    }

    /// A message with further headers.
    #[track_caller]
    pub(crate) fn post(&self, headers: &[(&str, &str)], message: &Value) -> Response {
        self.open(headers, message).response().expect("the connection was closed without an answer")
    }

    /// The same, and the response is left to the caller.
    #[track_caller]
    pub(crate) fn open(&self, headers: &[(&str, &str)], message: &Value) -> Exchange {
        let headers = [&[("Content-Type", "application/json")], headers].concat();
        http::open(self.address, "POST /mcp", &headers, &message.to_string())
    }

    /// Makes a key, for which another one is shown that may; gives its text.
    #[track_caller]
    pub(crate) fn new_key(&self, admin: &str, wanted: Value) -> String {
        let bearer = format!("Bearer {admin}");
        let mut headers = vec![("Content-Type", "application/json")];
        if !admin.is_empty() {
            headers.push(("Authorization", &bearer));
        }
        let made = http::send(self.address, "POST /api/v1/keys", &headers, &wanted.to_string());
        assert_eq!(made.status, 201, "{}", made.body);
        let made: Value = serde_json::from_str(&made.body).unwrap();
        made["key"].as_str().unwrap().to_owned()
    }

    /// The names of all tools, on all pages.
    #[track_caller]
    pub(crate) fn tools(&self) -> Vec<String> {
        let definitions = self.definitions();
        definitions.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// All tools, as they are listed.
    #[track_caller]
    pub(crate) fn definitions(&self) -> Vec<Value> {
        let (mut tools, mut params) = (Vec::new(), json!({}));
        loop {
            let mut page = self.ask("tools/list", params).result();
            tools.append(page["tools"].as_array_mut().unwrap());
            match page.get("nextCursor") {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return tools,
            }
        }
    }

    #[track_caller]
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Response {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// The text that a tool answers.
    #[track_caller]
    pub(crate) fn text(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).result();
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }
}

/// Writes a registry of these handlers; gives its path.
#[track_caller]
pub(crate) fn registry_document(folder: &Path, handlers: &[Value]) -> PathBuf {
    let registry = json!({
        "apiVersion": "omnia.altairalabs.ai/v1alpha1",
        "kind": "ToolRegistry",
        "metadata": {"name": "test"},
        "spec": {"handlers": handlers},
    });
    write(folder.join("registry.json"), &registry)
}

/// Writes a document with this `spec` of the process; gives its path.
#[track_caller]
pub(crate) fn process_document(folder: &Path, spec: Value) -> PathBuf {
    let process = json!({"apiVersion": "toolyard.dev/v1alpha1", "kind": "Toolyard", "spec": spec});
    write(folder.join("process.json"), &process)
}

#[track_caller]
fn write(path: PathBuf, document: &Value) -> PathBuf {
    std::fs::write(&path, document.to_string()).unwrap();
    path
}

/// A handler of a manifest: a program on stdio.
pub(crate) fn stdio(name: &str, command: &str, args: &[&str]) -> Value {
    let config = json!({"transport": "stdio", "command": command, "args": args});
    json!({"name": name, "type": "mcp", "mcpConfig": config})
}

/// A handler of a manifest: a server at a URL.
pub(crate) fn over_http(name: &str, url: &str) -> Value {
    over(name, "streamable-http", url)
}

/// The same with another transport.
pub(crate) fn over(name: &str, transport: &str, url: &str) -> Value {
    json!({"name": name, "type": "mcp", "mcpConfig": {"transport": transport, "endpoint": url}})
}
