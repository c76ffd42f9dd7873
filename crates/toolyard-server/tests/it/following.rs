//! Changes of single resources: one subscription at the server, whoever follows them.

use futures_util::stream;
use tokio::sync::watch;

use crate::client::{Client, MODERN_META, Speech, Stream};
use crate::json;
use crate::stocked::{Stocked, acknowledged};
use crate::upstream::{Era, Log, Received, Reply, Reserved, Upstream, but};
use crate::{gateway, manifest};

const UPDATED: &str = "notifications/resources/updated";

fn server(era: Era) -> Stocked {
    Stocked::new(era, |request: &Received| Reply::result(request, "{}"))
}

/// The stream of a legacy client that has subscribed to this, and who can end that. The server tells of it from now on.
async fn legacy(address: std::net::SocketAddr, uri: &str) -> (Client, Stream) {
    let mut client = Client::in_session(address).await;
    let mut stream = Client::new(address, client.speech.clone()).await.changes().await;
    let said = client.ask("resources/subscribe", &format!(r#"{{"uri":"{uri}"}}"#)).await.body;
    assert!(said.contains(r#""result":{}"#), "{said}");
    check_updated(&mut stream, uri).await;
    (client, stream)
}

/// The stream of a modern client that has asked for news of this. The server tells of it from now on.
async fn modern(address: std::net::SocketAddr, uri: &str) -> Stream {
    let filter = format!(r#""notifications":{{"resourceSubscriptions":["{uri}"]}}"#);
    let client = Client::new(address, Speech::Modern).await;
    let mut stream =
        client.open("subscriptions/listen", &format!(r#"{{{filter},"_meta":{{{MODERN_META}}}}}"#)).await;
    let first = stream.message().await.unwrap();
    assert!(first.contains(uri), "{first}");
    check_updated(&mut stream, uri).await;
    stream
}

async fn check_updated(stream: &mut Stream, uri: &str) {
    let heard = stream.message().await.unwrap();
    assert!(heard.contains(UPDATED) && heard.contains(&format!(r#""uri":"{uri}""#)), "{heard}");
}

/// How often the server was asked to tell of this resource.
fn subscribed(log: &Log, uri: &str) -> usize {
    let asks = |request: &&Received| {
        ["resources/subscribe", "subscriptions/listen"].contains(&&*request.method())
            && request.body.contains(&format!("\"{uri}\""))
    };
    log.requests.iter().filter(asks).count()
}

/// How often it was told that nobody wants to know any more.
fn unsubscribed(log: &Log) -> usize {
    let dropped = log.dropped.iter().filter(|method| *method == "subscriptions/listen").count();
    log.count("resources/unsubscribe") + dropped
}

#[tokio::test]
async fn all_followers_share_a_subscription() {
    for era in [Era::Legacy, Era::Modern] {
        let server = server(era);
        let upstream = Upstream::start(server.clone());
        // Who leaves does not come back.
        let running = gateway(&[("h", upstream.address, "")], "timeouts: {resume: 0s}").await;
        let (mut one, mut heard_by_one) = legacy(running.address(), "res://one").await;
        let (mut two, mut heard_by_two) = legacy(running.address(), "res://one").await;
        let mut heard_by_three = modern(running.address(), "res://one").await;
        // A resource that no list has is known by its template.
        let mut other = modern(running.address(), "doc://7/x").await;
        server.say(UPDATED, r#"{"uri":"res://one"}"#);
        server.say(UPDATED, r#"{"uri":"res://nobody"}"#);
        server.say(UPDATED, r#"{"uri":"doc://7/x"}"#);
        for stream in [&mut heard_by_one, &mut heard_by_two, &mut heard_by_three] {
            check_updated(stream, "res://one").await;
        }
        check_updated(&mut other, "doc://7/x").await;
        if era == Era::Legacy {
            assert_eq!(upstream.now(|log| subscribed(log, "res://one")), 1);
        }
        // Who has left hears no more; the others do.
        one.ask("resources/unsubscribe", r#"{"uri":"res://one"}"#).await;
        server.say(UPDATED, r#"{"uri":"res://one"}"#);
        check_updated(&mut heard_by_two, "res://one").await;
        check_updated(&mut heard_by_three, "res://one").await;
        // The last one ends the subscription.
        let before = upstream.now(unsubscribed);
        // A session may come back to its stream; what it does not want any more it has to say.
        two.ask("resources/unsubscribe", r#"{"uri":"res://one"}"#).await;
        drop(heard_by_three);
        upstream.saw(|log| unsubscribed(log) > before, |_| ()).await;
        drop(other);
        upstream.saw(|log| unsubscribed(log) > before + 1, |_| ()).await;
    }
}

/// What is followed is followed on, and may have changed meanwhile.
#[tokio::test]
async fn a_subscription_outlives_its_connection() {
    for era in [Era::Legacy, Era::Modern] {
        let upstream = Upstream::start(server(era));
        let address = upstream.address;
        let running = gateway(&[("h", address, "")], "").await;
        let (mut client, mut heard_by_legacy) = legacy(running.address(), "res://one").await;
        let mut heard_by_modern = modern(running.address(), "res://one").await;
        drop(upstream);
        // The gateway notices by a call.
        while !client.call("t", "{}").await.body.contains("unavailable") {}
        let server = server(era);
        let upstream = Reserved::at(address).start(server.clone());
        check_updated(&mut heard_by_legacy, "res://one").await;
        check_updated(&mut heard_by_modern, "res://one").await;
        assert!(upstream.now(|log| subscribed(log, "res://one") > 0));
        server.say(UPDATED, r#"{"uri":"res://one"}"#);
        check_updated(&mut heard_by_legacy, "res://one").await;
        check_updated(&mut heard_by_modern, "res://one").await;
    }
}

/// Who says that it does not tell is not asked to.
#[tokio::test]
async fn a_server_without_subscriptions() {
    for era in [Era::Legacy, Era::Modern] {
        let server = server(era).with_capabilities(r#"{"resources":{"listChanged":true}}"#);
        let upstream = Upstream::start(server.clone());
        let running = gateway(&[("h", upstream.address, "")], "").await;
        let (_client, mut heard) = legacy(running.address(), "res://one").await;
        let stream = if era == Era::Legacy { "GET" } else { "subscriptions/listen" };
        upstream.saw(|log| log.count(stream) > 0, |_| ()).await;
        // It may tell unasked, and nothing shows from when on somebody hears it.
        let mut again = tokio::time::interval(std::time::Duration::from_millis(20));
        let mut heard = std::pin::pin!(check_updated(&mut heard, "res://one"));
        loop {
            tokio::select! {
                () = &mut heard => break,
                _ = again.tick() => server.say(UPDATED, r#"{"uri":"res://one"}"#),
            }
        }
        assert_eq!(upstream.now(|log| subscribed(log, "res://one")), 0);
    }
}

/// A client is answered at once. What changes until its server tells of changes is told as soon as it does, also where it
/// refuses to.
#[tokio::test]
async fn what_changes_while_it_is_arranged() {
    for (era, refuses) in [(Era::Legacy, false), (Era::Legacy, true), (Era::Modern, false)] {
        let (open, gate) = watch::channel(false);
        let hold = move |request: &Received| {
            let mut gate = gate.clone();
            let reply = match (&*request.method(), refuses) {
                ("resources/subscribe", true) => {
                    let error = r#"{"code":-32603,"message":"no"}"#;
                    Reply::json(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, request.id()))
                }
                ("resources/subscribe", false) => Reply::result(request, "{}"),
                ("subscriptions/listen", _) if request.body.contains("res://one") => {
                    Reply::live("text/event-stream", stream::iter([acknowledged(request)]))
                }
                _ => return None,
            };
            Some(reply.after(async move {
                gate.wait_for(|open| *open).await.unwrap();
            }))
        };
        let server = server(era);
        let upstream = Upstream::start(but(server.clone(), hold));
        let running = gateway(&[("h", upstream.address, "")], "").await;
        let mut client = Client::in_session(running.address()).await;
        let mut heard = Client::new(running.address(), client.speech.clone()).await.changes().await;
        let said = client.ask("resources/subscribe", r#"{"uri":"res://one"}"#).await.body;
        assert!(said.contains(r#""result":{}"#), "{said}");
        upstream.saw(|log| subscribed(log, "res://one") > 0, |_| ()).await;
        open.send_replace(true);
        check_updated(&mut heard, "res://one").await;
        // Who comes later has not heard what was told before.
        modern(running.address(), "res://one").await;
    }
}

/// An edit of the manifest may put another server in the place of the one that is followed.
#[tokio::test]
async fn a_successor_is_followed() {
    for era in [Era::Legacy, Era::Modern] {
        let servers = [(); 2].map(|()| server(era));
        let [old, new] = servers.clone().map(Upstream::start);
        let running = gateway(&[("h", old.address, "")], "").await;
        let (_client, mut heard_by_legacy) = legacy(running.address(), "res://one").await;
        let mut heard_by_modern = modern(running.address(), "res://one").await;
        running.apply(&manifest(&[("h", new.address, "")], "")).await.unwrap();
        // It may be another one there.
        check_updated(&mut heard_by_legacy, "res://one").await;
        check_updated(&mut heard_by_modern, "res://one").await;
        assert!(new.now(|log| subscribed(log, "res://one") > 0));
        servers[1].say(UPDATED, r#"{"uri":"res://one"}"#);
        check_updated(&mut heard_by_legacy, "res://one").await;
        check_updated(&mut heard_by_modern, "res://one").await;
    }
}

/// What a server says of an update is told as it came, with the part of the resource that it names.
#[tokio::test]
async fn what_is_said_of_an_update() {
    for era in [Era::Legacy, Era::Modern] {
        let server = server(era);
        let upstream = Upstream::start(server.clone());
        let running = gateway(&[("h", upstream.address, "")], "").await;
        let (_client, mut heard_by_legacy) = legacy(running.address(), "res://one").await;
        let mut heard_by_modern = modern(running.address(), "res://one").await;
        check_told(&server, &mut heard_by_legacy, r#"{"v":1.10}"#).await;
        let own = r#"{"v":1.10,"io.modelcontextprotocol/subscriptionId":7}"#;
        check_told(&server, &mut heard_by_modern, own).await;
    }
}

/// Has a server tell of a part, and checks what is heard of it.
async fn check_told(server: &Stocked, stream: &mut Stream, meta: &str) {
    // What the server says of its own subscription means nothing to others.
    let said = r#"{"v":1.10,"io.modelcontextprotocol/subscriptionId":99}"#;
    let params = |meta| format!(r#"{{"title":"T","uri":"res://one/part","_meta":{meta},"vendor":[1e0]}}"#);
    server.say(UPDATED, &params(said));
    let mut heard = stream.message().await.unwrap();
    // There may be one that was told when it was arranged.
    while !heard.contains("part") {
        heard = stream.message().await.unwrap();
    }
    assert_eq!(json::read(&heard).get("params").clone(), json::read(&params(meta)));
}

/// A server that never confirms a subscription is asked for others all the same.
#[tokio::test]
async fn a_subscription_that_is_not_confirmed() {
    let hangs = |request: &Received| {
        let is_stuck = request.method() == "resources/subscribe" && request.body.contains("doc://");
        is_stuck.then(Reply::never)
    };
    let upstream = Upstream::start(but(server(Era::Legacy), hangs));
    let running = gateway(&[("h", upstream.address, "")], "").await;
    let mut client = Client::in_session(running.address()).await;
    let _stream = Client::new(running.address(), client.speech.clone()).await.changes().await;
    for number in 0..3 {
        client.ask("resources/subscribe", &format!(r#"{{"uri":"doc://{number}/x"}}"#)).await;
    }
    upstream.saw(|log| subscribed(log, "doc://0/x") == 1, |_| ()).await;
    let asked = upstream.saw(|log| subscribed(log, "res://one") == 1, |_| ());
    let subscribed = async {
        let (_client, _stream) = legacy(running.address(), "res://one").await;
        asked.await;
    };
    tokio::time::timeout(std::time::Duration::from_secs(5), subscribed).await.expect("nobody waits");
}
