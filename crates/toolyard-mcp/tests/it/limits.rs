//! Clients that exceed their share: their own limits, and the isolation of others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{HeaderMap, Method, header};
use insta::assert_snapshot;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use toolyard_core::{CallerPeer, ClientNotification, Json, LogLevel, Object};
use toolyard_mcp::server::FrontendLimits;
use toolyard_mcp::server::duplex::{self, DuplexLimits};

use crate::client::{ABLE, Client, DRAIN, ELICIT, LEGACY, MODERN, ROOTS, Transport, asking, tool_params};
use crate::script::text;
use crate::test_gateway::{Setup, TestGateway, let_tasks_settle};
use crate::web::{Exchange, request};

/// A pipe with little capacity, and the frontend at its other end.
fn narrow_pipe(gateway: &TestGateway, requests: usize) -> (DuplexStream, JoinHandle<std::io::Result<()>>) {
    let (ours, theirs) = tokio::io::duplex(1000);
    let (input, output) = tokio::io::split(theirs);
    let limits = DuplexLimits { max_line_bytes: 10_000, max_requests: requests, drain_time: DRAIN };
    (ours, tokio::spawn(duplex::serve(gateway.frontend.clone(), input, output, limits, CallerPeer::Unknown)))
}

fn legacy(id: usize, tool: &str, arguments: &str) -> String {
    let params = tool_params(tool, arguments);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{params}}}}}"#) + "\n"
}

