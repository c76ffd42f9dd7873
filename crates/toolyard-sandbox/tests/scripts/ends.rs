//! Nothing is left of a script, however it ends.

use std::sync::Arc;
use std::time::Duration;

use toolyard_core::Code;
use toolyard_core::script::{Runner, Script};
use toolyard_process::{Processes, Spawner};
use toolyard_sandbox::packages::{PackageOptions, Packages};
use toolyard_sandbox::script::{LocalRunner, LocalRunnerOptions};
use toolyard_sandbox::{Isolation, Sandbox, SandboxOptions};

use crate::machine::{ALL, BINARY, once, runs, unique, until};

/// Leaves a process of this name that is nobody's child, in a session of its own, and holds no pipe.
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
fn daemons_are_gone_when_a_script_has_ended() {
    for who in ALL {
        // Those that hold its pipes do not keep its caller waiting.
        for closed in ["(0, 1, 2)", "()"] {
            let name = format!("left-{}", unique());
            let ended =
                once(who, serde_json::json!({"source": daemon(&name, closed)}), serde_json::json!({}));
            assert_eq!((&ended["output"], &ended["exit_code"]), (&"left\n".into(), &0.into()), "{ended}");
            assert!(ended["elapsed_ms"].as_f64().unwrap() < 4000.0, "{who:?} {ended}");
            until("the daemon is gone", || !runs(&name));
        }
    }
}

async fn runner(isolation: Isolation, options: LocalRunnerOptions) -> Arc<LocalRunner> {
    let mut sandbox = SandboxOptions::new(Processes::new(Spawner::supervised_by(BINARY), 8));
    sandbox.binary = BINARY.into();
    sandbox.isolation = isolation;
    Arc::new(LocalRunner::new(Sandbox::new(sandbox), None, options))
}

fn script(source: &str, timeout: Duration) -> Script {
    Script { call_id: unique(), source: source.into(), input: None, timeout, packages: Vec::new() }
}

async fn until_it(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..1000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}");
}

#[tokio::test]
async fn all_of_a_script_is_gone_when_its_time_is_over() {
    for isolation in [Isolation::Required, Isolation::None] {
        let runner = runner(isolation, LocalRunnerOptions::default()).await;
        let name = format!("late-{}", unique());
        let source = format!("{}\nimport time; time.sleep(1000)", daemon(&name, "(0, 1, 2)"));
        let ended = Runner::run(&*runner, script(&source, Duration::from_millis(1500))).await.unwrap();
        assert_eq!((ended.exit_code, &*ended.output), (-1, "left\n"));
        until_it("the daemon is gone", || !runs(&name)).await;
    }
}

#[tokio::test]
async fn dropping_a_run_ends_all_that_the_script_has_started() {
    for isolation in [Isolation::Required, Isolation::None] {
        let runner = runner(isolation, LocalRunnerOptions::default()).await;
        let name = format!("dropped-{}", unique());
        let source = format!("{}\nimport time; time.sleep(1000)", daemon(&name, "(0, 1, 2)"));
        let running = tokio::spawn({
            let runner = runner.clone();
            async move { Runner::run(&*runner, script(&source, Duration::from_secs(100))).await }
        });
        until_it("it runs", || runs(&name)).await;
        running.abort();
        assert!(running.await.unwrap_err().is_cancelled());
        until_it("it is gone", || !runs(&name)).await;
    }
}

#[tokio::test]
async fn so_many_scripts_run_at_a_time_and_more_are_refused() {
    let runner =
        runner(Isolation::Required, LocalRunnerOptions { concurrent: 2, ..Default::default() }).await;
    let names: Vec<_> = (0..2).map(|_| format!("busy-{}", unique())).collect();
    let running: Vec<_> = names
        .iter()
        .map(|name| {
            let (runner, source) =
                (runner.clone(), format!("import os; os.execv('/usr/bin/sleep', ['{name}', '1000'])"));
            tokio::spawn(
                async move { Runner::run(&*runner, script(&source, Duration::from_secs(100))).await },
            )
        })
        .collect();
    until_it("both run", || names.iter().all(|name| runs(name))).await;
    let refused = Runner::run(&*runner, script("print(1)", Duration::from_secs(10))).await.unwrap_err();
    assert_eq!(refused.code(), Code::Overloaded);
    assert_eq!(refused.message(), "As many scripts run as may run (2): try again later");
    for running in running {
        running.abort();
        running.await.unwrap_err();
    }
    let ended = Runner::run(&*runner, script("print(1)", Duration::from_secs(10))).await.unwrap();
    assert_eq!(ended.output, "1\n");
}

#[tokio::test]
async fn a_machine_that_runs_as_much_as_it_may_refuses_scripts() {
    let mut sandbox = SandboxOptions::new(Processes::new(Spawner::supervised_by(BINARY), 0));
    sandbox.isolation = Isolation::None;
    let runner = LocalRunner::new(Sandbox::new(sandbox), None, LocalRunnerOptions::default());
    let refused = Runner::run(&runner, script("print(1)", Duration::from_secs(10))).await.unwrap_err();
    assert_eq!(refused.code(), Code::Overloaded);
    assert_eq!(refused.message(), "The script was not run: as many programs run as may run: 0");
    assert!(!refused.may_have_run());
}

#[tokio::test]
async fn a_script_does_not_wait_for_its_packages_for_ever() {
    let processes = Processes::new(Spawner::supervised_by(BINARY), 8);
    let folder = tempfile::tempdir().unwrap();
    let packages = Packages::new(PackageOptions::new(processes.clone(), folder.path().to_owned()));
    let mut sandbox = SandboxOptions::new(processes);
    sandbox.isolation = Isolation::None;
    let options = LocalRunnerOptions { packages_time: Duration::ZERO, ..Default::default() };
    let runner = LocalRunner::new(Sandbox::new(sandbox), Some(packages), options);
    let script = Script { packages: vec!["x".into()], ..script("print(1)", Duration::from_secs(10)) };
    let refused = Runner::run(&runner, script).await.unwrap_err();
    assert_eq!(refused.code(), Code::Timeout);
    assert_eq!(refused.message(), "The packages are still being installed after 0 s: try again later");
    assert!(!refused.may_have_run());
}
