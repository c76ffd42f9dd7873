//! `toolyard connect`: the files of clients, and what happens to them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::terminal::at_terminal;
use crate::support::gateway::toolyard;
use crate::support::process::{Ended, run};

/// A home, which is the project as well.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = toolyard(self.path());
        // Another gateway's, which is not what a client is to be started with or connected to.
        command
            .current_dir(self.path())
            .env("TOOLYARD_URL", "http://127.0.0.1:1/mcp")
            .arg("connect")
            .args(args);
        command
    }

    #[track_caller]
    fn connect(&self, args: &[&str]) -> Ended {
        run(&mut self.command(args))
    }

    /// What a person sees who types something at the terminal.
    #[track_caller]
    fn connect_at_terminal(&self, typed: &str, args: &[&str]) -> Ended {
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

    /// What is printed, without what is another each time.
    fn shown(&self, text: &impl ToString) -> String {
        let text = text.to_string().replace(&self.path().display().to_string(), "HOME");
        text.replace(env!("CARGO_BIN_EXE_toolyard"), "TOOLYARD")
    }
}

#[test]
fn a_change_is_shown_and_written() {
    let home = Home::new();
    home.write(
        ".cursor/mcp.json",
        "{\n  \"mcpServers\": {\n    \"time\": { \"command\": \"mcp-server-time\" }\n  }\n}\n",
    );
    assert_snapshot!(home.shown(&home.connect(&["cursor", "--key-env", "KEY", "--yes"])), @r#"
    HOME/.cursor/mcp.json
      {
        "mcpServers": {
    -     "time": { "command": "mcp-server-time" }
    +     "time": { "command": "mcp-server-time" },
    +     "toolyard": {
    +       "url": "http://127.0.0.1:8080/mcp",
    +       "headers": {
    +         "Authorization": "Bearer ${env:KEY}"
    +       }
    +     }
        }
      }

    HOME/.cursor/mcp.json is written
    --- exit status 0
    "#);
    let text = home.read(".cursor/mcp.json");
    assert!(text.contains(r#""time": { "command": "mcp-server-time" },"#), "{text}");
    assert_snapshot!(home.shown(&home.connect(&["cursor", "--key-env", "KEY"])), @"
    HOME/.cursor/mcp.json has it already; nothing is changed
    --- exit status 0
    ");
    assert_eq!(home.read(".cursor/mcp.json"), text);
}

#[test]
fn comments_stay() {
    let home = Home::new();
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
          "url": "http://127.0.0.1:8080/mcp"
        }
      },
    }
    "#);
}

#[test]
fn nothing_is_written_unasked() {
    let home = Home::new();
    assert_snapshot!(home.shown(&home.connect(&["claude-code"])), @r#"
    .mcp.json
    + {
    +   "mcpServers": {
    +     "toolyard": {
    +       "type": "http",
    +       "url": "http://127.0.0.1:8080/mcp"
    +     }
    +   }
    + }

    --- stderr
    error: nobody can be asked, so nothing is written: use `--yes`, or `--dry-run` to only see the change
    --- exit status 2
    "#);
    assert_snapshot!(home.shown(&home.connect(&["claude-code", "--dry-run", "--output", "json"])), @r#"
    {"file":".mcp.json","server":{"type":"http","url":"http://127.0.0.1:8080/mcp"},"changes":true,"written":false}
    --- exit status 0
    "#);
    assert!(!home.path().join(".mcp.json").exists());
}

#[test]
fn somebody_at_a_terminal_is_asked() {
    let home = Home::new();
    for (typed, is_written) in [("n\n", false), ("\n", false), ("y\n", true)] {
        let ended = home.connect_at_terminal(typed, &["claude-code"]);
        assert_eq!(ended.code, 0, "{ended}");
        assert!(ended.stdout.contains("Write this? [y/N] "), "{ended}");
        assert_eq!(home.path().join(".mcp.json").exists(), is_written, "{typed:?}");
    }
}

/// What cannot be changed safely is left alone.
#[test]
fn refusals() {
    let home = Home::new();
    assert_snapshot!(home.connect(&["claude", "--yes"]), @"
    --- stderr
    error: Claude Desktop starts its servers and connects to none: use `--stdio -f FILE`
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
    error: missing.yaml cannot be read: No such file or directory (os error 2)
    --- exit status 2
    ");
    home.write(".mcp.json", "{'mcpServers': {}}");
    assert_snapshot!(home.connect(&["claude-code", "--yes"]), @r#"
    --- stderr
    error: .mcp.json cannot be changed: it is not JSON. Paste this into it:

    {
      "mcpServers": {
        "toolyard": {
          "type": "http",
          "url": "http://127.0.0.1:8080/mcp"
        }
      }
    }
    --- exit status 2
    "#);
    assert_eq!(home.read(".mcp.json"), "{'mcpServers': {}}");
}

/// A link stays one, and the mode stays.
#[test]
fn the_file_stays_what_it_is() {
    let home = Home::new();
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

/// What is written is what clients write, as far as we read that.
#[test]
fn import_reads_it() {
    let home = Home::new();
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
        let imported: Value = serde_json::from_str(&home.shown(&ended.stdout)).unwrap();
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

/// What stood in an entry, such as a secret, may be nowhere else.
#[test]
fn what_is_replaced_is_kept() {
    let home = Home::new();
    let file = |url: &str| {
        format!(
            "{{\n  \"mcpServers\": {{\n    \"toolyard\": {{\"url\": \"{url}\", \"env\": {{\"A\": \"b\"}}}}\n  }}\n}}\n"
        )
    };
    for (url, kept) in [("http://one/mcp", "mcp.json.bak"), ("http://two/mcp", "mcp.json.bak2")] {
        home.write(".cursor/mcp.json", &file(url));
        let said = home.connect(&["cursor", "--yes"]);
        assert!(said.stdout.contains(&format!("-     \"toolyard\": {{\"url\": \"{url}\"")), "{said}");
        assert!(
            home.shown(&said).contains(&format!("is written; what it was is kept in HOME/.cursor/{kept}")),
            "{said}"
        );
        assert_eq!(home.read(&format!(".cursor/{kept}")), file(url));
    }
    assert_eq!(home.read(".cursor/mcp.json.bak"), file("http://one/mcp"), "an older one stays");
}
