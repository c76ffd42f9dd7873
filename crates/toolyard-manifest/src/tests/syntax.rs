//! Texts that are not documents, or that exceed a limit.

use insta::assert_snapshot;

use super::{problems, valid};

#[test]
fn text_that_is_not_yaml() {
    assert_snapshot!(problems("a: [1, 2\nb: 3\n"), @"tools.yaml:2:2: a[1]: invalid YAML or JSON: illegal placement of ':' indicator");
    assert_snapshot!(problems("a: b: c\n"), @"tools.yaml:1:5: invalid YAML or JSON: mapping values are not allowed in this context");
    assert_snapshot!(problems("a:\n\tb: 1\n"), @"tools.yaml:2:2: a: invalid YAML or JSON: tabs disallowed within this context (block indentation)");
    assert_snapshot!(problems("a: 'never closed\n"), @"tools.yaml:1:4: a: invalid YAML or JSON: while scanning a quoted scalar, found unexpected end of stream");
    assert_snapshot!(problems("{\"a\": 1"), @"tools.yaml:2:1: invalid YAML or JSON: while parsing a flow mapping, did not find expected ',' or '}'");
}

#[test]
fn documents_before_a_syntax_error_are_checked() {
    assert_snapshot!(problems("kind: Tool\n---\na: b: c\n"), @"
    tools.yaml:1:7: kind: `Tool` is not a known kind of document
      expected one of ToolRegistry, Toolyard
    tools.yaml:3:5: invalid YAML or JSON: mapping values are not allowed in this context
    ");
}

#[test]
fn document_that_is_not_an_object() {
    assert_snapshot!(problems("- a\n- b\n"), @"
    tools.yaml:1:3: [0]: found a string
      expected an object
    tools.yaml:2:3: [1]: found a string
      expected an object
    ");
    assert_snapshot!(problems("[]\n"), @"
    tools.yaml:1:1: this list is empty
      expected at least one item
    ");
    assert_snapshot!(problems("- [{}]\n"), @"
    tools.yaml:1:3: [0]: found a list
      expected an object
    ");
    assert_snapshot!(problems("just a text\n"), @"
    tools.yaml:1:1: found a string
      expected an object
    ");
}

#[test]
fn keys_are_unique_plain_strings() {
    assert_snapshot!(problems("kind: Toolyard\napiVersion: toolyard.dev/v1alpha1\nspec:\n  limits: {sessions: 1, sessions: 2}\nkind: Toolyard\n"), @"
    tools.yaml:4:25: spec.limits.sessions: duplicate field `sessions`
      hint: first defined at 4:12
    tools.yaml:5:1: kind: duplicate field `kind`
      hint: first defined at 1:1
    ");
    assert_snapshot!(problems("? [a]\n: b\n"), @"tools.yaml:1:3: a field name must be a plain string");
    assert_snapshot!(problems("a: &x b\n*x : c\n"), @"tools.yaml:2:1: a field name must be a plain string");
}

#[test]
fn tags_are_refused() {
    assert_snapshot!(problems("kind: !Toolyard x\n"), @"
    tools.yaml:1:7: kind: tags are not supported
      expected a value without a tag, or with `!!str`
    ");
    assert_snapshot!(problems("kind: !!map {}\n"), @"
    tools.yaml:1:7: kind: tags are not supported
      expected a value without a tag, or with `!!str`
    ");
}

#[test]
fn nesting_is_limited() {
    let flow = format!("a: {}{}\n", "[".repeat(70), "]".repeat(70));
    assert_snapshot!(problems(&flow), @"tools.yaml:1:67: a[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]: lists and objects are nested more than 64 deep");
    let block: String = (0..70).map(|depth| format!("{}b:\n", " ".repeat(depth))).collect();
    assert_snapshot!(problems(&block), @"tools.yaml:65:65: b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b: lists and objects are nested more than 64 deep");
    assert_snapshot!(problems(&"[".repeat(100_000)), @"tools.yaml:1:256: invalid YAML or JSON: recursion limit exceeded");
}

#[test]
fn nesting_through_aliases_is_limited() {
    let nest = |inner: &str| format!("{}{inner}{}", "[".repeat(40), "]".repeat(40));
    assert_snapshot!(problems(&format!("a: &a {}\nb: {}\n", nest("x"), nest("*a"))), @"tools.yaml:2:44: b[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]: lists and objects are nested more than 64 deep");
}

#[test]
fn alias_bomb_is_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    assert_snapshot!(problems(&bomb), @"
    tools.yaml:6:5: a5: the documents of this file take more than 64 MiB of memory
      hint: every use of an alias counts
    ");
}

#[test]
fn many_aliases_of_a_long_text_are_refused() {
    let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(100));
    assert_snapshot!(problems(&text), @"
    tools.yaml:2:249: b[61]: the documents of this file take more than 64 MiB of memory
      hint: every use of an alias counts
    ");
}

#[test]
fn many_nodes_are_refused() {
    assert_snapshot!(problems(&format!("[{}]", "1,".repeat(2 << 20))), @"
    tools.yaml:1:2796200: [1398099]: the documents of this file take more than 64 MiB of memory
      hint: every use of an alias counts
    ");
}

#[test]
fn long_text_is_refused() {
    assert_snapshot!(problems(&" ".repeat((16 << 20) + 1)), @"tools.yaml: this file is longer than 16 MiB");
}

#[test]
fn alias_needs_a_complete_anchor_in_its_document() {
    assert_snapshot!(problems("a: &a [*a]\n"), @"tools.yaml:1:8: a[0]: this alias refers to a value that contains it");
    assert_snapshot!(problems("a: *b\n"), @"tools.yaml:1:4: a: invalid YAML or JSON: while parsing node, found unknown anchor");
    assert_snapshot!(problems("&x kind\n---\na: *x\n"), @"
    tools.yaml:1:1: found a string
      expected an object
    tools.yaml:3:4: a: this alias refers to a value that contains it
    ");
}

#[test]
fn merge_keys_are_explained() {
    assert_snapshot!(problems("apiVersion: toolyard.dev/v1alpha1\nkind: Toolyard\nspec: {<<: {listen: x}}\n"), @r#"
    tools.yaml:3:8: spec["<<"]: unknown field
      expected one of listen, grpc, console, tls, proxyProtocol, allowUnauthenticated, unauthenticatedAdmin, allowedHosts, allowedOrigins, secretsDir, store, cluster, bus, a2a, audit, sandbox, programs, functions, builtins, llm, limits, timeouts, telemetry, logs
      hint: YAML 1.2 has no merge keys: write the fields out
    "#);
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    assert_snapshot!(problems("kind: \"\\e[31mred\\n\"\n"), @r"
    tools.yaml:1:7: kind: `\u{1b}[31mred\n` is not a known kind of document
      expected one of ToolRegistry, Toolyard
    ");
    assert_snapshot!(problems(&format!("kind: {}\n", "x".repeat(100))), @"
    tools.yaml:1:7: kind: `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…` is not a known kind of document
      expected one of ToolRegistry, Toolyard
    ");
}

#[test]
fn aliases_and_string_tags_work() {
    let text = "apiVersion: toolyard.dev/v1alpha1\nkind: !!str Toolyard\nspec: {allowedHosts: &h [a, b], allowedOrigins: []}\n";
    assert_eq!(valid(text).process.allowed_hosts, ["a", "b"]);
    let text = "apiVersion: toolyard.dev/v1alpha1\nkind: Toolyard\nspec: {limits: {sessions: &n 7, connections: *n}}\n";
    assert_eq!(valid(text).process.limits.connections, 7);
}

#[test]
fn invalid_json() {
    assert_snapshot!(problems("{\"kind\": \"Toolyard\" \"apiVersion\": 1}"), @"tools.yaml:1:21: invalid YAML or JSON: invalid trailing content after double-quoted scalar");
    assert_snapshot!(problems("{\"kind\": \"\\x\"}"), @"tools.yaml:1:10: invalid YAML or JSON: while parsing a quoted scalar, did not find expected hexadecimal number");
    assert_snapshot!(problems("{\"kind\": \"\\ud83d\"}"), @"tools.yaml:1:10: invalid YAML or JSON: while parsing a quoted scalar, found invalid Unicode character escape code");
    assert_snapshot!(problems("{\"kind\": \"Toolyard\"} // a comment"), @"
    tools.yaml:1:1: apiVersion: this field is required
    tools.yaml:1:22: invalid YAML or JSON: did not find expected <document start>
    ");
    assert_snapshot!(problems("\0\0\0"), @"tools.yaml:1:1: invalid YAML or JSON: found unprintable character");
    assert_snapshot!(problems("{\"a\": 1}}"), @"tools.yaml:1:9: invalid YAML or JSON: misplaced bracket");
}

#[test]
fn invalid_yaml() {
    assert_snapshot!(problems("kind: \"Toolyard\napiVersion: x\n"), @"tools.yaml:1:7: kind: invalid YAML or JSON: invalid indentation in quoted scalar");
    assert_snapshot!(problems("kind: [a\n"), @"tools.yaml:2:1: kind[1]: invalid YAML or JSON: while parsing a flow sequence, expected ',' or ']'");
    assert_snapshot!(problems("kind: @a\n"), @"tools.yaml:1:7: kind: invalid YAML or JSON: unexpected character: `@'");
    assert_snapshot!(problems("kind: %a\n"), @"tools.yaml:1:7: kind: invalid YAML or JSON: unexpected character: `%'");
    assert_snapshot!(problems("a: 1\n  b: 2\n"), @"tools.yaml:2:4: invalid YAML or JSON: mapping values are not allowed in this context");
    assert_snapshot!(problems("a:\n  - b\n c: d\n"), @"tools.yaml:3:2: invalid YAML or JSON: while parsing a block mapping, did not find expected key");
    assert_snapshot!(problems("%YAML 1.2\nkind: x\n"), @"tools.yaml:2:1: invalid YAML or JSON: did not find expected <document start>");
    assert_snapshot!(problems("kind: |\n a\n  b\nc\n"), @"tools.yaml:5:1: invalid YAML or JSON: simple key expect ':'");
}
