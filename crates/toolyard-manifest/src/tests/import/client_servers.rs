//! The servers of several clients, and the places of their secrets.

use super::*;

#[track_caller]
fn servers_yaml(
    files: &ClientFiles,
    names: &[(&str, Option<&str>)],
    placement: SecretPlacement<'_>,
) -> String {
    let client_files: Vec<_> = names
        .iter()
        .map(|(name, project)| ClientFile { path: files.path(name), project: project.map(str::to_owned) })
        .collect();
    let import = import_servers(&client_files, placement);
    let mut text = String::new();
    for server in &import.servers {
        text += &yaml::to_yaml(&serde_json::json!([server.handler]));
        text.extend(server.unresolved.iter().map(|unresolved| format!("unresolved: {unresolved}\n")));
    }
    text.extend(import.secrets.iter().map(|secret| format!("{} = {}\n", secret.name, secret.value.expose())));
    text.extend(import.notes.iter().map(|note| format!("note: {note}\n")));
    files.hide_folder(&text)
}

const SECRETS: &str = r#"{"mcpServers": {
  "github": {"command": "docker", "args": ["--token", "t1", "--key=t2", "-y", "pkg", "--header", "Authorization: Bearer t3"],
    "env": {"GITHUB_TOKEN": "ghp_1", "LOG": "info", "DATABASE_URL": "postgres://me:pw@db/x", "OPEN_KEY": "${TOOLYARD_TEST_UNSET}"}},
  "other": {"command": "x", "env": {"GITHUB_TOKEN": "ghp_2"}},
  "third": {"command": "y", "env": {"GITHUB_TOKEN": "ghp_1"}},
  "api": {"url": "https://a.example/mcp?api_key=t4", "headers": {"X-Api-Key": "t5", "X-Team": "a"}}
}}"#;

#[test]
fn secrets_of_clients_become_references() {
    let files = ClientFiles::new(&[("mcp.json", SECRETS)]);
    let file = [("mcp.json", None)];
    assert_snapshot!(servers_yaml(&files, &file, SecretPlacement::Files("secrets")), @r#"
    - name: github
      type: mcp
      mcpConfig:
        transport: stdio
        command: docker
        args:
          - "--token"
          - "${file:secrets/GITHUB_TOKEN_2}"
          - "--key=${file:secrets/GITHUB_KEY}"
          - "-y"
          - pkg
          - "--header"
          - "${file:secrets/GITHUB_AUTHORIZATION}"
        env:
          GITHUB_TOKEN: "${file:secrets/GITHUB_TOKEN}"
          LOG: info
          DATABASE_URL: "${file:secrets/DATABASE_URL}"
          OPEN_KEY: "${TOOLYARD_TEST_UNSET}"
    unresolved: the environment variable `TOOLYARD_TEST_UNSET` is not set
    - name: other
      type: mcp
      mcpConfig:
        transport: stdio
        command: x
        env:
          GITHUB_TOKEN: "${file:secrets/OTHER_GITHUB_TOKEN}"
    - name: third
      type: mcp
      mcpConfig:
        transport: stdio
        command: "y"
        env:
          GITHUB_TOKEN: "${file:secrets/GITHUB_TOKEN}"
    - name: api
      type: mcp
      mcpConfig:
        transport: streamable-http
        endpoint: "${file:secrets/API_URL}"
        headers:
          X-Api-Key: "${file:secrets/API_X_API_KEY}"
          X-Team: a
    API_URL = https://a.example/mcp?api_key=t4
    API_X_API_KEY = t5
    DATABASE_URL = postgres://me:pw@db/x
    GITHUB_AUTHORIZATION = Authorization: Bearer t3
    GITHUB_KEY = t2
    GITHUB_TOKEN = ghp_1
    GITHUB_TOKEN_2 = t1
    OTHER_GITHUB_TOKEN = ghp_2
    "#);
    let variables = servers_yaml(&files, &file, SecretPlacement::Variables);
    assert!(variables.contains("GITHUB_TOKEN: \"${GITHUB_TOKEN}\"\n"), "{variables}");
    assert!(
        variables.contains("unresolved: the environment variable `GITHUB_TOKEN` is not set"),
        "{variables}"
    );
    let copied = servers_yaml(&files, &file, SecretPlacement::Manifest);
    assert!(copied.contains("GITHUB_TOKEN: ghp_1\n"), "{copied}");
    assert!(copied.contains("this value is copied"), "{copied}");
}

#[test]
fn equal_servers_of_several_clients_are_imported_once() {
    let files = ClientFiles::new(&[
        ("one.json", r#"{"mcpServers": {"files": {"command": "x"}, "more": {"command": "y"}}}"#),
        ("two.json", r#"{"servers": {"files": {"command": "x"}, "more": {"command": "z"}}}"#),
        ("none.json", r#"{"theme": "dark"}"#),
        ("broken.json", "{"),
        (
            "claude.json",
            r#"{"mcpServers": {}, "projects": {"/p": {"mcpServers": {"mine": {"command": "p"}}}, "/q": {}}}"#,
        ),
    ]);
    let all = [
        ("one.json", None),
        ("two.json", None),
        ("./one.json", None),
        ("none.json", None),
        ("broken.json", None),
        ("claude.json", None),
        ("claude.json", Some("/p")),
        ("claude.json", Some("/q")),
    ];
    assert_snapshot!(servers_yaml(&files, &all, SecretPlacement::Manifest), @r#"
    - name: files
      type: mcp
      mcpConfig:
        transport: stdio
        command: x
    - name: more
      type: mcp
      mcpConfig:
        transport: stdio
        command: "y"
    - name: more-2
      type: mcp
      mcpConfig:
        transport: stdio
        command: z
    - name: mine
      type: mcp
      mcpConfig:
        transport: stdio
        command: p
    note: DIR/two.json:1:49: servers.more: `more` is renamed to `more-2`
    note: DIR/two.json:1:23: this server is the same as `files`, and imported once
    note: DIR/broken.json:2:1: invalid YAML or JSON: while parsing a node, did not find expected node content
    "#);
}
