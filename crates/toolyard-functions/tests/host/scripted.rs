//! A scripted runner, controlled by the source of functions.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;
use toolyard_core::Json;
use toolyard_core::store::Store;
use toolyard_functions::code::{CallContext, FunctionCode, SourceLanguage};
use toolyard_functions::{
    CodeRunner, FunctionHost, FunctionKind, FunctionProject, HostOptions, RunError, RunOutput, TestCase,
};

/// Answers with the source of the function, except for these:
/// - `throw`: the handler throws;
/// - `broken`: loading fails;
/// - `hang`: loading and calls never end;
/// - `leak`: the handler throws the value of its first variable;
/// - `wait`: calls wait for a permit.
pub(crate) struct Scripted {
    /// Started calls of `wait`.
    pub(crate) begun: Semaphore,
    /// Permits for calls of `wait` to end.
    pub(crate) may_end: Semaphore,
    /// Environment of the last call.
    pub(crate) environment: Mutex<Vec<(String, String)>>,
}

impl Scripted {
    pub(crate) fn new() -> Arc<Self> {
        let (begun, may_end) = (Semaphore::new(0), Semaphore::new(0));
        Arc::new(Self { begun, may_end, environment: Mutex::default() })
    }

    async fn answer(&self, code: &FunctionCode) -> Result<RunOutput, RunError> {
        *self.environment.lock().unwrap() = code.environment.clone();
        let (_, source) = code.files.iter().find(|(path, _)| path == code.language.entry_file()).unwrap();
        let source = std::str::from_utf8(source).unwrap();
        match source {
            "throw" => {
                let (kind, message) = ("Error".to_owned(), "thrown".to_owned());
                return Err(RunError::Thrown { kind, message, details: String::new(), log: String::new() });
            }
            "leak" => {
                let secret = &code.environment[0].1;
                let (kind, message) = ("Error".to_owned(), format!("thrown {secret}"));
                let (details, log) = (format!("at {secret}"), String::new());
                return Err(RunError::Thrown { kind, message, details, log });
            }
            "broken" => return Err(RunError::NotLoaded { message: "line 1".to_owned() }),
            "hang" => std::future::pending().await,
            "wait" => {
                self.begun.add_permits(1);
                self.may_end.acquire().await.unwrap().forget();
            }
            _ => {}
        }
        let answer = format!(r#"{{"statusCode":200,"body":"{source}"}}"#);
        let answer =
            Json::parse(answer.replace("\"statusCode", "\"jsonrpc\":\"2.0\",\"id\":1,\"statusCode")).unwrap();
        let log = format!("{} {}", code.key.split('#').next().unwrap(), source.len());
        let printed = code.environment.first().map(|(_, value)| value.clone());
        Ok(RunOutput { answer, log: printed.unwrap_or(log) })
    }
}

impl CodeRunner for Scripted {
    fn run<'a>(
        &'a self,
        code: &'a Arc<FunctionCode>,
        _: &'a Json,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<RunOutput, RunError>> {
        Box::pin(self.answer(code))
    }

    fn load<'a>(&'a self, code: &'a Arc<FunctionCode>) -> BoxFuture<'a, Result<(), RunError>> {
        if code.files.iter().any(|(_, source)| source == "hang") {
            return Box::pin(std::future::pending());
        }
        let is_broken = code.files.iter().any(|(_, source)| source == "broken");
        let loaded =
            if is_broken { Err(RunError::NotLoaded { message: "line 1".to_owned() }) } else { Ok(()) };
        Box::pin(std::future::ready(loaded))
    }
}

/// An interval that is longer than any test.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);

/// Creates a host that reads changes of others only for unknown functions.
pub(crate) fn host(store: &Arc<dyn Store>) -> FunctionHost {
    host_with(store, Scripted::new())
}

pub(crate) fn host_with(store: &Arc<dyn Store>, run: Arc<dyn CodeRunner>) -> FunctionHost {
    let options = HostOptions { poll_interval: NEVER, ..HostOptions::default() };
    FunctionHost::start(store.clone(), run, options)
}

/// Creates a function with this source, and a test case that expects it.
pub(crate) fn project(source: &str) -> FunctionProject {
    let mut project =
        FunctionProject::from_source(FunctionKind::Function, SourceLanguage::Lua, source.to_owned());
    let expect = Some(Json::parse(format!(r#"{{"statusCode":200,"body":"{source}"}}"#)).unwrap());
    project.tests = vec![TestCase { name: "says it".into(), event: Json::null(), expect }];
    project
}
