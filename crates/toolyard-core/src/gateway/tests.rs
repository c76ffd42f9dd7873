use std::sync::Mutex;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::*;
use crate::backend::{Backend, Catalog};
use crate::error::{ErrorCode, ToolError};
use crate::json::{Json, Object};
use crate::layers::{CallEnding, ObservedCall};
use crate::outcome::{CallOutput, Outcome};
use crate::overrides::{ArgumentChange, DefinitionOverride, Override};
use crate::registry::{HandlerEntry, RegistryEntry};
use crate::testing::{FakeBackend, handler, registry_of};

/// Records the result of every call.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Notes {
    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

impl CallObserver for Notes {
    fn begin<'a>(&'a self, call: &mut Call, entry: &'a RegistryEntry) -> Option<Box<dyn ObservedCall + 'a>> {
        // Counts the observers of the call so far; the backend and later observers see the count.
        let seen = call.meta.get("seen").and_then(|seen| seen.as_text().parse().ok()).unwrap_or(0);
        call.meta.set("seen", Json::integer(seen + 1));
        Some(Box::new(Note { notes: self, entry, seen }))
    }

    fn unknown(&self, call: &Call, error: &ToolError) {
        self.note(format!("{} {:?}", call.target.name(), error.code()));
    }
}

struct Note<'a> {
    notes: &'a Notes,
    entry: &'a RegistryEntry,
    seen: i64,
}

impl ObservedCall for Note<'_> {
    fn end(self: Box<Self>, ended: CallEnding<'_>) {
        let of = if self.seen == 0 { "" } else { " (upstream request)" };
        self.notes.note(format!("{}{of} {:?} {:?}", self.entry.name, ended.verdict(), ended.took));
    }
}

fn observers(notes: &Arc<Notes>) -> Observers {
    Observers { of_calls: vec![notes.clone()], of_upstream_requests: vec![notes.clone()] }
}

const TOOL: &str =
    r#"{"name":"t","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}"#;

fn gateway(notes: &Arc<Notes>) -> Gateway {
    let fake = FakeBackend::new(&[TOOL], Box::new(behave));
    let registry = registry_of(&[handler("h", fake)]);
    let (_, registry) = watch::channel(registry);
    Gateway::new(registry, Gateway::layers(observers(notes), GateSize { running: 2, waiting: 0 }, None, None))
}

