use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::{Value, json};
use tokio::sync::watch;
use toolyard_core::access::Grant;
use toolyard_core::backend::{Catalog, Phase};
use toolyard_core::client::{Client, NoClient, Notice};
use toolyard_core::gate::{Gate, GateSize};
use toolyard_core::names::Names;
use toolyard_core::overrides::{Change, Chunking, Override, Overrides};
use toolyard_core::registry::{Disclosure, Handler, Limits, Show};
use toolyard_core::{Backend, Gateway, Object, Task, Tool};

use super::*;
use crate::memory::testing::Kept;
use crate::memory::tools::{self, MemoryTools};
use crate::memory::{MemoryLimits, Namespace};

/// Answers each call with one result.
struct Fixed {
    catalog: watch::Sender<Arc<Catalog>>,
    result: Value,
}

impl Backend for Fixed {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    fn call(&self, _: Call) -> BoxFuture<'_, Answer> {
        let body = Json::from_value(&self.result).to_object().expect("an object");
        let is_error = self.result["isError"] == true;
        ready(Ok(Outcome::Done(Output { body, is_error }))).boxed()
    }
}

fn fixed(tools: &[(&str, bool)], result: Value) -> Arc<dyn Backend> {
    let tool = |(name, has_schema): &(&str, bool)| {
        let schema = Json::parse(r#"{"type":"object"}"#).expect("JSON");
        let rest = if *has_schema { Object::new().with("outputSchema", schema) } else { Object::new() };
        Arc::new(Tool::named(name, rest))
    };
    let tools = tools.iter().map(tool).collect();
    let catalog = Catalog { phase: Phase::Ready, tools, ..Catalog::default() };
    Arc::new(Fixed { catalog: watch::Sender::new(Arc::new(catalog)), result })
}

/// A client with a model behind it.
#[derive(Debug)]
struct Model;

impl Client for Model {
    fn capabilities(&self) -> Option<&Json> {
        None
    }

    fn listens(&self) -> bool {
        false
    }

    fn calls_tools(&self) -> bool {
        true
    }

    fn notify(&self, _: Notice) {}
}

/// What the manifest says of two of the tools.
fn overrides() -> Overrides {
    let chunking = |chunking| Override::Change(Change { chunking, ..Change::default() });
    let strict = Chunking { threshold: Some(10), ..Chunking::default() };
    let loose = Chunking { structured: Some(true), ..Chunking::default() };
    [("strict".into(), chunking(strict)), ("loose".into(), chunking(loose))].into()
}

struct Yard {
    kept: Arc<Kept>,
    memory: WorkingMemory,
    gateway: Gateway,
}

impl Yard {
    fn new(result: Value, options: LargeOptions, limits: MemoryLimits) -> Self {
        let (kept, memory) = Kept::memory(limits);
        let tools = [("list_models", false), ("strict", false), ("loose", true), ("typed", true)];
        let server = toolyard_sdk::Server::new("memory", "1.0.0");
        let server = tools::add(server, MemoryTools::new(memory.clone())).expect("tools");
        let backends = [("fixed", fixed(&tools, result)), ("memory", server.into_backend())];
        let parts = backends.map(|(name, backend): (_, Arc<dyn Backend>)| {
            let gate = Gate::new(GateSize { running: 10, waiting: 10 });
            let catalog = backend.catalog().borrow().clone();
            let limits = Limits { timeout: std::time::Duration::from_secs(30), gate };
            let overrides = Arc::new(overrides());
            let reader = Some(tools::GET.into());
            let (show, budget, pinned, finders) = (Show::All, 0, Vec::new(), Vec::new());
            let disclosure = Arc::new(Disclosure { show, budget, pinned, finders, reader });
            let disclosure = (name == "memory").then_some(disclosure);
            (Handler { overrides, disclosure, ..Handler::new(name, backend, limits) }, catalog)
        });
        let registry = Arc::new(Registry::assemble(&parts, &mut Names::default()));
        let registry = watch::Sender::new(registry).subscribe();
        let settings = LargeSettings { memory: memory.clone(), handler: "memory".into(), options };
        let settings = watch::Sender::new(Some(Arc::new(settings))).subscribe();
        let gateway = Gateway::new(registry.clone(), vec![Box::new(LargeResults::new(settings, registry))]);
        Self { kept, memory, gateway }
    }

    fn small(result: Value) -> Self {
        let options = LargeOptions { threshold: 40, least_chunk: 20, ..LargeOptions::default() };
        Self::new(result, options, MemoryLimits::default())
    }

    async fn call(&self, tool: &str, arguments: Value, meta: Value) -> Value {
        self.call_by(Arc::new(Model), Caller::default(), tool, arguments, meta).await
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
        call.meta = Json::from_value(&meta).to_object().expect("an object");
        match self.gateway.invoke(call).await {
            Ok(Outcome::Done(output)) => output.body.to_json().to_value(),
            other => panic!("{other:?}"),
        }
    }

    /// The result that a model of the session `abc123` gets, each run under the same key.
    async fn result(&self, tool: &str) -> Value {
        let result = self.call(tool, json!({}), json!({"toolyard/session": "abc123"})).await;
        let mut shown = result.to_string();
        let keys = self.memory.list(&Namespace::new("session", "abc123")).await.unwrap_or_default();
        if let Some(base) = keys.first().and_then(|record| keys::base(&record.key)) {
            shown = shown.replace(base, &format!("session/abc123/tool-{tool}-a1b2c3"));
        }
        serde_json::from_str(&shown).expect("JSON")
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// What stands on the page that this is made after.
#[test]
fn the_message_is_the_documented_one() {
    let (namespace, _) = Namespace::of_path("session/abc123/x").expect("a path");
    let base = keys::named(&namespace, "list_models", "a1b2c3");
    let result = "x".repeat(462_000);
    let chunks: Vec<_> = chunk::chunks(&result, 20_087).collect();
    let pieces = message::pieces(&base, &chunks);
    insta::assert_snapshot!(message::message("list_models", &result, &pieces, &keys::index(&base)));
}

#[test]
fn the_outline_is_the_documented_one() {
    let (namespace, _) = Namespace::of_path("session/abc123/x").expect("a path");
    let base = keys::named(&namespace, "list_models", "a1b2c3");
    let result = "# Models Overview\na\n# Pricing\nb\n# Context Windows\nc\n# Token Limits\nd\n";
    let chunks: Vec<_> = chunk::chunks(result, 20_000).collect();
    insta::assert_snapshot!(message::outline(&message::pieces(&base, &chunks), &chunks));
}

#[tokio::test]
async fn what_becomes_of_results() {
    let long = "# One\nfirst words of it\n## Two | b\nsecond words of it";
    let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
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
            json!({"content": [image, text("first words of several,"), link, text("second words of several")]}),
        ),
        (
            "only an image",
            "list_models",
            json!({"content": [json!({"type": "image", "data": "A".repeat(100), "mimeType": "image/png"})]}),
        ),
        (
            "structure, told twice",
            "list_models",
            json!({"content": [text(&records.to_string())], "structuredContent": records}),
        ),
        ("structure alone", "list_models", json!({"content": [], "structuredContent": records})),
        (
            "a list, told item by item",
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
            json!({"content": [text(long)], "structuredContent": records}),
        ),
        ("a failure where structure is promised", "typed", json!({"content": [text(long)], "isError": true})),
        (
            "structure that is given up",
            "loose",
            json!({"content": [text(&records.to_string())], "structuredContent": records}),
        ),
    ];
    let mut shown = Vec::new();
    for (what, tool, result) in cases {
        let after = Yard::small(result.clone()).result(tool).await;
        let after =
            if after == result { "as it was".to_owned() } else { format!("{after:#}").replace("\\n", "\n") };
        shown.push(format!("=== {what}\n{after}"));
    }
    insta::assert_snapshot!(shown.join("\n"));
}

#[tokio::test]
async fn what_came_of_a_task_is_a_result() {
    let check = async |status: &str, result: Value, expected: &str| {
        let yard = Yard::small(json!({"taskId": "7", "status": status, "result": result}));
        let (tool, handler, id) = ("list_models".into(), "fixed".into(), "7".into());
        let target = Target::Task(Task { tool, handler, id, action: TaskAction::Get });
        let meta = Object::new().with("toolyard/session", Json::string("abc123"));
        let call = Call { client: Arc::new(Model), target, meta, ..Call::tool("", Json::null()) };
        let Ok(Outcome::Done(output)) = yard.gateway.invoke(call).await else { panic!("no task") };
        let body = output.body.to_json().to_value();
        assert_eq!((&body["taskId"], &body["status"]), (&json!("7"), &json!(status)));
        let told = body["result"]["content"][0]["text"].as_str().unwrap_or("nothing");
        assert!(told.starts_with(expected), "{body}");
    };
    let long = json!({"content": [text(&"long ".repeat(20))]});
    check("completed", long, "Tool result for 'list_models' is large (100 chars)").await;
    check("completed", json!({"content": [text("short")]}), "short").await;
    check("working", Value::Null, "nothing").await;
}

#[tokio::test]
async fn a_result_is_truncated_where_working_memory_does_not_take_it() {
    let result = json!({"content": [text("first words,"), text(&"é".repeat(50)), text("lost")], "structuredContent": {"a": 1}});
    let told = async |yard: &Yard, meta: Value| {
        let result = yard.call("list_models", json!({}), meta).await;
        format!("{result:#}").replace("\\n", "\n")
    };
    let session = json!({"toolyard/session": "abc123"});
    let without = told(&Yard::small(result.clone()), json!({})).await;
    let options = LargeOptions { threshold: 40, least_chunk: 20, ..LargeOptions::default() };
    let limits = MemoryLimits { entries: 2, ..MemoryLimits::default() };
    let full = told(&Yard::new(result.clone(), options, limits), session.clone()).await;
    let away = Yard::small(result);
    away.kept.go_away();
    let away = told(&away, session).await;
    insta::assert_snapshot!([without, full, away].join("\n---\n"));
}

#[tokio::test]
async fn who_sees_no_working_memory_gets_all() {
    let result = json!({"content": [text(&"x".repeat(1000))]});
    let yard = Yard::small(result.clone());
    let check = async |client: Arc<dyn Client>, scope: &str| {
        let scope = [scope.parse().expect("a pattern")].into_iter().collect();
        let grant = Grant { scope, ..Grant::default() };
        let caller = Caller { grant: Some(Arc::new(grant)), ..Caller::default() };
        let session = json!({"toolyard/session": "a"});
        let told = yard.call_by(client, caller, "list_models", json!({}), session).await;
        assert_eq!(told, result);
        assert_eq!(yard.kept.len(), 0);
    };
    check(Arc::new(NoClient), "*").await;
    check(Arc::new(Model), "fixed/*").await;
}

/// What a model does with a result of a server that returns a list of models.
#[tokio::test]
async fn a_large_result_is_found_again_whole() {
    let models: Vec<_> = (0..3000)
        .map(|n| json!({"id": format!("vendor/model-{n}"), "context": n * 10, "about": "é".repeat(30)}))
        .collect();
    let whole = json!({"data": models}).to_string();
    let yard =
        Yard::new(json!({"content": [text(&whole)]}), LargeOptions::default(), MemoryLimits::default());
    let meta = json!({"toolyard/session": "abc123"});
    let told = yard.call("list_models", json!({}), meta.clone()).await;
    let told = told["content"][0]["text"].as_str().expect("a text");
    assert!(told.chars().count() < 2000, "{told}");
    let keys: Vec<_> = told
        .lines()
        .filter(|line| line.starts_with("| "))
        .filter_map(|line| line.split('`').nth(1))
        .collect();
    let mut joined = String::new();
    for key in &keys {
        // Longer than is large: it is not put there again.
        let chunk = yard.call(tools::GET, json!({"key": key}), meta.clone()).await;
        joined.push_str(chunk["content"][0]["text"].as_str().expect("a text"));
    }
    assert!(joined == whole, "{} chunks are not the result", keys.len());
    let base = keys::base(keys[0]).expect("a key of a result");
    for key in [keys[0], base, &keys::index(base), &keys::chunk(base, 1)] {
        let arguments = json!({"key": key, "expression": "data[?context > `29970`].id"});
        let selected = yard.call(tools::QUERY, arguments, meta.clone()).await;
        assert_eq!(selected["content"][0]["text"], r#"["vendor/model-2998","vendor/model-2999"]"#, "{key}");
    }
    let outline = yard.call(tools::GET, json!({"key": keys::index(base)}), meta.clone()).await;
    let outline = outline["content"][0]["text"].as_str().expect("a text").to_owned();
    assert!(keys.iter().all(|key| outline.contains(&format!("→ `{key}`"))), "{outline}");
    yard.call(tools::DELETE, json!({"key": keys[1]}), meta.clone()).await;
    let told = yard.call(tools::QUERY, json!({"key": base, "expression": "@"}), meta.clone()).await;
    let told = told["content"][0]["text"].as_str().expect("a text").replace(base, "BASE");
    insta::assert_snapshot!(told);
    yard.kept.pass(std::time::Duration::from_secs(20 * 60));
    let gone = yard.call(tools::GET, json!({"key": keys[0]}), meta).await;
    assert!(gone["content"][0]["text"].as_str().expect("a text").ends_with("not found or has expired."));
}

#[tokio::test]
async fn a_table_is_never_longer_than_what_it_leads_to() {
    let headings: String = (0..5000).map(|n| format!("## Heading {n}\nsome words\n")).collect();
    let yard =
        Yard::new(json!({"content": [text(&headings)]}), LargeOptions::default(), MemoryLimits::default());
    let told = yard.result("list_models").await;
    let told = told["content"][0]["text"].as_str().expect("a text");
    insta::assert_snapshot!(told);
}

/// It is opened elsewhere, and nothing of it is written.
#[tokio::test]
async fn a_result_that_is_larger_than_all_memory_is_truncated() {
    let result = json!({"content": [text(&"words, ".repeat(300_000))]});
    let limits = MemoryLimits { bytes: 1_000_000, ..MemoryLimits::default() };
    let yard = Yard::new(result, LargeOptions::default(), limits);
    let told = yard.call("list_models", json!({}), json!({"toolyard/session": "abc123"})).await;
    let told = told["content"][0]["text"].as_str().expect("a text");
    assert_eq!(told.chars().take_while(|c| *c != '[').count(), 64_001);
    insta::assert_snapshot!(&told[64_001..]);
    assert_eq!(yard.kept.len(), 0);
}

/// The most memory that this process has had so far, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") * 1024
}

/// What it takes is its text once more; its pieces are parts of that.
#[tokio::test]
async fn a_result_of_a_hundred_megabytes_is_cut_in_bounded_memory() {
    let section = r"## Heading\nwords of the section\n\n";
    let count = 100_000_000 / section.len() + 1;
    let body = format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, section.repeat(count));
    let size = body.len();
    let output = Output { body: Object::parse(body).expect("an object"), is_error: false };
    let before = peak();
    let content = Content::over(&output, 64_000, false).await.expect("it is large");
    let opened = peak();
    assert!(opened - before < size * 5 / 4, "{} bytes to open {size}", opened - before);
    let text = content.text();
    let pieces = LargeOptions::default().chunks(&text, 64_000);
    assert!(pieces.iter().all(|piece| piece.content.chars().count() <= 64_000));
    assert_eq!(pieces.iter().map(|piece| piece.content.matches("words").count()).sum::<usize>(), count);
    assert!(peak() - opened < 16_000_000, "{} bytes to cut it", peak() - opened);
}

