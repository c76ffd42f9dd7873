//! Resources whose URI says nothing of their server: several have it, or none offers it.

use insta::assert_snapshot;

use crate::client::{Client, MODERN_META, Speech};
use crate::gateway;
use crate::stocked::{ERAS, Stocked, ask, clients, listed};
use crate::upstream::{Era, Received, Reply, Upstream};

/// A server that says what it was asked for, as what it read.
fn server(era: Era, name: &'static str) -> Stocked {
    Stocked::new(era, move |request: &Received| match &*request.method() {
        "completion/complete" => {
            let reference = request.params().get("ref").text();
            let completion =
                format!(r#"{{"values":[{}]}}"#, serde_json::json!(format!("{name} {reference}")));
            Reply::result(request, &format!(r#"{{"completion":{completion}}}"#))
        }
        "resources/read" => {
            let uri = request.params().get("uri").text();
            let contents = format!(r#"{{"uri":{uri},"text":"{name}","vendor":1.10}},{{"text":"?"}},7"#);
            let rest = r#""resultType":"complete","ttlMs":0,"cacheScope":"public""#;
            Reply::result(request, &format!(r#"{{"contents":[{contents}],{rest}}}"#))
        }
        _ => Reply::result(request, "{}"),
    })
}

/// What two servers offer by the same URIs has two URIs, and each is read from its own.
#[tokio::test]
async fn uris_that_two_servers_have() {
    let mut said = Vec::new();
    for era in ERAS {
        let (one, two) = (Upstream::start(server(era, "1")), Upstream::start(server(era, "2")));
        let running = gateway(&[("one", one.address, ""), ("two", two.address, "")], "").await;
        let mut lines = Vec::new();
        let mut client = Client::new(running.address(), Speech::Bare).await;
        for list in [("resources/list", "resources"), ("resources/templates/list", "resourceTemplates")] {
            lines.push(listed(&mut client, list).await);
        }
        for uri in
            ["res://one", "two+res://one", "doc://7/x", "two+doc://7/x", "one+res://one", "two+x:y", "x:y"]
        {
            lines.push(ask(&mut client, "resources/read", &format!(r#""uri":"{uri}","x":1.10"#)).await.body);
        }
        for uri in ["doc://{id}/x", "two+doc://{id}/x", "two+doc://7/x"] {
            let params = format!(r#""ref":{{"type":"ref/resource","uri":"{uri}","x":1}},"argument":{{}}"#);
            lines.push(ask(&mut client, "completion/complete", &params).await.body);
        }
        said.push(
            lines.join("\n").replace(r#","resultType":"complete","ttlMs":0,"cacheScope":"public""#, ""),
        );
    }
    assert_eq!(said[0], said[1]);
    assert_snapshot!(said[0], @r#"
    [{"uri":"res://one","name":"One","size":48e0,"vendor":{"b":1,"a":[]}},{"uri":"two+res://one","name":"One","size":48e0,"vendor":{"b":1,"a":[]}}]
    [{"uriTemplate":"doc://{id}/x","name":"Documents","vendor":1.10},{"uriTemplate":"two+doc://{id}/x","name":"Documents","vendor":1.10}]
    {"jsonrpc":"2.0","id":7,"result":{"contents":[{"uri":"res://one","text":"1","vendor":1.10},{"text":"?"},7]}}
    {"jsonrpc":"2.0","id":7,"result":{"contents":[{"uri":"two+res://one","text":"2","vendor":1.10},{"text":"?"},7]}}
    {"jsonrpc":"2.0","id":7,"result":{"contents":[{"uri":"doc://7/x","text":"1","vendor":1.10},{"text":"?"},7]}}
    {"jsonrpc":"2.0","id":7,"result":{"contents":[{"uri":"two+doc://7/x","text":"2","vendor":1.10},{"text":"?"},7]}}
    {"jsonrpc":"2.0","id":7,"result":{"contents":[{"uri":"one+res://one","text":"1","vendor":1.10},{"text":"?"},7]}}
    {"jsonrpc":"2.0","id":7,"result":{"contents":[{"uri":"two+x:y","text":"2","vendor":1.10},{"text":"?"},7]}}
    {"jsonrpc":"2.0","id":7,"error":{"code":-32002,"message":"Resource not found","data":{"uri":"x:y","code":"resource_not_found","retryable":false}}}
    {"jsonrpc":"2.0","id":7,"result":{"completion":{"values":["1 {\"type\":\"ref/resource\",\"uri\":\"doc://{id}/x\",\"x\":1}"]}}}
    {"jsonrpc":"2.0","id":7,"result":{"completion":{"values":["2 {\"type\":\"ref/resource\",\"uri\":\"doc://{id}/x\",\"x\":1}"]}}}
    {"jsonrpc":"2.0","id":7,"result":{"completion":{"values":["2 {\"type\":\"ref/resource\",\"uri\":\"doc://7/x\",\"x\":1}"]}}}
    "#);
}

/// Who follows one of them hears of that one, by the URI that it knows.
#[tokio::test]
async fn changes_of_one_of_two() {
    for era in ERAS {
        let (first, second) = (server(era, "1"), server(era, "2"));
        let (one, two) = (Upstream::start(first.clone()), Upstream::start(second.clone()));
        let running = gateway(&[("one", one.address, ""), ("two", two.address, "")], "").await;
        let filter = r#""notifications":{"resourceSubscriptions":["two+res://one"]}"#;
        let mut stream = Client::new(running.address(), Speech::Modern)
            .await
            .open("subscriptions/listen", &format!(r#"{{{filter},"_meta":{{{MODERN_META}}}}}"#))
            .await;
        assert!(stream.message().await.unwrap().contains("acknowledged"));
        // It may have changed before its server was asked to tell of it.
        assert!(stream.message().await.unwrap().contains(r#""uri":"two+res://one""#));
        first.say("notifications/resources/updated", r#"{"uri":"res://one","of":1}"#);
        second.say("notifications/resources/updated", r#"{"uri":"res://one/part","of":2.0}"#);
        let heard = stream.message().await.unwrap();
        assert!(heard.contains(r#""uri":"two+res://one/part","of":2.0"#), "{heard}");
    }
}

/// A server may have more than it lists: it is asked where nobody else can be meant.
#[tokio::test]
async fn what_nobody_lists() {
    let capable = |capabilities| server(Era::Legacy, "1").with_capabilities(capabilities);
    let mut lines = Vec::new();
    for (name, capabilities) in [("resources", r#"{"resources":{}}"#), ("none", r#"{"tools":{}}"#)] {
        let upstream = Upstream::start(capable(capabilities));
        let running = gateway(&[("h", upstream.address, "")], "").await;
        for client in &mut clients(&running).await[1..] {
            let read = ask(client, "resources/read", r#""uri":"res://other""#).await.body;
            lines.push(format!("{name}, {:?}: {read}", client.speech));
        }
    }
    assert_snapshot!(lines.join("\n"), @r#"
    resources, Bare: {"jsonrpc":"2.0","id":7,"result":{"contents":[{"uri":"res://other","text":"1","vendor":1.10},{"text":"?"},7],"resultType":"complete","ttlMs":0,"cacheScope":"public"}}
    resources, Modern: {"jsonrpc":"2.0","id":7,"result":{"contents":[{"uri":"res://other","text":"1","vendor":1.10},{"text":"?"},7],"resultType":"complete","ttlMs":0,"cacheScope":"public"}}
    none, Bare: {"jsonrpc":"2.0","id":7,"error":{"code":-32002,"message":"Resource not found","data":{"uri":"res://other","code":"resource_not_found","retryable":false}}}
    none, Modern: {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Resource not found","data":{"uri":"res://other","code":"resource_not_found","retryable":false}}}
    "#);
}
