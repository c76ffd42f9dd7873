//! Buses, and a gateway with tools that report their calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, ready};
use serde_json::json;
use tokio::sync::watch;
use toolyard_bus::in_process::InProcessBus;
use toolyard_bus::record::{ToolInvokeRequest, ToolInvokeResponse};
use toolyard_bus::worker::WorkerPrincipal;
use toolyard_bus::{Delivery, Envelope, MessageBus, Topic, TopicPattern};
use toolyard_core::access::AccessGrant;
use toolyard_core::gate::{CallGate, GateSize};
use toolyard_core::layers::{AccessPolicy, ArgumentValidation, DeadlineLayer};
use toolyard_core::names::NameRegistry;
use toolyard_core::registry::{CallLimits, HandlerEntry, Registry};
use toolyard_core::{
    Backend, BackendPhase, Call, CallOutput, CallTarget, Caller, Catalog, Client, ClientNotification,
    Gateway, Json, Object, Outcome, Tool, ToolError,
};
use toolyard_manifest::BusSettings;
use toolyard_testing::brokers::{BrokerProgram, MessageBroker};

/// The implementations of a bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BusBody {
    InProcess,
    RabbitMq,
    Nats,
}

/// A broker, or a bus in the process, with settings for tests.
pub(crate) struct TestBroker {
    pub(crate) body: BusBody,
    pub(crate) server: Option<MessageBroker>,
    pub(crate) settings: BusSettings,
    in_process: Option<Arc<InProcessBus>>,
}

impl TestBroker {
    /// Starts the broker, if the body has one.
    pub(crate) fn start(body: BusBody) -> Self {
        let program = match body {
            BusBody::InProcess => None,
            BusBody::RabbitMq => Some(BrokerProgram::RabbitMq),
            BusBody::Nats => Some(BrokerProgram::Nats),
        };
        let server = program.map(MessageBroker::start);
        let url = server.as_ref().map(|server| server.url().parse().unwrap());
        let settings = BusSettings {
            url,
            redeliveries: 2,
            ack_wait: Duration::from_secs(2),
            reconnect_delay: Duration::from_millis(50),
            max_reconnect_delay: Duration::from_millis(500),
            ..BusSettings::default()
        };
        Self { body, server, settings, in_process: None }
    }

    /// Returns a place for one test case, whose names no other case uses. Subjects of NATS belong to the whole server,
    /// which therefore is another one.
    pub(crate) fn case(&self, name: &str, change: impl FnOnce(&mut BusSettings)) -> Self {
        let mut settings = self.settings.clone();
        settings.exchange = name.to_owned();
        settings.prefix = name.to_owned();
        let server = (self.body == BusBody::Nats).then(|| MessageBroker::start(BrokerProgram::Nats));
        if let Some(server) = &server {
            settings.url = Some(server.url().parse().unwrap());
        }
        change(&mut settings);
        let in_process = (self.body == BusBody::InProcess).then(|| InProcessBus::new(&settings));
        Self { body: self.body, server, settings, in_process }
    }

    /// Returns the same broker with the same names. It ends with this one.
    pub(crate) fn same(&self) -> Self {
        let (settings, in_process) = (self.settings.clone(), self.in_process.clone());
        Self { body: self.body, server: None, settings, in_process }
    }

    /// Returns a bus with a connection of its own.
    pub(crate) fn bus(&self) -> Arc<dyn MessageBus> {
        match &self.in_process {
            Some(bus) => bus.clone(),
            None => toolyard_bus::connect(&self.settings).unwrap(),
        }
    }
}

/// Runs a check on every body, each with names of its own.
pub(crate) async fn on_every_body(name: &str, check: impl AsyncFn(TestBroker)) {
    for body in [BusBody::InProcess, BusBody::Nats, BusBody::RabbitMq] {
        eprintln!("{body:?}");
        let broker = TestBroker::start(body);
        check(broker.case(name, |_| {})).await;
    }
}

/// A caller with these tools.
pub(crate) struct TestPrincipal(pub(crate) &'static str);

impl WorkerPrincipal for TestPrincipal {
    fn caller(&self) -> BoxFuture<'_, Result<Caller, ToolError>> {
        let scope = self.0.split(' ').map(|tool| tool.parse().unwrap()).collect();
        let grant = Some(Arc::new(AccessGrant { scope, ..AccessGrant::default() }));
        ready(Ok(Caller { principal: Some("bus".into()), grant, ..Caller::default() })).boxed()
    }
}

pub(crate) fn topic(text: &str) -> Topic {
    text.parse().unwrap()
}

pub(crate) fn pattern(text: &str) -> TopicPattern {
    text.parse().unwrap()
}

pub(crate) fn request(tool: &str, arguments: &str) -> ToolInvokeRequest {
    ToolInvokeRequest {
        tool_call_id: toolyard_bus::envelope::new_id().unwrap(),
        tool_name: tool.to_owned(),
        arguments: Some(arguments.to_owned()),
        session_id: None,
    }
}

