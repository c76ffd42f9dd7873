//! What servers list, however they do it, and what becomes of the list when they come and go.

use insta::assert_snapshot;
use tokio::sync::watch;

use crate::client::{Client, Speech};
use crate::gateway;
use crate::json::Node;
use crate::upstream::{Era, Received, Reply, Reserved, Server, TOOL, Upstream, but};

/// What a server says to `tools/list`.
type Listing = fn(&Received) -> Reply;

fn never_called(_: &Received) -> Reply {
    Reply::never()
}

/// The names of all tools, by way of a client.
async fn names(running: &toolyard_server::Running) -> String {
    let tools = Client::new(running.address(), Speech::Bare).await.tools().await;
    tools.iter().map(|tool| tool.get("name").plain()).collect::<Vec<_>>().join(" ")
}

/// The list of a gateway in front of a server that lists like this, and of one that does it right.
async fn listed(era: Era, listing: Listing) -> String {
    let server = Server::new(era, &[], never_called);
    let odd = Upstream::start(but(server, move |request| {
        (request.method() == "tools/list").then(|| listing(request))
    }));
    let good = Upstream::start(Server::new(Era::Modern, &[TOOL], never_called));
    let limits = "limits: {toolsPerHandler: 5, responseBytes: 64KiB}";
    let running = gateway(&[("odd", odd.address, ""), ("good", good.address, "")], limits).await;
    names(&running).await
}

