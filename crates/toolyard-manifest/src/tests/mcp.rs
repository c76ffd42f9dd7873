//! Mistakes in `mcpConfig`, and references to the environment.

use insta::assert_snapshot;

use super::{handler, mcp, problems, registry};

#[test]
fn transports() {
    assert_snapshot!(problems(&mcp("command: x")), @"tools.yaml:9:7: spec.handlers[0].mcpConfig.transport: this field is required");
    assert_snapshot!(problems(&mcp("transport: sse\nendpoint: http://localhost/sse")), @"
    tools.yaml:9:18: spec.handlers[0].mcpConfig.transport: transport `sse` is not yet supported
      expected one of stdio, streamable-http
    ");
    assert_snapshot!(problems(&mcp("transport: streamablehttp\nendpiont: http://localhost/mcp")), @"
    tools.yaml:9:18: spec.handlers[0].mcpConfig.transport: `streamablehttp` is not a known transport
      expected one of stdio, streamable-http
      hint: did you mean `streamable-http`?
    tools.yaml:10:7: spec.handlers[0].mcpConfig.endpiont: unknown field
      expected one of transport, endpoint, command, args, workDir, env
      hint: did you mean `endpoint`?
    ");
    assert_snapshot!(problems(&mcp("transport: stdio\nendpoint: http://localhost/mcp")), @"
    tools.yaml:9:7: spec.handlers[0].mcpConfig.command: this field is required
    tools.yaml:10:7: spec.handlers[0].mcpConfig.endpoint: `endpoint` does not belong here
      hint: it belongs to the transport `streamable-http`
    ");
    assert_snapshot!(problems(&mcp("transport: streamable-http\ncommand: x\nenv: {A: b}")), @"
    tools.yaml:9:7: spec.handlers[0].mcpConfig.endpoint: this field is required
    tools.yaml:10:7: spec.handlers[0].mcpConfig.command: `command` does not belong here
      hint: it belongs to the transport `stdio`
    tools.yaml:11:7: spec.handlers[0].mcpConfig.env: `env` does not belong here
      hint: it belongs to the transport `stdio`
    ");
}

#[test]
fn endpoints_are_not_repeated() {
    let http = |endpoint| problems(&mcp(&format!("transport: streamable-http\nendpoint: {endpoint}")));
    assert_snapshot!(http("mcp.example.com"), @"
    tools.yaml:10:17: spec.handlers[0].mcpConfig.endpoint: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
      hint: it begins with http:// or https://
    ");
    assert_snapshot!(http("ftp://mcp.example.com/"), @"
    tools.yaml:10:17: spec.handlers[0].mcpConfig.endpoint: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
      hint: it begins with http:// or https://
    ");
    assert_snapshot!(http("https://user:password@mcp.example.com/mcp"), @"
    tools.yaml:10:17: spec.handlers[0].mcpConfig.endpoint: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
      hint: a URL is no place for a user name or a password: it ends up in logs
    ");
    assert_snapshot!(http("https://mcp.example.com:99999/mcp"), @"
    tools.yaml:10:17: spec.handlers[0].mcpConfig.endpoint: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
    ");
}

#[test]
fn stdio_fields() {
    assert_snapshot!(problems(&mcp("transport: stdio\ncommand: ''\nworkDir: ''")), @"
    tools.yaml:10:16: spec.handlers[0].mcpConfig.command: `` is not a command
      expected the name or the path of a program
    tools.yaml:11:16: spec.handlers[0].mcpConfig.workDir: `` is not a folder
      expected the path of a folder
    ");
    assert_snapshot!(problems(&mcp("transport: stdio\ncommand: x\nargs: --root=/data")), @"
    tools.yaml:11:13: spec.handlers[0].mcpConfig.args: found a string
      expected a list
      hint: a list of one item is written `[item]`
    ");
    assert_snapshot!(problems(&mcp("transport: stdio\ncommand: x\nargs: [--port, 8080, true, ~, {}]")), @"
    tools.yaml:11:22: spec.handlers[0].mcpConfig.args[1]: found a number
      expected a string
      hint: put it in quotes
    tools.yaml:11:28: spec.handlers[0].mcpConfig.args[2]: found a boolean
      expected a string
      hint: put it in quotes
    tools.yaml:11:34: spec.handlers[0].mcpConfig.args[3]: found nothing (null)
      expected a string
    tools.yaml:11:37: spec.handlers[0].mcpConfig.args[4]: found an object
      expected a string
    ");
    assert_snapshot!(problems(&mcp("transport: stdio\ncommand: x\nenv: [A=b]")), @"
    tools.yaml:11:12: spec.handlers[0].mcpConfig.env: found a list
      expected an object
    ");
    assert_snapshot!(problems(&mcp("transport: stdio\ncommand: x\nenv: {PORT: 8080, A=B: c}")), @r#"
    tools.yaml:11:19: spec.handlers[0].mcpConfig.env.PORT: found a number
      expected a string
      hint: put it in quotes
    tools.yaml:11:25: spec.handlers[0].mcpConfig.env["A=B"]: `A=B` is not the name of an environment variable
      expected at least one character, and no `=` or NUL
    "#);
    assert_snapshot!(problems(&mcp("transport: stdio\ncommand: \"a\\0b\"")), @"
    tools.yaml:10:16: spec.handlers[0].mcpConfig.command: found a string
      expected a string without a NUL character
    ");
}

#[test]
fn the_environment() {
    assert_snapshot!(problems(&mcp("transport: stdio\ncommand: x\nargs: ['${MISSING} ${ALSO}']")), @"
    tools.yaml:11:14: spec.handlers[0].mcpConfig.args[0]: the environment variable `MISSING` is not set
      hint: `${NAME}` stands for an environment variable, and `$${` for the characters `${`
    tools.yaml:11:14: spec.handlers[0].mcpConfig.args[0]: the environment variable `ALSO` is not set
      hint: `${NAME}` stands for an environment variable, and `$${` for the characters `${`
    ");
    assert_snapshot!(problems(&mcp("transport: stdio\ncommand: x\nenv: {A: '${TOKEN:x}', B: '${TOKEN'}")), @"
    tools.yaml:11:16: spec.handlers[0].mcpConfig.env.A: `TOKEN:x` is not the name of an environment variable
      hint: `${NAME}` stands for an environment variable, and `$${` for the characters `${`
    tools.yaml:11:33: spec.handlers[0].mcpConfig.env.B: a `${` has no `}`
      hint: `${NAME}` stands for an environment variable, and `$${` for the characters `${`
    ");
}

#[test]
fn what_the_environment_holds_is_never_shown() {
    assert_snapshot!(problems(&handler("timeout: ${TOKEN}")), @"
    tools.yaml:9:14: spec.handlers[0].timeout: `${TOKEN}` is not a duration
      expected a duration such as 500ms, 30s, 1m30s or 2h
      hint: the units are h, m, s, ms, us and ns, without spaces
    ");
    assert_snapshot!(problems(&handler("").replace("files", "${TOKEN}_")), @"
    tools.yaml:6:11: spec.handlers[0].name: `${TOKEN}_` is not a handler name
      expected at most 63 lower-case letters, digits and `-`, such as code-tools
    ");
    assert_snapshot!(problems(&handler("").replace("mcp\n", "${TOKEN}\n")), @"
    tools.yaml:7:11: spec.handlers[0].type: `${TOKEN}` is not a known handler type
      expected one of mcp, http, grpc, openapi
    ");
    assert_snapshot!(problems(&mcp("transport: streamable-http\nendpoint: '${TOKEN}'")), @"
    tools.yaml:10:17: spec.handlers[0].mcpConfig.endpoint: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
      hint: it begins with http:// or https://
    ");
    let twice = "  - {name: '${TOKEN}', type: client}\n  - {name: '${TOKEN}', type: client}\n";
    assert_snapshot!(problems(&registry(twice)), @"
    tools.yaml:6:30: spec.handlers[0].type: handler type `client` is not yet supported
      expected one of mcp, http, grpc, openapi
    tools.yaml:7:12: spec.handlers[1].name: a second handler of this name
      hint: the first one is at tools.yaml:6:12: spec.handlers[0].name
    tools.yaml:7:30: spec.handlers[1].type: handler type `client` is not yet supported
      expected one of mcp, http, grpc, openapi
    ");
}