/// An argument whose name is too long for a narrow pipe.
fn long(word: &str) -> String {
    format!(r#""{}":1"#, word.repeat(2000))
}

/// A client that does not read delays its answers, but neither its calls nor other clients.
#[tokio::test(start_paused = true)]
async fn unread_pipe_does_not_block_calls() {
    let gateway = TestGateway::with(Setup { running: 10, ..Setup::default() });
    let (mut client, _served) = narrow_pipe(&gateway, 100);
    for id in 0..5 {
        client.write_all(legacy(id, "echo", &long("x")).as_bytes()).await.unwrap();
        client.write_all(legacy(5 + id, "wait", "").as_bytes()).await.unwrap();
    }
    let ended = gateway.ended(10).await;
    assert_eq!(ended.iter().filter(|ended| *ended == "echo Ok(true)").count(), 5);
    assert_eq!(ended.iter().filter(|ended| *ended == "wait Err(Timeout)").count(), 5);
    let mut other = Client::on_pipe(&gateway, LEGACY[3], "{}").await;
    assert!(other.call("echo", "").await.contains("result"), "the places are free");
    // Once the client reads, every answer is there exactly once.
    let mut lines = BufReader::new(client).lines();
    let mut ids = Vec::new();
    for _ in 0..10 {
        let line = lines.next_line().await.unwrap().unwrap();
        ids.push(line.split(r#""id":"#).nth(1).unwrap().split(',').next().unwrap().parse::<usize>().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, (0..10).collect::<Vec<_>>());
}

/// A client may write all of its requests before it reads the first answer, up to the limit of concurrent requests.
#[tokio::test]
async fn all_requests_can_precede_the_first_read() {
    let gateway = TestGateway::new();
    let (mut client, served) = narrow_pipe(&gateway, 50);
    for id in 0..50 {
        client.write_all(legacy(id, "echo", &long("x")).as_bytes()).await.unwrap();
    }
    client.shutdown().await.unwrap();
    let mut lines = BufReader::new(client).lines();
    let mut received = 0;
    while let Some(line) = lines.next_line().await.unwrap() {
        assert!(line.contains("xxxx"));
        received += 1;
    }
    assert_eq!(received, 50);
    served.await.unwrap().unwrap();
}

/// A client that has closed its input and does not read is dropped after the drain time.
#[tokio::test(start_paused = true)]
async fn unread_output_ends_after_drain() {
    let gateway = TestGateway::new();
    let (mut client, served) = narrow_pipe(&gateway, 100);
    for id in 0..2 {
        client.write_all(legacy(id, "echo", &long("x")).as_bytes()).await.unwrap();
    }
    client.shutdown().await.unwrap();
    let start = tokio::time::Instant::now();
    served.await.unwrap().unwrap();
    assert_eq!(start.elapsed(), DRAIN);
}

/// A client that does not read its answers is not read from without limit.
#[tokio::test]
async fn input_stops_while_output_is_unread() {
    let gateway = TestGateway::new();
    let (client, _served) = narrow_pipe(&gateway, 10);
    let (output, mut input) = tokio::io::split(client);
    let line_count = Arc::new(AtomicUsize::new(0));
    let counted = line_count.clone();
    let _writing = tokio::spawn(async move {
        for id in 0.. {
            input.write_all(legacy(id, "echo", &long("x")).as_bytes()).await.unwrap();
            counted.store(id + 1, Ordering::Relaxed);
        }
    });
    let_tasks_settle().await;
    let before = line_count.load(Ordering::Relaxed);
    assert!((10..20).contains(&before), "{before}");
    let_tasks_settle().await;
    assert_eq!(line_count.load(Ordering::Relaxed), before);
    // The same holds for requests that are answered at once.
    drop(output);
}

/// The same for HTTP+SSE as for a pipe.
#[tokio::test]
async fn unread_sse_stream_does_not_block_calls() {
    let gateway =
        TestGateway::with(Setup { running: 20, timeout: Duration::from_millis(300), ..Setup::default() });
    let mut stream =
        Exchange::begin(gateway.address(), request(Method::GET, "/sse", &HeaderMap::new(), "")).await;
    let path = String::from_utf8(stream.event().await.unwrap().data.to_vec()).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
    // More than all buffers on the way hold.
    let arguments = format!(r#""{}":1"#, "x".repeat(90_000));
    let mut ended = 0;
    for id in 0..200 {
        let tool = if id % 20 == 0 { "wait" } else { "echo" };
        let body = legacy(id, tool, &arguments);
        let posted = Exchange::begin(gateway.address(), request(Method::POST, &path, &headers, &body)).await;
        match posted.response.status().as_u16() {
            202 => ended += 1,
            429 => break,
            status => panic!("{status}"),
        }
    }
    assert!(ended > 64, "{ended} were taken");
    let mut other = Client::new(&gateway, Transport::Sse, LEGACY[0], "{}").await;
    // Every call that has started ends by its timeout, without a reader.
    loop {
        let received = other.call("echo", "").await;
        let running = gateway.running();
        if running == 0 {
            assert!(received.contains("result"), "{received}");
            break;
        }
        gateway.ended(gateway.over().len() + 1).await;
    }
}

/// A backend that sends more notifications than a client can read.
#[tokio::test]
async fn flood_of_notifications_blocks_nothing() {
    let gateway = TestGateway::build(Setup::default(), |call| async move {
        let params = Object::new().with("level", Json::string("error")).with("data", Json::null());
        let mut flood = JoinSet::new();
        let client = call.client.clone();
        flood.spawn(async move {
            loop {
                client.notify(ClientNotification::Log(params.clone().into()));
                tokio::task::yield_now().await;
            }
        });
        match &**call.target.name() {
            "wait" => std::future::pending().await,
            _ => Ok(text("done")),
        }
    });
    for transport in [Transport::Pipe, Transport::Sse, Transport::Web] {
        let mut client = Client::new(&gateway, transport, LEGACY[3], "{}").await;
        let call = client.send_request("tools/call", &tool_params("wait", "")).await;
        assert!(client.receive().await.contains("notifications/message"));
        let ping = client.send_request("ping", "").await;
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{ping},"result":{{}}}}"#);
        while client.receive().await != answer {}
        client.cancel(call).await;
        gateway.ended(gateway.over().len().max(1)).await;
        let quick = client.send_request("tools/call", &tool_params("echo", "")).await;
        while !client.receive().await.contains(&format!(r#""id":{quick},"#)) {}
    }
}

/// A subscriber with too many notifications is still heard.
#[tokio::test]
async fn flood_of_updates_blocks_nothing() {
    let gateway = Arc::new(TestGateway::new());
    for revision in [LEGACY[3], MODERN] {
        let mut client = Client::on_pipe(&gateway, revision, "{}").await;
        let listening = match revision {
            MODERN => {
                client
                    .send_request(
                        "subscriptions/listen",
                        r#""notifications":{"resourceSubscriptions":["mem:one"]}"#,
                    )
                    .await
            }
            _ => client.send_request("resources/subscribe", r#""uri":"mem:one""#).await,
        };
        gateway.wait_for_followers(&[("mem:one", 1)]).await;
        let updating = EndlessUpdates::begin(gateway.clone());
        while !client.receive().await.contains("resources/updated") {}
        match revision {
            MODERN => client.cancel(listening).await,
            _ => drop(client.send_request("resources/unsubscribe", r#""uri":"mem:one""#).await),
        }
        gateway.wait_for_followers(&[]).await;
        drop(updating);
    }
}

/// Updates a resource again and again, until it is dropped.
struct EndlessUpdates(AbortHandle);

impl EndlessUpdates {
    fn begin(gateway: Arc<TestGateway>) -> Self {
        let updating = tokio::spawn(async move {
            loop {
                gateway.update("mem:one");
                tokio::task::yield_now().await;
            }
        });
        Self(updating.abort_handle())
    }
}

impl Drop for EndlessUpdates {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Responses are read at the request limit; a further request is refused.
#[tokio::test]
async fn responses_are_read_at_the_request_limit() {
    let gateway = TestGateway::new();
    let (client, _served) = narrow_pipe(&gateway, 2);
    let (output, mut input) = tokio::io::split(client);
    let mut lines = BufReader::new(output).lines();
    let mut received = Vec::new();
    input.write_all(initialize(LEGACY[3]).as_bytes()).await.unwrap();
    lines.next_line().await.unwrap();
    for id in 1..=2 {
        input.write_all(legacy(id, "ask", &asking(&[ELICIT])).as_bytes()).await.unwrap();
        received.push(lines.next_line().await.unwrap().unwrap());
    }
    input.write_all(legacy(3, "echo", "").as_bytes()).await.unwrap();
    received.push(lines.next_line().await.unwrap().unwrap());
    for id in [1, 0] {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"n":{id}}}}}"#);
        input.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
        received.push(lines.next_line().await.unwrap().unwrap());
    }
    assert_snapshot!(received.join("\n"), @r#"
    {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"who?"}}
    {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"who?"}}
    {"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"Too many requests at once","data":{"code":"overloaded","reason":"a limit of the gateway is reached","retryable":true}}}
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\"n\":1}"}]}}
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"n\":0}"}]}}
    "#);
}

