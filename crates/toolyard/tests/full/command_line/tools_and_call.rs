//! `toolyard tools` and `toolyard call` against the embedded demo.

use insta::assert_snapshot;
use tempfile::TempDir;
use toolyard_testing::peers;
use toolyard_testing::process::run_with;

use super::toolyard_with;
use crate::support::gateway::{TestGateway, toolyard};

fn demo() -> TestGateway {
    let folder = TempDir::new().unwrap();
    let mut serve = toolyard(folder.path());
    serve.arg("serve");
    TestGateway::start(folder, &mut serve)
}

/// Runs a command against a gateway and returns its output.
#[track_caller]
fn run_against(gateway: &TestGateway, args: &[&str]) -> String {
    toolyard_with(&[args, &["--url", &gateway.url()]].concat()).to_string()
}

#[test]
fn tools() {
    let gateway = demo();
    assert_snapshot!(run_against(&gateway, &["tools"]), @"
    echo                             Returns the text that it is given.
    reverse_string                   Reverses the input string.
    add                              Adds two numbers.
    --- exit status 0
    ");
    assert_snapshot!(run_against(&gateway, &["tools", "--output", "json"]), @r#"
    [{"name":"echo","description":"Returns the text that it is given.","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"text":{"type":"string","description":"Text to return"}},"required":["text"]}},{"name":"reverse_string","description":"Reverses the input string.","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"input":{"type":"string","description":"The string to reverse"}},"required":["input"]}},{"name":"add","description":"Adds two numbers.","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"type":"number","description":"Summand"},"b":{"type":"number","description":"Summand"}},"required":["a","b"]}}]
    --- exit status 0
    "#);
}

#[test]
fn arguments_are_typed_by_the_schema() {
    let gateway = demo();
    assert_snapshot!(run_against(&gateway, &["call", "add", "a=1", "b=2"]), @"
    3
    --- exit status 0
    ");
    // A number would be rejected: the schema requires a string.
    assert_snapshot!(run_against(&gateway, &["call", "echo", "text=3"]), @"
    3
    --- exit status 0
    ");
    assert_snapshot!(run_against(&gateway, &["call", "echo", "text=a=b"]), @"
    a=b
    --- exit status 0
    ");
    assert_snapshot!(run_against(&gateway, &["call", "add", "--json", r#"{"a": 1.5, "b": 2}"#]), @"
    3.5
    --- exit status 0
    ");
}

#[test]
fn call_result_as_json() {
    assert_snapshot!(run_against(&demo(), &["call", "add", "a=1", "b=2", "--output", "json"]), @r#"
    {"content":[{"type":"text","text":"3"}],"resultType":"complete"}
    --- exit status 0
    "#);
}

#[test]
fn tool_error_fails_the_command() {
    let gateway = demo();
    assert_snapshot!(run_against(&gateway, &["call", "add", "a=x", "b=2"]), @r#"
    Invalid arguments: /a: value is not of type "number"
    --- exit status 1
    "#);
    assert_snapshot!(run_against(&gateway, &["call", "add", "a=x", "b=2", "--output", "json"]), @r#"
    {"content":[{"type":"text","text":"Invalid arguments: /a: value is not of type \"number\""}],"isError":true,"resultType":"complete"}
    --- exit status 1
    "#);
    assert_snapshot!(run_against(&gateway, &["call", "subtract", "a=1"]), @r#"
    --- stderr
    error: unknown tool "subtract"; `toolyard tools` lists the tools
    --- exit status 1
    "#);
}

#[test]
fn invalid_arguments_are_refused() {
    let gateway = demo();
    assert_snapshot!(run_against(&gateway, &["call", "add", "a"]), @r#"
    --- stderr
    error: invalid argument "a": expected KEY=VALUE
    --- exit status 2
    "#);
    assert_snapshot!(run_against(&gateway, &["call", "add", "--json", "{a: 1}"]), @"
    --- stderr
    error: --json: expected a string at byte 1
    --- exit status 2
    ");
    assert_snapshot!(run_against(&gateway, &["call", "add", "--json", "[]"]), @"
    --- stderr
    error: --json: expected an object at byte 0
    --- exit status 2
    ");
}

#[test]
fn unreachable_gateway_is_an_error() {
    let url = format!("http://127.0.0.1:{}/mcp", peers::free_port());
    for args in [&["tools"][..], &["call", "add"]] {
        let ended = toolyard_with(&[args, &["--url", &url]].concat());
        assert_eq!((ended.code, &*ended.stdout), (1, ""));
        let start = format!("error: cannot connect to {url}: the server cannot be reached");
        assert!(ended.stderr.starts_with(&start), "{ended}");
    }
}

#[test]
fn unknown_tool_is_suggested() {
    let gateway = demo();
    let check = |name: &str, expected: &str| {
        let ended = run_against(&gateway, &["call", name]);
        assert!(ended.contains(&format!("error: unknown tool {name:?}; {expected}\n")), "{ended}");
    };
    check("ehco", "did you mean `echo`?");
    check("reverse-string", "did you mean `reverse_string`?");
    check("demo_add", "did you mean `add`?");
    check("string", "did you mean `reverse_string`?");
    check("weather", "`toolyard tools` lists the tools");
}

#[test]
fn arguments_are_read_from_files_and_standard_input() {
    let gateway = demo();
    let file = gateway.folder.path().join("arguments.json");
    std::fs::write(&file, r#"{"a": 1, "b": 2}"#).unwrap();
    let at_file = format!("@{}", file.display());
    assert_snapshot!(run_against(&gateway, &["call", "add", "--json", &at_file]), @"
    3
    --- exit status 0
    ");
    let mut call = toolyard(gateway.folder.path());
    call.args(["call", "add", "--json", "-", "--url", &gateway.url()]);
    assert_snapshot!(run_with(&mut call, std::fs::File::open(&file).unwrap()), @"
    3
    --- exit status 0
    ");
    assert_snapshot!(run_against(&gateway, &["call", "add", "--json", "@absent.json"]), @"
    --- stderr
    error: cannot read absent.json: No such file or directory (os error 2)
    --- exit status 2
    ");
    assert_snapshot!(run_against(&gateway, &["call", "add", "--json", "[1]"]), @"
    --- stderr
    error: --json: expected an object at byte 0
    --- exit status 2
    ");
}
