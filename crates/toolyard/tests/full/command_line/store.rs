//! `toolyard store`, and gateways without a store.

use std::fs;
use std::path::Path;

use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::manifest::{process_document, stdio_handler};
use toolyard_testing::process::run;

use crate::support::gateway::{TestGateway, toolyard};

/// Runs a command in a directory that is also the state directory, and returns its output.
#[track_caller]
fn run_in(folder: &Path, args: &[&str]) -> String {
    let mut command = toolyard(folder);
    let ended = run(command.current_dir(folder).arg("store").args(args));
    let output = ended.to_string().replace(folder.to_str().unwrap(), "HOME");
    without_size(&without_name(&output))
}

/// Replaces the name of a manifest's store, which has a digest of its path.
fn without_name(output: &str) -> String {
    let Some((before, name)) = output.split_once("/toolyard/stores/") else { return output.to_owned() };
    let (_, after) = name.split_once(".db").expect("a store");
    format!("{before}/toolyard/stores/NAME.db{after}")
}

/// Replaces the size, which depends on the version of SQLite.
fn without_size(output: &str) -> String {
    let words = output.split_inclusive([' ', '\n']).collect::<Vec<_>>();
    let masked = words.iter().enumerate().map(|(at, word)| match words.get(at + 1) {
        Some(next) if next.trim_end() == "KiB" => "... ",
        _ => word,
    });
    masked.collect()
}

