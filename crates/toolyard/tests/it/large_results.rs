//! Results that are too large for a model, of servers on the Python SDK with and without output schemas, at third-party
//! clients that validate them: no result is above its bound, and structured content matches the listed schema.

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::http::send_with_key;
use toolyard_testing::manifest::stdio_handler;
use toolyard_testing::peers;
use toolyard_testing::process::run;
use toolyard_testing::scripted_server::script;

use crate::support::gateway::TestGateway;

/// The default bound in characters.
const BOUND: usize = 64_000;

/// The tools with the arguments for a small result, and whether they have an output schema.
const TOOLS: [(&str, &str, usize, bool); 12] = [
    ("export", "rows", 2, true),
    ("export_text", "rows", 2, false),
    ("rows", "rows", 2, true),
    ("log", "lines", 3, true),
    ("log_text", "lines", 3, false),
    ("page", "chapters", 1, true),
    ("page_text", "chapters", 1, false),
    ("root", "size", 2, true),
    ("draft7", "size", 2, true),
    ("identified", "size", 2, true),
    ("list", "size", 2, true),
    ("text", "size", 2, true),
];

/// A gateway with two servers, and a key for it.
struct Archive {
    gateway: TestGateway,
    key: String,
}

impl Archive {
    fn start(process: Value) -> Self {
        let python = peers::peer("python/bin/python");
        let server = |name: &str, file: &str| {
            let file = script(file);
            stdio_handler(name, python.to_str().unwrap(), &[file.to_str().unwrap()])
        };
        let handlers =
            [server("archive", "large_results_server.py"), server("forms", "large_forms_server.py")];
        let gateway = TestGateway::with_settings(&handlers, process);
        let key = gateway.new_key("", json!({"name": "agent", "scopes": ["tools:*", "rest"]}));
        Self { gateway, key }
    }

    /// Returns what a client sees of calls.
    #[track_caller]
    fn calls(&self, (program, file): (&str, &str), mode: &str, calls: &[(&str, Value)]) -> Vec<SeenCall> {
        let home = TempDir::new().unwrap();
        let mut client = peers::command(program, home.path());
        client.env("NODE_PATH", peers::peer("node_modules"));
        client.arg(script(file)).args([&self.gateway.url(), mode, &self.key, &json!(calls).to_string()]);
        let ended = run(&mut client);
        assert_eq!(ended.code, 0, "{ended}");
        let seen: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(seen.len(), calls.len());
        seen.into_iter().map(SeenCall).collect()
    }

    #[track_caller]
    fn python(&self, mode: &str, calls: &[(&str, Value)]) -> Vec<SeenCall> {
        self.calls((peers::peer("python/bin/python").to_str().unwrap(), "large_results.py"), mode, calls)
    }

    /// Returns the result and the definition of a tool over REST.
    #[track_caller]
    fn rest(&self, tool: &str) -> (Value, Value) {
        let get = |line: &str| -> Value {
            let response = send_with_key(self.gateway.address, &self.key, line, "{}");
            assert_eq!(response.status, 200, "{}", response.body);
            serde_json::from_str(&response.body).unwrap()
        };
        (get(&format!("POST /api/v1/tools/{tool}/call")), get(&format!("GET /api/v1/tools/{tool}")))
    }
}

/// A call as a client sees it.
struct SeenCall(Value);

impl SeenCall {
    fn structured(&self) -> &Value {
        &self.0["structured"]
    }

    fn text(&self) -> &str {
        self.0["texts"][0].as_str().unwrap_or_default()
    }

    /// Returns the text and the structured content as a model reads them.
    fn as_read(&self) -> String {
        let texts = self.0["texts"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let structured = Some(self.structured()).filter(|structured| !structured.is_null());
        texts.map(str::to_owned).chain(structured.map(Value::to_string)).collect::<Vec<_>>().join("\n")
    }

    fn chars(&self) -> usize {
        self.as_read().chars().count()
    }

    /// Returns the estimated number of tokens.
    fn tokens(&self) -> usize {
        (self.as_read().len() * 10).div_ceil(44)
    }

    /// Returns the reference of a stored result.
    fn reference(&self) -> &Value {
        let structured = self.structured();
        let inner = Some(&structured["result"]).filter(|result| result.is_object()).unwrap_or(structured);
        &inner["storedResult"]
    }
}

/// Calls each tool for a small result and for a large one.
#[track_caller]
fn check_client(archive: &Archive, client: (&str, &str), mode: &str) {
    let calls: Vec<_> = TOOLS
        .iter()
        .flat_map(|(tool, argument, small, _)| [(*tool, json!({*argument: small})), (*tool, json!({}))])
        .collect();
    let seen = archive.calls(client, mode, &calls);
    for ((tool, _, _, has_schema), seen) in TOOLS.iter().zip(seen.chunks(2)) {
        let [small, large] = seen else { unreachable!() };
        for call in [small, large] {
            assert!(call.0["refused"].is_null(), "{mode} {tool}: {}", call.0["refused"]);
            assert_eq!(call.0["failed"], false, "{mode} {tool}: {}", call.0);
            assert_eq!(call.0["schema"].is_object(), *has_schema, "{mode} {tool}: {}", call.0["schema"]);
            assert_eq!(!call.structured().is_null(), *has_schema, "{mode} {tool}: {}", call.0);
        }
        assert!(large.chars() <= BOUND, "{mode} {tool}: {} characters", large.chars());
        assert!(large.text().contains("stored in working memory"), "{mode} {tool}: {}", large.text());
        if *has_schema {
            assert!(small.reference().is_null(), "{mode} {tool}: {}", small.structured());
            assert!(large.reference()["key"].as_str().unwrap().ends_with("-index"), "{}", large.0);
        }
    }
}

#[test]
fn python_clients_accept_references_to_large_results() {
    let archive = Archive::start(json!({"builtins": {}}));
    let python = peers::peer("python/bin/python");
    check_client(&archive, (python.to_str().unwrap(), "large_results.py"), "2026-07-28");
}

#[test]
fn typescript_clients_accept_references_to_large_results() {
    let archive = Archive::start(json!({"builtins": {}}));
    for mode in ["legacy", "modern"] {
        check_client(&archive, ("node", "large_results.cjs"), mode);
    }
}
