//! A running gateway under test.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::http::{self, HttpResponse, SentRequest};
use toolyard_testing::manifest::{process_document, registry_document};
use toolyard_testing::peers;
use toolyard_testing::process::RunningProgram;

/// Returns a command for the binary under test, with only a search path and a home in its environment. Its state is in
/// the home.
#[track_caller]
pub(crate) fn toolyard(home: &Path) -> Command {
    peers::command(env!("CARGO_BIN_EXE_toolyard"), home)
}

/// A gateway that runs until it is dropped.
pub(crate) struct TestGateway {
    pub(crate) process: RunningProgram,
    pub(crate) address: SocketAddr,
    pub(crate) folder: TempDir,
}

impl TestGateway {
    /// Starts a gateway with these handlers.
    #[track_caller]
    pub(crate) fn with_handlers(handlers: &[Value]) -> Self {
        Self::with_settings(handlers, json!({}))
    }

    /// Starts a gateway with these handlers and this `spec` of the process. By default the gateway waits for all
    /// handlers, however long they take, so that results do not depend on the load of the machine.
    #[track_caller]
    pub(crate) fn with_settings(handlers: &[Value], process: Value) -> Self {
        let (folder, mut command) = Self::command(handlers, process);
        Self::start(folder, &mut command)
    }

    /// Returns the command of such a gateway and the directory of its files.
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

    /// Starts `toolyard serve` on a free port.
    #[track_caller]
    pub(crate) fn start(folder: TempDir, command: &mut Command) -> Self {
        let process = RunningProgram::start(command.args(["--listen", "127.0.0.1:0"]));
        let address = process.stdout.wait_for("the URL", |text| {
            // Lines before it may name other URLs, such as that of a store that is down.
            let (_, line) = text.split_once(" is serving MCP on ")?;
            let (_, rest) = line.split_once("://")?;
            rest.split_once("/mcp\n").map(|(address, _)| address.parse().unwrap())
        });
        Self { process, address, folder }
    }

    /// Rewrites the manifest of the handlers.
    #[track_caller]
    pub(crate) fn edit(&self, handlers: &[Value]) {
        registry_document(self.folder.path(), handlers);
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Returns the response to the health check, or `None` if the connection was closed without one.
    #[track_caller]
    pub(crate) fn health(&self) -> Option<HttpResponse> {
        http::open_request(self.address, "GET /health", &[], "").response()
    }

    /// Sends a GET request.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> HttpResponse {
        let response = http::open_request(self.address, &format!("GET {path}"), &[], "").response();
        response.expect("the connection was closed without an answer")
    }

    /// Sends an MCP request without a handshake.
    #[track_caller]
    pub(crate) fn request(&self, method: &str, params: Value) -> HttpResponse {
        self.post(&[], &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
    }

    /// Sends a message with additional headers.
    #[track_caller]
    pub(crate) fn post(&self, headers: &[(&str, &str)], message: &Value) -> HttpResponse {
        self.open_request(headers, message).response().expect("the connection was closed without an answer")
    }

    /// Sends a message with additional headers and returns before the response.
    #[track_caller]
    pub(crate) fn open_request(&self, headers: &[(&str, &str)], message: &Value) -> SentRequest {
        let headers = [&[("Content-Type", "application/json")], headers].concat();
        http::open_request(self.address, "POST /mcp", &headers, &message.to_string())
    }

    /// Creates a key with the credentials of another and returns its text.
    #[track_caller]
    pub(crate) fn new_key(&self, admin: &str, key_settings: Value) -> String {
        let made = http::send_with_key(self.address, admin, "POST /api/v1/keys", &key_settings.to_string());
        assert_eq!(made.status, 201, "{}", made.body);
        let made: Value = serde_json::from_str(&made.body).unwrap();
        made["key"].as_str().unwrap().to_owned()
    }

    /// Returns the names of all tools on all pages.
    #[track_caller]
    pub(crate) fn tools(&self) -> Vec<String> {
        let definitions = self.definitions();
        definitions.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Returns the listed definitions of all tools.
    #[track_caller]
    pub(crate) fn definitions(&self) -> Vec<Value> {
        let (mut tools, mut params) = (Vec::new(), json!({}));
        loop {
            let mut page = self.request("tools/list", params).result();
            tools.append(page["tools"].as_array_mut().unwrap());
            match page.get("nextCursor") {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return tools,
            }
        }
    }

    #[track_caller]
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> HttpResponse {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool and returns the text of its result.
    #[track_caller]
    pub(crate) fn text(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).result();
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }
}
