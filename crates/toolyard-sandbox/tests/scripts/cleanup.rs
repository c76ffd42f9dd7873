//! Clean-up after scripts, however they end.

use std::sync::Arc;
use std::time::Duration;

use toolyard_core::ErrorCode;
use toolyard_core::script::{PythonScript, ScriptExecutor};
use toolyard_process::{ProcessSpawner, ProcessTable};
use toolyard_sandbox::packages::{PackageInstaller, PackageOptions};
use toolyard_sandbox::script::{LocalRunner, LocalRunnerOptions};
use toolyard_sandbox::{IsolationRequirement, Sandbox, SandboxOptions};
use toolyard_testing::process::{is_named_running, unique_word};
use toolyard_testing::wait::{until, until_async};

use crate::machine::{ALL, BINARY, run_script};

/// Starts a daemon of this name in a session of its own, with some files closed.
const DAEMON: &str = "
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for file in HELD: os.close(file)
        os.execv('/usr/bin/sleep', ['NAME', '1000'])
    os._exit(0)
os.wait()
print('left')
";

fn daemon(name: &str, closed: &str) -> String {
    DAEMON.replace("NAME", name).replace("HELD", closed)
}

#[test]
fn daemons_end_with_the_script() {
    for user in ALL {
        // Daemons that hold the pipes do not delay the result.
        for closed in ["(0, 1, 2)", "()"] {
            let name = format!("left-{}", unique_word());
            let result =
                run_script(user, serde_json::json!({"source": daemon(&name, closed)}), serde_json::json!({}));
            assert_eq!((&result["output"], &result["exit_code"]), (&"left\n".into(), &0.into()), "{result}");
            assert!(result["elapsed_ms"].as_f64().unwrap() < 4000.0, "{user:?} {result}");
            until("the daemon is gone", || !is_named_running(&name));
        }
    }
}

async fn runner(isolation: IsolationRequirement, options: LocalRunnerOptions) -> Arc<LocalRunner> {
    let mut sandbox = SandboxOptions::new(ProcessTable::new(ProcessSpawner::supervised_by(BINARY), 8));
    sandbox.binary = BINARY.into();
    sandbox.isolation = isolation;
    Arc::new(LocalRunner::new(Sandbox::new(sandbox), None, options))
}

fn script(source: &str, timeout: Duration) -> PythonScript {
    PythonScript {
        call_id: unique_word(),
        source: source.into(),
        input: None,
        timeout,
        packages: Vec::new(),
        trace_parent: None,
    }
}

#[tokio::test]
async fn all_processes_of_a_timed_out_script_are_killed() {
    for isolation in [IsolationRequirement::Required, IsolationRequirement::None] {
        let runner = runner(isolation, LocalRunnerOptions::default()).await;
        let name = format!("late-{}", unique_word());
        let source = format!("{}\nimport time; time.sleep(1000)", daemon(&name, "(0, 1, 2)"));
        let result =
            ScriptExecutor::run(&*runner, script(&source, Duration::from_millis(1500))).await.unwrap();
        assert_eq!((result.exit_code, &*result.output), (-1, "left\n"));
        until_async("the daemon is gone", || !is_named_running(&name)).await;
    }
}

#[tokio::test]
async fn dropping_a_run_kills_all_processes_of_the_script() {
    for isolation in [IsolationRequirement::Required, IsolationRequirement::None] {
        let runner = runner(isolation, LocalRunnerOptions::default()).await;
        let name = format!("dropped-{}", unique_word());
        let source = format!("{}\nimport time; time.sleep(1000)", daemon(&name, "(0, 1, 2)"));
        let running = tokio::spawn({
            let runner = runner.clone();
            async move { ScriptExecutor::run(&*runner, script(&source, Duration::from_secs(100))).await }
        });
        until_async("it runs", || is_named_running(&name)).await;
        running.abort();
        assert!(running.await.unwrap_err().is_cancelled());
        until_async("it is gone", || !is_named_running(&name)).await;
    }
}

#[tokio::test]
async fn scripts_above_the_maximum_are_refused() {
    let runner =
        runner(IsolationRequirement::Required, LocalRunnerOptions { concurrent: 2, ..Default::default() })
            .await;
    let names: Vec<_> = (0..2).map(|_| format!("busy-{}", unique_word())).collect();
    let running: Vec<_> = names
        .iter()
        .map(|name| {
            let (runner, source) =
                (runner.clone(), format!("import os; os.execv('/usr/bin/sleep', ['{name}', '1000'])"));
            tokio::spawn(async move {
                ScriptExecutor::run(&*runner, script(&source, Duration::from_secs(100))).await
            })
        })
        .collect();
    until_async("both run", || names.iter().all(|name| is_named_running(name))).await;
    let refused =
        ScriptExecutor::run(&*runner, script("print(1)", Duration::from_secs(10))).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Overloaded);
    assert_eq!(refused.message(), "The maximum number of scripts is running (2): try again later");
    for running in running {
        running.abort();
        running.await.unwrap_err();
    }
    let result = ScriptExecutor::run(&*runner, script("print(1)", Duration::from_secs(10))).await.unwrap();
    assert_eq!(result.output, "1\n");
}

#[tokio::test]
async fn scripts_are_refused_at_the_maximum_of_programs() {
    let mut sandbox = SandboxOptions::new(ProcessTable::new(ProcessSpawner::supervised_by(BINARY), 0));
    sandbox.isolation = IsolationRequirement::None;
    let runner = LocalRunner::new(Sandbox::new(sandbox), None, LocalRunnerOptions::default());
    let refused =
        ScriptExecutor::run(&runner, script("print(1)", Duration::from_secs(10))).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Overloaded);
    assert_eq!(refused.message(), "The script was not run: too many running programs (at most 0)");
    assert!(!refused.may_have_run());
}

#[tokio::test]
async fn wait_for_packages_is_limited() {
    let processes = ProcessTable::new(ProcessSpawner::supervised_by(BINARY), 8);
    let folder = tempfile::tempdir().unwrap();
    let mut sandbox = SandboxOptions::new(processes);
    sandbox.isolation = IsolationRequirement::None;
    let sandbox = Sandbox::new(sandbox);
    let packages = PackageInstaller::new(PackageOptions::new(sandbox.clone(), folder.path().to_owned()));
    let options = LocalRunnerOptions { packages_time: Duration::ZERO, ..Default::default() };
    let runner = LocalRunner::new(sandbox, Some(packages), options);
    let script = PythonScript { packages: vec!["x".into()], ..script("print(1)", Duration::from_secs(10)) };
    let refused = ScriptExecutor::run(&runner, script).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Timeout);
    assert_eq!(refused.message(), "The packages are still being installed after 0 s: try again later");
    assert!(!refused.may_have_run());
}
