//! The payload and the collection of output. `tests/scripts` covers the execution.

use toolyard_core::script::PythonScript;

use super::output::{BoundedOutput, OutputPart};
use super::*;

fn script(source: &str, input: Option<&str>) -> PythonScript {
    PythonScript {
        call_id: "1".into(),
        source: source.into(),
        input: input.map(str::to_owned),
        timeout: Duration::from_secs(1),
        packages: Vec::new(),
        trace_parent: None,
    }
}

#[test]
fn payload_starts_with_the_lengths_of_its_parts() {
    let packages = Some(Path::new("/p"));
    let payload =
        ScriptPayload {
            source: "print(1)", input: "ü", packages, memory_bytes: 256 << 20, disk_bytes: 1000
        };
    assert_eq!(String::from_utf8(payload.bytes()).unwrap(), "8 2 2 7 10\nprint(1)ü/p256 MiB1000 bytes");
}

#[test]
fn invalid_payload_is_refused() {
    let check = |script: &PythonScript, expected: Result<(), &str>| {
        let checked = payload::check(script, 8 << 10).map_err(|error| {
            assert_eq!(error.code(), ErrorCode::InvalidArguments);
            error.message().to_owned()
        });
        assert_eq!(checked, expected.map_err(str::to_owned));
    };
    check(&script("x", None), Ok(()));
    check(&script(&"x".repeat(1 << 10), Some("")), Ok(()));
    check(
        &script(&"x".repeat(1 << 10), Some(&"y".repeat(1 << 10))),
        Err("The script and its input have 2 KiB; the maximum is 1 KiB"),
    );
    check(&script("x", Some("a\0b")), Err("The input contains U+0000, which a variable cannot contain"));
}

async fn collect(part: OutputPart, output_text: &[u8]) -> String {
    let mut output = BoundedOutput::new(part, 8);
    output.read(output_text).await;
    output.text()
}

#[tokio::test]
async fn long_output_is_cut_between_characters() {
    let check = async |output_text: &[u8], beginning: &str, end: &str| {
        let texts =
            (collect(OutputPart::Beginning, output_text).await, collect(OutputPart::End, output_text).await);
        assert_eq!(texts, (beginning.to_owned(), end.to_owned()), "{output_text:?}");
    };
    check(b"", "", "").await;
    check(b"12345678", "12345678", "12345678").await;
    check(b"\xff\xfe", "\u{fffd}\u{fffd}", "\u{fffd}\u{fffd}").await;
    check(b"123456789", "12345678\n[truncated: 1 more bytes]\n", "[truncated: 1 bytes before]\n23456789")
        .await;
    check(
        "1234567üabcdefg".as_bytes(),
        "1234567\n[truncated: 9 more bytes]\n",
        "[truncated: 9 bytes before]\nabcdefg",
    )
    .await;
    check(
        "123456ü🙂34567".as_bytes(),
        "123456ü\n[truncated: 9 more bytes]\n",
        "[truncated: 12 bytes before]\n34567",
    )
    .await;
}

#[tokio::test]
async fn memory_of_endless_output_is_limited() {
    let output_text = vec![b'x'; 8 << 20];
    for part in [OutputPart::Beginning, OutputPart::End] {
        let text = collect(part, &output_text).await;
        assert!(text.len() < 100 && text.contains(": 8388600 "), "{text}");
    }
}

#[test]
fn interpreter_is_found_as_in_sandboxes() {
    let path = |text: &str| PathBuf::from(text);
    assert_eq!(interpreter(Path::new("no-such-python")), path("no-such-python"));
    assert_eq!(interpreter(Path::new("/opt/x/bin/python3")), path("/opt/x/bin/python3"));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    std::fs::create_dir(folder.join("bin")).unwrap();
    std::fs::write(folder.join("bin/python3"), "").unwrap();
    std::os::unix::fs::symlink("bin/python3", folder.join("python")).unwrap();
    let interpreter = PythonInterpreter::find(&folder.join("python"));
    assert_eq!(interpreter, PythonInterpreter { command: folder.join("bin/python3"), folder: Some(folder) });
    let system = PythonInterpreter::find(Path::new("sh"));
    assert_eq!((system.command.ends_with("sh"), system.folder), (true, None));
}
