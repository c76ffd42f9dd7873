//! `toolyard tools` and `toolyard call`, of the quick start's gateway.

use insta::assert_snapshot;
use tempfile::TempDir;

use super::toolyard_with;
use crate::support::gateway::{Gateway, toolyard};
use crate::support::peers;

fn demo() -> Gateway {
    let folder = TempDir::new().unwrap();
    let mut serve = toolyard(folder.path());
    serve.arg("serve");
    Gateway::start(folder, &mut serve)
}

/// Asks a gateway; gives everything that is to be seen.
#[track_caller]
fn ask(gateway: &Gateway, args: &[&str]) -> String {
    toolyard_with(&[args, &["--url", &gateway.url()]].concat()).to_string()
}

#[test]
fn tools() {
    let gateway = demo();
    assert_snapshot!(ask(&gateway, &["tools"]), @"
    echo                             Returns the text that it is given.
    reverse_string                   Reverses the input string.
    add                              Adds two numbers.
    --- exit status 0
    ");
    assert_snapshot!(ask(&gateway, &["tools", "--output", "json"]), @r#"
    [{"name":"echo","description":"Returns the text that it is given.","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"text":{"type":"string","description":"What to return"}},"required":["text"]}},{"name":"reverse_string","description":"Reverses the input string.","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"input":{"type":"string","description":"The string to reverse"}},"required":["input"]}},{"name":"add","description":"Adds two numbers.","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"type":"number","description":"Summand"},"b":{"type":"number","description":"Summand"}},"required":["a","b"]}}]
    --- exit status 0
    "#);
}

#[test]
fn arguments_are_typed_by_the_schema() {
    let gateway = demo();
    assert_snapshot!(ask(&gateway, &["call", "add", "a=1", "b=2"]), @"
    3
    --- exit status 0
    ");
    // A number would be refused: the schema wants a string.
    assert_snapshot!(ask(&gateway, &["call", "echo", "text=3"]), @"
    3
    --- exit status 0
    ");
    assert_snapshot!(ask(&gateway, &["call", "echo", "text=a=b"]), @"
    a=b
    --- exit status 0
    ");
    assert_snapshot!(ask(&gateway, &["call", "add", "--json", r#"{"a": 1.5, "b": 2}"#]), @"
    3.5
    --- exit status 0
    ");
}

#[test]
fn results_for_programs() {
    assert_snapshot!(ask(&demo(), &["call", "add", "a=1", "b=2", "--output", "json"]), @r#"
    {"content":[{"type":"text","text":"3"}],"resultType":"complete"}
    --- exit status 0
    "#);
}

#[test]
fn a_tool_that_says_no() {
    let gateway = demo();
    assert_snapshot!(ask(&gateway, &["call", "add", "a=x", "b=2"]), @r#"
    Invalid arguments: /a: value is not of type "number"
    --- exit status 1
    "#);
    assert_snapshot!(ask(&gateway, &["call", "add", "a=x", "b=2", "--output", "json"]), @r#"
    {"content":[{"type":"text","text":"Invalid arguments: /a: value is not of type \"number\""}],"isError":true,"resultType":"complete"}
    --- exit status 1
    "#);
    assert_snapshot!(ask(&gateway, &["call", "subtract", "a=1"]), @r#"
    --- stderr
    error: there is no tool "subtract": see `toolyard tools`
    --- exit status 1
    "#);
}

#[test]
fn arguments_that_are_none() {
    let gateway = demo();
    assert_snapshot!(ask(&gateway, &["call", "add", "a"]), @r#"
    --- stderr
    error: "a" is not KEY=VALUE
    --- exit status 2
    "#);
    assert_snapshot!(ask(&gateway, &["call", "add", "--json", "{a: 1}"]), @"
    --- stderr
    error: --json: expected a string at byte 1
    --- exit status 2
    ");
    assert_snapshot!(ask(&gateway, &["call", "add", "--json", "[]"]), @"
    --- stderr
    error: --json: expected an object at byte 0
    --- exit status 2
    ");
}

#[test]
fn a_gateway_that_is_not_there() {
    let url = format!("http://127.0.0.1:{}/mcp", peers::free_port());
    for args in [&["tools"][..], &["call", "add"]] {
        let ended = toolyard_with(&[args, &["--url", &url]].concat());
        assert_eq!((ended.code, &*ended.stdout), (1, ""));
        let start = format!("error: cannot ask {url}: the server cannot be reached");
        assert!(ended.stderr.starts_with(&start), "{ended}");
    }
}