/// Cancellations are read at the request limit.
#[tokio::test]
async fn cancellations_are_read_at_the_request_limit() {
    let gateway = TestGateway::new();
    let (client, _served) = narrow_pipe(&gateway, 2);
    let (_output, mut input) = tokio::io::split(client);
    for id in 1..=2 {
        input.write_all(legacy(id, "wait", "").as_bytes()).await.unwrap();
    }
    gateway.wait_for_running(2).await;
    for id in 1..=2 {
        let withdrawal = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        );
        input.write_all(format!("{withdrawal}\n").as_bytes()).await.unwrap();
    }
    assert_eq!(gateway.ended(2).await, ["wait Err(Cancelled)", "wait Err(Cancelled)"]);
}

fn initialize(revision: &str) -> String {
    let params = format!(r#""protocolVersion":"{revision}","capabilities":{ABLE}"#);
    format!(r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{{params}}}}}"#) + "\n"
}

/// The same where responses may come in a batch: there is room for them, but not for any number of requests.
#[tokio::test]
async fn batched_responses_are_read_at_the_request_limit() {
    let gateway = TestGateway::new();
    let (client, _served) = narrow_pipe(&gateway, 2);
    let (output, mut input) = tokio::io::split(client);
    let mut lines = BufReader::new(output).lines();
    input.write_all(initialize(LEGACY[1]).as_bytes()).await.unwrap();
    lines.next_line().await.unwrap();
    for id in 1..=2 {
        input.write_all(legacy(id, "ask", &asking(&[ELICIT])).as_bytes()).await.unwrap();
        lines.next_line().await.unwrap();
    }
    let answers = [0, 1].map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)).join(",");
    let batches = (3..7).map(|id| format!("[{}]\n", legacy(id, "wait", "").trim_end())).collect::<String>();
    input.write_all(batches.as_bytes()).await.unwrap();
    let refused = [lines.next_line().await.unwrap().unwrap(), lines.next_line().await.unwrap().unwrap()];
    assert_eq!(refused[0], refused[1]);
    assert_snapshot!(refused[0], @r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"Too many requests at once","data":{"code":"overloaded","reason":"a limit of the gateway is reached","retryable":true}}}"#);
    gateway.wait_for_running(4).await;
    input.write_all(format!("[{answers}]\n").as_bytes()).await.unwrap();
    assert!(lines.next_line().await.unwrap().unwrap().contains("overloaded"), "this is one of them");
    input.write_all(answers.replace("},{", "}\n{").as_bytes()).await.unwrap();
    input.write_all(b"\n").await.unwrap();
    for _ in 0..2 {
        assert!(lines.next_line().await.unwrap().unwrap().contains("result"));
    }
}

