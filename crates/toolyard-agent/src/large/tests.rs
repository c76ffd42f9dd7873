use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::{Value, json};
use tokio::sync::watch;
use toolyard_core::access::AccessGrant;
use toolyard_core::backend::{BackendPhase, Catalog};
use toolyard_core::client::{Client, ClientNotification, NoClient};
use toolyard_core::gate::{CallGate, GateSize};
use toolyard_core::names::NameRegistry;
use toolyard_core::overrides::{ChunkingPolicy, DefinitionOverride, Override, Overrides};
use toolyard_core::registry::{CallLimits, DisclosureMode, DisclosurePolicy, HandlerEntry};
use toolyard_core::{Backend, Gateway, Json, Object, TaskReference, Tool};
use toolyard_manifest::MemorySettings;

use super::*;
use crate::chunk;
use crate::memory::chunk_keys as keys;
use crate::memory::testing::ManualStore;
use crate::memory::tools;
use crate::memory::{MemoryNamespace, SessionHandleSettings, SessionHandles};

/// Answers each call with the same result. The result `echo` is the `_meta` of the call as a text.
struct FixedResultBackend {
    catalog: watch::Sender<Arc<Catalog>>,
    result: Value,
}

impl Backend for FixedResultBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, CallResult> {
        if self.result == "echo" {
            return ready(Ok(Outcome::Done(CallOutput::text(call.meta.to_json().as_text())))).boxed();
        }
        let body = Json::from_value(&self.result).to_object().expect("an object");
        let is_error = self.result["isError"] == true;
        ready(Ok(Outcome::Done(CallOutput { body, is_error }))).boxed()
    }
}

