use std::sync::Mutex;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::*;
use crate::backend::{Backend, Catalog};
use crate::error::{Code, ToolError};
use crate::json::{Json, Object};
use crate::layers::{Ended, Observation};
use crate::outcome::{Outcome, Output};
use crate::overrides::{Argument, Change, Override};
use crate::registry::{Entry, Handler};
use crate::testing::{FakeBackend, handler, registry_of};

/// Notes how calls ended.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Notes {
    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

impl Observer for Notes {
    fn begin<'a>(&'a self, call: &mut Call, entry: &'a Entry) -> Box<dyn Observation + 'a> {
        // What the backend is to see, and who comes next.
        let seen = call.meta.get("seen").and_then(|seen| seen.as_text().parse().ok()).unwrap_or(0);
        call.meta.set("seen", Json::integer(seen + 1));
        Box::new(Note { notes: self, entry, seen })
    }

    fn unknown(&self, call: &Call, error: &ToolError) {
        self.note(format!("{} {:?}", call.target.name(), error.code()));
    }
}

struct Note<'a> {
    notes: &'a Notes,
    entry: &'a Entry,
    seen: i64,
}

impl Observation for Note<'_> {
    fn end(self: Box<Self>, ended: Ended<'_>) {
        let of = if self.seen == 0 { "" } else { " (the leg)" };
        self.notes.note(format!("{}{of} {:?} {:?}", self.entry.name, ended.verdict(), ended.took));
    }
}

fn observers(notes: &Arc<Notes>) -> Observers {
    Observers { of_calls: vec![notes.clone()], of_legs: vec![notes.clone()] }
}

const TOOL: &str =
    r#"{"name":"t","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}"#;

fn gateway(notes: &Arc<Notes>) -> Gateway {
    let fake = FakeBackend::new(&[TOOL], Box::new(behave));
    let registry = registry_of(&[handler("h", fake)]);
    let (_, registry) = watch::channel(registry);
    Gateway::new(registry, Gateway::layers(observers(notes), GateSize { running: 2, waiting: 0 }, None))
}

