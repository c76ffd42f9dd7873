//! Functions of the platform, in front of a stand-in that answers as its documents say: it is a paid service.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use toolyard_backends::cortexone::unwrap::Returns;
use toolyard_backends::cortexone::{CortexOne, Options};
use toolyard_backends::delivery::{Delivery, Policy};
use toolyard_backends::function::{self, FunctionBackend};
use toolyard_backends::http::response::Reading;
use toolyard_core::{Backend, Call, Code, Exchange, Json, Outcome, Phase, Retry, Secrets, Tool, ToolError};
use toolyard_net::auth::{Auth, Scheme, Source};
use toolyard_net::client::Client;

use crate::response;
use crate::server::{Answer, Server};

const KEY: &str = "RIV_0123456789";

const REQUEST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;

const MESSAGE: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#;

fn options(url: &str, returns: Returns) -> Options {
    Options {
        url: format!("{url}api/v1/functions/echo/1.2.0/invoke").parse().unwrap(),
        auth: Auth {
            scheme: Scheme::Bare,
            source: Source::Value(KEY.to_owned()),
            secrets: Secrets::default(),
        },
        returns,
        delivery: Delivery {
            attempt_time: Duration::from_secs(10),
            policy: Policy {
                retry: Retry::never(),
                statuses: vec![503],
                network_errors: true,
                respect_retry_after: true,
            },
            response_bytes: 1000,
        },
    }
}

fn function(options: Options) -> CortexOne {
    CortexOne::new(options, &Client::without_roots().unwrap())
}

async fn ask(function: &CortexOne) -> Result<String, ToolError> {
    let answer = function.exchange(Json::parse(REQUEST).unwrap(), None).await?;
    Ok(answer.as_text().to_owned())
}

/// What a function says that is an MCP server, where the platform answers like this.
async fn said(answer: impl Into<Answer>) -> Result<String, ToolError> {
    let server = Server::start(&[answer.into()]).await;
    ask(&function(options(&server.url(), Returns::Message))).await
}

