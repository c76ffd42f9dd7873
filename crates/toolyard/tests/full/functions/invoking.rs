//! Failures of functions: responses to callers and entries in the log.

use std::thread;

use serde_json::{Value, json};
use toolyard_testing::wait::eventually;

use super::{FunctionWorkspace, invoke, json_of};

/// A function that its event controls.
const SCRIPTED_SOURCE: &str = r#"
function cortexone_handler(event)
  if event.throw then error("thrown on purpose") end
  if event.print then print(event.print) end
  while event.loop do end
  if event.method then return {jsonrpc = "2.0", id = event.id, result = {}} end
  return {statusCode = event.status or 200, body = {told = event.tell or "nothing"}}
end
"#;

/// Starts a gateway with scripted functions of both kinds, in Lua.
fn scripted_functions(process: Value) -> FunctionWorkspace {
    let workspace = FunctionWorkspace::start(&[], process);
    let small = json!({"seconds": 1, "concurrent": 1});
    workspace.publish("tool", SCRIPTED_SOURCE, json!({"kind": "function", "price": 1, "limits": small}));
    workspace.publish("server", SCRIPTED_SOURCE, json!({"kind": "mcp"}));
    workspace
}

#[test]
fn failure_determines_http_status() {
    let workspace = scripted_functions(json!({"limits": {"requestBodyBytes": "64KiB"}}));
    let check = |function: &str, body: &str, status: u16, code: &str| {
        let response = invoke(workspace.gateway.address, "", function, body);
        let problem = json_of(&response, status);
        assert_eq!(
            (&problem["status"], &problem["code"]),
            (&json!(status), &json!(code)),
            "{function} {body}"
        );
        assert_eq!(response.header("content-type"), Some("application/problem+json"));
    };
    for body in ["", "{}", "{\"event\":", "[]", "{\"event\": {}} x", "null", "{\"Event\": {}}"] {
        check("tool/latest", body, 400, "bad_request");
    }
    for version in ["newest", "1.0.0.0", "-1", "01.0.0"] {
        check(&format!("tool/{version}"), r#"{"event": {}}"#, 400, "bad_function");
    }
    let event = r#"{"event": {}}"#;
    check("tool/2", event, 404, "function_not_found");
    check("tool/1.0.1", event, 404, "function_not_found");
    check("nobody/latest", event, 404, "function_not_found");
    check("tool/1", r#"{"event": {"loop": true}}"#, 408, "timeout");
    let large = json!({"event": "x".repeat(64 << 10)}).to_string();
    check("tool/1", &large, 413, "too_large");
    // After all failures the function still answers.
    assert_eq!(json_of(&workspace.invoke("", "tool/1", &json!({})), 200)["body"]["told"], "nothing");
}

#[test]
fn function_reports_its_own_failure() {
    let workspace = scripted_functions(json!({}));
    let answer = |function: &str, event: Value| json_of(&workspace.invoke("", function, &event), 200);
    let reply = json!({"statusCode": 418, "body": {"told": "tea"}});
    assert_eq!(answer("tool/1", json!({"status": 418, "tell": "tea"})), reply);
    let thrown = answer("tool/1", json!({"throw": true}));
    assert_eq!(
        (&thrown["statusCode"], &thrown["body"]["error"]),
        (&json!(500), &json!("Script execution failed"))
    );
    let strange = answer("tool/1", json!({"status": 99}));
    assert_eq!(strange["statusCode"], 500, "{strange}");
    let thrown = answer("server/1", json!({"jsonrpc": "2.0", "id": "a", "method": "x", "throw": true}));
    assert_eq!((&thrown["id"], &thrown["error"]["code"]), (&json!("a"), &json!(-32603)), "{thrown}");
    let unparsable = answer("server/1", json!("no JSON"));
    assert_eq!(
        (&unparsable["id"], &unparsable["error"]["code"]),
        (&Value::Null, &json!(-32700)),
        "{unparsable}"
    );
    assert_eq!(answer("server/1", json!(r#"{"id": 5, "method": "x"}"#))["id"], 5);
    // A notification has no response.
    assert_eq!(answer("server/1", json!({"jsonrpc": "2.0", "method": "x"})), Value::Null);
}

/// Agents receive the error of the function.
#[test]
fn exception_is_an_internal_error_for_agents() {
    let source = r#"
function cortexone_handler(event)
  local result = {protocolVersion = "2024-11-05", capabilities = {tools = {}}, serverInfo = {name = "b", version = "1"}}
  if event.method == "tools/list" then result = {tools = {{name = "boom", inputSchema = {type = "object"}}}} end
  if event.method == "tools/call" then error("thrown on purpose") end
  return {jsonrpc = "2.0", id = event.id, result = result}
end
"#;
    let handler = json!({"name": "boom", "type": "function", "functionConfig": {"id": "boom"}});
    let workspace = FunctionWorkspace::start(&[handler], json!({}));
    workspace.publish("boom", source, json!({}));
    eventually("its tool is there", || (workspace.gateway.tools() == ["boom"]).then_some(()));
    let answer = workspace.gateway.call("boom", json!({})).messages().remove(0);
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("thrown on purpose"), "{answer}");
}

#[test]
fn calls_over_the_limit_are_refused() {
    let workspace = scripted_functions(json!({"functions": {"queuedCalls": 1}}));
    let statuses: Vec<u16> = thread::scope(|scope| {
        let call = || {
            let response = workspace.invoke("", "tool/1", &json!({"loop": true}));
            if response.status == 429 {
                assert!(response.header("retry-after").is_some(), "{response:?}");
                assert_eq!(json_of(&response, 429)["code"], "overloaded");
            }
            response.status
        };
        let calls: Vec<_> = (0..6).map(|_| scope.spawn(call)).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert!(statuses.contains(&429) && statuses.contains(&408), "{statuses:?}");
    assert!(statuses.iter().all(|status| matches!(status, 408 | 429)), "{statuses:?}");
}

#[test]
fn keys_authorize_and_pay_for_calls() {
    let workspace = scripted_functions(json!({}));
    let admin = workspace.key("", &json!({"name": "admin", "scopes": ["admin"]}));
    let bearer = format!("Bearer {admin}");
    let buyer = workspace.key(&bearer, &json!({"name": "buyer", "scopes": ["functions"], "cost": "2"}));
    let check = |key: &str, function: &str, event: Value, status: u16| {
        let response = workspace.invoke(key, function, &event);
        json_of(&response, status)
    };
    assert_eq!(check("", "tool/1", json!({}), 401)["code"], "unauthenticated");
    assert_eq!(check("ty_wrong", "tool/1", json!({}), 401)["code"], "unauthenticated");
    let reader = workspace.key(&bearer, &json!({"name": "reader", "scopes": ["rest"]}));
    assert_eq!(check(&reader, "tool/1", json!({}), 403)["code"], "denied");
    check(&admin, "tool/1", json!({}), 200);
    check(&buyer, "tool/1", json!({}), 200);
    // A call of an unknown function has no cost; a failed call does.
    check(&buyer, "tool/2", json!({}), 404);
    check(&buyer, "nobody/1", json!({}), 404);
    assert_eq!(check(&buyer, "tool/1", json!({"throw": true}), 200)["statusCode"], 500);
    assert_eq!(check(&buyer, "tool/1", json!({}), 402)["code"], "quota_exhausted");
    assert_eq!(check(&format!("Bearer {buyer}"), "tool/1", json!({}), 402)["code"], "quota_exhausted");
    for unknown in ["tool/2", "tool/newest", "nobody/1"] {
        assert_eq!(check(&buyer, unknown, json!({}), 402)["code"], "quota_exhausted", "{unknown}");
    }
    // Functions without a price can still be called.
    check(&buyer, "server/1", json!({"jsonrpc": "2.0", "id": 1, "method": "x"}), 200);
    let refused = workspace.with_key(&buyer, &["logs", "tool"]);
    assert!(refused.code == 1 && refused.stderr.contains("lacks the scope"), "{refused}");
    let functions = workspace.with_key(&buyer, &["list"]);
    assert!(functions.code == 0 && functions.stdout.contains("tool "), "{functions}");
}

#[test]
fn every_call_is_in_the_function_log() {
    let workspace = scripted_functions(json!({}));
    let events = [
        json!({"print": "one\n\u{1b}[2Jtwo"}),
        json!({"status": 404}),
        json!({"throw": true}),
        json!({"loop": true}),
    ];
    for event in &events {
        workspace.invoke("", "tool/1", event);
    }
    let page = eventually("all calls are written", || {
        let page: Value =
            serde_json::from_str(&workspace.succeed(&["logs", "tool", "--output", "json"])).unwrap();
        (page["entries"].as_array().unwrap().len() == events.len()).then_some(page)
    });
    let seen: Vec<_> = page["entries"].as_array().unwrap().iter().rev().collect();
    let outcomes: Vec<_> = seen.iter().map(|entry| entry["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["ok", "error", "failed", "timeout"]);
    assert!(seen.iter().all(|entry| entry["version"] == "1.0.0" && entry["cost"] == "1"), "{page}");
    assert!(seen[2]["error"].as_str().unwrap().contains("thrown on purpose"), "{page}");
    let text =
        workspace.succeed(&["logs", "tool", "--outcome", "ok", "--version", "v1.0.0", "--since", "1h"]);
    assert!(text.contains("\n  printed  one\n  printed  \\u{1b}[2Jtwo\n"), "{text}");
    assert_eq!(text.lines().filter(|line| line.contains("  ok, ")).count(), 1, "{text}");
    let newest = workspace.succeed(&["logs", "tool", "--limit", "1"]);
    assert!(newest.contains("  timeout, "), "{newest}");
}
