//! `toolyard check`, `import` and `schema`, and further inputs of `serve`.

use std::fs::File;
use std::path::PathBuf;

use insta::assert_snapshot;
use serde_json::Value;
use tempfile::TempDir;
use toolyard_testing::process::{ProgramResult, RunningProgram, run, run_with};

use super::toolyard_with;
use crate::support::gateway::{TestGateway, toolyard};

const TOOLS: &str = "\
apiVersion: omnia.altairalabs.ai/v1alpha1
kind: ToolRegistry
metadata: {name: tools}
spec:
  handlers:
    - {name: files, type: mcp, mcpConfig: {transport: stdio, command: x}}
    - name: calculator
      type: http
      endpoint: {url: 'https://a.example'}
      tool: {name: add, description: Adds, inputSchema: {type: object}}
---
apiVersion: toolyard.dev/v1alpha1
kind: Toolyard
";

const BROKEN: &str = "\
apiVersion: omnia.altairalabs.ai/v1alpha1
kind: ToolRegistry
metadata: {name: broken}
spec:
  handlers:
    - {name: files, type: mpc}
    - {name: more, type: mcp, retry: 3, mcpConfig: {transport: stdio, command: '${MISSING}'}}
";

const CLIENT: &str = r#"{"mcpServers": {
  "My Demo": {"env": {"API_KEY": "hunter2", "LEVEL": "${env:LEVEL}"}, "args": ["demo-server"], "command": "TOOLYARD"},
  "old": {"command": "x", "disabled": true}
}}"#;

/// A directory with files.
struct ManifestFiles(TempDir);

impl ManifestFiles {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text.replace("TOOLYARD", env!("CARGO_BIN_EXE_toolyard"))).unwrap();
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs `toolyard` in the directory.
    #[track_caller]
    fn toolyard(&self, args: &[&str]) -> ProgramResult {
        run(toolyard(self.0.path()).current_dir(self.0.path()).args(args))
    }
}

