//! What scripts are given, and what is kept of what they write. What they do is in `tests/scripts`.

use toolyard_core::script::Script;

use super::output::{Kept, Part};
use super::*;

fn script(source: &str, input: Option<&str>) -> Script {
    Script {
        call_id: "1".into(),
        source: source.into(),
        input: input.map(str::to_owned),
        timeout: Duration::from_secs(1),
        packages: Vec::new(),
    }
}

#[test]
fn a_payload_says_how_long_its_parts_are() {
    let packages = Some(Path::new("/p"));
    let payload =
        Payload { source: "print(1)", input: "ü", packages, memory_bytes: 256 << 20, disk_bytes: 1000 };
    assert_eq!(String::from_utf8(payload.bytes()).unwrap(), "8 2 2 7 10\nprint(1)ü/p256 MiB1000 bytes");
}

#[test]
fn what_no_script_can_be_given_is_refused() {
    let check = |script: &Script, expected: Result<(), &str>| {
        let checked = payload::check(script, 8 << 10).map_err(|error| {
            assert_eq!(error.code(), Code::InvalidArguments);
            error.message().to_owned()
        });
        assert_eq!(checked, expected.map_err(str::to_owned));
    };
    check(&script("x", None), Ok(()));
    check(&script(&"x".repeat(1 << 10), Some("")), Ok(()));
    check(
        &script(&"x".repeat(1 << 10), Some(&"y".repeat(1 << 10))),
        Err("The script and its input are 2 KiB, and may be 1 KiB together"),
    );
    check(&script("x", Some("a\0b")), Err("The input has the character U+0000, which no variable can have"));
}

async fn kept(part: Part, written: &[u8]) -> String {
    let mut kept = Kept::new(part, 8);
    kept.read(written).await;
    kept.text()
}

#[tokio::test]
async fn what_is_too_long_is_cut_between_characters() {
    let check = async |written: &[u8], beginning: &str, end: &str| {
        let texts = (kept(Part::Beginning, written).await, kept(Part::End, written).await);
        assert_eq!(texts, (beginning.to_owned(), end.to_owned()), "{written:?}");
    };
    check(b"", "", "").await;
    check(b"12345678", "12345678", "12345678").await;
    check(b"\xff\xfe", "\u{fffd}\u{fffd}", "\u{fffd}\u{fffd}").await;
    check(
        b"123456789",
        "12345678\n[cut here: 1 bytes more are not kept]\n",
        "[cut here: 1 bytes before this are not kept]\n23456789",
    )
    .await;
    check(
        "1234567üabcdefg".as_bytes(),
        "1234567\n[cut here: 9 bytes more are not kept]\n",
        "[cut here: 9 bytes before this are not kept]\nabcdefg",
    )
    .await;
    check(
        "123456ü🙂34567".as_bytes(),
        "123456ü\n[cut here: 9 bytes more are not kept]\n",
        "[cut here: 12 bytes before this are not kept]\n34567",
    )
    .await;
}

#[tokio::test]
async fn what_has_no_end_takes_no_memory() {
    let written = vec![b'x'; 8 << 20];
    for part in [Part::Beginning, Part::End] {
        let text = kept(part, &written).await;
        assert!(text.len() < 100 && text.contains("8388600 bytes"), "{text}");
    }
}

#[test]
fn credentials_of_an_index_are_hidden() {
    let error = crate::packages::PackageError::Failed(
        "http://user:s3cret@index/simple/ and https://a@b c://d/e@f".to_owned(),
    );
    let told = refusal::of_packages(&error);
    assert_eq!(told.code(), Code::ExecutionFailed);
    assert_eq!(
        told.message(),
        "The script was not run: pip cannot install the packages: http://@index/simple/ and https://@b c://d/e@f"
    );
}

#[test]
fn an_interpreter_is_where_cells_find_it() {
    let path = |text: &str| PathBuf::from(text);
    assert_eq!(interpreter(Path::new("no-such-python")), path("no-such-python"));
    assert_eq!(interpreter(Path::new("/opt/x/bin/python3")), path("/opt/x/bin/python3"));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    std::fs::create_dir(folder.join("bin")).unwrap();
    std::fs::write(folder.join("bin/python3"), "").unwrap();
    std::os::unix::fs::symlink("bin/python3", folder.join("python")).unwrap();
    let found = Interpreter::find(&folder.join("python"));
    assert_eq!(found, Interpreter { command: folder.join("bin/python3"), folder: Some(folder) });
    let system = Interpreter::find(Path::new("sh"));
    assert_eq!((system.command.ends_with("sh"), system.folder), (true, None));
}
