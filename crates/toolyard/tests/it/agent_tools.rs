//! Built-in tools called by the Python SDK in both eras, with valid and invalid input.

use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::messages::ACCEPT_STREAMS;
use toolyard_testing::process::run;
use toolyard_testing::scripted_server::{ScriptedServer, script};
use toolyard_testing::{http, peers};

use crate::support::gateway::TestGateway;

const MODERN: &str = "2026-07-28";

/// Starts a gateway with built-in tools, whose scripts run without isolation in these tests.
fn gateway(handlers: &[Value], builtins: Value) -> TestGateway {
    let process = json!({"builtins": builtins, "sandbox": {"isolation": "best-effort"}});
    TestGateway::with_settings(handlers, process)
}

/// Returns a handler that these tests do not call.
fn printer() -> Value {
    let tool = json!({"name": "print", "description": "Prints.", "inputSchema": {"type": "object"}});
    json!({"name": "printer", "type": "http", "tool": tool, "httpConfig": {"endpoint": "http://127.0.0.1:9/"}})
}

/// Returns the transcript of the Python SDK for these steps.
#[track_caller]
fn walk(gateway: &TestGateway, mode: &str, steps: &Value) -> String {
    let home = TempDir::new().unwrap();
    let mut client = peers::command(peers::peer("python/bin/python"), home.path());
    let ended = run(client.arg(script("walk.py")).args([&gateway.url(), mode, &steps.to_string()]));
    assert_eq!(ended.code, 0, "{ended}");
    ended.stdout
}