#[test]
fn check_of_valid_manifests() {
    let files = ManifestFiles::new(&[
        ("tools.yaml", TOOLS),
        ("more/a.json", "{}"),
        ("empty/b.yaml", "# nothing yet\n"),
    ]);
    assert_snapshot!(files.toolyard(&["check", "tools.yaml", "empty"]), @"
    no problems in 2 files: 2 handlers (1 http, 1 mcp)
    --- exit status 0
    ");
    assert_snapshot!(files.toolyard(&["check", "empty"]), @"
    no problems in 1 file: 0 handlers
    --- exit status 0
    ");
    assert_snapshot!(files.toolyard(&["check", "tools.yaml", "empty", "--output", "json"]), @r#"
    {"files":["tools.yaml","empty/b.yaml"],"handlers":{"http":1,"mcp":1},"problems":[]}
    --- exit status 0
    "#);
}

#[test]
fn check_of_invalid_manifest() {
    let files = ManifestFiles::new(&[("a/broken.yaml", BROKEN), ("a/also.json", "{\"kind\": \"Tool\"}")]);
    assert_snapshot!(files.toolyard(&["check", "a", "absent.yaml"]), @"
    a/also.json:1:10: kind: `Tool` is not a known kind of document
      expected one of ToolRegistry, Toolyard
    a/broken.yaml:6:27: spec.handlers[0].type: `mpc` is not a known handler type
      expected one of mcp, http, grpc, openapi, function, cortexone, bus
      hint: did you mean `mcp`?
    a/broken.yaml:7:31: spec.handlers[1].retry: unknown field
      expected one of name, selector, type, mcpConfig, auth, retryPolicy, retries, timeout, prefix, overrides, pin, price, displayName, description, chunk, chunkThreshold, renameArguments
    a/broken.yaml:7:80: spec.handlers[1].mcpConfig.command: the environment variable `MISSING` is not set
      hint: `${NAME}` stands for an environment variable, and `$${` for the characters `${`
    absent.yaml: this cannot be read: No such file or directory (os error 2)

    5 problems
    --- exit status 2
    ");
    assert_snapshot!(files.toolyard(&["check", "a/also.json", "--output", "json"]), @r#"
    {"files":["a/also.json"],"problems":[{"file":"a/also.json","line":1,"column":10,"path":"kind","message":"`Tool` is not a known kind of document","expected":"one of ToolRegistry, Toolyard"}]}
    --- exit status 2
    "#);
    assert_snapshot!(toolyard_with(&["check"]), @"
    --- stderr
    error: no toolyard.yaml here or in the configuration folder: name a manifest, or write one with `toolyard init`
    --- exit status 2
    ");
}

#[test]
fn check_of_standard_input() {
    let files = ManifestFiles::new(&[("tools.yaml", TOOLS), ("broken.yaml", BROKEN)]);
    let check = |name: &str| {
        let mut command = toolyard(files.0.path());
        run_with(command.args(["check", "-"]), File::open(files.path(name)).unwrap())
    };
    assert_snapshot!(check("tools.yaml"), @"
    no problems in 1 file: 2 handlers (1 http, 1 mcp)
    --- exit status 0
    ");
    assert_eq!(check("broken.yaml").code, 2);
}

#[test]
fn import_prints_a_manifest() {
    let files = ManifestFiles::new(&[(".mcp.json", CLIENT), ("none.json", "{}")]);
    let imported = files.toolyard(&["import", ".mcp.json"]);
    let normalized = imported.to_string().replace(env!("CARGO_BIN_EXE_toolyard"), "TOOLYARD");
    assert_snapshot!(normalized, @r#"
    apiVersion: omnia.altairalabs.ai/v1alpha1
    kind: ToolRegistry
    metadata:
      name: mcp
    spec:
      handlers:
        - name: my-demo
          type: mcp
          mcpConfig:
            transport: stdio
            command: TOOLYARD
            args: [demo-server]
            env:
              API_KEY: hunter2
              LEVEL: "${LEVEL}"
    --- stderr
    note: .mcp.json:2:14: mcpServers["My Demo"]: `My Demo` is renamed to `my-demo`
    note: .mcp.json:2:34: mcpServers["My Demo"].env.API_KEY: this value is copied into the manifest; use `${NAME}` to keep it out
    note: .mcp.json:3:10: mcpServers.old: `old` is disabled and not imported
    --- exit status 0
    "#);
    assert_snapshot!(files.toolyard(&["import", "none.json"]), @"
    --- stderr
    error: invalid client configuration

    none.json:1:1: no MCP servers found
      expected `mcpServers`, or `servers` (VS Code), with at least one server
    --- exit status 2
    ");

    std::fs::write(files.path("tools.yaml"), imported.stdout).unwrap();
    std::fs::write(
        files.path("tools.json"),
        files.toolyard(&["import", ".mcp.json", "--output", "json"]).stdout,
    )
    .unwrap();
    for manifest in ["tools.yaml", "tools.json"] {
        let checked =
            run(toolyard(files.0.path()).env("LEVEL", "1").args(["check"]).arg(files.path(manifest)));
        assert_eq!(checked.code, 0, "{checked}");
    }
}

#[test]
fn imported_servers_are_served() {
    let files = ManifestFiles::new(&[("client.json", CLIENT)]);
    let mut serve = toolyard(files.0.path());
    serve.env("LEVEL", "1").args(["serve", "--import"]).arg(files.path("client.json"));
    let gateway = TestGateway::start(files.0, &mut serve);
    assert_eq!(gateway.tools(), ["echo", "reverse_string", "add"]);
    let log = gateway.process.stderr.text();
    assert!(log.contains("`My Demo` is renamed to `my-demo`"), "{log}");
    assert!(!log.contains("hunter2"), "{log}");
}

#[test]
fn manifest_from_standard_input_is_served() {
    let demo = "\
apiVersion: omnia.altairalabs.ai/v1alpha1
kind: ToolRegistry
metadata: {name: demo}
spec: {handlers: [{name: demo, type: mcp, mcpConfig: {transport: stdio, command: TOOLYARD, args: [demo-server]}}]}
";
    let files = ManifestFiles::new(&[("demo.yaml", demo)]);
    let mut serve = toolyard(files.0.path());
    serve.args(["serve", "--listen", "127.0.0.1:0", "-f", "-"]);
    let process = RunningProgram::start_with(&mut serve, File::open(files.path("demo.yaml")).unwrap());
    process
        .stdout
        .wait_for("its tools", |text| text.contains("demo: echo, reverse_string, add").then_some(()));
}

#[test]
fn schemas() {
    for (args, title) in [
        (&["schema"][..], "ToolRegistry"),
        (&["schema", "toolregistry"], "ToolRegistry"),
        (&["schema", "toolyard"], "Toolyard"),
    ] {
        let schema: Value = serde_json::from_str(&toolyard_with(args).stdout).unwrap();
        assert_eq!(schema["title"], title);
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    }
}

#[test]
fn crd_prints_the_committed_definitions() {
    let committed = include_str!("../../../../../deploy/kubernetes/crds.yaml");
    let ended = toolyard_with(&["crd"]);
    assert!(
        ended.stdout == committed,
        "deploy/kubernetes/crds.yaml is out of date: run `cargo xtask reference`"
    );
    let kinds: Vec<_> = committed.lines().filter_map(|line| line.strip_prefix("    kind: ")).collect();
    assert_eq!(kinds, ["LanguageTool", "ToolRegistry"]);
}
