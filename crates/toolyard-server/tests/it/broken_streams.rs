//! Legacy servers whose streams end or break before all is said: the gateway comes back for the rest.

use std::sync::Mutex;

use insta::assert_snapshot;
use toolyard_server::Running;

use crate::client::{Client, Speech};
use crate::gateway;
use crate::upstream::{Era, Log, Received, Reply, Server, TOOL, Upstream, but};

/// What a server says to a call, or to who asks for the rest of its stream. `ANSWER` stands for the message that answers
/// the call.
#[derive(Clone, Copy)]
enum Say {
    /// A stream that ends.
    Ends(&'static str),
    /// A stream whose connection breaks.
    Breaks(&'static str),
    Refuses(u16),
    /// No stream.
    Json,
    /// The connection breaks before it answers.
    Nothing,
    Never,
}

use Say::*;

impl Say {
    fn reply(self, call: &str) -> Reply {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{call},"result":{{"good":1}}}}"#);
        match self {
            Ends(events) => Reply::events([events.replace("ANSWER", &answer).into()]),
            Breaks(events) => Reply::raw(format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n{events}"
            )),
            Refuses(status) => Reply::http(status, "", ""),
            Json => Reply::json("{}"),
            Nothing => Reply::raw(""),
            Never => Reply::never(),
        }
    }
}

/// A server that says one thing after the other: first to the call, then to who comes back.
fn server(says: &'static [Say]) -> Upstream {
    let call = Mutex::new((String::new(), says.iter()));
    let next = move |request: &Received| {
        let (id, says) = &mut *call.lock().unwrap();
        match (&*request.method(), request.head.header("last-event-id")) {
            ("tools/call", _) => *id = request.id(),
            ("GET", Some(_)) => {}
            _ => return None,
        }
        Some(says.next().expect("no more is asked for").reply(id))
    };
    Upstream::start(but(Server::new(Era::Legacy, &[TOOL], |_: &Received| Reply::never()), next))
}

async fn before(upstream: &Upstream, handler: &str) -> Running {
    gateway(&[("h", upstream.address, handler)], "").await
}

/// The places that streams were asked for from.
fn places(log: &Log) -> Vec<String> {
    log.requests
        .iter()
        .filter_map(|request| request.head.header("last-event-id").map(str::to_owned))
        .collect()
}

/// What the caller gets, and what the server was asked for.
async fn run(says: &'static [Say]) -> String {
    let upstream = server(says);
    let running = before(&upstream, "").await;
    let said = Client::new(running.address(), Speech::Bare).await.call("t", "{}").await.body;
    let said = match said.contains(r#""result":{"good":1}"#) {
        true => "answered".to_owned(),
        false => crate::json::read(&said).get("error").get("message").plain(),
    };
    let (calls, places) = upstream.now(|log| (log.count("tools/call"), places(log)));
    assert_eq!(calls, 1, "a call may have run, and is not made again");
    format!("{said}, {places:?}")
}

