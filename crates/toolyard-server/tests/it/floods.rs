//! Many clients, clients that do not read, and servers that send too much: the gateway serves the others, within a
//! memory limit. The limits are generous, because they include the memory of the test's clients and servers.

use std::time::Instant;

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::stream;
use tokio::sync::watch;
use toolyard_server::RunningGateway;
use toolyard_testing::upstream::{
    ReceivedRequest, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra, but,
};
use toolyard_testing::wire_client::{ClientMode, WireClient, WireConnection};

use crate::gateway::gateway;

/// Resident memory of this process, in bytes.
fn memory() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

const MIB: usize = 1 << 20;

/// Panics if the memory has grown by more than `most` bytes.
#[track_caller]
fn assert_bounded(before: usize, most: usize) {
    let more = memory().saturating_sub(before);
    assert!(more < most, "{} KiB more", more >> 10);
}

fn answer(request: &ReceivedRequest) -> ScriptedReply {
    ScriptedReply::result(request, "{}")
}

/// Checks that calls succeed.
async fn is_served(running: &RunningGateway) {
    let call = async |_| {
        let mut client = WireClient::new(running.address(), ClientMode::Modern).await;
        client.call("t", "{}").await.body
    };
    for body in join_all((0..20).map(call)).await {
        assert!(body.contains(r#""result":{"#), "{body}");
    }
}

/// A stream of `count` notifications, followed by silence. `over` becomes true once the gateway has read all of them.
fn announcements(count: usize, one: fn(usize) -> String, over: watch::Sender<bool>) -> ScriptedReply {
    const AT_ONCE: usize = 100;
    let pieces = stream::unfold((0, over), move |(sent, over)| async move {
        if sent >= count {
            over.send_replace(true);
            return None;
        }
        let piece: String =
            (sent..sent + AT_ONCE).map(|number| format!("data: {}\n\n", one(number))).collect();
        Some((Bytes::from(piece), (sent + AT_ONCE, over)))
    });
    ScriptedReply::live("text/event-stream", pieces)
}

#[tokio::test]
async fn five_thousand_sessions_stay_within_the_memory_limit() {
    const SESSIONS: usize = 5000;
    let upstream = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], answer));
    let running = gateway(&[("h", upstream.address, "")], &format!("limits: {{sessions: {SESSIONS}}}")).await;
    is_served(&running).await;
    let before = memory();
    let mut client = WireClient::new(running.address(), ClientMode::Bare).await;
    let params =
        r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;
    let mut sessions = Vec::with_capacity(SESSIONS);
    for _ in 0..SESSIONS {
        let opened = client.ask("initialize", params).await;
        sessions.push(ClientMode::Session(opened.head.header("mcp-session-id").unwrap().to_owned()));
    }
    // 8 KiB each.
    assert_bounded(before, 40 * MIB);
    for session in &sessions {
        client.mode = session.clone();
        assert_eq!(client.ask("ping", "{}").await.head.status(), 200);
    }
    is_served(&running).await;
    // A further session replaces an idle one.
    client.mode = ClientMode::Bare;
    assert_eq!(client.ask("initialize", params).await.head.status(), 200);
    let mut gone = 0;
    for session in sessions {
        client.mode = session;
        gone += usize::from(client.ask("ping", "{}").await.head.status() == 404);
    }
    assert_eq!(gone, 1);
}

/// The tool list changes with each request for it, and its server sends ten thousand notifications in ten parts; each
/// part follows the next request for the list.
#[tokio::test]
async fn client_that_never_reads_does_not_grow_memory() {
    const PARTS: usize = 10;
    let (listed, lists) = watch::channel(0_usize);
    let (counted, asked) = (listed.clone(), lists.clone());
    let script =
        but(ScriptedUpstream::new(UpstreamEra::Legacy, &[TOOL], answer), move |request: &ReceivedRequest| {
            match &*request.method() {
                "GET" => {
                    let parts = stream::unfold((1, asked.clone()), async |(part, mut asked)| {
                        // Waits for one further request, so that the test controls the start.
                        asked.wait_for(|asked| *asked > part).await.ok()?;
                        let text = format!("data: {CHANGED}\n\n").repeat(1000);
                        (part <= PARTS).then(|| (Bytes::from(text), (part + 1, asked)))
                    });
                    Some(ScriptedReply::live("text/event-stream", parts))
                }
                "tools/list" => {
                    counted.send_modify(|listed| *listed += 1);
                    let number = *counted.borrow();
                    Some(ScriptedReply::result(
                        request,
                        &format!(r#"{{"tools":[{TOOL},{{"name":"n{number}"}}]}}"#),
                    ))
                }
                _ => None,
            }
        });
    let upstream = TestUpstream::start(script);
    let running =
        gateway(&[("h", upstream.address, "")], "limits: {queuedNotices: 8, replayBytes: 64KiB}").await;
    is_served(&running).await;
    let before = memory();
    let mut deaf = Vec::new();
    for _ in 0..50 {
        let client = WireClient::in_session(running.address()).await;
        let head = format!(
            "GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n{}\r\n",
            client.headers("", "")
        );
        let mut connection = WireConnection::open(running.address()).await;
        connection.send(head.as_bytes()).await;
        deaf.push(connection.stream().await);
    }
    listed.send_modify(|listed| *listed += 1);
    lists.clone().wait_for(|lists| *lists > PARTS).await.unwrap();
    is_served(&running).await;
    assert_bounded(before, 40 * MIB);
    // A client that reads at last gets the notification that the list has changed.
    let mut stream = deaf.pop().unwrap();
    assert!(stream.message().await.unwrap().contains("tools/list_changed"));
    assert!(stream.last_id.is_some());
}

const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

/// Progress of an unknown request, an empty log message, and a notification without a change.
fn noise(number: usize) -> String {
    match number % 3 {
        0 => CHANGED.to_owned(),
        1 => format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"none-{number}","progress":{number}}}}}"#
        ),
        _ => format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"error","data":"{number}"}}}}"#
        ),
    }
}

#[tokio::test]
async fn flood_of_notifications_does_not_block_other_servers() {
    const NOTIFICATIONS: usize = 100_000;
    let (over, is_over) = watch::channel(false);
    let script =
        but(ScriptedUpstream::new(UpstreamEra::Legacy, &[TOOL], answer), move |request: &ReceivedRequest| {
            (request.method() == "GET").then(|| announcements(NOTIFICATIONS, noise, over.clone()))
        });
    let loud = TestUpstream::start(script);
    let quiet = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], answer));
    let began = Instant::now();
    let running = gateway(&[("quiet", quiet.address, ""), ("loud", loud.address, "")], "").await;
    let before = memory();
    let mut rounds = 0;
    while !*is_over.borrow() || rounds < 3 {
        is_served(&running).await;
        let mut client = WireClient::in_session(running.address()).await;
        let body = client.call("loud_t", "{}").await.body;
        assert!(body.contains(r#""result":{"#), "{body}");
        rounds += 1;
    }
    assert_bounded(before, 40 * MIB);
    // The gateway requests the list once, and then at a limited rate: it waits 200 ms before each request.
    let lists = loud.now(|log| log.count("tools/list"));
    let pauses = usize::try_from(began.elapsed().as_millis() / 200).unwrap();
    assert!((1..=pauses + 2).contains(&lists), "{lists} in {pauses} pauses");
}
