//! `examples/real-servers.yaml` with third-party clients: servers from npm and PyPI behind the gateway, over all
//! transports, with the MCP Inspector, the Python SDK in both eras, and FastMCP.

use std::path::Path;

use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::peers;
use toolyard_testing::peers::PeerServer;
use toolyard_testing::process::run;
use toolyard_testing::scripted_server::script;

use crate::support::gateway::{TestGateway, toolyard};

/// The example with its servers, in a directory with a repository.
struct RealServers {
    _over_http: PeerServer,
    _over_sse: PeerServer,
    gateway: TestGateway,
    folder: TempDir,
}

/// Starts a gateway with the example. It waits for all servers, so that the load of the machine does not decide the
/// order of names.
fn real_servers(home: &Path) -> RealServers {
    let (over_http, over_sse) = (peers::everything(home), peers::everything_over_sse(home));
    let folder = TempDir::new().unwrap();
    let made = run(peers::command("git", home).args(["init", "--quiet"]).arg(folder.path()));
    assert_eq!(made.code, 0, "{made}");
    std::fs::write(folder.path().join("note.txt"), "a note").unwrap();
    let own = TempDir::new().unwrap();
    let mut serve = toolyard(own.path());
    serve.env("EVERYTHING_URL", &over_http.url).env("EVENTS_URL", &over_sse.url).env("FOLDER", folder.path());
    serve.args(["serve", "-f"]).arg(peers::root().join("examples/real-servers.yaml"));
    let patience = json!({"timeouts": {"firstList": "50s", "connect": "50s", "eraProbe": "30s"}});
    serve.arg("-f").arg(toolyard_testing::manifest::process_document(own.path(), patience));
    RealServers {
        _over_http: over_http,
        _over_sse: over_sse,
        gateway: TestGateway::start(own, &mut serve),
        folder,
    }
}

impl RealServers {
    /// Returns a call of each server and a part of its response.
    fn calls(&self) -> [(&'static str, Value, &'static str); 8] {
        let noon = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
        let folder = self.folder.path().to_str().unwrap();
        let person =
            json!({"entities": [{"name": "Ann", "entityType": "person", "observations": ["is here"]}]});
        [
            ("echo", json!({"message": "over HTTP"}), "Echo: over HTTP"),
            ("everything-stdio_echo", json!({"message": "over stdio"}), "Echo: over stdio"),
            ("events_echo", json!({"message": "over HTTP+SSE"}), "Echo: over HTTP+SSE"),
            ("read_text_file", json!({"path": format!("{folder}/note.txt")}), "a note"),
            ("create_entities", person, "Ann"),
            ("convert_time", noon, "+9.0h"),
            ("git_status", json!({"repo_path": folder}), "note.txt"),
            (
                "fetch",
                json!({"url": format!("http://{}/health", self.gateway.address)}),
                r#"{"status":"ok"}"#,
            ),
        ]
    }

    /// Runs a client with all calls and checks its transcript.
    #[track_caller]
    fn check_client(&self, home: &Path, client: &str, args: &[&str]) {
        let calls = self.calls();
        let steps: Vec<_> = calls.iter().map(|(tool, arguments, _)| json!([tool, arguments])).collect();
        let mut command = peers::command(peers::peer("python/bin/python"), home);
        command.arg(script(client)).arg(self.gateway.url()).args(args).arg(json!(steps).to_string());
        let ended = run(&mut command);
        assert_eq!(ended.code, 0, "{ended}");
        let seen: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(seen["tools"], json!(self.gateway.tools()));
        // Entities of an earlier run exist already.
        for ((tool, _, expected), text) in calls.iter().zip(seen["texts"].as_array().unwrap()) {
            assert!(text.as_str().unwrap().contains(expected), "{tool}: {text}");
        }
    }
}

