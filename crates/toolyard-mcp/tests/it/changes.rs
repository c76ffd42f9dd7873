//! Change notifications to a client with a session.

use insta::assert_snapshot;
use toolyard_mcp::server::OfferedFeatures;

use crate::client::{Client, LEGACY, Transport};
use crate::script::OFFERED;
use crate::test_gateway::{EVERYTHING, Offered, Setup, TestGateway, let_tasks_settle};

const TRANSPORTS: [Transport; 3] = [Transport::Pipe, Transport::Web, Transport::Sse];

/// A sequence of catalogs, each with another change.
pub(crate) const CHANGES: [Offered; 6] = [
    Offered { tools: &[r#"{"name":"other"}"#], ..OFFERED },
    Offered { tools: &[r#"{"name":"other","title":"Other"}"#], ..OFFERED },
    Offered { tools: &[r#"{"name":"other","title":"Other"}"#], prompts: &[], ..OFFERED },
    Offered { tools: &[r#"{"name":"other","title":"Other"}"#], prompts: &[], resources: &[], ..OFFERED },
    Offered { tools: &[], prompts: &[], resources: &[], templates: &[] },
    OFFERED,
];

#[tokio::test]
async fn list_changes_are_announced() {
    let mut outputs = Vec::new();
    for transport in TRANSPORTS {
        let gateway = TestGateway::new();
        let mut client = Client::new(&gateway, transport, LEGACY[3], "{}").await;
        let mut lines = Vec::new();
        for (offered, messages) in CHANGES.into_iter().zip([1, 1, 1, 1, 2, 3]) {
            gateway.offer(offered);
            lines.push(client.receive_many(messages).await);
            // The same catalog again is no change.
            gateway.offer(offered);
        }
        assert!(client.request("ping", "").await.contains("result"));
        outputs.push(lines.join("\n\n"));
    }
    assert!(outputs.iter().all(|other| *other == outputs[0]), "{outputs:#?}");
    assert_snapshot!(outputs[0], @r#"
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}

    {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}

    {"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{}}

    {"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{}}

    {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}
    {"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{}}

    {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}
    {"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{}}
    {"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{}}
    "#);
}

/// Changes of features that are not offered are not announced.
#[tokio::test]
async fn changes_of_other_features_are_not_announced() {
    let none = OfferedFeatures::default();
    let mut lines = Vec::new();
    for offers in [
        none,
        OfferedFeatures { tools: true, ..none },
        OfferedFeatures { prompts: true, ..none },
        OfferedFeatures { resources: true, ..none },
        EVERYTHING,
    ] {
        let gateway = TestGateway::with(Setup { offers, ..Setup::default() });
        let mut client = Client::on_pipe(&gateway, LEGACY[3], "{}").await;
        gateway.offer(Offered::default());
        let_tasks_settle().await;
        let received = client.received_so_far();
        let changed = received
            .lines()
            .filter_map(|received| received.split("notifications/").nth(1)?.split('"').next());
        lines.push(format!("- {}", changed.collect::<Vec<_>>().join(" ")));
    }
    assert_snapshot!(lines.join("\n"), @"
    - 
    - tools/list_changed
    - prompts/list_changed
    - resources/list_changed
    - tools/list_changed prompts/list_changed resources/list_changed
    ");
}

#[tokio::test]
async fn updates_reach_subscribers() {
    let mut outputs = Vec::new();
    for transport in TRANSPORTS {
        let gateway = TestGateway::new();
        let mut client = Client::new(&gateway, transport, LEGACY[3], "{}").await;
        let mut other = Client::new(&gateway, transport, LEGACY[3], "{}").await;
        for uri in ["mem:one", "file:two", "mem:one"] {
            client.request("resources/subscribe", &format!(r#""uri":"{uri}""#)).await;
        }
        gateway.wait_for_followers(&[("mem:one", 1), ("file:two", 1)]).await;
        let mut lines = Vec::new();
        for uri in ["mem:one", "mem:gone", "file:two"] {
            gateway.update(uri);
        }
        lines.push(client.receive_many(2).await);
        client.request("resources/unsubscribe", r#""uri":"mem:one""#).await;
        client.request("resources/unsubscribe", r#""uri":"mem:one""#).await;
        gateway.wait_for_followers(&[("file:two", 1)]).await;
        gateway.update("mem:one");
        gateway.update("file:two");
        lines.push(client.receive().await);
        assert_eq!(other.received_so_far(), "");
        drop(client);
        gateway.wait_for_followers(&[]).await;
        outputs.push(lines.join("\n"));
    }
    for outputs in &mut outputs {
        let mut lines: Vec<_> = outputs.lines().collect();
        lines.sort_unstable();
        *outputs = lines.join("\n");
    }
    assert!(outputs.iter().all(|other| *other == outputs[0]), "{outputs:#?}");
    assert_snapshot!(outputs[0], @r#"
    {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:two"}}
    {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:two"}}
    {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"mem:one"}}
    "#);
}

/// A followed resource may be missing for a while, and come back at another backend.
#[tokio::test]
async fn subscription_survives_missing_resource() {
    let gateway = TestGateway::new();
    let mut client = Client::uninitialized(&gateway, Transport::Pipe, LEGACY[3], "{}").await;
    client.request("initialize", r#""protocolVersion":"2025-11-25","capabilities":{}"#).await;
    client.request("resources/subscribe", r#""uri":"mem:one""#).await;
    gateway.offer(Offered::default());
    client.notify("notifications/initialized", "").await;
    client.request("ping", "").await;
    gateway.offer(OFFERED);
    gateway.wait_for_followers(&[("mem:one", 1)]).await;
    gateway.update("mem:one");
    let mut received = client.receive().await;
    while received.contains("list_changed") {
        received = client.receive().await;
    }
    assert_snapshot!(received, @r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"mem:one"}}"#);
}

/// A resource is unknown only after the handlers had time to connect.
#[tokio::test]
async fn subscribe_waits_for_handlers() {
    for transport in TRANSPORTS {
        let gateway = TestGateway::with(Setup { settled: false, ..Setup::default() });
        let mut client = Client::new(&gateway, transport, LEGACY[3], "{}").await;
        let id = client.send_request("resources/subscribe", r#""uri":"mem:one""#).await;
        client.request("ping", "").await;
        gateway.offer(OFFERED);
        let mut received = client.receive().await;
        while received.contains("list_changed") {
            received = client.receive().await;
        }
        assert_eq!(received, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
        gateway.wait_for_followers(&[("mem:one", 1)]).await;
    }
}

/// A client that sends `initialized` repeatedly gets each notification once.
#[tokio::test]
async fn repeated_initialized_does_not_duplicate_notifications() {
    let gateway = TestGateway::new();
    for transport in [Transport::Pipe, Transport::Sse] {
        gateway.offer(OFFERED);
        let mut client = Client::new(&gateway, transport, LEGACY[3], "{}").await;
        client.request("resources/subscribe", r#""uri":"mem:one""#).await;
        for _ in 0..10 {
            client.notify("notifications/initialized", "").await;
        }
        client.request("ping", "").await;
        gateway.wait_for_followers(&[("mem:one", 1)]).await;
        gateway.offer(CHANGES[0]);
        assert!(client.receive().await.contains("tools/list_changed"));
        assert!(client.request("ping", "").await.contains("result"));
        assert_eq!(client.received_so_far(), "");
        drop(client);
        gateway.wait_for_followers(&[]).await;
    }
}

/// A second session on the same pipe has its own subscriptions only.
#[tokio::test]
async fn second_session_drops_subscriptions() {
    let gateway = TestGateway::new();
    let mut client = Client::on_pipe(&gateway, LEGACY[3], "{}").await;
    client.request("resources/subscribe", r#""uri":"mem:one""#).await;
    gateway.wait_for_followers(&[("mem:one", 1)]).await;
    client.initialize().await;
    gateway.wait_for_followers(&[]).await;
    client.request("resources/subscribe", r#""uri":"mem:one""#).await;
    gateway.wait_for_followers(&[("mem:one", 1)]).await;
}

/// Streams end when the frontend stops.
#[tokio::test]
async fn stop_ends_streams() {
    for transport in [Transport::Web, Transport::Sse] {
        let gateway = TestGateway::new();
        let mut client = Client::new(&gateway, transport, LEGACY[3], "{}").await;
        client.request("resources/subscribe", r#""uri":"mem:one""#).await;
        gateway.wait_for_followers(&[("mem:one", 1)]).await;
        gateway.stop();
        gateway.wait_for_followers(&[]).await;
        gateway.wait_until_drained().await;
    }
    // A pipe ends by itself.
    let gateway = TestGateway::new();
    let mut client = Client::on_pipe(&gateway, LEGACY[3], "{}").await;
    gateway.stop();
    assert!(client.request("ping", "").await.contains("result"));
}

/// Requests that run when the frontend stops are still answered.
#[tokio::test]
async fn running_calls_are_answered_after_stop() {
    let (go, gone) = tokio::sync::watch::channel(false);
    let gateway = TestGateway::build(Setup::default(), move |_| {
        let mut gone = gone.clone();
        async move {
            gone.wait_for(|gone| *gone).await.unwrap();
            Ok(crate::script::text("done"))
        }
    });
    for transport in TRANSPORTS {
        let mut client = Client::new(&gateway, transport, LEGACY[3], "{}").await;
        client.send_request("tools/call", r#""name":"echo""#).await;
        client.request("ping", "").await;
        if transport == Transport::Sse {
            gateway.stop();
        }
        go.send_replace(transport == Transport::Sse);
        if transport == Transport::Sse {
            assert!(client.receive().await.contains("done"));
        }
    }
}
