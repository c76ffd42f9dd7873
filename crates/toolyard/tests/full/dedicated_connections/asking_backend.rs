//! A backend in front of `scripts/asking.py`, and scripted clients.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use toolyard_core::{
    Backend, BackendPhase, Call, Caller, Client, ClientNotification, InputRequest, InputRequestError, Json,
    Object, Outcome, SecretRedactor, ToolError,
};
use toolyard_mcp::client::{
    ClientOptions, DedicatedOptions, EraPreference, McpBackend, ServerEndpoint, SharingMode, UpstreamRetry,
    UpstreamToolFilter,
};
use toolyard_process::{ProcessSpawner, ProcessTable, ProgramSpec};
use toolyard_testing::peers;
use toolyard_testing::scripted_server::script;
use toolyard_testing::wait::{LIMIT, until_async};

/// Capabilities for every kind of question.
pub(super) const ALL_CAPABILITIES: &str =
    r#"{"elicitation":{"form":{}},"sampling":{},"roots":{"listChanged":true}}"#;

/// A backend, its processes and the directory that controls its servers.
pub(super) struct AskingBackend {
    pub(super) backend: McpBackend,
    pub(super) processes: ProcessTable,
    pub(super) folder: TempDir,
}

impl AskingBackend {
    /// Connects a backend with changed options.
    pub(super) async fn new(change: impl FnOnce(&mut ClientOptions)) -> Self {
        Self::with_processes(100, change).await
    }

    /// Connects a backend with a limit of processes.
    pub(super) async fn with_processes(
        max_processes: usize,
        change: impl FnOnce(&mut ClientOptions),
    ) -> Self {
        let folder = TempDir::new().unwrap();
        let program = ProgramSpec {
            command: peers::peer("python/bin/python").into(),
            args: vec!["-IS".into(), script("asking.py").into(), folder.path().into()],
            ..ProgramSpec::default()
        };
        let processes = ProcessTable::new(ProcessSpawner::Direct, max_processes);
        let hour = Duration::from_secs(3600);
        let mut options = ClientOptions {
            dropped_notices: Arc::default(),
            skipped_messages: Arc::default(),
            error_lines: Default::default(),
            launcher: None,
            name: "test".to_owned(),
            version: "1".to_owned(),
            max_message_bytes: 1 << 20,
            max_list_items: 100,
            max_depth: 512,
            connect_timeout: LIMIT,
            discover_timeout: LIMIT,
            idle_timeout: None,
            era: EraPreference::default(),
            dedicated: DedicatedOptions {
                sharing: SharingMode::Automatic,
                limit: 8,
                idle_timeout: hour,
                max_list_bytes: 1 << 20,
            },
            probe: None,
            budget: toolyard_net::budget::ByteBudget::default(),
            secrets: SecretRedactor::default(),
            filter: UpstreamToolFilter::default(),
            retry: UpstreamRetry::never(),
        };
        change(&mut options);
        let endpoint = ServerEndpoint::Stdio { program, processes: processes.clone() };
        let backend = McpBackend::start("asking", endpoint, options);
        let mut catalog = backend.catalog();
        let ready = catalog.wait_for(|catalog| catalog.phase != BackendPhase::Connecting).await.unwrap();
        assert_eq!(ready.phase, BackendPhase::Ready);
        drop(ready);
        Self { backend, processes, folder }
    }

    /// Calls a tool and returns its text.
    pub(super) async fn call(
        &self,
        client: &Arc<AnsweringClient>,
        caller: &Caller,
        tool: &str,
        arguments: &str,
    ) -> Result<String, ToolError> {
        self.call_until(client, caller, tool, arguments, None).await
    }

