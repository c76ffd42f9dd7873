//! What a client with a session is told of changes.

use insta::assert_snapshot;
use toolyard_mcp::server::Offers;

use crate::client::{Carrier, Client, LEGACY};
use crate::script::OFFERED;
use crate::yard::{EVERYTHING, Offered, Setup, Yard, everybody_rests};

const CARRIERS: [Carrier; 3] = [Carrier::Pipe, Carrier::Web, Carrier::Sse];

/// Each time something else has changed.
pub(crate) const CHANGES: [Offered; 6] = [
    Offered { tools: &[r#"{"name":"other"}"#], ..OFFERED },
    Offered { tools: &[r#"{"name":"other","title":"Other"}"#], ..OFFERED },
    Offered { tools: &[r#"{"name":"other","title":"Other"}"#], prompts: &[], ..OFFERED },
    Offered { tools: &[r#"{"name":"other","title":"Other"}"#], prompts: &[], resources: &[], ..OFFERED },
    Offered { tools: &[], prompts: &[], resources: &[], templates: &[] },
    OFFERED,
];

#[tokio::test]
async fn lists_that_change() {
    let mut said = Vec::new();
    for carrier in CARRIERS {
        let yard = Yard::new();
        let mut client = Client::new(&yard, carrier, LEGACY[3], "{}").await;
        let mut lines = Vec::new();
        for (offered, messages) in CHANGES.into_iter().zip([1, 1, 1, 1, 2, 3]) {
            yard.offer(offered);
            lines.push(client.hear_all(messages).await);
            // The same again is no change.
            yard.offer(offered);
        }
        assert!(client.ask("ping", "").await.contains("result"));
        said.push(lines.join("\n\n"));
    }
    assert!(said.iter().all(|other| *other == said[0]), "{said:#?}");
    assert_snapshot!(said[0], @r#"
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

/// Of what is not offered nothing is said.
#[tokio::test]
async fn lists_that_are_not_offered() {
    let none = Offers::default();
    let mut lines = Vec::new();
    for offers in [
        none,
        Offers { tools: true, ..none },
        Offers { prompts: true, ..none },
        Offers { resources: true, ..none },
        EVERYTHING,
    ] {
        let yard = Yard::with(Setup { offers, ..Setup::default() });
        let mut client = Client::piped(&yard, LEGACY[3], "{}").await;
        yard.offer(Offered::default());
        everybody_rests().await;
        let heard = client.heard_already();
        let changed =
            heard.lines().filter_map(|heard| heard.split("notifications/").nth(1)?.split('"').next());
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
async fn resources_that_are_subscribed_to() {
    let mut said = Vec::new();
    for carrier in CARRIERS {
        let yard = Yard::new();
        let mut client = Client::new(&yard, carrier, LEGACY[3], "{}").await;
        let mut other = Client::new(&yard, carrier, LEGACY[3], "{}").await;
        for uri in ["mem:one", "file:two", "mem:one"] {
            client.ask("resources/subscribe", &format!(r#""uri":"{uri}""#)).await;
        }
        yard.follows(&[("mem:one", 1), ("file:two", 1)]).await;
        let mut lines = Vec::new();
        for uri in ["mem:one", "mem:gone", "file:two"] {
            yard.update(uri);
        }
        lines.push(client.hear_all(2).await);
        client.ask("resources/unsubscribe", r#""uri":"mem:one""#).await;
        client.ask("resources/unsubscribe", r#""uri":"mem:one""#).await;
        yard.follows(&[("file:two", 1)]).await;
        yard.update("mem:one");
        yard.update("file:two");
        lines.push(client.hear().await);
        assert_eq!(other.heard_already(), "");
        drop(client);
        yard.follows(&[]).await;
        said.push(lines.join("\n"));
    }
    for said in &mut said {
        let mut lines: Vec<_> = said.lines().collect();
        lines.sort_unstable();
        *said = lines.join("\n");
    }
    assert!(said.iter().all(|other| *other == said[0]), "{said:#?}");
    assert_snapshot!(said[0], @r#"
    {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:two"}}
    {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:two"}}
    {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"mem:one"}}
    "#);
}

/// What a client wants to follow may not be there at the moment, or be somebody else's by now.
#[tokio::test]
async fn resources_that_come_back() {
    let yard = Yard::new();
    let mut client = Client::silent(&yard, Carrier::Pipe, LEGACY[3], "{}").await;
    client.ask("initialize", r#""protocolVersion":"2025-11-25","capabilities":{}"#).await;
    client.ask("resources/subscribe", r#""uri":"mem:one""#).await;
    yard.offer(Offered::default());
    client.notify("notifications/initialized", "").await;
    client.ask("ping", "").await;
    yard.offer(OFFERED);
    yard.follows(&[("mem:one", 1)]).await;
    yard.update("mem:one");
    let mut heard = client.hear().await;
    while heard.contains("list_changed") {
        heard = client.hear().await;
    }
    assert_snapshot!(heard, @r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"mem:one"}}"#);
}

/// The handlers have their time to answer before a resource is said not to be there.
#[tokio::test]
async fn resources_that_are_not_heard_of_yet() {
    for carrier in CARRIERS {
        let yard = Yard::with(Setup { settled: false, ..Setup::default() });
        let mut client = Client::new(&yard, carrier, LEGACY[3], "{}").await;
        let id = client.request("resources/subscribe", r#""uri":"mem:one""#).await;
        client.ask("ping", "").await;
        yard.offer(OFFERED);
        let mut heard = client.hear().await;
        while heard.contains("list_changed") {
            heard = client.hear().await;
        }
        assert_eq!(heard, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
        yard.follows(&[("mem:one", 1)]).await;
    }
}

/// Who says more than once that it is ready is told of each change once.
#[tokio::test]
async fn a_client_that_is_ready_again_and_again() {
    let yard = Yard::new();
    for carrier in [Carrier::Pipe, Carrier::Sse] {
        yard.offer(OFFERED);
        let mut client = Client::new(&yard, carrier, LEGACY[3], "{}").await;
        client.ask("resources/subscribe", r#""uri":"mem:one""#).await;
        for _ in 0..10 {
            client.notify("notifications/initialized", "").await;
        }
        client.ask("ping", "").await;
        yard.follows(&[("mem:one", 1)]).await;
        yard.offer(CHANGES[0]);
        assert!(client.hear().await.contains("tools/list_changed"));
        assert!(client.ask("ping", "").await.contains("result"));
        assert_eq!(client.heard_already(), "");
        drop(client);
        yard.follows(&[]).await;
    }
}

/// A second session on the same pipe hears what it follows, not what the first one did.
#[tokio::test]
async fn a_second_session_on_the_same_pipe() {
    let yard = Yard::new();
    let mut client = Client::piped(&yard, LEGACY[3], "{}").await;
    client.ask("resources/subscribe", r#""uri":"mem:one""#).await;
    yard.follows(&[("mem:one", 1)]).await;
    client.initialize().await;
    yard.follows(&[]).await;
    client.ask("resources/subscribe", r#""uri":"mem:one""#).await;
    yard.follows(&[("mem:one", 1)]).await;
}

/// Streams end when the frontend is to stop, so that it can.
#[tokio::test]
async fn the_end() {
    for carrier in [Carrier::Web, Carrier::Sse] {
        let yard = Yard::new();
        let mut client = Client::new(&yard, carrier, LEGACY[3], "{}").await;
        client.ask("resources/subscribe", r#""uri":"mem:one""#).await;
        yard.follows(&[("mem:one", 1)]).await;
        yard.stop();
        yard.follows(&[]).await;
        yard.drained().await;
    }
    // A pipe has an end of its own.
    let yard = Yard::new();
    let mut client = Client::piped(&yard, LEGACY[3], "{}").await;
    yard.stop();
    assert!(client.ask("ping", "").await.contains("result"));
}

/// What runs when the frontend is to stop is still answered.
#[tokio::test]
async fn what_runs_at_the_end() {
    let (go, gone) = tokio::sync::watch::channel(false);
    let yard = Yard::build(Setup::default(), move |_| {
        let mut gone = gone.clone();
        async move {
            gone.wait_for(|gone| *gone).await.unwrap();
            Ok(crate::script::text("done"))
        }
    });
    for carrier in CARRIERS {
        let mut client = Client::new(&yard, carrier, LEGACY[3], "{}").await;
        client.request("tools/call", r#""name":"echo""#).await;
        client.ask("ping", "").await;
        if carrier == Carrier::Sse {
            yard.stop();
        }
        go.send_replace(carrier == Carrier::Sse);
        if carrier == Carrier::Sse {
            assert!(client.hear().await.contains("done"));
        }
    }
}
