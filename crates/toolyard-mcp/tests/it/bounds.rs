//! Clients that take more than their share: what they hold on to, and what nobody else must feel of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{HeaderMap, Method, header};
use insta::assert_snapshot;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use toolyard_core::{Json, LogLevel, Notice, Object};
use toolyard_mcp::server::FrontendLimits;
use toolyard_mcp::server::duplex::{self, DuplexLimits};

use crate::client::{ABLE, Carrier, Client, DRAIN, ELICIT, LEGACY, MODERN, ROOTS, asking, tool_params};
use crate::script::text;
use crate::web::{Exchange, request};
use crate::yard::{Setup, Yard, everybody_rests};

/// A pipe that holds little, and the frontend at its other end.
fn narrow_pipe(yard: &Yard, requests: usize) -> (DuplexStream, JoinHandle<std::io::Result<()>>) {
    let (ours, theirs) = tokio::io::duplex(1000);
    let (input, output) = tokio::io::split(theirs);
    let limits = DuplexLimits { line_bytes: 10_000, requests, drain: DRAIN };
    (ours, tokio::spawn(duplex::serve(yard.frontend.clone(), input, output, limits)))
}

fn legacy(id: usize, tool: &str, arguments: &str) -> String {
    let params = tool_params(tool, arguments);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{params}}}}}"#) + "\n"
}

