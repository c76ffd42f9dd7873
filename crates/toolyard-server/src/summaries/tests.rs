use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::post;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolyard_core::gate::{CallGate, GateSize};
use toolyard_core::names::NameRegistry;
use toolyard_core::registry::CallLimits;
use toolyard_core::store::Store;
use toolyard_core::{Backend, BackendPhase, Call, Catalog, Json, Outcome, Registry, Tool, ToolError};
use toolyard_manifest::{EndpointUrl, LlmSettings, SecretString};
use toolyard_store::{DatabaseLocation, StoreOptions};

use super::*;

/// Status and body of the response to the request with this number.
type Answer = fn(usize) -> (u16, String);

/// A scripted OpenAI-compatible endpoint.
struct ChatEndpoint {
    requests: Arc<Mutex<Vec<String>>>,
    max_concurrent: Arc<AtomicUsize>,
    llm: LlmSettings,
    _serving: JoinSet<()>,
}

impl ChatEndpoint {
    async fn start(answer: Answer) -> Self {
        let (requests, max_concurrent) =
            (Arc::<Mutex<Vec<String>>>::default(), Arc::<AtomicUsize>::default());
        let (recorded, peak, current) =
            (requests.clone(), max_concurrent.clone(), Arc::<AtomicUsize>::default());
        let answer = move |headers: HeaderMap, body: String| {
            let (recorded, peak, current) = (recorded.clone(), peak.clone(), current.clone());
            async move {
                peak.fetch_max(current.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                let number = {
                    let mut recorded = recorded.lock().unwrap();
                    recorded.push(format!("{} {body}", headers["authorization"].to_str().unwrap()));
                    recorded.len()
                };
                current.fetch_sub(1, Ordering::Relaxed);
                let (status, text) = answer(number);
                Response::builder().status(status).body(Body::from(text)).unwrap()
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/", listener.local_addr().unwrap());
        let routes = Router::new().route("/v1/chat/completions", post(answer));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, routes).await.unwrap() });
        let llm = LlmSettings {
            base_url: EndpointUrl::parse(&url).unwrap(),
            model: "small".to_owned(),
            api_key: Some(SecretString::new("hunter2")),
            timeout: Duration::from_secs(30),
        };
        Self { requests, max_concurrent, llm, _serving: serving }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// A completion in the documented format.
fn completion(text: &str) -> String {
    let message = json!({"role": "assistant", "content": text});
    json!({"id": "1", "object": "chat.completion", "choices": [{"index": 0, "message": message}]}).to_string()
}

/// A backend with tools that runs none.
struct IdleBackend(watch::Sender<Arc<Catalog>>);

impl Backend for IdleBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.0.subscribe()
    }

    fn call(&self, _call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(std::future::pending())
    }
}

fn handler(name: &str, tools: &[&str]) -> HandlerEntry {
    let tool = |name: &&str| {
        let definition = json!({"name": name, "description": format!("Does {name}.")});
        Arc::new(Tool::from_definition(&Json::from_value(&definition)).expect("a tool"))
    };
    let catalog =
        Catalog { phase: BackendPhase::Ready, tools: tools.iter().map(tool).collect(), ..Catalog::default() };
    let gate = CallGate::new(GateSize { running: 1, waiting: 0 });
    let backend = Arc::new(IdleBackend(watch::Sender::new(Arc::new(catalog))));
    HandlerEntry::new(name, backend, CallLimits { timeout: Duration::from_secs(1), gate })
}

fn registry(handlers: &[HandlerEntry]) -> Arc<Registry> {
    let part = |handler: &HandlerEntry| (handler.clone(), handler.backend.catalog().borrow().clone());
    Arc::new(Registry::assemble(&handlers.iter().map(part).collect::<Vec<_>>(), &mut NameRegistry::default()))
}

async fn store() -> Arc<dyn Store> {
    toolyard_store::open(&StoreOptions::at(DatabaseLocation::Memory)).await.unwrap()
}

/// The summaries of a gateway, with their writer.
struct SummaryFixture {
    summaries: Arc<ServerSummaries>,
    registry: watch::Sender<Arc<Registry>>,
    _followers: JoinSet<()>,
}

impl SummaryFixture {
    fn start(model: &ChatEndpoint, store: &Arc<dyn Store>, handlers: &[HandlerEntry]) -> Self {
        let (registry, current) = watch::channel(registry(handlers));
        let summaries = Arc::<ServerSummaries>::default();
        let chat = ChatClient::new(&model.llm).unwrap();
        let writer = SummaryWriter { summaries: summaries.clone(), chat, store: store.clone() };
        let mut followers = JoinSet::new();
        followers.spawn(async move { writer.follow(current).await });
        Self { summaries, registry, _followers: followers }
    }

