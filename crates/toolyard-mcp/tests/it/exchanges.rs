//! Functions as servers: one message is answered with one other, and there is no connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::Instant;
use toolyard_core::{Backend, Call, Client, Code, Json, LogLevel, Notice, Phase, ToolError};

use crate::function::{Exchanged, Function, call, error, names, of_tools, ready, result, sample, until};

#[tokio::test(start_paused = true)]
async fn the_samples_are_served_and_asked_nothing_that_they_do_not_know() {
    let function = Function::new(sample);
    let backend = function.serve();
    let catalog = ready(&backend).await;
    assert_eq!(names(&catalog), ["echo"]);
    assert_eq!(catalog.protocol.as_deref(), Some("MCP 2024-11-05"));
    assert!(!catalog.unlisted);

    assert_eq!(call(&backend, "echo", json!({"text": "hello"})).await.unwrap(), r#""hello""#);
    // As authors write it, who would otherwise read a member of nothing.
    assert_eq!(call(&backend, "echo", Value::Null).await.unwrap(), "null");
    let refused = call(&backend, "other", json!({})).await.unwrap_err();
    assert_eq!(refused.message(), "Unknown tool: other");
    assert_eq!(refused.peer().unwrap().as_text(), r#"{"code":-32602,"message":"Unknown tool: other"}"#);

    // Long after that: no notification, no question of the other era, none whether it is there.
    tokio::time::sleep(Duration::from_secs(10_000)).await;
    let asked = ["initialize", "tools/list", "tools/call", "tools/call", "tools/call"];
    assert_eq!(function.take_asked(), asked);
    backend.stop().await;
    assert_eq!(function.take_asked(), Vec::<String>::new());
}

/// One that knows more: what it declares is asked for, and a list that it does not know after all is empty.
fn versatile(request: &Value) -> Exchanged {
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
async fn lists_are_asked_for_as_it_declares_and_nothing_is_arranged() {
    let function = Function::new(versatile);
    let backend = function.serve();
    let catalog = ready(&backend).await;
    let count =
        (catalog.tools.len(), catalog.prompts.len(), catalog.resources.len(), catalog.templates.len());
    assert_eq!(count, (1, 1, 0, 1));
    let mut asked = function.take_asked();
    assert_eq!(asked.remove(0), "initialize");
    asked.sort();
    assert_eq!(asked, ["prompts/list", "resources/list", "resources/templates/list", "tools/list"]);

    let _following = backend.follow("a://b");
    let text = Json::parse(r#"{"text":"a"}"#).unwrap();
    let call = Call { client: Arc::new(Curious), ..Call::tool("echo", text) };
    backend.call(call).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1000)).await;
    assert_eq!(function.take_asked(), ["tools/call"]);
}

/// A client that wants all of the log, and can be asked everything.
#[derive(Debug)]
struct Curious;

impl Client for Curious {
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

    fn notify(&self, _: Notice) {}
}

#[tokio::test(start_paused = true)]
async fn the_deadline_and_the_context_of_a_call_go_along() {
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

/// Calls a function that lists as it should, and does this with a call.
async fn fails(called: impl Fn(&Value) -> Exchanged + Send + Sync + 'static) -> ToolError {
    let function = Function::new(move |request| match request["method"] == "tools/call" {
        true => called(request),
        false => sample(request),
    });
    let backend = function.serve();
    ready(&backend).await;
    let error = call(&backend, "echo", json!({"text": "a"})).await.unwrap_err();
    // It is as good as before.
    assert_eq!(backend.catalog().borrow().phase, Phase::Ready);
    error
}

#[tokio::test(start_paused = true)]
async fn what_the_exchange_says_of_a_call_stays_as_it_is() {
    for code in Code::ALL {
        let error = fails(move |_| Err(ToolError::new(code, "this is why").caused_by("inside"))).await;
        assert_eq!((error.code(), error.message()), (code, "this is why"));
        assert_eq!(format!("{:#}", error.outline()), "this is why: inside");
    }
    let unsent = |_: &Value| Err(ToolError::new(Code::Unavailable, "away").unsent());
    assert!(!fails(unsent).await.may_have_run());
}

#[tokio::test(start_paused = true)]
async fn what_is_no_answer_is_told_from_one() {
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
        let shown = answer.to_string();
        let error = fails(move |_| Ok(answer.clone())).await;
        assert_eq!((error.code(), error.message()), (Code::ExecutionFailed, expect), "{shown:.100}");
    }
    let error = fails(|request| result(request, &json!(7))).await;
    assert_eq!(error.message(), "The server's result is malformed");
    let error = fails(|request| Ok(json!({"jsonrpc": "2.0", "id": request["id"], "error": "a"}))).await;
    assert_eq!(error.message(), "The server's error is malformed");
}

#[tokio::test(start_paused = true)]
async fn a_panic_ends_one_call() {
    let error = fails(|_| panic!("at the disco")).await;
    assert_eq!(error.code(), Code::ExecutionFailed);
    assert_eq!(
        format!("{:#}", error.outline()),
        "The call failed because of a fault in the server: at the disco"
    );
}

type Answer = fn(&Value) -> Exchanged;

#[tokio::test(start_paused = true)]
async fn one_that_does_not_begin_is_unavailable_until_it_is_another_one() {
    let cases: [(Answer, &str); 5] = [
        (|_| panic!("at the disco"), "The call failed because of a fault in the server: at the disco"),
        (|_| Err(ToolError::new(Code::Timeout, "too slow")), "too slow"),
        (
            |request| error(request, -32601, "Method not found"),
            "the server refused initialize: {\"code\":-32601,\"message\":\"Method not found\"}",
        ),
        (
            |request| result(request, &json!({"protocolVersion": "2026-07-28"})),
            "the server speaks no revision that is spoken here: 2026-07-28",
        ),
        (|_| Ok(json!("hello")), "the server's answer is no MCP message: {\"code\":-32600"),
    ];
    for (begin, expect) in cases {
        let function = Function::new(begin);
        let backend = function.serve();
        let catalog = until(&backend, |catalog| catalog.phase != Phase::Connecting).await;
        let Phase::Unavailable { reason } = &catalog.phase else { panic!("{catalog:?}") };
        assert!(reason.starts_with(expect), "{reason}");
        let refused = call(&backend, "echo", json!({})).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unavailable);
        // By now it would be tried again after a long pause only.
        tokio::time::sleep(Duration::from_secs(300)).await;
        let since = Instant::now();
        function.become_(sample);
        ready(&backend).await;
        assert!(since.elapsed() < Duration::from_secs(1), "{:?}", since.elapsed());
        assert_eq!(call(&backend, "echo", json!({"text": "a"})).await.unwrap(), r#""a""#);
    }
}

#[tokio::test(start_paused = true)]
async fn who_does_not_wait_any_more_withdraws_the_request() {
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
    function.take_asked();
    let waiting = call(&backend, "echo", json!({"text": "a"}));
    assert!(tokio::time::timeout(Duration::from_secs(9), waiting).await.is_err());
    assert!(has_ended.load(Ordering::Relaxed));
    assert_eq!(function.take_asked(), ["tools/call"]);
}

#[tokio::test(start_paused = true)]
async fn a_new_version_is_listed_and_loses_no_call() {
    const CALLERS: usize = 20;
    let function = Function::new(of_tools(&["echo"]));
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
        function.become_(of_tools(&["echo", &newest]));
        until(&backend, |catalog| names(catalog) == ["echo", &newest]).await;
    }
    // What it can do at all may be something else as well.
    function.become_(versatile);
    until(&backend, |catalog| catalog.prompts.len() == 1).await;
    is_over.store(true, Ordering::Relaxed);
    let calls: usize = join_all(callers).await.into_iter().map(Result::unwrap).sum();
    assert!(calls > CALLERS * 100, "{calls}");
}

#[tokio::test(start_paused = true)]
async fn many_versions_at_once_are_listed_a_few_times() {
    let function = Function::new(sample);
    let backend = function.serve();
    ready(&backend).await;
    function.take_asked();
    for version in 0..1000 {
        function.become_(of_tools(&["echo", &format!("echo_{version}")]));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    until(&backend, |catalog| names(catalog) == ["echo", "echo_999"]).await;
    let asked = function.take_asked();
    assert!((4..=20).contains(&asked.len()), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_new_version_that_does_not_list_leaves_the_calls_alone() {
    let function = Function::new(sample);
    let backend = function.serve();
    ready(&backend).await;
    function.become_(|request| match request["method"] == "tools/call" {
        true => sample(request),
        false => Err(ToolError::new(Code::Overloaded, "all workers are busy")),
    });
    let catalog = until(&backend, |catalog| catalog.phase != Phase::Ready).await;
    let reason = "all workers are busy".to_owned();
    assert_eq!(catalog.phase, Phase::Unavailable { reason });
    assert_eq!(names(&catalog), ["echo"]);
    assert_eq!(call(&backend, "echo", json!({"text": "a"})).await.unwrap(), r#""a""#);
    function.become_(of_tools(&["other"]));
    let catalog = ready(&backend).await;
    assert_eq!(names(&catalog), ["other"]);
}

#[tokio::test(start_paused = true)]
async fn who_asks_for_it_has_it_listed_anew() {
    let function = Function::new(sample);
    let backend = function.serve();
    ready(&backend).await;
    function.take_asked();
    backend.refresh();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(function.take_asked(), ["initialize", "tools/list"]);
}
