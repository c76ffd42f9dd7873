use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, ready};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolyard_core::gate::{Gate, GateSize};
use toolyard_core::layers::Arguments;
use toolyard_core::names::Names;
use toolyard_core::registry::{Handler, Limits, Registry};
use toolyard_core::{Call, Caller, Code, Gateway, Json, Object, Outcome, Output, Tool};
use toolyard_sdk::{Context, Server, ToolFailure};

use super::*;
use crate::memory::{SESSION_META, Who};

/// A record as it is written, and that it is read again, in any case.
#[track_caller]
fn written<T: Serialize + DeserializeOwned + PartialEq + Debug>(record: &T) -> String {
    let text = serde_json::to_string(record).expect("JSON");
    let Ok(Value::Object(members)) = serde_json::from_str(&text) else { panic!("{text}") };
    let loud: serde_json::Map<_, _> =
        members.into_iter().map(|(name, value)| (name.to_uppercase(), value)).collect();
    for text in [text.clone(), Value::Object(loud).to_string()] {
        assert_eq!(&serde_json::from_str::<T>(&text).expect(&text), record, "{text}");
    }
    text
}

fn request(arguments: Option<&str>) -> ToolInvokeRequest {
    ToolInvokeRequest {
        tool_call_id: "c1".into(),
        tool_name: "web_search".into(),
        arguments: arguments.map(str::to_owned),
        session_id: Some("session/abc123".into()),
    }
}

