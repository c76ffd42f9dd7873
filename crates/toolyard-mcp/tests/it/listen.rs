//! Change notifications to a client without a session: `subscriptions/listen` (2026-07-28,
//! basic/patterns/subscriptions).

use insta::assert_snapshot;
use toolyard_mcp::server::OfferedFeatures;

use crate::changes::CHANGES;
use crate::client::{Client, LEGACY, MODERN, Transport};
use crate::script::OFFERED;
use crate::test_gateway::{EVERYTHING, Offered, Setup, TestGateway, let_tasks_settle};

const TRANSPORTS: [Transport; 2] = [Transport::Pipe, Transport::Web];

const ALL: &str = r#""toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["mem:one","file:two"]"#;

/// Subscribes and returns the acknowledgement.
async fn listen(client: &mut Client, filter: &str) -> String {
    client.request("subscriptions/listen", &format!(r#""notifications":{{{filter}}}"#)).await
}

/// Makes all changes, stops the frontend, and returns all messages.
async fn all_notifications(gateway: &TestGateway, client: &mut Client) -> Vec<String> {
    for offered in CHANGES {
        gateway.offer(offered);
        // Changes that were not delivered yet are merged.
        let_tasks_settle().await;
    }
    for uri in ["mem:one", "mem:gone", "file:two"] {
        gateway.update(uri);
    }
    let_tasks_settle().await;
    gateway.stop();
    let mut messages = Vec::new();
    loop {
        messages.push(client.receive().await);
        if messages.last().unwrap().contains(r#""result""#) {
            return messages;
        }
    }
}

/// Each filter with its granted part and the announced changes.
#[tokio::test]
async fn filters_select_notifications() {
    let mut lines = Vec::new();
    for filter in [
        "",
        r#""toolsListChanged":true"#,
        r#""promptsListChanged":true"#,
        r#""resourcesListChanged":true"#,
        r#""resourceSubscriptions":["file:two","mem:none","file:two",7]"#,
        r#""toolsListChanged":false,"promptsListChanged":"true","resourcesListChanged":1,"resourceSubscriptions":"mem:one","other":true"#,
        ALL,
    ] {
        let gateway = TestGateway::new();
        let mut client = Client::on_pipe(&gateway, MODERN, "{}").await;
        let granted = listen(&mut client, filter).await;
        lines.push(granted.split_once(r#""notifications":"#).unwrap().1.trim_end_matches('}').to_owned());
        let messages = all_notifications(&gateway, &mut client).await;
        let mut words: Vec<_> = messages
            .iter()
            .filter_map(|received| received.split("notifications/").nth(1)?.split('"').next())
            .collect();
        words.sort_unstable();
        words.dedup();
        lines.push(format!("    {}", words.join(" ")));
    }
    assert_snapshot!(lines.join("\n"), @r#"
    {
        
    {"toolsListChanged":true
        tools/list_changed
    {"promptsListChanged":true
        prompts/list_changed
    {"resourcesListChanged":true
        resources/list_changed
    {"resourceSubscriptions":["file:two"]
        resources/updated
    {
        
    {"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["file:two","mem:one"]
        prompts/list_changed resources/list_changed resources/updated tools/list_changed
    "#);
}

/// Every message has the subscription id; the last one is the response to the request.
#[tokio::test]
async fn messages_carry_the_subscription_id() {
    let mut outputs = Vec::new();
    for transport in TRANSPORTS {
        let gateway = TestGateway::new();
        let mut client = Client::new(&gateway, transport, MODERN, "{}").await;
        let mut lines = vec![listen(&mut client, ALL).await];
        for (offered, messages) in CHANGES.into_iter().zip([1, 1, 1, 1, 2]) {
            gateway.offer(offered);
            lines.push(client.receive_many(messages).await);
        }
        gateway.wait_for_followers(&[("mem:one", 1), ("file:two", 1)]).await;
        for uri in ["mem:one", "file:two"] {
            gateway.update(uri);
            lines.push(client.receive().await);
        }
        gateway.stop();
        lines.push(client.receive().await);
        gateway.wait_for_followers(&[]).await;
        if transport == Transport::Web {
            gateway.wait_until_drained().await;
        }
        outputs.push(lines.join("\n"));
    }
    assert_eq!(outputs[0], outputs[1]);
    assert_snapshot!(outputs[0], @r#"
    {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["file:two","mem:one"]}}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
    {"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
    {"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
    {"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
    {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"mem:one","_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
    {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:two","_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
    "#);
}

/// Only offered features are granted.
#[tokio::test]
async fn only_offered_features_are_granted() {
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
        let mut client = Client::on_pipe(&gateway, MODERN, "{}").await;
        lines.push(listen(&mut client, &format!(r#"{ALL},"taskIds":[]"#)).await);
    }
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"notifications":{}}}
    {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"notifications":{"toolsListChanged":true}}}
    {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"notifications":{"promptsListChanged":true}}}
    {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"notifications":{"resourcesListChanged":true,"resourceSubscriptions":["file:two","mem:one"]}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
    "#);
}

/// Several subscriptions on one pipe, each with the id of its request, until they are cancelled.
#[tokio::test]
async fn concurrent_subscriptions_are_separate() {
    let gateway = TestGateway::new();
    let mut client = Client::on_pipe(&gateway, MODERN, "{}").await;
    let mut lines = Vec::new();
    for id in ["1", r#""one""#, "1.0"] {
        let filter = r#""notifications":{"resourceSubscriptions":["mem:one"]}"#;
        let request = client.text(id, "subscriptions/listen", filter);
        client.send(&request).await;
        lines.push(client.receive().await);
    }
    gateway.wait_for_followers(&[("mem:one", 3)]).await;
    gateway.update("mem:one");
    let mut messages: Vec<_> = client.receive_many(3).await.lines().map(str::to_owned).collect();
    messages.sort_unstable();
    lines.append(&mut messages);
    client.notify("notifications/cancelled", r#""requestId":"one""#).await;
    client.notify("notifications/cancelled", r#""requestId":2"#).await;
    client.notify("notifications/cancelled", r#""requestId":1"#).await;
    gateway.wait_for_followers(&[("mem:one", 1)]).await;
    gateway.update("mem:one");
    lines.push(client.receive().await);
    gateway.stop();
    lines.push(client.receive().await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"notifications":{"resourceSubscriptions":["mem:one"]}}}
    {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"one"},"notifications":{"resourceSubscriptions":["mem:one"]}}}
    {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1.0},"notifications":{"resourceSubscriptions":["mem:one"]}}}
    {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"mem:one","_meta":{"io.modelcontextprotocol/subscriptionId":"one"}}}
    {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"mem:one","_meta":{"io.modelcontextprotocol/subscriptionId":1.0}}}
    {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"mem:one","_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
    {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"mem:one","_meta":{"io.modelcontextprotocol/subscriptionId":1.0}}}
    {"jsonrpc":"2.0","id":1.0,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1.0}}}
    "#);
    assert!(client.request("tools/list", "").await.contains("result"), "nothing else is said");
}

/// Over HTTP a subscription ends with its connection.
#[tokio::test]
async fn disconnect_ends_subscription() {
    let gateway = TestGateway::new();
    for transport in TRANSPORTS {
        let mut client = Client::new(&gateway, transport, MODERN, "{}").await;
        listen(&mut client, ALL).await;
        gateway.wait_for_followers(&[("mem:one", 1), ("file:two", 1)]).await;
        match transport {
            Transport::Web => client.disconnect(1),
            _ => drop(client.end().await),
        }
        gateway.wait_for_followers(&[]).await;
    }
}

#[tokio::test]
async fn subscriptions_are_limited() {
    let gateway = TestGateway::new();
    let mut client = Client::on_pipe(&gateway, MODERN, "{}").await;
    for _ in 0..100 {
        assert!(listen(&mut client, "").await.contains("acknowledged"));
    }
    assert_snapshot!(listen(&mut client, "").await, @r#"{"jsonrpc":"2.0","id":101,"error":{"code":-32603,"message":"Too many subscriptions at once","data":{"code":"overloaded","reason":"a limit of the gateway is reached","retryable":true}}}"#);
    client.cancel(7).await;
    assert!(client.request("tools/list", "").await.contains("result"));
    assert!(listen(&mut client, "").await.contains("acknowledged"));
}

/// A subscriber gets the final response when the frontend stops.
#[tokio::test]
async fn stopped_frontend_ends_subscription() {
    let gateway = TestGateway::new();
    let mut client = Client::on_pipe(&gateway, MODERN, "{}").await;
    gateway.stop();
    let lines = [listen(&mut client, ALL).await, client.receive().await];
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["file:two","mem:one"]}}}
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
    "#);
}

/// A resource is unknown only after the handlers had time to connect.
#[tokio::test]
async fn listen_waits_for_handlers() {
    for transport in TRANSPORTS {
        let gateway = TestGateway::with(Setup { settled: false, ..Setup::default() });
        let mut client = Client::new(&gateway, transport, MODERN, "{}").await;
        client.send_request("subscriptions/listen", &format!(r#""notifications":{{{ALL}}}"#)).await;
        if transport == Transport::Pipe {
            client.request("server/discover", "").await;
        }
        gateway.offer(OFFERED);
        let received = client.receive().await;
        assert!(received.contains(r#""resourceSubscriptions":["file:two","mem:one"]"#), "{received}");
        gateway.wait_for_followers(&[("mem:one", 1), ("file:two", 1)]).await;
        gateway.offer(Offered { prompts: &[], ..OFFERED });
        assert!(
            client.receive().await.contains("prompts/list_changed"),
            "what was there from the beginning is no change"
        );
    }
}

/// Updates are reported even if the registry cannot change any more.
#[tokio::test]
async fn frozen_registry_still_reports_updates() {
    let mut gateway = TestGateway::new();
    gateway.freeze();
    for (revision, request) in [(LEGACY[3], r#""uri":"mem:one""#), (MODERN, "")] {
        let mut client = Client::on_pipe(&gateway, revision, "{}").await;
        match revision {
            MODERN => drop(listen(&mut client, ALL).await),
            _ => drop(client.request("resources/subscribe", request).await),
        }
        gateway.update("mem:one");
        assert!(client.receive().await.contains("resources/updated"));
    }
}

#[tokio::test]
async fn legacy_clients_cannot_listen() {
    let gateway = TestGateway::new();
    let mut client = Client::on_pipe(&gateway, LEGACY[3], "{}").await;
    assert_snapshot!(listen(&mut client, ALL).await, @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: subscriptions/listen"}}"#);
}
