//! Several gateways behind a balancer that sends each request to any of them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use tokio::sync::Semaphore;
use toolyard_manifest::Listen;
use toolyard_server::Running;

use crate::client::{Client, Speech};
use crate::json::{self, Node};
use crate::upstream::{Era, Received, Reply, Reserved, Server, TOOL, Upstream};
use crate::{manifest, started};

/// Calls that wait for their clients at the same time.
const PARKED: usize = 500;

/// A legacy server whose tool asks its user for a name, and says what it was told.
fn asking() -> Upstream {
    let sessions = AtomicUsize::new(0);
    let told: Arc<Mutex<HashMap<String, Arc<Told>>>> = Arc::default();
    Upstream::start(move |request: &Received| {
        let session = request.head.header("mcp-session-id").unwrap_or_default().to_owned();
        let mine = told.lock().unwrap().entry(session).or_default().clone();
        match request.method().as_str() {
            "server/discover" => Reply::http(404, "", ""),
            "initialize" => {
                let id = sessions.fetch_add(1, Ordering::Relaxed);
                let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}"#;
                let body = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request.id());
                Reply::http(
                    200,
                    &format!("content-type: application/json\r\nmcp-session-id: s{id}\r\n"),
                    &body,
                )
            }
            "tools/list" => {
                Reply::result(request, r#"{"tools":[{"name":"greet","inputSchema":{"type":"object"}}]}"#)
            }
            "tools/call" => {
                let question = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}}"#;
                let id = request.id();
                let answer = async move {
                    mine.come.acquire().await.unwrap().forget();
                    let name = mine.name.lock().unwrap().clone();
                    event(&format!(
                        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"told":{name}}}}}"#
                    ))
                };
                let question = stream::once(async move { event(question) });
                Reply::ending("text/event-stream", question.chain(stream::once(answer)))
            }
            // What the client says to the question.
            "" => {
                *mine.name.lock().unwrap() = request.message().get("result").get("content").text();
                mine.come.add_permits(1);
                Reply::http(202, "", "")
            }
            "GET" => Reply::http(405, "", ""),
            _ => Reply::http(202, "", ""),
        }
    })
}

/// What the client of one session has said.
struct Told {
    name: Mutex<String>,
    come: Semaphore,
}

impl Default for Told {
    fn default() -> Self {
        Self { name: Mutex::default(), come: Semaphore::new(0) }
    }
}

fn event(message: &str) -> Bytes {
    format!("data: {message}\n\n").into()
}

/// One of several gateways in front of a server.
async fn member(upstream: SocketAddr, key: &str) -> (Running, SocketAddr) {
    // Nothing else is given this address while it is reserved, and who asks for it by its number gets it.
    let reserved = Reserved::new();
    let address = reserved.address();
    let process = format!(
        "cluster: {{address: 'http://{address}', key: '{key}'}}, limits: {{lanesPerHandler: {PARKED}, parkedCalls: {PARKED}}}, timeouts: {{taskAfter: 10ms}}"
    );
    let mut manifest = manifest(&[("old", upstream, "")], &process);
    manifest.process.listen = vec![Listen::Tcp(address)];
    (started(&manifest).await, address)
}

const KEY: &str = "0123456789abcdef0123456789abcdef";

/// The members of `_meta` of a client that can be asked for input.
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}"#;