/// Takes an argument's name for what is said, as often as is too much for a narrow pipe.
fn long(word: &str) -> String {
    format!(r#""{}":1"#, word.repeat(2000))
}

/// A client that does not read keeps its answers waiting, not its calls, nor their places.
#[tokio::test(start_paused = true)]
async fn a_pipe_that_is_not_read() {
    let yard = Yard::with(Setup { running: 10, ..Setup::default() });
    let (mut client, _served) = narrow_pipe(&yard, 100);
    for id in 0..5 {
        client.write_all(legacy(id, "echo", &long("x")).as_bytes()).await.unwrap();
        client.write_all(legacy(5 + id, "wait", "").as_bytes()).await.unwrap();
    }
    let ended = yard.ended(10).await;
    assert_eq!(ended.iter().filter(|ended| *ended == "echo Ok(true)").count(), 5);
    assert_eq!(ended.iter().filter(|ended| *ended == "wait Err(Timeout)").count(), 5);
    let mut other = Client::piped(&yard, LEGACY[3], "{}").await;
    assert!(other.call("echo", "").await.contains("result"), "the places are free");
    // Once it does read, nothing is missing, and nothing is there twice.
    let mut lines = BufReader::new(client).lines();
    let mut ids = Vec::new();
    for _ in 0..10 {
        let line = lines.next_line().await.unwrap().unwrap();
        ids.push(line.split(r#""id":"#).nth(1).unwrap().split(',').next().unwrap().parse::<usize>().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, (0..10).collect::<Vec<_>>());
}

/// A client may write all of its requests before it reads the first answer, as far as they may run at once.
#[tokio::test]
async fn a_client_that_writes_first_and_reads_then() {
    let yard = Yard::new();
    let (mut client, served) = narrow_pipe(&yard, 50);
    for id in 0..50 {
        client.write_all(legacy(id, "echo", &long("x")).as_bytes()).await.unwrap();
    }
    client.shutdown().await.unwrap();
    let mut lines = BufReader::new(client).lines();
    let mut heard = 0;
    while let Some(line) = lines.next_line().await.unwrap() {
        assert!(line.contains("xxxx"));
        heard += 1;
    }
    assert_eq!(heard, 50);
    served.await.unwrap().unwrap();
}

/// A client that has said all, and does not read, is not waited for for ever.
#[tokio::test(start_paused = true)]
async fn a_client_that_ends_and_does_not_read() {
    let yard = Yard::new();
    let (mut client, served) = narrow_pipe(&yard, 100);
    for id in 0..2 {
        client.write_all(legacy(id, "echo", &long("x")).as_bytes()).await.unwrap();
    }
    client.shutdown().await.unwrap();
    let start = tokio::time::Instant::now();
    served.await.unwrap().unwrap();
    assert_eq!(start.elapsed(), DRAIN);
}

/// A client that does not take its answers is not read from for ever.
#[tokio::test]
async fn a_client_that_only_writes() {
    let yard = Yard::new();
    let (client, _served) = narrow_pipe(&yard, 10);
    let (output, mut input) = tokio::io::split(client);
    let taken = Arc::new(AtomicUsize::new(0));
    let counted = taken.clone();
    let _writing = tokio::spawn(async move {
        for id in 0.. {
            input.write_all(legacy(id, "echo", &long("x")).as_bytes()).await.unwrap();
            counted.store(id + 1, Ordering::Relaxed);
        }
    });
    everybody_rests().await;
    let before = taken.load(Ordering::Relaxed);
    assert!((10..20).contains(&before), "{before}");
    everybody_rests().await;
    assert_eq!(taken.load(Ordering::Relaxed), before);
    // The same goes for what can be answered at once.
    drop(output);
}

/// As on a pipe, so on HTTP+SSE.
#[tokio::test]
async fn a_stream_that_is_not_read() {
    let yard = Yard::with(Setup { running: 20, timeout: Duration::from_millis(300), ..Setup::default() });
    let mut stream =
        Exchange::begin(yard.address(), request(Method::GET, "/sse", &HeaderMap::new(), "")).await;
    let path = String::from_utf8(stream.event().await.unwrap().data.to_vec()).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
    // More than all the buffers on the way hold.
    let arguments = format!(r#""{}":1"#, "x".repeat(90_000));
    let mut ended = 0;
    for id in 0..200 {
        let tool = if id % 20 == 0 { "wait" } else { "echo" };
        let body = legacy(id, tool, &arguments);
        let posted = Exchange::begin(yard.address(), request(Method::POST, &path, &headers, &body)).await;
        match posted.response.status().as_u16() {
            202 => ended += 1,
            429 => break,
            status => panic!("{status}"),
        }
    }
    assert!(ended > 64, "{ended} were taken");
    let mut other = Client::new(&yard, Carrier::Sse, LEGACY[0], "{}").await;
    // Each call that was begun ends, though nobody reads: its time is over in the end.
    loop {
        let heard = other.call("echo", "").await;
        let running = yard.running();
        if running == 0 {
            assert!(heard.contains("result"), "{heard}");
            break;
        }
        yard.ended(yard.over().len() + 1).await;
    }
}

/// A backend that says more than anybody can hear.
#[tokio::test]
async fn a_call_that_says_much() {
    let yard = Yard::build(Setup::default(), |call| async move {
        let params = Object::new().with("level", Json::string("error")).with("data", Json::null());
        let mut flood = JoinSet::new();
        let client = call.client.clone();
        flood.spawn(async move {
            loop {
                client.notify(Notice::Log(params.clone()));
                tokio::task::yield_now().await;
            }
        });
        match &**call.target.name() {
            "wait" => std::future::pending().await,
            _ => Ok(text("done")),
        }
    });
    for carrier in [Carrier::Pipe, Carrier::Sse, Carrier::Web] {
        let mut client = Client::new(&yard, carrier, LEGACY[3], "{}").await;
        let call = client.request("tools/call", &tool_params("wait", "")).await;
        assert!(client.hear().await.contains("notifications/message"));
        let ping = client.request("ping", "").await;
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{ping},"result":{{}}}}"#);
        while client.hear().await != answer {}
        client.withdraw(call).await;
        yard.ended(yard.over().len().max(1)).await;
        let quick = client.request("tools/call", &tool_params("echo", "")).await;
        while !client.hear().await.contains(&format!(r#""id":{quick},"#)) {}
    }
}

/// A listener that is told more than it can hear still has a say.
#[tokio::test]
async fn a_resource_that_never_rests() {
    let yard = Arc::new(Yard::new());
    for revision in [LEGACY[3], MODERN] {
        let mut client = Client::piped(&yard, revision, "{}").await;
        let listening = match revision {
            MODERN => {
                client
                    .request(
                        "subscriptions/listen",
                        r#""notifications":{"resourceSubscriptions":["mem:one"]}"#,
                    )
                    .await
            }
            _ => client.request("resources/subscribe", r#""uri":"mem:one""#).await,
        };
        yard.follows(&[("mem:one", 1)]).await;
        let updating = Endless::begin(yard.clone());
        while !client.hear().await.contains("resources/updated") {}
        match revision {
            MODERN => client.withdraw(listening).await,
            _ => drop(client.request("resources/unsubscribe", r#""uri":"mem:one""#).await),
        }
        yard.follows(&[]).await;
        drop(updating);
    }
}

/// Updates a resource again and again, until it is dropped.
struct Endless(AbortHandle);

impl Endless {
    fn begin(yard: Arc<Yard>) -> Self {
        let updating = tokio::spawn(async move {
            loop {
                yard.update("mem:one");
                tokio::task::yield_now().await;
            }
        });
        Self(updating.abort_handle())
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Answers are read though no request is, any more; what would be one too many is told so.
#[tokio::test]
async fn a_client_that_is_asked_in_all_of_its_requests() {
    let yard = Yard::new();
    let (client, _served) = narrow_pipe(&yard, 2);
    let (output, mut input) = tokio::io::split(client);
    let mut lines = BufReader::new(output).lines();
    let mut heard = Vec::new();
    input.write_all(initialize(LEGACY[3]).as_bytes()).await.unwrap();
    lines.next_line().await.unwrap();
    for id in 1..=2 {
        input.write_all(legacy(id, "ask", &asking(&[ELICIT])).as_bytes()).await.unwrap();
        heard.push(lines.next_line().await.unwrap().unwrap());
    }
    input.write_all(legacy(3, "echo", "").as_bytes()).await.unwrap();
    heard.push(lines.next_line().await.unwrap().unwrap());
    for id in [1, 0] {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"n":{id}}}}}"#);
        input.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
        heard.push(lines.next_line().await.unwrap().unwrap());
    }
    assert_snapshot!(heard.join("\n"), @r#"
    {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"who?"}}
    {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"who?"}}
    {"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"Too many requests at once","data":{"code":"overloaded","reason":"Too many requests at once","retryable":true}}}
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\"n\":1}"}]}}
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"n\":0}"}]}}
    "#);
}