    /// Waits until the condition holds.
    async fn until(&self, is_so: impl Fn(&ServerSummaries) -> bool) {
        let waiting = async {
            while !is_so(&self.summaries) {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(30), waiting).await.expect("it takes too long");
    }
}

const FINDS: &str = "Finds flights.";

#[tokio::test]
async fn model_is_asked_once_for_the_same_tools() {
    let model = ChatEndpoint::start(|_| (200, completion(" \"Finds flights.\"\n"))).await;
    let (store, flights) = (store().await, handler("flights", &["find", "book"]));
    let described = HandlerEntry { description: Some("Sells shoes.".into()), ..handler("shoes", &["sell"]) };
    let builtins = handler("builtins", &["save"]);
    let handlers = [flights.clone(), described.clone(), builtins];
    let fixture = SummaryFixture::start(&model, &store, &handlers);
    assert_eq!(fixture.summaries.of(&flights, &["find", "book"]), "Provides 2 tool(s): find, book.");
    fixture.until(|summaries| summaries.of(&flights, &["find", "book"]) == FINDS).await;
    assert_eq!(fixture.summaries.of(&described, &["sell"]), "Sells shoes.");
    // A caller that sees other tools gets no summary of these.
    assert_eq!(fixture.summaries.of(&flights, &["find"]), "Provides 1 tool(s): find.");
    assert_eq!(fixture.summaries.of(&flights, &["find", "steal"]), "Provides 2 tool(s): find, steal.");
    insta::assert_snapshot!(model.requests().join("\n"));

    // Another gateway on the same store, such as this one after a restart.
    let other = SummaryFixture::start(&model, &store, &handlers);
    other.until(|summaries| summaries.of(&flights, &["book", "find"]) == FINDS).await;
    assert_eq!(model.requests().len(), 1);

    // Changed tools, then a removed server.
    let changed = handler("flights", &["find", "cancel"]);
    fixture.registry.send_replace(registry(std::slice::from_ref(&changed)));
    fixture.until(|summaries| summaries.of(&changed, &["find", "cancel"]) == FINDS).await;
    fixture.registry.send_replace(registry(&[]));
    fixture.until(|summaries| summaries.of(&changed, &["find", "cancel"]).starts_with("Provides")).await;
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn few_summaries_are_written_at_a_time() {
    let model = ChatEndpoint::start(|number| match number {
        1 => (200, completion("Two\nlines.")),
        _ => (200, completion(FINDS)),
    })
    .await;
    let names: Vec<_> = (0..12).map(|number| format!("server-{number}")).collect();
    let handlers: Vec<_> = names.iter().map(|name| handler(name, &[&format!("of-{name}")])).collect();
    let fixture = SummaryFixture::start(&model, &store().await, &handlers);
    let of =
        |summaries: &ServerSummaries, at: usize| summaries.of(&handlers[at], &[&format!("of-{}", names[at])]);
    fixture.until(|summaries| (0..12).filter(|at| of(summaries, *at) == FINDS).count() == 11).await;
    assert_eq!(model.requests().len(), 12);
    assert!(model.max_concurrent.load(Ordering::Relaxed) <= 2);
}

#[tokio::test]
async fn failing_model_is_not_asked_for_a_while() {
    let cases: [(Answer, &str); 5] = [
        (|_| (503, "hunter2".to_owned()), "the language model answered with status 503 Service Unavailable"),
        (|_| (200, "hunter2".to_owned()), "the response of the language model is not a chat completion"),
        (|_| (200, "{}".to_owned()), "the response of the language model has no text"),
        (
            |_| (200, json!({"choices": [{"message": {"content": Value::Null}}]}).to_string()),
            "the response of the language model has no text",
        ),
        (|_| (200, "x".repeat(2 << 20)), "cannot read the response of the language model"),
    ];
    for (answer, expected) in cases {
        let model = ChatEndpoint::start(answer).await;
        let failed = ChatClient::new(&model.llm).unwrap().ask("task", "question").await.unwrap_err();
        assert_eq!(failed.to_string(), expected);
    }
    let model = ChatEndpoint::start(|_| (503, String::new())).await;
    let handlers: Vec<_> = (0..5).map(|number| handler(&format!("server-{number}"), &["t"])).collect();
    let fixture = SummaryFixture::start(&model, &store().await, &handlers);
    fixture.until(|_| !model.requests().is_empty()).await;
    // A changed registry during the backoff causes no further request.
    for _ in 0..20 {
        fixture.registry.send_replace(registry(&handlers));
        tokio::task::yield_now().await;
    }
    assert!(model.requests().len() <= 2, "{:?}", model.requests());
    assert_eq!(fixture.summaries.of(&handlers[0], &["t"]), "Provides 1 tool(s): t.");
}
