//! One listing of the tools of a server, as the operator of Kubernetes requests it.

use toolyard_mcp::client::{
    ClientOptions, DedicatedOptions, EraPreference, UpstreamRetry, UpstreamToolFilter, list_tools,
};
use toolyard_net::client::HttpClient;
use toolyard_testing::upstream::{
    ReceivedRequest, RequestLog, ScriptedReply, ScriptedUpstream, TestUpstream, UpstreamEra, but,
};

const TOOL: &str = r#"{"name":"recall","inputSchema":{"type":"object"}}"#;

fn options() -> ClientOptions {
    let timeout = std::time::Duration::from_secs(10);
    ClientOptions {
        name: "operator".to_owned(),
        version: "1".to_owned(),
        max_message_bytes: 100_000,
        max_list_items: 3,
        max_depth: 64,
        connect_timeout: timeout,
        discover_timeout: timeout,
        idle_timeout: None,
        era: EraPreference::Automatic,
        filter: UpstreamToolFilter::default(),
        retry: UpstreamRetry::never(),
        dedicated: DedicatedOptions::SHARED,
        probe: None,
        budget: toolyard_net::budget::ByteBudget::default(),
        secrets: toolyard_core::SecretRedactor::default(),
        dropped_notices: std::sync::Arc::default(),
        skipped_messages: std::sync::Arc::default(),
        error_lines: Default::default(),
        launcher: None,
    }
}

/// Returns the names of the listed tools, or the error.
async fn names(upstream: &TestUpstream) -> Result<String, String> {
    let url = format!("http://{}", upstream.address).parse().unwrap();
    let client = HttpClient::without_roots().unwrap();
    let tools = list_tools(&url, &client, options()).await?;
    let names = tools.iter().map(|tool| tool.get_str("name").unwrap().into_owned());
    Ok(names.collect::<Vec<_>>().join(","))
}

fn no_calls(_: &ReceivedRequest) -> ScriptedReply {
    ScriptedReply::never()
}

/// Answers a request that has no session.
type BareReply = fn(&ReceivedRequest) -> Option<ScriptedReply>;

fn is_bare(request: &ReceivedRequest) -> bool {
    let text = request.head.text().to_lowercase();
    request.method() == "tools/list"
        && !text.contains("mcp-session-id")
        && !text.contains("mcp-protocol-version")
}

fn server(era: UpstreamEra, bare: BareReply) -> TestUpstream {
    let reply = move |request: &ReceivedRequest| if is_bare(request) { bare(request) } else { None };
    TestUpstream::start(but(ScriptedUpstream::new(era, &[TOOL], no_calls), reply))
}

fn answered(request: &ReceivedRequest) -> Option<ScriptedReply> {
    Some(ScriptedReply::result(request, &format!(r#"{{"tools":[{TOOL}]}}"#)))
}

#[tokio::test]
async fn bare_request_is_the_first_and_only_one() {
    let upstream = server(UpstreamEra::Legacy, answered);
    assert_eq!(names(&upstream).await.as_deref(), Ok("recall"));
    let (count, request) =
        upstream.now(|log: &RequestLog| (log.requests.len(), log.last("tools/list").clone()));
    assert_eq!(count, 1);
    assert!(request.head.start.starts_with("POST /mcp "), "{}", request.head.start);
    assert_eq!(request.body, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#);
}

#[tokio::test]
async fn refused_bare_request_is_followed_by_a_handshake() {
    let refusals: [BareReply; 5] = [
        |_| Some(ScriptedReply::http(400, "", "no session")),
        |_| Some(ScriptedReply::http(404, "", "")),
        |request| {
            let error = r#"{"code":-32600,"message":"initialize first"}"#;
            Some(ScriptedReply::json(&format!(
                r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#,
                request.id()
            )))
        },
        |_| Some(ScriptedReply::json("<html>")),
        |request| Some(ScriptedReply::result(request, r#"{"items":[]}"#)),
    ];
    for (number, refusal) in refusals.into_iter().enumerate() {
        for era in [UpstreamEra::Legacy, UpstreamEra::Modern] {
            assert_eq!(names(&server(era, refusal)).await.as_deref(), Ok("recall"), "{number} {era:?}");
        }
    }
}

#[tokio::test]
async fn pages_are_read_up_to_the_limit() {
    let page = |request: &ReceivedRequest| {
        let number = request.params().find("cursor").map_or_else(|| "0".to_owned(), |cursor| cursor.plain());
        let next: usize = number.parse::<usize>().unwrap() + 1;
        Some(ScriptedReply::result(
            request,
            &format!(r#"{{"tools":[{{"name":"t{number}"}}],"nextCursor":"{next}"}}"#),
        ))
    };
    assert_eq!(names(&server(UpstreamEra::Legacy, page)).await.as_deref(), Ok("t0,t1,t2"));
}

#[tokio::test]
async fn unreachable_server_is_an_error() {
    let upstream = server(UpstreamEra::Legacy, answered);
    let url = format!("http://{}", upstream.address).parse().unwrap();
    drop(upstream);
    let client = HttpClient::without_roots().unwrap();
    let error = list_tools(&url, &client, options()).await.unwrap_err();
    assert!(error.contains("refused"), "{error}");
}
