//! Invalid usage is reported at once, with the exit status 2.

use std::net::{Ipv4Addr, TcpListener};

use insta::assert_snapshot;
use serde_json::json;
use tempfile::TempDir;
use toolyard_testing::manifest::process_document;
use toolyard_testing::process::{RunningProgram, run};

use super::toolyard_with;
use crate::support::gateway::toolyard;

#[test]
fn usage_errors() {
    assert_snapshot!(toolyard_with(&["server"]), @"
    --- stderr
    error: unrecognized subcommand 'server'

      tip: some similar subcommands exist: 'store', 'service', 'serve'

    Usage: toolyard [OPTIONS] <COMMAND>

    For more information, try '--help'.
    --- exit status 2
    ");
    assert_snapshot!(toolyard_with(&["serve", "--listen", "localhost"]), @"
    --- stderr
    error: invalid value 'localhost' for '--listen <ADDRESS>': this is not an address to listen on: expected an IP address and a port, such as 127.0.0.1:8080 or [::]:8080, or a socket such as unix:/run/toolyard.sock

    For more information, try '--help'.
    --- exit status 2
    ");
    assert_snapshot!(toolyard_with(&["call"]), @"
    --- stderr
    error: the following required arguments were not provided:
      <NAME>

    Usage: toolyard call <NAME> [KEY=VALUE]...

    For more information, try '--help'.
    --- exit status 2
    ");
    assert_snapshot!(toolyard_with(&["call", "add", "a=1", "--json", "{}"]), @"
    --- stderr
    error: the argument '[KEY=VALUE]...' cannot be used with '--json <OBJECT>'

    Usage: toolyard call <NAME> <KEY=VALUE>...

    For more information, try '--help'.
    --- exit status 2
    ");
    assert_snapshot!(toolyard_with(&["tools", "--url", "localhost"]), @"
    --- stderr
    error: invalid value 'localhost' for '--url <URL>': this is not an endpoint: expected a URL such as https://mcp.example.com/mcp

    For more information, try '--help'.
    --- exit status 2
    ");
}

#[test]
fn serve_refuses_invalid_manifest() {
    const MANIFEST: &str = "\
apiVersion: omnia.altairalabs.ai/v1alpha1
kind: ToolRegistry
metadata:
  name: broken
spec:
  handlers:
    - name: time
      type: mcp
      timeout: 30
      mcpConfig:
        transport: stdoi
        command: mcp-server-time
    - name: search
      type: mcp
      clientConfig: {}
      mcpConfig:
        transport: streamable-http
        endpoint: ${SEARCH_URL}
";
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("tools.yaml"), MANIFEST).unwrap();
    let mut serve = toolyard(folder.path());
    serve.current_dir(folder.path()).args(["serve", "-f", "tools.yaml", "-f", "more.yaml"]);
    assert_snapshot!(run(&mut serve), @"
    --- stderr
    error: invalid manifest

    more.yaml: this cannot be read: No such file or directory (os error 2)
    tools.yaml:9:16: spec.handlers[0].timeout: found a number
      expected a duration such as 500ms, 30s, 1m30s or 2h
      hint: add a unit, as in `30s`
    tools.yaml:11:20: spec.handlers[0].mcpConfig.transport: `stdoi` is not a known transport
      expected one of stdio, sse, streamable-http
      hint: did you mean `stdio`?
    tools.yaml:15:7: spec.handlers[1].clientConfig: `clientConfig` is not yet supported
    tools.yaml:18:19: spec.handlers[1].mcpConfig.endpoint: the environment variable `SEARCH_URL` is not set
      hint: `${NAME}` stands for an environment variable, and `$${` for the characters `${`
    --- exit status 2
    ");
}

#[test]
fn public_address_without_keys_is_refused() {
    assert_snapshot!(toolyard_with(&["serve", "--listen", "0.0.0.0:0"]), @"
    --- stderr
    error: 0.0.0.0:0 is reachable from other machines, but there are no keys: create one with `toolyard key create`, listen on 127.0.0.1, or set `allowUnauthenticated: true` in the Toolyard document if a proxy in front authenticates callers
    --- exit status 1
    ");
}

#[test]
fn public_address_with_opt_out_is_served() {
    let folder = TempDir::new().unwrap();
    let decision =
        process_document(folder.path(), json!({"listen": "0.0.0.0:0", "allowUnauthenticated": true}));
    let gateway = RunningProgram::start(toolyard(folder.path()).args(["serve", "-f"]).arg(decision));
    gateway.stdout.wait_for("the URL", |text| text.contains("http://0.0.0.0:").then_some(()));
}

#[test]
fn address_in_use_is_an_error() {
    let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = other.local_addr().unwrap();
    let ended = toolyard_with(&["serve", "--listen", &address.to_string()]);
    assert_snapshot!(ended.to_string().replace(&address.port().to_string(), "PORT"), @"
    --- stderr
    error: cannot listen on 127.0.0.1:PORT: another program does, such as a gateway; choose another address with `--listen`
    --- exit status 1
    ");
}