#[tokio::test]
async fn what_is_sent() {
    let server = Server::start(&[Answer::Text(response("200 OK", MESSAGE))]).await;
    let function = function(options(&server.url(), Returns::Message));
    assert_eq!(ask(&function).await.unwrap(), MESSAGE);
    let [request] = &server.requests()[..] else { panic!("several requests") };
    let host = server.url().replace("http://", "").replace('/', "");
    insta::assert_snapshot!(request.replace(&host, "HOST").replace('\r', ""), @r#"
    POST /api/v1/functions/echo/1.2.0/invoke HTTP/1.1
    content-type: application/json
    authorization: RIV_0123456789
    host: HOST
    content-length: 68

    {"event":{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}}
    "#);
}

#[tokio::test]
async fn every_form_of_a_response() {
    let text = Json::string(MESSAGE).as_text().to_owned();
    let forms = [
        MESSAGE.to_owned(),
        format!(r#"{{"statusCode": 200, "body": {text}}}"#),
        format!(r#"{{"statusCode": 200, "body": {MESSAGE}}}"#),
        format!(r#"{{"success": true, "result": {{"statusCode": 200, "body": {text}}}}}"#),
        format!(r#"{{"success": true, "result": {{"statusCode": 200, "body": {MESSAGE}}}}}"#),
        format!(r#"{{"result": {MESSAGE}}}"#),
        text,
    ];
    for form in forms {
        assert_eq!(said(Answer::Text(response("200 OK", &form))).await.unwrap(), MESSAGE, "{form}");
    }
}

#[track_caller]
fn fails(said: Result<String, ToolError>, code: Code, message: &str) -> ToolError {
    let error = said.unwrap_err();
    assert_eq!((error.code(), error.message()), (code, message));
    assert!(!format!("{error:?}").contains(KEY));
    error
}

#[tokio::test]
async fn what_the_platform_refuses() {
    let cases = [
        ("400 Bad Request", Code::ExecutionFailed, "The platform refused the event", false),
        (
            "401 Unauthorized",
            Code::Unavailable,
            "The platform does not accept the key of this handler",
            false,
        ),
        ("402 Payment Required", Code::QuotaExhausted, "The balance at the platform is used up", false),
        ("404 Not Found", Code::Unavailable, "The platform has no such function, or no such version", false),
        ("408 Request Timeout", Code::Timeout, "The function did not answer in time", true),
        (
            "413 Payload Too Large",
            Code::InvalidArguments,
            "The arguments are too large for the platform",
            false,
        ),
        ("429 Too Many Requests", Code::RateLimited, "The platform is called too often", false),
        ("500 Internal Server Error", Code::Unavailable, "The platform failed to answer", true),
        ("302 Found", Code::ExecutionFailed, "The platform refused the call", false),
    ];
    for (status, code, message, may_have_run) in cases {
        let answer = response(&format!("{status}\r\nretry-after: 7"), r#"{"error": "this is why"}"#);
        let error = fails(said(Answer::Text(answer)).await, code, message);
        assert_eq!(error.may_have_run(), may_have_run, "{status}");
        assert_eq!(error.wait(), Some(Duration::from_secs(7)));
        assert!(format!("{:#}", error.outline()).contains("this is why"));
    }
}

#[tokio::test]
async fn what_goes_wrong_on_the_way() {
    let large = response("200 OK", &format!(r#"{{"a":"{}"}}"#, "a".repeat(1000)));
    fails(said(Answer::Text(large)).await, Code::ExecutionFailed, "The response is larger than 1000 bytes");
    fails(said(Answer::Reset).await, Code::Unavailable, "The connection to the tool's server broke");
    let garbage = "What the function returned has no known form";
    for body in ["", "<html>", "null", r#"{"statusCode": 200, "body": "fine"}"#] {
        fails(said(Answer::Text(response("200 OK", body))).await, Code::ExecutionFailed, garbage);
    }
    let boom = r#"{"statusCode": 500, "body": "{\"error\": \"Runtime error: boom\"}"}"#;
    let error = fails(
        said(Answer::Text(response("200 OK", boom))).await,
        Code::ExecutionFailed,
        "The function broke down",
    );
    assert!(format!("{:#}", error.outline()).contains("Runtime error: boom"));
}

#[tokio::test]
async fn a_call_ends_at_its_deadline_and_hangs_up() {
    let server = Server::start(&[Answer::Silence]).await;
    let function = function(options(&server.url(), Returns::Message));
    let deadline = Instant::now() + Duration::from_millis(50);
    let asked = function.exchange(Json::parse(REQUEST).unwrap(), Some(deadline)).await;
    assert_eq!(asked.unwrap_err().code(), Code::Timeout);
    server.hung_up().await;
}

#[tokio::test]
async fn it_is_tried_again_as_the_policy_says() {
    let busy = Answer::Text(response("503 Service Unavailable", ""));
    let server = Server::start(&[busy.clone(), busy, Answer::Text(response("200 OK", MESSAGE))]).await;
    let mut options = options(&server.url(), Returns::Message);
    options.delivery.policy.retry =
        Retry { attempts: 3, initial_backoff: Duration::from_millis(1), ..Retry::never() };
    assert_eq!(ask(&function(options)).await.unwrap(), MESSAGE);
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_key_in_a_file_is_read_at_each_call() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let ok = Answer::Text(response("200 OK", MESSAGE));
    let server = Server::start(&[ok.clone(), ok]).await;
    let mut options = options(&server.url(), Returns::Message);
    options.auth.source = Source::File(file.path().to_owned());
    let function = function(options);
    let error = fails(ask(&function).await, Code::Unavailable, "The credentials of this tool cannot be read");
    assert!(!error.may_have_run());
    for key in ["RIV_one", "RIV_two"] {
        std::fs::write(file.path(), key).unwrap();
        ask(&function).await.unwrap();
        let last = server.requests().pop().unwrap();
        assert!(last.contains(&format!("authorization: {key}\r\n")), "{last}");
    }
}

#[tokio::test]
async fn a_function_that_is_one_tool() {
    let cases = [
        (
            r#"{"statusCode": 200, "body": "{\"sum\": 3}"}"#,
            r#"{"content":[{"type":"text","text":"{\"sum\": 3}"}],"structuredContent":{"sum": 3}}"#,
        ),
        (
            r#"{"success": true, "result": {"statusCode": 200, "body": "three"}}"#,
            r#"{"content":[{"type":"text","text":"three"}]}"#,
        ),
        (
            r#"{"statusCode": 500, "body": {"error": "Runtime error: boom"}}"#,
            r#"{"content":[{"type":"text","text":"HTTP 500 Internal Server Error: {\"error\": \"Runtime error: boom\"}"}],"isError":true}"#,
        ),
        (
            r#"{"success": false, "result": {"details": "boom"}}"#,
            r#"{"content":[{"type":"text","text":"HTTP 500 Internal Server Error: boom"}],"isError":true}"#,
        ),
    ];
    let answers = cases.map(|(body, _)| Answer::Text(response("200 OK", body)));
    let server = Server::start(&answers).await;
    let definition = Json::parse(r#"{"name":"add","inputSchema":{"type":"object"}}"#).unwrap();
    let backend = FunctionBackend::new(function::Options {
        tool: Tool::from_definition(&definition).unwrap(),
        exchange: Arc::new(function(options(&server.url(), Returns::Response))),
        retry: Retry::never(),
        attempt_time: Duration::from_secs(10),
        reading: Reading::default(),
    });
    assert_eq!(backend.catalog().borrow().phase, Phase::Ready);
    for (_, expect) in cases {
        let call = Call::tool("add", Json::parse(r#"{"a": 1, "b": 2}"#).unwrap());
        let Outcome::Done(output) = backend.call(call).await.unwrap() else { panic!("another outcome") };
        assert_eq!(output.body.to_json().as_text(), expect);
    }
    let mut empty = Call::tool("add", Json::null());
    empty.params.remove("arguments");
    backend.call(empty).await.unwrap_err();
    let sent: Vec<_> =
        server.requests().iter().map(|it| it.split_once("\r\n\r\n").unwrap().1.to_owned()).collect();
    assert_eq!(sent[0], r#"{"event":{"a": 1, "b": 2}}"#);
    assert_eq!(sent[4], r#"{"event":{}}"#);
}