/// Replaces durations, such as `4m59s`.
pub(crate) fn without_times(text: &str) -> String {
    let is_time = |word: &str| {
        let word = word.trim_start_matches('(').trim_end_matches([')', '.']);
        word.ends_with('s')
            && word.contains('m')
            && word.chars().all(|c| c.is_ascii_digit() || "hms".contains(c))
    };
    let line = |line: &str| {
        line.split(' ').map(|word| if is_time(word) { "TIME" } else { word }).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Replaces the ids of sessions and results.
fn without_ids(text: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("session/") {
        let (before, found) = rest.split_at(at + "session/".len());
        let id = found.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(found.len());
        masked.push_str(before);
        masked.push_str(if id == 16 { "ID" } else { &found[..id] });
        rest = &found[id..];
    }
    masked + rest
}

/// Returns the transcript, which must be the same in both eras, with the handle of a session in the stateless one.
#[track_caller]
fn walk_both_eras(gateway: &TestGateway, calls: &[(&str, Value)]) -> String {
    let steps = |meta: Value| -> Value {
        let first = meta.is_object().then(|| json!(["get_handle"]));
        let calls = calls.iter().map(|(tool, arguments)| json!(["call", tool, arguments, meta]));
        first.into_iter().chain(calls).collect()
    };
    let legacy = walk(gateway, "legacy", &steps(json!(null)));
    let modern = walk(gateway, MODERN, &steps(session()));
    let modern = modern.strip_prefix("get_handle\n").expect("the first step");
    let normalize = |seen: &str| without_times(&without_ids(&without_session(seen))).replace(" null\n", "\n");
    assert_eq!(normalize(&legacy), normalize(modern));
    normalize(modern)
}

/// Returns the `_meta` with which stateless clients send the newest handle back.
fn session() -> Value {
    json!({"toolyard/session": "handle"})
}

/// Removes the session from each line of a transcript.
fn without_session(seen: &str) -> String {
    seen.replace(r#" {"toolyard/session": "handle"}"#, "")
}

#[test]
fn working_memory() {
    let gateway = gateway(&[printer()], json!({}));
    let prices = json!({"items": [{"id": "a", "price": 1}, {"id": "b", "price": 3}]});
    assert_snapshot!(walk_both_eras(&gateway, &[
        ("save_to_working_memory", json!({"key": "prices", "data": prices, "ttl_minutes": 90})),
        ("save_to_working_memory", json!({"key": "plan/today", "data": "Write", "category": "plan", "tags": "a,b"})),
        ("get_from_working_memory", json!({"key": "plan/today"})),
        ("get_from_working_memory", json!({"key": "nothing"})),
        ("query_working_memory", json!({"key": "prices", "expression": "items[?price > `2`].id"})),
        ("query_working_memory", json!({"key": "prices", "expression": "items["})),
        ("query_working_memory", json!({"key": "plan/today", "expression": "@"})),
        ("search_working_memory", json!({"query": "write"})),
        ("search_working_memory", json!({"category": "nothing"})),
        ("delete_from_working_memory", json!({"key": "plan/today"})),
        ("delete_from_working_memory", json!({"key": "plan/today"})),
        ("save_to_working_memory", json!({"key": "", "data": "x"})),
        ("save_to_working_memory", json!({"key": "a", "data": "x", "ttl_minutes": 0})),
        ("save_to_working_memory", json!({"data": "x"})),
        ("get_from_working_memory", json!({"key": 7})),
        ("get_from_working_memory", json!({"key": "session/other/notes"})),
    ]), @r#"
    call save_to_working_memory {"key": "prices", "data": {"items": [{"id": "a", "price": 1}, {"id": "b", "price": 3}]}, "ttl_minutes": 90}
      => Saved to working memory as `session/ID/prices` (53 chars, expires in TIME
    call save_to_working_memory {"key": "plan/today", "data": "Write", "category": "plan", "tags": "a,b"}
      => Saved to working memory as `session/ID/plan/today` (5 chars, expires in TIME
    call get_from_working_memory {"key": "plan/today"}
      => Write
    call get_from_working_memory {"key": "nothing"}
      => Working memory entry 'nothing' not found or has expired.
    call query_working_memory {"key": "prices", "expression": "items[?price > `2`].id"}
      => ["b"]
    call query_working_memory {"key": "prices", "expression": "items["}
      => failed expression: Parse error: Expected number, ':', or '*' -- found Eof (character 7 of `items[`)
    call query_working_memory {"key": "plan/today", "expression": "@"}
      => failed The value is not JSON (expected value at line 1 column 1). Read it with get_from_working_memory.
    call search_working_memory {"query": "write"}
      => 1 working memory entry:
    - `session/ID/plan/today` TIME left, 5 chars, category: plan, tags: a, b): Write
    call search_working_memory {"category": "nothing"}
      => No working memory entries found. Your own entries are under `session/ID`.
    call delete_from_working_memory {"key": "plan/today"}
      => Deleted working memory entry 'session/ID/plan/today'.
    call delete_from_working_memory {"key": "plan/today"}
      => Working memory entry 'plan/today' not found or has expired.
    call save_to_working_memory {"key": "", "data": "x"}
      => failed key: is empty, where a name such as `notes` is expected
    call save_to_working_memory {"key": "a", "data": "x", "ttl_minutes": 0}
      => failed `ttl_minutes` must be positive
    call save_to_working_memory {"data": "x"}
      => failed Invalid arguments: "key" is a required property
    call get_from_working_memory {"key": 7}
      => failed Invalid arguments: /key: value is not of type "string"
    call get_from_working_memory {"key": "session/other/notes"}
      => Working memory entry 'session/other/notes' not found or has expired.
    "#);
    let without_a_handle = json!([
        ["call", "list_working_memory", {}],
        ["call", "list_working_memory", {}, {"toolyard/session": "abc123"}],
    ]);
    assert_snapshot!(walk(&gateway, MODERN, &without_a_handle), @r#"
    call list_working_memory {}
      => failed This call has no namespace in working memory: it has neither a session nor a key. The `_meta` of this result has a handle, `toolyard/session`, which the host sends back in the `_meta` of its requests. Keys that a tool's result shows can be read without it.
    call list_working_memory {} {"toolyard/session": "abc123"}
      => failed The `toolyard/session` of this request is no valid handle: it has expired, or belongs to another key. The `_meta` of this result has a new one, which the host sends back in the `_meta` of its requests.
    "#);
}

#[test]
fn skills() {
    let gateway = gateway(&[printer()], json!({"skills": {"skills": 1, "contentBytes": "1KiB"}}));
    let calls = json!([
        ["call", "list_skills", {}],
        ["call", "save_skill", {"name": "plan-meeting", "content": "# Plan a meeting\n\n1. Ask who comes.\n"}],
        ["call", "get_skill", {"name": "Plan-Meeting"}],
        ["call", "list_skills", {}],
        ["call", "get_skill", {"name": "research"}],
        ["call", "save_skill", {"name": "one too many", "content": "x"}],
        ["call", "save_skill", {"name": "research", "content": "x"}],
        ["call", "save_skill", {"name": "plan-meeting", "content": "x".repeat(2000)}],
        ["call", "save_skill", {"name": "plan-meeting"}],
        ["call", "delete_skill", {"name": "plan-meeting"}],
        ["call", "delete_skill", {"name": "plan-meeting"}],
    ]);
    assert_snapshot!(walk(&gateway, MODERN, &calls).replace(&"x".repeat(2000), "xxx…"), @r##"
    call list_skills {}
      => No skills saved yet.
    call save_skill {"name": "plan-meeting", "content": "# Plan a meeting\n\n1. Ask who comes.\n"}
      => Skill 'plan-meeting' saved. Its summary: Plan a meeting
    call get_skill {"name": "Plan-Meeting"}
      => # Plan a meeting

    1. Ask who comes.

    call list_skills {}
      => Available skills (1):
    - plan-meeting (0d old, last used 0d ago): Plan a meeting
    call get_skill {"name": "research"}
      => Skill 'research' not found. Call list_skills to see available skills.
    call save_skill {"name": "one too many", "content": "x"}
      => failed name: is not a valid skill name. Names consist of letters, digits, `-` and `_`, with `/` between parts, such as `plan-meeting` or `research/summarize`; 128 characters at most.
    call save_skill {"name": "research", "content": "x"}
      => failed The skill is not kept: there are 1 skills, and there may be no more. Delete one that is no longer used, or add to one that there is.
    call save_skill {"name": "plan-meeting", "content": "xxx…"}
      => failed The skill has 2000 bytes, and a skill may have 1024. Keep what is needed to do the task again, or divide it into several skills.
    call save_skill {"name": "plan-meeting"}
      => failed Invalid arguments: "content" is a required property
    call delete_skill {"name": "plan-meeting"}
      => Skill 'plan-meeting' deleted.
    call delete_skill {"name": "plan-meeting"}
      => Skill 'plan-meeting' not found. Call list_skills to see available skills.
    "##);
}

#[test]
fn guides() {
    let builtins = json!({"search": {"enabled": false}, "mcp": {"enabled": false}});
    let (folder, mut command) = TestGateway::command(&[printer()], json!({"builtins": builtins}));
    std::fs::write(folder.path().join("billing.md"), "# Billing\n\nFind ${invoice} first.\n").unwrap();
    // One guide replaces a built-in one.
    let billing = json!({"name": "billing", "summary": "Find invoices", "file": "billing.md"});
    let skills = json!({"name": "Skills", "summary": "How we note what we know", "text": "# Ours"});
    let registry = folder.path().join("registry.json");
    let mut document: Value = serde_json::from_slice(&std::fs::read(&registry).unwrap()).unwrap();
    document["spec"]["guides"] = json!([billing, skills]);
    std::fs::write(registry, document.to_string()).unwrap();
    let gateway = TestGateway::start(folder, &mut command);
    let calls = json!([
        ["call", "list_tool_guides", {}],
        ["call", "get_tool_guide", {"name": "BILLING"}],
        ["call", "get_tool_guide", {"name": "skills"}],
        ["call", "get_tool_guide", {"name": "weather"}],
        ["call", "get_tool_guide", {}],
    ]);
    assert_snapshot!(walk(&gateway, MODERN, &calls), @r#"
    call list_tool_guides {}
      => Available tool guides (5):
    - billing: Find invoices
    - large-results: Work with tool results that were too large to be shown and were put into working memory in chunks
    - scripts: Run Python for arithmetic, for transforming data, and for whatever is easier to compute than to reason out
    - Skills: How we note what we know
    - working-memory: Keep notes and intermediate results for a while, find them again, and select parts of stored JSON
    call get_tool_guide {"name": "BILLING"}
      => # Billing

    Find ${invoice} first.

    call get_tool_guide {"name": "skills"}
      => # Ours
    call get_tool_guide {"name": "weather"}
      => No tool guide named 'weather'. Available guides: billing, large-results, scripts, Skills, working-memory.
    call get_tool_guide {}
      => failed Invalid arguments: "name" is a required property
    "#);
}

/// Returns the result of a tool for this key and request `_meta`.
#[track_caller]
fn is_result_large(gateway: &TestGateway, key: &str, meta: &Value) -> Value {
    let mut meta = meta.clone();
    meta["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
    let params = json!({"name": "wait", "arguments": {}, "_meta": meta});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let bearer = format!("Bearer {key}");
    let headers = [
        ("MCP-Protocol-Version", MODERN),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "wait"),
        ("Authorization", &bearer),
        ACCEPT_STREAMS,
    ];
    gateway.post(&headers, &message).result()
}

/// The threshold for large results, by key, model and request, with a result of 100,000 characters.
#[test]
fn threshold_of_large_results() {
    let wordy = ScriptedServer::with_mode("wordy");
    let builtins = json!({"results": {"models": {"wide": {"threshold": 200_000}}}});
    let gateway = gateway(&[wordy.handler()], builtins);
    let admin = gateway.new_key("", json!({"name": "a", "scopes": ["admin", "tools:*", "rest"]}));
    let key = |wanted: Value| gateway.new_key(&admin, wanted);
    let wide = key(json!({"name": "w", "scopes": ["tools:*"], "model": "wide-1"}));
    let patient = key(json!({"name": "p", "scopes": ["tools:*"], "chunkThreshold": 100_000}));
    let blind = key(json!({"name": "b", "scopes": ["tools:wait"]}));
    let check = |key: &str, meta: Value, is_large: bool| {
        let result = is_result_large(&gateway, key, &meta);
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let begins = "Tool result for 'wait' is large (100 000 chars) and has been split into 2 chunk(s)";
        assert_eq!(
            (text.starts_with(begins), text.len() == 100_000),
            (is_large, !is_large),
            "{meta} {text:.200}"
        );
    };
    check(&admin, json!({}), true);
    check(&admin, json!({"toolyard/model": "wide-2"}), false);
    check(&wide, json!({}), false);
    check(&wide, json!({"toolyard/model": "small"}), true);
    check(&patient, json!({}), false);
    // A key without the tools of working memory gets the beginning, unless it has a threshold of its own.
    let cut = is_result_large(&gateway, &blind, &json!({}));
    let text = cut["content"][0]["text"].as_str().unwrap_or_default();
    // The notice is within the bound.
    let shown = text.split_once('\n').map_or(0, |(text, _)| text.len());
    assert!(shown > 63_500 && text.chars().count() <= 64_000, "{shown} {}", text.chars().count());
    let notice = format!("\n[result truncated — {} chars omitted]\n", 100_000 - shown);
    assert!(text.contains(&notice), "{text}");
    let whole = key(json!({"name": "w", "scopes": ["tools:wait"], "chunkThreshold": 100_000}));
    check(&whole, json!({}), false);
    let by_rest = http::send_with_key(gateway.address, &admin, "POST /api/v1/tools/wait/call", "{}");
    assert!(by_rest.body.len() > 100_000, "{by_rest:?}");
}

/// A model reads a large result by its outline, and a part by its key, without session, key and handle.
#[test]
fn large_result_is_read_in_parts() {
    let wordy = ScriptedServer::with_mode("wordy");
    let gateway = gateway(&[wordy.handler()], json!({}));
    let output = walk(&gateway, MODERN, &json!([["call", "wait", {}]]));
    let base = output.split('`').find_map(|word| word.strip_suffix("-index")).unwrap_or_default();
    let calls = json!([
        ["call", "get_from_working_memory", {"key": format!("{base}-index")}],
        ["call", "get_from_working_memory", {"key": format!("{base}-chunk1")}],
    ]);
    let read = walk(&gateway, MODERN, &calls);
    let normalized = format!("{output}{read}").replace(base, "BASE").replace(&"x".repeat(36_000), "x…");
    assert_snapshot!(without_times(&without_session(&normalized)), @r#"
    call wait {}
      => Tool result for 'wait' is large (100 000 chars) and has been split into 2 chunk(s)
    stored in working memory.
    A document outline is stored at key `BASE-index` — retrieve
    it with get_from_working_memory to navigate the content by section heading.
    Call get_from_working_memory(key) for each relevant chunk BEFORE drawing conclusions.

    | # | Heading | Key |
    |---|---------|--------------------------------------------------|
    | 0 | Part 0 | `BASE-chunk0` |
    | 1 | Part 1 | `BASE-chunk1` |

    The text has 1 line. With the key of the outline, get_from_working_memory also finds lines in all chunks:
    grep: "PATTERN" (with context: 3), or lines: "120-180".
    call get_from_working_memory {"key": "BASE-index"}
      => ## Document Outline

    - **Part 0** → `BASE-chunk0`
    - **Part 1** → `BASE-chunk1`

    call get_from_working_memory {"key": "BASE-chunk1"}
      => x…
    "#);
}
