//! Many clients, clients that do not read, and servers that say too much: the others are served, and memory stays
//! within bounds. Those are generous, because what is looked at is all memory of the process, the peers' included.

use std::time::Instant;

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::stream;
use tokio::sync::watch;
use toolyard_server::Running;

use crate::client::{Client, Connection, Speech};
use crate::gateway;
use crate::upstream::{Era, Received, Reply, Server, TOOL, Upstream, but};

/// Bytes of this process that are in memory.
fn memory() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

const MIB: usize = 1 << 20;

/// Fails where more memory has come than was to be expected.
#[track_caller]
fn assert_bounded(before: usize, most: usize) {
    let more = memory().saturating_sub(before);
    assert!(more < most, "{} KiB more", more >> 10);
}

fn answer(request: &Received) -> Reply {
    Reply::result(request, "{}")
}

/// Calls go on as if nothing else happened.
async fn is_served(running: &Running) {
    let call = async |_| {
        let mut client = Client::new(running.address(), Speech::Modern).await;
        client.call("t", "{}").await.body
    };
    for body in join_all((0..20).map(call)).await {
        assert!(body.contains(r#""result":{"#), "{body}");
    }
}

/// What an endless stream of changes of the tools looks like: so many announcements, then silence. `over` says when
/// all of it has been taken.
fn announcements(count: usize, one: fn(usize) -> String, over: watch::Sender<bool>) -> Reply {
    const AT_ONCE: usize = 100;
    let pieces = stream::unfold((0, over), move |(said, over)| async move {
        if said >= count {
            over.send_replace(true);
            return None;
        }
        let piece: String =
            (said..said + AT_ONCE).map(|number| format!("data: {}\n\n", one(number))).collect();
        Some((Bytes::from(piece), (said + AT_ONCE, over)))
    });
    Reply::live("text/event-stream", pieces)
}

#[tokio::test]
async fn five_thousand_sessions() {
    const SESSIONS: usize = 5000;
    let upstream = Upstream::start(Server::new(Era::Modern, &[TOOL], answer));
    let running = gateway(&[("h", upstream.address, "")], &format!("limits: {{sessions: {SESSIONS}}}")).await;
    is_served(&running).await;
    let before = memory();
    let mut client = Client::new(running.address(), Speech::Bare).await;
    let params =
        r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;
    let mut sessions = Vec::with_capacity(SESSIONS);
    for _ in 0..SESSIONS {
        let opened = client.ask("initialize", params).await;
        sessions.push(Speech::Session(opened.head.header("mcp-session-id").unwrap().to_owned()));
    }
    // 8 KiB each.
    assert_bounded(before, 40 * MIB);
    for session in &sessions {
        client.speech = session.clone();
        assert_eq!(client.ask("ping", "{}").await.head.status(), 200);
    }
    is_served(&running).await;
    // One more takes the place of one.
    client.speech = Speech::Bare;
    assert_eq!(client.ask("initialize", params).await.head.status(), 200);
    let mut gone = 0;
    for session in sessions {
        client.speech = session;
        gone += usize::from(client.ask("ping", "{}").await.head.status() == 404);
    }
    assert_eq!(gone, 1);
}

/// The list changes whenever it is asked for, and its server says so ten thousand times, in ten parts: the next when
/// the list was asked for again.
#[tokio::test]
async fn a_client_that_never_reads() {
    const PARTS: usize = 10;
    let (listed, lists) = watch::channel(0_usize);
    let (counted, asked) = (listed.clone(), lists.clone());
    let script =
        but(Server::new(Era::Legacy, &[TOOL], answer), move |request: &Received| match &*request.method() {
            "GET" => {
                let parts = stream::unfold((1, asked.clone()), async |(part, mut asked)| {
                    // One more than it was asked for: the test says when it begins.
                    asked.wait_for(|asked| *asked > part).await.ok()?;
                    let text = format!("data: {CHANGED}\n\n").repeat(1000);
                    (part <= PARTS).then(|| (Bytes::from(text), (part + 1, asked)))
                });
                Some(Reply::live("text/event-stream", parts))
            }
            "tools/list" => {
                counted.send_modify(|listed| *listed += 1);
                let number = *counted.borrow();
                Some(Reply::result(request, &format!(r#"{{"tools":[{TOOL},{{"name":"n{number}"}}]}}"#)))
            }
            _ => None,
        });
    let upstream = Upstream::start(script);
    let running =
        gateway(&[("h", upstream.address, "")], "limits: {queuedNotices: 8, replayBytes: 64KiB}").await;
    is_served(&running).await;
    let before = memory();
    let mut deaf = Vec::new();
    for _ in 0..50 {
        let client = Client::in_session(running.address()).await;
        let head = format!(
            "GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n{}\r\n",
            client.headers("", "")
        );
        let mut connection = Connection::open(running.address()).await;
        connection.send(head.as_bytes()).await;
        deaf.push(connection.stream().await);
    }
    listed.send_modify(|listed| *listed += 1);
    lists.clone().wait_for(|lists| *lists > PARTS).await.unwrap();
    is_served(&running).await;
    assert_bounded(before, 40 * MIB);
    // Who reads after all hears that the list has changed.
    let mut stream = deaf.pop().unwrap();
    assert!(stream.message().await.unwrap().contains("tools/list_changed"));
    assert!(stream.last_id.is_some());
}

const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

/// Progress of nothing, log of nothing, and changes that are none.
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
async fn a_server_that_never_stops_talking() {
    const NOTIFICATIONS: usize = 100_000;
    let (over, is_over) = watch::channel(false);
    let script = but(Server::new(Era::Legacy, &[TOOL], answer), move |request: &Received| {
        (request.method() == "GET").then(|| announcements(NOTIFICATIONS, noise, over.clone()))
    });
    let loud = Upstream::start(script);
    let quiet = Upstream::start(Server::new(Era::Modern, &[TOOL], answer));
    let began = Instant::now();
    let running = gateway(&[("quiet", quiet.address, ""), ("loud", loud.address, "")], "").await;
    let before = memory();
    let mut rounds = 0;
    while !*is_over.borrow() || rounds < 3 {
        is_served(&running).await;
        let mut client = Client::in_session(running.address()).await;
        let body = client.call("loud_t", "{}").await.body;
        assert!(body.contains(r#""result":{"#), "{body}");
        rounds += 1;
    }
    assert_bounded(before, 40 * MIB);
    // The list is asked for once, and then at a bounded rate: there is a pause of 200 ms before each time.
    let lists = loud.now(|log| log.count("tools/list"));
    let pauses = usize::try_from(began.elapsed().as_millis() / 200).unwrap();
    assert!((1..=pauses + 2).contains(&lists), "{lists} in {pauses} pauses");
}
