use insta::assert_snapshot;
use serde_json::json;

use super::clients::{ALL, BOTH, LEGACY, MODERN, inspector, python, python_with_tasks};

#[test]
fn seen_by_python() {
    let steps = json!([
        ["tools"],
        ["call", "count", {"to": 3}],
        ["call", "count", {"to": 0}],
        ["until", "cancelled", "cancelled so far: 0"],
        ["cancel", "count", {"to": 1000, "pause": 50}],
        ["until", "cancelled", "cancelled so far: 1"],
    ]);
    assert_snapshot!(python("long_task", &ALL, &steps), @r#"
    tools
      - count
      - cancelled
    call count {"to": 3}
      progress 1 of 3: counting
      progress 2 of 3: counting
      progress 3 of 3: counting
      log info of count: counting to 3
      => counted to 3
    call count {"to": 0}
      => failed Invalid arguments: /to: value is less than the minimum of 1
    until cancelled cancelled so far: 0
      => cancelled so far: 0
    cancel count {"to": 1000, "pause": 50}
      log info of count: counting to 1000
      => cancelled
    until cancelled cancelled so far: 1
      => cancelled so far: 1
    "#);
}

#[test]
fn seen_by_python_as_a_task() {
    let steps = json!([
        ["call", "count", {"to": 2, "pause": 400}],
        ["cancel_tasks"],
        ["call", "count", {"to": 1000, "pause": 400}],
        ["until", "cancelled", "cancelled so far: 1"],
    ]);
    assert_snapshot!(python_with_tasks("long_task", &steps), @r#"
    call count {"to": 2, "pause": 400}
      task
      task completed
      log info of count: counting to 2
      => counted to 2
    cancel_tasks
    call count {"to": 1000, "pause": 400}
      task
      task cancelled
      log info of count: counting to 1000
      => nothing
    until cancelled cancelled so far: 1
      => cancelled so far: 1
    "#);
}

#[test]
fn seen_by_the_inspector() {
    let asks: [&[&str]; 1] = [&["--method", "tools/list"]];
    assert_snapshot!(inspector("long_task", &LEGACY, &asks), @r#"{"result":{"tools":[{"description":"Counts to a number, slowly.","execution":{"taskSupport":"optional"},"inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"pause":{"default":0,"description":"Milliseconds between two numbers","maximum":60000,"minimum":0,"type":"integer"},"to":{"description":"The last number to count","maximum":1000,"minimum":1,"type":"integer"}},"required":["to"],"type":"object"},"name":"count"},{"description":"Tells how many counts were cancelled.","inputSchema":{"additionalProperties":false,"properties":{},"type":"object"},"name":"cancelled"}]}}"#);
    // Definitions of the stateless era have no task support, and the Inspector removes it.
    assert_snapshot!(inspector("long_task", &MODERN, &asks), @r#"{"result":{"tools":[{"description":"Counts to a number, slowly.","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"pause":{"default":0,"description":"Milliseconds between two numbers","maximum":60000,"minimum":0,"type":"integer"},"to":{"description":"The last number to count","maximum":1000,"minimum":1,"type":"integer"}},"required":["to"],"type":"object"},"name":"count"},{"description":"Tells how many counts were cancelled.","inputSchema":{"additionalProperties":false,"properties":{},"type":"object"},"name":"cancelled"}]}}"#);
    let asks: [&[&str]; 1] = [&["--method", "tools/call", "--tool-name", "count", "--tool-arg", "to=3"]];
    assert_snapshot!(inspector("long_task", &BOTH, &asks), @r#"{"result":{"content":[{"text":"counted to 3","type":"text"}]}}"#);
}

/// The Inspector supports tasks in the stateless era, and waits for the result.
#[test]
fn seen_by_the_inspector_as_a_task() {
    let asks: [&[&str]; 1] =
        [&["--method", "tools/call", "--tool-name", "count", "--tool-arg", "to=2", "pause=400"]];
    assert_snapshot!(inspector("long_task", &MODERN, &asks), @r#"{"result":{"content":[{"text":"counted to 2","type":"text"}]}}"#);
}
