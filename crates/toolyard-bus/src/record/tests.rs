use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use futures_util::future::{BoxFuture, FutureExt, ready};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use toolyard_core::{Call, CallOutput, Caller, ErrorCode, Json, Object, Outcome, SESSION_META, Tool};

use super::*;

/// Serializes a record, and checks that it can be read back with names in any case.
#[track_caller]
fn round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(record: &T) -> String {
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
fn records_are_written_as_documented_and_read_in_any_case() {
    let registration = ToolRegistration {
        name: "web_search".into(),
        description: "Searches".into(),
        parameters_schema: Some(r#"{"type":"object"}"#.into()),
        source: "brave".into(),
    };
    let bare = ToolRegistration { parameters_schema: None, ..registration.clone() };
    let with_arguments = request(Some(r#"{"query":"x"}"#));
    let bare_request = ToolInvokeRequest { session_id: None, ..request(None) };
    let timeout = ToolInvokeError {
        code: codes::TIMEOUT.into(),
        is_retryable: true,
        ..with_arguments.not_registered()
    };
    let lines = [
        round_trip(&registration),
        round_trip(&bare),
        round_trip(&with_arguments),
        round_trip(&bare_request),
        round_trip(&with_arguments.response(Some("1. …".into()), false)),
        round_trip(&with_arguments.response(None, true)),
        round_trip(&with_arguments.not_registered()),
        round_trip(&timeout),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn missing_and_invalid_members_are_named() {
    #[track_caller]
    fn check<T: DeserializeOwned + Debug>(text: &str, expected: &str) {
        let read = serde_json::from_str::<T>(text);
        let read = read.map_or_else(|error| error.to_string(), |record| format!("{record:?}"));
        assert!(read.starts_with(expected), "{text}: {read}");
    }
    check::<ToolInvokeRequest>(r#"{"toolName": "t"}"#, "`toolCallId` is required");
    check::<ToolInvokeRequest>(r#"{"toolCallId": null, "toolName": "t"}"#, "`toolCallId` is required");
    check::<ToolInvokeRequest>(
        r#"{"toolCallId": "1", "toolName": "t", "arguments": {"a": 1}}"#,
        "`arguments` must be a string",
    );
    check::<ToolInvokeRequest>(
        r#"{"toolCallId": "1", "toolName": "t", "arguments": "{}", "Arguments": null}"#,
        "duplicate member",
    );
    check::<ToolInvokeRequest>(r#"["1", "t"]"#, "invalid type: sequence, expected an object");
    check::<ToolInvokeRequest>(
        r#"{"toolCallId": "1", "toolName": "t", "later": [1], "arguments": "hunter2"}"#,
        r#"ToolInvokeRequest { tool_call_id: "1", tool_name: "t", .. }"#,
    );
    check::<ToolInvokeResponse>(
        r#"{"toolCallId": "1", "toolName": "t", "isError": "no"}"#,
        "`isError` must be a boolean",
    );
    check::<ToolInvokeResponse>(
        r#"{"toolCallId": "1", "toolName": "t", "content": "hunter2"}"#,
        r#"ToolInvokeResponse { tool_call_id: "1", tool_name: "t", is_error: false, .. }"#,
    );
    check::<ToolInvokeError>(r#"{"toolCallId": "1", "toolName": "t"}"#, "`code` is required");
    check::<ToolRegistration>("{}", "`name` is required");
}

#[test]
fn registration_round_trips_through_a_tool() {
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
    // A schema that is not an object counts as that of any object.
    for schema in [None, Some(""), Some("{"), Some("[]"), Some("null")] {
        let bare = ToolRegistration { parameters_schema: schema.map(str::to_owned), ..registration.clone() };
        let definition = bare.to_llm_tool_definition().to_value();
        assert_eq!(definition["parameters"], json!({"type": "object", "properties": {}}), "{schema:?}");
    }
}

#[test]
fn arguments_must_be_the_text_of_an_object() {
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
    let refused = "invalid_arguments `arguments` must be a string that contains a JSON object";
    for arguments in ["{", "[1]", "\"x\"", "hunter2", r#"{"a": 1, "a": 2}"#] {
        check(Some(arguments), refused);
    }
}

#[test]
fn request_round_trips_through_a_call() {
    let request = request(Some(r#"{"query":"x"}"#));
    let call = request.to_call().expect("a call");
    let back = ToolInvokeRequest::of(&call, "c1").expect("a call of a tool");
    assert_eq!(back, ToolInvokeRequest { session_id: Some("abc123".into()), ..request });
    // The session is named only: it belongs to the caller that the executor sets.
    assert_eq!(call.meta.get_str(SESSION_META).as_deref(), Some("abc123"));
    assert_eq!(call.caller, Caller::default());
    let connected = Caller { session: Some("secret".into()), ..Caller::default() };
    let call = Call { caller: connected, ..Call::tool("t", Json::null()) };
    let bare = ToolInvokeRequest::of(&call, "c2").expect("a call of a tool");
    assert_eq!((bare.arguments, bare.session_id), (None, None));
    let prompt = Call { target: toolyard_core::CallTarget::Prompt("p".into()), ..call };
    assert_eq!(ToolInvokeRequest::of(&prompt, "c3"), None);
}

#[test]
fn results_become_responses_or_errors() {
    #[track_caller]
    fn check(answer: Result<Outcome, toolyard_core::ToolError>, expected: &str) {
        let answer = request(None).answer(answer);
        let text = match &answer {
            Ok(response) => format!("{:?} {}", response.content, response.is_error),
            Err(error) => format!("{} {} {}", error.code, error.is_retryable, error.message),
        };
        assert_eq!(text, expected);
        // Convert back, as far as four codes permit.
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
        Ok(Outcome::Done(CallOutput { is_error: false, body }))
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
    check(done(json!({"content": [text("a"), image, text("b")]})), r#"Some("a\nb") false"#);
    check(done(json!({"content": [image]})), "None false");
    check(done(json!({})), "None false");
    check(done(json!({"content": [], "structuredContent": {"a": 1}})), r#"Some("{\"a\":1}") false"#);
    check(Ok(Outcome::Done(CallOutput::failure("no such city"))), r#"Some("no such city") true"#);
    let refused = |code: ErrorCode, message: &'static str| Err(toolyard_core::ToolError::new(code, message));
    check(refused(ErrorCode::Timeout, "late"), "timeout true late");
    check(refused(ErrorCode::InvalidArguments, "a: missing"), "invalid_arguments false a: missing");
    check(refused(ErrorCode::ExecutionFailed, "broken"), "execution_failed false broken");
    check(refused(ErrorCode::Unavailable, "away"), "execution_failed true away");
    check(refused(ErrorCode::Overloaded, "busy"), "execution_failed true busy");
    check(refused(ErrorCode::Denied, "no"), "execution_failed false no");
    check(refused(ErrorCode::ToolNotFound, "x"), "tool_not_found false Tool 'web_search' is not registered.");
    let peer = Json::from_value(&json!({"code": -32000, "message": "quota"}));
    let peer = toolyard_core::ToolError::new(ErrorCode::ExecutionFailed, "An error").from_peer(peer);
    check(Err(peer), "execution_failed false quota");
    let later = "execution_failed false The tool requests input from its client or continues as a task, which a host does not support.";
    check(Ok(Outcome::Task(Object::new().into())), later);
}

/// Answers each call in the same way, and records the last one.
struct FixedToolExecutor {
    answer: Result<(Option<&'static str>, bool), &'static str>,
    last: Mutex<Option<ToolInvokeRequest>>,
}

impl FixedToolExecutor {
    fn new(answer: Result<(Option<&'static str>, bool), &'static str>) -> Arc<Self> {
        Arc::new(Self { answer, last: Mutex::default() })
    }
}

impl ToolExecutor for FixedToolExecutor {
    fn execute(
        &self,
        request: ToolInvokeRequest,
    ) -> BoxFuture<'_, Result<ToolInvokeResponse, ToolInvokeError>> {
        let answer = match self.answer {
            Ok((content, is_error)) => Ok(request.response(content.map(str::to_owned), is_error)),
            Err(message) => Err(ToolInvokeError { message: message.into(), ..request.not_registered() }),
        };
        *self.last.lock().unwrap() = Some(request);
        ready(answer).boxed()
    }
}

fn registration(name: &str) -> ToolRegistration {
    let (description, source) = (String::new(), "test".to_owned());
    ToolRegistration { name: name.to_owned(), description, parameters_schema: None, source }
}

#[tokio::test]
async fn duplicate_registration_is_refused() {
    let registry = ToolRegistry::new();
    let [one, other] = ["one", "other"].map(|content| FixedToolExecutor::new(Ok((Some(content), false))));
    registry.register(registration("web_search"), one).expect("a free name");
    let error = registry.register(registration("web_search"), other.clone()).unwrap_err();
    assert_eq!(error.to_string(), "Tool 'web_search' is already registered.");
    registry.register(registration("Web_Search"), other).expect("another name");
    let names: Vec<_> = registry.get_tools().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["Web_Search", "web_search"]);
    let answer = registry.invoke(request(None)).await.expect("an answer");
    assert_eq!(answer.content.as_deref(), Some("one"));
    assert!(registry.get_executor("web_search").is_some());
    assert!(registry.unregister("web_search") && !registry.unregister("web_search"));
    assert!(registry.get_executor("web_search").is_none());
    let refused = registry.invoke(request(None)).await.expect_err("not registered");
    assert_eq!(round_trip(&refused), round_trip(&request(None).not_registered()));
}

#[tokio::test]
async fn host_function_returns_errors_as_text() {
    async fn check(answer: Result<(Option<&'static str>, bool), &'static str>, expected: &str) {
        let executor = FixedToolExecutor::new(answer);
        let function = HostFunction::new(registration("t"), executor.clone(), Some("abc".into()));
        assert_eq!(function.call(None).await, expected);
        let bare = executor.last.lock().unwrap().take().expect("a call");
        assert_eq!((bare.arguments, bare.session_id.as_deref()), (None, Some("abc")));
        function.call(Some(r#"{"a":1}"#)).await;
        let request = executor.last.lock().unwrap().take().expect("a call");
        assert_eq!(request.arguments.as_deref(), Some(r#"{"a":1}"#));
        assert!(request.tool_call_id.len() == 32 && request.tool_call_id != bare.tool_call_id);
        assert!(request.tool_call_id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
    check(Ok((Some("sunny"), false)), "sunny").await;
    check(Ok((None, false)), "").await;
    check(Ok((Some("no such city"), true)), "Error: no such city").await;
    check(Err("It took too long."), "Error: It took too long.").await;
}