    pub(super) async fn call_until(
        &self,
        client: &Arc<AnsweringClient>,
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

    /// Calls a tool that must succeed and returns its text.
    pub(super) async fn text(
        &self,
        client: &Arc<AnsweringClient>,
        caller: &Caller,
        tool: &str,
        arguments: &str,
    ) -> String {
        self.call(client, caller, tool, arguments).await.unwrap()
    }

    fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("received")).unwrap_or_default();
        // The last line may be incomplete.
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the number of matching messages that the servers have received.
    pub(super) fn count(&self, matches: impl Fn(&Value) -> bool) -> usize {
        self.lines().iter().filter(|line| matches(line)).count()
    }

    /// Waits until a server has received a matching message.
    pub(super) async fn received(&self, matches: impl Fn(&Value) -> bool) -> Value {
        until_async("the message at a server", || self.count(&matches) > 0).await;
        self.lines().into_iter().find(matches).unwrap()
    }

    /// Lets the waiting tools return.
    pub(super) fn open_gate(&self) {
        std::fs::write(gate_path(self.folder.path()), "").unwrap();
    }
}

fn gate_path(folder: &Path) -> std::path::PathBuf {
    folder.join("gate")
}

/// A client that answers questions as a test says.
#[derive(Debug)]
pub(super) struct AnsweringClient {
    capabilities: Json,
    seen: Mutex<ClientRecord>,
    answer: Mutex<Result<Json, InputRequestError>>,
    is_slow: watch::Sender<bool>,
    /// Number of open questions.
    open: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct ClientRecord {
    questions: Vec<String>,
    notices: Vec<String>,
}

impl AnsweringClient {
    /// Creates a client with these capabilities that answers with its name.
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

    /// Creates a client with all capabilities.
    pub(super) fn with_all_capabilities(name: &str) -> Arc<Self> {
        Arc::new(Self::new(name, ALL_CAPABILITIES))
    }

    /// Sets the answer to further questions.
    pub(super) fn set_answer(&self, answer: Result<Json, InputRequestError>) {
        *self.answer.lock().unwrap() = answer;
    }

    /// Holds answers until [`Self::release_answers`].
    pub(super) fn hold_answers(&self) {
        self.is_slow.send_replace(true);
    }

    pub(super) fn release_answers(&self) {
        self.is_slow.send_replace(false);
    }

    /// Returns the number of open questions.
    pub(super) fn open_questions(&self) -> usize {
        *self.open.borrow()
    }

    /// Returns the number of questions so far.
    pub(super) fn question_count(&self) -> usize {
        self.questions().len()
    }

    pub(super) fn questions(&self) -> Vec<String> {
        self.seen.lock().unwrap().questions.clone()
    }

    pub(super) fn notices(&self) -> Vec<String> {
        self.seen.lock().unwrap().notices.clone()
    }
}

impl Client for AnsweringClient {
    fn capabilities(&self) -> Option<&Json> {
        Some(&self.capabilities)
    }

    fn listens(&self) -> bool {
        false
    }

    fn notify(&self, notice: ClientNotification) {
        let (ClientNotification::Progress(body)
        | ClientNotification::Log(body)
        | ClientNotification::Other { body, .. }) = notice;
        self.seen.lock().unwrap().notices.push(body.params.to_json().as_text().to_owned());
    }

    fn ask(&self, ask: InputRequest) -> BoxFuture<'_, Result<Json, InputRequestError>> {
        let question = format!("{:?} {}", ask.kind, ask.params.to_json().as_text());
        self.seen.lock().unwrap().questions.push(question);
        let open = OpenQuestion::new(&self.open);
        async move {
            let _open = open;
            self.is_slow.subscribe().wait_for(|is_slow| !is_slow).await.map(drop).unwrap();
            self.answer.lock().unwrap().clone()
        }
        .boxed()
    }
}

/// Counts an open question until it is dropped.
struct OpenQuestion<'p>(&'p watch::Sender<usize>);

impl<'p> OpenQuestion<'p> {
    fn new(open: &'p watch::Sender<usize>) -> Self {
        open.send_modify(|open| *open += 1);
        Self(open)
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}