/// Sections of their own are a convenience: there is room for few entries, but for much text.
#[tokio::test]
async fn where_entries_run_short_sections_share_a_piece() {
    let sections: String = (0..9).map(|n| format!("# Section {n}\nsome words\n")).collect();
    let options = LargeOptions { threshold: 40, least_chunk: 120, ..LargeOptions::default() };
    let limits = MemoryLimits { entries: 5, ..MemoryLimits::default() };
    let yard = Yard::new(json!({"content": [text(&sections)]}), options, limits);
    let told = yard.result("list_models").await;
    let told = told["content"][0]["text"].as_str().expect("a text");
    assert!(told.contains("has been split into 2 chunk(s)"), "{told}");
}

/// What looks like headings are comments.
#[tokio::test]
async fn no_line_of_a_program_is_lost() {
    let program: String = (0..4000).map(|n| format!("# comment {n},\n# which goes on\nx = {n}\n")).collect();
    let yard =
        Yard::new(json!({"content": [text(&program)]}), LargeOptions::default(), MemoryLimits::default());
    yard.result("list_models").await;
    let records = yard.memory.list(&Namespace::new("session", "abc123")).await.expect("a store");
    let mut kept = String::new();
    for record in records.iter().filter(|record| record.chunks.is_none()) {
        kept.push_str(&yard.memory.value(record).await.expect("a store").expect("a value"));
    }
    assert!(kept == program, "{} of {} bytes are left", kept.len(), program.len());
}

#[test]
fn guides_name_the_tools_that_there_are() {
    for guide in [GUIDE, crate::memory::GUIDE] {
        let named = guide.document.split(|c: char| !c.is_ascii_lowercase() && c != '_');
        for name in named.filter(|word| word.ends_with("_working_memory")) {
            assert!(tools::NAMES.contains(&name), "{name} in {}", guide.name);
        }
        assert!(guide.document.starts_with("# ") && !guide.summary.contains('\n'));
    }
}