fn tools(request: &Received, tools: &str) -> Reply {
    Reply::result(request, &format!(r#"{{"tools":[{tools}]}}"#))
}

/// The page behind the cursor that the request names; cursors are whole numbers as strings.
fn page(request: &Received, tool: impl Fn(usize) -> String, next: impl Fn(usize) -> Option<usize>) -> Reply {
    let params = request.message().find("params").cloned();
    let cursor = params.as_ref().and_then(|params| params.find("cursor")).map(Node::plain);
    let number = cursor.map_or(0, |cursor| cursor.parse().unwrap());
    let next = next(number).map(|next| format!(r#","nextCursor":"{next}""#)).unwrap_or_default();
    Reply::result(request, &format!(r#"{{"tools":[{}]{next}}}"#, tool(number)))
}

fn named(number: usize) -> String {
    format!(r#"{{"name":"p{number}"}}"#)
}

#[tokio::test]
async fn lists() {
    let cases: &[(&str, Listing)] = &[
        ("three pages", |r| page(r, named, |number| (number < 2).then_some(number + 1))),
        ("the same cursor again and again", |r| page(r, named, |_| Some(1))),
        ("always one more page", |r| page(r, named, |number| Some(number + 1))),
        ("always one more page without a tool", |r| page(r, |_| String::new(), |number| Some(number + 1))),
        ("two pages in a circle", |r| page(r, named, |number| Some((number + 1) % 2))),
        ("a cursor of null", |r| Reply::result(r, r#"{"tools":[{"name":"a"}],"nextCursor":null}"#)),
        ("more than are allowed", |r| tools(r, &(0..9).map(named).collect::<Vec<_>>().join(","))),
        ("a name twice", |r| tools(r, r#"{"name":"a"},{"name":"b"},{"name":"a","x":1}"#)),
        ("the name of another server's tool", |r| tools(r, r#"{"name":"t"}"#)),
        ("names that models do not take", |r| tools(r, r#"{"name":"a.b"},{"name":"ä"},{"name":"a b"}"#)),
        ("what is no tool", |r| tools(r, r#"{},"a",null,1,[],{"name":1},{"name":""},{"name":"a"}"#)),
        ("a member twice", |r| tools(r, r#"{"name":"a","name":"b"},{"name":"c"}"#)),
        ("schemas that are none", |r| tools(r, r#"{"name":"a"},{"name":"b","inputSchema":7}"#)),
        ("illegal headers", |r| tools(r, ILLEGAL_HEADERS)),
        ("a list that is an object", |r| Reply::result(r, r#"{"tools":{}}"#)),
        ("no list", |r| Reply::result(r, "{}")),
        ("garbage", |_| Reply::json("{")),
        ("more than a message may have", |r| {
            tools(r, &format!("{{\"name\":\"a\",\"x\":\"{}\"}}", "x".repeat(70_000)))
        }),
        ("500", |_| Reply::http(500, "", "")),
        ("an end", |_| Reply::raw("")),
    ];
    let mut lines = Vec::new();
    for (name, listing) in cases {
        lines.push(format!("{name}: {}", listed(Era::Modern, *listing).await));
    }
    let legacy = listed(Era::Legacy, |r| tools(r, ILLEGAL_HEADERS)).await;
    lines.push(format!("illegal headers, which mean nothing to a legacy server: {legacy}"));
    assert_snapshot!(lines.join("\n"), @"
    three pages: p0 p1 p2 t
    the same cursor again and again: p0 p1 t
    always one more page: p0 p1 p2 p3 p4 t
    always one more page without a tool: t
    two pages in a circle: p0 p1 t
    a cursor of null: a t
    more than are allowed: p0 p1 p2 p3 p4 t
    a name twice: a b t
    the name of another server's tool: t good_t
    names that models do not take: odd_a_b odd__ odd_a_b_5ed6cad5 t
    what is no tool: a t
    a member twice: c t
    schemas that are none: a b t
    illegal headers: legal t
    a list that is an object: t
    no list: t
    garbage: t
    more than a message may have: t
    500: t
    an end: t
    illegal headers, which mean nothing to a legacy server: number twice items legal t
    ");
}

/// Tools whose annotations break the rules, in front of one that keeps them.
const ILLEGAL_HEADERS: &str = r#"
    {"name":"number","inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}},
    {"name":"twice","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}},
    {"name":"items","inputSchema":{"properties":{"a":{"items":{"type":"string","x-mcp-header":"A"}}}}},
    {"name":"legal","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}"#;

#[tokio::test]
async fn the_list_does_not_wait_for_who_does_not_answer() {
    let dead = Reserved::new();
    let silent = Upstream::start(never_called);
    let good = Upstream::start(Server::new(Era::Modern, &[TOOL], never_called));
    let handlers = [("dead", dead.address(), ""), ("silent", silent.address, ""), ("good", good.address, "")];
    let running = gateway(&handlers, "timeouts: {firstList: 300ms}").await;
    assert_eq!(names(&running).await, "t");
}

/// What clients of both eras hear when a server comes up after them.
#[tokio::test]
async fn a_server_that_comes_later() {
    let reserved = Reserved::new();
    let running = gateway(&[("late", reserved.address(), "")], "").await;
    let legacy = Client::in_session(running.address()).await;
    let mut legacy = legacy.changes().await;
    let mut modern = Client::new(running.address(), Speech::Modern).await.changes().await;
    assert_eq!(names(&running).await, "");
    let mut heard = vec![modern.message().await.unwrap()];
    let late = reserved.start(Server::new(Era::Modern, &[TOOL], |r: &Received| Reply::result(r, "{}")));
    heard.push(modern.message().await.unwrap());
    heard.push(legacy.message().await.unwrap());
    assert_snapshot!(heard.join("\n"), @r#"
    {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7},"notifications":{"toolsListChanged":true}}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}
    "#);
    assert_snapshot!(legacy.head.text(), @"
    HTTP/1.1 200 OK
    content-type: text/event-stream
    cache-control: no-cache
    x-accel-buffering: no
    transfer-encoding: chunked
    ");
    assert_eq!(names(&running).await, "t");
    // The gateway ends the streams that it holds open when it stops, each in the way of its era.
    drop(late);
    tokio::join!(running.stop(), async {
        let mut last = None;
        while let Some(message) = modern.message().await {
            last = Some(message);
        }
        assert_snapshot!(last.unwrap(), @r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":7}}}"#);
    });
}

#[tokio::test]
async fn a_server_that_dies_and_comes_back() {
    for eras in [[Era::Modern, Era::Modern], [Era::Legacy, Era::Modern], [Era::Modern, Era::Legacy]] {
        check_comes_back(eras).await;
    }
}

/// It may be of another era then.
async fn check_comes_back([era, era_then]: [Era; 2]) {
    let server = |era| Server::new(era, &[TOOL], |r: &Received| Reply::result(r, r#"{"good":1}"#));
    let upstream = Upstream::start(server(era));
    let address = upstream.address;
    let running = gateway(&[("h", address, "")], "").await;
    let mut registry = running.gateway().watch();
    let mut client = Client::new(running.address(), Speech::Bare).await;
    let good = r#"{"jsonrpc":"2.0","id":7,"result":{"good":1}}"#;
    assert_eq!(client.call("t", "{}").await.body, good);
    drop(upstream);
    // The first caller may find the connection broken rather than refused; then the next one knows. The
    // tool is not listed any more, but whoever calls it is told that it is only unavailable.
    while !registry.borrow_and_update().entries(toolyard_core::registry::Kind::Tools).is_empty() {
        let said = client.call("t", "{}").await.body;
        assert!(said.contains(r#""code":"unavailable""#), "{said}");
    }
    let said = client.call("t", "{}").await.body;
    assert!(said.contains(r#""code":"unavailable""#), "{said}");
    let _upstream = Reserved::at(address).start(server(era_then));
    registry
        .wait_for(|registry| !registry.entries(toolyard_core::registry::Kind::Tools).is_empty())
        .await
        .unwrap();
    assert_eq!(client.call("t", "{}").await.body, good);
}

#[tokio::test]
async fn a_change_is_announced_once_and_only_if_there_is_one() {
    for era in [Era::Legacy, Era::Modern] {
        let (tools, offered) = watch::channel(vec![TOOL.to_owned()]);
        let upstream = Upstream::start(Server { era, tools: offered, call: Box::new(never_called) });
        let running = gateway(&[("h", upstream.address, "")], "").await;
        let stream = if era == Era::Legacy { "GET" } else { "subscriptions/listen" };
        upstream.saw(|log| log.count(stream) > 0, |_| ()).await;
        let mut modern = Client::new(running.address(), Speech::Modern).await.changes().await;
        modern.message().await.unwrap();
        // A list that is the same again is no change.
        let before = upstream.now(|log| log.count("tools/list"));
        tools.send_replace(vec![TOOL.to_owned()]);
        upstream.saw(|log| log.count("tools/list") > before, |_| ()).await;
        tools.send_replace(vec![TOOL.replace("\"t\"", "\"u\"")]);
        modern.message().await.unwrap();
        assert_eq!(names(&running).await, "u");
        running.stop().await;
        let rest = modern.message().await.unwrap();
        assert!(rest.contains("\"result\""), "after one change there is only the end: {rest}");
    }
}
