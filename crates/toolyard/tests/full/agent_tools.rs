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
pub(crate) fn gateway(handlers: &[Value], builtins: Value) -> TestGateway {
    let process = json!({"builtins": builtins, "sandbox": {"isolation": "best-effort"}});
    TestGateway::with_settings(handlers, process)
}

/// Returns a handler that these tests do not call.
pub(crate) fn printer() -> Value {
    let tool = json!({"name": "print", "description": "Prints.", "inputSchema": {"type": "object"}});
    json!({"name": "printer", "type": "http", "tool": tool, "httpConfig": {"endpoint": "http://127.0.0.1:9/"}})
}

/// Returns the transcript of the Python SDK for these steps.
#[track_caller]
pub(crate) fn walk(gateway: &TestGateway, mode: &str, steps: &Value) -> String {
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

/// Replaces times such as `2026-11-25 09:00:00`.
fn without_dates(text: &str) -> String {
    const FORM: &str = "0000-00-00 00:00:00";
    let is_date = |part: &str| {
        part.chars()
            .zip(FORM.chars())
            .all(|(c, form)| if form == '0' { c.is_ascii_digit() } else { c == form })
    };
    let (mut masked, mut rest) = (String::new(), text);
    while let Some(c) = rest.chars().next() {
        let date = rest.get(..FORM.len()).filter(|part| is_date(part));
        masked.push_str(date.map_or(&rest[..c.len_utf8()], |_| "DATE"));
        rest = &rest[date.map_or(c.len_utf8(), str::len)..];
    }
    masked
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
pub(crate) fn walk_both_eras(gateway: &TestGateway, calls: &[(&str, Value)]) -> String {
    let steps = |meta: Value| -> Value {
        let first = meta.is_object().then(|| json!(["get_handle"]));
        let calls = calls.iter().map(|(tool, arguments)| json!(["call", tool, arguments, meta]));
        first.into_iter().chain(calls).collect()
    };
    let legacy = walk(gateway, "legacy", &steps(json!(null)));
    let modern = walk(gateway, MODERN, &steps(session()));
    let modern = modern.strip_prefix("get_handle\n").expect("the first step");
    let normalize = |seen: &str| {
        without_dates(&without_times(&without_ids(&without_session(seen)))).replace(" null\n", "\n")
    };
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
      => failed key: is empty; expected a name such as `notes`
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
fn schedules() {
    let gateway = gateway(&[printer()], json!({"schedules": {"timeZone": "UTC"}}));
    let task = |name: &str, cron: &str| {
        ("schedule_task", json!({"name": name, "cron": cron, "description": "Say hello."}))
    };
    assert_snapshot!(walk_both_eras(&gateway, &[
        ("list_scheduled_tasks", json!({})),
        task("report", "0 9 1 1 *"),
        task("Report", "0 0 10 1 1 *"),
        ("schedule_task", json!({"name": "once", "cron": "0 9 1 1 *", "description": "Ask | Ann.", "run_once": "true"})),
        ("list_scheduled_tasks", json!({})),
        ("cancel_scheduled_task", json!({"name": "REPORT"})),
        ("cancel_scheduled_task", json!({"name": "report"})),
        ("cancel_scheduled_task", json!({"name": "once"})),
        task("bad", "0 9 * *"),
        task("bad", "0 9 31 2 *"),
        task("bad", "* * * * * *"),
        task("", "0 9 * * *"),
        ("schedule_task", json!({"name": "bad", "cron": "0 9 * * *"})),
        ("schedule_task", json!({"name": 7, "cron": [], "description": "x"})),
        ("cancel_scheduled_task", json!({})),
    ]), @r#"
    call list_scheduled_tasks {}
      => No scheduled tasks. Current time: DATE (UTC, UTC+00:00).
    call schedule_task {"name": "report", "cron": "0 9 1 1 *", "description": "Say hello."}
      => Scheduled task 'report' with cron `0 9 1 1 *`. Next run: DATE (UTC). Current time: DATE (UTC, UTC+00:00).
    call schedule_task {"name": "Report", "cron": "0 0 10 1 1 *", "description": "Say hello."}
      => Replaced task 'Report' with cron `0 0 10 1 1 *`. Next run: DATE (UTC). Current time: DATE (UTC, UTC+00:00).
    call schedule_task {"name": "once", "cron": "0 9 1 1 *", "description": "Ask | Ann.", "run_once": "true"}
      => Scheduled task 'once' with cron `0 9 1 1 *`. Runs once: DATE (UTC). Current time: DATE (UTC, UTC+00:00).
    call list_scheduled_tasks {}
      => Current time: DATE (UTC, UTC+00:00). 2 tasks scheduled:

    | Name | Cron | Next run | Once | Last run | Description |
    | --- | --- | --- | --- | --- | --- |
    | once | `0 9 1 1 *` | DATE | yes |  | Ask \| Ann. |
    | Report | `0 0 10 1 1 *` | DATE | no |  | Say hello. |
    call cancel_scheduled_task {"name": "REPORT"}
      => Cancelled scheduled task 'Report'.
    call cancel_scheduled_task {"name": "report"}
      => No scheduled task named 'report' was found. Call list_scheduled_tasks to see the tasks.
    call cancel_scheduled_task {"name": "once"}
      => Cancelled scheduled task 'once'.
    call schedule_task {"name": "bad", "cron": "0 9 * *", "description": "Say hello."}
      => failed cron: a cron expression has 5 fields, `minute hour day-of-month month day-of-week`, or 6 with the second first, and this one has 4. Examples: `0 9 * * 1-5` is 9:00 on weekdays, `*/15 * * * *` every 15 minutes, `0 0 9 * * 1-5` has seconds first. The task is not scheduled.
    call schedule_task {"name": "bad", "cron": "0 9 31 2 *", "description": "Say hello."}
      => failed cron: no date matches: the day of the month, the month and the day of the week must all match. Examples: `0 9 * * 1-5` is 9:00 on weekdays, `*/15 * * * *` every 15 minutes, `0 0 9 * * 1-5` has seconds first. The task is not scheduled.
    call schedule_task {"name": "bad", "cron": "* * * * * *", "description": "Say hello."}
      => failed cron: fires every 1 s, and tasks may fire every 60 s at most. The task is not scheduled.
    call schedule_task {"name": "", "cron": "0 9 * * *", "description": "Say hello."}
      => failed name: expected 1 to 100 visible characters in one line, such as `morning-report`
    call schedule_task {"name": "bad", "cron": "0 9 * * *"}
      => failed Invalid arguments: "description" is a required property
    call schedule_task {"name": 7, "cron": [], "description": "x"}
      => failed Invalid arguments: /name: value is not of type "string"; /cron: value is not of type "string"
    call cancel_scheduled_task {}
      => failed Invalid arguments: "name" is a required property
    "#);
}

#[test]
fn guide_of_schedules_is_found_by_its_alias() {
    let gateway = gateway(&[printer()], json!({"schedules": {}}));
    assert_snapshot!(walk_both_eras(&gateway, &[("get_tool_guide", json!({"name": "cron"}))]), @r#"
    call get_tool_guide {"name": "cron"}
      => # Scheduling

    A scheduled task runs later without you: the gateway fires it with its name and description. The operator has decided what
    a task does when it fires, such as calling an agent with the description as its prompt.

    | Tool | Use it to |
    | --- | --- |
    | `schedule_task(name, cron, description, run_once?)` | create a task, or replace the one of this name |
    | `list_scheduled_tasks()` | see all tasks with their next runs, the last runs, the current time and the time zone |
    | `cancel_scheduled_task(name)` | remove a task |

    ## Cron expressions

    ```text
    0 9 * * 1-5      5 fields: minute hour day-of-month month day-of-week
    0 0 9 * * 1-5    6 fields, with the second first
    ```

    - `*` is every value, `1-5` a range, `1,15` a list, `*/15` every 15th value from the first one. Steps begin anew in each
      hour or day: `*/45` in the minutes fires at :00 and :45.
    - Months and weekdays have names as well (`jan`, `mon`). Sunday is 0 or 7. `L` is the last day of the month, `mon#2` the
      second Monday, `friL` the last Friday.
    - Day of month AND day of week must match: `0 9 13 * 5` fires on a Friday the 13th only. Leave one of them `*`.
    - Times are in the time zone that `list_scheduled_tasks()` shows.

    ## One time

    For "in two hours" or "tomorrow at nine": call `list_scheduled_tasks()` for the current time, compute the target time, and
    pin every field to it, with `*` for the day of the week.

    ```json
    {"name": "call-ann", "cron": "30 14 26 11 *", "description": "Remind Bob to call Ann.", "run_once": true}
    ```

    The task is removed after it has fired.

    ## Good tasks

    - The description is all that is known when the task fires: write whatever is needed, as an instruction.
    - A name in use is replaced, in any case of its letters: choose names that tell tasks apart.
    - Tasks run with your key. If the key is revoked, its tasks end.
    "#);
}

#[test]
fn guide_of_openrouter_is_listed_with_its_tools() {
    let gateway = gateway(&[printer()], json!({"openRouter": {"apiKey": "k"}}));
    let calls = json!([["call", "list_tool_guides", {}], ["call", "get_tool_guide", {"name": "OpenRouter"}]]);
    let text = walk(&gateway, "2026-07-28", &calls);
    assert!(text.contains("- openrouter: Read credits, keys, models with prices"), "{text}");
    let tools = ["get_credits()", "get_api_key(keyHash)", "get_generation(generationId)"];
    assert!(tools.iter().all(|tool| text.contains(&format!("| `{tool}` |"))), "{text}");
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
