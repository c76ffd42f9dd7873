//! Functions as servers: each message is answered with one message, without a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::Instant;
use toolyard_core::{
    Backend, BackendPhase, Call, Caller, Client, ClientNotification, ErrorCode, Json, LogLevel, ToolError,
};

use crate::function::{
    Function, FunctionResult, call, error, names, ready, result, sample, tool_function, until,
};

#[tokio::test(start_paused = true)]
async fn sample_functions_get_known_methods_only() {
    let function = Function::new(sample);
    let backend = function.serve();
    let catalog = ready(&backend).await;
    assert_eq!(names(&catalog), ["echo"]);
    assert_eq!(catalog.protocol.as_deref(), Some("MCP 2024-11-05"));
    assert!(!catalog.unlisted);

    assert_eq!(call(&backend, "echo", json!({"text": "hello"})).await.unwrap(), r#""hello""#);
    // A missing member would break functions that read it unchecked.
    assert_eq!(call(&backend, "echo", Value::Null).await.unwrap(), "null");
    let refused = call(&backend, "other", json!({})).await.unwrap_err();
    assert_eq!(refused.message(), "Unknown tool: other");
    assert_eq!(refused.peer().unwrap().as_text(), r#"{"code":-32602,"message":"Unknown tool: other"}"#);

    // Long after that: no notification, no discovery, no liveness probe.
    tokio::time::sleep(Duration::from_secs(10_000)).await;
    let methods = ["initialize", "tools/list", "tools/call", "tools/call", "tools/call"];
    assert_eq!(function.take_methods(), methods);
    backend.stop().await;
    assert_eq!(function.take_methods(), Vec::<String>::new());
}

/// A function with more features: declared lists are fetched, and an unknown list is empty.
fn versatile(request: &Value) -> FunctionResult {
    let initialized = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {
            "tools": {"listChanged": true}, "prompts": {}, "logging": {},
            "resources": {"subscribe": true, "listChanged": true},
        },
        "serverInfo": {"name": "f", "version": "1"},
    });
    match request["method"].as_str().unwrap() {
        "initialize" => result(request, &initialized),
        "prompts/list" => result(request, &json!({"prompts": [{"name": "ask"}]})),
        "prompts/get" => {
            result(request, &json!({"messages": [], "arguments": request["params"]["arguments"]}))
        }
        "resources/templates/list" => {
            result(request, &json!({"resourceTemplates": [{"name": "t", "uriTemplate": "a://{b}"}]}))
        }
        _ => sample(request),
    }
}

#[tokio::test(start_paused = true)]
async fn declared_lists_are_fetched_without_subscriptions() {
    let function = Function::new(versatile);
    let backend = function.serve();
    let catalog = ready(&backend).await;
    let count =
        (catalog.tools.len(), catalog.prompts.len(), catalog.resources.len(), catalog.templates.len());
    assert_eq!(count, (1, 1, 0, 1));
    let mut methods = function.take_methods();
    assert_eq!(methods.remove(0), "initialize");
    methods.sort();
    assert_eq!(methods, ["prompts/list", "resources/list", "resources/templates/list", "tools/list"]);

    let _following = backend.follow("a://b", &Caller::default());
    let text = Json::parse(r#"{"text":"a"}"#).unwrap();
    let call = Call { client: Arc::new(CapableClient), ..Call::tool("echo", text) };
    backend.call(call).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1000)).await;
    assert_eq!(function.take_methods(), ["tools/call"]);
}

/// A client that wants all log messages, and has all capabilities.
#[derive(Debug)]
struct CapableClient;

impl Client for CapableClient {
    fn capabilities(&self) -> Option<&Json> {
        None
    }

    fn can_be_asked(&self) -> bool {
        true
    }

    fn listens(&self) -> bool {
        true
    }

    fn log_level(&self) -> Option<LogLevel> {
        Some(LogLevel::ALL[0])
    }

    fn notify(&self, _: ClientNotification) {}
}