/// Returns a message whose content is the number.
pub(crate) fn numbered(number: usize) -> Envelope {
    let message = ToolInvokeResponse {
        tool_call_id: number.to_string(),
        tool_name: "t".to_owned(),
        content: None,
        is_error: false,
    };
    Envelope::of(&message, "test").unwrap()
}

pub(crate) fn number_of(delivery: &Delivery) -> usize {
    let message: ToolInvokeResponse = delivery.envelope.read().unwrap();
    message.tool_call_id.parse().unwrap()
}

/// Waits for a future. The limit is for failed tests only.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(Duration::from_secs(30), future).await {
        Ok(value) => value,
        Err(_) => panic!("waited in vain for {what}"),
    }
}

/// The number of runs by the text of each call.
pub(crate) type Runs = Arc<Mutex<BTreeMap<String, usize>>>;

/// Runs `read` (read-only), `write`, `slow`, `fail`, `panic`, `progress`, `large` and `image`, and counts the runs.
pub(crate) struct CountingBackend {
    catalog: watch::Sender<Arc<Catalog>>,
    pub(crate) runs: Runs,
    /// Number of calls that were dropped before their end.
    pub(crate) dropped: watch::Sender<usize>,
}

impl CountingBackend {
    pub(crate) fn new() -> Arc<Self> {
        let tool = |name: &str| {
            let is_read = name == "read";
            let definition = json!({
                "name": name,
                "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
                "annotations": {"readOnlyHint": is_read},
            });
            Arc::new(Tool::from_definition(&Json::from_value(&definition)).unwrap())
        };
        let names = ["read", "write", "slow", "fail", "panic", "progress", "large", "image"];
        let tools = names.into_iter().map(tool).collect();
        let catalog = Catalog { phase: BackendPhase::Ready, tools, ..Catalog::default() };
        Arc::new(Self {
            catalog: watch::Sender::new(Arc::new(catalog)),
            runs: Runs::default(),
            dropped: watch::Sender::new(0),
        })
    }
}

impl Backend for CountingBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        let CallTarget::Tool(tool) = &call.target else { return ready(Ok(done("no tool"))).boxed() };
        let arguments = call.arguments().and_then(|arguments| arguments.to_object().ok()).unwrap_or_default();
        let text = arguments.get_str("text").unwrap_or_default().into_owned();
        *self.runs.lock().unwrap().entry(text.clone()).or_default() += 1;
        let principal = call.caller.principal.clone().unwrap_or_default();
        match &**tool {
            "slow" => async move {
                let _dropped = CountOnDrop(&self.dropped);
                std::future::pending().await
            }
            .boxed(),
            "fail" => ready(Ok(Outcome::Done(CallOutput::failure("no such city")))).boxed(),
            "panic" => panic!("a tool that panics"),
            "image" => {
                let body = json!({
                    "content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}],
                    "structuredContent": {"width": 1},
                });
                let body = Json::from_value(&body).to_object().unwrap();
                ready(Ok(Outcome::Done(CallOutput { is_error: false, body }))).boxed()
            }
            "large" => ready(Ok(done(&"x".repeat(4 << 20)))).boxed(),
            "progress" => {
                for number in [1, 2] {
                    let params = Object::new()
                        .with("progressToken", Json::string("secret"))
                        .with("progress", Json::from_value(&json!(number)));
                    call.client.notify(ClientNotification::Progress(params.into()));
                }
                ready(Ok(done("done"))).boxed()
            }
            _ => {
                let parent = call.meta.get_str("traceparent").unwrap_or_default().into_owned();
                ready(Ok(done(&format!("{tool} {text} by {principal} {parent}")))).boxed()
            }
        }
    }
}

struct CountOnDrop<'a>(&'a watch::Sender<usize>);

impl Drop for CountOnDrop<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|dropped| *dropped += 1);
    }
}

fn done(text: &str) -> Outcome {
    Outcome::Done(CallOutput::text(text))
}

/// Returns a gateway with the tools of this backend.
pub(crate) fn gateway(backend: Arc<dyn Backend>) -> Arc<Gateway> {
    let catalog = backend.catalog().borrow().clone();
    let gate = CallGate::new(GateSize { running: 2000, waiting: 2000 });
    let limits = CallLimits { timeout: Duration::from_secs(60), gate };
    let handler = HandlerEntry::new("tools", backend, limits);
    let registry = Registry::assemble(&[(handler, catalog)], &mut NameRegistry::default());
    Arc::new(Gateway::new(
        watch::Sender::new(Arc::new(registry)).subscribe(),
        vec![Box::new(AccessPolicy), Box::new(ArgumentValidation::new(None)), Box::new(DeadlineLayer)],
    ))
}

/// Collects the notices of a call.
#[derive(Debug, Default)]
pub(crate) struct ListeningClient(pub(crate) Mutex<Vec<String>>);

impl Client for ListeningClient {
    fn capabilities(&self) -> Option<&Json> {
        None
    }

    fn listens(&self) -> bool {
        true
    }

    fn notify(&self, notice: ClientNotification) {
        if let ClientNotification::Progress(body) = notice {
            self.0.lock().unwrap().push(body.params.to_json().as_text().to_owned());
        }
    }
}
