//! Legacy servers whose streams end or break before the response: the gateway resumes the stream.

use std::sync::Mutex;

use insta::assert_snapshot;
use toolyard_server::RunningGateway;

use crate::gateway::gateway;

/// The reply of a server to a call, or to a request that resumes its stream. `ANSWER` stands for the response message, `CALL`
/// for the id of the call.
#[derive(Clone, Copy)]
enum StreamReply {
    /// A stream that ends.
    Ends(&'static str),
    /// A stream whose connection breaks.
    Breaks(&'static str),
    Refuses(u16),
    /// A JSON response instead of a stream.
    Json,
    /// The connection breaks before any response.
    Nothing,
    Never,
}

use StreamReply::*;
use toolyard_testing::upstream::{
    ReceivedRequest, RequestLog, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra, but,
};
use toolyard_testing::wire_client::{ClientMode, WireClient};

impl StreamReply {
    fn reply(self, call: &str) -> ScriptedReply {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{call},"result":{{"good":1}}}}"#);
        match self {
            Ends(events) => {
                ScriptedReply::events([events.replace("ANSWER", &answer).replace("CALL", call).into()])
            }
            Breaks(events) => ScriptedReply::raw(format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n{events}"
            )),
            Refuses(status) => ScriptedReply::http(status, "", ""),
            Json => ScriptedReply::json("{}"),
            Nothing => ScriptedReply::raw(""),
            Never => ScriptedReply::never(),
        }
    }
}

/// A server that replies with one entry after the other: first to the call, then to each request that resumes its
/// stream.
fn server(replies: &'static [StreamReply]) -> TestUpstream {
    let call = Mutex::new((String::new(), replies.iter()));
    let next = move |request: &ReceivedRequest| {
        let (id, replies) = &mut *call.lock().unwrap();
        match (&*request.method(), request.head.header("last-event-id")) {
            ("tools/call", _) => *id = request.id(),
            ("GET", Some(_)) => {}
            _ => return None,
        }
        Some(replies.next().expect("unexpected request").reply(id))
    };
    TestUpstream::start(but(
        ScriptedUpstream::new(UpstreamEra::Legacy, &[TOOL], |_: &ReceivedRequest| ScriptedReply::never()),
        next,
    ))
}

async fn gateway_before(upstream: &TestUpstream, handler: &str) -> RunningGateway {
    gateway(&[("h", upstream.address, handler)], "").await
}

/// The event ids from which streams were resumed.
fn resumed_event_ids(log: &RequestLog) -> Vec<String> {
    log.requests
        .iter()
        .filter_map(|request| request.head.header("last-event-id").map(str::to_owned))
        .collect()
}

/// The caller's answer, and the event ids from which the gateway resumed the stream.
async fn run(replies: &'static [StreamReply]) -> String {
    let upstream = server(replies);
    let running = gateway_before(&upstream, "").await;
    let answer = WireClient::new(running.address(), ClientMode::Bare).await.call("t", "{}").await.body;
    let answer = match answer.contains(r#""result":{"good":1}"#) {
        true => "answered".to_owned(),
        false => toolyard_testing::json::read(&answer).get("error").get("message").plain(),
    };
    let (calls, resumed_event_ids) = upstream.now(|log| (log.count("tools/call"), resumed_event_ids(log)));
    assert_eq!(calls, 1, "a call that may have run is not repeated");
    format!("{answer}, {resumed_event_ids:?}")
}