/// However much runs, a withdrawal is heard.
#[tokio::test]
async fn a_client_that_withdraws_all_of_its_requests() {
    let yard = Yard::new();
    let (client, _served) = narrow_pipe(&yard, 2);
    let (_output, mut input) = tokio::io::split(client);
    for id in 1..=2 {
        input.write_all(legacy(id, "wait", "").as_bytes()).await.unwrap();
    }
    yard.runs(2).await;
    for id in 1..=2 {
        let withdrawal = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        );
        input.write_all(format!("{withdrawal}\n").as_bytes()).await.unwrap();
    }
    assert_eq!(yard.ended(2).await, ["wait Err(Cancelled)", "wait Err(Cancelled)"]);
}

fn initialize(revision: &str) -> String {
    let params = format!(r#""protocolVersion":"{revision}","capabilities":{ABLE}"#);
    format!(r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{{params}}}}}"#) + "\n"
}

/// As above, where answers may come in a batch: there is room for them, but not for any number of requests.
#[tokio::test]
async fn a_client_that_is_asked_and_sends_batches() {
    let yard = Yard::new();
    let (client, _served) = narrow_pipe(&yard, 2);
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
    assert_snapshot!(refused[0], @r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"Too many requests at once","data":{"code":"overloaded","reason":"Too many requests at once","retryable":true}}}"#);
    yard.runs(4).await;
    input.write_all(format!("[{answers}]\n").as_bytes()).await.unwrap();
    assert!(lines.next_line().await.unwrap().unwrap().contains("overloaded"), "this is one of them");
    input.write_all(answers.replace("},{", "}\n{").as_bytes()).await.unwrap();
    input.write_all(b"\n").await.unwrap();
    for _ in 0..2 {
        assert!(lines.next_line().await.unwrap().unwrap().contains("result"));
    }
}

/// Whoever leaves takes its calls along, whatever it is doing.
#[tokio::test]
async fn who_leaves() {
    for (carrier, revision) in [
        (Carrier::Pipe, LEGACY[3]),
        (Carrier::Sse, LEGACY[0]),
        (Carrier::Web, LEGACY[3]),
        (Carrier::Pipe, MODERN),
        (Carrier::Web, MODERN),
    ] {
        let yard = Yard::new();
        let mut client = Client::new(&yard, carrier, revision, ABLE).await;
        let id = client.request("tools/call", &tool_params("wait", "")).await;
        yard.runs(1).await;
        match carrier {
            Carrier::Web => client.hang_up(id),
            _ => drop(client),
        }
        assert_eq!(yard.ended(1).await, ["wait Err(Cancelled)"], "{revision} over {carrier:?}");
    }
}