/// Runs the tool; its argument selects the result.
fn behave(call: Call) -> BoxFuture<'static, CallResult> {
    Box::pin(async move {
        match call.arguments().map(Json::as_text) {
            Some(r#"{"n":1}"#) => Ok(Outcome::Done(CallOutput::failure("no"))),
            Some(r#"{"n":2}"#) => panic!("two is too much"),
            Some(r#"{"n":3}"#) => std::future::pending().await,
            _ => Ok(Outcome::Done(CallOutput::text("yes"))),
        }
    })
}

async fn call(gateway: &Gateway, name: &str, arguments: &str) -> String {
    let arguments = Json::parse(arguments.to_owned()).unwrap();
    match gateway.invoke(Call::tool(name, arguments)).await {
        Ok(Outcome::Done(output)) => output.body.to_json().as_text().to_owned(),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("{:?}: {error}", error.code()),
    }
}

#[tokio::test(start_paused = true)]
async fn results_of_calls_are_observed() {
    let notes = Arc::new(Notes::default());
    let gateway = gateway(&notes);
    let mut ends = Vec::new();
    for (name, arguments) in [
        ("t", r#"{"n":0}"#),
        ("t", r#"{"n":1}"#),
        ("t", r#"{"n":2}"#),
        ("t", r#"{"n":3}"#),
        ("t", r#"{"n":"x"}"#),
        ("t", "null"),
        ("t", r#"{"n":0,"n":1}"#),
        ("unknown", "{}"),
    ] {
        ends.push(call(&gateway, name, arguments).await);
    }
    insta::assert_snapshot!(ends.join("\n"), @r#"
    {"content":[{"type":"text","text":"yes"}]}
    {"content":[{"type":"text","text":"no"}],"isError":true}
    ExecutionFailed: The call failed because of a fault in the server
    Timeout: The tool did not answer in time
    InvalidArguments: Invalid arguments: /n: value is not of type "integer"
    InvalidArguments: Invalid arguments: "n" is a required property
    InvalidArguments: Invalid arguments: a member is named twice in the object
    ToolNotFound: Unknown tool: unknown
    "#);
    insta::assert_snapshot!(notes.0.lock().unwrap().join("\n"), @"
    t (upstream request) Ok(true) 0ns
    t Ok(true) 0ns
    t (upstream request) Ok(false) 0ns
    t Ok(false) 0ns
    t (upstream request) Err(ExecutionFailed) 0ns
    t Err(ExecutionFailed) 0ns
    t (upstream request) Err(Cancelled) 30s
    t Err(Timeout) 30s
    t Err(InvalidArguments) 0ns
    t Err(InvalidArguments) 0ns
    t Err(InvalidArguments) 0ns
    unknown ToolNotFound
    ");
}

#[tokio::test(start_paused = true)]
async fn dropped_call_is_observed_and_returns_its_permit() {
    let notes = Arc::new(Notes::default());
    let gateway = gateway(&notes);
    let mut hanging = Box::pin(call(&gateway, "t", r#"{"n":3}"#));
    let mut other = Box::pin(call(&gateway, "t", r#"{"n":3}"#));
    assert!(hanging.as_mut().now_or_never().is_none() && other.as_mut().now_or_never().is_none());
    assert!(call(&gateway, "t", r#"{"n":0}"#).await.starts_with(&format!("{:?}", ErrorCode::Overloaded)));
    drop(hanging);
    assert!(call(&gateway, "t", r#"{"n":0}"#).await.contains("yes"));
    assert!(notes.0.lock().unwrap().iter().any(|note| note.starts_with("t Err(Cancelled)")));
}

#[tokio::test(start_paused = true)]
async fn call_waits_for_the_first_registry() {
    let fake = FakeBackend::new(&[TOOL], Box::new(behave));
    let (sender, registry) = watch::channel(Arc::default());
    let gateway = Gateway::new(registry, Vec::new());
    let publish = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        sender.send_replace(registry_of(&[handler("h", fake)]));
    };
    let (answer, ()) = tokio::join!(call(&gateway, "t", "{}"), publish);
    assert!(answer.contains("yes"));
}

/// Arguments are checked against the published schema; the backend receives the added arguments too.
#[tokio::test(start_paused = true)]
async fn pinned_and_default_arguments_reach_the_backend() {
    let definition = r#"{"name":"t","inputSchema":{"properties":{"a":{"type":"integer"},"b":{},"c":{"type":"integer"}},
        "required":["a","c"]}}"#;
    let echo = |call: Call| -> futures_util::future::BoxFuture<'static, CallResult> {
        Box::pin(async move { Ok(Outcome::Done(CallOutput::text(call.params.to_json().as_text()))) })
    };
    let change = DefinitionOverride {
        name: Some("u".into()),
        arguments: [
            ("a".to_owned(), ArgumentChange::Pin(Json::parse("1.10").unwrap())),
            ("c".to_owned(), ArgumentChange::Show { default: Some(Json::integer(3)), description: None }),
        ]
        .into(),
        ..DefinitionOverride::default()
    };
    let overrides = Arc::new([("t".into(), Override::Change(change))].into());
    let handler = HandlerEntry { overrides, ..handler("h", FakeBackend::new(&[definition], Box::new(echo))) };
    let (_, registry) = watch::channel(registry_of(&[handler]));
    let layers = Gateway::layers(Observers::default(), GateSize { running: 1, waiting: 0 }, None, None);
    let gateway = Gateway::new(registry, layers);
    let mut ends = Vec::new();
    for arguments in ["{}", "null", r#"{"b":1e2,"c":5}"#, r#"{"a":1}"#, r#"{"c":"x"}"#, r#"{"c":null}"#] {
        ends.push(call(&gateway, "u", arguments).await.replace('\\', ""));
    }
    ends.push(call(&gateway, "t", "{}").await);
    insta::assert_snapshot!(ends.join("\n"), @r#"
    {"content":[{"type":"text","text":"{"arguments":{"a":1.10,"c":3}}"}]}
    {"content":[{"type":"text","text":"{"arguments":{"a":1.10,"c":3}}"}]}
    {"content":[{"type":"text","text":"{"arguments":{"b":1e2,"c":5,"a":1.10}}"}]}
    InvalidArguments: Invalid arguments: Additional properties are not allowed ('a' was unexpected)
    InvalidArguments: Invalid arguments: /c: value is not of type "integer"
    InvalidArguments: Invalid arguments: /c: value is not of type "integer"
    ToolNotFound: Unknown tool: t. Did you mean `u`?
    "#);
}

/// A client that answers once it has a permit.
#[derive(Debug)]
struct WaitingClient {
    capabilities: Json,
    answers: tokio::sync::Semaphore,
}

impl crate::Client for WaitingClient {
    fn capabilities(&self) -> Option<&Json> {
        Some(&self.capabilities)
    }

    fn listens(&self) -> bool {
        false
    }

    fn notify(&self, _notice: crate::ClientNotification) {}

    fn ask(
        &self,
        _ask: crate::InputRequest,
    ) -> futures_util::future::BoxFuture<'_, Result<Json, crate::InputRequestError>> {
        Box::pin(async move {
            self.answers.acquire().await.unwrap().forget();
            Ok(Json::null())
        })
    }
}

/// Creates a gateway with one tool that asks its client, then runs for a second. `at_work` counts the running calls.
fn asking(at_work: &Arc<std::sync::atomic::AtomicUsize>) -> Gateway {
    use std::sync::atomic::Ordering::Relaxed;
    let at_work = at_work.clone();
    let behave = move |call: Call| -> futures_util::future::BoxFuture<'static, CallResult> {
        let at_work = at_work.clone();
        Box::pin(async move {
            let ask =
                crate::InputRequest { kind: crate::InputRequestKind::Elicit, params: crate::Object::new() };
            call.client.ask(ask).await?;
            at_work.fetch_add(1, Relaxed);
            tokio::time::sleep(Duration::from_secs(1)).await;
            at_work.fetch_sub(1, Relaxed);
            Ok(Outcome::Done(CallOutput::text("yes")))
        })
    };
    let fake = FakeBackend::new(&[r#"{"name":"t"}"#], Box::new(behave));
    let (_, registry) = watch::channel(registry_of(&[handler("h", fake)]));
    Gateway::new(
        registry,
        Gateway::layers(Observers::default(), GateSize { running: 1, waiting: 0 }, None, None),
    )
}

#[tokio::test(start_paused = true)]
async fn call_waiting_for_its_client_frees_its_permit() {
    let at_work = Arc::default();
    let gateway = asking(&at_work);
    let capabilities = Json::parse(r#"{"elicitation":{}}"#).unwrap();
    let client = Arc::new(WaitingClient { capabilities, answers: tokio::sync::Semaphore::new(0) });
    let ask = || {
        let call = Call { client: client.clone(), ..Call::tool("t", crate::Object::new().to_json()) };
        Box::pin(gateway.invoke(call))
    };
    let mut calls = [ask(), ask(), ask()];
    for call in &mut calls {
        assert!(call.now_or_never().is_none(), "it waits for the client, and admits other calls");
    }
    // A call dropped during its question has returned its permit once.
    drop(ask());
    client.answers.add_permits(3);
    let [one, two, three] = &mut calls;
    let watch = async {
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(500)).await;
            assert_eq!(at_work.load(std::sync::atomic::Ordering::Relaxed), 1, "one call runs at a time");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    let (one, two, three, ()) = tokio::join!(one, two, three, watch);
    assert!([one, two, three].iter().all(Result::is_ok));
    drop(calls);
    // Every permit was returned exactly once.
    let mut calls = [ask(), ask()];
    client.answers.add_permits(2);
    let [one, two] = &mut calls;
    assert!(one.now_or_never().is_none());
    assert!(
        two.now_or_never().is_some_and(|answer| answer.is_err()),
        "no permit is left, and there is no queue"
    );
}

#[tokio::test(start_paused = true)]
async fn call_waiting_for_a_slow_handler_holds_no_gateway_permit() {
    let behave = |call: Call| -> futures_util::future::BoxFuture<'static, CallResult> {
        Box::pin(async move {
            match &**call.target.name() {
                "ask" => {
                    let ask = crate::InputRequest {
                        kind: crate::InputRequestKind::Roots,
                        params: crate::Object::new(),
                    };
                    call.client.ask(ask).await?;
                }
                "wait" => std::future::pending().await,
                _ => {}
            }
            Ok(Outcome::Done(CallOutput::text("yes")))
        })
    };
    let slow = FakeBackend::new(&[r#"{"name":"ask"}"#, r#"{"name":"wait"}"#], Box::new(behave));
    let other = FakeBackend::new(&[r#"{"name":"echo"}"#], Box::new(behave));
    let mut slow = handler("slow", slow);
    let gate = crate::gate::CallGate::new(GateSize { running: 1, waiting: 10 });
    slow.limits = Arc::new(crate::registry::CallLimits { timeout: Duration::from_secs(1000), gate });
    let (_, registry) = watch::channel(registry_of(&[slow, handler("other", other)]));
    let layers = Gateway::layers(Observers::default(), GateSize { running: 2, waiting: 10 }, None, None);
    let gateway = Gateway::new(registry, layers);
    let capabilities = Json::parse(r#"{"roots":{}}"#).unwrap();
    let client = Arc::new(WaitingClient { capabilities, answers: tokio::sync::Semaphore::new(0) });
    let call = |name: &str| {
        let call = Call { client: client.clone(), ..Call::tool(name, crate::Object::new().to_json()) };
        Box::pin(gateway.invoke(call))
    };
    let (mut asks, mut waits) = (call("ask"), call("wait"));
    assert!((&mut asks).now_or_never().is_none() && (&mut waits).now_or_never().is_none());
    client.answers.add_permits(1);
    assert!((&mut asks).now_or_never().is_none(), "the slow handler has no permit left");
    assert!(call("echo").now_or_never().is_some(), "other handlers are not affected");
}

/// A backend whose tool `other` forwards to the tool named by its argument.
struct Forwarding(Arc<FakeBackend>);

impl Backend for Forwarding {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.0.catalog()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, CallResult> {
        self.0.call(call)
    }

    fn forward(&self, own: &str, call: &Call, registry: &Registry) -> Option<Call> {
        let arguments = call.arguments()?.to_object().ok().filter(|_| own == "other")?;
        let target = arguments.get_str("target").filter(|target| registry.tool(target).is_ok())?;
        Some(call.of(&*target, arguments.get("with")?.clone()))
    }
}

#[tokio::test(start_paused = true)]
async fn forwarded_call_passes_the_layers_of_its_target() {
    let notes = Arc::new(Notes::default());
    let own =
        |_| Box::pin(async { Ok(Outcome::Done(CallOutput::text("by itself"))) }) as BoxFuture<'static, _>;
    let other = r#"{"name":"other","inputSchema":{"type":"object"}}"#;
    let forwarding = Forwarding(FakeBackend::new(&[other], Box::new(own)));
    let tasks = r#"{"name":"tasks","inputSchema":{"type":"object"}}"#;
    let start_task = |_| {
        let task = Object::new().with("taskId", Json::string("7"));
        Box::pin(async { Ok(Outcome::Task(task.into())) }) as BoxFuture<'static, _>
    };
    let handlers = [
        handler("h", FakeBackend::new(&[TOOL], Box::new(behave))),
        handler("f", Arc::new(forwarding)),
        handler("later", FakeBackend::new(&[tasks], Box::new(start_task))),
    ];
    let (_, registry) = watch::channel(registry_of(&handlers));
    let layers = Gateway::layers(observers(&notes), GateSize { running: 2, waiting: 0 }, None, None);
    let gateway = Gateway::new(registry, layers);
    let mut ends = Vec::new();
    for arguments in [
        r#"{"target":"t","with":{"n":0}}"#,
        r#"{"target":"t","with":{"n":"x"}}"#,
        r#"{"target":"unknown","with":{}}"#,
        r#"{"target":"other","with":{"target":"t","with":{"n":0}}}"#,
        r#"{"target":"tasks","with":{}}"#,
        "{}",
    ] {
        ends.push(call(&gateway, "other", arguments).await);
    }
    insta::assert_snapshot!(ends.join("\n"), @r#"
    {"content":[{"type":"text","text":"yes"}]}
    InvalidArguments: Invalid arguments: /n: value is not of type "integer"
    {"content":[{"type":"text","text":"by itself"}]}
    {"content":[{"type":"text","text":"by itself"}]}
    Task(StartedTask { body: {"\"taskId\""}, owner: Some(TaskOwner { tool: "tasks", handler: "later" }), is_here: false })
    {"content":[{"type":"text","text":"by itself"}]}
    "#);
    insta::assert_snapshot!(notes.0.lock().unwrap().join("\n"), @"
    t (upstream request) Ok(true) 0ns
    t Ok(true) 0ns
    t Err(InvalidArguments) 0ns
    other (upstream request) Ok(true) 0ns
    other Ok(true) 0ns
    other (upstream request) Ok(true) 0ns
    other Ok(true) 0ns
    tasks (upstream request) Ok(true) 0ns
    tasks Ok(true) 0ns
    other (upstream request) Ok(true) 0ns
    other Ok(true) 0ns
    ");
}

/// A task would run on although its result cannot be read.
#[tokio::test]
async fn call_that_cannot_end_is_refused_and_its_task_cancelled() {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = requests.clone();
    let run = move |call: Call| {
        let arguments = call.arguments().map(|arguments| arguments.as_text().to_owned());
        let target = format!("{:?} {}", call.target, arguments.as_deref().unwrap_or("-"));
        seen.lock().unwrap().push(target);
        let outcome = match arguments.as_deref() {
            Some(r#"{"n":1}"#) => Outcome::NeedsInput(Object::new()),
            Some(r#"{"n":2}"#) => Outcome::Task(Object::new().with("taskId", Json::string("7")).into()),
            Some(r#"{"n":3}"#) => Outcome::Task(Object::new().into()),
            _ => Outcome::Done(CallOutput::text("yes")),
        };
        Box::pin(async { Ok(outcome) }) as BoxFuture<'static, _>
    };
    let (_, registry) =
        watch::channel(registry_of(&[handler("h", FakeBackend::new(&[TOOL], Box::new(run)))]));
    let gateway = Gateway::new(registry, Vec::new());
    let mut ends = Vec::new();
    for arguments in [r#"{"n":0}"#, r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#] {
        let call = Call::tool("t", Json::parse(arguments.to_owned()).unwrap());
        ends.push(match gateway.invoke_to_end(call).await {
            Ok(output) => output.body.to_json().as_text().to_owned(),
            Err(error) => format!("{:?}: {error}", error.code()),
        });
    }
    ends.append(&mut requests.lock().unwrap());
    insta::assert_snapshot!(ends.join("\n"), @r#"
    {"content":[{"type":"text","text":"yes"}]}
    MissingCapability: the tool requests input from its caller, which only MCP supports
    MissingCapability: the tool continues as a task, which only MCP supports
    MissingCapability: the tool continues as a task, which only MCP supports
    Tool("t") {"n":0}
    Tool("t") {"n":1}
    Tool("t") {"n":2}
    Task(TaskReference { tool: "t", handler: "h", id: "7", action: Cancel }) -
    Tool("t") {"n":3}
    "#);
}