#[test]
fn records_are_written_as_they_are_documented_and_read_in_any_case() {
    let registration = ToolRegistration {
        name: "web_search".into(),
        description: "Searches".into(),
        parameters_schema: Some(r#"{"type":"object"}"#.into()),
        source: "brave".into(),
    };
    let bare = ToolRegistration { parameters_schema: None, ..registration.clone() };
    let asked = request(Some(r#"{"query":"x"}"#));
    let not_asked = ToolInvokeRequest { session_id: None, ..request(None) };
    let timeout = ToolError { code: codes::TIMEOUT.into(), is_retryable: true, ..asked.not_registered() };
    let lines = [
        written(&registration),
        written(&bare),
        written(&asked),
        written(&not_asked),
        written(&asked.response(Some("1. …".into()), false)),
        written(&asked.response(None, true)),
        written(&asked.not_registered()),
        written(&timeout),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn what_is_missing_or_strange_is_named() {
    #[track_caller]
    fn check<T: DeserializeOwned + Debug>(text: &str, expected: &str) {
        let read = serde_json::from_str::<T>(text);
        let read = read.map_or_else(|error| error.to_string(), |record| format!("{record:?}"));
        assert!(read.starts_with(expected), "{text}: {read}");
    }
    check::<ToolInvokeRequest>(r#"{"toolName": "t"}"#, "toolCallId: is missing");
    check::<ToolInvokeRequest>(r#"{"toolCallId": null, "toolName": "t"}"#, "toolCallId: is missing");
    check::<ToolInvokeRequest>(
        r#"{"toolCallId": "1", "toolName": "t", "arguments": {"a": 1}}"#,
        "arguments: is not a text",
    );
    check::<ToolInvokeRequest>(
        r#"{"toolCallId": "1", "toolName": "t", "arguments": "{}", "Arguments": null}"#,
        "a member stands twice",
    );
    check::<ToolInvokeRequest>(r#"["1", "t"]"#, "invalid type: sequence, expected an object");
    check::<ToolInvokeRequest>(
        r#"{"toolCallId": "1", "toolName": "t", "later": [1], "arguments": "hunter2"}"#,
        r#"ToolInvokeRequest { tool_call_id: "1", tool_name: "t", .. }"#,
    );
    check::<ToolInvokeResponse>(
        r#"{"toolCallId": "1", "toolName": "t", "isError": "no"}"#,
        "isError: is neither true nor false",
    );
    check::<ToolInvokeResponse>(
        r#"{"toolCallId": "1", "toolName": "t", "content": "hunter2"}"#,
        r#"ToolInvokeResponse { tool_call_id: "1", tool_name: "t", is_error: false, .. }"#,
    );
    check::<ToolError>(r#"{"toolCallId": "1", "toolName": "t"}"#, "code: is missing");
    check::<ToolRegistration>("{}", "name: is missing");
}

#[test]
fn a_registration_is_a_tool_and_back() {
    let definition = json!({
        "name": "calculate",
        "title": "not told",
        "description": "Adds",
        "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}}},
    });
    let tool = Tool::from_definition(&Json::from_value(&definition)).expect("a tool");
    let registration = ToolRegistration::of(&tool, "mcp:math");
    assert_eq!(registration.source, "mcp:math");
    assert_eq!(ToolRegistration::of(&registration.to_tool(), "mcp:math"), registration);
    insta::assert_snapshot!(registration.to_llm_tool_definition().as_text(), @r#"{"name":"calculate","description":"Adds","parameters":{"type":"object","properties":{"a":{"type":"number"}}}}"#);
    // What is no schema of an object says nothing: any object will do.
    for schema in [None, Some(""), Some("{"), Some("[]"), Some("null")] {
        let bare = ToolRegistration { parameters_schema: schema.map(str::to_owned), ..registration.clone() };
        let definition = bare.to_llm_tool_definition().to_value();
        assert_eq!(definition["parameters"], json!({"type": "object", "properties": {}}), "{schema:?}");
    }
}

#[test]
fn arguments_are_a_text_with_an_object_in_it() {
    #[track_caller]
    fn check(arguments: Option<&str>, expected: &str) {
        let call = request(arguments).to_call();
        let read = match &call {
            Ok(call) => call.arguments().map_or("", Json::as_text).to_owned(),
            Err(error) => format!("{} {}", error.code, error.message),
        };
        assert_eq!(read, expected, "{arguments:?}");
    }
    check(None, "{}");
    check(Some(" "), "{}");
    check(Some("null"), "{}");
    check(Some("{}"), "{}");
    check(Some(r#"{"a": 12345678901234567890123}"#), r#"{"a":12345678901234567890123}"#);
    let refused = "invalid_arguments arguments: is not a text with a JSON object in it";
    for arguments in ["{", "[1]", "\"x\"", "hunter2", r#"{"a": 1, "a": 2}"#] {
        check(Some(arguments), refused);
    }
}

#[test]
fn a_call_is_a_request_and_back() {
    let asked = request(Some(r#"{"query":"x"}"#));
    let call = asked.to_call().expect("a call");
    let back = ToolInvokeRequest::of(&call, "c1").expect("a call of a tool");
    assert_eq!(back, ToolInvokeRequest { session_id: Some("abc123".into()), ..asked });
    let named = call.meta.get_str(SESSION_META).map(std::borrow::Cow::into_owned);
    let namespace = Who::new(&call.caller, named).namespace().expect("a namespace");
    assert_eq!(namespace.as_str(), "session/abc123");
    let connected = Caller { session: Some("secret".into()), ..Caller::default() };
    let call = Call { caller: connected, ..Call::tool("t", Json::null()) };
    let bare = ToolInvokeRequest::of(&call, "c2").expect("a call of a tool");
    assert_eq!((bare.arguments, bare.session_id), (None, None));
    let prompt = Call { target: toolyard_core::Target::Prompt("p".into()), ..call };
    assert_eq!(ToolInvokeRequest::of(&prompt, "c3"), None);
}

#[test]
fn answers_are_responses_and_errors() {
    #[track_caller]
    fn check(answer: Result<Outcome, toolyard_core::ToolError>, expected: &str) {
        let answer = request(None).answer(answer);
        let shown = match &answer {
            Ok(response) => format!("{:?} {}", response.content, response.is_error),
            Err(error) => format!("{} {} {}", error.code, error.is_retryable, error.message),
        };
        assert_eq!(shown, expected);
        // And back, as far as four codes tell it.
        match answer {
            Ok(response) => assert_eq!(response.to_output().is_error, response.is_error),
            Err(error) => {
                let back = toolyard_core::ToolError::from(error.clone());
                assert_eq!(
                    (back.message(), back.code().row().retryable),
                    (&*error.message, error.is_retryable)
                );
            }
        }
    }
    let done = |body: Value| {
        let body = Json::from_value(&body).to_object().expect("an object");
        Ok(Outcome::Done(Output { is_error: false, body }))
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
    check(done(json!({"content": [text("a"), image, text("b")]})), r#"Some("a\nb") false"#);
    check(done(json!({"content": [image]})), "None false");
    check(done(json!({})), "None false");
    check(done(json!({"content": [], "structuredContent": {"a": 1}})), r#"Some("{\"a\":1}") false"#);
    check(Ok(Outcome::Done(Output::failure("no such city"))), r#"Some("no such city") true"#);
    let refused = |code: Code, message: &'static str| Err(toolyard_core::ToolError::new(code, message));
    check(refused(Code::Timeout, "late"), "timeout true late");
    check(refused(Code::InvalidArguments, "a: missing"), "invalid_arguments false a: missing");
    check(refused(Code::ExecutionFailed, "broken"), "execution_failed false broken");
    check(refused(Code::Unavailable, "away"), "execution_failed true away");
    check(refused(Code::Overloaded, "busy"), "execution_failed true busy");
    check(refused(Code::Denied, "no"), "execution_failed false no");
    check(refused(Code::ToolNotFound, "x"), "tool_not_found false Tool 'web_search' is not registered.");
    let peer = Json::from_value(&json!({"code": -32000, "message": "quota"}));
    let peer = toolyard_core::ToolError::new(Code::ExecutionFailed, "An error").from_peer(peer);
    check(Err(peer), "execution_failed false quota");
    let later = "execution_failed false The tool has questions for its client, or goes on later: nobody waits for it here.";
    check(Ok(Outcome::Task(Object::new().into())), later);
}

/// Answers each call in the same way, and remembers the last one.
struct Fixed {
    answer: Result<(Option<&'static str>, bool), &'static str>,
    last: Mutex<Option<ToolInvokeRequest>>,
}

impl Fixed {
    fn new(answer: Result<(Option<&'static str>, bool), &'static str>) -> Arc<Self> {
        Arc::new(Self { answer, last: Mutex::default() })
    }
}

impl Executor for Fixed {
    fn execute(&self, asked: ToolInvokeRequest) -> BoxFuture<'_, Result<ToolInvokeResponse, ToolError>> {
        let answer = match self.answer {
            Ok((content, is_error)) => Ok(asked.response(content.map(str::to_owned), is_error)),
            Err(message) => Err(ToolError { message: message.into(), ..asked.not_registered() }),
        };
        *self.last.lock().unwrap() = Some(asked);
        ready(answer).boxed()
    }
}

fn registration(name: &str) -> ToolRegistration {
    let (description, source) = (String::new(), "test".to_owned());
    ToolRegistration { name: name.to_owned(), description, parameters_schema: None, source }
}

#[tokio::test]
async fn a_registry_has_each_name_once() {
    let registry = ToolRegistry::new();
    let [one, other] = ["one", "other"].map(|content| Fixed::new(Ok((Some(content), false))));
    registry.register(registration("web_search"), one).expect("a free name");
    let taken = registry.register(registration("web_search"), other.clone()).unwrap_err();
    assert_eq!(taken.to_string(), "Tool 'web_search' is already registered.");
    registry.register(registration("Web_Search"), other).expect("another name");
    let names: Vec<_> = registry.get_tools().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["Web_Search", "web_search"]);
    let answer = registry.invoke(request(None)).await.expect("an answer");
    assert_eq!(answer.content.as_deref(), Some("one"));
    assert!(registry.get_executor("web_search").is_some());
    assert!(registry.unregister("web_search") && !registry.unregister("web_search"));
    assert!(registry.get_executor("web_search").is_none());
    let refused = registry.invoke(request(None)).await.expect_err("nobody runs it");
    assert_eq!(written(&refused), written(&request(None).not_registered()));
}

#[tokio::test]
async fn a_model_reads_what_went_wrong() {
    async fn check(answer: Result<(Option<&'static str>, bool), &'static str>, expected: &str) {
        let executor = Fixed::new(answer);
        let function = HostFunction::new(registration("t"), executor.clone(), Some("abc".into()));
        assert_eq!(function.call(None).await, expected);
        let bare = executor.last.lock().unwrap().take().expect("a call");
        assert_eq!((bare.arguments, bare.session_id.as_deref()), (None, Some("abc")));
        function.call(Some(r#"{"a":1}"#)).await;
        let asked = executor.last.lock().unwrap().take().expect("a call");
        assert_eq!(asked.arguments.as_deref(), Some(r#"{"a":1}"#));
        assert!(asked.tool_call_id.len() == 32 && asked.tool_call_id != bare.tool_call_id);
        assert!(asked.tool_call_id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
    check(Ok((Some("sunny"), false)), "sunny").await;
    check(Ok((None, false)), "").await;
    check(Ok((Some("no such city"), true)), "Error: no such city").await;
    check(Err("It took too long."), "Error: It took too long.").await;
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {
    name: String,
}

/// A gateway with one tool.
fn gateway() -> Arc<Gateway> {
    let greet = async |context: Context, args: Greet| match &*args.name {
        "" => Err(ToolFailure::new("nobody to greet")),
        name => Ok(format!("Hello, {name}, of {}.", context.principal().unwrap_or("nowhere"))),
    };
    let server = Server::new("greetings", "1.0.0").tool("greet", "Greets.", greet).expect("a tool");
    let backend = server.into_backend();
    let catalog = backend.catalog().borrow().clone();
    let gate = Gate::new(GateSize { running: 1, waiting: 0 });
    let handler = Handler::new("greetings", backend, Limits { timeout: Duration::from_secs(30), gate });
    let registry = Registry::assemble(&[(handler, catalog)], &mut Names::default());
    Arc::new(Gateway::new(watch::Sender::new(Arc::new(registry)).subscribe(), vec![Box::new(Arguments)]))
}

#[tokio::test]
async fn a_host_calls_the_tools_of_a_gateway() {
    let caller = Caller { principal: Some("k7".into()), ..Caller::default() };
    let executor = Arc::new(GatewayExecutor::new(gateway(), caller));
    let check = async |tool: &str, arguments: Option<&str>, expected: &str| {
        let function = HostFunction::new(registration(tool), executor.clone(), None);
        assert_eq!(function.call(arguments).await, expected, "{tool} {arguments:?}");
    };
    check("greet", Some(r#"{"name": "Ada"}"#), "Hello, Ada, of k7.").await;
    check("greet", Some(r#"{"name": ""}"#), "Error: nobody to greet").await;
    check("greet", None, r#"Error: Invalid arguments: "name" is a required property"#).await;
    check("greet", Some("Ada"), "Error: arguments: is not a text with a JSON object in it").await;
    check("leave", Some("{}"), "Error: Tool 'leave' is not registered.").await;
}