/// A disconnect cancels the calls, over every transport.
#[tokio::test]
async fn disconnect_cancels_calls() {
    for (transport, revision) in [
        (Transport::Pipe, LEGACY[3]),
        (Transport::Sse, LEGACY[0]),
        (Transport::Web, LEGACY[3]),
        (Transport::Pipe, MODERN),
        (Transport::Web, MODERN),
    ] {
        let gateway = TestGateway::new();
        let mut client = Client::new(&gateway, transport, revision, ABLE).await;
        let id = client.send_request("tools/call", &tool_params("wait", "")).await;
        gateway.wait_for_running(1).await;
        match transport {
            Transport::Web => client.disconnect(id),
            _ => drop(client),
        }
        assert_eq!(gateway.ended(1).await, ["wait Err(Cancelled)"], "{revision} over {transport:?}");
    }
}

/// Requests with the same id are both answered; a cancellation refers to the first.
#[tokio::test]
async fn duplicate_ids_are_both_answered() {
    let gateway = TestGateway::new();
    let mut client = Client::on_pipe(&gateway, LEGACY[3], ABLE).await;
    for tool in ["wait", "echo"] {
        let request = client.text("7", "tools/call", &tool_params(tool, ""));
        client.send(&request).await;
    }
    assert!(client.receive().await.contains(r#""id":7,"result""#));
    client.cancel(7).await;
    assert_eq!(gateway.ended(2).await, ["echo Ok(true)", "wait Err(Cancelled)"]);
}

/// Round trips leave neither runtime tasks nor permits behind.
#[tokio::test]
async fn round_trips_leak_nothing() {
    let gateway = TestGateway::with(Setup { running: 1, ..Setup::default() });
    let mut client = Client::on_pipe(&gateway, MODERN, ABLE).await;
    let arguments = asking(&[ROOTS]);
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let mut before = 0;
    for round in 0..100 {
        client.call("ask", &arguments).await;
        let state = client.last("requestState");
        let answers = format!(r#""inputResponses":{{"roots-1":{{}}}},"requestState":"{state}""#);
        let received =
            client.request("tools/call", &format!("{},{answers}", tool_params("ask", &arguments))).await;
        assert!(received.contains("complete"), "{received}");
        let_tasks_settle().await;
        if round == 0 {
            before = alive();
        }
    }
    assert_eq!(alive(), before);
}

/// Notifications over the limit are dropped, and the others arrive.
#[tokio::test]
async fn excess_notifications_are_dropped() {
    let limits = FrontendLimits { max_queued_notices: 1, ..FrontendLimits::default() };
    let gateway = TestGateway::with(Setup { limits, ..Setup::default() });
    for (transport, revision) in
        [(Transport::Pipe, LEGACY[3]), (Transport::Web, LEGACY[3]), (Transport::Sse, LEGACY[0])]
    {
        let mut client = Client::new(&gateway, transport, revision, ABLE).await;
        let received = [client.call("tell", "").await, client.receive().await];
        assert!(
            received[0].contains(LogLevel::Info.as_str()) && received[1].contains("result"),
            "{received:?}"
        );
        // A request to the client is no notification: it waits for room.
        client
            .send_request("tools/call", &tool_params("ask", &asking(&[&format!("{ROOTS},{ELICIT},{ROOTS}")])))
            .await;
        for id in 0..3 {
            assert!(client.receive().await.contains(&format!(r#""id":{id},"method""#)));
            client.answer(id, "{}").await;
        }
        assert!(client.receive().await.contains("result"));
    }
}

/// The stored data of a client is limited in size, not only in number.
#[tokio::test]
async fn remembered_client_data_is_limited() {
    let gateway = TestGateway::new();
    for transport in [Transport::Pipe, Transport::Sse] {
        let mut client = Client::uninitialized(&gateway, transport, LEGACY[3], "{}").await;
        let hello = |size: usize| {
            let capabilities = format!(r#"{{"experimental":{{"x":"{}"}}}}"#, "x".repeat(size));
            format!(r#""protocolVersion":"2025-11-25","capabilities":{capabilities}"#)
        };
        let refused = client.request("initialize", &hello(64 * 1024)).await;
        assert!(refused.contains("`params.capabilities` is larger than 65536 bytes"), "{refused}");
        assert!(client.request("initialize", &hello(60 * 1024)).await.contains("protocolVersion"));
    }
    let mut client = Client::new(&gateway, Transport::Pipe, LEGACY[3], "{}").await;
    let follow = |size: usize| format!(r#""uri":"file:{}""#, "x".repeat(size - "file:".len()));
    let refused = client.request("resources/subscribe", &follow(8193)).await;
    assert!(refused.contains("`params.uri` is longer than 8192 bytes"), "{refused}");
    assert!(client.request("resources/subscribe", &follow(8192)).await.contains(r#""result":{}"#));
}

/// Lines on a pipe use the budget like HTTP bodies.
#[tokio::test(start_paused = true)]
async fn long_line_uses_the_budget() {
    let gateway = TestGateway::with(Setup { budget_bytes: Some(64 << 10), ..Setup::default() });
    let (ours, theirs) = tokio::io::duplex(1000);
    let (input, output) = tokio::io::split(theirs);
    let limits = DuplexLimits { max_line_bytes: 1 << 20, max_requests: 10, drain_time: DRAIN };
    let _served =
        tokio::spawn(duplex::serve(gateway.frontend.clone(), input, output, limits, CallerPeer::Unknown));
    let (reader, mut writer) = tokio::io::split(ours);
    let mut lines = BufReader::new(reader).lines();
    let line = |id, size| legacy(id, "echo", &format!(r#""{}":1"#, "x".repeat(size)));
    writer.write_all(line(1, 100 << 10).as_bytes()).await.unwrap();
    let refused = lines.next_line().await.unwrap().unwrap();
    assert!(refused.contains("not enough memory for the message"), "{refused}");
    writer.write_all(line(2, 30 << 10).as_bytes()).await.unwrap();
    assert!(lines.next_line().await.unwrap().unwrap().contains("result"));
}