#[tokio::test]
async fn interrupted_stream_of_a_call_is_resumed() {
    const PRIMING: &str = "id: 1\nretry: 1\ndata: \n\n";
    let cases: &[(&str, &[StreamReply])] = &[
        ("ended", &[Ends(PRIMING), Ends("data: ANSWER\n\n")]),
        ("broken", &[Breaks(PRIMING), Ends("data: ANSWER\n\n")]),
        (
            "broken in an event",
            &[Breaks("id: 1\nretry: 1\ndata: \n\nid: 2\ndata: {"), Ends("data: ANSWER\n\n")],
        ),
        ("twice", &[Ends(PRIMING), Ends("id: 2\ndata: \n\n"), Ends("data: ANSWER\n\n")]),
        ("broken twice without a new event", &[Ends(PRIMING), Breaks(": hi\n\n"), Ends("data: ANSWER\n\n")]),
        ("an id without data", &[Ends("id: 1\nretry: 1\n\n"), Ends("data: ANSWER\n\n")]),
        ("no id", &[Ends("retry: 1\ndata: \n\n")]),
        ("an id that is cleared", &[Ends("id: 1\ndata: \n\nid\nretry: 1\ndata: \n\n")]),
        ("an id that no header can carry", &[Ends("id: \u{7}\nretry: 1\ndata: \n\n")]),
        (
            "not a message",
            &[Ends("id: 1\nretry: 1\ndata: oops\n\ndata: {\"beat\":1}\n\n"), Ends("data: ANSWER\n\n")],
        ),
        (
            "an invalid response",
            &[Ends("id: 1\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"id\":CALL,\"result\":{\"a\":NaN}}\n\n")],
        ),
        ("resumption refused with 405", &[Ends(PRIMING), Refuses(405)]),
        ("an unknown event id", &[Ends(PRIMING), Refuses(400)]),
        ("an ended session", &[Ends(PRIMING), Refuses(404)]),
        ("JSON instead of a stream", &[Ends(PRIMING), Json]),
        ("the old stream is still open", &[Breaks(PRIMING), Refuses(409), Ends("data: ANSWER\n\n")]),
        ("a server that is starting", &[Ends(PRIMING), Nothing, Refuses(503), Ends("data: ANSWER\n\n")]),
        ("a server that stays away", &[Ends(PRIMING), Refuses(503), Refuses(502), Nothing]),
    ];
    let mut lines = Vec::new();
    for (name, replies) in cases {
        lines.push(format!("{name}: {}", run(replies).await));
    }
    assert_snapshot!(lines.join("\n"), @r#"
    ended: answered, ["1"]
    broken: answered, ["1"]
    broken in an event: answered, ["1"]
    twice: answered, ["1", "2"]
    broken twice without a new event: answered, ["1", "1"]
    an id without data: answered, ["1"]
    no id: The connection to the server broke, []
    an id that is cleared: The connection to the server broke, []
    an id that no header can carry: The connection to the server broke, []
    not a message: answered, ["1"]
    an invalid response: The server's answer is malformed, []
    resumption refused with 405: The connection to the server broke, ["1"]
    an unknown event id: The connection to the server broke, ["1"]
    an ended session: The server has ended the session, ["1"]
    JSON instead of a stream: The connection to the server broke, ["1"]
    the old stream is still open: answered, ["1", "1"]
    a server that is starting: answered, ["1", "1", "1"]
    a server that stays away: The connection to the server broke, ["1", "1", "1"]
    "#);
}

#[tokio::test]
async fn unanswered_call_is_cancelled_at_its_deadline() {
    let upstream = server(&[Ends("id: 1\nretry: 1\ndata: \n\n"), Never]);
    let running = gateway_before(&upstream, "timeout: 500ms,").await;
    let answer = WireClient::new(running.address(), ClientMode::Bare).await.call("t", "{}").await.body;
    assert!(answer.contains(r#""code":"timeout""#), "{answer}");
    upstream.saw(|log| log.count("notifications/cancelled") == 1, |_| ()).await;
    assert_eq!(upstream.now(resumed_event_ids), ["1"]);
}

/// Progress arrives once, whichever part of the stream carries it.
#[tokio::test]
async fn progress_arrives_once_across_resumed_streams() {
    let progress = |number: u8| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":TOKEN,"progress":{number}}}}}"#
        )
    };
    let call = Mutex::new(None::<ReceivedRequest>);
    let parts = move |request: &ReceivedRequest| {
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
        Some(ScriptedReply::events([text.replace("TOKEN", &token).into()]))
    };
    let never = |_: &ReceivedRequest| ScriptedReply::never();
    let upstream =
        TestUpstream::start(but(ScriptedUpstream::new(UpstreamEra::Legacy, &[TOOL], never), parts));
    let running = gateway_before(&upstream, "").await;
    let client = WireClient::new(running.address(), ClientMode::Modern).await;
    let params = client.call_params("t", "{}", r#""progressToken":"p""#);
    let mut stream = client.open("tools/call", &params).await;
    let mut messages = Vec::new();
    while let Some(message) = stream.message().await {
        messages.push(message);
    }
    assert_snapshot!(messages.join("\n"), @r#"
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":2}}
    {"jsonrpc":"2.0","id":7,"result":{"good":1,"resultType":"complete"}}
    "#);
}

/// A long retry time of one stream does not delay another stream that started later. A client that disconnects while
/// the gateway waits cancels the call.
#[tokio::test]
async fn call_waiting_to_resume_is_cancelled() {
    let say = |request: &ReceivedRequest| {
        let name = request.params().get("name").plain();
        let retry = if name == "patient" { 60_000 } else { 1 };
        ScriptedReply::events([format!("id: {name}\nretry: {retry}\ndata: \n\n").into()])
    };
    let tools = ["patient", "t"].map(|name| TOOL.replace("\"t\"", &format!("\"{name}\"")));
    let tools = tools.each_ref().map(String::as_str);
    let rest = |request: &ReceivedRequest| {
        let is_rest = request.head.header("last-event-id") == Some("t");
        is_rest.then(|| ScriptedReply::events(["id: t\nretry: 1\ndata: \n\n".into()]))
    };
    let upstream = TestUpstream::start(but(ScriptedUpstream::new(UpstreamEra::Legacy, &tools, say), rest));
    let running = gateway_before(&upstream, "").await;
    let mut callers = Vec::new();
    for (number, name) in ["patient", "t"].into_iter().enumerate() {
        let mut client = WireClient::new(running.address(), ClientMode::Modern).await;
        let params = client.call_params(name, "{}", "");
        client.send("", "tools/call", &params).await;
        callers.push(client);
        upstream.saw(|log| log.count("tools/call") > number, |_| ()).await;
    }
    let resumed_from = upstream.saw(|log| resumed_event_ids(log).len() == 3, resumed_event_ids).await;
    assert_eq!(resumed_from, ["t", "t", "t"]);
    drop(callers.remove(0));
    let is_cancelled = |log: &RequestLog| log.count("notifications/cancelled") == 1;
    let withdrawn = upstream.saw(is_cancelled, |log| log.last("notifications/cancelled").params()).await;
    let first = upstream.now(|log| {
        log.requests.iter().find(|request| request.method() == "tools/call").map(ReceivedRequest::id)
    });
    assert_eq!(Some(withdrawn.get("requestId").text()), first);
}

/// The gateway resumes the stream of server notifications where it ended, or opens a new one if the server does not
/// know that event id any more.
#[tokio::test]
async fn notification_stream_is_resumed() {
    let stream = |request: &ReceivedRequest| {
        if request.method() != "GET" {
            return None;
        }
        match request.head.header("last-event-id") {
            None => Some(ScriptedReply::events(["id: 1\nretry: 1\ndata: \n\n".into()])),
            Some(_) => Some(ScriptedReply::http(400, "", "")),
        }
    };
    let never = |_: &ReceivedRequest| ScriptedReply::never();
    let upstream =
        TestUpstream::start(but(ScriptedUpstream::new(UpstreamEra::Legacy, &[TOOL], never), stream));
    let _running = gateway_before(&upstream, "").await;
    let streams = |log: &RequestLog| {
        let streams = log.requests.iter().filter(|request| request.method() == "GET");
        streams.map(|request| request.head.header("last-event-id").map(str::to_owned)).collect::<Vec<_>>()
    };
    let resumed_from = upstream.saw(|log| log.count("GET") == 3, streams).await;
    assert_eq!(resumed_from, [None, Some("1".to_owned()), None]);
}
