//! The files of MCP clients.

mod client_servers;
mod editors;
mod models;
mod web_tools;

use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::Value;

use super::source;
use crate::{
    ClientFile, ImportNote, Manifest, ManifestProblems, SecretPlacement,
    cursor::ValueCursor,
    import::{ImportedManifest, import_checked, import_servers},
    load_and_import, parse_with,
    report::ProblemReport,
    value::{self, StringMode},
    yaml,
};

fn import(text: &str) -> Result<ImportedManifest, ManifestProblems> {
    let report = ProblemReport::lenient(&|_| None);
    let import = import_checked(&source("dir/mcp.json", text), &report);
    Ok(report.finish(import)?.expect("no problem, no import"))
}

/// The notes of an import, one in a line.
fn notes(import: &ImportedManifest) -> String {
    import.notes().iter().map(|note| format!("{note}\n")).collect()
}

/// The `Toolyard` document of an import.
#[track_caller]
fn process_document(import: &ImportedManifest) -> String {
    let yaml = import.to_yaml();
    yaml.split_once("---\n").unwrap().1.to_owned()
}

/// The parsed manifest, with the YAML and the notes.
#[track_caller]
fn read(text: &str) -> (Manifest, String) {
    let import = import(text).unwrap_or_else(|problems| panic!("{problems}"));
    let notes: String = import.notes().iter().map(|note| format!("note: {note}\n")).collect();
    let sources = [source("tools.yaml", &import.to_yaml())];
    let everything_set = |name: &str| Some(name.to_owned());
    let manifest = parse_with(&sources, &everything_set).unwrap_or_else(|problems| panic!("{problems}"));
    let json = parse_with(&[source("tools.json", &import.to_json())], &everything_set).unwrap();
    assert_eq!(manifest.handlers, json.handlers);
    (manifest, import.to_yaml() + &notes)
}

/// The YAML and the notes, from the first handler on.
#[track_caller]
fn handlers_yaml(text: &str) -> String {
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
    note: dir/mcp.json:5:21: mcpServers["GitHub Tools"]: `GitHub Tools` is renamed to `github-tools`
    note: dir/mcp.json:5:67: mcpServers["GitHub Tools"].env.GITHUB_TOKEN: this value is copied into the manifest; use `${NAME}` to keep it out
    note: dir/mcp.json:6:12: mcpServers.old: `old` is disabled and not imported
    note: dir/mcp.json:7:11: mcpServers.db: not imported: `autoApprove`, `timeout`
    "#);
}

