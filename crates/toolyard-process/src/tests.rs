//! Tests of programs without a supervisor. The tests of the binary cover supervised ones.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;

use super::*;

fn shell(script: &str) -> ProgramSpec {
    ProgramSpec {
        command: "sh".into(),
        args: vec!["-c".into(), script.into()],
        env: vec![("GIVEN".into(), "given".into())],
        work_dir: Some("/".into()),
        ..ProgramSpec::default()
    }
}

async fn start(program: &ProgramSpec) -> Result<(ChildProcess, ChildPipes), SpawnError> {
    ProcessTable::new(ProcessSpawner::Direct, 1).start(&"test".into(), program).await
}

#[tokio::test]
async fn child_has_its_own_environment() {
    let (child, mut pipes) =
        start(&shell("echo $GIVEN $CARGO_MANIFEST_DIR $PWD; echo log >&2")).await.unwrap();
    let (mut out, mut log) = (String::new(), String::new());
    pipes.stdout.read_to_string(&mut out).await.unwrap();
    pipes.stderr.read_to_string(&mut log).await.unwrap();
    assert_eq!((&*out, &*log), ("given /\n", "log\n"));
    assert!(child.exit_handle().wait().await.unwrap().success());
}

#[tokio::test]
async fn whole_group_ends_with_the_child() {
    let (child, mut pipes) = start(&shell("sleep 1000 & echo $!; wait")).await.unwrap();
    let mut line = [0; 16];
    let length = pipes.stdout.read(&mut line).await.unwrap();
    assert!(length > 1);
    drop(child);
    // The pipe is closed once its last writer is gone, including the grandchild.
    assert_eq!(pipes.stdout.read(&mut line).await.unwrap(), 0);
}

#[tokio::test]
async fn exit_is_reported_while_another_process_holds_the_pipes() {
    let (child, mut pipes) = start(&shell("sleep 1000 & exit 3")).await.unwrap();
    assert_eq!(child.exit_handle().wait().await.unwrap().code(), Some(3));
    drop(child);
    assert_eq!(pipes.stdout.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test]
async fn child_that_ignores_its_input_is_ended() {
    let (child, mut pipes) =
        start(&shell("trap '' TERM; echo ready; while :; do sleep 1000; done")).await.unwrap();
    pipes.stdout.read_exact(&mut [0; 6]).await.unwrap();
    drop(pipes.stdin);
    child.shut_down(Duration::from_millis(50)).await;
    assert_eq!(pipes.stdout.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test]
async fn kill_does_not_send_a_term_signal() {
    let (child, mut pipes) =
        start(&shell("trap '' TERM; sleep 1000 & echo ready; while :; do sleep 1000; done")).await.unwrap();
    pipes.stdout.read_exact(&mut [0; 6]).await.unwrap();
    assert!(child.processes().len() >= 2, "{:?}", child.processes());
    child.kill();
    assert_eq!(child.exit_handle().wait().await.unwrap().code(), None);
    assert_eq!(pipes.stdout.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test]
async fn start_error_names_the_program() {
    let program = ProgramSpec { command: "/no/such/program".into(), ..ProgramSpec::default() };
    assert_eq!(start(&program).await.unwrap_err().to_string(), r#"cannot start "/no/such/program""#);
}

#[tokio::test]
async fn start_error_names_the_missing_folder() {
    let program = ProgramSpec { work_dir: Some("/no/such/folder".into()), ..shell("true") };
    let error = start(&program).await.unwrap_err().to_string();
    assert_eq!(error, r#"cannot enter the working directory "/no/such/folder": there is no such folder"#);
}

#[tokio::test]
async fn running_programs_are_listed_and_limited() {
    let processes = ProcessTable::new(ProcessSpawner::Direct, 2);
    let name: Arc<str> = "one".into();
    let program = shell("sleep 1000 & echo; wait");
    let (first, mut pipes) = processes.start(&name, &program).await.unwrap();
    let _second = processes.start(&"other".into(), &program).await.unwrap();
    // Its child process runs too.
    pipes.stdout.read_exact(&mut [0; 1]).await.unwrap();
    let error = processes.start(&name, &program).await.unwrap_err();
    assert_eq!(error.to_string(), "too many running programs (at most 2)");
    drop(first);
    let _third = processes.start(&name, &program).await.unwrap();
    let list = processes.list();
    let names: Vec<_> = list.iter().map(|process| (&*process.name, process.restarts)).collect();
    assert_eq!(names, [("other", 0), ("one", 1)]);
    assert!(list.iter().all(|process| process.command == "sh" && process.pid > 0), "{list:?}");
}

#[tokio::test]
async fn channel_requires_a_supervisor() {
    let error = start(&ProgramSpec { channel: true, ..shell("true") }).await.unwrap_err();
    assert!(format!("{error:?}").contains("a channel requires a supervisor"), "{error:?}");
}
