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
use toolyard_core::gate::{Gate, GateSize};
use toolyard_core::names::Names;
use toolyard_core::registry::Limits;
use toolyard_core::store::Store;
use toolyard_core::{Backend, Call, Catalog, Json, Outcome, Phase, Registry, Tool, ToolError};
use toolyard_manifest::{Endpoint, Llm, Secret};
use toolyard_store::{Location, StoreOptions};

use super::*;

/// What an endpoint answers to the request of this number: a status and a body.
type Answer = fn(usize) -> (u16, String);

/// An endpoint that speaks as OpenAI's does, and answers as it is told.
struct Model {
    asked: Arc<Mutex<Vec<String>>>,
    most_at_once: Arc<AtomicUsize>,
    llm: Llm,
    _serving: JoinSet<()>,
}

impl Model {
    async fn start(answer: Answer) -> Self {
        let (asked, most_at_once) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<AtomicUsize>::default());
        let (noted, most, now) = (asked.clone(), most_at_once.clone(), Arc::<AtomicUsize>::default());
        let answer = move |headers: HeaderMap, body: String| {
            let (noted, most, now) = (noted.clone(), most.clone(), now.clone());
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                let number = {
                    let mut noted = noted.lock().unwrap();
                    noted.push(format!("{} {body}", headers["authorization"].to_str().unwrap()));
                    noted.len()
                };
                now.fetch_sub(1, Ordering::Relaxed);
                let (status, text) = answer(number);
                Response::builder().status(status).body(Body::from(text)).unwrap()
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/", listener.local_addr().unwrap());
        let routes = Router::new().route("/v1/chat/completions", post(answer));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, routes).await.unwrap() });
        let llm = Llm {
            base_url: Endpoint::parse(&url).unwrap(),
            model: "small".to_owned(),
            api_key: Some(Secret::new("hunter2")),
            timeout: Duration::from_secs(30),
        };
        Self { asked, most_at_once, llm, _serving: serving }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// A completion as it is documented.
fn completion(text: &str) -> String {
    let message = json!({"role": "assistant", "content": text});
    json!({"id": "1", "object": "chat.completion", "choices": [{"index": 0, "message": message}]}).to_string()
}

/// A backend that has tools, and runs none.
struct Shelf(watch::Sender<Arc<Catalog>>);

impl Backend for Shelf {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.0.subscribe()
    }

    fn call(&self, _call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(std::future::pending())
    }
}

fn handler(name: &str, tools: &[&str]) -> Handler {
    let tool = |name: &&str| {
        let definition = json!({"name": name, "description": format!("Does {name}.")});
        Arc::new(Tool::from_definition(&Json::from_value(&definition)).expect("a tool"))
    };
    let catalog =
        Catalog { phase: Phase::Ready, tools: tools.iter().map(tool).collect(), ..Catalog::default() };
    let gate = Gate::new(GateSize { running: 1, waiting: 0 });
    let backend = Arc::new(Shelf(watch::Sender::new(Arc::new(catalog))));
    Handler::new(name, backend, Limits { timeout: Duration::from_secs(1), gate })
}

fn registry(handlers: &[Handler]) -> Arc<Registry> {
    let part = |handler: &Handler| (handler.clone(), handler.backend.catalog().borrow().clone());
    Arc::new(Registry::assemble(&handlers.iter().map(part).collect::<Vec<_>>(), &mut Names::default()))
}

async fn store() -> Arc<dyn Store> {
    toolyard_store::open(&StoreOptions::at(Location::Memory)).await.unwrap()
}

/// A gateway's summaries, written by a model.
struct Site {
    written: Arc<Written>,
    registry: watch::Sender<Arc<Registry>>,
    _following: JoinSet<()>,
}

impl Site {
    fn start(model: &Model, store: &Arc<dyn Store>, handlers: &[Handler]) -> Self {
        let (registry, now) = watch::channel(registry(handlers));
        let written = Arc::<Written>::default();
        let chat = Chat::new(&model.llm).unwrap();
        let writer = Writer { written: written.clone(), chat, store: store.clone() };
        let mut following = JoinSet::new();
        following.spawn(async move { writer.follow(now).await });
        Self { written, registry, _following: following }
    }

