//! Results that are too large for a model, of servers on the Python SDK with and without output schemas, at third-party
//! clients that validate them: no result is above its bound, and structured content matches the listed schema.

use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::http::send_with_key;
use toolyard_testing::manifest::stdio_handler;
use toolyard_testing::peers;
use toolyard_testing::process::run;
use toolyard_testing::scripted_server::script;

use crate::agent_tools::without_times;
use crate::support::gateway::TestGateway;

/// The default bound in characters.
const BOUND: usize = 64_000;

/// The tools with their argument, its values for a small and for a large result, and whether they have an output schema.
const TOOLS: [(&str, &str, [usize; 2], bool); 12] = [
    ("export", "rows", [2, 1000], true),
    ("export_text", "rows", [2, 1000], false),
    ("rows", "rows", [2, 1000], true),
    ("log", "lines", [3, 2000], true),
    ("log_text", "lines", [3, 2000], false),
    ("page", "chapters", [1, 35], true),
    ("page_text", "chapters", [1, 35], false),
    ("root", "size", [2, 1500], true),
    ("draft7", "size", [2, 1500], true),
    ("identified", "size", [2, 5000], true),
    ("list", "size", [2, 1500], true),
    ("text", "size", [2, 5000], true),
];

/// A gateway with two servers, and a key for it.
pub(crate) struct Archive {
    pub(crate) gateway: TestGateway,
    pub(crate) key: String,
}

impl Archive {
    fn start(process: Value) -> Self {
        Self::with_servers(&["large_results_server.py"], process)
    }

