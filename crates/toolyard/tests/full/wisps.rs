//! Wisps over real servers from PyPI and npm and real scripts, spawned by the Python SDK in both eras.

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolyard_testing::manifest::stdio_handler;

use crate::agent_tools::{gateway, walk};

/// Returns a direct step that calls a tool of a server.
fn mcp(id: &str, server: &str, tool: &str, params: Value) -> Value {
    json!({"id": id, "mode": "Direct", "gateway": "Mcp", "server": server, "tool": tool, "params": params})
}

/// Replaces ids of batches and wisps, and times.
fn stable(seen: &str) -> String {
    let is_id = |word: &str| ["wisp-", "batch-"].iter().any(|kind| word.starts_with(kind));
    let masked = |part: &str| {
        part.split('/').map(|word| if is_id(word) { "ID" } else { word }).collect::<Vec<_>>().join("/")
    };
    let line = |line: &str| {
        let line = line.split('`').map(masked).collect::<Vec<_>>().join("`");
        match line.rsplit_once("] ").filter(|(_, time)| time.ends_with(" ms")) {
            Some((line, _)) => format!("{line}] TIME"),
            None => match line.rsplit_once(" failed, ").filter(|(_, time)| time.ends_with(" s")) {
                Some((line, _)) => format!("{line} failed, TIME"),
                None => line,
            },
        }
    };
    let is_kept = |line: &&str| !["call ", "  progress "].iter().any(|start| line.starts_with(start));
    // The first line repeats the call. Progress is reported for the latest state only.
    seen.lines().filter(is_kept).map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn wisps_call_real_servers_and_scripts() {
    let clock = stdio_handler("clock", "mcp-server-time", &["--local-timezone", "UTC"]);
    let everything = stdio_handler("everything", "mcp-server-everything", &["stdio"]);
    let gateway = gateway(&[clock, everything], json!({"wisps": {}}));
    let convert = |zone: &str| {
        mcp(
            "convert",
            "clock",
            "convert_time",
            json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": zone}),
        )
    };
    let say = mcp(
        "say",
        "everything",
        "echo",
        json!({"message": "Tokyo is {{steps.convert.result.time_difference}} from UTC"}),
    );
    let script = json!({
        "id": "count", "gateway": "Script", "input_from": "{{steps.say.result}}",
        "params": {"script": "import os; print(len(os.environ['TOOLYARD_INPUT'].split()))"},
    });
    let definitions = json!([
        {"description": "Say the offset", "steps": [convert("Asia/Tokyo"), say, script]},
        {"description": "Fail at the server", "steps": [convert("Asia/Atlantis")]},
        {"description": "Fail before the call", "steps": [mcp("convert", "clock", "convert_time", json!({"time": "12:00"}))]},
    ]);
    let calls = json!([["call", "spawn_wisps", {"definitions": definitions}], ["call", "spawn_wisps", {"definitions": [{"steps": 1}]}]]);
    let [legacy, modern] = ["legacy", "2026-07-28"].map(|mode| stable(&walk(&gateway, mode, &calls)));
    assert_snapshot!(legacy, @r#"
      => PARTIAL FAILURE
    3 wisps: 1 succeeded, 2 failed, TIME

    - `ID` "Say the offset" [ok] TIME
      Output: 6
    - `ID` "Fail at the server" [failed] TIME
      Error: External: Error executing tool convert_time: Invalid timezone: 'No time zone found with key Asia/Atlantis'
      Tool: clock/convert_time (step `convert`)
    - `ID` "Fail before the call" [failed] TIME
      Error: Structural: Invalid arguments: "source_timezone" is a required property; "target_timezone" is a required property
      Tool: clock/convert_time (step `convert`)

    Batch `ID`, summary in working memory at key `wisp/ID/summary`
      => failed No wisp was started: the definitions have 2 problems.
    definitions[0].description: the member is missing
      expected one line about the purpose of the wisp
    definitions[0].steps: found a number
      expected an array
    "#);
    // A client without a session and a key has no namespace in working memory.
    let line = |seen: &str| {
        seen.lines().filter(|line| !line.contains("working memory")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(line(&modern), line(&legacy));
}