    /// Waits until something is so.
    async fn until(&self, is_so: impl Fn(&Written) -> bool) {
        let waiting = async {
            while !is_so(&self.written) {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(30), waiting).await.expect("it takes too long");
    }
}

const FINDS: &str = "Finds flights.";

#[tokio::test]
async fn a_model_is_asked_once_for_the_same_tools() {
    let model = Model::start(|_| (200, completion(" \"Finds flights.\"\n"))).await;
    let (store, flights) = (store().await, handler("flights", &["find", "book"]));
    let described = Handler { description: Some("Sells shoes.".into()), ..handler("shoes", &["sell"]) };
    let builtins = handler("builtins", &["save"]);
    let handlers = [flights.clone(), described.clone(), builtins];
    let site = Site::start(&model, &store, &handlers);
    assert_eq!(site.written.of(&flights, &["find", "book"]), "Provides 2 tool(s): find, book.");
    site.until(|written| written.of(&flights, &["find", "book"]) == FINDS).await;
    assert_eq!(site.written.of(&described, &["sell"]), "Sells shoes.");
    // Who sees other tools is told nothing of these.
    assert_eq!(site.written.of(&flights, &["find"]), "Provides 1 tool(s): find.");
    assert_eq!(site.written.of(&flights, &["find", "steal"]), "Provides 2 tool(s): find, steal.");
    insta::assert_snapshot!(model.asked().join("\n"));

    // Another gateway on the same store, and this one after a restart.
    let other = Site::start(&model, &store, &handlers);
    other.until(|written| written.of(&flights, &["book", "find"]) == FINDS).await;
    assert_eq!(model.asked().len(), 1);

    // Other tools, and then another server.
    let changed = handler("flights", &["find", "cancel"]);
    site.registry.send_replace(registry(std::slice::from_ref(&changed)));
    site.until(|written| written.of(&changed, &["find", "cancel"]) == FINDS).await;
    site.registry.send_replace(registry(&[]));
    site.until(|written| written.of(&changed, &["find", "cancel"]).starts_with("Provides")).await;
    assert_eq!(model.asked().len(), 2);
}

#[tokio::test]
async fn a_few_are_written_at_a_time_and_what_is_no_summary_is_not_used() {
    let model = Model::start(|number| match number {
        1 => (200, completion("Two\nlines.")),
        _ => (200, completion(FINDS)),
    })
    .await;
    let names: Vec<_> = (0..12).map(|number| format!("server-{number}")).collect();
    let handlers: Vec<_> = names.iter().map(|name| handler(name, &[&format!("of-{name}")])).collect();
    let site = Site::start(&model, &store().await, &handlers);
    let of = |written: &Written, at: usize| written.of(&handlers[at], &[&format!("of-{}", names[at])]);
    site.until(|written| (0..12).filter(|at| of(written, *at) == FINDS).count() == 11).await;
    assert_eq!(model.asked().len(), 12);
    assert!(model.most_at_once.load(Ordering::Relaxed) <= 2);
}

#[tokio::test]
async fn a_model_that_fails_is_let_alone_for_a_while() {
    let cases: [(Answer, &str); 5] = [
        (|_| (503, "hunter2".to_owned()), "the language model answered with status 503 Service Unavailable"),
        (|_| (200, "hunter2".to_owned()), "the answer of the language model is no chat completion"),
        (|_| (200, "{}".to_owned()), "the answer of the language model has no text"),
        (
            |_| (200, json!({"choices": [{"message": {"content": Value::Null}}]}).to_string()),
            "the answer of the language model has no text",
        ),
        (|_| (200, "x".repeat(2 << 20)), "the answer of the language model cannot be read"),
    ];
    for (answer, expected) in cases {
        let model = Model::start(answer).await;
        let failed = Chat::new(&model.llm).unwrap().ask("task", "question").await.unwrap_err();
        assert_eq!(failed.to_string(), expected);
    }
    let model = Model::start(|_| (503, String::new())).await;
    let handlers: Vec<_> = (0..5).map(|number| handler(&format!("server-{number}"), &["t"])).collect();
    let site = Site::start(&model, &store().await, &handlers);
    site.until(|_| !model.asked().is_empty()).await;
    // What comes meanwhile does not have it asked again.
    for _ in 0..20 {
        site.registry.send_replace(registry(&handlers));
        tokio::task::yield_now().await;
    }
    assert!(model.asked().len() <= 2, "{:?}", model.asked());
    assert_eq!(site.written.of(&handlers[0], &["t"]), "Provides 1 tool(s): t.");
}