fn fixed(tools: &[(&str, bool)], result: Value) -> Arc<dyn Backend> {
    let tool = |(name, has_schema): &(&str, bool)| {
        let schema = Json::parse(r#"{"type":"object"}"#).expect("JSON");
        let rest = if *has_schema { Object::new().with("outputSchema", schema) } else { Object::new() };
        Arc::new(Tool::named(name, rest))
    };
    let tools = tools.iter().map(tool).collect();
    let catalog = Catalog { phase: BackendPhase::Ready, tools, ..Catalog::default() };
    Arc::new(FixedResultBackend { catalog: watch::Sender::new(Arc::new(catalog)), result })
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

/// Returns overrides of two tools.
fn overrides() -> Overrides {
    let chunking =
        |chunking| Override::Change(DefinitionOverride { chunking, ..DefinitionOverride::default() });
    let strict = ChunkingPolicy { threshold: Some(10), ..ChunkingPolicy::default() };
    let structured = |structured| ChunkingPolicy { structured, ..ChunkingPolicy::default() };
    let (loose, kept) = (structured(Some(true)), structured(Some(false)));
    let policies = [("strict", strict), ("loose", loose), ("kept", kept)];
    policies.map(|(name, policy)| (name.into(), chunking(policy))).into()
}

struct LargeResultHarness {
    store: Arc<ManualStore>,
    memory: WorkingMemory,
    gateway: Gateway,
}

impl LargeResultHarness {
    fn new(result: Value, options: ResultSettings, limits: MemorySettings) -> Self {
        let (store, memory) = ManualStore::memory(limits);
        let tools =
            [("list_models", false), ("strict", false), ("loose", true), ("kept", true), ("typed", true)];
        let server = toolyard_sdk::Server::new("memory", "1.0.0");
        let server = tools::add(server, memory.clone()).expect("tools");
        let backends = [("fixed", fixed(&tools, result)), ("memory", server.into_backend())];
        let parts = backends.map(|(name, backend): (_, Arc<dyn Backend>)| {
            let gate = CallGate::new(GateSize { running: 10, waiting: 10 });
            let catalog = backend.catalog().borrow().clone();
            let limits = CallLimits { timeout: std::time::Duration::from_secs(30), gate };
            let overrides = Arc::new(overrides());
            let reader = Some(tools::GET.into());
            let (show, budget, pinned, finders) = (DisclosureMode::All, 0, Vec::new(), Vec::new());
            let output_schemas = Some(options.output_schemas);
            let disclosure = DisclosurePolicy {
                show,
                budget,
                pinned,
                finders,
                reader,
                output_schemas,
                unlisted: Vec::new(),
            };
            let disclosure = Arc::new(disclosure);
            let disclosure = (name == "memory").then_some(disclosure);
            (HandlerEntry { overrides, disclosure, ..HandlerEntry::new(name, backend, limits) }, catalog)
        });
        let registry = Arc::new(Registry::assemble(&parts, &mut NameRegistry::default()));
        let registry = watch::Sender::new(registry).subscribe();
        let settings = LargeSettings { memory: Some(memory.clone()), handler: "memory".into(), options };
        let settings = watch::Sender::new(Some(Arc::new(settings))).subscribe();
        let handles = SessionHandleSettings { memory: memory.clone(), handler: "memory".into() };
        let handles = watch::Sender::new(Some(Arc::new(handles))).subscribe();
        let layers: Vec<Box<dyn toolyard_core::layers::Layer>> = vec![
            Box::new(LargeResults::new(settings, registry.clone())),
            Box::new(SessionHandles::new(handles)),
        ];
        let gateway = Gateway::new(registry, layers);
        Self { store, memory, gateway }
    }

    fn small(result: Value) -> Self {
        let options = ResultSettings { threshold: 40, least_chunk: 20, ..ResultSettings::default() };
        Self::new(result, options, MemorySettings::default())
    }

    async fn call(&self, tool: &str, arguments: Value, meta: Value) -> Value {
        self.call_by(Arc::new(ModelClient), Caller::default(), tool, arguments, meta).await
    }

    async fn call_by(
        &self,
        client: Arc<dyn Client>,
        caller: Caller,
        tool: &str,
        arguments: Value,
        meta: Value,
    ) -> Value {
        let mut call = Call { client, caller, ..Call::tool(tool, Json::from_value(&arguments)) };
        call.meta = self.meta(&meta).await;
        match self.gateway.invoke(call).await {
            Ok(Outcome::Done(output)) => output.body.to_json().to_value(),
            other => panic!("{other:?}"),
        }
    }

    /// Returns the `_meta` of a request with a handle of the session that it names.
    async fn meta(&self, meta: &Value) -> Object {
        let mut meta = Json::from_value(meta).to_object().expect("an object");
        if let Some(named) = meta.get_str(SESSION_META).map(std::borrow::Cow::into_owned) {
            meta.set(SESSION_META, Json::string(&ManualStore::handle(&self.memory, &named).await));
        }
        meta
    }

    /// Calls a tool in the session `abc123` and returns the result with a fixed key.
    async fn result(&self, tool: &str) -> Value {
        let mut result = self.call(tool, json!({}), json!({"toolyard/session": "abc123"})).await;
        // A handle is another one each time.
        if let Some(meta) = result.get_mut("_meta").and_then(Value::as_object_mut)
            && meta.remove(SESSION_META).is_some()
            && meta.is_empty()
        {
            result.as_object_mut().expect("an object").remove("_meta");
        }
        let mut text = result.to_string();
        let keys = self.memory.list(&MemoryNamespace::new("session", "abc123")).await.unwrap_or_default();
        if let Some(base) = keys.first().and_then(|record| keys::base_of(&record.key)) {
            text = text.replace(base, &format!("session/abc123/tool-{tool}-a1b2c3"));
        }
        serde_json::from_str(&text).expect("JSON")
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Compares the message with `docs/agent-tools.md`.
#[test]
fn message_matches_the_documentation() {
    let (namespace, _) = MemoryNamespace::of_path("session/abc123/x").expect("a path");
    let base = keys::base_of_run(&namespace, "list_models", "a1b2c3");
    let result = "x".repeat(462_000);
    let chunks: Vec<_> = chunk::chunks(&result, 20_087).collect();
    let pieces = message::pieces(&base, &chunks);
    let stored = message::StoredText::new("list_models".into(), &result, pieces, keys::index_key(&base));
    insta::assert_snapshot!(stored.message(64_000));
}

#[test]
fn outline_matches_the_documentation() {
    let (namespace, _) = MemoryNamespace::of_path("session/abc123/x").expect("a path");
    let base = keys::base_of_run(&namespace, "list_models", "a1b2c3");
    let result = "# Models Overview\na\n# Pricing\nb\n# Context Windows\nc\n# Token Limits\nd\n";
    let chunks: Vec<_> = chunk::chunks(result, 20_000).collect();
    insta::assert_snapshot!(message::outline(&message::pieces(&base, &chunks), &chunks));
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "the table has a case for each kind of result")]
async fn results_of_each_kind() {
    let long = "# One\nfirst words of it\n## Two | b\nsecond words of it";
    let image: Value = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
    let link = json!({"type": "resource_link", "uri": "file:///a", "name": "a"});
    let records = json!({"items": [{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}]});
    let cases = [
        ("a short text", "list_models", json!({"content": [text("short")]})),
        ("as long as may be", "list_models", json!({"content": [text(&"é".repeat(40))]})),
        ("a long text", "list_models", json!({"content": [text(long)], "_meta": {"a": 1}, "isError": false})),
        ("a long failure", "list_models", json!({"content": [text(long)], "isError": true})),
        ("a tool of its own threshold", "strict", json!({"content": [text("more than ten")]})),
        (
            "what is no text stays",
            "list_models",
            json!({"content": [image.clone(), text("first words of several,"), {"type": "note"}, text("second words of several")]}),
        ),
        (
            "only an image",
            "list_models",
            json!({"content": [json!({"type": "image", "data": "A".repeat(100), "mimeType": "image/png"})]}),
        ),
        (
            "structure, repeated as text",
            "list_models",
            json!({"content": [text(&records.to_string())], "structuredContent": records}),
        ),
        ("structure alone", "list_models", json!({"content": [], "structuredContent": records})),
        (
            "a list, repeated item by item",
            "list_models",
            json!({"content": [text(&"a".repeat(30)), text("{\"id\": 1}")], "structuredContent": {"result": ["a".repeat(30), {"id": 1}]}}),
        ),
        (
            "a resource with a short text",
            "list_models",
            json!({"content": [text(long), {"type": "resource", "resource": {"uri": "file:///a", "text": "short"}}]}),
        ),
        (
            "a resource with a long text",
            "list_models",
            json!({"content": [{"type": "resource", "resource": {"uri": "file:///a", "text": long}}]}),
        ),
        (
            "lines of a log",
            "list_models",
            json!({"content": [text("[INFO] line one happened\n[INFO] line two happened")]}),
        ),
        (
            "structure that is promised",
            "typed",
            json!({"content": [text(&records.to_string())], "structuredContent": records}),
        ),
        (
            "a text that is promised as structure",
            "typed",
            json!({"content": [text(long)], "structuredContent": {"result": long}}),
        ),
        (
            "promised structure that fits without the text",
            "typed",
            json!({"content": [text("{\"result\":\"15 letters text\"}")], "structuredContent": {"result": "15 letters text"}}),
        ),
        (
            "structure that fits without the text",
            "list_models",
            json!({"content": [text(long)], "structuredContent": {"count": 2}}),
        ),
        (
            "text that fits without the promised structure",
            "typed",
            json!({"content": [text("Found four of them")], "structuredContent": records}),
        ),
        (
            "text that fits without the promised structure which escapes it",
            "typed",
            json!({"content": [text(&"\n".repeat(30))], "structuredContent": {"result": "\n".repeat(30)}}),
        ),
        (
            "text that fits without the structure",
            "list_models",
            json!({"content": [text("{\"result\": \"15 letters text\"}")], "structuredContent": {"result": "15 letters text"}}),
        ),
        (
            "links and short resources that are long together",
            "list_models",
            json!({"content": [link, {"type": "resource", "resource": {"uri": "file:///a", "text": "short"}}, image]}),
        ),
        ("a failure where structure is promised", "typed", json!({"content": [text(long)], "isError": true})),
        (
            "structure that is given up",
            "loose",
            json!({"content": [text(&records.to_string())], "structuredContent": records}),
        ),
        (
            "structure that is kept",
            "kept",
            json!({"content": [text(&records.to_string())], "structuredContent": records}),
        ),
    ];
    let mut sections = Vec::new();
    for (what, tool, result) in cases {
        let after = LargeResultHarness::small(result.clone()).result(tool).await;
        let after =
            if after == result { "as it was".to_owned() } else { format!("{after:#}").replace("\\n", "\n") };
        sections.push(format!("=== {what}\n{after}"));
    }
    insta::assert_snapshot!(sections.join("\n"));
}

#[tokio::test]
async fn result_of_a_task_is_shortened() {
    let check = async |status: &str, result: Value, expected: &str| {
        let harness = LargeResultHarness::small(json!({"taskId": "7", "status": status, "result": result}));
        let (tool, handler, id) = ("list_models".into(), "fixed".into(), "7".into());
        let target = CallTarget::Task(TaskReference { tool, handler, id, action: TaskAction::Get });
        let meta = harness.meta(&json!({"toolyard/session": "abc123"})).await;
        let call = Call { client: Arc::new(ModelClient), target, meta, ..Call::tool("", Json::null()) };
        let Ok(Outcome::Done(output)) = harness.gateway.invoke(call).await else { panic!("no task") };
        let body = output.body.to_json().to_value();
        assert_eq!((&body["taskId"], &body["status"]), (&json!("7"), &json!(status)));
        let answer = body["result"]["content"][0]["text"].as_str().unwrap_or("nothing");
        assert!(answer.starts_with(expected), "{body}");
    };
    let long = json!({"content": [text(&"long ".repeat(20))]});
    check("completed", long, "Tool result for 'list_models' is large (100 chars)").await;
    check("completed", json!({"content": [text("short")]}), "short").await;
    check("working", Value::Null, "nothing").await;
}

#[tokio::test]
async fn result_is_truncated_if_working_memory_refuses_it() {
    let result = json!({"content": [text("first words,"), text(&"é".repeat(50)), text("lost")], "structuredContent": {"a": 1}});
    let shortened = async |harness: &LargeResultHarness, meta: Value| {
        let result = harness.call("list_models", json!({}), meta).await;
        format!("{result:#}").replace("\\n", "\n")
    };
    let session = json!({"toolyard/session": "abc123"});
    let options = ResultSettings { threshold: 40, least_chunk: 20, ..ResultSettings::default() };
    let limits = MemorySettings { entries: 2, ..MemorySettings::default() };
    let full = shortened(&LargeResultHarness::new(result.clone(), options, limits), session.clone()).await;
    let away = LargeResultHarness::small(result);
    away.meta(&session).await;
    away.store.go_away();
    let away = shortened(&away, session).await;
    insta::assert_snapshot!([full, away].join("\n---\n"));
}

#[tokio::test]
async fn model_without_working_memory_gets_a_truncated_result() {
    let content = json!([text(&"x".repeat(1000))]);
    let result = json!({"content": content, "structuredContent": {"result": "x".repeat(1000)}});
    let harness = LargeResultHarness::small(result.clone());
    let check = async |client: Arc<dyn Client>, scope: &str, tool: &str, expected: &Value| {
        let scope = [scope.parse().expect("a pattern")].into_iter().collect();
        let grant = AccessGrant { scope, ..AccessGrant::default() };
        let caller = Caller { grant: Some(Arc::new(grant)), ..Caller::default() };
        let session = json!({"toolyard/session": "a"});
        let answer = harness.call_by(client, caller, tool, json!({}), session).await;
        assert_eq!(&answer, expected);
        assert_eq!(harness.store.len(), 0);
    };
    check(Arc::new(NoClient), "*", "typed", &result).await;
    let notice = "[result truncated — 960 chars omitted]\nThe rest was not put into working memory. This caller does not have the tools of working memory. Ask the tool for less.";
    let cut = json!([text(&format!("{}\n{notice}", "x".repeat(40)))]);
    check(Arc::new(ModelClient), "fixed/*", "list_models", &json!({"content": cut})).await;
    let reference = json!({"storedResult": {"chars": 1000, "note": notice}});
    let expected = json!({"content": cut, "structuredContent": reference});
    check(Arc::new(ModelClient), "fixed/*", "typed", &expected).await;
}

/// Follows the steps of a model that gets the result of a server that lists models.
#[tokio::test]
async fn large_result_can_be_read_and_queried() {
    let models: Vec<_> = (0..3000)
        .map(|n| json!({"id": format!("vendor/model-{n}"), "context": n * 10, "about": "é".repeat(30)}))
        .collect();
    let whole = json!({"data": models}).to_string();
    let harness = LargeResultHarness::new(
        json!({"content": [text(&whole)]}),
        ResultSettings::default(),
        MemorySettings::default(),
    );
    let meta = json!({"toolyard/session": "abc123"});
    let answer = harness.call("list_models", json!({}), meta.clone()).await;
    let answer = answer["content"][0]["text"].as_str().expect("a text");
    assert!(answer.chars().count() < 2000, "{answer}");
    let keys: Vec<_> = answer
        .lines()
        .filter(|line| line.starts_with("| "))
        .filter_map(|line| line.split('`').nth(1))
        .collect();
    let mut joined = String::new();
    for key in &keys {
        // The chunk exceeds the threshold, but is not stored again.
        let chunk = harness.call(tools::GET, json!({"key": key}), meta.clone()).await;
        joined.push_str(chunk["content"][0]["text"].as_str().expect("a text"));
    }
    assert!(joined == whole, "{} chunks are not the result", keys.len());
    let base = keys::base_of(keys[0]).expect("a key of a result");
    for key in [keys[0], base, &keys::index_key(base), &keys::chunk_key(base, 1)] {
        let arguments = json!({"key": key, "expression": "data[?context > `29970`].id"});
        let selected = harness.call(tools::QUERY, arguments, meta.clone()).await;
        assert_eq!(selected["content"][0]["text"], r#"["vendor/model-2998","vendor/model-2999"]"#, "{key}");
    }
    let outline = harness.call(tools::GET, json!({"key": keys::index_key(base)}), meta.clone()).await;
    let outline = outline["content"][0]["text"].as_str().expect("a text").to_owned();
    assert!(keys.iter().all(|key| outline.contains(&format!("→ `{key}`"))), "{outline}");
    harness.call(tools::DELETE, json!({"key": keys[1]}), meta.clone()).await;
    let answer = harness.call(tools::QUERY, json!({"key": base, "expression": "@"}), meta.clone()).await;
    let answer = answer["content"][0]["text"].as_str().expect("a text").replace(base, "BASE");
    insta::assert_snapshot!(answer);
    harness.store.pass(std::time::Duration::from_secs(20 * 60));
    let gone = harness.call(tools::GET, json!({"key": keys[0]}), meta).await;
    assert!(gone["content"][0]["text"].as_str().expect("a text").ends_with("not found or has expired."));
}

/// Returns a log of about 500 kB, in which one request has failed.
fn log() -> String {
    let line = |n: usize| {
        match n {
        4_321 => "2026-11-23T10:17:42Z ERROR api-2 request r-004321 failed: upstream `billing` refused the connection (attempt 3 of 3)\n".to_owned(),
        n => format!("2026-11-23T10:{:02}:{:02}Z INFO api-{} request r-{n:06} GET /v1/orders/{} 200 in {} ms\n", n / 60 % 60, n % 60, n % 4, n * 37 % 9_973, n % 180),
    }
    };
    (0..6_100).map(line).collect()
}

/// Two calls find a line of a log: the call of the tool and a search.
#[tokio::test]
async fn line_of_a_log_is_found_in_two_calls_and_few_tokens() {
    let log = log();
    assert!((490_000..520_000).contains(&log.len()), "{}", log.len());
    let answer = json!({"content": [text(&log)]});
    let harness = LargeResultHarness::new(answer, ResultSettings::default(), MemorySettings::default());
    let meta = json!({"toolyard/session": "abc123"});
    let cut = harness.call("list_models", json!({}), meta.clone()).await;
    let cut = cut["content"][0]["text"].as_str().expect("a text").to_owned();
    let index = cut.split('`').nth(1).expect("the key of the outline").to_owned();
    let found =
        harness.call(tools::GET, json!({"key": index, "grep": "ERROR", "context": 1}), meta.clone()).await;
    let found = found["content"][0]["text"].as_str().expect("a text").to_owned();
    assert!(found.contains("\n4322:2026-11-23T10:17:42Z ERROR api-2 request r-004321"), "{found}");
    let tokens = [&cut, &found].map(|text| toolyard_core::tokens::estimate(text.len()));
    assert!(tokens.iter().sum::<usize>() < 600, "{tokens:?}");
    let base = keys::base_of(&index).expect("a key of a result");
    let (cut, found) =
        (cut.replace(base, "session/abc123/tool-list_models-a1b2c3"), found.replace(base, "BASE"));
    insta::assert_snapshot!(format!("{cut}\n---\n{found}"));

    // The numbers are those of the whole text, whatever key is given.
    let line = log.lines().nth(4_321).expect("a line");
    for key in [base, &index, &keys::chunk_key(base, 0), &keys::chunk_key(base, 5)] {
        let read = harness.call(tools::GET, json!({"key": key, "lines": "4322"}), meta.clone()).await;
        assert_eq!(read["content"][0]["text"], format!("Line 4322 of 6 100:\n{line}"), "{key}");
    }
    let read = async |key: &str, arguments: Value| {
        let mut call = json!({"key": key});
        call.as_object_mut().expect("an object").extend(arguments.as_object().expect("an object").clone());
        let read = harness.call(tools::GET, call, meta.clone()).await;
        read["content"][0]["text"].as_str().expect("a text").replace(base, "BASE")
    };
    let chunk = keys::chunk_key(base, 5);
    insta::assert_snapshot!(
        [
            read(&chunk, json!({"lines": "first 2"})).await,
            read(&chunk, json!({"grep": "ERROR"})).await,
            read(&chunk, json!({"grep": "r-00432[0-2]"})).await,
            read(&keys::chunk_key(base, 0), json!({"grep": "error"})).await,
            read(base, json!({"grep": "error", "ignore_case": true})).await,
            read(base, json!({"grep": "ERROR", "lines": "first 4000"})).await,
            read(base, json!({"lines": "7000-"})).await,
            read(base, json!({"grep": "GET (", "lines": "1-5"})).await,
            read(base, json!({"lines": "the end"})).await,
            read("nothing", json!({"lines": "1"})).await,
        ]
        .join("\n---\n")
    );
    // All lines match: the result is bounded, and says where to continue.
    let all = read(base, json!({"grep": "request"})).await;
    assert!(
        all.len() < 5_000
            && all.ends_with("[6 060 more: continue with lines \"41-\", or narrow the pattern]"),
        "{all}"
    );
}

/// Headings are the labels of chunks, and lines of the whole text nevertheless.
#[tokio::test]
async fn whole_text_has_its_headings() {
    let page = "# Fruits\n\n## Prices\n\napples 1\n\npears 2\n\n# Vegetables\n\n## Prices\n\nleeks 3\n\n";
    let harness = LargeResultHarness::small(json!({"content": [text(page)]}));
    let meta = json!({"toolyard/session": "abc123"});
    let cut = harness.result("list_models").await;
    let records = harness.memory.list(&MemoryNamespace::new("session", "abc123")).await.expect("a store");
    let base = keys::base_of(&records[0].key).expect("a key").to_owned();
    let read = async |key: String, arguments: Value| {
        let mut call = json!({"key": key});
        call.as_object_mut().expect("an object").extend(arguments.as_object().expect("an object").clone());
        let read = harness.call(tools::GET, call, meta.clone()).await;
        read["content"][0]["text"].as_str().expect("a text").replace(&base, "BASE")
    };
    insta::assert_snapshot!(
        [
            cut["content"][0]["text"].as_str().expect("a text").to_owned(),
            read(keys::index_key(&base), json!({})).await,
            read(base.clone(), json!({})).await,
            read(base.clone(), json!({"lines": "1-"})).await,
            read(base.clone(), json!({"grep": "^#"})).await,
            read(keys::chunk_key(&base, 1), json!({})).await,
            read(keys::chunk_key(&base, 1), json!({"lines": "first 9"})).await,
        ]
        .join("\n---\n")
    );
}

#[tokio::test]
async fn many_small_sections_make_a_short_table() {
    let headings: String = (0..5000).map(|n| format!("## Heading {n}\nsome words\n")).collect();
    let harness = LargeResultHarness::new(
        json!({"content": [text(&headings)]}),
        ResultSettings::default(),
        MemorySettings::default(),
    );
    let answer = harness.result("list_models").await;
    let answer = answer["content"][0]["text"].as_str().expect("a text");
    insta::assert_snapshot!(answer);
}

/// The result is parsed on a blocking thread, and nothing is stored.
#[tokio::test]
async fn result_larger_than_working_memory_is_truncated() {
    let result = json!({"content": [text(&"words, ".repeat(300_000))]});
    let limits = MemorySettings { bytes: 1_000_000, ..MemorySettings::default() };
    let harness = LargeResultHarness::new(result, ResultSettings::default(), limits);
    let answer = harness.call("list_models", json!({}), json!({"toolyard/session": "abc123"})).await;
    let answer = answer["content"][0]["text"].as_str().expect("a text");
    assert_eq!(answer.chars().take_while(|c| *c != '[').count(), 64_001);
    insta::assert_snapshot!(&answer[64_001..]);
    assert_eq!(harness.store.len(), 0);
}

/// One chunk per section is a convenience. Here the limit permits few entries, but much text.
#[tokio::test]
async fn sections_share_a_chunk_near_the_entry_limit() {
    let sections: String = (0..9).map(|n| format!("# Section {n}\nsome words\n")).collect();
    let options = ResultSettings { threshold: 40, least_chunk: 120, ..ResultSettings::default() };
    let limits = MemorySettings { entries: 5, ..MemorySettings::default() };
    let harness = LargeResultHarness::new(json!({"content": [text(&sections)]}), options, limits);
    let answer = harness.result("list_models").await;
    let answer = answer["content"][0]["text"].as_str().expect("a text");
    assert!(answer.contains("has been split into 2 chunk(s)"), "{answer}");
}

/// Comment lines look like headings.
#[tokio::test]
async fn comment_lines_of_a_program_are_not_lost() {
    let program: String = (0..4000).map(|n| format!("# comment {n},\n# which goes on\nx = {n}\n")).collect();
    let harness = LargeResultHarness::new(
        json!({"content": [text(&program)]}),
        ResultSettings::default(),
        MemorySettings::default(),
    );
    harness.result("list_models").await;
    let records = harness.memory.list(&MemoryNamespace::new("session", "abc123")).await.expect("a store");
    let mut rebuilt = String::new();
    for record in records.iter().filter(|record| record.chunks.is_none()) {
        rebuilt.push_str(&harness.memory.value(record).await.expect("a store").expect("a value"));
    }
    assert!(rebuilt == program, "{} of {} bytes are left", rebuilt.len(), program.len());
}

#[test]
fn guides_name_existing_memory_tools() {
    for guide in [GUIDE, crate::memory::GUIDE] {
        let named = guide.document.split(|c: char| !c.is_ascii_lowercase() && c != '_');
        for name in named.filter(|word| word.ends_with("_working_memory")) {
            assert!(tools::NAMES.contains(&name), "{name} in {}", guide.name);
        }
        assert!(guide.document.starts_with("# ") && !guide.summary.contains('\n'));
    }
}

/// Returns the key of the first chunk in the text of a result.
fn first_key(result: &Value) -> String {
    let text = result["content"][0]["text"].as_str().expect("a text");
    text.lines()
        .filter(|line| line.starts_with("| 0 |"))
        .find_map(|line| line.split('`').nth(1))
        .expect("a key")
        .into()
}

fn keyed(principal: &str) -> Caller {
    Caller { principal: Some(principal.into()), ..Caller::default() }
}

/// The client of 2026-07-28 without a key and without a host that returns handles.
#[tokio::test]
async fn caller_without_session_and_key_reads_a_result_by_its_id() {
    let log = "[INFO] line one happened\n[INFO] line two happened";
    let harness = LargeResultHarness::small(json!({"content": [text(log)], "_meta": {"a": 1}}));
    let cut = harness.call("list_models", json!({}), json!({})).await;
    let key = first_key(&cut);
    assert!(key.starts_with("session/tyid_") && key.len() < 130, "{key}");
    assert_eq!(cut["_meta"]["a"], 1);
    let base = keys::base_of(&key).expect("a key of a result").to_owned();
    let read = async |tool: &str, arguments: Value| {
        let result = harness.call(tool, arguments, json!({})).await;
        result["content"][0]["text"].as_str().expect("a text").to_owned()
    };
    assert!(log.starts_with(&read(tools::GET, json!({"key": key})).await));
    assert!(log.starts_with(&read(tools::GET, json!({"key": key.replace("session/", "Session/")})).await));
    let outline = read(tools::GET, json!({"key": keys::index_key(&base)})).await;
    assert!(outline.contains(&format!("`{key}`")), "{outline}");
    let found = read(tools::SEARCH, json!({"query": "two", "namespace": base})).await;
    assert!(found.contains(&format!("- `{base}-chunk1` (20m0s left")), "{found}");

    // Changes and lists take the handle of the result.
    let refused = "This call has no namespace in working memory";
    for (tool, arguments) in [
        (tools::SAVE, json!({"key": "notes", "data": "x"})),
        (tools::SAVE, json!({"key": key, "data": "x"})),
        (tools::DELETE, json!({"key": key})),
        (tools::LIST, json!({})),
        (tools::LIST, json!({"namespace": base})),
        (tools::GET, json!({"key": "notes"})),
    ] {
        let text = read(tool, arguments.clone()).await;
        assert!(text.starts_with(refused), "{tool} {arguments}: {text}");
    }
    let handle = cut["_meta"][SESSION_META].as_str().expect("a handle").to_owned();
    let meta = Object::new().with(SESSION_META, Json::string(&handle));
    let with_handle = async |tool: &str, arguments: Value| {
        let call = Call {
            client: Arc::new(ModelClient),
            meta: meta.clone(),
            ..Call::tool(tool, Json::from_value(&arguments))
        };
        let Ok(Outcome::Done(output)) = harness.gateway.invoke(call).await else { panic!("no result") };
        output.body.to_json().to_value()["content"][0]["text"].as_str().expect("a text").to_owned()
    };
    assert!(with_handle(tools::SAVE, json!({"key": "notes", "data": "x"})).await.starts_with("Saved to"));
    let list = with_handle(tools::LIST, json!({})).await;
    assert!(list.contains("/notes` (") && list.contains("-chunk0` ("), "{list}");
    assert_eq!(with_handle(tools::GET, json!({"key": "notes"})).await, "x");
    // The id opens its result, and nothing else in the same namespace.
    let id = base.rsplit_once('/').expect("a namespace").0;
    for key in [format!("{id}/notes"), format!("{id}/tool-list_models-ffffff-chunk0"), format!("{id}/")] {
        let missing = format!("Working memory entry '{key}' not found or has expired.");
        assert_eq!(read(tools::GET, json!({"key": key})).await, missing);
        assert_eq!(read(tools::QUERY, json!({"key": key, "expression": "@"})).await, missing);
    }
    harness.store.pass(std::time::Duration::from_secs(20 * 60));
    assert!(read(tools::GET, json!({"key": key})).await.ends_with("not found or has expired."));
}

/// Ids and handles that a text may bring to a model, or a host to the gateway.
#[tokio::test]
async fn id_of_another_key_or_purpose_opens_nothing() {
    let harness = LargeResultHarness::small(json!({"content": [text(&"words of a result ".repeat(4))]}));
    let client = || -> Arc<dyn Client> { Arc::new(ModelClient) };
    let call = async |caller: Caller, tool: &str, arguments: Value, handle: Option<&str>| {
        let meta = handle.map(|handle| Object::new().with(SESSION_META, Json::string(handle)));
        let call = Call {
            client: client(),
            caller,
            meta: meta.unwrap_or_default(),
            ..Call::tool(tool, Json::from_value(&arguments))
        };
        let Ok(Outcome::Done(output)) = harness.gateway.invoke(call).await else { panic!("no result") };
        output.body.to_json().to_value()
    };
    let text_of = |result: &Value| result["content"][0]["text"].as_str().expect("a text").to_owned();
    let handle_of = |result: &Value| result["_meta"][SESSION_META].as_str().expect("a handle").to_owned();
    let cut = call(Caller::default(), "list_models", json!({}), None).await;
    let (key, handle) = (first_key(&cut), handle_of(&cut));
    let (id, rest) = key.strip_prefix("session/").and_then(|key| key.split_once('/')).expect("a path");
    let of_key = call(keyed("k7"), "list_models", json!({}), None).await;
    let (key_of_k7, handle_of_k7) = (first_key(&of_key), handle_of(&of_key));
    assert!(key_of_k7.starts_with("key/k7/"), "{key_of_k7}");
    call(Caller::default(), tools::SAVE, json!({"key": "notes", "data": "x"}), Some(&handle)).await;

    let mut forged = id.to_owned();
    forged.replace_range(20..21, if &id[20..21] == "A" { "B" } else { "A" });
    let unopened = async |caller: &Caller, handle: Option<&str>, key: &str| {
        for (tool, arguments) in [
            (tools::GET, json!({"key": key})),
            (tools::QUERY, json!({"key": key, "expression": "@"})),
            (tools::SEARCH, json!({"namespace": key})),
            (tools::DELETE, json!({"key": key})),
            (tools::LIST, json!({"namespace": key})),
        ] {
            let result = call(caller.clone(), tool, arguments, handle).await;
            assert!(!text_of(&result).contains("words"), "{tool} {key}: {result}");
            assert!(!text_of(&result).starts_with("Deleted"), "{tool} {key}: {result}");
        }
    };
    let nobody = Caller::default();
    // A forged id, an id of another key, and handles as a part of a key.
    unopened(&nobody, None, &format!("session/{forged}/{rest}")).await;
    unopened(&keyed("k7"), None, &key).await;
    unopened(&nobody, None, &key_of_k7).await;
    unopened(&keyed("k8"), Some(&handle_of_k7), &key_of_k7).await;
    unopened(&nobody, None, &format!("session/{handle}/{rest}")).await;
    unopened(&nobody, None, &format!("session/{handle}/notes")).await;
    // As a handle, neither a name, nor an id, nor a handle of another key, nor a forged one gives a namespace.
    for refused in ["abc123", id, &handle_of_k7, &forged, "tyid_", ""] {
        let result = call(nobody.clone(), tools::LIST, json!({}), Some(refused)).await;
        let answer = text_of(&result);
        assert!(
            answer.starts_with("The `toolyard/session` of this request is no valid handle"),
            "{refused}: {answer}"
        );
        assert_ne!(handle_of(&result), refused);
    }
    let own = text_of(&call(keyed("k7"), tools::LIST, json!({}), Some(&handle)).await);
    assert!(own.contains("`key/k7/tool-list_models"), "{own}");
    let own = text_of(&call(keyed("k8"), tools::LIST, json!({}), Some(&handle_of_k7)).await);
    assert!(own.contains("`key/k8`") && !own.contains("chunk"), "{own}");
    // An id that was planted in a text is no place to save to, with whatever handle.
    let planted = json!({"key": key, "data": "planted"});
    let saved = call(
        nobody.clone(),
        tools::SAVE,
        planted,
        Some(&handle_of(&call(nobody.clone(), tools::LIST, json!({}), None).await)),
    )
    .await;
    let place = text_of(&saved);
    assert!(
        place.starts_with("Saved to working memory as `session/") && place.contains(&format!("/{key}`")),
        "{place}"
    );
    assert!(text_of(&call(nobody.clone(), tools::GET, json!({"key": key}), None).await).starts_with("words"));
    // A handle lasts a day, and each result has one that lasts a day again.
    harness.store.pass(std::time::Duration::from_secs(23 * 3600));
    let renewed = handle_of(&call(nobody.clone(), tools::LIST, json!({}), Some(&handle)).await);
    harness.store.pass(std::time::Duration::from_secs(3600));
    let expired = call(nobody.clone(), tools::LIST, json!({}), Some(&handle)).await;
    assert!(text_of(&expired).contains("no valid handle"), "{expired}");
    let listed = call(nobody.clone(), tools::LIST, json!({}), Some(&renewed)).await;
    assert!(text_of(&listed).starts_with("There is nothing in working memory"), "{listed}");
}

/// A server could use the handle of its caller, and one that it sets would be that of another namespace.
#[tokio::test]
async fn servers_neither_get_nor_set_handles() {
    let planted = json!({"content": [text("short")], "_meta": {"toolyard/session": "tyid_planted"}});
    let harness = LargeResultHarness::small(planted);
    assert_eq!(harness.call("list_models", json!({}), json!({})).await, json!({"content": [text("short")]}));
    let kept = json!({"content": [text("short")], "_meta": {"toolyard/session": "tyid_planted", "a": 1}});
    let harness = LargeResultHarness::small(kept);
    let result = harness.call("list_models", json!({}), json!({"toolyard/session": "abc123"})).await;
    assert_eq!(result["_meta"], json!({"a": 1}));
    let echo = LargeResultHarness::small(json!("echo"));
    let result = echo.call("list_models", json!({}), json!({"toolyard/session": "abc123", "a": 1})).await;
    assert_eq!(result["content"][0]["text"], r#"{"a":1}"#);
    // What a holder of a key chooses is no secret.
    let (client, meta) = (Arc::new(ModelClient), Object::new().with(SESSION_META, Json::string("mine")));
    let call = Call { client, meta, caller: keyed("k7"), ..Call::tool("list_models", Json::null()) };
    let Ok(Outcome::Done(output)) = echo.gateway.invoke(call).await else { panic!("no result") };
    assert!(output.body.to_json().as_text().contains("mine"));
}
