use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

const LIMIT: usize = 100;

/// Returns a folder for files, beside a file that none of its paths may reach.
fn folder() -> (TempDir, SharedFolder) {
    let parent = tempfile::tempdir().expect("a folder");
    let shared = parent.path().join("shared");
    fs::create_dir(&shared).expect("a folder");
    fs::write(parent.path().join("secret.txt"), "secret").expect("a file");
    (parent, SharedFolder::new(shared, 1 << 20))
}

fn path(text: &str) -> SharedPath {
    SharedPath::parse(text).expect("a path")
}

#[tokio::test]
async fn file_is_written_and_read() {
    let (parent, folder) = folder();
    for (name, text) in [("a.txt", "one"), ("a.txt", "two"), ("reports/2026/a.md", "three")] {
        folder.write(&path(name), text).await.expect("written");
        assert_eq!(folder.read(&path(name), LIMIT).await.expect("read"), text);
    }
    let names = fs::read_dir(parent.path().join("shared")).expect("a folder").count();
    assert_eq!(names, 2, "no temporary file remains");
}

#[tokio::test]
async fn folder_has_a_maximum_size() {
    let (parent, _) = folder();
    let folder = SharedFolder::new(parent.path().join("shared"), 10);
    folder.write(&path("a/b.txt"), "12345678").await.expect("written");
    let error = folder.write(&path("c.txt"), "123").await.expect_err("full").to_string();
    let expected = "the file `c.txt` does not fit into the shared folder, which may have 10 bytes. Use a path of an older file, \
                    or ask the operator of the gateway to delete files or to raise `builtins.wisps.sharedBytes`";
    assert_eq!(error, expected);
    // A file that is replaced takes no room beside the new one.
    folder.write(&path("a/b.txt"), "1234567890").await.expect("written");
    folder.write(&path("a/b.txt"), "").await.expect("written");
    folder.write(&path("c.txt"), "123").await.expect("written");
}

#[tokio::test]
async fn number_of_files_is_limited() {
    let (parent, folder) = folder();
    let shared = parent.path().join("shared");
    for number in 1..MAX_ENTRIES {
        fs::write(shared.join(number.to_string()), "").expect("a file");
    }
    folder.write(&path("last.txt"), "x").await.expect("written");
    let error = folder.write(&path("more.txt"), "x").await.expect_err("full");
    assert!(matches!(error, SharedFileError::TooManyEntries(_)), "{error}");
    folder.write(&path("last.txt"), "y").await.expect("written");
}

#[tokio::test]
async fn symbolic_links_are_refused() {
    let (parent, folder) = folder();
    let shared = parent.path().join("shared");
    symlink(parent.path().join("secret.txt"), shared.join("link.txt")).expect("a link");
    symlink(parent.path(), shared.join("up")).expect("a link");
    for name in ["link.txt", "up/secret.txt", "up/new.txt"] {
        let written = folder.write(&path(name), "x").await.expect_err("refused");
        assert!(matches!(written, SharedFileError::NotPlain(_)), "{name}: {written}");
        let read = folder.read(&path(name), LIMIT).await.expect_err("refused");
        assert!(matches!(read, SharedFileError::NotPlain(_)), "{name}: {read}");
    }
    assert_eq!(fs::read_to_string(parent.path().join("secret.txt")).expect("a file"), "secret");
    assert!(!parent.path().join("new.txt").exists());
}

#[tokio::test]
async fn reasons_are_told() {
    let (parent, folder) = folder();
    let shared = parent.path().join("shared");
    fs::write(shared.join("large.txt"), "x".repeat(LIMIT + 1)).expect("a file");
    fs::write(shared.join("binary"), [0xff, 0xfe]).expect("a file");
    fs::create_dir(shared.join("folder")).expect("a folder");
    for (name, expected) in [
        ("missing.txt", "no file `missing.txt`"),
        ("large.txt", "more than 100 bytes"),
        ("binary", "not a text"),
        ("folder", "neither a folder nor a file"),
        ("binary/a", "neither a folder nor a file"),
    ] {
        let error = folder.read(&path(name), LIMIT).await.expect_err("no text").to_string();
        assert!(error.contains(expected) && !error.contains("shared/"), "{name}: {error}");
    }
    let error =
        SharedFolder::new(shared.join("gone"), 1 << 20).write(&path("a"), "").await.expect_err("no folder");
    assert!(matches!(error, SharedFileError::Folder(_)), "{error}");
}
