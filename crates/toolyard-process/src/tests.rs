//! Programs without a supervisor: those with one are tested with the built binary.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;

use super::*;

fn shell(script: &str) -> Program {
    Program {
        command: "sh".into(),
        args: vec!["-c".into(), script.into()],
        env: vec![("GIVEN".into(), "given".into())],
        work_dir: Some("/".into()),
        ..Program::default()
    }
}

async fn start(program: &Program) -> Result<(Child, Pipes), SpawnError> {
    Processes::new(Spawner::Direct, 1).start(&"test".into(), program).await
}

#[tokio::test]
async fn a_child_has_an_environment_of_its_own() {
    let (child, mut pipes) =
        start(&shell("echo $GIVEN $CARGO_MANIFEST_DIR $PWD; echo log >&2")).await.unwrap();
    let (mut out, mut log) = (String::new(), String::new());
    pipes.stdout.read_to_string(&mut out).await.unwrap();
    pipes.stderr.read_to_string(&mut log).await.unwrap();
    assert_eq!((&*out, &*log), ("given /\n", "log\n"));
    assert!(child.ending().wait().await.unwrap().success());
}

#[tokio::test]
async fn the_whole_group_ends_with_the_child() {
    let (child, mut pipes) = start(&shell("sleep 1000 & echo $!; wait")).await.unwrap();
    let mut line = [0; 16];
    let length = pipes.stdout.read(&mut line).await.unwrap();
    assert!(length > 1);
    drop(child);
    // The pipe is closed when its last writer is gone, the grandchild included.
    assert_eq!(pipes.stdout.read(&mut line).await.unwrap(), 0);
}

#[tokio::test]
async fn the_end_of_a_child_is_seen_while_another_holds_its_pipes() {
    let (child, mut pipes) = start(&shell("sleep 1000 & exit 3")).await.unwrap();
    assert_eq!(child.ending().wait().await.unwrap().code(), Some(3));
    drop(child);
    assert_eq!(pipes.stdout.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test]
async fn a_child_that_ignores_its_input_is_ended() {
    let (child, mut pipes) =
        start(&shell("trap '' TERM; echo ready; while :; do sleep 1000; done")).await.unwrap();
    pipes.stdout.read_exact(&mut [0; 6]).await.unwrap();
    drop(pipes.stdin);
    child.end(Duration::from_millis(50)).await;
    assert_eq!(pipes.stdout.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test]
async fn who_is_killed_is_not_asked_to_leave() {
    let (child, mut pipes) =
        start(&shell("trap '' TERM; sleep 1000 & echo ready; while :; do sleep 1000; done")).await.unwrap();
    pipes.stdout.read_exact(&mut [0; 6]).await.unwrap();
    assert!(child.processes().len() >= 2, "{:?}", child.processes());
    child.kill();
    assert_eq!(child.ending().wait().await.unwrap().code(), None);
    assert_eq!(pipes.stdout.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test]
async fn what_cannot_start_is_named() {
    let program = Program { command: "/no/such/program".into(), ..Program::default() };
    assert_eq!(start(&program).await.unwrap_err().to_string(), r#"cannot start "/no/such/program""#);
}

#[tokio::test]
async fn those_that_run_are_listed_and_bounded() {
    let processes = Processes::new(Spawner::Direct, 2);
    let name: Arc<str> = "one".into();
    let program = shell("sleep 1000 & echo; wait");
    let (first, mut pipes) = processes.start(&name, &program).await.unwrap();
    let _second = processes.start(&"other".into(), &program).await.unwrap();
    // Its child runs, too.
    pipes.stdout.read_exact(&mut [0; 1]).await.unwrap();
    let error = processes.start(&name, &program).await.unwrap_err();
    assert_eq!(error.to_string(), "as many programs run as may run: 2");
    drop(first);
    let _third = processes.start(&name, &program).await.unwrap();
    let list = processes.list();
    let shown: Vec<_> = list.iter().map(|process| (&*process.name, process.restarts)).collect();
    assert_eq!(shown, [("other", 0), ("one", 1)]);
    assert!(list.iter().all(|process| process.command == "sh" && process.pid > 0), "{list:?}");
}

#[tokio::test]
async fn there_is_no_channel_without_a_supervisor() {
    let error = start(&Program { channel: true, ..shell("true") }).await.unwrap_err();
    assert!(format!("{error:?}").contains("without a supervisor it has no channel"), "{error:?}");
}