#[tokio::test(start_paused = true)]
async fn deadline_and_trace_context_are_passed() {
    let function = Function::new(sample);
    let backend = function.serve();
    ready(&backend).await;
    let deadline = Instant::now() + Duration::from_secs(7);
    let mut call = Call::tool("echo", Json::parse(r#"{"text":"a"}"#).unwrap());
    call.deadline = Some(deadline);
    call.meta.set("traceparent", Json::string("00-1-2-01"));
    backend.call(call).await.unwrap();
    assert_eq!(*function.deadline.lock().unwrap(), Some(deadline));
    assert_eq!(function.last()["params"]["_meta"], json!({"traceparent": "00-1-2-01"}));
}

/// Calls a function that lists as usual, and returns the error of its call.
async fn fails(called: impl Fn(&Value) -> FunctionResult + Send + Sync + 'static) -> ToolError {
    let function = Function::new(move |request| match request["method"] == "tools/call" {
        true => called(request),
        false => sample(request),
    });
    let backend = function.serve();
    ready(&backend).await;
    let error = call(&backend, "echo", json!({"text": "a"})).await.unwrap_err();
    // The function is still available.
    assert_eq!(backend.catalog().borrow().phase, BackendPhase::Ready);
    error
}

#[tokio::test(start_paused = true)]
async fn function_errors_are_unchanged() {
    for code in ErrorCode::ALL {
        let error = fails(move |_| Err(ToolError::new(code, "this is why").caused_by("inside"))).await;
        assert_eq!((error.code(), error.message()), (code, "this is why"));
        assert_eq!(format!("{:#}", error.outline()), "this is why: inside");
    }
    let unsent = |_: &Value| Err(ToolError::new(ErrorCode::Unavailable, "away").unsent());
    assert!(!fails(unsent).await.may_have_run());
}

#[tokio::test(start_paused = true)]
async fn invalid_responses_are_errors() {
    let malformed = "The server's answer is malformed";
    let cases: [(Value, &str); 11] = [
        (json!(null), malformed),
        (json!("text"), malformed),
        (json!([]), malformed),
        (json!({}), malformed),
        (json!({"statusCode": 200, "body": "{}"}), malformed),
        (json!({"id": 3, "result": {}}), malformed),
        (json!({"jsonrpc": "1.0", "id": 3, "result": {}}), malformed),
        (json!({"jsonrpc": "2.0", "id": 999, "result": {}}), malformed),
        (json!({"jsonrpc": "2.0", "result": {}}), malformed),
        (json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}), malformed),
        (
            json!({"jsonrpc": "2.0", "id": 3, "result": "a".repeat(100_000)}),
            "The server's answer is too large",
        ),
    ];
    for (answer, expect) in cases {
        let answer_text = answer.to_string();
        let error = fails(move |_| Ok(answer.clone())).await;
        assert_eq!(
            (error.code(), error.message()),
            (ErrorCode::ExecutionFailed, expect),
            "{answer_text:.100}"
        );
    }
    let error = fails(|request| result(request, &json!(7))).await;
    assert_eq!(error.message(), "The server's result is malformed");
    let error = fails(|request| Ok(json!({"jsonrpc": "2.0", "id": request["id"], "error": "a"}))).await;
    assert_eq!(error.message(), "The server's error is malformed");
}

#[tokio::test(start_paused = true)]
async fn panic_fails_one_call() {
    let error = fails(|_| panic!("at the disco")).await;
    assert_eq!(error.code(), ErrorCode::ExecutionFailed);
    assert_eq!(
        format!("{:#}", error.outline()),
        "The call failed because of a fault in the server: at the disco"
    );
}

type Answer = fn(&Value) -> FunctionResult;