#[tokio::test]
async fn a_call_is_gone_on_with() {
    const PRIMING: &str = "id: 1\nretry: 1\ndata: \n\n";
    let cases: &[(&str, &[Say])] = &[
        ("ended", &[Ends(PRIMING), Ends("data: ANSWER\n\n")]),
        ("broken", &[Breaks(PRIMING), Ends("data: ANSWER\n\n")]),
        (
            "broken in an event",
            &[Breaks("id: 1\nretry: 1\ndata: \n\nid: 2\ndata: {"), Ends("data: ANSWER\n\n")],
        ),
        ("twice", &[Ends(PRIMING), Ends("id: 2\ndata: \n\n"), Ends("data: ANSWER\n\n")]),
        ("twice, and nothing new", &[Ends(PRIMING), Breaks(": hi\n\n"), Ends("data: ANSWER\n\n")]),
        ("an id without data", &[Ends("id: 1\nretry: 1\n\n"), Ends("data: ANSWER\n\n")]),
        ("no id", &[Ends("retry: 1\ndata: \n\n")]),
        ("an id that is taken back", &[Ends("id: 1\ndata: \n\nid\nretry: 1\ndata: \n\n")]),
        ("an id that no header can carry", &[Ends("id: \u{7}\nretry: 1\ndata: \n\n")]),
        ("a message that is none", &[Ends("id: 1\nretry: 1\ndata: oops\n\n")]),
        ("no stream to come back to", &[Ends(PRIMING), Refuses(405)]),
        ("an unknown place", &[Ends(PRIMING), Refuses(400)]),
        ("a session that is over", &[Ends(PRIMING), Refuses(404)]),
        ("no stream", &[Ends(PRIMING), Json]),
        ("the old stream is not over yet", &[Breaks(PRIMING), Refuses(409), Ends("data: ANSWER\n\n")]),
        ("a server that starts", &[Ends(PRIMING), Nothing, Refuses(503), Ends("data: ANSWER\n\n")]),
        ("a server that does not come back", &[Ends(PRIMING), Refuses(503), Refuses(502), Nothing]),
    ];
    let mut lines = Vec::new();
    for (name, says) in cases {
        lines.push(format!("{name}: {}", run(says).await));
    }
    assert_snapshot!(lines.join("\n"), @r#"
    ended: answered, ["1"]
    broken: answered, ["1"]
    broken in an event: answered, ["1"]
    twice: answered, ["1", "2"]
    twice, and nothing new: answered, ["1", "1"]
    an id without data: answered, ["1"]
    no id: The connection to the server broke, []
    an id that is taken back: The connection to the server broke, []
    an id that no header can carry: The connection to the server broke, []
    a message that is none: The server's answer is malformed, []
    no stream to come back to: The connection to the server broke, ["1"]
    an unknown place: The connection to the server broke, ["1"]
    a session that is over: The server has ended the session, ["1"]
    no stream: The connection to the server broke, ["1"]
    the old stream is not over yet: answered, ["1", "1"]
    a server that starts: answered, ["1", "1", "1"]
    a server that does not come back: The connection to the server broke, ["1", "1", "1"]
    "#);
}

#[tokio::test]
async fn a_call_that_is_never_answered_is_withdrawn_in_time() {
    let upstream = server(&[Ends("id: 1\nretry: 1\ndata: \n\n"), Never]);
    let running = before(&upstream, "timeout: 500ms,").await;
    let said = Client::new(running.address(), Speech::Bare).await.call("t", "{}").await.body;
    assert!(said.contains(r#""code":"timeout""#), "{said}");
    upstream.saw(|log| log.count("notifications/cancelled") == 1, |_| ()).await;
    assert_eq!(upstream.now(places), ["1"]);
}

/// What is said meanwhile is heard once, whichever part of the stream it is on.
#[tokio::test]
async fn progress_goes_on() {
    let progress = |number: u8| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":TOKEN,"progress":{number}}}}}"#
        )
    };
    let call = Mutex::new(None::<Received>);
    let parts = move |request: &Received| {
        let mut call = call.lock().unwrap();
        let is_rest = request.method() == "GET" && request.head.header("last-event-id") == Some("a");
        if request.method() == "tools/call" {
            *call = Some(request.clone());
        } else if !is_rest {
            return None;
        }
        let call = call.as_ref().unwrap();
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"good":1}}}}"#, call.id());
        let text = match is_rest {
            false => format!("id: a\nretry: 1\ndata: {}\n\n", progress(1)),
            true => format!("id: b\ndata: {}\n\nid: c\ndata: {answer}\n\n", progress(2)),
        };
        let token = call.params().get("_meta").get("progressToken").text();
        Some(Reply::events([text.replace("TOKEN", &token).into()]))
    };
    let never = |_: &Received| Reply::never();
    let upstream = Upstream::start(but(Server::new(Era::Legacy, &[TOOL], never), parts));
    let running = before(&upstream, "").await;
    let client = Client::new(running.address(), Speech::Modern).await;
    let params = client.call_params("t", "{}", r#""progressToken":"p""#);
    let mut stream = client.open("tools/call", &params).await;
    let mut heard = Vec::new();
    while let Some(message) = stream.message().await {
        heard.push(message);
    }
    assert_snapshot!(heard.join("\n"), @r#"
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":2}}
    {"jsonrpc":"2.0","id":7,"result":{"good":1,"resultType":"complete"}}
    "#);
}

/// A server that wants to be left alone is: what was to come back sooner does, though it began later. And who leaves
/// meanwhile withdraws the call.
#[tokio::test]
async fn a_call_that_waits_is_withdrawn() {
    let say = |request: &Received| {
        let name = request.params().get("name").plain();
        let retry = if name == "patient" { 60_000 } else { 1 };
        Reply::events([format!("id: {name}\nretry: {retry}\ndata: \n\n").into()])
    };
    let tools = ["patient", "t"].map(|name| TOOL.replace("\"t\"", &format!("\"{name}\"")));
    let tools = tools.each_ref().map(String::as_str);
    let rest = |request: &Received| {
        let is_rest = request.head.header("last-event-id") == Some("t");
        is_rest.then(|| Reply::events(["id: t\nretry: 1\ndata: \n\n".into()]))
    };
    let upstream = Upstream::start(but(Server::new(Era::Legacy, &tools, say), rest));
    let running = before(&upstream, "").await;
    let mut callers = Vec::new();
    for (number, name) in ["patient", "t"].into_iter().enumerate() {
        let mut client = Client::new(running.address(), Speech::Modern).await;
        let params = client.call_params(name, "{}", "");
        client.send("", "tools/call", &params).await;
        callers.push(client);
        upstream.saw(|log| log.count("tools/call") > number, |_| ()).await;
    }
    let asked = upstream.saw(|log| places(log).len() == 3, places).await;
    assert_eq!(asked, ["t", "t", "t"]);
    drop(callers.remove(0));
    let told = |log: &Log| log.count("notifications/cancelled") == 1;
    let withdrawn = upstream.saw(told, |log| log.last("notifications/cancelled").params()).await;
    let first = upstream
        .now(|log| log.requests.iter().find(|request| request.method() == "tools/call").map(Received::id));
    assert_eq!(Some(withdrawn.get("requestId").text()), first);
}

/// The stream of what belongs to no request is asked for from where it ended; where that is not known any more, from
/// now on.
#[tokio::test]
async fn the_stream_of_changes_is_gone_on_with() {
    let stream = |request: &Received| {
        if request.method() != "GET" {
            return None;
        }
        match request.head.header("last-event-id") {
            None => Some(Reply::events(["id: 1\nretry: 1\ndata: \n\n".into()])),
            Some(_) => Some(Reply::http(400, "", "")),
        }
    };
    let never = |_: &Received| Reply::never();
    let upstream = Upstream::start(but(Server::new(Era::Legacy, &[TOOL], never), stream));
    let _running = before(&upstream, "").await;
    let streams = |log: &Log| {
        let streams = log.requests.iter().filter(|request| request.method() == "GET");
        streams.map(|request| request.head.header("last-event-id").map(str::to_owned)).collect::<Vec<_>>()
    };
    let asked = upstream.saw(|log| log.count("GET") == 3, streams).await;
    assert_eq!(asked, [None, Some("1".to_owned()), None]);
}
