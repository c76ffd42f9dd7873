//! Python interpreters that start slowly, such as the scripts of version managers.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use toolyard_functions::code::{FunctionCode, SourceLanguage};
use toolyard_functions::run::RunError;
use toolyard_functions::runtime::{FunctionRuntime, RuntimeOptions};
use toolyard_sandbox::{IsolationRequirement, Sandbox, SandboxOptions};

use crate::setup::{WORKER, answer, code, processes, run};

/// A runtime whose interpreter is a script. Isolation would hide the folder of the script.
fn runtime_with(script: &str) -> (FunctionRuntime, TempDir) {
    let folder = TempDir::new().unwrap();
    let python: PathBuf = folder.path().join("python3");
    std::fs::write(&python, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut options = SandboxOptions::new(processes());
    options.binary = WORKER.into();
    options.isolation = IsolationRequirement::None;
    let options = RuntimeOptions { python, ..RuntimeOptions::new(Sandbox::new(options)) };
    (FunctionRuntime::new(options), folder)
}

fn echo(limit: Duration) -> Arc<FunctionCode> {
    let mut code = code(SourceLanguage::Python, "def cortexone_handler(event, context):\n    return event");
    code.limits.time_limit = limit;
    Arc::new(code)
}

#[tokio::test]
async fn slow_interpreter_is_awaited() {
    for script in ["sleep 0.3; exec python3 \"$@\"", "python3 \"$@\""] {
        let (runtime, _folder) = runtime_with(script);
        let code = echo(Duration::from_secs(60));
        assert_eq!(answer(run(&runtime, &code, "1").await), "1", "{script}");
    }
}

#[tokio::test]
async fn interpreter_that_has_not_started_in_time_is_named() {
    let code = echo(Duration::from_secs(3));
    let (runtime, folder) = runtime_with("exec sleep 60");
    let called = run(&runtime, &code, "1").await.unwrap_err();
    let loaded = runtime.load(&code).await.unwrap_err();
    for error in [called, loaded] {
        assert!(!error.may_have_run(), "{error:?}");
        let text = error.to_string().replace(folder.path().to_str().unwrap(), "FOLDER");
        let millis = text.split(' ').find(|word| word.parse::<u64>().is_ok()).unwrap().to_owned();
        assert_eq!(
            text.replace(&millis, "N"),
            "functions cannot run now: FOLDER/python3 has not started within N ms: if it is a script that looks for an \
             interpreter, set `sandbox.python` to the interpreter itself"
        );
    }
}

#[tokio::test]
async fn limit_that_is_shorter_than_a_start_is_exceeded() {
    let (runtime, _folder) = runtime_with("exec sleep 60");
    assert_eq!(run(&runtime, &echo(Duration::from_millis(50)), "1").await, Err(RunError::TimedOut));
}

#[tokio::test]
async fn code_that_loads_for_too_long_exceeds_the_time_limit() {
    let mut code = code(SourceLanguage::Python, "while True: pass");
    code.limits.time_limit = Duration::from_secs(3);
    let (runtime, _folder) = runtime_with("exec python3 \"$@\"");
    assert_eq!(runtime.load(&Arc::new(code)).await, Err(RunError::TimedOut));
}
