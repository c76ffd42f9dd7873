//! Several gateways behind a balancer that sends each request to any of them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use tokio::sync::Semaphore;
use toolyard_manifest::ListenAddress;
use toolyard_server::RunningGateway;
use toolyard_testing::json::{self, JsonNode};
use toolyard_testing::upstream::{
    ReceivedRequest, ReservedAddress, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra,
};
use toolyard_testing::wire_client::{ClientMode, WireClient};

use crate::gateway::{manifest, started};

/// Calls that wait for their clients at the same time.
const PARKED: usize = 500;

/// A legacy server whose tool asks its user for a name, and returns the answer.
fn elicitation_server() -> TestUpstream {
    let sessions = AtomicUsize::new(0);
    let answers: Arc<Mutex<HashMap<String, Arc<SessionAnswer>>>> = Arc::default();
    TestUpstream::start(move |request: &ReceivedRequest| {
        let session = request.head.header("mcp-session-id").unwrap_or_default().to_owned();
        let mine = answers.lock().unwrap().entry(session).or_default().clone();
        match request.method().as_str() {
            "server/discover" => ScriptedReply::http(404, "", ""),
            "initialize" => {
                let id = sessions.fetch_add(1, Ordering::Relaxed);
                let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}"#;
                let body = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request.id());
                ScriptedReply::http(
                    200,
                    &format!("content-type: application/json\r\nmcp-session-id: s{id}\r\n"),
                    &body,
                )
            }
            "tools/list" => ScriptedReply::result(
                request,
                r#"{"tools":[{"name":"greet","inputSchema":{"type":"object"}}]}"#,
            ),
            "tools/call" => {
                let question = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}}"#;
                let id = request.id();
                let answer = async move {
                    mine.response_ready.acquire().await.unwrap().forget();
                    let name = mine.name.lock().unwrap().clone();
                    event(&format!(
                        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"told":{name}}}}}"#
                    ))
                };
                let question = stream::once(async move { event(question) });
                ScriptedReply::ending("text/event-stream", question.chain(stream::once(answer)))
            }
            // The client's response to the question.
            "" => {
                *mine.name.lock().unwrap() = request.message().get("result").get("content").text();
                mine.response_ready.add_permits(1);
                ScriptedReply::http(202, "", "")
            }
            "GET" => ScriptedReply::http(405, "", ""),
            _ => ScriptedReply::http(202, "", ""),
        }
    })
}

/// The response of the client of one session.
struct SessionAnswer {
    name: Mutex<String>,
    response_ready: Semaphore,
}

impl Default for SessionAnswer {
    fn default() -> Self {
        Self { name: Mutex::default(), response_ready: Semaphore::new(0) }
    }
}

fn event(message: &str) -> Bytes {
    format!("data: {message}\n\n").into()
}

/// One of several gateways in front of a server.
async fn cluster_gateway(upstream: SocketAddr, key: &str) -> (RunningGateway, SocketAddr) {
    // The system gives a reserved address to no other socket, except to one that binds this port explicitly.
    let reserved = ReservedAddress::new();
    let address = reserved.address();
    let process = format!(
        "cluster: {{address: 'http://{address}', key: '{key}'}}, limits: {{lanesPerHandler: {PARKED}, parkedCalls: {PARKED}}}, timeouts: {{taskAfter: 10ms}}"
    );
    let mut manifest = manifest(&[("old", upstream, "")], &process);
    manifest.process.listen = vec![ListenAddress::Tcp(address)];
    (started(&manifest).await, address)
}

const KEY: &str = "0123456789abcdef0123456789abcdef";

/// The members of `_meta` of a client that accepts requests for input.
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}"#;

