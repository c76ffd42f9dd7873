//! The HTTP backend against a server on a real socket with scripted answers.

#![cfg(test)]

mod cortexone;
mod openapi;
mod server;

use std::time::Duration;

use server::{Answer, Server};
use tokio::time::Instant;
use toolyard_backends::delivery::{RequestDelivery, ResendPolicy};
use toolyard_backends::http::mapping::JmesPathMapping;
use toolyard_backends::http::request::HttpRequestPlan;
use toolyard_backends::http::response::ResponseConversion;
use toolyard_backends::http::target::RequestTarget;
use toolyard_backends::http::{HttpBackend, HttpToolOptions};
use toolyard_core::{
    Backend, BackendPhase, Call, ErrorCode, Json, LongWork, Outcome, RetrySchedule, SecretRedactor, Tool,
    ToolError,
};
use toolyard_net::auth::{HttpAuthScheme, SecretSource, UpstreamCredentials};
use toolyard_net::client::HttpClient;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{\"ok\": 1}";

fn response(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn options(url: &str) -> HttpToolOptions {
    let definition = Json::parse(r#"{"name":"t","inputSchema":{"type":"object"}}"#).unwrap();
    HttpToolOptions {
        name: "http".into(),
        probe: None,
        tool: Tool::from_definition(&definition).unwrap(),
        plan: HttpRequestPlan::new(http::Method::POST, RequestTarget::template(url)),
        auth: None,
        delivery: RequestDelivery {
            attempt_time: Duration::from_secs(10),
            policy: ResendPolicy {
                retry: RetrySchedule {
                    attempts: 4,
                    initial_backoff: Duration::from_millis(1),
                    max_backoff: Duration::from_millis(20),
                    ..RetrySchedule::never()
                },
                statuses: vec![429, 500, 503],
                network_errors: true,
                respect_retry_after: true,
            },
            budget: toolyard_net::budget::ByteBudget::default(),
            response_bytes: 1000,
        },
        reading: ResponseConversion::default(),
    }
}

fn backend(options: HttpToolOptions) -> HttpBackend {
    HttpBackend::new(options, &HttpClient::without_roots().unwrap())
}

async fn call(backend: &HttpBackend) -> Result<String, ToolError> {
    let arguments = Json::parse(r#"{"a": 1.10}"#).unwrap();
    match backend.call(Call::tool("t", arguments)).await? {
        Outcome::Done(output) => Ok(output.body.to_json().as_text().to_owned()),
        other => panic!("{other:?}"),
    }
}

/// Makes a call against a server with these answers, and returns its result and the number of requests.
async fn run(
    answers: &[Answer],
    change: impl FnOnce(&mut HttpToolOptions),
) -> (Result<String, ToolError>, usize) {
    let server = Server::start(answers).await;
    let mut options = options(&server.url());
    change(&mut options);
    let result = call(&backend(options)).await;
    (result, server.requests().len())
}

fn once(options: &mut HttpToolOptions) {
    options.delivery.policy.retry = RetrySchedule::never();
}

#[track_caller]
fn is(result: &(Result<String, ToolError>, usize), text: &str, requests: usize) {
    let (Ok(found), made) = result else { panic!("{result:?}") };
    assert!(found.contains(text), "{found}");
    assert_eq!(*made, requests);
}

#[track_caller]
fn fails(result: &(Result<String, ToolError>, usize), code: ErrorCode, message: &str, requests: usize) {
    let (Err(error), made) = result else { panic!("{result:?}") };
    assert_eq!((error.code(), error.message(), *made), (code, message, requests));
}

fn auth(scheme: HttpAuthScheme, source: SecretSource) -> UpstreamCredentials {
    UpstreamCredentials { scheme, source, secrets: SecretRedactor::default() }
}

#[tokio::test]
async fn request_carries_arguments_and_credentials() {
    let server = Server::start(&[Answer::Text(OK.into())]).await;
    let mut options = options(&format!("{}x?y=z", server.url()));
    options.auth = Some(auth(HttpAuthScheme::Basic, SecretSource::Value("me:secret".into())));
    let backend = backend(options);
    assert_eq!(backend.catalog().borrow().phase, BackendPhase::Ready);
    assert_eq!(backend.catalog().borrow().tools.len(), 1);
    let result = call(&backend).await.unwrap();
    assert_eq!(result, r#"{"content":[{"type":"text","text":"{\"ok\": 1}"}],"structuredContent":{"ok": 1}}"#);
    let [request] = &server.requests()[..] else { panic!("several requests") };
    let host = server.url().replace("http://", "").replace('/', "");
    insta::assert_snapshot!(request.replace(&host, "HOST").replace('\r', ""), @r#"
    POST /x?y=z HTTP/1.1
    accept: application/json, */*;q=0.5
    user-agent: toolyard/0.1.0
    content-type: application/json
    authorization: Basic bWU6c2VjcmV0
    host: HOST
    content-length: 11

    {"a": 1.10}
    "#);
}

#[tokio::test]
async fn secret_file_is_read_for_each_call() {
    let server = Server::start(&[Answer::Text(OK.into()), Answer::Text(OK.into())]).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let mut options = options(&server.url());
    options.auth = Some(auth(HttpAuthScheme::Bearer, SecretSource::File(path.clone())));
    let backend = backend(options);
    let error = call(&backend).await.unwrap_err();
    assert_eq!(
        (error.code(), error.message()),
        (ErrorCode::Unavailable, "The credentials of this tool cannot be read")
    );
    for token in ["one", "two\n"] {
        std::fs::write(&path, token).unwrap();
        call(&backend).await.unwrap();
        let sent = format!("authorization: Bearer {}\r\n", token.trim());
        assert!(server.requests().last().unwrap().contains(&sent));
    }
}

#[tokio::test]
async fn bodies_are_decoded_and_limited() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\n{\"a\"\r\n3\r\n:1}\r\n0\r\n\r\n";
    is(&run(&[chunked.into()], once).await, r#""structuredContent":{"a":1}"#, 1);
    let until_closed = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello";
    is(&run(&[Answer::Last(until_closed.into())], once).await, r#""text":"hello""#, 1);
    let gzip = response("200 OK\r\ncontent-encoding: gzip", "\u{1f}x");
    let compressed = "The response is compressed, although no content encoding was accepted";
    fails(&run(&[gzip.as_str().into()], |_| {}).await, ErrorCode::ExecutionFailed, compressed, 1);
    let huge = response("200 OK", &"x".repeat(1001));
    fails(
        &run(&[huge.as_str().into()], |_| {}).await,
        ErrorCode::ExecutionFailed,
        "The response is larger than 1000 bytes",
        1,
    );
    let chunk = |length: usize| format!("{length:x}\r\n{}\r\n", "x".repeat(length));
    let huge_in_chunks =
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{}{}", chunk(500), chunk(501));
    fails(
        &run(&[huge_in_chunks.as_str().into()], |_| {}).await,
        ErrorCode::ExecutionFailed,
        "The response is larger than 1000 bytes",
        1,
    );
}

#[tokio::test]
async fn error_response_is_a_result() {
    let missing = response("404 Not Found", "no such thing");
    is(&run(&[missing.as_str().into()], |_| {}).await, "HTTP 404 Not Found: no such thing", 1);
    // Redirects are not followed.
    let redirect = response("307 Temporary Redirect\r\nlocation: http://169.254.169.254/", "");
    is(
        &run(&[redirect.as_str().into()], |_| {}).await,
        "HTTP 307 Temporary Redirect (redirects are not followed)",
        1,
    );
    let huge = response("400 Bad Request", &"x".repeat(100_000));
    is(
        &run(&[huge.as_str().into()], |_| {}).await,
        &format!("HTTP 400 Bad Request: {}\"", "x".repeat(512)),
        1,
    );
}

#[tokio::test]
async fn transient_failures_are_retried() {
    let error = response("500 Internal Server Error", "oh");
    let [e, ok] = [Answer::Text(error), Answer::Text(OK.into())];
    is(
        &run(&[e.clone(), e.clone(), e.clone(), ok.clone()], |_| {}).await,
        r#""structuredContent":{"ok": 1}"#,
        4,
    );
    is(
        &run(&[e.clone(), e.clone(), e.clone(), e.clone(), ok.clone()], |_| {}).await,
        "4 attempts exhausted: HTTP 500 Internal Server Error: oh",
        4,
    );
    is(&run(&[e.clone(), ok.clone()], once).await, "\"HTTP 500 Internal Server Error: oh\"", 1);
    let not_listed = response("501 Not Implemented", "");
    is(&run(&[not_listed.as_str().into(), ok.clone()], |_| {}).await, "HTTP 501 Not Implemented", 1);

    let reset = Answer::Reset;
    is(&run(&[reset.clone(), reset.clone(), ok.clone()], |_| {}).await, r#""ok": 1"#, 3);
    let broke = "The connection to the tool's server broke";
    fails(&run(&[reset.clone(), ok.clone()], once).await, ErrorCode::Unavailable, broke, 1);
    let not = |options: &mut HttpToolOptions| options.delivery.policy.network_errors = false;
    fails(&run(&[reset.clone(), ok.clone()], not).await, ErrorCode::Unavailable, broke, 1);

    let truncated = Answer::Last("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"a\":".into());
    is(&run(&[truncated.clone(), ok.clone()], |_| {}).await, r#""ok": 1"#, 2);
    fails(&run(&[truncated], once).await, ErrorCode::Unavailable, broke, 1);
    fails(&run(&[Answer::Last("\u{1}garbage\r\n\r\n".into())], once).await, ErrorCode::Unavailable, broke, 1);
}

#[tokio::test]
async fn retry_after_is_capped_by_the_policy() {
    let busy = response("429 Too Many Requests\r\nretry-after: 1", "");
    let start = Instant::now();
    is(&run(&[busy.as_str().into(), OK.into()], |_| {}).await, r#""ok": 1"#, 2);
    assert!(start.elapsed() >= Duration::from_millis(20), "the maximum of the policy");
}

#[tokio::test]
async fn timeout_applies_to_each_attempt() {
    let short = |options: &mut HttpToolOptions| options.delivery.attempt_time = Duration::from_millis(100);
    is(&run(&[Answer::Silence, OK.into()], short).await, r#""ok": 1"#, 2);
    let late = |options: &mut HttpToolOptions| {
        once(options);
        short(options);
    };
    fails(
        &run(&[Answer::Silence], late).await,
        ErrorCode::Timeout,
        "The tool's server did not answer in time",
        1,
    );
    let half = Answer::Stall("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".into());
    fails(&run(&[half], late).await, ErrorCode::Timeout, "The tool's server did not answer in time", 1);
}

#[tokio::test]
async fn dropped_call_closes_the_connection() {
    let server = Server::start(&[Answer::Silence]).await;
    let backend = backend(options(&server.url()));
    tokio::select! {
        result = call(&backend) => panic!("{result:?}"),
        _requests = server.wait_for(1) => {}
    }
    server.hung_up().await;
}

#[tokio::test]
async fn unreachable_server_opens_the_breaker() {
    let server = Server::start(&[]).await;
    let url = server.url();
    server.stop().await;
    let mut options = options(&url);
    once(&mut options);
    let backend = backend(options);
    for attempt in 0..6 {
        let error = call(&backend).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Unavailable);
        let refused = error.message().contains("left alone");
        assert_eq!(refused, attempt == 5, "{}", error.message());
    }
}

#[tokio::test]
async fn deadlines_of_callers_do_not_open_the_breaker() {
    let server = Server::start(&vec![Answer::Silence; 7]).await;
    let backend = backend(options(&server.url()));
    for _ in 0..7 {
        let mut call = Call::tool("t", Json::parse("{}").unwrap());
        call.deadline = Some(Instant::now() + Duration::from_millis(20));
        assert_eq!(backend.call(call).await.unwrap_err().code(), ErrorCode::Timeout);
    }
    assert_eq!(backend.last_failure(), None);
}

#[tokio::test]
async fn client_errors_do_not_open_the_breaker() {
    let bad = Answer::Text(response("400 Bad Request", ""));
    let server = Server::start(&vec![bad; 8]).await;
    let backend = backend(options(&server.url()));
    for _ in 0..8 {
        assert!(call(&backend).await.unwrap().contains("HTTP 400"));
    }
}

#[tokio::test]
async fn arguments_do_not_reach_private_addresses() {
    let server = Server::start(&[Answer::Text(OK.into())]).await;
    let url = server.url().replace("127.0.0.1", "{host}");
    let backend = backend(options(&url));
    for host in ["127.0.0.1", "localhost", "169.254.169.254", "10.0.0.1", "2130706433"] {
        let arguments = Json::parse(format!(r#"{{"host":"{host}"}}"#)).unwrap();
        let error = backend.call(Call::tool("t", arguments)).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Denied, "{host}: {error:?}");
    }
    assert!(server.requests().is_empty());
}

/// Queued background jobs.
type Jobs = std::sync::Arc<std::sync::Mutex<Vec<Box<dyn FnOnce() + Send>>>>;

#[tokio::test]
async fn large_mappings_run_in_the_background_within_the_budget() {
    let body = format!(r#"{{"a":"{}"}}"#, "x".repeat(200 << 10));
    let server = Server::start(&[Answer::Text(response("200 OK", &body))]).await;
    let mut options = options(&server.url());
    once(&mut options);
    let budget = toolyard_net::budget::ByteBudget::new(4 << 20);
    options.delivery.budget = budget.clone();
    options.delivery.response_bytes = 1 << 20;
    options.reading.mapping = Some(JmesPathMapping::new(jmespath::compile("{b: a}").unwrap(), 1 << 20));
    let jobs = Jobs::default();
    let queue = jobs.clone();
    let long_work = LongWork::new(std::sync::Arc::new(move |job| queue.lock().unwrap().push(job)));
    let backend = backend(options).with_long_work(Some(long_work));
    let mut calling = Box::pin(backend.call(Call::tool("t", Json::parse("{}").unwrap())));
    let job = loop {
        // The response arrives on a socket; the mapping waits for its thread, and the call for the mapping.
        assert!(futures_util::FutureExt::now_or_never(&mut calling).is_none());
        if let Some(job) = jobs.lock().unwrap().pop() {
            break job;
        }
        tokio::task::yield_now().await;
    };
    job();
    let Ok(Outcome::Done(output)) = calling.await else { panic!("no result") };
    assert!(output.body.get("structuredContent").unwrap().as_text().starts_with(r#"{"b":"xxx"#));
    // The response itself is dropped; its two copies count until the output is dropped.
    let used = budget.used();
    assert!((400 << 10..500 << 10).contains(&used), "{used}");
    drop(output);
    assert_eq!(budget.used(), 0);
}
