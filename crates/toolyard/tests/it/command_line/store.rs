//! `toolyard store`, and what a gateway does without one.

use std::fs;
use std::path::Path;

use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::gateway::{Gateway, process_document, stdio, toolyard};
use crate::support::process::run;

/// What a command says in a folder, where the state of its user is, too.
#[track_caller]
fn said(folder: &Path, args: &[&str]) -> String {
    let mut command = toolyard(folder);
    let ended = run(command.current_dir(folder).arg("store").args(args));
    let said = ended.to_string().replace(folder.to_str().unwrap(), "HOME");
    without_size(&said)
}

/// Without what depends on the version of SQLite: how many KiB there are.
fn without_size(said: &str) -> String {
    let words = said.split_inclusive([' ', '\n']).collect::<Vec<_>>();
    let shown = words.iter().enumerate().map(|(at, word)| match words.get(at + 1) {
        Some(next) if next.trim_end() == "KiB" => "... ",
        _ => word,
    });
    shown.collect()
}

#[test]
fn its_life() {
    let folder = TempDir::new().unwrap();
    assert_snapshot!(said(folder.path(), &["status"]), @"
    kind      sqlite
    location  HOME/.local/state/toolyard/toolyard.db
    version   none: there is nothing yet
    size      ... KiB
    --- exit status 0
    ");
    assert!(!folder.path().join(".local").exists());
    assert_snapshot!(said(folder.path(), &["migrate"]), @"
    kind      sqlite
    location  HOME/.local/state/toolyard/toolyard.db
    version   2: up to date
    size      ... KiB
    --- exit status 0
    ");
    assert_snapshot!(said(folder.path(), &["backup", "copy.db"]), @"
    copy.db has ... KiB
    --- exit status 0
    ");
    assert_snapshot!(said(folder.path(), &["backup", "copy.db"]), @"
    --- stderr
    error: copy.db is there already: name a file that is not
    --- exit status 1
    ");
    // What somebody else is at stays theirs.
    fs::write(folder.path().join("other.db.partial"), "theirs").unwrap();
    assert_snapshot!(said(folder.path(), &["backup", "other.db"]), @"
    --- stderr
    error: cannot write other.db.partial: File exists (os error 17)
    --- exit status 1
    ");
    assert_eq!(fs::read_to_string(folder.path().join("other.db.partial")).unwrap(), "theirs");
    let restored = process_document(folder.path(), json!({"store": {"path": "copy.db"}}));
    assert_snapshot!(said(folder.path(), &["status", "-f", restored.to_str().unwrap()]), @"
    kind      sqlite
    location  HOME/copy.db
    version   2: up to date
    size      ... KiB
    --- exit status 0
    ");
}

#[test]
fn for_programs() {
    let folder = TempDir::new().unwrap();
    let mut status = toolyard(folder.path());
    let said = run(status.args(["store", "migrate", "--output", "json"]));
    let said: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((&said["kind"], &said["version"], &said["newest"]), (&json!("sqlite"), &json!(2), &json!(2)));
    assert!(said["size"].as_u64().unwrap() > 0);
    let copy = folder.path().join("copy.db");
    let mut backup = toolyard(folder.path());
    let said = run(backup.args(["store", "backup", "--output", "json"]).arg(&copy));
    let said: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(said, json!({"file": copy, "size": fs::metadata(&copy).unwrap().len()}));
}

#[test]
fn other_stores() {
    let folder = TempDir::new().unwrap();
    let in_memory = process_document(folder.path(), json!({"store": {"memory": true}}));
    let in_memory = in_memory.to_str().unwrap();
    assert_snapshot!(said(folder.path(), &["status", "-f", in_memory]), @"
    kind      memory
    location  memory
    version   none: there is nothing yet
    size      ... KiB
    --- exit status 0
    ");
    assert_snapshot!(said(folder.path(), &["backup", "copy.db", "-f", in_memory]), @"
    --- stderr
    error: a store in memory cannot be backed up: nothing of it is kept
    --- exit status 1
    ");
    let url = |url: &str| {
        let file = process_document(folder.path(), json!({"store": {"url": url}}));
        said(folder.path(), &["status", "-f", file.to_str().unwrap()])
    };
    assert_snapshot!(url("postgres://yard:hunter2@127.0.0.1:1/yard"), @"
    --- stderr
    error: cannot open the store postgres://127.0.0.1:1/yard: see that it is there, takes this user, and is not locked by somebody else: the store cannot be reached: error connecting to server: Connection refused (os error 111)
    --- exit status 1
    ");
    assert_snapshot!(url("postgres://yard:hunter2@127.0.0.1:port/yard"), @"
    --- stderr
    error: the URL of the store cannot be understood: invalid connection string: invalid value for option `port`
    --- exit status 2
    ");
    assert_snapshot!(url("mysql://yard:hunter2@127.0.0.1/yard"), @"
    --- stderr
    error: the manifest has problems

    HOME/process.json:1:80: spec.store.url: this is not the URL of a PostgreSQL database
      expected a URL such as postgres://toolyard@db.example.com/toolyard
    --- exit status 2
    ");
}

/// It says loudly what is wrong, and serves whoever needs no key.
#[test]
fn a_gateway_serves_without_one() {
    let demo = [stdio("demo", env!("CARGO_BIN_EXE_toolyard"), &["demo-server"])];
    let (folder, mut serve) = Gateway::command(&demo, json!({"allowUnauthenticated": true}));
    fs::write(folder.path().join(".local"), "").unwrap();
    let gateway = Gateway::start(folder, &mut serve);
    let folder = gateway.folder.path().to_str().unwrap();
    let loud = gateway.process.stderr.wait_for("the trouble", |text| {
        text.lines().find(|line| line.contains("THERE IS NO STORE")).map(str::to_owned)
    });
    assert!(loud.contains(&format!("cannot make the folder {folder}/.local/state/toolyard")), "{loud}");
    assert_eq!(gateway.text("reverse_string", json!({"input": "abc"})), "cba");

    // Whether there are keys is in the store: until that is known nobody gets in without one.
    let (folder, mut serve) = Gateway::command(&demo, json!({}));
    fs::write(folder.path().join(".local"), "").unwrap();
    let gateway = Gateway::start(folder, &mut serve);
    assert_eq!(gateway.ask("tools/list", json!({})).status, 503);
    // So it is no use to send work here.
    assert_eq!(gateway.health().unwrap().status, 503);
}

#[test]
fn a_gateway_keeps_its_own_where_it_is_told() {
    let demo = [stdio("demo", env!("CARGO_BIN_EXE_toolyard"), &["demo-server"])];
    let (folder, mut serve) = Gateway::command(&demo, json!({"store": {"path": "kept/yard.db"}}));
    let gateway = Gateway::start(folder, &mut serve);
    assert!(gateway.folder.path().join("kept/yard.db").exists());
    assert!(!gateway.folder.path().join(".local").exists());
    let (folder, mut serve) = Gateway::command(&demo, json!({}));
    let gateway = Gateway::start(folder, &mut serve);
    assert!(gateway.folder.path().join(".local/state/toolyard/toolyard.db").exists());
}
