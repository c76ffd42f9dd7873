//! Hosted functions, from the directory of their author to the callers.

mod authors;
mod invoking;
mod samples;
mod secrets;
mod versions;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::http;
use toolyard_testing::http::HttpResponse;
use toolyard_testing::manifest::process_document;
use toolyard_testing::process::{ProgramResult, run};

use crate::support::gateway::{TestGateway, toolyard};

/// A gateway that hosts functions, and the directory of their author. These tests do not depend on the isolation that
/// the machine supports.
struct FunctionWorkspace {
    gateway: TestGateway,
}

impl FunctionWorkspace {
    #[track_caller]
    fn start(handlers: &[Value], mut process: Value) -> Self {
        process["sandbox"] = json!({"isolation": "best-effort"});
        if !handlers.is_empty() {
            return Self { gateway: TestGateway::with_settings(handlers, process) };
        }
        // A registry has at least one handler, but functions need none.
        let folder = TempDir::new().unwrap();
        let mut command = toolyard(folder.path());
        command.args(["serve", "-f"]).arg(process_document(folder.path(), process));
        Self { gateway: TestGateway::start(folder, &mut command) }
    }

    fn folder(&self) -> &Path {
        self.gateway.folder.path()
    }

    /// Runs `toolyard function` in the directory of the author.
    #[track_caller]
    fn function(&self, args: &[&str]) -> ProgramResult {
        self.with_key("", args)
    }

    /// Runs `toolyard function` with a key.
    #[track_caller]
    fn with_key(&self, key: &str, args: &[&str]) -> ProgramResult {
        let mut command = toolyard(self.folder());
        command.current_dir(self.folder()).env("TOOLYARD_URL", self.gateway.url()).env("TOOLYARD_KEY", key);
        run(command.arg("function").args(args))
    }

    /// Runs `toolyard function`, which must succeed, and returns its output.
    #[track_caller]
    fn succeed(&self, args: &[&str]) -> String {
        let ended = self.function(args);
        assert_eq!(ended.code, 0, "{ended}");
        ended.stdout
    }

    /// Writes a function of one file with a test case that any reply passes.
    #[track_caller]
    fn write(&self, id: &str, file: &str, source: &str, settings: Value) -> PathBuf {
        let folder = self.folder().join(id);
        std::fs::create_dir_all(folder.join("tests")).unwrap();
        std::fs::write(folder.join(file), source).unwrap();
        let mut settings = settings;
        settings["id"] = json!(id);
        std::fs::write(folder.join("function.json"), settings.to_string()).unwrap();
        let event = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
        std::fs::write(folder.join("tests/any.json"), json!({"event": event, "expect": {}}).to_string())
            .unwrap();
        folder
    }

    /// Writes a function in Lua and publishes it.
    #[track_caller]
    fn publish(&self, id: &str, source: &str, settings: Value) {
        self.write(id, "cortexone_function.lua", source, settings);
        self.succeed(&["publish", id]);
    }

    /// Invokes a version with an event. `key` is the whole header.
    #[track_caller]
    fn invoke(&self, key: &str, function: &str, event: &Value) -> HttpResponse {
        invoke(self.gateway.address, key, function, &json!({"event": event}).to_string())
    }

    /// Creates a key, after which the gateway requires one.
    #[track_caller]
    fn key(&self, maker: &str, settings: &Value) -> String {
        let headers = [("Content-Type", "application/json"), ("Authorization", maker)];
        let made = http::send(self.gateway.address, "POST /api/v1/keys", &headers, &settings.to_string());
        let made: Value = serde_json::from_str(&made.body).unwrap();
        made["key"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
    }
}

/// Sends `POST /api/v1/functions/{function}/invoke` with this body, where `function` is `ID/VERSION`.
#[track_caller]
fn invoke(address: SocketAddr, key: &str, function: &str, body: &str) -> HttpResponse {
    let line = format!("POST /api/v1/functions/{function}/invoke");
    let headers = [("Content-Type", "application/json"), ("Authorization", key)];
    // An empty key sends no header.
    let headers = if key.is_empty() { &headers[..1] } else { &headers };
    http::send(address, &line, headers, body)
}

/// Checks the status of a response and returns its body as JSON.
#[track_caller]
fn json_of(response: &HttpResponse, status: u16) -> Value {
    assert_eq!(response.status, status, "{response:?}");
    serde_json::from_str(&response.body).unwrap_or_else(|_| panic!("no JSON: {response:?}"))
}
