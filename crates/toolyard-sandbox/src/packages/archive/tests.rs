use std::os::unix::fs::symlink;

use super::*;

fn header(path: &str, bytes: u64) -> Vec<u8> {
    let text = format!(r#"{{"path":{path:?},"bytes":{bytes},"modified":1,"executable":false}}"#);
    [&u32::try_from(text.len()).unwrap().to_be_bytes(), text.as_bytes()].concat()
}

fn received(bytes: &[u8], most: u64) -> Result<Vec<String>, ArchiveError> {
    let folder = tempfile::tempdir().unwrap();
    receive(&mut &*bytes, folder.path(), most).map(|files| files.into_keys().collect())
}

#[test]
fn sent_files_are_received() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir_all(from.path().join("a/b/empty")).unwrap();
    for (path, text, mode) in [("x", "", 0o600), ("a/y", "why", 0o755), ("a/b/z", "zed", 0o4711)] {
        fs::write(from.path().join(path), text).unwrap();
        fs::set_permissions(from.path().join(path), Permissions::from_mode(mode)).unwrap();
    }
    let mut sent = Vec::new();
    send(from.path(), &mut sent).unwrap();
    let files = receive(&mut &*sent, to.path(), 10_000).unwrap();
    assert_eq!(files.keys().collect::<Vec<_>>(), ["a/b/z", "a/y", "x"]);
    assert_eq!(<[u8; 32]>::from(Sha256::digest("zed")), files["a/b/z"].sha256);
    for (path, text, mode) in [("x", "", 0o644), ("a/y", "why", 0o755), ("a/b/z", "zed", 0o755)] {
        let (before, after) =
            (fs::metadata(from.path().join(path)).unwrap(), fs::metadata(to.path().join(path)).unwrap());
        assert_eq!(fs::read_to_string(to.path().join(path)).unwrap(), text);
        assert_eq!(after.mode() & 0o7777, mode, "{path}");
        assert_eq!(after.mtime(), before.mtime(), "{path}");
    }
}

#[test]
fn links_and_special_files_are_refused_by_the_sender() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("there");
    symlink("/etc/passwd", &path).unwrap();
    let error = send(folder.path(), &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "there is a symbolic link");
    fs::remove_file(&path).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let error = send(folder.path(), &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "there is a special file");
}

#[test]
fn paths_outside_the_folder_are_refused() {
    for path in ["", "/etc/x", "../x", "a/../x", "a/./x", "a//x", "a/", ".", "a\nb", "a\0b"] {
        let sent = [header(path, 0), vec![0; 4]].concat();
        let fault = received(&sent, 10_000).unwrap_err();
        assert!(matches!(fault, ArchiveError::Malformed(_)), "{path:?}: {fault:?}");
    }
    let deep = vec!["a"; 65].join("/");
    assert!(received(&[header(&deep, 0), vec![0; 4]].concat(), 10_000).is_err());
}

#[test]
fn received_files_are_limited() {
    let one = [header("a", 1000), vec![b'x'; 1000]].concat();
    let end = vec![0; 4];
    assert_eq!(received(&[one.clone(), end.clone()].concat(), 1000).unwrap(), ["a"]);
    assert!(matches!(received(&[one.clone(), end.clone()].concat(), 999), Err(ArchiveError::TooLarge)));
    let empty: Vec<u8> = (0..3).flat_map(|number| header(&format!("f{number}"), 0)).collect();
    assert!(matches!(received(&[empty, end.clone()].concat(), 1024), Err(ArchiveError::TooLarge)));
    assert!(matches!(received(&header("a", u64::MAX), u64::MAX - 1), Err(ArchiveError::TooLarge)));
    assert!(matches!(received(&u32::MAX.to_be_bytes(), 1000), Err(ArchiveError::Malformed(_))));
    assert!(matches!(received(b"\0\0\0\x02{}", 1000), Err(ArchiveError::Malformed(_))));
    // A stream that ends early is invalid.
    assert!(matches!(received(&one, 1000), Err(ArchiveError::Broken(_))));
    assert!(matches!(received(&one[..one.len() - 1], 1000), Err(ArchiveError::Broken(_))));
    assert!(matches!(received(b"", 1000), Err(ArchiveError::Broken(_))));
    // So are a duplicate file, and a file that is also a folder.
    let twice = [one.clone(), one.clone(), end.clone()].concat();
    assert!(matches!(received(&twice, 10_000), Err(ArchiveError::Broken(_))));
    let below = [one, header("a/b", 0), end].concat();
    assert!(matches!(received(&below, 10_000), Err(ArchiveError::Broken(_))));
}
