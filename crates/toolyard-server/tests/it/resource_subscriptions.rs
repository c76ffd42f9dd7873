//! Changes of single resources: the clients of a resource share one subscription at its server.

use futures_util::stream;
use tokio::sync::watch;
use toolyard_testing::json;
use toolyard_testing::upstream::{
    ReceivedRequest, RequestLog, ReservedAddress, ScriptedReply, TestUpstream, UpstreamEra, but,
};
use toolyard_testing::wire_client::{ClientMode, MODERN_META, WireClient, WireEventStream};

use crate::catalog_server::{CatalogServer, acknowledged};
use crate::gateway::{gateway, manifest};

const UPDATED: &str = "notifications/resources/updated";

fn server(era: UpstreamEra) -> CatalogServer {
    CatalogServer::new(era, |request: &ReceivedRequest| ScriptedReply::result(request, "{}"))
}

/// A legacy client that is subscribed to this resource, and its stream. The server's own subscription is active.
async fn legacy_subscriber(address: std::net::SocketAddr, uri: &str) -> (WireClient, WireEventStream) {
    let mut client = WireClient::in_session(address).await;
    let mut stream = WireClient::new(address, client.mode.clone()).await.changes().await;
    let answer = client.ask("resources/subscribe", &format!(r#"{{"uri":"{uri}"}}"#)).await.body;
    assert!(answer.contains(r#""result":{}"#), "{answer}");
    check_updated(&mut stream, uri).await;
    (client, stream)
}

/// The stream of a modern client that is subscribed to this resource. The server's own subscription is active.
async fn modern_subscriber(address: std::net::SocketAddr, uri: &str) -> WireEventStream {
    let filter = format!(r#""notifications":{{"resourceSubscriptions":["{uri}"]}}"#);
    let client = WireClient::new(address, ClientMode::Modern).await;
    let mut stream =
        client.open("subscriptions/listen", &format!(r#"{{{filter},"_meta":{{{MODERN_META}}}}}"#)).await;
    let first = stream.message().await.unwrap();
    assert!(first.contains(uri), "{first}");
    check_updated(&mut stream, uri).await;
    stream
}

async fn check_updated(stream: &mut WireEventStream, uri: &str) {
    let message = stream.message().await.unwrap();
    assert!(message.contains(UPDATED) && message.contains(&format!(r#""uri":"{uri}""#)), "{message}");
}

/// Number of subscriptions to this resource at the server.
fn subscribed(log: &RequestLog, uri: &str) -> usize {
    let asks = |request: &&ReceivedRequest| {
        ["resources/subscribe", "subscriptions/listen"].contains(&&*request.method())
            && request.body.contains(&format!("\"{uri}\""))
    };
    log.requests.iter().filter(asks).count()
}

/// Number of subscriptions that the gateway has ended at the server.
fn unsubscribed(log: &RequestLog) -> usize {
    let dropped = log.dropped.iter().filter(|method| *method == "subscriptions/listen").count();
    log.count("resources/unsubscribe") + dropped
}

#[tokio::test]
async fn subscribers_share_one_server_subscription() {
    for era in [UpstreamEra::Legacy, UpstreamEra::Modern] {
        let server = server(era);
        let upstream = TestUpstream::start(server.clone());
        // Clients cannot resume their streams.
        let running = gateway(&[("h", upstream.address, "")], "timeouts: {resume: 0s}").await;
        let (mut one, mut updates_of_one) = legacy_subscriber(running.address(), "res://one").await;
        let (mut two, mut updates_of_two) = legacy_subscriber(running.address(), "res://one").await;
        let mut updates_of_three = modern_subscriber(running.address(), "res://one").await;
        // A template covers this resource, which no list contains.
        let mut other = modern_subscriber(running.address(), "doc://7/x").await;
        server.say(UPDATED, r#"{"uri":"res://one"}"#);
        server.say(UPDATED, r#"{"uri":"res://nobody"}"#);
        server.say(UPDATED, r#"{"uri":"doc://7/x"}"#);
        for stream in [&mut updates_of_one, &mut updates_of_two, &mut updates_of_three] {
            check_updated(stream, "res://one").await;
        }
        check_updated(&mut other, "doc://7/x").await;
        if era == UpstreamEra::Legacy {
            assert_eq!(upstream.now(|log| subscribed(log, "res://one")), 1);
        }
        // A client that has unsubscribed gets no further updates; the others do.
        one.ask("resources/unsubscribe", r#"{"uri":"res://one"}"#).await;
        server.say(UPDATED, r#"{"uri":"res://one"}"#);
        check_updated(&mut updates_of_two, "res://one").await;
        check_updated(&mut updates_of_three, "res://one").await;
        // The last client to unsubscribe ends the subscription at the server.
        let before = upstream.now(unsubscribed);
        // A session keeps its subscriptions while its stream is closed, so that it has to end them explicitly.
        two.ask("resources/unsubscribe", r#"{"uri":"res://one"}"#).await;
        drop(updates_of_three);
        upstream.saw(|log| unsubscribed(log) > before, |_| ()).await;
        drop(other);
        upstream.saw(|log| unsubscribed(log) > before + 1, |_| ()).await;
    }
}

/// The gateway renews subscriptions after a reconnect, and reports a possible change.
#[tokio::test]
async fn subscription_survives_a_reconnect() {
    for era in [UpstreamEra::Legacy, UpstreamEra::Modern] {
        let upstream = TestUpstream::start(server(era));
        let address = upstream.address;
        let running = gateway(&[("h", address, "")], "").await;
        let (mut client, mut updates_of_legacy) = legacy_subscriber(running.address(), "res://one").await;
        let mut updates_of_modern = modern_subscriber(running.address(), "res://one").await;
        drop(upstream);
        // The gateway notices the lost connection by a call.
        while !client.call("t", "{}").await.body.contains("unavailable") {}
        let server = server(era);
        let upstream = ReservedAddress::at(address).start(server.clone());
        check_updated(&mut updates_of_legacy, "res://one").await;
        check_updated(&mut updates_of_modern, "res://one").await;
        assert!(upstream.now(|log| subscribed(log, "res://one") > 0));
        server.say(UPDATED, r#"{"uri":"res://one"}"#);
        check_updated(&mut updates_of_legacy, "res://one").await;
        check_updated(&mut updates_of_modern, "res://one").await;
    }
}

/// The gateway does not subscribe at a server without that capability.
#[tokio::test]
async fn server_without_subscriptions_gets_none() {
    for era in [UpstreamEra::Legacy, UpstreamEra::Modern] {
        let server = server(era).with_capabilities(r#"{"resources":{"listChanged":true}}"#);
        let upstream = TestUpstream::start(server.clone());
        let running = gateway(&[("h", upstream.address, "")], "").await;
        let (_client, mut updates) = legacy_subscriber(running.address(), "res://one").await;
        let stream = if era == UpstreamEra::Legacy { "GET" } else { "subscriptions/listen" };
        upstream.saw(|log| log.count(stream) > 0, |_| ()).await;
        // The server may send updates without a subscription. Nothing shows when the gateway begins to listen, so they
        // repeat.
        let mut again = tokio::time::interval(std::time::Duration::from_millis(20));
        let mut updates = std::pin::pin!(check_updated(&mut updates, "res://one"));
        loop {
            tokio::select! {
                () = &mut updates => break,
                _ = again.tick() => server.say(UPDATED, r#"{"uri":"res://one"}"#),
            }
        }
        assert_eq!(upstream.now(|log| subscribed(log, "res://one")), 0);
    }
}

/// The gateway answers a client at once. It reports a possible change as soon as the server has confirmed the
/// subscription, or has refused it.
#[tokio::test]
async fn change_before_the_confirmation_is_reported() {
    for (era, refuses) in
        [(UpstreamEra::Legacy, false), (UpstreamEra::Legacy, true), (UpstreamEra::Modern, false)]
    {
        let (open, gate) = watch::channel(false);
        let hold = move |request: &ReceivedRequest| {
            let mut gate = gate.clone();
            let reply = match (&*request.method(), refuses) {
                ("resources/subscribe", true) => {
                    let error = r#"{"code":-32603,"message":"no"}"#;
                    ScriptedReply::json(&format!(
                        r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#,
                        request.id()
                    ))
                }
                ("resources/subscribe", false) => ScriptedReply::result(request, "{}"),
                ("subscriptions/listen", _) if request.body.contains("res://one") => {
                    ScriptedReply::live("text/event-stream", stream::iter([acknowledged(request)]))
                }
                _ => return None,
            };
            Some(reply.after(async move {
                gate.wait_for(|open| *open).await.unwrap();
            }))
        };
        let server = server(era);
        let upstream = TestUpstream::start(but(server.clone(), hold));
        let running = gateway(&[("h", upstream.address, "")], "").await;
        let mut client = WireClient::in_session(running.address()).await;
        let mut updates = WireClient::new(running.address(), client.mode.clone()).await.changes().await;
        let answer = client.ask("resources/subscribe", r#"{"uri":"res://one"}"#).await.body;
        assert!(answer.contains(r#""result":{}"#), "{answer}");
        upstream.saw(|log| subscribed(log, "res://one") > 0, |_| ()).await;
        open.send_replace(true);
        check_updated(&mut updates, "res://one").await;
        // A later client gets no earlier updates.
        modern_subscriber(running.address(), "res://one").await;
    }
}

/// An edit of the manifest may replace the server of a subscribed resource.
#[tokio::test]
async fn successor_of_a_server_is_subscribed() {
    for era in [UpstreamEra::Legacy, UpstreamEra::Modern] {
        let servers = [(); 2].map(|()| server(era));
        let [old, new] = servers.clone().map(TestUpstream::start);
        let running = gateway(&[("h", old.address, "")], "").await;
        let (_client, mut updates_of_legacy) = legacy_subscriber(running.address(), "res://one").await;
        let mut updates_of_modern = modern_subscriber(running.address(), "res://one").await;
        running.apply(&manifest(&[("h", new.address, "")], "")).await.unwrap();
        // The resource may differ at the new server.
        check_updated(&mut updates_of_legacy, "res://one").await;
        check_updated(&mut updates_of_modern, "res://one").await;
        assert!(new.now(|log| subscribed(log, "res://one") > 0));
        servers[1].say(UPDATED, r#"{"uri":"res://one"}"#);
        check_updated(&mut updates_of_legacy, "res://one").await;
        check_updated(&mut updates_of_modern, "res://one").await;
    }
}

/// The gateway forwards the parameters of an update unchanged, including the URI of a part of the resource.
#[tokio::test]
async fn update_parameters_are_forwarded_unchanged() {
    for era in [UpstreamEra::Legacy, UpstreamEra::Modern] {
        let server = server(era);
        let upstream = TestUpstream::start(server.clone());
        let running = gateway(&[("h", upstream.address, "")], "").await;
        let (_client, mut updates_of_legacy) = legacy_subscriber(running.address(), "res://one").await;
        let mut updates_of_modern = modern_subscriber(running.address(), "res://one").await;
        check_update_parameters(&server, &mut updates_of_legacy, r#"{"v":1.10}"#).await;
        let own = r#"{"v":1.10,"io.modelcontextprotocol/subscriptionId":7}"#;
        check_update_parameters(&server, &mut updates_of_modern, own).await;
    }
}

/// Sends an update of a part of the resource, and checks the notification on the stream.
async fn check_update_parameters(server: &CatalogServer, stream: &mut WireEventStream, meta: &str) {
    // The server's own subscription id is meaningless to clients.
    let own_meta = r#"{"v":1.10,"io.modelcontextprotocol/subscriptionId":99}"#;
    let params = |meta| format!(r#"{{"title":"T","uri":"res://one/part","_meta":{meta},"vendor":[1e0]}}"#);
    server.say(UPDATED, &params(own_meta));
    let mut message = stream.message().await.unwrap();
    // The update of the confirmed subscription may come first.
    while !message.contains("part") {
        message = stream.message().await.unwrap();
    }
    assert_eq!(json::read(&message).get("params").clone(), json::read(&params(meta)));
}

/// A subscription that a server never confirms does not delay other subscriptions.
#[tokio::test]
async fn unconfirmed_subscription_does_not_delay_others() {
    let hangs = |request: &ReceivedRequest| {
        let is_stuck = request.method() == "resources/subscribe" && request.body.contains("doc://");
        is_stuck.then(ScriptedReply::never)
    };
    let upstream = TestUpstream::start(but(server(UpstreamEra::Legacy), hangs));
    let running = gateway(&[("h", upstream.address, "")], "").await;
    let mut client = WireClient::in_session(running.address()).await;
    let _stream = WireClient::new(running.address(), client.mode.clone()).await.changes().await;
    for number in 0..3 {
        client.ask("resources/subscribe", &format!(r#"{{"uri":"doc://{number}/x"}}"#)).await;
    }
    upstream.saw(|log| subscribed(log, "doc://0/x") == 1, |_| ()).await;
    let second_subscription = upstream.saw(|log| subscribed(log, "res://one") == 1, |_| ());
    let subscribed = async {
        let (_client, _stream) = legacy_subscriber(running.address(), "res://one").await;
        second_subscription.await;
    };
    tokio::time::timeout(std::time::Duration::from_secs(5), subscribed)
        .await
        .expect("no delay by the unconfirmed subscription");
}
