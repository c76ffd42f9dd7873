//! Handlers with `selector`.

use insta::assert_snapshot;

use super::{problems, registry, valid};
use crate::HandlerKind;

/// A handler with these fields.
fn handler(fields: &str) -> String {
    let text = format!("  - name: platform-tools\n    {}\n", fields.replace('\n', "\n    "));
    registry(&text).replace("name: agent-tools", "name: agent-tools, namespace: tools")
}

#[test]
fn selector_needs_neither_type_nor_tool() {
    let check = |fields: &str, expected: &str| {
        let handler = valid(&handler(fields)).handlers.remove(0);
        let HandlerKind::Selector(selector) = &handler.kind else { panic!("another kind") };
        let port = selector.port.as_deref().unwrap_or("-");
        assert_eq!(format!("{} {port}", handler.endpoint()), expected);
        assert_eq!(handler.kind.name(), "selector");
    };
    let seed = "selector:\n  matchLabels:\n    omnia.altairalabs.ai/tool: \"true\"\n    team: platform";
    check(seed, "selector://tools/omnia.altairalabs.ai/tool=true,team=platform -");
    check("selector: {matchLabels: {a: b}, namespace: other, port: http}", "selector://other/a=b http");
    check("timeout: 5s\nprefix: always\nselector: {matchLabels: {a: ''}}", "selector://tools/a= -");
}

#[test]
fn mistakes() {
    assert_snapshot!(problems(&handler("selector: {matchLabels: {'a b': 'c d', '': x, 'B/c': y, a.example/b_C: 'D.e'}}")), @r#"
    tools.yaml:7:30: spec.handlers[0].selector.matchLabels["a b"]: `a b` is not the key of a label
      expected at most 63 letters, digits, `-`, `_` and `.`, such as app or example.com/team
    tools.yaml:7:37: spec.handlers[0].selector.matchLabels["a b"]: `c d` is not the value of a label
      expected at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at either end
    tools.yaml:7:44: spec.handlers[0].selector.matchLabels[""]: `` is not the key of a label
      expected at most 63 letters, digits, `-`, `_` and `.`, such as app or example.com/team
    tools.yaml:7:51: spec.handlers[0].selector.matchLabels["B/c"]: `B/c` is not the key of a label
      expected at most 63 letters, digits, `-`, `_` and `.`, such as app or example.com/team
    "#);
    assert_snapshot!(problems(&handler("selector: {}")), @"tools.yaml:7:15: spec.handlers[0].selector.matchLabels: this field is required");
    assert_snapshot!(problems(&handler("selector: {matchLabels: {}}")), @"
    tools.yaml:7:29: spec.handlers[0].selector.matchLabels: this matches every Service
      expected at least one label
    ");
    assert_snapshot!(problems(&handler("selector: {matchLabels: {a: true}, namespace: A_b, port: 80}")), @"
    tools.yaml:7:33: spec.handlers[0].selector.matchLabels.a: found a boolean
      expected a string
      hint: put it in quotes
    tools.yaml:7:51: spec.handlers[0].selector.namespace: `A_b` is not a namespace
      expected at most 63 lower-case letters, digits and `-`, such as code-tools
    tools.yaml:7:62: spec.handlers[0].selector.port: found a number
      expected a string
      hint: put it in quotes
    ");
    assert_snapshot!(problems(&handler("selector: {matchLabels: {a: b}, matchExpressions: []}")), @"tools.yaml:7:37: spec.handlers[0].selector.matchExpressions: `matchExpressions` is not yet supported");
    let others = "type: http\ntool: {name: a}\nendpoint: {url: 'http://a'}\nhttpConfig: {}\nretries: 1\nauth: {type: none}";
    assert_snapshot!(problems(&handler(&format!("selector: {{matchLabels: {{a: b}}}}\n{others}"))), @"
    tools.yaml:8:5: spec.handlers[0].type: `type` does not belong here
      hint: the Services that `selector` matches are the tools, and their annotations configure them
    tools.yaml:9:5: spec.handlers[0].tool: `tool` does not belong here
      hint: the Services that `selector` matches are the tools, and their annotations configure them
    tools.yaml:10:5: spec.handlers[0].endpoint: `endpoint` does not belong here
      hint: the Services that `selector` matches are the tools, and their annotations configure them
    tools.yaml:11:5: spec.handlers[0].httpConfig: `httpConfig` does not belong here
      hint: the Services that `selector` matches are the tools, and their annotations configure them
    tools.yaml:12:5: spec.handlers[0].retries: `retries` does not belong here
      hint: the Services that `selector` matches are the tools, and their annotations configure them
    tools.yaml:13:5: spec.handlers[0].auth: `auth` does not belong here
      hint: the Services that `selector` matches are the tools, and their annotations configure them
    ");
    assert_snapshot!(problems(&handler("timeout: 1s")), @"tools.yaml:6:5: spec.handlers[0].type: this field is required");
}
