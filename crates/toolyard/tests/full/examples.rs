//! The manifests in `examples` are valid, and their documented defaults are correct.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tempfile::TempDir;
use toolyard_manifest::{Manifest, ProcessSettings, load_with};
use toolyard_testing::peers;
use toolyard_testing::process::RunningProgram;
use toolyard_testing::scripted_server::script;
use toolyard_testing::upstream::{BackgroundUpstream, ReceivedRequest, ScriptedReply};
use toolyard_testing::wait::eventually;

use crate::support::gateway::{TestGateway, toolyard};

fn examples() -> Vec<PathBuf> {
    let files = std::fs::read_dir(peers::root().join("examples")).unwrap();
    files.map(|file| file.unwrap().path()).collect()
}

/// Loads an example. Its variables are URLs or tokens.
fn load(example: PathBuf) -> Manifest {
    let environment = |name: &str| match name.rsplit('_').next() {
        Some("URL") => Some("http://127.0.0.1:3001/mcp".to_owned()),
        Some("SERVER") => Some("127.0.0.1:50051".to_owned()),
        Some("TOKEN") => Some("token".to_owned()),
        _ => None,
    };
    load_with(&[example], &environment).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn every_example_is_a_manifest() {
    let mut examples = examples();
    examples.sort();
    let handlers = examples.into_iter().map(|example| {
        let name = example.file_name().unwrap().to_str().unwrap().to_owned();
        let manifest = load(example);
        let handlers: Vec<_> = manifest.handlers.iter().map(|handler| handler.name.as_str()).collect();
        format!("{name}: {}", handlers.join(", ")).trim_end().to_owned()
    });
    insta::assert_snapshot!(handlers.collect::<Vec<_>>().join("\n"), @"
    agents.yaml: builtins, agent
    asking-servers.yaml: everything
    code-mode.yaml: builtins, everything
    cortexone.yaml: my-server, weather
    grpc.yaml: orders
    http-server.yaml: search
    http-tool.yaml: search, users
    openapi.yaml: petstore, tickets
    overrides.yaml: time, everything
    process.yaml:
    real-servers.yaml: everything, everything-stdio, events, files, memory, time, git, fetch
    remote-servers.yaml: everything, crm
    schedules.yaml: builtins, agent
    subagents.yaml: builtins, everything
    ");
}

#[test]
fn the_documented_defaults_are_the_defaults() {
    let example = peers::root().join("examples/process.yaml");
    assert_eq!(load(example.clone()).process, ProcessSettings::default());
    let text = std::fs::read_to_string(example).unwrap();
    // All fields, by the names in the type.
    for field in fields(&format!("{:#?}", ProcessSettings::default())) {
        // Abbreviations are in capitals there: `traceURL`.
        let is_named = |line: &str| {
            let name = line.trim_start_matches([' ', '#']).split(':').next().unwrap_or_default();
            name.eq_ignore_ascii_case(&field)
        };
        assert!(text.lines().any(is_named), "{field} is not in it");
    }
}

/// Returns the names of fields in `Debug` output, in the form of documents.
fn fields(debug: &str) -> Vec<String> {
    let names = debug.lines().filter_map(|line| line.split_once(": ")).map(|(name, _)| name.trim());
    let camel = |name: &str| {
        let mut words = name.split('_');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |name, word| name + &word[..1].to_uppercase() + &word[1..])
    };
    names.map(camel).collect()
}

#[test]
fn small_examples_serve_together() {
    let folder = TempDir::new().unwrap();
    let server = peers::fixture(folder.path());
    let mut serve = toolyard(folder.path());
    serve.env("SEARCH_URL", &server.url).current_dir(peers::root().join("examples"));
    serve.args(["serve", "-f", "http-server.yaml", "-f", "process.yaml"]);
    let gateway = TestGateway::start(folder, &mut serve);
    // On a busy machine, servers may connect after the first list.
    eventually("the tools", || gateway.tools().contains(&"test_simple_text".to_owned()).then_some(()));
    assert_eq!(gateway.text("test_simple_text", json!({})), "This is a simple text response for testing.");
}

#[test]
fn remote_server_example() {
    let folder = TempDir::new().unwrap();
    let everything = peers::everything_over_sse(folder.path());
    let crm = peers::guarded(folder.path(), "streamable-http");
    let mut serve = toolyard(folder.path());
    serve.env("EVERYTHING_URL", &everything.url).env("CRM_URL", &crm.url).env("CRM_TOKEN", "hunter2");
    serve.current_dir(peers::root().join("examples")).args(["serve", "-f", "remote-servers.yaml"]);
    let gateway = TestGateway::start(folder, &mut serve);
    // On a busy machine, servers may connect after the first list.
    eventually("the tools", || (gateway.tools().len() == 3).then_some(()));
    assert_eq!(gateway.text("echo", json!({"message": "over HTTP+SSE"})), "Echo: over HTTP+SSE");
    assert_eq!(gateway.text("greet", json!({"name": "Ann"})), "Hello Ann");
}

#[test]
fn http_tool_example() {
    let folder = TempDir::new().unwrap();
    let api = http_api();
    let mut serve = toolyard(folder.path());
    serve.env("API_URL", api.url("")).env("API_TOKEN", "hunter2");
    serve.current_dir(peers::root().join("examples")).args(["serve", "-f", "http-tool.yaml"]);
    let gateway = TestGateway::start(folder, &mut serve);
    assert_eq!(gateway.tools(), ["search", "get_user"]);
    let matches = gateway.text("search", json!({ "query": "blue bicycles", "limit": 3 }));
    assert_eq!(matches, r#"{"hits":["one"]}"#);
    let user = gateway.text("get_user", json!({ "id": "a/b", "fields": ["x", "y"] }));
    assert_eq!(user, r#"{"mail":"a@b.example","name":"Ann","password":"[REDACTED]"}"#);
    let requests = api.requests();
    assert_eq!(requests.len(), 3, "the first one failed, and was sent again");
    assert!(requests[1].starts_with("POST /search HTTP/1.1\r\n"), "{}", requests[1]);
    assert!(requests[1].contains("\r\nauthorization: Bearer hunter2\r\n"), "{}", requests[1]);
    assert!(requests[1].ends_with(r#"{"query":"blue bicycles","limit":3}"#), "{}", requests[1]);
    assert!(requests[2].starts_with("GET /users/a%2Fb?fields=x&fields=y HTTP/1.1\r\n"), "{}", requests[2]);
    assert!(requests[2].contains("\r\nx-client: toolyard\r\n"), "{}", requests[2]);
}

#[test]
fn grpc_example() {
    let folder = TempDir::new().unwrap();
    let mut server = peers::command(peers::peer("grpc/bin/python"), folder.path());
    let server = RunningProgram::start(server.arg(script("grpc_shop.py")));
    let address = server.stdout.wait_for("the address", |text| text.strip_suffix('\n').map(str::to_owned));
    let mut serve = toolyard(folder.path());
    serve.env("ORDERS_SERVER", address).env("ORDERS_TOKEN", "hunter2");
    serve.current_dir(peers::root().join("examples")).args(["serve", "-f", "grpc.yaml"]);
    let gateway = TestGateway::start(folder, &mut serve);
    // On a busy machine, servers may connect after the first list.
    eventually("the tools", || (gateway.tools().len() == 3).then_some(()));
    let tool = |method: &str| gateway.tools().into_iter().find(|name| name.contains(method)).unwrap();
    let order = gateway.text(&tool("GetOrder"), json!({"id": "7"}));
    assert_eq!(order, r#"{"id":"7","state":"STATE_OPEN"}"#);
    let seen: serde_json::Value = serde_json::from_str(&gateway.text(&tool("Inspect"), json!({}))).unwrap();
    assert_eq!(seen["metadata"]["authorization"], "Bearer hunter2");
    assert_eq!(seen["metadata"]["x-client"], "toolyard");
    assert_eq!(seen["hasDeadline"], true);
}

/// Starts an API that is busy at first.
fn http_api() -> BackgroundUpstream {
    let answers = [
        (503, ""),
        (200, r#"{"hits":["one"]}"#),
        (200, r#"{"name":"Ann","contact":{"mail":"a@b.example"},"password":"s3cret"}"#),
    ];
    let next = AtomicUsize::new(0);
    BackgroundUpstream::start(move |_: &ReceivedRequest| {
        let (status, body) = answers[next.fetch_add(1, Ordering::Relaxed)];
        ScriptedReply::http(status, "", body)
    })
}
