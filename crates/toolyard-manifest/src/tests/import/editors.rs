//! The files of editors with a format of their own: Codex and Zed.

use super::*;

/// Parses a file with this name.
#[track_caller]
fn named(name: &str, text: &str) -> String {
    let report = ProblemReport::lenient(&|_| None);
    let import = import_checked(&source(name, text), &report);
    match report.finish(import) {
        Ok(import) => {
            let import = import.expect("no problem, no import");
            let notes: String = import.notes().iter().map(|note| format!("note: {note}\n")).collect();
            let yaml = import.to_yaml();
            yaml.split_once("  handlers:\n").unwrap().1.to_owned() + &notes
        }
        Err(problems) => problems.to_string(),
    }
}

#[test]
fn codex() {
    let text = r#"
model = "o4"

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs"]
env = { "API_KEY" = "abc" }
startup_timeout_sec = 20

[mcp_servers.api]
url = "https://a.example/mcp"
bearer_token_env_var = "API_TOKEN"
http_headers = { "X-Team" = "a" }
env_http_headers = { "X-User" = "USER_ID" }
enabled_tools = ["read"]

[mcp_servers.off]
command = "x"
enabled = false
"#;
    assert_snapshot!(named("config.toml", text), @r#"
        - name: docs
          type: mcp
          mcpConfig:
            transport: stdio
            command: npx
            args: ["-y", docs]
            env:
              API_KEY: abc
        - name: api
          type: mcp
          mcpConfig:
            transport: streamable-http
            endpoint: https://a.example/mcp
            headers:
              X-Team: a
              Authorization: "Bearer ${API_TOKEN}"
              X-User: "${USER_ID}"
            toolFilter:
              allowlist: [read]
    note: config.toml:4:1: mcp_servers.docs: not imported: `startup_timeout_sec`
    note: config.toml:7:21: mcp_servers.docs.env.API_KEY: this value is copied into the manifest; use `${NAME}` to keep it out
    note: config.toml:17:1: mcp_servers.off: `off` is disabled and not imported
    "#);
    assert_snapshot!(named("config.toml", "a = [1,\n[x"), @"config.toml:2:3: invalid TOML: unclosed array, expected `]`");
    assert_snapshot!(named("config.toml", "[mcp_servers.a]\ncommand = 5"), @r#"
    - name: a
      type: mcp
      mcpConfig:
        transport: stdio
        command: "5"
    "#);
    assert_snapshot!(named("config.toml", "model = 'x'"), @"
    config.toml:1:1: no MCP servers found
      expected `mcpServers`, or `servers` (VS Code), with at least one server
    ");
}

#[test]
fn zed() {
    let text = r#"{
  // Settings
  "theme": "One",
  "context_servers": {
    "new": {"source": "custom", "command": "uvx", "args": ["a"], "env": {"B": "c"}},
    "old": {"command": {"path": "npx", "args": ["b"], "env": null}, "settings": {}},
    "url": {"url": "https://a.example/mcp"}
  }
}"#;
    assert_snapshot!(named("settings.json", text), @"
        - name: new
          type: mcp
          mcpConfig:
            transport: stdio
            command: uvx
            args: [a]
            env:
              B: c
        - name: old
          type: mcp
          mcpConfig:
            transport: stdio
            command: npx
            args: [b]
        - name: url
          type: mcp
          mcpConfig:
            transport: streamable-http
            endpoint: https://a.example/mcp
    note: settings.json:6:12: context_servers.old: not imported: `settings`
    ");
}