#[test]
fn claude_code() {
    let text = r#"{"mcpServers": {
  "api": {"type": "stdio", "command": "${CLAUDE_PLUGIN_ROOT}/run", "env": {"API_KEY": "${API_KEY:-none}", "X": "${Y"}},
  "cwd": {"command": "uvx", "args": ["a"], "cwd": "/srv"}
}}"#;
    assert_snapshot!(handlers_yaml(text), @r#"
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
    assert_snapshot!(handlers_yaml(text), @r#"
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
    note: dir/mcp.json:10:24: mcp.servers.perplexity.env.KEY: `${input:perplexity-key}` becomes the variable `PERPLEXITY_KEY`: set it
    note: dir/mcp.json:10:60: mcp.servers.perplexity.env.AGAIN: `${input:perplexity-key}` becomes the variable `PERPLEXITY_KEY`: set it
    note: dir/mcp.json:11:16: mcp.servers.perplexity.cwd: `${workspaceFolder}` becomes the variable `WORKSPACE_FOLDER`: set it
    note: dir/mcp.json:13:16: mcp.servers.fetch: not imported: `envFile`
    note: dir/mcp.json:14:13: mcp.servers.ws: `ws` is not imported: unsupported transport `ws`
    "#);
    let elsewhere = r#"{"servers": {"a": {"command": "x"}}, "inputs": []}"#;
    assert_snapshot!(handlers_yaml(elsewhere), @"
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
    assert_snapshot!(handlers_yaml(text), @r#"
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
    note: dir/mcp.json:6:99: mcpServers.literal.headers.X-Api-Key: this value is copied into the manifest; use `${NAME}` to keep it out
    "#);
}

#[test]
fn tool_lists_of_agents() {
    let text = r#"{"mcpServers": {
  "both": {"type": "sse", "url": "http://a.example:8080/", "allowedTools": ["read"], "deniedTools": ["write"]},
  "denied": {"command": "x", "deniedTools": ["write"], "allowedTools": []},
  "empty": {"command": "x", "deniedTools": [], "allowedTools": []}
}}"#;
    assert_snapshot!(handlers_yaml(text), @"
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

/// The settings of agents on .NET, as in the contract.
#[test]
fn settings_of_an_agent_on_dotnet() {
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
    note: dir/mcp.json:8:38: Mcp.Servers[0].EnvironmentVariables.API_KEY: this value is copied into the manifest; use `${NAME}` to keep it out
    "#);
}

#[test]
fn names() {
    let text = r#"{"mcpServers": {"My Server": {"command": "a"}, "my-server": {"command": "b"}, "MY_SERVER": {"command": "c"}}}"#;
    assert_snapshot!(handlers_yaml(text), @r#"
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
    note: dir/mcp.json:1:30: mcpServers["My Server"]: `My Server` is renamed to `my-server-2`
    note: dir/mcp.json:1:92: mcpServers.MY_SERVER: `MY_SERVER` is renamed to `my-server-3`
    "#);
}

#[test]
fn second_list_of_servers_is_named() {
    let text =
        r#"{"mcpServers": {"a": {"command": "x"}}, "servers": {"b": {"command": "y"}}, "mcp_servers": {}}"#;
    assert_snapshot!(handlers_yaml(text), @r#"
        - name: a
          type: mcp
          mcpConfig:
            transport: stdio
            command: x
    note: dir/mcp.json:1:52: servers: these servers are not imported: another list of the file comes first
    "#);
}

#[test]
fn mistakes() {
    assert_snapshot!(problems(""), @"
    dir/mcp.json: this is not a single JSON document
      expected `mcpServers`, or `servers` (VS Code), with at least one server
    ");
    assert_snapshot!(problems("null"), @"
    dir/mcp.json: this is not a single JSON document
      expected `mcpServers`, or `servers` (VS Code), with at least one server
    ");
    assert_snapshot!(problems("[]"), @"
    dir/mcp.json:1:1: no MCP servers found
      expected `mcpServers`, or `servers` (VS Code), with at least one server
    ");
    assert_snapshot!(problems("{}{}"), @"
    dir/mcp.json:1:1: no MCP servers found
      expected `mcpServers`, or `servers` (VS Code), with at least one server
    dir/mcp.json:1:3: invalid YAML or JSON: did not find expected <document start>
    ");
    assert_snapshot!(problems("{} --- {}"), @"
    dir/mcp.json:1:1: no MCP servers found
      expected `mcpServers`, or `servers` (VS Code), with at least one server
    dir/mcp.json:1:4: invalid YAML or JSON: did not find expected <document start>
    ");
    assert_snapshot!(problems("{\"servers\": {\"a\": {\"command\": \"x\"}}, \"inputs\""), @"dir/mcp.json:2:1: invalid YAML or JSON: while parsing a flow mapping, did not find expected ',' or '}'");
    assert_snapshot!(problems(r#"{"mcpServers": {}}"#), @"
    dir/mcp.json:1:1: this file has no enabled server with a supported transport
      expected `mcpServers`, or `servers` (VS Code), with at least one server
    ");
    assert_snapshot!(problems(r#"{"mcpServers": 5, "servers": {}}"#), @"
    dir/mcp.json:1:16: mcpServers: found a number
      expected an object
    ");
    assert_snapshot!(problems(r#"{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}"#), @"
    dir/mcp.json:1:40: mcpServers.a: duplicate field `a`
      hint: first defined at 1:17
    ");
    assert_snapshot!(problems(r#"{"mcpServers": {"a": [], "b": {}, "c": {"type": 5, "command": "x"}, "d": {"disabled": "yes", "command": ""}}}"#), @"
    dir/mcp.json:1:22: mcpServers.a: found a list
      expected an object
    dir/mcp.json:1:31: mcpServers.b: this server has neither a command nor a URL
      expected `command` or `url`
    dir/mcp.json:1:49: mcpServers.c.type: found a number
      expected a string
      hint: put it in quotes
    dir/mcp.json:1:87: mcpServers.d.disabled: found a string
      expected true or false
      hint: write true or false, without quotes
    ");
    assert_snapshot!(problems(r#"{"mcpServers": {"a": {"command": ["x"], "args": "y", "env": ["A=b"], "cwd": 5}}}"#), @"
    dir/mcp.json:1:34: spec.handlers[0].mcpConfig.command: found a list
      expected a string
    dir/mcp.json:1:49: spec.handlers[0].mcpConfig.args: found a string
      expected a list
      hint: write a list of one item as `[item]`
    dir/mcp.json:1:61: spec.handlers[0].mcpConfig.env: found a list
      expected an object
    ");
    assert_snapshot!(problems(r#"{"mcpServers": {"a": {"url": "a.example"}}}"#), @"
    dir/mcp.json:1:30: spec.handlers[0].mcpConfig.endpoint: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
      hint: the scheme is missing: put `http://` or `https://` in front
    ");
    assert_snapshot!(problems(r#"{"mcpServers": {"a": {"command": "x", "disabled": true}}}"#), @"
    dir/mcp.json:1:1: this file has no enabled server with a supported transport
      expected `mcpServers`, or `servers` (VS Code), with at least one server
    ");
    assert_snapshot!(problems(&format!("{}1", r#"{"a":"#.repeat(70))), @"dir/mcp.json:1:321: a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a: lists and objects are nested more than 64 deep");
}

/// A file with a byte order mark, and one that starts with comments.
#[test]
fn byte_order_mark_and_leading_comments_are_ignored() {
    assert_eq!(read("\u{feff}{\"servers\": {\"a\": {\"command\": \"x\"}}}").0.handlers.len(), 1);
    assert_eq!(
        read("/* a */\r\n// b\r\n{\"servers\": {\"a\": {\"command\": \"\\ud83d\\ude00\"}}}").0.handlers.len(),
        1
    );
}

#[test]
fn several_files_are_imported_together() {
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
    /a/mcp.json:1:26: spec.handlers[0].name: duplicate handler name
      hint: first defined at /tools.yaml:6:11: spec.handlers[0].name
    /c.json:2:1: invalid YAML or JSON: while parsing a node, did not find expected node content
    ");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn secrets_are_not_quoted() {
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
    fn written_yaml_is_read_back(value in json()) {
        let value = serde_json::json!({ "a": value });
        let text = yaml::to_yaml(&value);
        let report = ProblemReport::new(&|_| None);
        let documents = crate::builder::documents(&source("a", &text), &report);
        let read = value::object(ValueCursor::document("a", &documents[0], &report), StringMode::Literal);
        prop_assert_eq!(read.map(Value::Object), Some(value), "{}", text);
        prop_assert_eq!(report.count(), 0);
    }

    #[test]
    fn arbitrary_file_does_not_panic(text in any::<String>()) {
        let _ = import(&text);
        let _ = import(&format!(r#"{{"mcpServers": {{"a": {{{text}}}}}}}"#));
    }
}

/// Files of clients in a folder of their own.
struct ClientFiles(tempfile::TempDir);

impl ClientFiles {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::TempDir::new().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn hide_folder(&self, text: &str) -> String {
        text.replace(self.0.path().to_str().unwrap(), "DIR")
    }
}

/// Clients skip an entry that they cannot read, and their users have such files.
const ODD_ENTRIES: &str = r#"{"mcpServers": {
  "good": {"command": "cat"},
  "listed": {"command": "cat", "env": {"TOOLS": ["a", "b"]}},
  "_comment": {"description": "see the wiki"},
  "//": "a text",
  "number": 5,
  "typed": {"type": 5, "command": "cat"},
  "flag": {"command": "cat", "disabled": "no"},
  "url": {"url": "a.example"},
  "socket": {"transport": {"type": "websocket", "url": "wss://a.example"}},
  "寸止": {"command": "寸止"},
  "last": {"url": "https://a.example/mcp"}
}}"#;

#[test]
fn odd_entry_costs_itself() {
    let imported = import(ODD_ENTRIES).unwrap_or_else(|problems| panic!("{problems}"));
    assert_snapshot!(imported.to_yaml() + &notes(&imported), @r#"
    apiVersion: omnia.altairalabs.ai/v1alpha1
    kind: ToolRegistry
    metadata:
      name: mcp
    spec:
      handlers:
        - name: good
          type: mcp
          mcpConfig:
            transport: stdio
            command: cat
        - name: server
          type: mcp
          mcpConfig:
            transport: stdio
            command: "寸止"
        - name: last
          type: mcp
          mcpConfig:
            transport: streamable-http
            endpoint: https://a.example/mcp
    dir/mcp.json:3:49: `listed` is not imported: `env.TOOLS`: found a list; expected a string
    dir/mcp.json:4:15: mcpServers._comment: `_comment` is not imported: this server has neither a command nor a URL; expected `command` or `url`
    dir/mcp.json:5:9: mcpServers["//"]: `//` is not imported: found a string; expected an object
    dir/mcp.json:6:13: mcpServers.number: `number` is not imported: found a number; expected an object
    dir/mcp.json:7:21: mcpServers.typed.type: `typed` is not imported: found a number; expected a string
    dir/mcp.json:8:42: mcpServers.flag.disabled: `flag` is not imported: found a string; expected true or false
    dir/mcp.json:9:18: `url` is not imported: `endpoint`: this is not an endpoint; expected a URL such as https://mcp.example.com/mcp
    dir/mcp.json:10:13: mcpServers.socket: `socket` is not imported: unsupported transport `websocket`
    dir/mcp.json:11:9: mcpServers["寸止"]: `寸止` is renamed to `server`
    "#);
    let files = ClientFiles::new(&[("mcp.json", ODD_ENTRIES)]);
    let (manifest, served) = load_and_import(&[], &[files.path("mcp.json")]).unwrap();
    let names: Vec<_> = manifest.handlers.iter().map(|handler| handler.name.as_str()).collect();
    assert_eq!(names, ["good", "server", "last"]);
    let file = ClientFile { path: files.path("mcp.json"), project: None };
    let initialized = import_servers(&[file], SecretPlacement::Manifest);
    let names: Vec<_> = initialized.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["good", "server", "last"]);
    let text = |note: &ImportNote| note.message.clone();
    assert_eq!(
        served.iter().map(text).collect::<Vec<_>>(),
        imported.notes().iter().map(text).collect::<Vec<_>>()
    );
    assert_eq!(initialized.notes, served);
}

/// A gateway starts without the only server of a file, and a conversion fails.
#[test]
fn file_of_odd_entries_is_served_with_warnings() {
    let odd = r#"{"mcpServers": {"_comment": {"description": "see the wiki"}}}"#;
    let files = ClientFiles::new(&[("mcp.json", odd)]);
    let (manifest, notes) = load_and_import(&[], &[files.path("mcp.json")]).unwrap();
    assert!(manifest.handlers.is_empty() && notes.iter().all(|note| note.is_warning));
    let notes: String = notes.iter().map(|note| files.hide_folder(&note.to_string()) + "\n").collect();
    assert_snapshot!(notes, @"
    DIR/mcp.json:1:1: this file has no enabled server with a supported transport
    DIR/mcp.json:1:29: mcpServers._comment: `_comment` is not imported: this server has neither a command nor a URL; expected `command` or `url`
    ");
    assert_snapshot!(problems(odd), @"
    dir/mcp.json:1:29: mcpServers._comment: this server has neither a command nor a URL
      expected `command` or `url`
    ");
}

#[test]
fn url_and_transport_have_several_forms() {
    assert_snapshot!(handlers_yaml(r#"{"mcpServers": {
        "nested": {"transport": {"type": "streamableHttp", "url": "http://localhost:3000/mcp", "headers": {"X-A": "b"}}},
        "events": {"transport": {"type": "sse", "url": "http://localhost:3000/events"}, "disabledTools": ["x"]},
        "program": {"transport": {"type": "stdio", "command": "cat", "args": ["-"]}},
        "streamable": {"type": "streamableHttp", "url": "https://a.example/mcp"},
        "member": {"streamableHttp": "https://c.example/mcp"},
        "surf": {"serverUrl": "https://b.example/mcp"},
        "both": {"type": "http", "transport": {"type": "http", "url": "https://d.example/mcp"}}
    }}"#), @r#"
        - name: nested
          type: mcp
          mcpConfig:
            transport: streamable-http
            endpoint: http://localhost:3000/mcp
            headers:
              X-A: b
        - name: events
          type: mcp
          mcpConfig:
            transport: sse
            endpoint: http://localhost:3000/events
            toolFilter:
              blocklist: [x]
        - name: program
          type: mcp
          mcpConfig:
            transport: stdio
            command: cat
            args: ["-"]
        - name: streamable
          type: mcp
          mcpConfig:
            transport: streamable-http
            endpoint: https://a.example/mcp
        - name: member
          type: mcp
          mcpConfig:
            transport: streamable-http
            endpoint: https://c.example/mcp
        - name: surf
          type: mcp
          mcpConfig:
            transport: streamable-http
            endpoint: https://b.example/mcp
        - name: both
          type: mcp
          mcpConfig:
            transport: streamable-http
            endpoint: https://d.example/mcp
    note: dir/mcp.json:8:17: mcpServers.both: not imported: `type`
    "#);
}

/// A gateway follows the file, whose servers change.
#[test]
fn file_without_servers_is_served_with_a_warning() {
    let check = |text: &str| {
        let files = ClientFiles::new(&[("mcp.json", text)]);
        let (manifest, notes) = load_and_import(&[], &[files.path("mcp.json")]).unwrap();
        assert!(manifest.handlers.is_empty() && notes[0].is_warning, "{text}");
        notes.iter().map(|note| files.hide_folder(&note.to_string()) + "\n").collect::<String>()
    };
    assert_snapshot!(check(r#"{"mcpServers": {}}"#), @"DIR/mcp.json:1:1: this file has no enabled server with a supported transport");
    assert_snapshot!(check(r#"{"Mcp": {"Servers": []}}"#), @"DIR/mcp.json:1:1: this file has no enabled server with a supported transport");
    assert_snapshot!(check(r#"{"servers": {"a": {"command": "x", "disabled": true}}}"#), @"
    DIR/mcp.json:1:1: this file has no enabled server with a supported transport
    DIR/mcp.json:1:19: servers.a: `a` is disabled and not imported
    ");
    let files = ClientFiles::new(&[("mcp.json", "{}")]);
    let problems = load_and_import(&[], &[files.path("mcp.json")]).unwrap_err().to_string();
    assert_snapshot!(files.hide_folder(&problems), @"
    DIR/mcp.json:1:1: no MCP servers found
      expected `mcpServers`, or `servers` (VS Code), with at least one server
    ");
}

#[test]
fn unset_variable_costs_its_server_only() {
    let files = ClientFiles::new(&[(
        "mcp.json",
        r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x", "env": {"T": "${TOOLYARD_TEST_UNSET}"}}}}"#,
    )]);
    let (manifest, notes) = load_and_import(&[], &[files.path("mcp.json")]).unwrap();
    let names: Vec<_> = manifest.handlers.iter().map(|handler| handler.name.as_str()).collect();
    assert_eq!(names, ["a"]);
    assert!(notes[0].is_warning);
    assert_snapshot!(files.hide_folder(&notes[0].to_string()), @"DIR/mcp.json:1:45: `b` is left out: the environment variable `TOOLYARD_TEST_UNSET` is not set");
}

#[test]
fn client_file_is_no_manifest() {
    let problems = parse_with(&[source("mcp.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#)], &|_| None);
    assert_snapshot!(problems.unwrap_err(), @"
    mcp.json:1:1: this is the configuration of an MCP client, not a manifest
      hint: serve its servers by `toolyard serve --import FILE`, or convert it by `toolyard import FILE`
    ");
}

#[test]
fn words_of_other_programs_are_explained() {
    let hint = |transport: &str, field: &str, url: &str| {
        let text = format!(
            "{{apiVersion: omnia.altairalabs.ai/v1alpha1, kind: ToolRegistry, metadata: {{name: a}}, spec: {{handlers: [\
             {{name: a, type: mcp, mcpConfig: {{transport: {transport}, {field}: '{url}'}}}}]}}}}"
        );
        let problems = parse_with(&[source("a.yaml", &text)], &|_| None).unwrap_err();
        problems.iter().find_map(|problem| problem.hint.clone()).unwrap_or_default()
    };
    let streamable = "did you mean `streamable-http`?";
    assert_eq!(hint("http", "endpoint", "http://a.example"), streamable);
    assert_eq!(hint("streamable_http", "endpoint", "http://a.example"), streamable);
    assert_eq!(hint("HTTP", "endpoint", "http://a.example"), streamable);
    assert_eq!(hint("streamable-http", "url", "http://a.example"), "did you mean `endpoint`?");
    let scheme = "the scheme is missing: put `http://` or `https://` in front";
    assert_eq!(hint("sse", "endpoint", "localhost:8080"), scheme);
    assert_eq!(hint("sse", "endpoint", "a.example/mcp"), scheme);
    assert_eq!(hint("sse", "endpoint", "ftp://a.example"), "it begins with http:// or https://");
}

#[test]
fn program_is_no_secret() {
    let check = |command: &str, env: &str, expected: (&str, &[&str])| {
        let text = format!(
            "{{apiVersion: omnia.altairalabs.ai/v1alpha1, kind: ToolRegistry, metadata: {{name: a}}, spec: {{handlers: [\
             {{name: a, type: mcp, mcpConfig: {{transport: stdio, command: '{command}', env: {{A: '{env}'}}}}}}]}}}}"
        );
        let environment = |name: &str| match name {
            "EXE" => Some("/opt/toolyard/bin/server".to_owned()),
            "DIR" => Some("/opt/toolyard".to_owned()),
            "TOKEN" => Some("toolyard".to_owned()),
            "PART" => Some("server-7".to_owned()),
            _ => None,
        };
        let manifest = parse_with(&[source("a.yaml", &text)], &environment).unwrap();
        let handler = &manifest.handlers[0];
        assert_eq!(
            (handler.endpoint().as_str(), &*handler.secrets()),
            (expected.0, &*expected.1.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>())
        );
    };
    check("${EXE}", "", ("stdio:///opt/toolyard/bin/server", &[""]));
    check("${DIR}/bin/server", "x", ("stdio:///opt/toolyard/bin/server", &["x"]));
    // A value in the environment of a program stays secret.
    check("/opt/toolyard/bin/server", "${TOKEN}", ("stdio:///opt/[REDACTED]/bin/server", &["toolyard"]));
    check("/opt/toolyard/bin/a-${PART}", "x", ("stdio:///opt/toolyard/bin/a-[REDACTED]", &["server-7", "x"]));
}
