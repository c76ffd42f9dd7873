//! Workers of the test's own binary, and code for them.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use toolyard_core::Json;
use toolyard_functions::code::{Code, CodeLimits, Context, Language};
use toolyard_functions::run::{Ran, RunError};
use toolyard_functions::runtime::{RuntimeOptions, Runtimes};
use toolyard_process::{Processes, Spawner};
use toolyard_sandbox::{Isolation, Sandbox, SandboxOptions};

/// Stands for the process of a worker and for its supervisor.
pub(crate) const WORKER: &str = env!("CARGO_BIN_EXE_function-worker");

pub(crate) fn processes() -> Processes {
    Processes::new(Spawner::supervised_by(WORKER), 64)
}

pub(crate) async fn options_of(processes: &Processes) -> RuntimeOptions {
    let mut options = SandboxOptions::new(processes.clone());
    options.binary = WORKER.into();
    // As far as the machine of the tests has walls: those are tested elsewhere.
    options.isolation = Isolation::BestEffort;
    RuntimeOptions::new(Sandbox::new(options))
}

pub(crate) async fn options() -> RuntimeOptions {
    options_of(&processes()).await
}

pub(crate) async fn runtimes() -> Runtimes {
    Runtimes::new(options().await)
}

pub(crate) fn code(language: Language, source: &str) -> Code {
    Code {
        key: format!("{} {source}", language.extension()).into(),
        language,
        files: vec![(language.entry_file().to_owned(), Bytes::copy_from_slice(source.as_bytes()))],
        packages: None,
        environment: Vec::new(),
        network: false,
        limits: CodeLimits { wall: Duration::from_secs(20), ..CodeLimits::default() },
    }
}

pub(crate) fn context() -> Context {
    Context {
        function_id: "echo".into(),
        version: "1.2.0".into(),
        request_id: "r-1".into(),
        deadline: SystemTime::now() + Duration::from_secs(3600),
    }
}

pub(crate) async fn run(runtimes: &Runtimes, code: &Arc<Code>, event: &str) -> Result<Ran, RunError> {
    runtimes.run(code, &Json::parse(event.to_owned()).unwrap(), &context()).await
}

/// What a handler answers, as text.
#[track_caller]
pub(crate) fn answer(result: Result<Ran, RunError>) -> String {
    match result {
        Ok(ran) => ran.answer.as_text().to_owned(),
        Err(error) => panic!("{error:?}"),
    }
}
