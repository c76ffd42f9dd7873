//! A backend in front of `scripts/asking.py`, and clients that say what a test wants.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use toolyard_core::{
    Ask, AskError, Backend, Call, Caller, Client, Json, Notice, Object, Outcome, Phase, Secrets, ToolError,
};
use toolyard_mcp::client::{
    Attempts, ClientOptions, Endpoint, LaneMode, LaneOptions, McpBackend, ToolFilter,
};
use toolyard_process::{Processes, Program, Spawner};

use crate::support::scripted::script;
use crate::support::{LIMIT, peers};

/// Takes every kind of question.
pub(super) const ABLE: &str = r#"{"elicitation":{"form":{}},"sampling":{},"roots":{"listChanged":true}}"#;

/// One backend, its programs, and the folder through which a test talks to them.
pub(super) struct Yard {
    pub(super) backend: McpBackend,
    pub(super) processes: Processes,
    pub(super) folder: TempDir,
}

impl Yard {
    /// A backend that is connected, with these options.
    pub(super) async fn new(change: impl FnOnce(&mut ClientOptions)) -> Self {
        Self::with_processes(100, change).await
    }

    /// The same, where only so many programs may run.
    pub(super) async fn with_processes(most: usize, change: impl FnOnce(&mut ClientOptions)) -> Self {
        let folder = TempDir::new().unwrap();
        let program = Program {
            command: peers::peer("python/bin/python").into(),
            args: vec!["-IS".into(), script("asking.py").into(), folder.path().into()],
            ..Program::default()
        };
        let processes = Processes::new(Spawner::Direct, most);
        let hour = Duration::from_secs(3600);
        let mut options = ClientOptions {
            name: "test".to_owned(),
            version: "1".to_owned(),
            message_bytes: 1 << 20,
            tools: 100,
            connect_time: LIMIT,
            probe_time: LIMIT,
            idle_time: None,
            lanes: LaneOptions { mode: LaneMode::Automatic, most: 8, idle_time: hour },
            probe: None,
            secrets: Secrets::default(),
            filter: ToolFilter::default(),
            attempts: Attempts::one(),
        };
        change(&mut options);
        let endpoint = Endpoint::Stdio { program, processes: processes.clone() };
        let backend = McpBackend::start("asking", endpoint, options);
        let mut catalog = backend.catalog();
        let ready = catalog.wait_for(|catalog| catalog.phase != Phase::Connecting).await.unwrap();
        assert_eq!(ready.phase, Phase::Ready);
        drop(ready);
        Self { backend, processes, folder }
    }

    /// Calls a tool; gives its text.
    pub(super) async fn call(
        &self,
        client: &Arc<Person>,
        caller: &Caller,
        tool: &str,
        arguments: &str,
    ) -> Result<String, ToolError> {
        self.call_until(client, caller, tool, arguments, None).await
    }

    pub(super) async fn call_until(
        &self,
        client: &Arc<Person>,
        caller: &Caller,
        tool: &str,
        arguments: &str,
        deadline: Option<Instant>,
    ) -> Result<String, ToolError> {
        let call = Call {
            caller: caller.clone(),
            client: client.clone(),
            deadline,
            ..Call::tool(tool, Json::parse(arguments.to_owned()).unwrap())
        };
        let outcome = timeout(LIMIT, self.backend.call(call)).await.expect("an answer in time")?;
        let Outcome::Done(output) = outcome else { panic!("{outcome:?}") };
        let result = output.body.to_json().to_value();
        Ok(result["content"][0]["text"].as_str().unwrap().to_owned())
    }

    /// The text of a tool that does not fail.
    pub(super) async fn text(
        &self,
        client: &Arc<Person>,
        caller: &Caller,
        tool: &str,
        arguments: &str,
    ) -> String {
        self.call(client, caller, tool, arguments).await.unwrap()
    }

    fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("received")).unwrap_or_default();
        // The last line may be half written.
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// How many such messages the servers have got.
    pub(super) fn count(&self, is_meant: impl Fn(&Value) -> bool) -> usize {
        self.lines().iter().filter(|line| is_meant(line)).count()
    }

    /// Waits until a server has got such a message.
    pub(super) async fn received(&self, is_meant: impl Fn(&Value) -> bool) -> Value {
        eventually(|| self.count(&is_meant) > 0).await;
        self.lines().into_iter().find(is_meant).unwrap()
    }

    /// Lets the tools that wait for it answer.
    pub(super) fn open_gate(&self) {
        std::fs::write(gate(self.folder.path()), "").unwrap();
    }
}

fn gate(folder: &Path) -> std::path::PathBuf {
    folder.join("gate")
}

/// Waits until it is so.
pub(super) async fn eventually(is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(LIMIT, wait).await.expect("it comes to be so");
}

/// The client of a call.
#[derive(Debug)]
pub(super) struct Person {
    capabilities: Json,
    seen: Mutex<Seen>,
    answer: Mutex<Result<Json, AskError>>,
    is_slow: watch::Sender<bool>,
    /// Questions that are open now.
    open: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Seen {
    questions: Vec<String>,
    notices: Vec<String>,
}

impl Person {
    /// Who can be asked so much, and answers with its name.
    pub(super) fn new(name: &str, capabilities: &str) -> Self {
        let answer = Object::new().with("name", Json::string(name)).to_json();
        Self {
            capabilities: Json::parse(capabilities.to_owned()).unwrap(),
            seen: Mutex::default(),
            answer: Mutex::new(Ok(answer)),
            is_slow: watch::Sender::new(false),
            open: watch::Sender::new(0),
        }
    }

    /// Who can be asked everything.
    pub(super) fn able(name: &str) -> Arc<Self> {
        Arc::new(Self::new(name, ABLE))
    }

    /// What it answers from now on.
    pub(super) fn answer(&self, answer: Result<Json, AskError>) {
        *self.answer.lock().unwrap() = answer;
    }

    /// Does not answer until it is quick.
    pub(super) fn be_slow(&self) {
        self.is_slow.send_replace(true);
    }

    pub(super) fn be_quick(&self) {
        self.is_slow.send_replace(false);
    }

    /// How many questions are open.
    pub(super) fn is_asked(&self) -> usize {
        *self.open.borrow()
    }

    /// How often it was asked.
    pub(super) fn asked(&self) -> usize {
        self.questions().len()
    }

    pub(super) fn questions(&self) -> Vec<String> {
        self.seen.lock().unwrap().questions.clone()
    }

    pub(super) fn notices(&self) -> Vec<String> {
        self.seen.lock().unwrap().notices.clone()
    }
}

impl Client for Person {
    fn capabilities(&self) -> Option<&Json> {
        Some(&self.capabilities)
    }

    fn listens(&self) -> bool {
        false
    }

    fn notify(&self, notice: Notice) {
        let (Notice::Progress(params) | Notice::Log(params) | Notice::Other { params, .. }) = notice;
        self.seen.lock().unwrap().notices.push(params.to_json().as_text().to_owned());
    }

    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<Json, AskError>> {
        let question = format!("{:?} {}", ask.kind, ask.params.to_json().as_text());
        self.seen.lock().unwrap().questions.push(question);
        let open = Open::new(&self.open);
        async move {
            let _open = open;
            self.is_slow.subscribe().wait_for(|is_slow| !is_slow).await.map(drop).unwrap();
            self.answer.lock().unwrap().clone()
        }
        .boxed()
    }
}

/// Counts a question, until it is dropped.
struct Open<'p>(&'p watch::Sender<usize>);

impl<'p> Open<'p> {
    fn new(open: &'p watch::Sender<usize>) -> Self {
        open.send_modify(|open| *open += 1);
        Self(open)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}