#[tokio::test(start_paused = true)]
async fn failed_initialize_is_retried_on_new_version() {
    let cases: [(Answer, &str); 5] = [
        (|_| panic!("at the disco"), "The call failed because of a fault in the server: at the disco"),
        (|_| Err(ToolError::new(ErrorCode::Timeout, "too slow")), "too slow"),
        (
            |request| error(request, -32601, "Method not found"),
            "the server refused initialize: {\"code\":-32601,\"message\":\"Method not found\"}",
        ),
        (
            |request| result(request, &json!({"protocolVersion": "2026-07-28"})),
            "unsupported protocol version 2026-07-28",
        ),
        (|_| Ok(json!("hello")), "the server's response is not an MCP message: {\"code\":-32600"),
    ];
    for (begin, expect) in cases {
        let function = Function::new(begin);
        let backend = function.serve();
        let catalog = until(&backend, |catalog| catalog.phase != BackendPhase::Connecting).await;
        let BackendPhase::Unavailable { reason } = &catalog.phase else { panic!("{catalog:?}") };
        assert!(reason.message.starts_with(expect), "{reason}");
        let refused = call(&backend, "echo", json!({})).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Unavailable);
        // By now the next attempt would come only after a long pause.
        tokio::time::sleep(Duration::from_secs(300)).await;
        let since = Instant::now();
        function.replace(sample);
        ready(&backend).await;
        assert!(since.elapsed() < Duration::from_secs(1), "{:?}", since.elapsed());
        assert_eq!(call(&backend, "echo", json!({"text": "a"})).await.unwrap(), r#""a""#);
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_call_drops_the_request() {
    struct Ends(Arc<AtomicBool>);
    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let has_ended = Arc::<AtomicBool>::default();
    let ended = has_ended.clone();
    let function = Function::slow(move |request| {
        let ends = (request["method"] == "tools/call").then(|| Ends(ended.clone()));
        Box::pin(async move {
            if ends.is_some() {
                std::future::pending::<()>().await;
            }
            sample(&request)
        })
    });
    let backend = function.serve();
    ready(&backend).await;
    function.take_methods();
    let waiting = call(&backend, "echo", json!({"text": "a"}));
    assert!(tokio::time::timeout(Duration::from_secs(9), waiting).await.is_err());
    assert!(has_ended.load(Ordering::Relaxed));
    assert_eq!(function.take_methods(), ["tools/call"]);
}

#[tokio::test(start_paused = true)]
async fn new_version_is_listed_without_losing_calls() {
    const CALLERS: usize = 20;
    let function = Function::new(tool_function(&["echo"]));
    let backend = Arc::new(function.serve());
    ready(&backend).await;
    let is_over = Arc::<AtomicBool>::default();
    let callers = (0..CALLERS).map(|caller| {
        let (backend, is_over) = (backend.clone(), is_over.clone());
        tokio::spawn(async move {
            let mut calls = 0;
            while !is_over.load(Ordering::Relaxed) {
                let text = format!("{caller} {calls}");
                assert_eq!(call(&backend, "echo", json!({"text": text})).await.unwrap(), format!("{text:?}"));
                calls += 1;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            calls
        })
    });
    let callers: Vec<_> = callers.collect();
    for version in 2..6 {
        let newest = format!("echo_{version}");
        function.replace(tool_function(&["echo", &newest]));
        until(&backend, |catalog| names(catalog) == ["echo", &newest]).await;
    }
    // The capabilities may change as well.
    function.replace(versatile);
    until(&backend, |catalog| catalog.prompts.len() == 1).await;
    is_over.store(true, Ordering::Relaxed);
    let calls: usize = join_all(callers).await.into_iter().map(Result::unwrap).sum();
    assert!(calls > CALLERS * 100, "{calls}");
}

#[tokio::test(start_paused = true)]
async fn burst_of_versions_is_debounced() {
    let function = Function::new(sample);
    let backend = function.serve();
    ready(&backend).await;
    function.take_methods();
    for version in 0..1000 {
        function.replace(tool_function(&["echo", &format!("echo_{version}")]));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    until(&backend, |catalog| names(catalog) == ["echo", "echo_999"]).await;
    let methods = function.take_methods();
    assert!((4..=20).contains(&methods.len()), "{methods:?}");
}

#[tokio::test(start_paused = true)]
async fn new_version_without_lists_keeps_calls_working() {
    let function = Function::new(sample);
    let backend = function.serve();
    ready(&backend).await;
    function.replace(|request| match request["method"] == "tools/call" {
        true => sample(request),
        false => Err(ToolError::new(ErrorCode::Overloaded, "all workers are busy")),
    });
    let catalog = until(&backend, |catalog| catalog.phase != BackendPhase::Ready).await;
    let reason = "all workers are busy".to_owned();
    assert_eq!(catalog.phase, BackendPhase::Unavailable { reason: reason.into() });
    assert_eq!(names(&catalog), ["echo"]);
    assert_eq!(call(&backend, "echo", json!({"text": "a"})).await.unwrap(), r#""a""#);
    function.replace(tool_function(&["other"]));
    let catalog = ready(&backend).await;
    assert_eq!(names(&catalog), ["other"]);
}

#[tokio::test(start_paused = true)]
async fn refresh_fetches_lists_again() {
    let function = Function::new(sample);
    let backend = function.serve();
    ready(&backend).await;
    function.take_methods();
    backend.refresh();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(function.take_methods(), ["initialize", "tools/list"]);
}
