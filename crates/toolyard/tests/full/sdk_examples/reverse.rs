use insta::assert_snapshot;
use serde_json::json;

use super::clients::{ALL, inspector, python};

#[test]
fn seen_by_python() {
    let steps = json!([
        ["tools"],
        ["call", "reverse_string", {"input": "stressed"}],
        ["call", "reverse_string", {"input": "dlroW, olleH ♥"}],
        ["call", "reverse_string", {"input": 7}],
        ["call", "reverse_string", {}],
        ["call", "reverse", {}],
    ]);
    assert_snapshot!(python("reverse", &ALL, &steps), @r#"
    tools
      - reverse_string
    call reverse_string {"input": "stressed"}
      => desserts
    call reverse_string {"input": "dlroW, olleH ♥"}
      => ♥ Hello ,World
    call reverse_string {"input": 7}
      => failed Invalid arguments: /input: value is not of type "string"
    call reverse_string {}
      => failed Invalid arguments: "input" is a required property
    call reverse {}
      => error -32602 Unknown tool: reverse. Did you mean `reverse_string`?
    "#);
}

#[test]
fn seen_by_the_inspector() {
    let asks: [&[&str]; 2] = [
        &["--method", "tools/list"],
        &["--method", "tools/call", "--tool-name", "reverse_string", "--tool-arg", "input=stressed"],
    ];
    let seen = inspector("reverse", &ALL, &asks);
    assert_snapshot!(seen, @r#"
    {"result":{"tools":[{"description":"Reverses the input string.","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"input":{"description":"The string to reverse","type":"string"}},"required":["input"],"type":"object"},"name":"reverse_string"}]}}
    {"result":{"content":[{"text":"desserts","type":"text"}]}}
    "#);
}