/// Requests of the same id are answered each; a withdrawal means the first.
#[tokio::test]
async fn requests_of_the_same_id() {
    let yard = Yard::new();
    let mut client = Client::piped(&yard, LEGACY[3], ABLE).await;
    for tool in ["wait", "echo"] {
        let request = client.text("7", "tools/call", &tool_params(tool, ""));
        client.say(&request).await;
    }
    assert!(client.hear().await.contains(r#""id":7,"result""#));
    client.withdraw(7).await;
    assert_eq!(yard.ended(2).await, ["echo Ok(true)", "wait Err(Cancelled)"]);
}

/// Rounds leave nothing behind: neither tasks of the runtime, nor places.
#[tokio::test]
async fn many_rounds() {
    let yard = Yard::with(Setup { running: 1, ..Setup::default() });
    let mut client = Client::piped(&yard, MODERN, ABLE).await;
    let arguments = asking(&[ROOTS]);
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let mut before = 0;
    for round in 0..100 {
        client.call("ask", &arguments).await;
        let state = client.last("requestState");
        let answers = format!(r#""inputResponses":{{"roots-1":{{}}}},"requestState":"{state}""#);
        let heard = client.ask("tools/call", &format!("{},{answers}", tool_params("ask", &arguments))).await;
        assert!(heard.contains("complete"), "{heard}");
        everybody_rests().await;
        if round == 0 {
            before = alive();
        }
    }
    assert_eq!(alive(), before);
}

/// More than may wait is dropped, and the client hears of the rest.
#[tokio::test]
async fn few_notices_at_once() {
    let limits = FrontendLimits { queued_notices: 1, ..FrontendLimits::default() };
    let yard = Yard::with(Setup { limits, ..Setup::default() });
    for (carrier, revision) in
        [(Carrier::Pipe, LEGACY[3]), (Carrier::Web, LEGACY[3]), (Carrier::Sse, LEGACY[0])]
    {
        let mut client = Client::new(&yard, carrier, revision, ABLE).await;
        let heard = [client.call("tell", "").await, client.hear().await];
        assert!(heard[0].contains(LogLevel::Info.as_str()) && heard[1].contains("result"), "{heard:?}");
        // A question is no notice: it waits for its place.
        client
            .request("tools/call", &tool_params("ask", &asking(&[&format!("{ROOTS},{ELICIT},{ROOTS}")])))
            .await;
        for id in 0..3 {
            assert!(client.hear().await.contains(&format!(r#""id":{id},"method""#)));
            client.answer(id, "{}").await;
        }
        assert!(client.hear().await.contains("result"));
    }
}

/// What is remembered of a client for as long as it stays is bounded in size, and not only in number.
#[tokio::test]
async fn what_clients_make_the_frontend_remember() {
    let yard = Yard::new();
    for carrier in [Carrier::Pipe, Carrier::Sse] {
        let mut client = Client::silent(&yard, carrier, LEGACY[3], "{}").await;
        let hello = |size: usize| {
            let capabilities = format!(r#"{{"experimental":{{"x":"{}"}}}}"#, "x".repeat(size));
            format!(r#""protocolVersion":"2025-11-25","capabilities":{capabilities}"#)
        };
        let refused = client.ask("initialize", &hello(64 * 1024)).await;
        assert!(refused.contains("`params.capabilities` is larger than 65536 bytes"), "{refused}");
        assert!(client.ask("initialize", &hello(60 * 1024)).await.contains("protocolVersion"));
    }
    let mut client = Client::new(&yard, Carrier::Pipe, LEGACY[3], "{}").await;
    let follow = |size: usize| format!(r#""uri":"file:{}""#, "x".repeat(size - "file:".len()));
    let refused = client.ask("resources/subscribe", &follow(8193)).await;
    assert!(refused.contains("`params.uri` is longer than 8192 bytes"), "{refused}");
    assert!(client.ask("resources/subscribe", &follow(8192)).await.contains(r#""result":{}"#));
}
