//! The files of MCP clients.

use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::Value;

use super::source;
use crate::{
    Manifest, Problems,
    cursor::Cursor,
    import::{Import, checked},
    load_and_import, parse_with,
    report::Report,
    value::{self, Strings},
    yaml,
};

fn import(text: &str) -> Result<Import, Problems> {
    let report = Report::forgiving(&|_| None);
    let import = checked(&source("dir/mcp.json", text), &report);
    Ok(report.finish(import)?.expect("no problem, no import"))
}

/// The manifest, as a reader of manifests reads it, and all that is to be seen.
#[track_caller]
fn read(text: &str) -> (Manifest, String) {
    let import = import(text).unwrap_or_else(|problems| panic!("{problems}"));
    let notes: String = import.notes().iter().map(|note| format!("note: {note}\n")).collect();
    let sources = [source("tools.yaml", &import.to_yaml())];
    let everything_set = |name: &str| Some(name.to_owned());
    let manifest = parse_with(&sources, &everything_set).unwrap_or_else(|problems| panic!("{problems}"));
    let json = parse_with(&[source("tools.json", &import.to_json())], &everything_set).unwrap();
    assert_eq!(manifest, json);
    (manifest, import.to_yaml() + &notes)
}

/// What is to be seen, from the first handler on.
#[track_caller]
fn shown(text: &str) -> String {
    let (_, shown) = read(text);
    shown.split_once("  handlers:\n").unwrap().1.to_owned()
}

#[track_caller]
fn problems(text: &str) -> String {
    import(text).map(|import| import.to_yaml()).unwrap_err().to_string()
}

#[test]
fn claude_desktop() {
    let text = r#"{
  "globalShortcut": "",
  "mcpServers": {
    "filesystem": {"command": "npx", "args": ["-y", "server-filesystem", "/home/me/My Files"]},
    "GitHub Tools": {"command": "docker", "env": {"GITHUB_TOKEN": "ghp_abc", "LOG": "yes", "N": 3, "OFF": null}},
    "old": {"command": "x", "disabled": true, "alwaysAllow": []},
    "db": {"command": "x", "env": {"DATABASE_URL": "file:./dev.db"}, "autoApprove": ["a"], "timeout": 60}
  }
}"#;
    let (_, shown) = read(text);
    assert_snapshot!(shown, @r#"
    apiVersion: omnia.altairalabs.ai/v1alpha1
    kind: ToolRegistry
    metadata:
      name: mcp
    spec:
      handlers:
        - name: filesystem
          type: mcp
          mcpConfig:
            transport: stdio
            command: npx
            args: ["-y", server-filesystem, "/home/me/My Files"]
        - name: github-tools
          type: mcp
          mcpConfig:
            transport: stdio
            command: docker
            env:
              GITHUB_TOKEN: ghp_abc
              LOG: "yes"
              "N": "3"
        - name: db
          type: mcp
          mcpConfig:
            transport: stdio
            command: x
            env:
              DATABASE_URL: file:./dev.db
    note: dir/mcp.json:5:21: mcpServers["GitHub Tools"]: `GitHub Tools` is called `github-tools` now
    note: dir/mcp.json:5:67: mcpServers["GitHub Tools"].env.GITHUB_TOKEN: this value is in the manifest as it is here; `${NAME}` would keep it out
    note: dir/mcp.json:6:12: mcpServers.old: `old` is disabled, and left out
    note: dir/mcp.json:7:11: mcpServers.db: not taken over: `autoApprove`, `timeout`
    "#);
}

#[test]
fn claude_code() {
    let text = r#"{"mcpServers": {
  "api": {"type": "stdio", "command": "${CLAUDE_PLUGIN_ROOT}/run", "env": {"API_KEY": "${API_KEY:-none}", "X": "${Y"}},
  "cwd": {"command": "uvx", "args": ["a"], "cwd": "/srv"}
}}"#;
    assert_snapshot!(shown(text), @r#"
    - name: api
      type: mcp
      mcpConfig:
        transport: stdio
        command: "${CLAUDE_PLUGIN_ROOT}/run"
        env:
          API_KEY: "${API_KEY:-none}"
          X: "$${Y"
    - name: cwd
      type: mcp
      mcpConfig:
        transport: stdio
        command: uvx
        args: [a]
        workDir: /srv
    "#);
}

