//! `toolyard init`: the manifest, and what is imported.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::process::{ProgramResult, run};

use super::terminal::at_terminal;
use crate::support::gateway::toolyard;

/// A home directory with a project.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(TempDir::new().unwrap());
        fs::create_dir(home.project()).unwrap();
        home
    }

    /// A home with servers in the files of every client.
    fn with_clients() -> Self {
        let home = Self::new();
        let project = home.project().canonicalize().unwrap();
        let demo = |name: &str| json!({name: {"command": env!("CARGO_BIN_EXE_toolyard"), "args": ["demo-server", name]}});
        let secret =
            json!({"github": {"command": "docker", "args": ["run"], "env": {"GITHUB_TOKEN": "hunter2"}}});
        home.write(".config/Claude/claude_desktop_config.json", &json!({"mcpServers": demo("desktop")}));
        home.write(
            ".claude.json",
            &json!({"mcpServers": demo("code-user"), "projects": {project.to_str().unwrap(): {"mcpServers": demo("code-local")}}}),
        );
        home.write("project/.mcp.json", &json!({"mcpServers": demo("code-project")}));
        home.write(".cursor/mcp.json", &json!({"mcpServers": secret}));
        home.write("project/.cursor/mcp.json", &json!({"mcpServers": demo("desktop")}));
        home.write(".config/Code/User/mcp.json", &json!({"servers": demo("vscode-user")}));
        home.write(
            "project/.vscode/mcp.json",
            &json!({"servers": {"toolyard": {"type": "http", "url": "http://127.0.0.1:8080/mcp"}, "needs": {"command": "x", "env": {"K": "${env:UNSET_KEY}"}}}}),
        );
        home.write(".config/zed/settings.json", &json!({"theme": "x", "context_servers": demo("zed")}));
        let codex = home.0.path().join(".codex/config.toml");
        fs::create_dir_all(codex.parent().unwrap()).unwrap();
        fs::write(codex, "[mcp_servers.codex]\ncommand = \"codex-server\"\n").unwrap();
        home
    }

    fn project(&self) -> std::path::PathBuf {
        self.0.path().join("project")
    }

    fn write(&self, name: &str, value: &Value) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value.to_string()).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = toolyard(self.0.path());
        command.current_dir(self.project()).args(args);
        command
    }

    #[track_caller]
    fn run(&self, args: &[&str]) -> ProgramResult {
        run(&mut self.command(args))
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.project().join(name)).unwrap()
    }

    fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.project().join(name)).unwrap().permissions().mode() & 0o777
    }

    fn shown(&self, text: &impl ToString) -> String {
        let home = self.0.path().canonicalize().unwrap();
        let text = text.to_string().replace(env!("CARGO_BIN_EXE_toolyard"), "TOOLYARD");
        text.replace(home.to_str().unwrap(), "HOME").replace(self.0.path().to_str().unwrap(), "HOME")
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "the snapshot is the whole file")]
fn manifest_without_clients_has_the_demo() {
    let home = Home::new();
    assert_snapshot!(home.shown(&home.run(&["init"])), @"
    wrote toolyard.yaml
      no servers of clients: its only handler is the demo

    next: toolyard serve
    --- exit status 0
    ");
    assert_snapshot!(home.shown(&home.read("toolyard.yaml")), @r#"
    # The tools of this gateway.
    #
    #   toolyard serve     serves them on http://127.0.0.1:8080/mcp; edits apply while it runs
    #   toolyard check     checks this file
    #   toolyard add       adds an MCP server, an HTTP request, an OpenAPI service or a function
    #   toolyard connect   adds the gateway to the configuration of an MCP client
    #
    # docs/manifest.md describes all fields. `${NAME}` is an environment variable, and `${file:PATH}` a file.
    apiVersion: omnia.altairalabs.ai/v1alpha1
    kind: ToolRegistry
    metadata:
      name: tools
    spec:
      handlers:
        # A small server in the toolyard program. Remove it when you have your own.
        - name: demo
          type: mcp
          mcpConfig:
            transport: stdio
            command: TOOLYARD
            args: [demo-server]

        # A server that the gateway starts:
        # - name: files
        #   type: mcp
        #   mcpConfig:
        #     transport: stdio
        #     command: npx
        #     args: ["-y", "@modelcontextprotocol/server-filesystem", /home/me/notes]

        # A server at a URL, with a token:
        # - name: search
        #   type: mcp
        #   mcpConfig:
        #     transport: streamable-http
        #     endpoint: https://mcp.example.com/mcp
        #     headers: {Authorization: "Bearer ${SEARCH_TOKEN}"}

        # The operations of a service as tools:
        # - name: shop
        #   type: openapi
        #   openAPIConfig: {specURL: https://shop.example.com/openapi.json}
    ---
    # The gateway itself.
    apiVersion: toolyard.dev/v1alpha1
    kind: Toolyard
    spec:
      # With an address other than that of this machine the gateway requires keys: `toolyard key create`.
      listen: 127.0.0.1:8080
      # Tools of the gateway for models: search for tools, working memory, guides, skills, scripts.
      # builtins: {}
    "#);
    assert_snapshot!(home.run(&["check"]), @"
    no problems in 1 file: 1 handler (1 mcp)
    --- exit status 0
    ");
    // It is not replaced by accident.
    assert_snapshot!(home.run(&["init"]), @"
    --- stderr
    error: toolyard.yaml exists; `--force` replaces it, and `toolyard add` adds to it
    --- exit status 2
    ");
    fs::write(home.project().join("toolyard.yaml"), "# mine\n").unwrap();
    assert_snapshot!(home.run(&["init", "--force"]), @"
    wrote toolyard.yaml; the previous version is in toolyard.yaml.bak
      no servers of clients: its only handler is the demo

    next: toolyard serve
    --- exit status 0
    ");
    assert_eq!(home.read("toolyard.yaml.bak"), "# mine\n");
    assert_snapshot!(home.run(&["init", "--path", "sub/gateway.yaml"]), @"
    wrote sub/gateway.yaml
      no servers of clients: its only handler is the demo

    next: toolyard serve -f sub/gateway.yaml
    --- exit status 0
    ");
    assert_snapshot!(home.run(&["init", "--path", "gateway.json"]), @"
    --- stderr
    error: gateway.json: the name of a manifest ends in .yaml
    --- exit status 2
    ");
}

#[test]
fn servers_of_all_clients_are_imported() {
    let home = Home::with_clients();
    assert_snapshot!(home.shown(&home.run(&["init", "--yes"])), @"
    wrote toolyard.yaml
      8 servers: desktop, code-user, code-local, code-project, github, vscode-user, codex, zed
      needs is a comment: the environment variable `UNSET_KEY` is not set
      1 secret in toolyard.secrets, which only you can read

    next: toolyard serve
    --- stderr
    note: .cursor/mcp.json:1:26: this server is the same as `desktop`, and imported once
    --- exit status 0
    ");
    let text = home.shown(&home.read("toolyard.yaml"));
    let handlers = text.split_once("  handlers:\n").unwrap().1.split_once("\n\n").unwrap().0;
    assert_snapshot!(handlers, @r#"
    - name: desktop
      type: mcp
      mcpConfig:
        transport: stdio
        command: TOOLYARD
        args: [demo-server, desktop]
    - name: code-user
      type: mcp
      mcpConfig:
        transport: stdio
        command: TOOLYARD
        args: [demo-server, code-user]
    - name: code-local
      type: mcp
      mcpConfig:
        transport: stdio
        command: TOOLYARD
        args: [demo-server, code-local]
    - name: code-project
      type: mcp
      mcpConfig:
        transport: stdio
        command: TOOLYARD
        args: [demo-server, code-project]
    - name: github
      type: mcp
      mcpConfig:
        transport: stdio
        command: docker
        args: [run]
        env:
          GITHUB_TOKEN: "${file:toolyard.secrets/GITHUB_TOKEN}"
    - name: vscode-user
      type: mcp
      mcpConfig:
        transport: stdio
        command: TOOLYARD
        args: [demo-server, vscode-user]
    # needs: the environment variable `UNSET_KEY` is not set
    # - name: needs
    #   type: mcp
    #   mcpConfig:
    #     transport: stdio
    #     command: x
    #     env:
    #       K: "${UNSET_KEY}"
    - name: codex
      type: mcp
      mcpConfig:
        transport: stdio
        command: codex-server
    - name: zed
      type: mcp
      mcpConfig:
        transport: stdio
        command: TOOLYARD
        args: [demo-server, zed]
    "#);
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!(home.read("toolyard.secrets/GITHUB_TOKEN"), "hunter2");
    assert_eq!(home.read("toolyard.secrets/.gitignore"), "*\n");
    assert_eq!((home.mode("toolyard.secrets"), home.mode("toolyard.secrets/GITHUB_TOKEN")), (0o700, 0o600));
    assert_snapshot!(home.run(&["check"]), @"
    no problems in 1 file: 8 handlers (8 mcp)
    --- exit status 0
    ");
}

#[test]
fn clients_are_chosen_by_name() {
    let home = Home::with_clients();
    assert_snapshot!(home.shown(&home.run(&["init", "--from", "claude-code", "--from", "codex"])), @"
    wrote toolyard.yaml
      4 servers: code-user, code-local, code-project, codex

    next: toolyard serve
    --- exit status 0
    ");
    let check = |secrets: &str, expected: &str, mode: u32| {
        let made =
            home.run(&["init", "--force", "--from", "cursor", "--secrets", secrets, "--output", "json"]);
        assert_eq!(made.code, 0, "{made}");
        let text = home.read("toolyard.yaml");
        assert!(text.contains(expected), "{text}");
        // The mask of the process may take bits away.
        assert_eq!(home.mode("toolyard.yaml") & mode, home.mode("toolyard.yaml"), "{secrets}");
        assert_eq!(home.run(&["check"]).code, 0);
    };
    check("copy", "GITHUB_TOKEN: hunter2\n", 0o600);
    check("variables", "#       GITHUB_TOKEN: \"${GITHUB_TOKEN}\"\n", 0o666);
    check("files", "GITHUB_TOKEN: \"${file:toolyard.secrets/GITHUB_TOKEN}\"\n", 0o666);
}

#[test]
fn nothing_is_imported_unasked() {
    let home = Home::with_clients();
    assert_snapshot!(home.shown(&home.run(&["init"])), @"
    wrote toolyard.yaml
      no servers of clients: its only handler is the demo

    next: toolyard serve
    --- stderr
    note: not imported: 1 server of Claude Desktop: desktop; `--from claude` imports them, and `--yes` those of all clients
    note: not imported: 3 servers of Claude Code: code-user, code-local, code-project; `--from claude-code` imports them, and `--yes` those of all clients
    note: not imported: 2 servers of Cursor: github, desktop; `--from cursor` imports them, and `--yes` those of all clients
    note: not imported: 2 servers of VS Code: vscode-user, needs; `--from vscode` imports them, and `--yes` those of all clients
    note: not imported: 1 server of Codex: codex; `--from codex` imports them, and `--yes` those of all clients
    note: not imported: 1 server of Zed: zed; `--from zed` imports them, and `--yes` those of all clients
    --- exit status 0
    ");
    assert!(!home.read("toolyard.yaml").contains("desktop"));
}

#[test]
fn clients_are_offered_at_a_terminal() {
    let home = Home::with_clients();
    let asked = run(at_terminal("y\nn\nn\nn\nn\nn\n", &home.command(&["init"])).current_dir(home.project()));
    assert!(asked.stdout.contains("Import 1 server of Claude Desktop: desktop? [Y/n]"), "{asked}");
    let text = home.read("toolyard.yaml");
    assert!(text.contains("- name: desktop") && !text.contains("code-user"), "{text}");
}

#[test]
fn broken_file_of_a_client_costs_only_itself() {
    let home = Home::with_clients();
    fs::write(home.0.path().join(".cursor/mcp.json"), "{").unwrap();
    let made = home.run(&["init", "--from", "cursor"]);
    assert_eq!(made.code, 0, "{made}");
    assert!(made.stderr.contains("invalid YAML or JSON"), "{made}");
    assert!(home.read("toolyard.yaml").contains("- name: desktop"));
    let absent = home.run(&["init", "--force", "--import", "absent.json"]);
    assert_snapshot!(absent, @"
    --- stderr
    error: cannot read absent.json: no such file
    --- exit status 2
    ");
    assert!(!Path::new("absent.json").exists());
}

#[test]
fn broken_file_stops_the_import_from_all_clients() {
    let home = Home::with_clients();
    fs::write(home.project().join(".mcp.json"), "{").unwrap();
    let refused = home.run(&["init", "--yes"]);
    assert_eq!(refused.code, 1, "{refused}");
    for part in [".mcp.json:2:1:", "invalid YAML or JSON", "`--from`"] {
        assert!(refused.stderr.contains(part), "{refused}");
    }
    assert!(!home.project().join("toolyard.yaml").exists());
}
