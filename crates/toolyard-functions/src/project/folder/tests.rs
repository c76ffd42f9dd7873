use std::os::unix::fs::symlink;

use super::*;
use crate::project::{FunctionKind, template};

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

const ENTRY: &str = "cortexone_function.py";

#[test]
fn folder_is_read() {
    let folder = folder(&[
        (ENTRY, "source"),
        ("function.json", r#"{ "id": "weather", "price": "0.5" }"#),
        ("requirements.txt", "requests"),
        ("data/cities.csv", "a,b"),
        ("data/tests/one.json", "{}"),
        ("tests/a.json", r#"{ "event": {}, "expect": { "id": 1 } }"#),
        ("tests/b.json", r#"{ "name": "named", "event": "text" }"#),
        ("tests/notes.md", "not a test"),
        ("__pycache__/x.pyc", ""),
        (".git/config", ""),
        (".env", "TOKEN=hunter2"),
        ("venv/lib/x.py", ""),
    ]);
    symlink("data/cities.csv", folder.path().join("link.csv")).unwrap();
    let folder_project = read(folder.path()).unwrap();
    let names: Vec<_> = folder_project.project.files.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(names, [ENTRY, "data/cities.csv", "data/tests/one.json", "link.csv", "requirements.txt"]);
    assert_eq!(
        (folder_project.id.as_deref(), folder_project.project.kind),
        (Some("weather"), FunctionKind::Mcp)
    );
    assert_eq!(folder_project.project.requirements().unwrap(), "requests");
    let tests: Vec<_> =
        folder_project.project.tests.iter().map(|test| (&*test.name, test.expect.is_some())).collect();
    assert_eq!(tests, [("a", true), ("named", false)]);
}

#[test]
fn single_file_is_a_function() {
    let folder = folder(&[("tool.js", "source"), ("tool.rb", "source")]);
    let folder_project = read(&folder.path().join("tool.js")).unwrap();
    assert_eq!(folder_project.project.files, [("cortexone_function.js".to_owned(), "source".into())]);
    assert!(matches!(read(&folder.path().join("tool.rb")), Err(FolderError::NoLanguage(_))));
}

#[test]
fn invalid_folder_is_refused() {
    let check = |files: &[(&str, &str)], expected: &str| {
        let folder = folder(files);
        let refused = read(folder.path()).unwrap_err().to_string();
        assert_eq!(refused.replace(folder.path().to_str().unwrap(), "DIR"), expected);
    };
    let none = "DIR must have exactly one of cortexone_function.py, cortexone_function.js and \
                cortexone_function.lua, or `language` in function.json";
    check(&[], none);
    check(&[(ENTRY, ""), ("cortexone_function.js", "")], none);
    check(&[(ENTRY, ""), ("function.yaml", "")], "DIR/function.yaml is not supported: use function.json");
    check(
        &[(ENTRY, ""), ("function.json", r#"{"limits":{"seconds":0}}"#)],
        "DIR: the time in seconds must be between 1 and 900, not 0",
    );
    check(
        &[(ENTRY, ""), ("tests/a.json", "{}")],
        "DIR/tests/a.json: missing field `event` at line 1 column 2",
    );
    check(&[(ENTRY, ""), ("a/b/c/d/e/f/g/h/i", "")], "DIR/a/b/c/d/e/f/g/h is in more than 8 folders");
    let many: Vec<_> = (0..250).map(|number| format!("{number}")).collect();
    let many: Vec<_> = many.iter().map(|name| (name.as_str(), "")).chain([(ENTRY, "")]).collect();
    let refused = read(folder(&many).path()).unwrap_err();
    assert!(refused.to_string().ends_with("too many files: 201, the maximum is 200"), "{refused}");
    let large = "x".repeat(MAX_BYTES);
    let refused = read(folder(&[(ENTRY, &large), ("more", "1")]).path()).unwrap_err();
    assert!(refused.to_string().contains("the maximum is 10485760"), "{refused}");
}

#[test]
fn links_out_of_the_folder_are_refused() {
    let outside = folder(&[("secret", "hunter2"), ("folder/x", "")]);
    for (target, is_outside) in [("secret", true), ("folder", true), ("absent", false)] {
        let folder = folder(&[(ENTRY, "")]);
        symlink(outside.path().join(target), folder.path().join("link")).unwrap();
        let refused = read(folder.path()).unwrap_err();
        assert_eq!(matches!(refused, FolderError::Outside(_)), is_outside, "{refused}");
    }
    let itself = folder(&[(ENTRY, "")]);
    symlink(".", itself.path().join("link")).unwrap();
    assert!(matches!(read(itself.path()), Err(FolderError::NotAFile(_))));
    let socket = folder(&[(ENTRY, "")]);
    let _listener = std::os::unix::net::UnixListener::bind(socket.path().join("socket")).unwrap();
    assert!(matches!(read(socket.path()), Err(FolderError::NotAFile(_))));
}

#[test]
fn fingerprint_changes_with_the_files() {
    let folder = folder(&[(ENTRY, "a"), ("tests/a.json", "{}"), ("function.json", "{}"), ("data/x", "")]);
    let mut before = FolderFingerprint::of(folder.path());
    let mut check = |path: &str, text: &str, is_other: bool| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        let now = FolderFingerprint::of(folder.path());
        assert_eq!(now != before, is_other);
        before = now;
    };
    check(ENTRY, "ab", true);
    check("tests/a.json", "{ }", true);
    check("tests/b.json", "{}", true);
    check("function.json", "{ }", true);
    check("data/x", "1", true);
    check("data/deep/y", "", true);
    check("__pycache__/x.pyc", "", false);
    check(".swp", "", false);
    fs::remove_file(folder.path().join("data/x")).unwrap();
    assert_ne!(FolderFingerprint::of(folder.path()), before);
}

#[test]
fn templates_are_valid_functions_with_tests() {
    for kind in [FunctionKind::Mcp, FunctionKind::Function] {
        for language in SourceLanguage::ALL {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("new/weather");
            let paths = template::write(&path, kind, language, "weather").unwrap();
            assert!(paths.iter().all(|path| path.is_file()));
            let FolderProject { id, project } = read(&path).unwrap();
            assert_eq!((id.as_deref(), project.kind, project.language), (Some("weather"), kind, language));
            assert!(!project.tests.is_empty() && project.tests.iter().all(|test| test.expect.is_some()));
            let again = template::write(&path, kind, language, "weather").unwrap_err();
            assert!(again.to_string().ends_with("already exists"), "{again}");
        }
    }
    let odd =
        template::write(Path::new("/nowhere"), FunctionKind::Mcp, SourceLanguage::Lua, "a\"b").unwrap_err();
    assert_eq!(odd.kind(), io::ErrorKind::InvalidInput);
}