#[test]
fn vs_code() {
    let text = r#"// Settings
{
  "editor.fontSize": 14, /* not
  ours */
  "mcp": {
    "inputs": [{"type": "promptString", "id": "perplexity-key", "description": "Key", "password": true}],
    "servers": {
      "perplexity": {
        "type": "stdio", "command": "npx", "args": ["-y", "// no comment"],
        "env": {"KEY": "${input:perplexity-key}", "AGAIN": "${input:perplexity-key}"},
        "cwd": "${workspaceFolder}/x",
      },
      "fetch": {"command": "uvx", "envFile": "${workspaceFolder}/.env"},
      "ws": {"type": "ws", "url": "ws://a.example"},
    },
  },
}"#;
    assert_snapshot!(shown(text), @r#"
        - name: perplexity
          type: mcp
          mcpConfig:
            transport: stdio
            command: npx
            args: ["-y", "// no comment"]
            env:
              KEY: "${PERPLEXITY_KEY}"
              AGAIN: "${PERPLEXITY_KEY}"
            workDir: "${WORKSPACE_FOLDER}/x"
        - name: fetch
          type: mcp
          mcpConfig:
            transport: stdio
            command: uvx
    note: dir/mcp.json:10:24: mcp.servers.perplexity.env.KEY: `${input:perplexity-key}` is the variable `PERPLEXITY_KEY` now: set it
    note: dir/mcp.json:10:60: mcp.servers.perplexity.env.AGAIN: `${input:perplexity-key}` is the variable `PERPLEXITY_KEY` now: set it
    note: dir/mcp.json:11:16: mcp.servers.perplexity.cwd: `${workspaceFolder}` is the variable `WORKSPACE_FOLDER` now: set it
    note: dir/mcp.json:13:16: mcp.servers.fetch: not taken over: `envFile`
    note: dir/mcp.json:14:13: mcp.servers.ws: `ws` is left out: `ws` is no transport of ours
    "#);
    let elsewhere = r#"{"servers": {"a": {"command": "x"}}, "inputs": []}"#;
    assert_snapshot!(shown(elsewhere), @"
    - name: a
      type: mcp
      mcpConfig:
        transport: stdio
        command: x
    ");
}

#[test]
fn servers_at_a_url() {
    let text = r#"{"mcpServers": {
  "cursor": {"url": "http://localhost:3000/mcp", "headers": {"Authorization": "Bearer ${env:MY_KEY}", "X-Team": "a"}},
  "sse": {"url": "https://a.example/sse"},
  "said": {"type": "sse", "url": "https://a.example/events"},
  "http": {"type": "http", "url": "https://${HOST:-a.example}/mcp", "command": ""},
  "literal": {"type": "streamable-http", "url": "https://a.example/mcp", "headers": {"X-Api-Key": "abc"}}
}}"#;
    assert_snapshot!(shown(text), @r#"
        - name: cursor
          type: mcp
          mcpConfig:
            transport: streamable-http
            endpoint: http://localhost:3000/mcp
            headers:
              Authorization: "Bearer ${MY_KEY}"
              X-Team: a
        - name: sse
          type: mcp
          mcpConfig:
            transport: sse
            endpoint: https://a.example/sse
        - name: said
          type: mcp
          mcpConfig:
            transport: sse
            endpoint: https://a.example/events
        - name: http
          type: mcp
          mcpConfig:
            transport: streamable-http
            endpoint: "https://${HOST:-a.example}/mcp"
        - name: literal
          type: mcp
          mcpConfig:
            transport: streamable-http
            endpoint: https://a.example/mcp
            headers:
              X-Api-Key: abc
    note: dir/mcp.json:6:99: mcpServers.literal.headers.X-Api-Key: this value is in the manifest as it is here; `${NAME}` would keep it out
    "#);
}

#[test]
fn agents_with_lists_of_tools() {
    let text = r#"{"mcpServers": {
  "both": {"type": "sse", "url": "http://a.example:8080/", "allowedTools": ["read"], "deniedTools": ["write"]},
  "denied": {"command": "x", "deniedTools": ["write"], "allowedTools": []},
  "empty": {"command": "x", "deniedTools": [], "allowedTools": []}
}}"#;
    assert_snapshot!(shown(text), @"
    - name: both
      type: mcp
      mcpConfig:
        transport: sse
        endpoint: http://a.example:8080/
        toolFilter:
          allowlist: [read]
          blocklist: [write]
    - name: denied
      type: mcp
      mcpConfig:
        transport: stdio
        command: x
        toolFilter:
          blocklist: [write]
    - name: empty
      type: mcp
      mcpConfig:
        transport: stdio
        command: x
    ");
}

