use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolyard_core::gate::{CallGate, GateSize};
use toolyard_core::registry::{CallLimits, HandlerEntry, Registry};
use toolyard_core::{
    Backend, BackendPhase, Call, CallOutput, CallTarget, Caller, Catalog, ErrorCode, Gateway,
    InputRequestError, Json, LogLevel, Outcome, Tool, ToolError,
};

use super::testing::{ScriptedClient, call, context_of, shared_context};
use super::{Context, NestedCallError, number};
use crate::elicit::{ElicitRequest, ElicitResult};
use crate::sample::SampleRequest;

fn tool(name: &str) -> CallTarget {
    CallTarget::Tool(name.into())
}

/// The messages that a client receives during a call.
fn messages_of(client: ScriptedClient, act: impl FnOnce(&Context)) -> String {
    let client = Arc::new(client);
    let (context, _running) = context_of(&call(tool("work"), json!({}), &client));
    act(&context);
    client.transcript()
}

#[test]
fn progress_only_increases() {
    let act = |ctx: &Context| {
        ctx.progress(0.0, Some(100.0), "begun");
        ctx.progress(0.5, None, None);
        ctx.progress(0.5, None, "again");
        ctx.progress(0.25, None, "back");
        ctx.progress(f64::NAN, None, None);
        ctx.progress(f64::INFINITY, None, None);
        ctx.progress(100.0, Some(f64::NAN), String::from("done").as_str());
    };
    insta::assert_snapshot!(messages_of(ScriptedClient::default().listening(None), act), @r#"
    progress {"progress":0,"total":100,"message":"begun"}
    progress {"progress":0.5}
    progress {"progress":100,"message":"done"}
    "#);
    assert_eq!(messages_of(ScriptedClient::default(), act), "");
}

#[test]
fn logs_below_the_level_are_not_sent() {
    let act = |ctx: &Context| {
        ctx.debug("a");
        ctx.info("b");
        ctx.warning(json!({"disk": 0.9}));
        ctx.error(["c", "d"]);
        ctx.log(LogLevel::Emergency, ());
        // Not serializable: the keys are not strings.
        ctx.error(std::collections::BTreeMap::from([(vec![1], 2)]));
    };
    insta::assert_snapshot!(messages_of(ScriptedClient::default().listening(Some(LogLevel::Warning)), act), @r#"
    log {"level":"warning","logger":"work","data":{"disk":0.9}}
    log {"level":"error","logger":"work","data":["c","d"]}
    log {"level":"emergency","logger":"work","data":null}
    "#);
    assert_eq!(messages_of(ScriptedClient::default().listening(None), act), "");
    assert_eq!(
        messages_of(ScriptedClient::default().listening(Some(LogLevel::Debug)), act).lines().count(),
        5
    );
}

#[test]
fn number_becomes_json() {
    let check = |value: f64, expected: Option<&str>| {
        assert_eq!(number(value).as_ref().map(Json::as_text), expected, "{value}");
    };
    check(50.0, Some("50"));
    check(-0.5, Some("-0.5"));
    check(1e300, Some("1e+300"));
    check(9_007_199_254_740_992.0, Some("9007199254740992"));
    check(f64::NAN, None);
    check(f64::NEG_INFINITY, None);
}

#[tokio::test]
async fn call_is_cancelled_when_its_guard_is_dropped() {
    let (context, running) = context_of(&call(tool("work"), json!({}), &Arc::default()));
    let copy = context.clone();
    assert!(!copy.is_cancelled());
    assert!(copy.cancelled().now_or_never().is_none());
    drop(running);
    assert!(copy.is_cancelled());
    copy.cancelled().await;
}

#[test]
fn context_describes_the_call() {
    let mut call = call(
        CallTarget::Resource("file:///a".into()),
        json!({}),
        &Arc::new(ScriptedClient::with(json!({"roots": {}}))),
    );
    call.caller = Caller { session: Some("s".into()), ..Caller::default() };
    call.meta = Json::from_value(&json!({"io.modelcontextprotocol/clientInfo": {"name": "c"}, "x/y": [1]}))
        .to_object()
        .unwrap();
    let (context, _running) = context_of(&call);
    assert_eq!((context.request_name(), context.session()), ("file:///a", Some("s")));
    assert_eq!(context.client_info(), Some(json!({"name": "c"})));
    assert_eq!((context.meta("x/y"), context.meta("z")), (Some(json!([1])), None));
    assert_eq!(context.client_capabilities(), Some(json!({"roots": {}})));
    assert_eq!(format!("{context:?}"), r#"Context { target: Resource("file:///a"), .. }"#);
}

#[test]
fn capabilities_decide_the_allowed_questions() {
    let check = |capabilities: Value, expected: &str| {
        let (context, _running) =
            context_of(&call(tool("work"), json!({}), &Arc::new(ScriptedClient::with(capabilities.clone()))));
        let able = [
            ("form", context.can_elicit()),
            ("url", context.can_elicit_url()),
            ("sample", context.can_sample()),
            ("roots", context.can_list_roots()),
        ];
        let able: Vec<_> = able.into_iter().filter(|(_, can)| *can).map(|(name, _)| name).collect();
        assert_eq!(able.join(" "), expected, "{capabilities}");
    };
    check(json!({}), "");
    check(json!({"elicitation": {}}), "form");
    check(json!({"elicitation": {"form": {}}}), "form");
    check(json!({"elicitation": {"url": {}}}), "url");
    check(json!({"elicitation": {"form": {}, "url": {}}}), "form url");
    check(json!({"elicitation": {"url": true}, "sampling": null, "roots": false}), "form");
    check(json!({"sampling": {"tools": {}}, "roots": {"listChanged": true}}), "sample roots");
    check(json!([]), "");
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "it is never filled in")]
struct Nested {
    inner: Name,
}

/// The messages that the client receives, and the result of `ask`.
async fn run_ask<T: std::fmt::Debug>(
    client: ScriptedClient,
    ask: impl AsyncFnOnce(Context) -> Result<T, InputRequestError>,
) -> String {
    let client = Arc::new(client);
    let (context, _running) = context_of(&call(tool("work"), json!({}), &client));
    let answer = match ask(context).await {
        Ok(answer) => format!("{answer:?}"),
        Err(error) => format!("{error}"),
    };
    format!("{}\n{answer}", client.transcript())
}

#[tokio::test]
async fn elicit_returns_the_answer_of_the_user() {
    let client = |answer: Value| {
        ScriptedClient::with(json!({"elicitation": {"url": {}, "form": {}}})).answering([Ok(answer)])
    };
    let elicit = async |ctx: Context| ctx.elicit::<Name>("Who?").await;
    insta::assert_snapshot!(run_ask(client(json!({"action": "accept", "content": {"name": "Ada"}})), elicit).await, @r#"
    elicitation/create {"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}
    Accepted(Name { name: "Ada" })
    "#);
    let answered =
        async |answer: Value| run_ask(client(answer), elicit).await.lines().last().map(str::to_owned);
    let check =
        async |answer: Value, expected: &str| assert_eq!(answered(answer).await.as_deref(), Some(expected));
    check(json!({"action": "decline"}), "Declined").await;
    check(json!({"action": "cancel", "content": null}), "Cancelled").await;
    let refused = "the client's answer does not fit:";
    let entered = |content: Value| json!({"action": "accept", "content": content});
    check(entered(json!({"name": 1})), &format!("{refused} /name: value is not of type \"string\"")).await;
    check(entered(json!({"name": null})), &format!("{refused} \"name\" is a required property")).await;
    check(json!({"action": "accept"}), &format!("{refused} missing field `name`")).await;
    check(json!({"action": "accept", "content": 1}), &format!("{refused} its `content` is not an object"))
        .await;
    check(
        json!({"action": "maybe"}),
        &format!("{refused} its `action` is not `accept`, `decline` or `cancel`"),
    )
    .await;
    check(json!(12345), &format!("{refused} it is not an object")).await;
}

#[tokio::test]
async fn unsupported_question_is_not_sent() {
    let form = ScriptedClient::with(json!({"elicitation": {}}));
    insta::assert_snapshot!(run_ask(form, async |ctx| ctx.elicit::<Nested>("Who?").await).await, @"the question cannot be asked: `Nested` is not a form, because `inner` is an object: the fields of a form are strings, numbers, booleans and choices");
    let check =
        async |capabilities: Value,
               ask: &dyn Fn(
            Context,
        )
            -> futures_util::future::BoxFuture<'static, Result<(), InputRequestError>>,
               lacking: &str| {
            let client = Arc::new(ScriptedClient::with(capabilities));
            let (context, _running) = context_of(&call(tool("work"), json!({}), &client));
            let error = ask(context).await.unwrap_err();
            assert_eq!(error.to_string(), format!("the client does not support {lacking}"));
            assert_eq!(client.transcript(), "");
        };
    check(
        json!({}),
        &|ctx| async move { ctx.elicit::<Name>("").await.map(|_| ()) }.boxed(),
        "elicitation.form",
    )
    .await;
    check(
        json!({"elicitation": {}}),
        &|ctx| async move { ctx.elicit_url("", "").await.map(|_| ()) }.boxed(),
        "elicitation.url",
    )
    .await;
    check(
        json!({"elicitation": {"url": {}}}),
        &|ctx| async move { ctx.elicit::<Name>("").await.map(|_| ()) }.boxed(),
        "elicitation.form",
    )
    .await;
    let with_tools = |ctx: Context| async move {
        ctx.sample(SampleRequest::new().user("a").tool::<Name>("b", "c")).await.map(|_| ())
    };
    check(json!({"sampling": {}}), &|ctx| with_tools(ctx).boxed(), "sampling.tools").await;
    check(json!({"sampling": {}}), &|ctx| async move { ctx.roots().await.map(|_| ()) }.boxed(), "roots")
        .await;
}

#[tokio::test]
async fn elicit_url_has_a_unique_id() {
    let accepted = || Ok(json!({"action": "accept", "content": {}}));
    let client = Arc::new(
        ScriptedClient::with(json!({"elicitation": {"url": {}}})).answering([accepted(), accepted()]),
    );
    let (context, _running) = context_of(&call(tool("work"), json!({}), &client));
    assert_eq!(context.elicit_url("Sign in", "https://example.com").await, Ok(ElicitResult::Accepted(())));
    let first = client.transcript();
    let start = r#"elicitation/create {"mode":"url","message":"Sign in","url":"https://example.com","elicitationId":""#;
    assert!(first.starts_with(start), "{first}");
    assert_eq!(context.elicit_url("Sign in", "https://example.com").await, Ok(ElicitResult::Accepted(())));
    assert_ne!(client.transcript(), first, "each question has an id of its own");
}

#[tokio::test]
async fn sample_and_roots_return_answers() {
    let content = json!({"type": "text", "text": "Paris"});
    let answer = json!({"model": "m", "role": "assistant", "content": content, "stopReason": "endTurn"});
    let client = ScriptedClient::with(json!({"sampling": {}})).answering([Ok(answer)]);
    let ask = async |ctx: Context| Ok(ctx.sample(SampleRequest::new().user("Capital?")).await?.text());
    insta::assert_snapshot!(run_ask(client, ask).await, @r#"
    sampling/createMessage {"messages":[{"role":"user","content":{"type":"text","text":"Capital?"}}],"maxTokens":1000}
    "Paris"
    "#);
    let client =
        ScriptedClient::with(json!({"roots": {}})).answering([Ok(json!({"roots": [{"uri": "file:///a"}]}))]);
    insta::assert_snapshot!(run_ask(client, async |ctx| ctx.roots().await).await, @r#"
    roots/list {}
    [Root { uri: "file:///a", name: None }]
    "#);
    let client =
        ScriptedClient::with(json!({"elicitation": {}})).answering([Err(InputRequestError::TooLate)]);
    let ask =
        async |ctx: Context| ctx.ask(ElicitRequest::form_with_schema("?", json!({"type": "object"}))).await;
    insta::assert_snapshot!(run_ask(client, ask).await, @r#"
    elicitation/create {"mode":"form","message":"?","requestedSchema":{"type":"object"}}
    the client did not answer in time
    "#);
}

/// A backend with a few tools that call each other.
struct TestBackend {
    shared: Arc<super::SharedContext>,
    catalog: watch::Sender<Arc<Catalog>>,
}

impl Backend for TestBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    fn call(&self, call: Call) -> futures_util::future::BoxFuture<'_, Result<Outcome, ToolError>> {
        async move {
            let (context, _running) = Context::new(&call, self.shared.clone());
            match call.target.name().as_ref() {
                "echo" => {
                    context.progress(1.0, None, "hidden");
                    context.info("seen");
                    Ok(Outcome::Done(CallOutput::text(call.arguments().map_or("none", Json::as_text))))
                }
                "fail" => Ok(Outcome::Done(CallOutput::failure("it failed"))),
                "task" => Ok(Outcome::Task(toolyard_core::Object::new().into())),
                "rounds" => rounds(&context),
                "again" => match context.call_tool("again", &()).await {
                    Ok(result) => Ok(Outcome::Done(CallOutput::text(&format!(
                        "{} {}",
                        call.meta.iter().count(),
                        result.text()
                    )))),
                    Err(error) => Ok(Outcome::Done(CallOutput::text(&error.to_string()))),
                },
                name => Err(ToolError::unknown_tool(name)),
            }
        }
        .boxed()
    }
}

fn rounds(context: &Context) -> Result<Outcome, ToolError> {
    let round: u32 = context.state().unwrap().unwrap_or(0);
    match context.elicit_answer::<Name>("name") {
        Some(ElicitResult::Accepted(name)) => {
            Ok(Outcome::Done(CallOutput::text(&format!("{} in round {round}", name.name))))
        }
        _ => {
            let asks =
                crate::input_required::InputRequired::new().ask("name", ElicitRequest::form::<Name>("Who?"));
            asks.state(&(round + 1)).unwrap().outcome(context)
        }
    }
}

/// A gateway with the test backend, and the shared context of its calls.
fn test_gateway() -> (Arc<Gateway>, Arc<super::SharedContext>) {
    let shared = shared_context();
    let schema = |name: &str| match name {
        "echo" => json!({"name": "echo", "inputSchema": {"type": "object", "required": ["text"]}}),
        name => json!({"name": name, "inputSchema": {"type": "object"}}),
    };
    let names = ["echo", "fail", "task", "rounds", "again"];
    let tools = names.map(|name| Arc::new(Tool::from_definition(&Json::from_value(&schema(name))).unwrap()));
    let catalog = Catalog { phase: BackendPhase::Ready, tools: tools.into(), ..Catalog::default() };
    let backend =
        Arc::new(TestBackend { shared: shared.clone(), catalog: watch::Sender::new(Arc::new(catalog)) });
    let gate = CallGate::new(GateSize { running: 100, waiting: 0 });
    let limits = CallLimits { timeout: Duration::from_secs(60), gate };
    let catalog = backend.catalog().borrow().clone();
    let handler = HandlerEntry::new("test", backend, limits);
    let registry = watch::Sender::new(Arc::new(Registry::of(&handler, &catalog)));
    let gateway = Arc::new(Gateway::new(
        registry.subscribe(),
        vec![Box::new(toolyard_core::layers::ArgumentValidation::new(None))],
    ));
    shared.gateway.set(Arc::downgrade(&gateway)).unwrap();
    (gateway, shared)
}

#[tokio::test]
async fn tool_calls_other_tools() {
    let (_gateway, shared) = test_gateway();
    let name = json!({"action": "accept", "content": {"name": "Ada"}});
    let client = ScriptedClient::with(json!({"elicitation": {}}))
        .listening(Some(LogLevel::Info))
        .answering([Ok(json!({"action": "decline"})), Ok(name)]);
    let client = Arc::new(client);
    let (context, _running) = Context::new(&call(tool("work"), json!({}), &client), shared);
    let result = context.call_tool("echo", &json!({"text": 1.5})).await.unwrap();
    assert_eq!((result.text().as_str(), result.is_error()), (r#"{"text":1.5}"#, false));
    assert_eq!(client.transcript(), r#"log {"level":"info","logger":"echo","data":"seen"}"#);
    assert_eq!(result.content().len(), 1);
    assert!(result.structured::<Name>().is_err());
    assert_eq!(result.raw()["content"][0]["type"], "text");

    assert!(context.call_tool("fail", &()).await.unwrap().is_error());
    assert_eq!(context.call_tool("rounds", &()).await.unwrap().text(), "Ada in round 2");
    assert_eq!(client.transcript().lines().count(), 2, "it was asked twice");
    let again = context.call_tool("again", &()).await.unwrap().text();
    assert_eq!(again, format!("{}more than 16 nested tool calls", "1 ".repeat(15)));
}

#[tokio::test]
async fn client_cannot_extend_the_depth_limit() {
    let (_gateway, shared) = test_gateway();
    let again = async |depth: Value| {
        let mut call = call(tool("work"), json!({}), &Arc::default());
        call.meta = Json::from_value(&json!({"toolyard/depth": depth})).to_object().unwrap();
        let (context, _running) = Context::new(&call, shared.clone());
        context.call_tool("again", &()).await.map(|result| result.text().matches("1 ").count()).ok()
    };
    assert_eq!(again(json!(0)).await, Some(15));
    assert_eq!(again(json!(10)).await, Some(5));
    for no_count in [json!(-1), json!("1"), json!(-1e300), json!(null)] {
        assert_eq!(again(no_count).await, Some(15));
    }
    for too_deep in [json!(16), json!(u64::MAX)] {
        assert_eq!(again(too_deep).await, None);
    }
}

#[tokio::test]
async fn failed_nested_call_is_an_error() {
    let (gateway, shared) = test_gateway();
    let (context, _running) = Context::new(&call(tool("work"), json!({}), &Arc::default()), shared);
    let failed = |error: NestedCallError, code: ErrorCode| matches!(error, NestedCallError::Failed(error) if error.code() == code);
    let called = async |name: &str, arguments: Value| context.call_tool(name, &arguments).await.unwrap_err();
    assert!(failed(called("absent", json!({})).await, ErrorCode::ToolNotFound));
    assert!(failed(called("echo", json!({})).await, ErrorCode::InvalidArguments));
    assert!(matches!(called("echo", json!([1])).await, NestedCallError::Arguments));
    assert!(matches!(called("task", json!({})).await, NestedCallError::Unfinished));
    assert!(failed(called("rounds", json!({})).await, ErrorCode::MissingCapability));
    drop(gateway);
    assert!(failed(called("echo", json!({"text": ""})).await, ErrorCode::Unavailable));
}
