//! Something that runs functions whose source is a word.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;
use toolyard_core::Json;
use toolyard_core::store::Store;
use toolyard_functions::code::{Code, Context, Language};
use toolyard_functions::{Host, HostOptions, Kind, Project, Ran, Run, RunError, TestCase};

/// Has a function answer with its source, unless that is one of these:
/// - `throw`: its handler throws;
/// - `broken`: it cannot be loaded;
/// - `hang`: it is never loaded, and answers never;
/// - `leak`: its handler throws the first of its variables;
/// - `wait`: it answers when it is let.
pub(crate) struct Scripted {
    /// Calls of `wait` that have begun.
    pub(crate) begun: Semaphore,
    /// Calls of `wait` that may end.
    pub(crate) may_end: Semaphore,
    /// The environment of the last call.
    pub(crate) environment: Mutex<Vec<(String, String)>>,
}

impl Scripted {
    pub(crate) fn new() -> Arc<Self> {
        let (begun, may_end) = (Semaphore::new(0), Semaphore::new(0));
        Arc::new(Self { begun, may_end, environment: Mutex::default() })
    }

    async fn answer(&self, code: &Code) -> Result<Ran, RunError> {
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
        Ok(Ran { answer, log: printed.unwrap_or(log) })
    }
}

impl Run for Scripted {
    fn run<'a>(
        &'a self,
        code: &'a Arc<Code>,
        _: &'a Json,
        _: &'a Context,
    ) -> BoxFuture<'a, Result<Ran, RunError>> {
        Box::pin(self.answer(code))
    }

    fn load<'a>(&'a self, code: &'a Arc<Code>) -> BoxFuture<'a, Result<(), RunError>> {
        if code.files.iter().any(|(_, source)| source == "hang") {
            return Box::pin(std::future::pending());
        }
        let is_broken = code.files.iter().any(|(_, source)| source == "broken");
        let loaded =
            if is_broken { Err(RunError::NotLoaded { message: "line 1".to_owned() }) } else { Ok(()) };
        Box::pin(std::future::ready(loaded))
    }
}

/// A host over a store, which looks for changes of others only when it is asked for what it does not know.
pub(crate) fn host(store: &Arc<dyn Store>) -> Host {
    host_with(store, Scripted::new())
}

pub(crate) fn host_with(store: &Arc<dyn Store>, run: Arc<dyn Run>) -> Host {
    let look_every = std::time::Duration::from_secs(3600);
    Host::start(store.clone(), run, HostOptions { look_every, ..HostOptions::default() })
}

/// A function of this source, with a test that expects it.
pub(crate) fn project(source: &str) -> Project {
    let mut project = Project::of_source(Kind::Function, Language::Lua, source.to_owned());
    let expect = Some(Json::parse(format!(r#"{{"statusCode":200,"body":"{source}"}}"#)).unwrap());
    project.tests = vec![TestCase { name: "says it".into(), event: Json::null(), expect }];
    project
}