/// As the contract of these agents has it.
#[test]
fn the_section_of_an_agent_on_dotnet() {
    let text = r#"{
"Mcp": {
"Servers": [
{
"Name": "weather-server",
"Command": "uvx",
"Arguments": ["mcp-server-weather"],
"EnvironmentVariables": { "API_KEY": "..." }
}
]
}
}"#;
    assert_snapshot!(read(text).1, @r#"
    apiVersion: omnia.altairalabs.ai/v1alpha1
    kind: ToolRegistry
    metadata:
      name: mcp
    spec:
      handlers:
        - name: weather-server
          type: mcp
          mcpConfig:
            transport: stdio
            command: uvx
            args: [mcp-server-weather]
            env:
              API_KEY: "..."
    note: dir/mcp.json:8:38: Mcp.Servers[0].EnvironmentVariables.API_KEY: this value is in the manifest as it is here; `${NAME}` would keep it out
    "#);
}

#[test]
fn names() {
    let text = r#"{"mcpServers": {"My Server": {"command": "a"}, "my-server": {"command": "b"}, "MY_SERVER": {"command": "c"}}}"#;
    assert_snapshot!(shown(text), @r#"
        - name: my-server-2
          type: mcp
          mcpConfig:
            transport: stdio
            command: a
        - name: my-server
          type: mcp
          mcpConfig:
            transport: stdio
            command: b
        - name: my-server-3
          type: mcp
          mcpConfig:
            transport: stdio
            command: c
    note: dir/mcp.json:1:30: mcpServers["My Server"]: `My Server` is called `my-server-2` now
    note: dir/mcp.json:1:92: mcpServers.MY_SERVER: `MY_SERVER` is called `my-server-3` now
    "#);
}

#[test]
fn mistakes() {
    assert_snapshot!(problems(""), @"
    dir/mcp.json: this is not one JSON text
      expected `mcpServers`, or `servers` as VS Code has it, with at least one server
    ");
    assert_snapshot!(problems("null"), @"
    dir/mcp.json: this is not one JSON text
      expected `mcpServers`, or `servers` as VS Code has it, with at least one server
    ");
    assert_snapshot!(problems("[]"), @"
    dir/mcp.json:1:1: this names no MCP servers
      expected `mcpServers`, or `servers` as VS Code has it, with at least one server
    ");
    assert_snapshot!(problems("{}{}"), @"
    dir/mcp.json:1:1: this names no MCP servers
      expected `mcpServers`, or `servers` as VS Code has it, with at least one server
    dir/mcp.json:1:3: this is neither YAML nor JSON: did not find expected <document start>
    ");
    assert_snapshot!(problems("{} --- {}"), @"
    dir/mcp.json:1:1: this names no MCP servers
      expected `mcpServers`, or `servers` as VS Code has it, with at least one server
    dir/mcp.json:1:4: this is neither YAML nor JSON: did not find expected <document start>
    ");
    assert_snapshot!(problems("{\"servers\": {\"a\": {\"command\": \"x\"}}, \"inputs\""), @"dir/mcp.json:2:1: this is neither YAML nor JSON: while parsing a flow mapping, did not find expected ',' or '}'");
    assert_snapshot!(problems(r#"{"mcpServers": {}}"#), @"
    dir/mcp.json:1:1: this file has no server that is wanted
      expected `mcpServers`, or `servers` as VS Code has it, with at least one server
    ");
    assert_snapshot!(problems(r#"{"mcpServers": 5, "servers": {}}"#), @"
    dir/mcp.json:1:16: mcpServers: found a number
      expected an object
    ");
    assert_snapshot!(problems(r#"{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}"#), @"
    dir/mcp.json:1:40: mcpServers.a: `a` is given twice
      hint: it was first given at 1:17
    ");
    assert_snapshot!(problems(r#"{"mcpServers": {"a": [], "b": {}, "c": {"type": 5, "command": "x"}, "d": {"disabled": "yes", "command": ""}}}"#), @"
    dir/mcp.json:1:22: mcpServers.a: found a list
      expected an object
    dir/mcp.json:1:31: mcpServers.b: this server has neither a command nor a URL
      expected `command`, or `url` of a server that runs by itself
    dir/mcp.json:1:49: mcpServers.c.type: found a number
      expected a string
      hint: put it in quotes
    dir/mcp.json:1:87: mcpServers.d.disabled: found a string
      expected true or false
      hint: a boolean has no quotes, and `yes` is not one
    dir/mcp.json:1:105: spec.handlers[1].mcpConfig.command: `` is not a command
      expected the name or the path of a program
    ");
    assert_snapshot!(problems(r#"{"mcpServers": {"a": {"command": ["x"], "args": "y", "env": ["A=b"], "cwd": 5}}}"#), @"
    dir/mcp.json:1:34: spec.handlers[0].mcpConfig.command: found a list
      expected a string
    dir/mcp.json:1:49: spec.handlers[0].mcpConfig.args: found a string
      expected a list
      hint: a list of one item is written `[item]`
    dir/mcp.json:1:61: spec.handlers[0].mcpConfig.env: found a list
      expected an object
    ");
    assert_snapshot!(problems(r#"{"mcpServers": {"a": {"url": "a.example"}}}"#), @"
    dir/mcp.json:1:30: spec.handlers[0].mcpConfig.endpoint: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
      hint: it begins with http:// or https://
    ");
    assert_snapshot!(problems(r#"{"mcpServers": {"a": {"command": "x", "disabled": true}}}"#), @"
    dir/mcp.json:1:1: this file has no server that is wanted
      expected `mcpServers`, or `servers` as VS Code has it, with at least one server
    ");
    assert_snapshot!(problems(&format!("{}1", r#"{"a":"#.repeat(70))), @"dir/mcp.json:1:321: a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a: lists and objects are nested more than 64 deep");
}

/// A file with a byte order mark, and one that starts with comments.
#[test]
fn what_may_stand_before() {
    assert_eq!(read("\u{feff}{\"servers\": {\"a\": {\"command\": \"x\"}}}").0.handlers.len(), 1);
    assert_eq!(
        read("/* a */\r\n// b\r\n{\"servers\": {\"a\": {\"command\": \"\\ud83d\\ude00\"}}}").0.handlers.len(),
        1
    );
}

#[test]
fn several_files_are_served_together() {
    let folder = std::env::temp_dir().join(format!("toolyard-import-{}", std::process::id()));
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    let imports = [
        file("a/mcp.json", r#"{"mcpServers": {"files": {"command": "a"}}}"#),
        file("b/mcp.json", r#"{"servers": {"files": {"command": "b"}, "more": {"command": "c"}}}"#),
    ];
    let manifests = [file("tools.yaml", &super::handler("").replace("files", "first"))];
    let (manifest, notes) = load_and_import(&manifests, &imports).unwrap();
    let names: Vec<_> = manifest.handlers.iter().map(|handler| handler.name.as_str()).collect();
    assert_eq!(names, ["first", "files", "files-2", "more"]);
    assert_eq!(notes.len(), 1);

    let clash = [file("tools.yaml", &super::handler(""))];
    let broken = file("c.json", "{");
    let problems = load_and_import(&clash, &[imports[0].clone(), broken]).unwrap_err().to_string();
    assert_snapshot!(problems.replace(folder.to_str().unwrap(), ""), @"
    /a/mcp.json:1:26: spec.handlers[0].name: a second handler of this name
      hint: the first one is at /tools.yaml:6:11: spec.handlers[0].name
    /c.json:2:1: this is neither YAML nor JSON: while parsing a node, did not find expected node content
    ");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn secrets_do_not_show() {
    let text = r#"{"mcpServers": {"a": {"command": "x", "args": ["hunter2"], "env": {"A_KEY": "hunter2"}, "hunter3": 1}}}"#;
    let (manifest, _) = read(text);
    let notes = format!("{:?}", import(text).unwrap().notes());
    assert!(!format!("{manifest:?}{notes}").contains("hunter2"));
}

fn json() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[a-z0-9~.:+-]{0,5}".prop_map(Value::from),
        prop::sample::select(vec!["yes", "null", "1e3", "0x1", ".inf", "a: b", "- a", "#"])
            .prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(value in json()) {
        let value = serde_json::json!({ "a": value });
        let text = yaml::written(&value);
        let report = Report::new(&|_| None);
        let documents = crate::builder::documents(&source("a", &text), &report);
        let read = value::object(Cursor::document("a", &documents[0], &report), Strings::Literal);
        prop_assert_eq!(read.map(Value::Object), Some(value), "{}", text);
        prop_assert_eq!(report.count(), 0);
    }

    #[test]
    fn any_file_is_read_to_its_end(text in any::<String>()) {
        let _ = import(&text);
        let _ = import(&format!(r#"{{"mcpServers": {{"a": {{{text}}}}}}}"#));
    }
}