#[test]
fn tools_keep_free_names() {
    let home = TempDir::new().unwrap();
    let servers = real_servers(home.path());
    let lines: Vec<_> = servers.gateway.tools().chunks(4).map(|some| some.join(" ")).collect();
    assert_snapshot!(lines.join("\n"), @"
    echo get-annotated-message get-env get-resource-links
    get-resource-reference get-structured-content get-sum get-tiny-image
    gzip-file-as-resource toggle-simulated-logging toggle-subscriber-updates trigger-long-running-operation
    simulate-research-query everything-stdio_echo everything-stdio_get-annotated-message everything-stdio_get-env
    everything-stdio_get-resource-links everything-stdio_get-resource-reference everything-stdio_get-structured-content everything-stdio_get-sum
    everything-stdio_get-tiny-image everything-stdio_gzip-file-as-resource everything-stdio_toggle-simulated-logging everything-stdio_toggle-subscriber-updates
    everything-stdio_trigger-long-running-operation everything-stdio_simulate-research-query events_echo events_get-annotated-message
    events_get-env events_get-resource-links events_get-resource-reference events_get-structured-content
    events_get-sum events_get-tiny-image events_gzip-file-as-resource events_toggle-simulated-logging
    events_toggle-subscriber-updates events_trigger-long-running-operation events_simulate-research-query read_file
    read_text_file read_media_file read_multiple_files write_file
    edit_file create_directory list_directory list_directory_with_sizes
    directory_tree move_file search_files get_file_info
    list_allowed_directories create_entities create_relations add_observations
    delete_entities delete_observations delete_relations read_graph
    search_nodes open_nodes get_current_time convert_time
    git_status git_diff_unstaged git_diff_staged git_diff
    git_commit git_add git_reset git_log
    git_create_branch git_checkout git_show git_branch
    fetch
    ");
}

/// `get-env` returns the environment of its server: the name leads to the right server, which has not inherited private
/// variables of the gateway.
#[test]
fn name_leads_to_its_server() {
    let home = TempDir::new().unwrap();
    let servers = real_servers(home.path());
    let environment =
        |tool| -> Value { serde_json::from_str(&servers.gateway.text(tool, json!({}))).unwrap() };
    let over_http = environment("get-env");
    assert!(over_http["PORT"].is_string(), "{over_http}");
    let on_stdio = environment("everything-stdio_get-env");
    let names: Vec<_> = on_stdio.as_object().unwrap().keys().collect();
    assert_eq!(names, ["HOME", "PATH"]);
}

#[track_caller]
fn check_inspector(era: &str) {
    let home = TempDir::new().unwrap();
    let servers = real_servers(home.path());
    let ask = |args: &[&str]| -> Value {
        let mut inspector = peers::command("mcp-inspector", home.path());
        inspector.args(["--cli", "-q", "--format", "json", "--transport", "http"]);
        inspector.args(["--server-url", &servers.gateway.url(), "--protocol-era", era]).args(args);
        let ended = run(&mut inspector);
        assert_eq!(ended.code, 0, "{ended}");
        let mut answer: Value = serde_json::from_str(&ended.stdout).unwrap();
        answer["result"].take()
    };
    let tools = ask(&["--method", "tools/list"])["tools"].take();
    let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, servers.gateway.tools());
    for (tool, arguments, expected) in servers.calls() {
        let arguments = arguments.to_string();
        let result = ask(&["--method", "tools/call", "--tool-name", tool, "--tool-args-json", &arguments]);
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains(expected), "{tool}: {result}");
    }
}

#[test]
fn seen_by_the_inspector_in_the_stateless_era() {
    check_inspector("modern");
}

#[test]
fn seen_by_the_inspector_in_a_session() {
    check_inspector("legacy");
}

#[test]
fn seen_by_python_in_the_stateless_era() {
    let home = TempDir::new().unwrap();
    real_servers(home.path()).check_client(home.path(), "client.py", &["2026-07-28"]);
}

#[test]
fn seen_by_python_in_a_session() {
    let home = TempDir::new().unwrap();
    real_servers(home.path()).check_client(home.path(), "client.py", &["legacy"]);
}

#[test]
fn seen_by_fastmcp() {
    let home = TempDir::new().unwrap();
    real_servers(home.path()).check_client(home.path(), "fastmcp_client.py", &[]);
}
