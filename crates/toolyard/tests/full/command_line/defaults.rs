//! The manifest of commands without `-f`.

use std::fs;
use std::path::Path;

use insta::assert_snapshot;
use tempfile::TempDir;
use toolyard_testing::process::{ProgramResult, run};

use crate::support::gateway::{TestGateway, toolyard};

fn manifest(server: &str, port: u16) -> String {
    let program = env!("CARGO_BIN_EXE_toolyard");
    format!(
        "apiVersion: omnia.altairalabs.ai/v1alpha1\nkind: ToolRegistry\nmetadata: {{name: tools}}\nspec:\n  handlers:\n    - \
         {{name: {server}, type: mcp, prefix: always, mcpConfig: {{transport: stdio, command: {program}, args: [demo-server]}}}}\n---\n\
         apiVersion: toolyard.dev/v1alpha1\nkind: Toolyard\nspec: {{listen: '127.0.0.1:{port}', store: {{memory: true}}}}\n"
    )
}

#[track_caller]
fn toolyard_in(folder: &Path, args: &[&str]) -> ProgramResult {
    run(toolyard(folder).current_dir(folder.join("project")).args(args))
}

/// A home with a project, and optionally manifests in both.
fn home(project: bool, user: bool) -> TempDir {
    let home = TempDir::new().unwrap();
    let config = home.path().join(".config/toolyard");
    fs::create_dir_all(&config).unwrap();
    fs::create_dir_all(home.path().join("project")).unwrap();
    if project {
        fs::write(home.path().join("project/toolyard.yaml"), manifest("here", 1)).unwrap();
    }
    if user {
        fs::write(config.join("toolyard.yaml"), manifest("user", 2)).unwrap();
    }
    home
}

#[test]
fn gateway_serves_the_nearest_manifest() {
    let check = |project: bool, user: bool, tool: &str, origin: &str| {
        let folder = home(project, user);
        let mut serve = toolyard(folder.path());
        serve.current_dir(folder.path().join("project")).arg("serve");
        let gateway = TestGateway::start(folder, &mut serve);
        let banner = gateway
            .process
            .stdout
            .wait_for("the end of the banner", |text| text.ends_with("}\n\n").then(|| text.to_owned()));
        assert!(banner.contains(&format!("\n  manifest: {origin}\n")), "{banner}");
        assert!(gateway.tools().contains(&tool.to_owned()), "{:?}", gateway.tools());
    };
    check(true, true, "here_echo", "toolyard.yaml");
    check(false, true, "user_echo", "~/.config/toolyard/toolyard.yaml");
    check(false, false, "echo", "the embedded demo; `toolyard init` writes a toolyard.yaml");
}

#[test]
fn check_reads_the_nearest_manifest() {
    let folder = home(true, false);
    assert_snapshot!(toolyard_in(folder.path(), &["check"]), @"
    no problems in 1 file: 1 handler (1 mcp)
    --- exit status 0
    ");
    let folder = home(false, false);
    assert_snapshot!(toolyard_in(folder.path(), &["check"]), @"
    --- stderr
    error: no toolyard.yaml here or in the configuration folder: name a manifest, or write one with `toolyard init`
    --- exit status 2
    ");
}

#[test]
fn clients_connect_to_the_address_of_the_nearest_manifest() {
    let folder = home(true, true);
    let ended = toolyard_in(folder.path(), &["tools"]);
    assert!(ended.stderr.contains("cannot connect to http://127.0.0.1:1/mcp"), "{ended}");
    let folder = home(false, true);
    let ended = toolyard_in(folder.path(), &["doctor"]);
    assert!(ended.stderr.contains("http://127.0.0.1:2/mcp"), "{ended}");
}

#[test]
fn keys_are_created_in_the_store_of_the_nearest_manifest() {
    let folder = home(true, false);
    let ended = toolyard_in(folder.path(), &["key", "list"]);
    assert!(ended.stderr.contains("the store is in the memory of the gateway"), "{ended}");
}
