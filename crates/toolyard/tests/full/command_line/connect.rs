//! `toolyard connect`: changes of configuration files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::process::{ProgramResult, run};

use super::terminal::at_terminal;
use crate::support::gateway::toolyard;

/// A home directory that is also the project directory.
struct ClientHome(TempDir);

impl ClientHome {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = toolyard(self.path());
        // The gateway that the environment names.
        command
            .current_dir(self.path())
            .env("TOOLYARD_URL", "http://127.0.0.1:1/mcp")
            .arg("connect")
            .args(args);
        command
    }

    #[track_caller]
    fn connect(&self, args: &[&str]) -> ProgramResult {
        run(&mut self.command(args))
    }

    /// Runs the command on a terminal with typed input.
    #[track_caller]
    fn connect_at_terminal(&self, typed: &str, args: &[&str]) -> ProgramResult {
        run(at_terminal(typed, &self.command(args)).current_dir(self.path()))
    }

    #[track_caller]
    fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[track_caller]
    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// Replaces paths that differ between runs.
    fn normalized(&self, text: &impl ToString) -> String {
        let text = text.to_string().replace(&self.path().display().to_string(), "HOME");
        text.replace(env!("CARGO_BIN_EXE_toolyard"), "TOOLYARD")
    }
}

#[test]
fn change_is_shown_and_written() {
    let home = ClientHome::new();
    home.write(
        ".cursor/mcp.json",
        "{\n  \"mcpServers\": {\n    \"time\": { \"command\": \"mcp-server-time\" }\n  }\n}\n",
    );
    assert_snapshot!(home.normalized(&home.connect(&["cursor", "--key-env", "KEY", "--yes"])), @r#"
    HOME/.cursor/mcp.json
      {
        "mcpServers": {
    -     "time": { "command": "mcp-server-time" }
    +     "time": { "command": "mcp-server-time" },
    +     "toolyard": {
    +       "url": "http://127.0.0.1:1/mcp",
    +       "headers": {
    +         "Authorization": "Bearer ${env:KEY}"
    +       }
    +     }
        }
      }

    HOME/.cursor/mcp.json updated
    --- exit status 0
    "#);
    let text = home.read(".cursor/mcp.json");
    assert!(text.contains(r#""time": { "command": "mcp-server-time" },"#), "{text}");
    assert_snapshot!(home.normalized(&home.connect(&["cursor", "--key-env", "KEY"])), @"
    HOME/.cursor/mcp.json is already up to date
    --- exit status 0
    ");
    assert_eq!(home.read(".cursor/mcp.json"), text);
}

#[test]
fn comments_are_preserved() {
    let home = ClientHome::new();
    home.write(
        ".vscode/mcp.json",
        "{\n  // Ours.\n  \"servers\": {\n    \"a\": {\"command\": \"x\"}, // last\n  },\n}\n",
    );
    assert_eq!(home.connect(&["vscode", "--yes"]).code, 0);
    assert_snapshot!(home.read(".vscode/mcp.json"), @r#"
    {
      // Ours.
      "servers": {
        "a": {"command": "x"}, // last
        "toolyard": {
          "type": "http",
          "url": "http://127.0.0.1:1/mcp"
        }
      },
    }
    "#);
}

#[test]
fn nothing_is_written_without_confirmation() {
    let home = ClientHome::new();
    assert_snapshot!(home.normalized(&home.connect(&["claude-code"])), @r#"
    .mcp.json
    + {
    +   "mcpServers": {
    +     "toolyard": {
    +       "type": "http",
    +       "url": "http://127.0.0.1:1/mcp"
    +     }
    +   }
    + }

    --- stderr
    error: confirmation needed, but there is no terminal; use `--yes`, or `--dry-run` to only show the change
    --- exit status 2
    "#);
    assert_snapshot!(home.normalized(&home.connect(&["claude-code", "--dry-run", "--output", "json"])), @r#"
    {"file":".mcp.json","server":{"type":"http","url":"http://127.0.0.1:1/mcp"},"changes":true,"written":false}
    --- exit status 0
    "#);
    assert!(!home.path().join(".mcp.json").exists());
}

#[test]
fn terminal_is_asked_for_confirmation() {
    let home = ClientHome::new();
    for (typed, is_written) in [("n\n", false), ("\n", false), ("y\n", true)] {
        let ended = home.connect_at_terminal(typed, &["claude-code"]);
        assert_eq!(ended.code, 0, "{ended}");
        assert!(ended.stdout.contains("Write the change? [y/N] "), "{ended}");
        assert_eq!(home.path().join(".mcp.json").exists(), is_written, "{typed:?}");
    }
}

/// A file that cannot be edited safely is not changed.
#[test]
fn refusals() {
    let home = ClientHome::new();
    assert_snapshot!(home.connect(&["claude", "--yes"]), @"
    --- stderr
    error: Claude Desktop only starts local servers; use `--stdio -f FILE`
    --- exit status 2
    ");
    assert_snapshot!(home.connect(&["cursor", "--stdio", "--yes"]), @"
    --- stderr
    error: the following required arguments were not provided:
      --file <FILE>

    Usage: toolyard connect --stdio --file <FILE> --yes <CLIENT>

    For more information, try '--help'.
    --- exit status 2
    ");
    assert_snapshot!(home.connect(&["cursor", "--stdio", "-f", "missing.yaml", "--yes"]), @"
    --- stderr
    error: cannot read missing.yaml: No such file or directory (os error 2)
    --- exit status 2
    ");
    home.write(".mcp.json", "{'mcpServers': {}}");
    assert_snapshot!(home.connect(&["claude-code", "--yes"]), @r#"
    --- stderr
    error: cannot edit .mcp.json: not valid JSON; add this to it:

    {
      "mcpServers": {
        "toolyard": {
          "type": "http",
          "url": "http://127.0.0.1:1/mcp"
        }
      }
    }
    --- exit status 2
    "#);
    assert_eq!(home.read(".mcp.json"), "{'mcpServers': {}}");
}

/// Symbolic links and the mode are preserved.
#[test]
fn link_and_mode_are_preserved() {
    let home = ClientHome::new();
    home.write("dotfiles/mcp.json", "{}");
    let real = home.path().join("dotfiles/mcp.json");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&real, home.path().join(".mcp.json")).unwrap();
    assert_eq!(home.connect(&["claude-code", "--yes"]).code, 0);
    assert!(home.path().join(".mcp.json").is_symlink());
    assert!(home.read("dotfiles/mcp.json").contains("toolyard"));
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(home.path().join("dotfiles")).unwrap().count(), 1);
}

/// `toolyard import` reads the written configuration.
#[test]
fn written_configuration_can_be_imported() {
    let home = ClientHome::new();
    home.write("tools.yaml", "");
    let file = |client: &str| match client {
        "claude" => ".config/Claude/claude_desktop_config.json",
        "claude-code" => ".mcp.json",
        "cursor" => ".cursor/mcp.json",
        _ => ".vscode/mcp.json",
    };
    let check = |client: &str, args: &[&str], expected: Value| {
        let ended = home.connect(&[&[client, "--yes"], args].concat());
        assert_eq!(ended.code, 0, "{ended}");
        let ended = run(toolyard(home.path())
            .args(["import", "--output", "json"])
            .arg(home.path().join(file(client))));
        let imported: Value = serde_json::from_str(&home.normalized(&ended.stdout)).unwrap();
        let handlers = &imported["spec"]["handlers"];
        assert_eq!(
            *handlers,
            json!([{"name": "toolyard", "type": "mcp", "mcpConfig": expected}]),
            "{client}"
        );
    };
    let url = "https://tools.example.com/mcp";
    for client in ["claude-code", "cursor", "vscode"] {
        let remote = json!({
            "transport": "streamable-http",
            "endpoint": url,
            "headers": {"Authorization": "Bearer ${TOOLYARD_KEY}"},
        });
        check(client, &["--url", url, "--key-env", "TOOLYARD_KEY"], remote);
    }
    for client in ["claude", "claude-code", "cursor", "vscode"] {
        let program = json!({
            "transport": "stdio",
            "command": "TOOLYARD",
            "args": ["stdio", "-f", "HOME/tools.yaml"],
        });
        check(client, &["--stdio", "-f", "tools.yaml"], program);
    }
}

/// The replaced entry may hold the only copy of a secret.
#[test]
fn replaced_entry_is_backed_up() {
    let home = ClientHome::new();
    let file = |url: &str| {
        format!(
            "{{\n  \"mcpServers\": {{\n    \"toolyard\": {{\"url\": \"{url}\", \"env\": {{\"A\": \"b\"}}}}\n  }}\n}}\n"
        )
    };
    for (url, kept) in [("http://one/mcp", "mcp.json.bak"), ("http://two/mcp", "mcp.json.bak2")] {
        home.write(".cursor/mcp.json", &file(url));
        let result = home.connect(&["cursor", "--yes"]);
        assert!(result.stdout.contains(&format!("-     \"toolyard\": {{\"url\": \"{url}\"")), "{result}");
        assert!(
            home.normalized(&result)
                .contains(&format!("updated; the previous version is in HOME/.cursor/{kept}")),
            "{result}"
        );
        assert_eq!(home.read(&format!(".cursor/{kept}")), file(url));
    }
    assert_eq!(home.read(".cursor/mcp.json.bak"), file("http://one/mcp"), "an older one stays");
}

/// The tools of a server that the gateway serves would come twice.
#[test]
fn servers_of_the_gateway_are_taken_out() {
    let home = ClientHome::new();
    home.write(
        "toolyard.yaml",
        "apiVersion: omnia.altairalabs.ai/v1alpha1\nkind: ToolRegistry\nmetadata: {name: mine}\nspec:\n  handlers:\n    - name: clock\n      type: mcp\n      mcpConfig: {transport: stdio, command: mcp-server-time, args: [--local], env: {KEY: \"${CLOCK_KEY}\"}}\n    - {name: far, type: mcp, mcpConfig: {transport: streamable-http, endpoint: \"https://mcp.example.com/mcp\"}}\n",
    );
    let before = r#"{
  "mcpServers": {
    "time": { "command": "mcp-server-time", "args": ["--local"], "env": { "KEY": "${env:CLOCK_KEY}" } },
    "other-time": { "command": "mcp-server-time" },
    "far-away": { "url": "https://mcp.example.com/mcp" }
  }
}
"#;
    home.write(".cursor/mcp.json", before);
    let noted = home.connect(&["cursor", "--dry-run"]);
    assert!(noted.stderr.contains("the gateway serves time, far-away too"), "{noted}");
    assert_eq!(home.connect(&["cursor", "--replace", "--yes"]).code, 0);
    assert_snapshot!(home.read(".cursor/mcp.json"), @r#"
    {
      "mcpServers": {
        "other-time": { "command": "mcp-server-time" },
        "toolyard": {
          "url": "http://127.0.0.1:1/mcp"
        }
      }
    }
    "#);
    assert_eq!(home.read(".cursor/mcp.json.bak"), before);
}
