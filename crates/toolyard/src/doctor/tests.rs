use insta::assert_snapshot;
use serde_json::json;

use super::*;

#[test]
fn tools_with_illegal_arguments_are_counted() {
    let handler = json!({
        "name": "files", "type": "mcp", "endpoint": "stdio://files", "phase": "Ready", "since": "today", "tools": 12,
        "protocol": null, "lastError": null, "toolsWithRenamedArguments": 1, "toolsWithIllegalArguments": 2,
    });
    let report: HandlerReport = serde_json::from_value(handler).unwrap();
    assert_snapshot!(report.line(5), @r"
      ok    files  12 tools, mcp, stdio://files, since today
            1 tool with renamed arguments: models refuse their own names
            2 tools with argument names that models refuse; set `renameArguments: true` in the handler
    ");
}

#[test]
fn failures_are_shown_with_output_and_remedy() {
    let failure = json!({"time": "today", "code": "process_exited", "message": "process exited with status 1",
        "output": ["node:internal/modules", "Error: Cannot find module '/x'"]});
    let handler = |phase: &str, installation: serde_json::Value, failure: &serde_json::Value| {
        let handler = json!({
            "name": "files", "type": "mcp", "endpoint": "stdio://npx", "phase": phase, "since": "today", "tools": 0,
            "protocol": null, "lastError": failure, "installation": installation,
        });
        serde_json::from_value::<HandlerReport>(handler).unwrap().line(5)
    };
    let installation = json!({"launcher": "npx", "waiting": false, "line": "added 3 packages"});
    let lines = [
        handler("Unavailable", json!(null), &failure),
        handler("Ready", json!(null), &failure),
        handler("Installing", installation, &json!(null)),
    ];
    assert_snapshot!(lines.join("\n"), @r"
      DOWN  files  0 tools, mcp, stdio://npx, since today
            process exited with status 1
            | node:internal/modules
            | Error: Cannot find module '/x'
            remedy: run its command in a terminal and read its output
      ok    files  0 tools, mcp, stdio://npx, since today
            failed at today: process exited with status 1
            | node:internal/modules
            | Error: Cannot find module '/x'
      wait  files  0 tools, mcp, stdio://npx, since today
            npx installs it | added 3 packages
    ");
}

#[test]
fn remedies_depend_on_the_type() {
    let lines = ["openapi", "grpc"].map(|kind| {
        let failure = json!({"time": "today", "code": "description", "message": "no description", "output": []});
        let handler = json!({
            "name": "shop", "type": kind, "endpoint": "shop:1", "phase": "Unavailable", "since": "today", "tools": 0,
            "protocol": null, "lastError": failure,
        });
        serde_json::from_value::<HandlerReport>(handler).unwrap().line(4)
    });
    assert_snapshot!(lines.join("\n"), @r"
      DOWN  shop  0 tools, openapi, shop:1, since today
            no description
            remedy: check `specURL`, and the description itself
      DOWN  shop  0 tools, grpc, shop:1, since today
            no description
            remedy: check `descriptorSet` and `filter` of `grpcConfig`
    ");
}

#[test]
fn left_out_items_are_listed() {
    let reason = "nested more than 512 levels deep, the limit of `limits.jsonDepth`";
    let handler = json!({
        "name": "files", "type": "mcp", "endpoint": "stdio://files", "phase": "Ready", "since": "today", "tools": 12,
        "protocol": null, "lastError": null, "leftOut": [{"kind": "tool", "name": "deep", "reason": reason}],
    });
    let report: HandlerReport = serde_json::from_value(handler).unwrap();
    assert_snapshot!(report.line(5), @r"
      ok    files  12 tools, mcp, stdio://files, since today
            left out the tool deep: nested more than 512 levels deep, the limit of `limits.jsonDepth`
    ");
}

#[test]
fn tools_without_validation_are_listed_up_to_a_limit() {
    let unchecked: Vec<_> = (0..12)
        .map(|number| json!({"tool": format!("t{number}\u{1b}"), "reason": "too many branches"}))
        .collect();
    let handler = json!({
        "name": "files", "type": "mcp", "endpoint": "stdio://files", "phase": "Ready", "since": "today", "tools": 12,
        "protocol": null, "lastError": null, "unchecked": unchecked,
    });
    let report: HandlerReport = serde_json::from_value(handler).unwrap();
    let text = report.line(5);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 12);
    assert_snapshot!([lines[0], lines[1], lines[11]].join("\n"), @r"
      ok    files  12 tools, mcp, stdio://files, since today
            t0\u{1b}: arguments are not validated: too many branches
            and 2 more
    ");
}
