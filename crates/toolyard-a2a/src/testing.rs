//! A scripted agent, and a gateway's agents for tests.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolyard_agent::memory::WorkingMemory;
use toolyard_core::{Backend, Call, CallTarget, Caller, Json, Outcome};
use toolyard_manifest::{AgentCardSource, AgentSettings, EndpointUrl, MemorySettings, SecretString};
use toolyard_net::client::HttpClient;
use toolyard_sdk::Server;
use toolyard_testing::memory_store::MemoryStore;
use toolyard_testing::upstream::{ReceivedRequest, ScriptedReply, TestUpstream};
use toolyard_testing::wait;

use crate::agents::{Agents, OwnAgent};
use crate::backend::AgentBackend;
use crate::bus::AgentBus;
use crate::client::AgentClient;
use crate::resources::TASKS_URI;
use crate::tasks::{AgentTask, AgentTaskOwner};
use crate::tools::INVOKE;

/// Key of the callers.
pub(crate) const KEY: &str = "k1";

/// Returns the replies of an agent, given the method, the text of the message and the parameters.
pub(crate) type AgentScript = fn(&str, &str, &Value) -> AgentReply;

/// A reply of an agent.
pub(crate) enum AgentReply {
    Result(Value),
    Error(i64, &'static str),
    /// Events, and the end of the stream.
    Events(Vec<Value>),
    /// Events, and then silence.
    Silent(Vec<Value>),
    Raw(u16, &'static str),
    Never,
}

/// The agents of a gateway that knows one scripted agent.
pub(crate) struct AgentSite {
    pub(crate) upstream: TestUpstream,
    pub(crate) agents: Agents,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) memory: WorkingMemory,
    _followers: JoinSet<()>,
}

/// Returns a card whose interface is at `url`.
pub(crate) fn card(url: &str, streaming: bool) -> Value {
    let skill = |id: &str| json!({"id": id, "name": id, "description": format!("Does {id}."), "tags": ["t"], "examples": ["Do it."]});
    json!({
        "name": "Helper", "description": "Helps.", "version": "1.2", "skills": [skill("echo"), skill("plan")],
        "capabilities": {"streaming": streaming, "pushNotifications": true},
        "securitySchemes": {"k": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
        "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
    })
}

impl AgentSite {
    /// Starts an agent with this script, and waits until it is known.
    pub(crate) async fn start(streaming: bool, script: AgentScript) -> Self {
        Self::with(streaming, AgentSettings::default(), script).await
    }

    /// Starts an agent with settings, to which its card is added.
    pub(crate) async fn with(streaming: bool, settings: AgentSettings, script: AgentScript) -> Self {
        Self::on_bus(streaming, settings, script, None).await
    }

    /// Starts an agent with settings, to which its card is added, beside a message bus.
    pub(crate) async fn on_bus(
        streaming: bool,
        settings: AgentSettings,
        script: AgentScript,
        bus: Option<Arc<dyn AgentBus>>,
    ) -> Self {
        let upstream = TestUpstream::start(move |request: &ReceivedRequest| {
            let host = request.head.header("host").unwrap_or_default();
            match request.body.is_empty() {
                true => ScriptedReply::json(&card(&format!("http://{host}/rpc"), streaming).to_string()),
                false => reply(script, request),
            }
        });
        let store = Arc::<MemoryStore>::default();
        let own = OwnAgent { name: "Gateway".to_owned(), url: None };
        let agents = Agents::new(own, store.clone(), AgentClient::new(HttpClient::without_roots));
        if let Some(bus) = bus {
            agents.connect(bus);
        }
        let memory = WorkingMemory::new(store, MemorySettings::default());
        let server = crate::tools::add(Server::new("agents", "1.0.0"), &agents, Some(memory.clone()));
        let source = AgentCardSource {
            url: EndpointUrl::parse(&format!("http://{}", upstream.address)).expect("a URL"),
            endpoint: None,
            signature: None,
            headers: vec![(http::header::AUTHORIZATION, SecretString::new("Bearer secret"))],
        };
        let is_default = settings.poll == AgentSettings::default().poll;
        let poll = if is_default { Duration::from_millis(5) } else { settings.poll };
        let settings = AgentSettings { cards: vec![source], poll, ..settings };
        let backend = server.expect("tools").into_backend();
        let backend = Arc::new(AgentBackend::new(backend, agents.clone(), Some(memory.clone()), settings));
        let mut followers = JoinSet::new();
        let following = agents.clone();
        followers.spawn(async move { following.follow().await });
        wait::until_async("the agent is known", || !agents.directory().all().is_empty()).await;
        Self { upstream, agents, backend, memory, _followers: followers }
    }

    /// Calls a tool and returns the text that a model reads.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> String {
        let call = Call { caller: caller(KEY), ..Call::tool(tool, Json::from_value(&arguments)) };
        match self.backend.call(call).await {
            Ok(Outcome::Done(output)) => {
                let body = output.body.to_json().to_value();
                let text = body["content"][0]["text"].as_str().unwrap_or_default().to_owned();
                if output.is_error { format!("error: {text}") } else { text }
            }
            other => panic!("{other:?}"),
        }
    }

    /// Invokes the agent with a message.
    pub(crate) async fn invoke(&self, message: &str, minutes: f64) -> String {
        let arguments =
            json!({"agent_name": "helper", "skill": "ECHO", "message": message, "timeout_minutes": minutes});
        self.call(INVOKE, arguments).await
    }

    /// Waits until a task has ended, and returns it.
    pub(crate) async fn ended(&self) -> AgentTask {
        let owner = AgentTaskOwner::of(&caller(KEY));
        loop {
            let tasks = self.agents.tasks(&owner).await.expect("a store");
            if let Some(task) = tasks.into_iter().next().filter(|task| task.ended.is_some()) {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Reads a resource; `None` if it does not exist for the caller.
    pub(crate) async fn resource(&self, key: &str, uri: &str) -> Option<String> {
        let call = Call {
            target: CallTarget::Resource(uri.into()),
            caller: caller(key),
            ..Call::tool("", Json::parse("{}").expect("JSON"))
        };
        match self.backend.call(call).await {
            Ok(Outcome::Done(output)) => {
                let body = output.body.to_json().to_value();
                Some(body["contents"][0]["text"].as_str().expect("a text").to_owned())
            }
            _ => None,
        }
    }

    /// Reads the resource of a task.
    pub(crate) async fn task(&self, key: &str, id: &str) -> Option<String> {
        self.resource(key, &format!("{TASKS_URI}/{id}")).await
    }
}

/// Returns the caller of a key.
pub(crate) fn caller(key: &str) -> Caller {
    Caller { principal: (!key.is_empty()).then(|| key.into()), ..Caller::default() }
}

/// Returns a task of the scripted agent.
pub(crate) fn task(state: &str, text: &str) -> Value {
    let artifact = json!({"artifactId": "a", "parts": [{"text": text}]});
    let artifacts = if text.is_empty() { json!([]) } else { json!([artifact]) };
    json!({"id": "remote-1", "status": {"state": format!("TASK_STATE_{state}")}, "artifacts": artifacts})
}

fn reply(script: AgentScript, request: &ReceivedRequest) -> ScriptedReply {
    let message: Value = serde_json::from_str(&request.body).expect("JSON");
    let text = message["params"]["message"]["parts"][0]["text"].as_str().unwrap_or_default();
    let response = |member: &str, value: Value| {
        let mut response = json!({"jsonrpc": "2.0", "id": message["id"]});
        response[member] = value;
        response.to_string()
    };
    let events = |events: Vec<Value>| {
        let events = events.into_iter().map(|event| format!("data: {}\n\n", response("result", event)));
        events.map(Bytes::from).collect::<Vec<_>>()
    };
    match script(message["method"].as_str().unwrap_or_default(), text, &message["params"]) {
        AgentReply::Result(result) => ScriptedReply::json(&response("result", result)),
        AgentReply::Error(code, text) => {
            ScriptedReply::json(&response("error", json!({"code": code, "message": text})))
        }
        AgentReply::Events(list) => ScriptedReply::events(events(list)),
        AgentReply::Silent(list) => {
            ScriptedReply::live("text/event-stream", futures_util::stream::iter(events(list)))
        }
        AgentReply::Raw(status, body) => ScriptedReply::http(status, "", body),
        AgentReply::Never => ScriptedReply::never(),
    }
}
