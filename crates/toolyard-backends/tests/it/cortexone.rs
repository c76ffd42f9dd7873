//! Functions of the platform, against a fake server that follows its documentation: the platform is a paid service.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use toolyard_backends::cortexone::unwrap::ReturnFormat;
use toolyard_backends::cortexone::{CortexOneFunction, CortexOneOptions};
use toolyard_backends::delivery::{RequestDelivery, ResendPolicy};
use toolyard_backends::function::{self, FunctionBackend};
use toolyard_backends::http::response::ResponseConversion;
use toolyard_core::{
    Backend, BackendPhase, Call, ErrorCode, Json, MessageExchange, Outcome, RetrySchedule, SecretRedactor,
    Tool, ToolError,
};
use toolyard_net::auth::{HttpAuthScheme, SecretSource, UpstreamCredentials};
use toolyard_net::client::HttpClient;

use crate::response;
use crate::server::{Answer, Server};

const KEY: &str = "RIV_0123456789";

const REQUEST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;

const MESSAGE: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#;

fn options(url: &str, returns: ReturnFormat) -> CortexOneOptions {
    CortexOneOptions {
        url: format!("{url}api/v1/functions/echo/1.2.0/invoke").parse().unwrap(),
        auth: UpstreamCredentials {
            scheme: HttpAuthScheme::Bare,
            source: SecretSource::Value(KEY.to_owned()),
            secrets: SecretRedactor::default(),
        },
        return_format: returns,
        delivery: RequestDelivery {
            attempt_time: Duration::from_secs(10),
            policy: ResendPolicy {
                retry: RetrySchedule::never(),
                statuses: vec![503],
                network_errors: true,
                respect_retry_after: true,
            },
            budget: toolyard_net::budget::ByteBudget::default(),
            response_bytes: 1000,
        },
    }
}

fn function(options: CortexOneOptions) -> CortexOneFunction {
    CortexOneFunction::new(options, &HttpClient::without_roots().unwrap())
}

async fn ask(function: &CortexOneFunction) -> Result<String, ToolError> {
    let answer = function.exchange(Json::parse(REQUEST).unwrap(), None).await?;
    Ok(answer.as_text().to_owned())
}

/// Sends a message to a function that is an MCP server; the platform returns `answer`.
async fn ask_once(answer: impl Into<Answer>) -> Result<String, ToolError> {
    let server = Server::start(&[answer.into()]).await;
    ask(&function(options(&server.url(), ReturnFormat::JsonRpcMessage))).await
}

#[tokio::test]
async fn event_is_posted_with_the_key() {
    let server = Server::start(&[Answer::Text(response("200 OK", MESSAGE))]).await;
    let function = function(options(&server.url(), ReturnFormat::JsonRpcMessage));
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
async fn message_is_found_in_every_response_format() {
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
        assert_eq!(ask_once(Answer::Text(response("200 OK", &form))).await.unwrap(), MESSAGE, "{form}");
    }
}

#[track_caller]
fn fails(result: Result<String, ToolError>, code: ErrorCode, message: &str) -> ToolError {
    let error = result.unwrap_err();
    assert_eq!((error.code(), error.message()), (code, message));
    assert!(!format!("{error:?}").contains(KEY));
    error
}

