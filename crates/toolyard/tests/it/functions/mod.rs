//! Hosted functions, from the folder of their author to whoever calls them.

mod authors;
mod invoking;
mod samples;
mod secrets;
mod versions;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::gateway::{Gateway, process_document, toolyard};
use crate::support::http::{self, Response};
use crate::support::process::{Ended, run};

/// A gateway that hosts functions, and the folder of their author. Which walls a machine has is not what these tests are about.
struct Yard {
    gateway: Gateway,
}

impl Yard {
    #[track_caller]
    fn start(handlers: &[Value], mut process: Value) -> Self {
        process["sandbox"] = json!({"isolation": "best-effort"});
        if !handlers.is_empty() {
            return Self { gateway: Gateway::with(handlers, process) };
        }
        // A registry has one handler at least, and functions need none.
        let folder = TempDir::new().unwrap();
        let mut command = toolyard(folder.path());
        command.args(["serve", "-f"]).arg(process_document(folder.path(), process));
        Self { gateway: Gateway::start(folder, &mut command) }
    }

    fn folder(&self) -> &Path {
        self.gateway.folder.path()
    }

    /// Runs `toolyard function` in the folder of the author.
    #[track_caller]
    fn function(&self, args: &[&str]) -> Ended {
        self.with_key("", args)
    }

    /// The same with a key.
    #[track_caller]
    fn with_key(&self, key: &str, args: &[&str]) -> Ended {
        let mut command = toolyard(self.folder());
        command.current_dir(self.folder()).env("TOOLYARD_URL", self.gateway.url()).env("TOOLYARD_KEY", key);
        run(command.arg("function").args(args))
    }

    /// The same, which has to be done.
    #[track_caller]
    fn done(&self, args: &[&str]) -> String {
        let ended = self.function(args);
        assert_eq!(ended.code, 0, "{ended}");
        ended.stdout
    }

    /// Writes a function of one file, with a test case that only has to be answered.
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

    /// The same in Lua, published.
    #[track_caller]
    fn publish(&self, id: &str, source: &str, settings: Value) {
        self.write(id, "cortexone_function.lua", source, settings);
        self.done(&["publish", id]);
    }

    /// Has a version answer an event; `key` is the whole header.
    #[track_caller]
    fn invoke(&self, key: &str, function: &str, event: &Value) -> Response {
        invoke(self.gateway.address, key, function, &json!({"event": event}).to_string())
    }

    /// A new key, which has everybody asked for one.
    #[track_caller]
    fn key(&self, maker: &str, wanted: &Value) -> String {
        let headers = [("Content-Type", "application/json"), ("Authorization", maker)];
        let made = http::send(self.gateway.address, "POST /api/v1/keys", &headers, &wanted.to_string());
        let made: Value = serde_json::from_str(&made.body).unwrap();
        made["key"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
    }
}

/// `POST /api/v1/functions/{function}/invoke` with this body, where `function` is `ID/VERSION`.
#[track_caller]
fn invoke(address: SocketAddr, key: &str, function: &str, body: &str) -> Response {
    let line = format!("POST /api/v1/functions/{function}/invoke");
    let headers = [("Content-Type", "application/json"), ("Authorization", key)];
    // An empty header is none.
    let headers = if key.is_empty() { &headers[..1] } else { &headers };
    http::send(address, &line, headers, body)
}

/// What a response has to be, as JSON.
#[track_caller]
fn json_of(response: &Response, status: u16) -> Value {
    assert_eq!(response.status, status, "{response:?}");
    serde_json::from_str(&response.body).unwrap_or_else(|_| panic!("no JSON: {response:?}"))
}