/// Makes a call up to its request for input, and returns the request state.
async fn begin_call(address: SocketAddr) -> String {
    let mut client = WireClient::new(address, ClientMode::Modern).await;
    let body = client.ask("tools/call", &format!(r#"{{"name":"greet","arguments":{{}},{META}}}"#)).await.body;
    let result = json::read(&body).get("result").clone();
    assert_eq!(result.get("resultType").text(), r#""input_required""#, "{body}");
    assert!(result.get("inputRequests").text().contains("who?"), "{body}");
    result.get("requestState").text()
}

/// Continues a call with an answer, and returns the response.
async fn continue_call(address: SocketAddr, state: &str, name: &str) -> JsonNode {
    let mut client = WireClient::new(address, ClientMode::Modern).await;
    let answers = format!(r#"{{"elicitation-1":{{"action":"accept","content":{{"name":"{name}"}}}}}}"#);
    let params = format!(
        r#"{{"name":"greet","arguments":{{}},"inputResponses":{answers},"requestState":{state},{META}}}"#
    );
    json::read(&client.ask("tools/call", &params).await.body)
}

#[tokio::test]
async fn client_continues_at_another_gateway() {
    let server = elicitation_server();
    let (_one, one) = cluster_gateway(server.address, KEY).await;
    let (_other, other) = cluster_gateway(server.address, KEY).await;
    let (_stranger, stranger) = cluster_gateway(server.address, &KEY.replace('0', "1")).await;
    let state = begin_call(one).await;
    // A gateway with another cluster key cannot read the state, and does not consume it.
    let refused = continue_call(stranger, &state, "eve").await;
    assert_eq!(refused.get("error").get("code").text(), "-32602");
    assert_eq!(
        continue_call(other, &state, "ann").await.get("result").get("told").text(),
        r#"{"name":"ann"}"#
    );
    // The call is over.
    assert_eq!(continue_call(other, &state, "ann").await.get("error").get("code").text(), "-32602");
}

#[tokio::test]
async fn call_of_a_stopped_gateway_is_unavailable() {
    let server = elicitation_server();
    let (one, address) = cluster_gateway(server.address, KEY).await;
    let (_other, other) = cluster_gateway(server.address, KEY).await;
    let state = begin_call(address).await;
    one.stop().await;
    let refused = continue_call(other, &state, "ann").await;
    assert_eq!(refused.get("error").get("data").get("code").text(), r#""unavailable""#);
}

/// A balancer alternates between two gateways, and many calls wait at each.
#[tokio::test]
async fn many_suspended_calls_continue_at_either_gateway() {
    let server = elicitation_server();
    let (_one, one) = cluster_gateway(server.address, KEY).await;
    let (_other, other) = cluster_gateway(server.address, KEY).await;
    let gateways = [one, other];
    let states = join_all((0..PARKED).map(|number| begin_call(gateways[number % 2]))).await;
    let answered = states.iter().enumerate().map(async |(number, state)| {
        // Half of the calls continue at the gateway where they began, the others at the other one.
        let gateway = gateways[number / 2 % 2];
        let answer = continue_call(gateway, state, &format!("n{number}")).await;
        assert_eq!(answer.get("result").get("told").text(), format!(r#"{{"name":"n{number}"}}"#));
    });
    join_all(answered).await;
}

/// A client can follow a task at a gateway that does not run it.
#[tokio::test]
async fn task_is_followed_at_another_gateway() {
    const TASKS: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;
    let (release, released) = tokio::sync::watch::channel(false);
    let server = TestUpstream::start(ScriptedUpstream::new(
        UpstreamEra::Modern,
        &[TOOL],
        move |request: &ReceivedRequest| {
            let mut released = released.clone();
            ScriptedReply::result(request, r#"{"content":[],"done":1,"resultType":"complete"}"#).after(
                async move {
                    released.wait_for(|released| *released).await.unwrap();
                },
            )
        },
    ));
    let (_one, one) = cluster_gateway(server.address, KEY).await;
    let (_other, other) = cluster_gateway(server.address, KEY).await;
    let mut caller = WireClient::new(one, ClientMode::Modern).await;
    let called = caller.ask("tools/call", &format!(r#"{{"name":"t","arguments":{{}},{TASKS}}}"#)).await.body;
    let id = json::read(&called).get("result").get("taskId").text();
    let params = format!(r#"{{"notifications":{{"taskIds":[{id}]}},{TASKS}}}"#);
    let mut stream =
        WireClient::new(other, ClientMode::Modern).await.open("subscriptions/listen", &params).await;
    let acknowledged = stream.message().await.unwrap();
    assert!(acknowledged.contains(&id), "{acknowledged}");
    let mut updates = vec![stream.message().await.unwrap()];
    release.send_replace(true);
    updates.push(stream.message().await.unwrap());
    for (message, status) in updates.iter().zip(["working", "completed"]) {
        let params = json::read(message).get("params").clone();
        assert_eq!(params.get("taskId").text(), id);
        assert_eq!(params.get("status").plain(), status);
        assert!(message.contains(r#""io.modelcontextprotocol/subscriptionId":7"#), "{message}");
    }
    assert!(updates[1].contains(r#""done":1"#), "{}", updates[1]);
}
