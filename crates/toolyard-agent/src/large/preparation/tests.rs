use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::json;
use tokio::sync::watch;
use toolyard_core::backend::{BackendPhase, Catalog};
use toolyard_core::client::{Client, ClientNotification};
use toolyard_core::gate::{CallGate, GateSize};
use toolyard_core::layers::CallResult;
use toolyard_core::long_work::BackgroundSpawner;
use toolyard_core::names::NameRegistry;
use toolyard_core::registry::{CallLimits, DisclosureMode, DisclosurePolicy, HandlerEntry};
use toolyard_core::{Backend, Call, Caller, Gateway, Json, LongWork, Outcome, Registry, Tool};
use toolyard_manifest::MemorySettings;

use super::*;
use crate::large::LargeResults;
use crate::memory::testing::ManualStore;
use crate::memory::tools;

type Jobs = Arc<Mutex<Vec<Box<dyn FnOnce() + Send>>>>;

/// Answers each call with the same text.
struct TextBackend {
    catalog: watch::Sender<Arc<Catalog>>,
    text: String,
}

impl Backend for TextBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    fn call(&self, _: Call) -> BoxFuture<'_, CallResult> {
        ready(Ok(Outcome::Done(CallOutput::text(&self.text)))).boxed()
    }
}

/// A client with a model.
#[derive(Debug)]
struct ModelClient;

impl Client for ModelClient {
    fn capabilities(&self) -> Option<&Json> {
        None
    }

    fn listens(&self) -> bool {
        false
    }

    fn calls_tools(&self) -> bool {
        true
    }

    fn notify(&self, _: ClientNotification) {}
}

/// Returns a gateway with a tool that answers with a text. Its long work is kept in a list instead of being done.
fn gateway(jobs: &Jobs, text: String, limits: MemorySettings) -> Gateway {
    let (_, memory) = ManualStore::memory(limits);
    let server = toolyard_sdk::Server::new("memory", "1.0.0");
    let server = tools::add(server, memory.clone()).expect("tools");
    let tools = vec![Arc::new(Tool::named("read", Object::new()))];
    let catalog = Catalog { phase: BackendPhase::Ready, tools, ..Catalog::default() };
    let text = TextBackend { catalog: watch::Sender::new(Arc::new(catalog)), text };
    let backends: [(&str, Arc<dyn Backend>); 2] =
        [("text", Arc::new(text)), ("memory", server.into_backend())];
    let parts = backends.map(|(name, backend)| {
        let gate = CallGate::new(GateSize { running: 10, waiting: 10 });
        let catalog = backend.catalog().borrow().clone();
        let limits = CallLimits { timeout: std::time::Duration::from_secs(30), gate };
        let disclosure = DisclosurePolicy {
            show: DisclosureMode::All,
            budget: 0,
            pinned: Vec::new(),
            finders: Vec::new(),
            script_tools: Vec::new(),
            reader: Some(tools::GET.into()),
            output_schemas: None,
            unlisted: Vec::new(),
        };
        let disclosure = (name == "memory").then(|| Arc::new(disclosure));
        (HandlerEntry { disclosure, ..HandlerEntry::new(name, backend, limits) }, catalog)
    });
    let registry = Arc::new(Registry::assemble(&parts, &mut NameRegistry::default()));
    let registry = watch::Sender::new(registry).subscribe();
    let options = ResultSettings::default();
    let settings = LargeSettings { memory: Some(memory), handler: "memory".into(), options };
    let settings = watch::Sender::new(Some(Arc::new(settings))).subscribe();
    let jobs = jobs.clone();
    let background: BackgroundSpawner =
        Arc::new(move |job| jobs.lock().unwrap_or_else(PoisonError::into_inner).push(job));
    let layer = LargeResults::new(settings, registry.clone()).with_long_work(Some(LongWork::new(background)));
    Gateway::new(registry, vec![Box::new(layer)])
}

fn call(principal: &str) -> Call {
    let caller = Caller { principal: Some(principal.into()), ..Caller::default() };
    Call { client: Arc::new(ModelClient), caller, ..Call::tool("read", Json::null()) }
}

fn take(jobs: &Jobs) -> Vec<Box<dyn FnOnce() + Send>> {
    std::mem::take(&mut *jobs.lock().expect("no panic"))
}