    pub(crate) fn with_servers(files: &[&str], process: Value) -> Self {
        let python = peers::peer("python/bin/python");
        let server = |(number, file): (usize, &&str)| {
            let file = script(file);
            stdio_handler(&format!("server-{number}"), python.to_str().unwrap(), &[file.to_str().unwrap()])
        };
        let handlers: Vec<_> = files.iter().enumerate().map(server).collect();
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
            let response =
                send_with_key(self.gateway.address, &self.key, line, r#"{"arguments":{"rows":1000}}"#);
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
        (without_times(&self.as_read()).len() * 10).div_ceil(44)
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
fn check_client(client: (&str, &str), mode: &str) {
    let files = ["large_results_server.py", "large_forms_server.py"];
    let archive = Archive::with_servers(&files, json!({"builtins": {}}));
    let calls: Vec<_> = TOOLS
        .iter()
        .flat_map(|(tool, argument, sizes, _)| sizes.map(|size| (*tool, json!({*argument: size}))))
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
fn python_client_accepts_references_to_large_results() {
    let python = peers::peer("python/bin/python");
    check_client((python.to_str().unwrap(), "large_results.py"), "2026-07-28");
}

#[test]
fn python_client_with_a_session_accepts_references_to_large_results() {
    let python = peers::peer("python/bin/python");
    check_client((python.to_str().unwrap(), "large_results.py"), "legacy");
}

#[test]
fn typescript_client_accepts_references_to_large_results() {
    check_client(("node", "large_results.cjs"), "modern");
}

#[test]
fn typescript_client_with_a_session_accepts_references_to_large_results() {
    check_client(("node", "large_results.cjs"), "legacy");
}

/// Returns what a model reads until it has the answer, with the number of tokens of each result, and of all of them.
#[track_caller]
fn transcript(calls: &[(&str, Value)], seen: &[SeenCall], answer: &str) -> String {
    let last = seen.last().unwrap();
    assert!(last.as_read().contains(answer), "{}", last.as_read());
    let mut transcript = String::new();
    for ((tool, arguments), seen) in calls.iter().zip(seen) {
        assert!(seen.chars() <= BOUND, "{tool}: {} characters", seen.chars());
        let (read, tokens) = (without_ids(&seen.as_read()), seen.tokens());
        transcript += &format!("=== {tool} {arguments}: {tokens} tokens\n{read}\n");
    }
    let tokens: usize = seen.iter().map(SeenCall::tokens).sum();
    format!("{transcript}=== {} calls, {tokens} tokens", seen.len())
}

/// Replaces the ids of the key and of stored results.
fn without_ids(text: &str) -> String {
    let is_hex = |word: &str| word.len() >= 6 && word.chars().all(|c| c.is_ascii_hexdigit());
    let word = |word: &str| if is_hex(word) { "ID".to_owned() } else { word.to_owned() };
    let segment = |segment: &str| segment.split('-').map(word).collect::<Vec<_>>().join("-");
    text.split('/').map(segment).collect::<Vec<_>>().join("/")
}

/// A table of 2 MB.
#[test]
fn answer_is_found_in_large_json() {
    let calls = [
        ("export", json!({})),
        ("query_working_memory", json!({"key": "$KEY", "expression": "rows[?id == 'r-12345'].price"})),
    ];
    let seen = Archive::start(json!({"builtins": {}})).python("2026-07-28", &calls);
    assert_snapshot!(transcript(&calls, &seen, "[3086.25]"));
}

/// A page of 70 kB.
#[test]
fn answer_is_found_on_a_large_page() {
    let calls = [("page", json!({})), ("get_from_working_memory", json!({"key": "$BASE-chunk1"}))];
    let seen = Archive::start(json!({"builtins": {}})).python("2026-07-28", &calls);
    assert_snapshot!(transcript(&calls, &seen, "400 days"));
}

/// A log of 500 kB.
#[test]
fn line_is_found_in_a_large_log() {
    let calls = [
        ("log", json!({})),
        ("get_from_working_memory", json!({"key": "$BASE-index", "grep": "payment .* failed"})),
    ];
    let seen = Archive::start(json!({"builtins": {}})).python("2026-07-28", &calls);
    assert_snapshot!(without_times(&transcript(&calls, &seen, "the card has expired")));
}

/// REST and the tools that describe others have the output schema of the server.
#[test]
fn rest_and_descriptions_keep_the_output_schema() {
    let archive = Archive::start(json!({"builtins": {}}));
    let (result, definition) = archive.rest("export");
    let rows = result["structuredContent"]["rows"].as_array().map(Vec::len);
    assert_eq!(rows, Some(1000), "{:.300}", result.to_string());
    let original = &definition["outputSchema"];
    assert_eq!(original["required"], json!(["rows", "total"]), "{definition}");
    let seen = archive.python(
        "2026-07-28",
        &[
            ("export", json!({"rows": 1})),
            ("search_tools", json!({"query": "export table", "limit": 1})),
            ("mcp_get_service_details", json!({"server_name": "server-0"})),
        ],
    );
    let listed = &seen[0].0["schema"];
    let mut first = original.clone();
    let definitions = first.as_object_mut().unwrap().remove("$defs").unwrap();
    assert_eq!(listed["$defs"], definitions, "{listed}");
    assert_eq!((&listed["type"], &listed["anyOf"][0]), (&json!("object"), &first), "{listed}");
    for description in &seen[1..] {
        assert!(!description.as_read().contains("storedResult"), "{}", description.as_read());
    }
}

/// Checks the setting, and the override of one tool, by what a client sees of a tool with an output schema.
#[track_caller]
fn check_setting(results: Value, tool: &str, has_schema: bool, is_whole: bool) {
    let archive = Archive::start(json!({"builtins": {"results": results}}));
    let calls = [(tool, json!({"rows": 2})), (tool, json!({"rows": 1000}))];
    let seen = archive.python("2026-07-28", &calls);
    let [small, large] = &seen[..] else { unreachable!() };
    assert_eq!(small.structured()["total"], 2, "{results}");
    assert_eq!(small.0["schema"].is_object(), has_schema, "{results}");
    assert!(small.0["schema"]["anyOf"].is_null(), "{results}");
    assert_eq!(large.structured()["total"] == 1000, is_whole, "{results}");
    assert_eq!(large.chars() <= BOUND, !is_whole, "{results}: {}", large.chars());
}

#[test]
fn output_schemas_can_be_withdrawn() {
    check_setting(json!({"outputSchemas": "withdraw"}), "export", false, false);
}

#[test]
fn output_schemas_can_be_kept() {
    check_setting(json!({"outputSchemas": "keep"}), "export", true, true);
}

#[test]
fn without_built_in_tools_results_pass_whole() {
    let archive = Archive::start(json!({}));
    let seen = archive
        .python("2026-07-28", &[("export", json!({"rows": 1000})), ("log_text", json!({"lines": 2000}))]);
    assert_eq!(seen[0].structured()["total"], 1000);
    assert!(seen[0].0["schema"]["anyOf"].is_null());
    assert!(seen[1].chars() > BOUND);
}
