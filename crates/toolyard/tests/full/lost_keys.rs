//! Store files after shutdown, and gateways that have lost their keys.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;
use toolyard_testing::http::send_with_key;
use toolyard_testing::manifest::{process_document, registry_document};
use toolyard_testing::process::{ProgramResult, run};
use toolyard_testing::wait::eventually;

use crate::support::gateway::{TestGateway, toolyard};

/// Creates the directory of a gateway without handlers, with the store `state/yard.db`.
fn gateway_dir() -> TempDir {
    let folder = TempDir::new().unwrap();
    registry_document(folder.path(), &[]);
    let store = json!({"path": folder.path().join("state/yard.db")});
    process_document(folder.path(), json!({"store": store, "timeouts": {"keyCheck": "10ms"}}));
    folder
}

/// Returns a command with the manifests of this gateway.
fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = toolyard(folder);
    command.args(args);
    for file in ["registry.json", "process.json"] {
        command.arg("-f").arg(folder.join(file));
    }
    command
}

fn serve(folder: TempDir) -> TestGateway {
    let mut command = command(folder.path(), &["serve"]);
    TestGateway::start(folder, &mut command)
}

/// Stops a gateway by SIGTERM.
fn stop(mut gateway: TestGateway) -> TempDir {
    gateway.process.signal(Signal::TERM);
    assert_eq!(gateway.process.wait().code(), Some(0));
    let TestGateway { process, folder, .. } = gateway;
    drop(process);
    folder
}

fn new_key(folder: &Path) -> String {
    let made = run(&mut command(folder, &["key", "create", "me", "--scope", "rest"]));
    assert_eq!(made.code, 0, "{made}");
    made.stdout.trim().to_owned()
}

/// Returns the names of the files beside the store.
fn state_files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder.join("state")).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Runs `serve`, which must fail.
#[track_caller]
fn failed_start(folder: &Path) -> ProgramResult {
    let ended = run(command(folder, &["serve"]).args(["--listen", "127.0.0.1:0"]));
    assert_eq!(ended.code, 2, "{ended}");
    ended
}

#[test]
fn clean_stop_leaves_one_file() {
    let gateway = serve(gateway_dir());
    assert_eq!(gateway.get("/api/v1/status").status, 200);
    new_key(gateway.folder.path());
    let folder = stop(gateway);
    assert_eq!(state_files(folder.path()), ["yard.db"]);
    // Commands leave no more files.
    assert!(run(&mut command(folder.path(), &["key", "list"])).stdout.contains("me"));
    assert_eq!(state_files(folder.path()), ["yard.db"]);
}

#[test]
fn gateway_that_had_keys_does_not_start_without_them() {
    type StoreLoss = fn(&Path);
    let empty = |folder: &Path| drop(std::fs::File::create(folder.join("state/yard.db")).unwrap());
    let delete = |folder: &Path| std::fs::remove_dir_all(folder.join("state")).unwrap();
    let move_it = |folder: &Path| {
        let store = json!({"path": folder.join("elsewhere/yard.db")});
        process_document(folder, json!({"store": store}));
    };
    for (name, lose) in [("emptied", empty as StoreLoss), ("deleted", delete), ("another one", move_it)] {
        let gateway = serve(gateway_dir());
        // The gateway sets the marker when it sees the key.
        let key = gateway.new_key("", json!({"name": "me", "scopes": ["rest"]}));
        eventually("a key is asked for", || (gateway.get("/api/v1/status").status == 401).then_some(()));
        let folder = stop(gateway);
        lose(folder.path());
        let message = failed_start(folder.path()).stderr;
        for part in [".process.json.toolyard-keys", "toolyard key create", "toolyard key forget"] {
            assert!(message.contains(part), "{name}: {message}");
        }
        assert!(!key.is_empty());
        // A new key lets the gateway start.
        new_key(folder.path());
        let gateway = serve(folder);
        assert_eq!(gateway.get("/api/v1/status").status, 401, "{name}");
    }
}

#[test]
fn forgotten_keys_allow_a_start_without_keys() {
    let gateway = serve(gateway_dir());
    new_key(gateway.folder.path());
    let folder = stop(gateway);
    std::fs::remove_dir_all(folder.path().join("state")).unwrap();
    failed_start(folder.path());
    let forget = || run(&mut command(folder.path(), &["key", "forget"])).to_string();
    assert!(forget().contains("removed "));
    assert!(forget().contains("no key marker found"));
    let gateway = serve(folder);
    assert_eq!(gateway.get("/api/v1/status").status, 200);
    let folder = stop(gateway);
    // A document with `allowUnauthenticated` does, too.
    new_key(folder.path());
    std::fs::remove_dir_all(folder.path().join("state")).unwrap();
    process_document(folder.path(), json!({"store": {"memory": true}, "allowUnauthenticated": true}));
    assert_eq!(serve(folder).get("/api/v1/status").status, 200);
}

#[test]
fn store_lost_at_run_time_does_not_disable_keys() {
    let gateway = serve(gateway_dir());
    let key = new_key(gateway.folder.path());
    let status = |key: &str| send_with_key(gateway.address, key, "GET /api/v1/status", "").status;
    eventually("the key is known", || (gateway.get("/api/v1/status").status == 401).then_some(()));
    assert_eq!(status(&key), 200);
    std::fs::remove_dir_all(gateway.folder.path().join("state")).unwrap();
    for _ in 0..20 {
        assert_eq!(gateway.get("/api/v1/status").status, 401);
    }
}

#[test]
fn marker_is_found_by_any_name_of_its_file() {
    let folder = gateway_dir();
    let file = folder.path().join("process.json");
    let created =
        run(toolyard(folder.path()).args(["key", "create", "me", "--scope", "rest", "-f"]).arg(file));
    assert_eq!(created.code, 0, "{created}");
    std::fs::remove_dir_all(folder.path().join("state")).unwrap();
    for files in [vec!["."], vec!["./process.json"], vec!["registry.json", "process.json"]] {
        let mut command = toolyard(folder.path());
        command.current_dir(folder.path()).args(["serve", "--listen", "127.0.0.1:0"]);
        command.args(files.iter().flat_map(|file| ["-f", *file]));
        let ended = run(&mut command);
        assert!(
            ended.code == 2 && ended.stderr.contains(".process.json.toolyard-keys"),
            "{files:?}: {ended}"
        );
    }
}
