use insta::assert_snapshot;
use serde_json::json;

use super::clients::{ALL, BOTH, inspector, python};

#[test]
fn seen_by_python() {
    let steps = json!([
        ["tools"],
        ["call", "multiply", {"x": 6, "y": 7}],
        ["call", "multiply", {"x": -0.5, "y": 1e-6}],
        ["call", "multiply", {"x": 1e300, "y": 1e300}],
        ["call", "multiply", {"x": "6", "y": 7}],
        ["call", "multiply", {"x": 6}],
    ]);
    assert_snapshot!(python("multiply", &ALL, &steps), @r#"
    tools
      - multiply
    call multiply {"x": 6, "y": 7}
      => 42.000000
    call multiply {"x": -0.5, "y": 1e-06}
      => -0.000000
    call multiply {"x": 1e+300, "y": 1e+300}
      => failed the product is too large: use smaller numbers
    call multiply {"x": "6", "y": 7}
      => failed Invalid arguments: /x: value is not of type "number"
    call multiply {"x": 6}
      => failed Invalid arguments: "y" is a required property
    "#);
}

#[test]
fn seen_by_the_inspector() {
    let asks: [&[&str]; 2] = [
        &["--method", "tools/list"],
        &["--method", "tools/call", "--tool-name", "multiply", "--tool-arg", "x=6", "y=7"],
    ];
    let seen = inspector("multiply", &BOTH, &asks);
    assert_snapshot!(seen, @r#"
    {"result":{"tools":[{"annotations":{"openWorldHint":false,"readOnlyHint":true},"description":"Multiplies two numbers.","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"x":{"description":"Multiplicand","type":"number"},"y":{"description":"Multiplier","type":"number"}},"required":["x","y"],"type":"object"},"name":"multiply"}]}}
    {"result":{"content":[{"text":"42.000000","type":"text"}]}}
    "#);
}
