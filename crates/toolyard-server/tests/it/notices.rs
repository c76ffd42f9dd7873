//! What a server says of a call, on whichever stream, reaches the client of that call, and nobody else.

use bytes::Bytes;
use tokio::sync::watch;

use crate::client::{Client, Speech};
use crate::gateway;
use crate::stocked::{ERAS, Stocked};
use crate::upstream::{Era, Received, Reply, Upstream, but};

/// A notification on a stream.
fn event(method: &str, params: &str) -> String {
    format!("data: {{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}\n\n")
}

fn answered(request: &Received) -> String {
    format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{}}}}\n\n", request.id())
}

/// The token of a call, as the server has it.
fn token(request: &Received) -> String {
    request.params().get("_meta").get("progressToken").text()
}

fn progress(token: &str, progress: u8) -> String {
    format!(r#"{{"progressToken":{token},"progress":{progress}}}"#)
}

/// What clients of both eras hear of a call, besides the answer.
async fn heard(upstream: &Upstream) -> Vec<Vec<String>> {
    let running = gateway(&[("h", upstream.address, "")], "").await;
    let mut heard = Vec::new();
    for client in
        [Client::in_session(running.address()).await, Client::new(running.address(), Speech::Modern).await]
    {
        let params = client.call_params("t", "{}", r#""progressToken":"mine""#);
        let mut stream = client.open("tools/call", &params).await;
        let mut messages = Vec::new();
        while let Some(message) = stream.message().await {
            messages.push(message);
        }
        messages.pop();
        heard.push(messages);
    }
    heard
}

/// Progress with a token that is none of ours is nobody's, also where it comes on the stream of a call.
#[tokio::test]
async fn progress_of_somebody_else() {
    for era in ERAS {
        let upstream = Upstream::start(Stocked::new(era, |request: &Received| {
            let others = ["\"somebody-else\"", "999999", "null"];
            let others = others.map(|token| event("notifications/progress", &progress(token, 1))).concat();
            let own = event("notifications/progress", &progress(&token(request), 2));
            Reply::events([Bytes::from(others + &own + &answered(request))])
        }));
        for heard in heard(&upstream).await {
            assert_eq!(heard.len(), 1, "{era:?}: {heard:?}");
            assert!(heard[0].contains(r#""progressToken":"mine""#), "{heard:?}");
            assert!(heard[0].contains(r#""progress":2"#), "{heard:?}");
        }
    }
}

/// A legacy server may tell of a call on the stream of what belongs to no request.
#[tokio::test]
async fn progress_on_the_stream_of_changes() {
    let server = Stocked::new(Era::Legacy, |_: &Received| Reply::http(500, "", ""));
    let news = server.clone();
    let (heard, answers) = watch::channel(0);
    let upstream = Upstream::start(but(server, move |request| {
        if request.method() != "tools/call" {
            return None;
        }
        news.say("notifications/progress", &progress(&token(request), 1));
        let (mut answers, before) = (answers.clone(), *answers.borrow());
        let answer = Reply::events([Bytes::from(answered(request))]);
        // The two streams have no order.
        Some(answer.after(async move { drop(answers.wait_for(|heard| *heard > before).await) }))
    }));
    let running = gateway(&[("h", upstream.address, "")], "").await;
    upstream.saw(|log| log.count("GET") > 0, |_| ()).await;
    for client in
        [Client::in_session(running.address()).await, Client::new(running.address(), Speech::Modern).await]
    {
        let params = client.call_params("t", "{}", r#""progressToken":"mine""#);
        let mut stream = client.open("tools/call", &params).await;
        let first = stream.message().await.unwrap();
        assert!(first.contains(r#""progressToken":"mine""#), "{first}");
        heard.send_modify(|heard| *heard += 1);
        assert!(stream.message().await.unwrap().contains("result"));
    }
}

/// What a server says on the stream of a call that nobody here knows is for the client of the call.
#[tokio::test]
async fn notifications_that_are_not_known() {
    let params = r#"{"vendor":1.10,"_meta":{"x":[ ]}}"#;
    for era in ERAS {
        let upstream = Upstream::start(Stocked::new(era, move |request: &Received| {
            let said = event("notifications/vendor/news", params);
            Reply::events([Bytes::from(said + &answered(request))])
        }));
        for heard in heard(&upstream).await {
            let expected =
                format!(r#"{{"jsonrpc":"2.0","method":"notifications/vendor/news","params":{params}}}"#);
            assert_eq!(heard, [expected], "{era:?}");
        }
    }
}

/// A modern server that refuses what was mirrored of a call is asked what it wants mirrored, and called again, once.
#[tokio::test]
async fn headers_that_do_not_match() {
    const NOW: &str = r#"{"name":"t","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}"#;
    for is_cured in [true, false] {
        let server = Stocked::new(Era::Modern, |_: &Received| Reply::http(500, "", ""));
        let lists = server.clone();
        let upstream = Upstream::start(but(server, move |request| {
            if request.method() != "tools/call" {
                return None;
            }
            if is_cured && request.head.header("mcp-param-region") == Some("eu") {
                return Some(Reply::result(request, r#"{"resultType":"complete","good":1}"#));
            }
            lists.set("tools/list", &format!(r#""tools":[{NOW}],"ttlMs":0,"cacheScope":"public""#));
            let error = r#"{"code":-32020,"message":"mismatch"}"#;
            let body = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, request.id());
            Some(Reply::http(400, "content-type: application/json\r\n", &body))
        }));
        let running = gateway(&[("h", upstream.address, "")], "").await;
        let mut client = Client::new(running.address(), Speech::Bare).await;
        let said = client.call("t", r#"{"r":"eu"}"#).await.body;
        assert_eq!(said.contains(r#""good":1"#), is_cured, "{said}");
        assert_eq!(upstream.now(|log| log.count("tools/call")), 2);
    }
}