#[tokio::test]
async fn platform_errors_map_to_error_codes() {
    let cases = [
        ("400 Bad Request", ErrorCode::ExecutionFailed, "The platform refused the event", false),
        (
            "401 Unauthorized",
            ErrorCode::Unavailable,
            "The platform does not accept the key of this handler",
            false,
        ),
        ("402 Payment Required", ErrorCode::QuotaExhausted, "The balance at the platform is used up", false),
        (
            "404 Not Found",
            ErrorCode::Unavailable,
            "The platform has no such function, or no such version",
            false,
        ),
        ("408 Request Timeout", ErrorCode::Timeout, "The function did not answer in time", true),
        (
            "413 Payload Too Large",
            ErrorCode::InvalidArguments,
            "The arguments are too large for the platform",
            false,
        ),
        ("429 Too Many Requests", ErrorCode::RateLimited, "The platform is called too often", false),
        ("500 Internal Server Error", ErrorCode::Unavailable, "The platform failed to answer", true),
        ("302 Found", ErrorCode::ExecutionFailed, "The platform refused the call", false),
    ];
    for (status, code, message, may_have_run) in cases {
        let answer = response(&format!("{status}\r\nretry-after: 7"), r#"{"error": "this is why"}"#);
        let error = fails(ask_once(Answer::Text(answer)).await, code, message);
        assert_eq!(error.may_have_run(), may_have_run, "{status}");
        assert_eq!(error.wait(), Some(Duration::from_secs(7)));
        assert!(format!("{:#}", error.outline()).contains("this is why"));
    }
}

#[tokio::test]
async fn broken_responses_are_errors() {
    let large = response("200 OK", &format!(r#"{{"a":"{}"}}"#, "a".repeat(1000)));
    fails(
        ask_once(Answer::Text(large)).await,
        ErrorCode::ExecutionFailed,
        "The response is larger than 1000 bytes",
    );
    fails(ask_once(Answer::Reset).await, ErrorCode::Unavailable, "The connection to the tool's server broke");
    let garbage = "The function returned a value of unknown format";
    for body in ["", "<html>", "null", r#"{"statusCode": 200, "body": "fine"}"#] {
        fails(ask_once(Answer::Text(response("200 OK", body))).await, ErrorCode::ExecutionFailed, garbage);
    }
    let boom = r#"{"statusCode": 500, "body": "{\"error\": \"Runtime error: boom\"}"}"#;
    let error = fails(
        ask_once(Answer::Text(response("200 OK", boom))).await,
        ErrorCode::ExecutionFailed,
        "The function failed",
    );
    assert!(format!("{:#}", error.outline()).contains("Runtime error: boom"));
}

#[tokio::test]
async fn call_past_its_deadline_closes_the_connection() {
    let server = Server::start(&[Answer::Silence]).await;
    let function = function(options(&server.url(), ReturnFormat::JsonRpcMessage));
    let deadline = Instant::now() + Duration::from_millis(50);
    let result = function.exchange(Json::parse(REQUEST).unwrap(), Some(deadline)).await;
    assert_eq!(result.unwrap_err().code(), ErrorCode::Timeout);
    server.hung_up().await;
}

#[tokio::test]
async fn busy_platform_is_retried_by_the_policy() {
    let busy = Answer::Text(response("503 Service Unavailable", ""));
    let server = Server::start(&[busy.clone(), busy, Answer::Text(response("200 OK", MESSAGE))]).await;
    let mut options = options(&server.url(), ReturnFormat::JsonRpcMessage);
    options.delivery.policy.retry =
        RetrySchedule { attempts: 3, initial_backoff: Duration::from_millis(1), ..RetrySchedule::never() };
    assert_eq!(ask(&function(options)).await.unwrap(), MESSAGE);
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn key_file_is_read_for_each_call() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let ok = Answer::Text(response("200 OK", MESSAGE));
    let server = Server::start(&[ok.clone(), ok]).await;
    let mut options = options(&server.url(), ReturnFormat::JsonRpcMessage);
    options.auth.source = SecretSource::File(file.path().to_owned());
    let function = function(options);
    let error =
        fails(ask(&function).await, ErrorCode::Unavailable, "The credentials of this tool cannot be read");
    assert!(!error.may_have_run());
    for key in ["RIV_one", "RIV_two"] {
        std::fs::write(file.path(), key).unwrap();
        ask(&function).await.unwrap();
        let last = server.requests().pop().unwrap();
        assert!(last.contains(&format!("authorization: {key}\r\n")), "{last}");
    }
}

#[tokio::test]
async fn function_responses_are_tool_results() {
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
    let backend = FunctionBackend::new(function::FunctionToolOptions {
        tool: Tool::from_definition(&definition).unwrap(),
        exchange: Arc::new(function(options(&server.url(), ReturnFormat::HttpResponse))),
        retry: RetrySchedule::never(),
        attempt_time: Duration::from_secs(10),
        reading: ResponseConversion::default(),
    });
    assert_eq!(backend.catalog().borrow().phase, BackendPhase::Ready);
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
