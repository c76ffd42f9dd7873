//! What a client without a session is told of changes: `subscriptions/listen`
//! (2026-07-28, basic/patterns/subscriptions).

use insta::assert_snapshot;
use toolyard_mcp::server::Offers;

use crate::changes::CHANGES;
use crate::client::{Carrier, Client, LEGACY, MODERN};
use crate::script::OFFERED;
use crate::yard::{EVERYTHING, Offered, Setup, Yard, everybody_rests};

const CARRIERS: [Carrier; 2] = [Carrier::Pipe, Carrier::Web];

const ALL: &str = r#""toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["mem:one","file:two"]"#;

/// Listens; gives the acknowledgement.
async fn listen(client: &mut Client, filter: &str) -> String {
    client.ask("subscriptions/listen", &format!(r#""notifications":{{{filter}}}"#)).await
}

/// Everything that is said until the last of all changes has been told.
async fn told(yard: &Yard, client: &mut Client) -> Vec<String> {
    for offered in CHANGES {
        yard.offer(offered);
        // A change that nobody has seen yet is one with the next.
        everybody_rests().await;
    }
    for uri in ["mem:one", "mem:gone", "file:two"] {
        yard.update(uri);
    }
    everybody_rests().await;
    yard.stop();
    let mut told = Vec::new();
    loop {
        told.push(client.hear().await);
        if told.last().unwrap().contains(r#""result""#) {
            return told;
        }
    }
}

/// Each filter: what is granted, and which changes are told.
#[tokio::test]
async fn filters() {
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
        let yard = Yard::new();
        let mut client = Client::piped(&yard, MODERN, "{}").await;
        let granted = listen(&mut client, filter).await;
        lines.push(granted.split_once(r#""notifications":"#).unwrap().1.trim_end_matches('}').to_owned());
        let told = told(&yard, &mut client).await;
        let mut words: Vec<_> =
            told.iter().filter_map(|heard| heard.split("notifications/").nth(1)?.split('"').next()).collect();
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

/// Every message says which subscription it belongs to; the last one is the answer to the request.
#[tokio::test]
async fn messages() {
    let mut said = Vec::new();
    for carrier in CARRIERS {
        let yard = Yard::new();
        let mut client = Client::new(&yard, carrier, MODERN, "{}").await;
        let mut lines = vec![listen(&mut client, ALL).await];
        for (offered, messages) in CHANGES.into_iter().zip([1, 1, 1, 1, 2]) {
            yard.offer(offered);
            lines.push(client.hear_all(messages).await);
        }
        yard.follows(&[("mem:one", 1), ("file:two", 1)]).await;
        for uri in ["mem:one", "file:two"] {
            yard.update(uri);
            lines.push(client.hear().await);
        }
        yard.stop();
        lines.push(client.hear().await);
        yard.follows(&[]).await;
        if carrier == Carrier::Web {
            yard.drained().await;
        }
        said.push(lines.join("\n"));
    }
    assert_eq!(said[0], said[1]);
    assert_snapshot!(said[0], @r#"
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

/// Only what is offered is granted.
#[tokio::test]
async fn what_is_not_offered() {
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
        let mut client = Client::piped(&yard, MODERN, "{}").await;
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

/// Several at once on one pipe, each under the id of its request, until it is withdrawn.
#[tokio::test]
async fn several_subscriptions() {
    let yard = Yard::new();
    let mut client = Client::piped(&yard, MODERN, "{}").await;
    let mut lines = Vec::new();
    for id in ["1", r#""one""#, "1.0"] {
        let filter = r#""notifications":{"resourceSubscriptions":["mem:one"]}"#;
        let request = client.text(id, "subscriptions/listen", filter);
        client.say(&request).await;
        lines.push(client.hear().await);
    }
    yard.follows(&[("mem:one", 3)]).await;
    yard.update("mem:one");
    let mut told: Vec<_> = client.hear_all(3).await.lines().map(str::to_owned).collect();
    told.sort_unstable();
    lines.append(&mut told);
    client.notify("notifications/cancelled", r#""requestId":"one""#).await;
    client.notify("notifications/cancelled", r#""requestId":2"#).await;
    client.notify("notifications/cancelled", r#""requestId":1"#).await;
    yard.follows(&[("mem:one", 1)]).await;
    yard.update("mem:one");
    lines.push(client.hear().await);
    yard.stop();
    lines.push(client.hear().await);
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
    assert!(client.ask("tools/list", "").await.contains("result"), "nothing else is said");
}

/// On the web a subscription ends with its connection.
#[tokio::test]
async fn who_leaves() {
    let yard = Yard::new();
    for carrier in CARRIERS {
        let mut client = Client::new(&yard, carrier, MODERN, "{}").await;
        listen(&mut client, ALL).await;
        yard.follows(&[("mem:one", 1), ("file:two", 1)]).await;
        match carrier {
            Carrier::Web => client.hang_up(1),
            _ => drop(client.end().await),
        }
        yard.follows(&[]).await;
    }
}

#[tokio::test]
async fn too_many_subscriptions() {
    let yard = Yard::new();
    let mut client = Client::piped(&yard, MODERN, "{}").await;
    for _ in 0..100 {
        assert!(listen(&mut client, "").await.contains("acknowledged"));
    }
    assert_snapshot!(listen(&mut client, "").await, @r#"{"jsonrpc":"2.0","id":101,"error":{"code":-32603,"message":"Too many subscriptions at once","data":{"code":"overloaded","reason":"Too many subscriptions at once","retryable":true}}}"#);
    client.withdraw(7).await;
    assert!(client.ask("tools/list", "").await.contains("result"));
    assert!(listen(&mut client, "").await.contains("acknowledged"));
}

/// Who listens when the frontend stops is told that this is the end.
#[tokio::test]
async fn at_the_end() {
    let yard = Yard::new();
    let mut client = Client::piped(&yard, MODERN, "{}").await;
    yard.stop();
    let lines = [listen(&mut client, ALL).await, client.hear().await];
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["file:two","mem:one"]}}}
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
    "#);
}

/// The handlers have their time to answer before a resource is said not to be there.
#[tokio::test]
async fn resources_that_are_not_heard_of_yet() {
    for carrier in CARRIERS {
        let yard = Yard::with(Setup { settled: false, ..Setup::default() });
        let mut client = Client::new(&yard, carrier, MODERN, "{}").await;
        client.request("subscriptions/listen", &format!(r#""notifications":{{{ALL}}}"#)).await;
        if carrier == Carrier::Pipe {
            client.ask("server/discover", "").await;
        }
        yard.offer(OFFERED);
        let heard = client.hear().await;
        assert!(heard.contains(r#""resourceSubscriptions":["file:two","mem:one"]"#), "{heard}");
        yard.follows(&[("mem:one", 1), ("file:two", 1)]).await;
        yard.offer(Offered { prompts: &[], ..OFFERED });
        assert!(
            client.hear().await.contains("prompts/list_changed"),
            "what was there from the beginning is no change"
        );
    }
}

/// A registry that nobody changes any more is as good as any.
#[tokio::test]
async fn a_yard_that_never_changes() {
    let mut yard = Yard::new();
    yard.freeze();
    for (revision, request) in [(LEGACY[3], r#""uri":"mem:one""#), (MODERN, "")] {
        let mut client = Client::piped(&yard, revision, "{}").await;
        match revision {
            MODERN => drop(listen(&mut client, ALL).await),
            _ => drop(client.ask("resources/subscribe", request).await),
        }
        yard.update("mem:one");
        assert!(client.hear().await.contains("resources/updated"));
    }
}

#[tokio::test]
async fn legacy_clients() {
    let yard = Yard::new();
    let mut client = Client::piped(&yard, LEGACY[3], "{}").await;
    assert_snapshot!(listen(&mut client, ALL).await, @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: subscriptions/listen"}}"#);
}