#[test]
fn store_from_creation_to_backup() {
    let folder = TempDir::new().unwrap();
    assert_snapshot!(run_in(folder.path(), &["status"]), @"
    kind      memory
    location  memory
    version   none (the store does not exist)
    size      ... KiB
    --- exit status 0
    ");
    let manifest = "apiVersion: omnia.altairalabs.ai/v1alpha1\nkind: ToolRegistry\nmetadata: {name: none}\nspec: {handlers: []}\n";
    fs::write(folder.path().join("toolyard.yaml"), manifest).unwrap();
    assert_snapshot!(run_in(folder.path(), &["status"]), @"
    kind      sqlite
    location  HOME/.local/state/toolyard/stores/NAME.db
    version   none (the store does not exist)
    size      ... KiB
    --- exit status 0
    ");
    assert!(!folder.path().join(".local").exists());
    assert_snapshot!(run_in(folder.path(), &["migrate"]), @"
    kind      sqlite
    location  HOME/.local/state/toolyard/stores/NAME.db
    version   3 (up to date)
    size      ... KiB
    --- exit status 0
    ");
    assert_snapshot!(run_in(folder.path(), &["backup", "copy.db"]), @"
    backed up ... KiB to copy.db
    --- exit status 0
    ");
    assert_snapshot!(run_in(folder.path(), &["backup", "copy.db"]), @"
    --- stderr
    error: copy.db already exists; choose another file
    --- exit status 1
    ");
    // A file of another program is not replaced.
    fs::write(folder.path().join("other.db.partial"), "theirs").unwrap();
    assert_snapshot!(run_in(folder.path(), &["backup", "other.db"]), @"
    --- stderr
    error: cannot write other.db.partial: File exists (os error 17)
    --- exit status 1
    ");
    assert_eq!(fs::read_to_string(folder.path().join("other.db.partial")).unwrap(), "theirs");
    let restored = process_document(folder.path(), json!({"store": {"path": "copy.db"}}));
    assert_snapshot!(run_in(folder.path(), &["status", "-f", restored.to_str().unwrap()]), @"
    kind      sqlite
    location  HOME/copy.db
    version   3 (up to date)
    size      ... KiB
    --- exit status 0
    ");
}

#[test]
fn for_programs() {
    let folder = TempDir::new().unwrap();
    let mut status = toolyard(folder.path());
    let output = run(status.args(["store", "migrate", "--output", "json"]));
    let output: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(
        (&output["kind"], &output["version"], &output["newest"]),
        (&json!("sqlite"), &json!(3), &json!(3))
    );
    assert!(output["size"].as_u64().unwrap() > 0);
    let copy = folder.path().join("copy.db");
    let mut backup = toolyard(folder.path());
    let output = run(backup.args(["store", "backup", "--output", "json"]).arg(&copy));
    let output: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(output, json!({"file": copy, "size": fs::metadata(&copy).unwrap().len()}));
}

#[test]
fn memory_and_invalid_stores() {
    let folder = TempDir::new().unwrap();
    let in_memory = process_document(folder.path(), json!({"store": {"memory": true}}));
    let in_memory = in_memory.to_str().unwrap();
    assert_snapshot!(run_in(folder.path(), &["status", "-f", in_memory]), @"
    kind      memory
    location  memory
    version   none (the store does not exist)
    size      ... KiB
    --- exit status 0
    ");
    assert_snapshot!(run_in(folder.path(), &["backup", "copy.db", "-f", in_memory]), @"
    --- stderr
    error: cannot back up a store in memory: set `store: {path: FILE}` in the Toolyard document to persist it
    --- exit status 1
    ");
    let url = |url: &str| {
        let file = process_document(folder.path(), json!({"store": {"url": url}}));
        run_in(folder.path(), &["status", "-f", file.to_str().unwrap()])
    };
    assert_snapshot!(url("postgres://yard:hunter2@127.0.0.1:1/yard"), @"
    --- stderr
    error: cannot open the store postgres://127.0.0.1:1/yard: check that it is running, admits this user, and is not locked by another process: the store cannot be reached: error connecting to server: Connection refused (os error 111)
    --- exit status 1
    ");
    assert_snapshot!(url("postgres://yard:hunter2@127.0.0.1:port/yard"), @"
    --- stderr
    error: invalid URL of the store: invalid connection string: invalid value for option `port`
    --- exit status 2
    ");
    assert_snapshot!(url("mysql://yard:hunter2@127.0.0.1/yard"), @"
    --- stderr
    error: invalid manifest

    HOME/process.json:1:80: spec.store.url: this is not the URL of a PostgreSQL database
      expected a URL such as postgres://toolyard@db.example.com/toolyard
    --- exit status 2
    ");
}

/// The gateway logs the error and serves requests that need no key.
#[test]
fn gateway_starts_without_store() {
    let demo = [stdio_handler("demo", env!("CARGO_BIN_EXE_toolyard"), &["demo-server"])];
    let (folder, mut serve) = TestGateway::command(&demo, json!({"allowUnauthenticated": true}));
    fs::write(folder.path().join(".local"), "").unwrap();
    let gateway = TestGateway::start(folder, &mut serve);
    let folder = gateway.folder.path().to_str().unwrap();
    let loud = gateway.process.stderr.wait_for("the trouble", |text| {
        text.lines().find(|line| line.contains("store unavailable")).map(str::to_owned)
    });
    assert!(
        loud.contains(&format!("cannot create the folder {folder}/.local/state/toolyard/stores")),
        "{loud}"
    );
    assert_eq!(gateway.text("reverse_string", json!({"input": "abc"})), "cba");

    // The keys are in the store: until it is read, unauthenticated requests are rejected.
    let (folder, mut serve) = TestGateway::command(&demo, json!({}));
    fs::write(folder.path().join(".local"), "").unwrap();
    let gateway = TestGateway::start(folder, &mut serve);
    let refused = gateway.request("tools/list", json!({}));
    let body: serde_json::Value = serde_json::from_str(&refused.body).unwrap();
    assert_eq!((refused.status, &body["id"], &body["error"]["code"]), (200, &json!(1), &json!(-32603)));
    assert_eq!(body["error"]["data"]["code"], "unavailable", "{body}");
    assert_eq!(body["error"]["data"]["retryable"], true, "{body}");
    assert_eq!(
        gateway.post(&[], &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).status,
        503
    );
    assert_eq!(gateway.get("/api/v1/status").status, 503);
    // The gateway is therefore not ready.
    assert_eq!(gateway.health().unwrap().status, 503);
}

#[test]
fn store_is_in_configured_location() {
    let demo = [stdio_handler("demo", env!("CARGO_BIN_EXE_toolyard"), &["demo-server"])];
    let (folder, mut serve) = TestGateway::command(&demo, json!({"store": {"path": "kept/yard.db"}}));
    let gateway = TestGateway::start(folder, &mut serve);
    assert!(gateway.folder.path().join("kept/yard.db").exists());
    assert!(!gateway.folder.path().join(".local").exists());
    let (folder, mut serve) = TestGateway::command(&demo, json!({}));
    let gateway = TestGateway::start(folder, &mut serve);
    let stores = fs::read_dir(gateway.folder.path().join(".local/state/toolyard/stores")).unwrap();
    let names: Vec<_> = stores.map(|store| store.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().any(|name| name.contains("-process-") && name.ends_with(".db")), "{names:?}");
}
