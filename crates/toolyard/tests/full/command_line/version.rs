//! `toolyard version`, and stores of other versions.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use serde_json::json;
use tempfile::TempDir;
use toolyard_testing::manifest::process_document;
use toolyard_testing::process::run;

use crate::support::gateway::toolyard;

/// A directory with a manifest and a store.
struct StoreHome(TempDir);

impl StoreHome {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        process_document(folder.path(), json!({"store": {"path": folder.path().join("yard.db")}}));
        Self(folder)
    }

    /// A directory with a store that version 0.1 has written, with a key and its creation in the audit trail.
    fn with_store_of_0_1() -> Self {
        let home = Self::new();
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/stores/0.1.db");
        fs::copy(fixture, home.store()).unwrap();
        home
    }

    fn store(&self) -> PathBuf {
        self.0.path().join("yard.db")
    }

    /// Changes the version of the tables in the header of the file (SQLite file format, 1.3).
    fn set_version(&self, version: u32) {
        let mut file = fs::OpenOptions::new().write(true).open(self.store()).unwrap();
        file.seek(SeekFrom::Start(60)).unwrap();
        file.write_all(&version.to_be_bytes()).unwrap();
    }

    #[track_caller]
    fn run(&self, args: &[&str]) -> String {
        let mut command = toolyard(self.0.path());
        let ended = run(command.args(args).arg("-f").arg(self.0.path().join("process.json")));
        ended
            .to_string()
            .replace(self.0.path().to_str().unwrap(), "DIR")
            .replace(env!("CARGO_PKG_VERSION"), "VERSION")
    }
}

#[test]
fn versions_of_a_new_gateway() {
    let home = StoreHome::new();
    assert_snapshot!(run(toolyard(home.0.path()).arg("version")).stdout.replace(env!("CARGO_PKG_VERSION"), "VERSION"), @"toolyard VERSION");
    assert_snapshot!(home.run(&["version", "--check"]), @"
    program    VERSION
    documents  ToolRegistry omnia.altairalabs.ai/v1alpha1, Toolyard toolyard.dev/v1alpha1
    manifests  0 handlers (up to date)
    store      none (the store does not exist)
    --- exit status 0
    ");
    assert!(!home.store().exists());
    assert_snapshot!(home.run(&["version", "--check", "--output", "json"]), @r#"
    {"version":"VERSION","documents":[{"kind":"ToolRegistry","apiVersion":"omnia.altairalabs.ai/v1alpha1"},{"kind":"Toolyard","apiVersion":"toolyard.dev/v1alpha1"}],"manifests":{"files":["DIR/process.json"],"problems":0},"store":{"location":"DIR/yard.db","version":null,"newest":3}}
    --- exit status 0
    "#);
}

#[test]
fn store_of_0_1_is_opened() {
    let home = StoreHome::with_store_of_0_1();
    assert!(home.run(&["version", "--check"]).contains("exit status 0"));
    let keys = home.run(&["key", "list"]);
    assert!(keys.contains("  fixture  tools:* rest"), "{keys}");
    let trail = home.run(&["audit"]);
    assert!(trail.contains("key_created"), "{trail}");
    let migrated = home.run(&["store", "migrate"]);
    assert!(migrated.contains("(up to date)"), "{migrated}");
}

#[test]
fn store_of_a_newer_version_is_refused() {
    let home = StoreHome::with_store_of_0_1();
    home.set_version(99);
    let before = fs::read(home.store()).unwrap();
    assert_snapshot!(home.run(&["version", "--check"]), @"
    program    VERSION
    documents  ToolRegistry omnia.altairalabs.ai/v1alpha1, Toolyard toolyard.dev/v1alpha1
    manifests  0 handlers (up to date)
    store      99 (newer than this program, which supports up to 3)
    --- exit status 1
    ");
    assert_snapshot!(home.run(&["key", "list"]), @"
    --- stderr
    error: the store DIR/yard.db has version 99, but this program supports version 3 at most: use a newer Toolyard, or restore a backup from before the upgrade
    --- exit status 1
    ");
    let serve = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    let error = serve.split_once("\nerror: ").unwrap().1;
    assert_snapshot!(error, @"
    cannot read the keys: the store cannot be read: the store DIR/yard.db has version 99, but this program supports version 3 at most: use a newer Toolyard, or restore a backup from before the upgrade
    --- exit status 1
    ");
    assert!(before == fs::read(home.store()).unwrap(), "the store is not changed");
}

#[test]
fn manifests_with_problems_do_not_fit() {
    let home = StoreHome::new();
    process_document(home.0.path(), json!({"fieldOfTheFuture": 1}));
    assert_snapshot!(home.run(&["version", "--check"]), @"
    program    VERSION
    documents  ToolRegistry omnia.altairalabs.ai/v1alpha1, Toolyard toolyard.dev/v1alpha1
    manifests  1 problem; `toolyard check` shows them
    store      not checked: the manifests have problems
    --- exit status 1
    ");
}
