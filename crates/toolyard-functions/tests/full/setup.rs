//! Workers of the test binary, and code for them.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use toolyard_core::Json;
use toolyard_functions::code::{CallContext, CodeLimits, FunctionCode, SourceLanguage};
use toolyard_functions::run::{RunError, RunOutput};
use toolyard_functions::runtime::{FunctionRuntime, RuntimeOptions};
use toolyard_process::{ProcessSpawner, ProcessTable};
use toolyard_sandbox::{IsolationRequirement, Sandbox, SandboxOptions};

/// Binary of the workers and their supervisors.
pub(crate) const WORKER: &str = env!("CARGO_BIN_EXE_function-worker");

pub(crate) fn processes() -> ProcessTable {
    ProcessTable::new(ProcessSpawner::supervised_by(WORKER), 64)
}

pub(crate) async fn options_of(processes: &ProcessTable) -> RuntimeOptions {
    let mut options = SandboxOptions::new(processes.clone());
    options.binary = WORKER.into();
    // Best effort, because isolation is tested elsewhere.
    options.isolation = IsolationRequirement::BestEffort;
    RuntimeOptions::new(Sandbox::new(options))
}

pub(crate) async fn options() -> RuntimeOptions {
    options_of(&processes()).await
}

pub(crate) async fn runtimes() -> FunctionRuntime {
    FunctionRuntime::new(options().await)
}

/// Creates a runtime with this isolation.
pub(crate) async fn runtimes_within(isolation: IsolationRequirement) -> FunctionRuntime {
    let mut options = SandboxOptions::new(processes());
    options.binary = WORKER.into();
    options.isolation = isolation;
    FunctionRuntime::new(RuntimeOptions::new(Sandbox::new(options)))
}

pub(crate) fn code(language: SourceLanguage, source: &str) -> FunctionCode {
    FunctionCode {
        key: format!("{} {source}", language.extension()).into(),
        language,
        files: vec![(language.entry_file().to_owned(), Bytes::copy_from_slice(source.as_bytes()))],
        packages: None,
        environment: Vec::new(),
        network: false,
        tools: false,
        limits: CodeLimits { time_limit: Duration::from_secs(20), ..CodeLimits::default() },
    }
}

pub(crate) fn context() -> CallContext {
    CallContext {
        function_id: "echo".into(),
        version: "1.2.0".into(),
        request_id: "r-1".into(),
        deadline: SystemTime::now() + Duration::from_secs(3600),
    }
}

pub(crate) async fn run(
    runtimes: &FunctionRuntime,
    code: &Arc<FunctionCode>,
    event: &str,
) -> Result<RunOutput, RunError> {
    runtimes.run(code, &Json::parse(event.to_owned()).unwrap(), &context()).await
}

/// Returns the answer of a handler as text.
#[track_caller]
pub(crate) fn answer(result: Result<RunOutput, RunError>) -> String {
    match result {
        Ok(ran) => ran.answer.as_text().to_owned(),
        Err(error) => panic!("{error:?}"),
    }
}