/// Calls until something is to be answered; gives the state.
async fn begin(address: SocketAddr) -> String {
    let mut client = Client::new(address, Speech::Modern).await;
    let body = client.ask("tools/call", &format!(r#"{{"name":"greet","arguments":{{}},{META}}}"#)).await.body;
    let result = json::read(&body).get("result").clone();
    assert_eq!(result.get("resultType").text(), r#""input_required""#, "{body}");
    assert!(result.get("inputRequests").text().contains("who?"), "{body}");
    result.get("requestState").text()
}

/// Comes back with an answer; gives what is said to that.
async fn go_on(address: SocketAddr, state: &str, name: &str) -> Node {
    let mut client = Client::new(address, Speech::Modern).await;
    let answers = format!(r#"{{"elicitation-1":{{"action":"accept","content":{{"name":"{name}"}}}}}}"#);
    let params = format!(
        r#"{{"name":"greet","arguments":{{}},"inputResponses":{answers},"requestState":{state},{META}}}"#
    );
    json::read(&client.ask("tools/call", &params).await.body)
}

#[tokio::test]
async fn a_client_comes_back_to_another_gateway() {
    let server = asking();
    let (_one, one) = member(server.address, KEY).await;
    let (_other, other) = member(server.address, KEY).await;
    let (_stranger, stranger) = member(server.address, &KEY.replace('0', "1")).await;
    let state = begin(one).await;
    // Who has another key knows nothing of it, and does not spoil it.
    let refused = go_on(stranger, &state, "eve").await;
    assert_eq!(refused.get("error").get("code").text(), "-32602");
    assert_eq!(go_on(other, &state, "ann").await.get("result").get("told").text(), r#"{"name":"ann"}"#);
    // It is over.
    assert_eq!(go_on(other, &state, "ann").await.get("error").get("code").text(), "-32602");
}

#[tokio::test]
async fn a_gateway_that_is_gone() {
    let server = asking();
    let (one, address) = member(server.address, KEY).await;
    let (_other, other) = member(server.address, KEY).await;
    let state = begin(address).await;
    one.stop().await;
    let refused = go_on(other, &state, "ann").await;
    assert_eq!(refused.get("error").get("data").get("code").text(), r#""unavailable""#);
}

/// Requests come by turns to one of two gateways, and many calls wait at each.
#[tokio::test]
async fn many_parked_calls() {
    let server = asking();
    let (_one, one) = member(server.address, KEY).await;
    let (_other, other) = member(server.address, KEY).await;
    let gateways = [one, other];
    let states = join_all((0..PARKED).map(|number| begin(gateways[number % 2]))).await;
    let answered = states.iter().enumerate().map(async |(number, state)| {
        // Half of them come back to the gateway where they were, the others to the other one.
        let gateway = gateways[number / 2 % 2];
        let answer = go_on(gateway, state, &format!("n{number}")).await;
        assert_eq!(answer.get("result").get("told").text(), format!(r#"{{"name":"n{number}"}}"#));
    });
    join_all(answered).await;
}

/// A task is followed at whichever gateway its client comes to.
#[tokio::test]
async fn a_task_of_another_gateway_is_followed() {
    const TASKS: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;
    let (release, released) = tokio::sync::watch::channel(false);
    let server = Upstream::start(Server::new(Era::Modern, &[TOOL], move |request: &Received| {
        let mut released = released.clone();
        Reply::result(request, r#"{"content":[],"done":1,"resultType":"complete"}"#).after(async move {
            released.wait_for(|released| *released).await.unwrap();
        })
    }));
    let (_one, one) = member(server.address, KEY).await;
    let (_other, other) = member(server.address, KEY).await;
    let mut caller = Client::new(one, Speech::Modern).await;
    let called = caller.ask("tools/call", &format!(r#"{{"name":"t","arguments":{{}},{TASKS}}}"#)).await.body;
    let id = json::read(&called).get("result").get("taskId").text();
    let params = format!(r#"{{"notifications":{{"taskIds":[{id}]}},{TASKS}}}"#);
    let mut stream = Client::new(other, Speech::Modern).await.open("subscriptions/listen", &params).await;
    let acknowledged = stream.message().await.unwrap();
    assert!(acknowledged.contains(&id), "{acknowledged}");
    let mut told = vec![stream.message().await.unwrap()];
    release.send_replace(true);
    told.push(stream.message().await.unwrap());
    for (message, status) in told.iter().zip(["working", "completed"]) {
        let params = json::read(message).get("params").clone();
        assert_eq!(params.get("taskId").text(), id);
        assert_eq!(params.get("status").plain(), status);
        assert!(message.contains(r#""io.modelcontextprotocol/subscriptionId":7"#), "{message}");
    }
    assert!(told[1].contains(r#""done":1"#), "{}", told[1]);
}