/// What the tool does depends on its argument.
fn behave(call: Call) -> BoxFuture<'static, Answer> {
    Box::pin(async move {
        match call.arguments().map(Json::as_text) {
            Some(r#"{"n":1}"#) => Ok(Outcome::Done(Output::failure("no"))),
            Some(r#"{"n":2}"#) => panic!("two is too much"),
            Some(r#"{"n":3}"#) => std::future::pending().await,
            _ => Ok(Outcome::Done(Output::text("yes"))),
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
async fn every_way_that_a_call_can_end() {
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
    t (the leg) Ok(true) 0ns
    t Ok(true) 0ns
    t (the leg) Ok(false) 0ns
    t Ok(false) 0ns
    t (the leg) Err(ExecutionFailed) 0ns
    t Err(ExecutionFailed) 0ns
    t (the leg) Err(Cancelled) 30s
    t Err(Timeout) 30s
    t Err(InvalidArguments) 0ns
    t Err(InvalidArguments) 0ns
    t Err(InvalidArguments) 0ns
    unknown ToolNotFound
    ");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_counted_and_gives_its_place_back() {
    let notes = Arc::new(Notes::default());
    let gateway = gateway(&notes);
    let mut hanging = Box::pin(call(&gateway, "t", r#"{"n":3}"#));
    let mut other = Box::pin(call(&gateway, "t", r#"{"n":3}"#));
    assert!(hanging.as_mut().now_or_never().is_none() && other.as_mut().now_or_never().is_none());
    assert!(call(&gateway, "t", r#"{"n":0}"#).await.starts_with(&format!("{:?}", Code::Overloaded)));
    drop(hanging);
    assert!(call(&gateway, "t", r#"{"n":0}"#).await.contains("yes"));
    assert!(notes.0.lock().unwrap().iter().any(|note| note.starts_with("t Err(Cancelled)")));
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_the_first_registry() {
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

/// The arguments are checked against what callers see; the backend gets what it asks for.
#[tokio::test(start_paused = true)]
async fn pinned_and_default_arguments() {
    let definition = r#"{"name":"t","inputSchema":{"properties":{"a":{"type":"integer"},"b":{},"c":{"type":"integer"}},
        "required":["a","c"]}}"#;
    let echo = |call: Call| -> futures_util::future::BoxFuture<'static, Answer> {
        Box::pin(async move { Ok(Outcome::Done(Output::text(call.params.to_json().as_text()))) })
    };
    let change = Change {
        name: Some("u".into()),
        arguments: [
            ("a".to_owned(), Argument::Pin(Json::parse("1.10").unwrap())),
            ("c".to_owned(), Argument::Show { default: Some(Json::integer(3)), description: None }),
        ]
        .into(),
        ..Change::default()
    };
    let overrides = Arc::new([("t".into(), Override::Change(change))].into());
    let handler = Handler { overrides, ..handler("h", FakeBackend::new(&[definition], Box::new(echo))) };
    let (_, registry) = watch::channel(registry_of(&[handler]));
    let layers = Gateway::layers(Observers::default(), GateSize { running: 1, waiting: 0 }, None);
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
    ToolNotFound: Unknown tool: t
    "#);
}

/// A client that answers when it is let.
#[derive(Debug)]
struct Thinker {
    capabilities: Json,
    answers: tokio::sync::Semaphore,
}

impl crate::Client for Thinker {
    fn capabilities(&self) -> Option<&Json> {
        Some(&self.capabilities)
    }

    fn listens(&self) -> bool {
        false
    }

    fn notify(&self, _notice: crate::Notice) {}

    fn ask(&self, _ask: crate::Ask) -> futures_util::future::BoxFuture<'_, Result<Json, crate::AskError>> {
        Box::pin(async move {
            self.answers.acquire().await.unwrap().forget();
            Ok(Json::null())
        })
    }
}

/// A gateway of one tool that asks its client, then takes a second. Counts those that are at work.
fn asking(at_work: &Arc<std::sync::atomic::AtomicUsize>) -> Gateway {
    use std::sync::atomic::Ordering::Relaxed;
    let at_work = at_work.clone();
    let behave = move |call: Call| -> futures_util::future::BoxFuture<'static, Answer> {
        let at_work = at_work.clone();
        Box::pin(async move {
            let ask = crate::Ask { kind: crate::AskKind::Elicit, params: crate::Object::new() };
            call.client.ask(ask).await?;
            at_work.fetch_add(1, Relaxed);
            tokio::time::sleep(Duration::from_secs(1)).await;
            at_work.fetch_sub(1, Relaxed);
            Ok(Outcome::Done(Output::text("yes")))
        })
    };
    let fake = FakeBackend::new(&[r#"{"name":"t"}"#], Box::new(behave));
    let (_, registry) = watch::channel(registry_of(&[handler("h", fake)]));
    Gateway::new(registry, Gateway::layers(Observers::default(), GateSize { running: 1, waiting: 0 }, None))
}

#[tokio::test(start_paused = true)]
async fn who_thinks_takes_nobody_elses_place() {
    let at_work = Arc::default();
    let gateway = asking(&at_work);
    let capabilities = Json::parse(r#"{"elicitation":{}}"#).unwrap();
    let thinker = Arc::new(Thinker { capabilities, answers: tokio::sync::Semaphore::new(0) });
    let ask = || {
        let call = Call { client: thinker.clone(), ..Call::tool("t", crate::Object::new().to_json()) };
        Box::pin(gateway.invoke(call))
    };
    let mut calls = [ask(), ask(), ask()];
    for call in &mut calls {
        assert!(call.now_or_never().is_none(), "it thinks, and lets others in");
    }
    // A call whose question is withdrawn has given back its place once.
    drop(ask());
    thinker.answers.add_permits(3);
    let [one, two, three] = &mut calls;
    let watch = async {
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(500)).await;
            assert_eq!(at_work.load(std::sync::atomic::Ordering::Relaxed), 1, "one at a time goes on");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    let (one, two, three, ()) = tokio::join!(one, two, three, watch);
    assert!([one, two, three].iter().all(Result::is_ok));
    drop(calls);
    // Every place was given back as often as it was taken.
    let mut calls = [ask(), ask()];
    thinker.answers.add_permits(2);
    let [one, two] = &mut calls;
    assert!(one.now_or_never().is_none());
    assert!(two.now_or_never().is_some_and(|answer| answer.is_err()), "no place is left, and no queue");
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_slow_server_again_holds_no_place_of_the_gateway() {
    let behave = |call: Call| -> futures_util::future::BoxFuture<'static, Answer> {
        Box::pin(async move {
            match &**call.target.name() {
                "ask" => {
                    let ask = crate::Ask { kind: crate::AskKind::Roots, params: crate::Object::new() };
                    call.client.ask(ask).await?;
                }
                "wait" => std::future::pending().await,
                _ => {}
            }
            Ok(Outcome::Done(Output::text("yes")))
        })
    };
    let slow = FakeBackend::new(&[r#"{"name":"ask"}"#, r#"{"name":"wait"}"#], Box::new(behave));
    let other = FakeBackend::new(&[r#"{"name":"echo"}"#], Box::new(behave));
    let mut slow = handler("slow", slow);
    let gate = crate::gate::Gate::new(GateSize { running: 1, waiting: 10 });
    slow.limits = Arc::new(crate::registry::Limits { timeout: Duration::from_secs(1000), gate });
    let (_, registry) = watch::channel(registry_of(&[slow, handler("other", other)]));
    let layers = Gateway::layers(Observers::default(), GateSize { running: 2, waiting: 10 }, None);
    let gateway = Gateway::new(registry, layers);
    let capabilities = Json::parse(r#"{"roots":{}}"#).unwrap();
    let thinker = Arc::new(Thinker { capabilities, answers: tokio::sync::Semaphore::new(0) });
    let call = |name: &str| {
        let call = Call { client: thinker.clone(), ..Call::tool(name, crate::Object::new().to_json()) };
        Box::pin(gateway.invoke(call))
    };
    let (mut asks, mut waits) = (call("ask"), call("wait"));
    assert!((&mut asks).now_or_never().is_none() && (&mut waits).now_or_never().is_none());
    thinker.answers.add_permits(1);
    assert!((&mut asks).now_or_never().is_none(), "the slow server's place is taken");
    assert!(call("echo").now_or_never().is_some(), "which is nobody else's concern");
}

/// A backend whose tool `other` stands for the call of the tool that it is told.
struct Forwarding(Arc<FakeBackend>);

impl Backend for Forwarding {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.0.catalog()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Answer> {
        self.0.call(call)
    }

    fn forward(&self, own: &str, call: &Call, registry: &Registry) -> Option<Call> {
        let arguments = call.arguments()?.to_object().ok().filter(|_| own == "other")?;
        let meant = arguments.get_str("meant").filter(|meant| registry.tool(meant).is_ok())?;
        Some(call.of(&*meant, arguments.get("with")?.clone()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_stands_for_another_is_that_one_to_every_layer() {
    let notes = Arc::new(Notes::default());
    let own = |_| Box::pin(async { Ok(Outcome::Done(Output::text("by itself"))) }) as BoxFuture<'static, _>;
    let other = r#"{"name":"other","inputSchema":{"type":"object"}}"#;
    let forwarding = Forwarding(FakeBackend::new(&[other], Box::new(own)));
    let tasks = r#"{"name":"tasks","inputSchema":{"type":"object"}}"#;
    let begun = |_| {
        let task = Object::new().with("taskId", Json::string("7"));
        Box::pin(async { Ok(Outcome::Task(task.into())) }) as BoxFuture<'static, _>
    };
    let handlers = [
        handler("h", FakeBackend::new(&[TOOL], Box::new(behave))),
        handler("f", Arc::new(forwarding)),
        handler("later", FakeBackend::new(&[tasks], Box::new(begun))),
    ];
    let (_, registry) = watch::channel(registry_of(&handlers));
    let layers = Gateway::layers(observers(&notes), GateSize { running: 2, waiting: 0 }, None);
    let gateway = Gateway::new(registry, layers);
    let mut ends = Vec::new();
    for arguments in [
        r#"{"meant":"t","with":{"n":0}}"#,
        r#"{"meant":"t","with":{"n":"x"}}"#,
        r#"{"meant":"nobody's","with":{}}"#,
        r#"{"meant":"other","with":{"meant":"t","with":{"n":0}}}"#,
        r#"{"meant":"tasks","with":{}}"#,
        "{}",
    ] {
        ends.push(call(&gateway, "other", arguments).await);
    }
    insta::assert_snapshot!(ends.join("\n"), @r#"
    {"content":[{"type":"text","text":"yes"}]}
    InvalidArguments: Invalid arguments: /n: value is not of type "integer"
    {"content":[{"type":"text","text":"by itself"}]}
    {"content":[{"type":"text","text":"by itself"}]}
    Task(Started { body: {"\"taskId\""}, owner: Some(Owner { tool: "tasks", handler: "later" }) })
    {"content":[{"type":"text","text":"by itself"}]}
    "#);
    insta::assert_snapshot!(notes.0.lock().unwrap().join("\n"), @"
    t (the leg) Ok(true) 0ns
    t Ok(true) 0ns
    t Err(InvalidArguments) 0ns
    other (the leg) Ok(true) 0ns
    other Ok(true) 0ns
    other (the leg) Ok(true) 0ns
    other Ok(true) 0ns
    tasks (the leg) Ok(true) 0ns
    tasks Ok(true) 0ns
    other (the leg) Ok(true) 0ns
    other Ok(true) 0ns
    ");
}