fn text_of_answer(result: CallResult) -> String {
    let Ok(Outcome::Done(output)) = result else { panic!("no result") };
    output.body.to_json().to_value()["content"][0]["text"].as_str().expect("a text").to_owned()
}

#[tokio::test]
async fn work_on_long_results_is_done_in_the_background() {
    const LOG: &str = "a line of a log\n";
    let section = &*format!("# A\n{}\n", "b ".repeat(10_000));
    let roomy = || MemorySettings { bytes: 20_000_000, ..MemorySettings::default() };
    let tight = MemorySettings { bytes: 1_000_000, ..MemorySettings::default() };
    let entries = MemorySettings { entries: 40, ..roomy() };
    for (unit, bytes, limits, jobs_expected, expected) in [
        (LOG, 1_000, roomy(), 0, "a line of a log"),
        (LOG, 500_000, roomy(), 0, "Tool result for 'read' is large"),
        (LOG, 2_000_000, roomy(), 1, "Tool result for 'read' is large"),
        (LOG, 2_000_000, tight, 1, "a line of a log"),
        // Packing the sections is long work as well.
        (section, 2_000_000, entries, 2, "Tool result for 'read' is large"),
    ] {
        let jobs = Jobs::default();
        let gateway = gateway(&jobs, unit.repeat(bytes / unit.len()), limits);
        let mut answer = Box::pin(gateway.invoke(call("a")));
        let mut done = 0;
        let answer = loop {
            let poll = (&mut answer).now_or_never();
            let pending = take(&jobs);
            match poll {
                Some(answer) => break answer,
                None => assert_eq!(pending.len(), 1, "{bytes}"),
            }
            done += pending.len();
            pending.into_iter().for_each(|job| job());
        };
        let text = text_of_answer(answer);
        let beginning: String = unit.chars().take(20).collect();
        assert!(text.starts_with(expected), "{beginning} {bytes}");
        assert_eq!(done, jobs_expected, "{beginning} {bytes}");
    }
}

#[tokio::test]
async fn work_on_long_results_is_limited_and_fair() {
    let jobs = Jobs::default();
    let gateway = gateway(&jobs, "words, ".repeat(300_000), MemorySettings::default());
    let mut calls: Vec<_> =
        ["a", "a", "a", "b"].into_iter().map(|owner| Box::pin(gateway.invoke(call(owner)))).collect();
    let mut poll = |at: usize| calls[at].as_mut().now_or_never().map(text_of_answer);
    assert!((0..4).all(|at| poll(at).is_none()));
    let mut running = take(&jobs);
    assert_eq!(running.len(), 2, "the others wait");
    running.remove(0)();
    assert!(poll(0).is_some());
    assert!((1..4).all(|at| poll(at).is_none()));
    let next = take(&jobs);
    assert_eq!(next.len(), 1);
    next.into_iter().for_each(|job| job());
    assert!(poll(2).is_none() && poll(3).is_some(), "another owner has the turn");
}

/// The text and the structured content repeat each other. Each of them fits, but not with a message beside it.
#[test]
fn text_that_fits_is_not_called_truncated() {
    let text = "x".repeat(62_000);
    let body = json!({"content": [{"type": "text", "text": text}], "structuredContent": {"result": text}});
    let options = ResultSettings::default();
    let preparation = ResultPreparation {
        output: CallOutput { body: Json::from_value(&body).to_object().expect("an object"), is_error: false },
        limit: ResultLimit { threshold: 64_000, promises_structure: true, keeps_structure: false },
        settings: Arc::new(LargeSettings { memory: None, handler: "memory".into(), options }),
        tool: "read".into(),
        target: None,
    };
    let PreparedResult::Shortened(body) = preparation.run(&StopSignal::default()) else {
        panic!("not shortened")
    };
    let body = body.to_json().to_value();
    assert!(body["content"] == json!([{"type": "text", "text": text}]), "the text is whole");
    let note = &body["structuredContent"]["storedResult"]["note"];
    insta::assert_snapshot!(note, @r#""The text of this result is all of it. This caller does not have the tools of working memory. Ask the tool for less.""#);
}
