//! Tool lists of upstreams: their forms, and their changes when servers start and stop.

use insta::assert_snapshot;
use tokio::sync::watch;
use toolyard_testing::json::JsonNode;
use toolyard_testing::upstream::{
    ReceivedRequest, ReservedAddress, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra, but,
};
use toolyard_testing::wire_client::{ClientMode, WireClient};

use crate::gateway::gateway;

/// The reply of a server to `tools/list`.
type ListReply = fn(&ReceivedRequest) -> ScriptedReply;

fn never_called(_: &ReceivedRequest) -> ScriptedReply {
    ScriptedReply::never()
}

/// The names of all tools, as a client gets them.
async fn names(running: &toolyard_server::RunningGateway) -> String {
    let tools = WireClient::new(running.address(), ClientMode::Bare).await.tools().await;
    tools.iter().map(|tool| tool.get("name").plain()).collect::<Vec<_>>().join(" ")
}

/// The tools of a gateway in front of a server with this list and of a well-behaved one.
async fn advertised_names(era: UpstreamEra, listing: ListReply) -> String {
    let server = ScriptedUpstream::new(era, &[], never_called);
    let odd = TestUpstream::start(but(server, move |request| {
        (request.method() == "tools/list").then(|| listing(request))
    }));
    let good = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], never_called));
    let limits = "limits: {toolsPerHandler: 5, responseBytes: 64KiB}";
    let running = gateway(&[("odd", odd.address, ""), ("good", good.address, "")], limits).await;
    names(&running).await
}

fn tools(request: &ReceivedRequest, tools: &str) -> ScriptedReply {
    ScriptedReply::result(request, &format!(r#"{{"tools":[{tools}]}}"#))
}

/// The page after the cursor in the request; cursors are whole numbers as strings.
fn page(
    request: &ReceivedRequest,
    tool: impl Fn(usize) -> String,
    next: impl Fn(usize) -> Option<usize>,
) -> ScriptedReply {
    let params = request.message().find("params").cloned();
    let cursor = params.as_ref().and_then(|params| params.find("cursor")).map(JsonNode::plain);
    let number = cursor.map_or(0, |cursor| cursor.parse().unwrap());
    let next = next(number).map(|next| format!(r#","nextCursor":"{next}""#)).unwrap_or_default();
    ScriptedReply::result(request, &format!(r#"{{"tools":[{}]{next}}}"#, tool(number)))
}

fn tool_definition(number: usize) -> String {
    format!(r#"{{"name":"p{number}"}}"#)
}

#[tokio::test]
async fn lists() {
    let cases: &[(&str, ListReply)] = &[
        ("three pages", |r| page(r, tool_definition, |number| (number < 2).then_some(number + 1))),
        ("the same cursor again and again", |r| page(r, tool_definition, |_| Some(1))),
        ("always one more page", |r| page(r, tool_definition, |number| Some(number + 1))),
        ("always one more page without a tool", |r| page(r, |_| String::new(), |number| Some(number + 1))),
        ("two pages in a circle", |r| page(r, tool_definition, |number| Some((number + 1) % 2))),
        ("a cursor of null", |r| ScriptedReply::result(r, r#"{"tools":[{"name":"a"}],"nextCursor":null}"#)),
        ("more tools than allowed", |r| tools(r, &(0..9).map(tool_definition).collect::<Vec<_>>().join(","))),
        ("a name twice", |r| tools(r, r#"{"name":"a"},{"name":"b"},{"name":"a","x":1}"#)),
        ("the name of another server's tool", |r| tools(r, r#"{"name":"t"}"#)),
        ("names that models do not accept", |r| tools(r, r#"{"name":"a.b"},{"name":"ä"},{"name":"a b"}"#)),
        ("entries that are not tools", |r| {
            tools(r, r#"{},"a",null,1,[],{"name":1},{"name":""},{"name":"a"}"#)
        }),
        ("a member twice", |r| tools(r, r#"{"name":"a","name":"b"},{"name":"c"}"#)),
        ("invalid schemas", |r| tools(r, r#"{"name":"a"},{"name":"b","inputSchema":7}"#)),
        ("illegal headers", |r| tools(r, ILLEGAL_HEADERS)),
        ("a list that is an object", |r| ScriptedReply::result(r, r#"{"tools":{}}"#)),
        ("no list", |r| ScriptedReply::result(r, "{}")),
        ("garbage", |_| ScriptedReply::json("{")),
        ("an oversized message", |r| {
            tools(r, &format!("{{\"name\":\"a\",\"x\":\"{}\"}}", "x".repeat(70_000)))
        }),
        ("500", |_| ScriptedReply::http(500, "", "")),
        ("a closed connection", |_| ScriptedReply::raw("")),
    ];
    let mut lines = Vec::new();
    for (name, listing) in cases {
        lines.push(format!("{name}: {}", advertised_names(UpstreamEra::Modern, *listing).await));
    }
    let legacy = advertised_names(UpstreamEra::Legacy, |r| tools(r, ILLEGAL_HEADERS)).await;
    lines.push(format!("illegal headers, which mean nothing to a legacy server: {legacy}"));
    assert_snapshot!(lines.join("\n"), @"
    three pages: p0 p1 p2 t
    the same cursor again and again: p0 p1 t
    always one more page: p0 p1 p2 p3 p4 t
    always one more page without a tool: t
    two pages in a circle: p0 p1 t
    a cursor of null: a t
    more tools than allowed: p0 p1 p2 p3 p4 t
    a name twice: a b t
    the name of another server's tool: t good_t
    names that models do not accept: odd_a_b odd__ odd_a_b_5ed6cad5 t
    entries that are not tools: a t
    a member twice: c t
    invalid schemas: a t
    illegal headers: legal t
    a list that is an object: t
    no list: t
    garbage: t
    an oversized message: t
    500: t
    a closed connection: t
    illegal headers, which mean nothing to a legacy server: number twice items legal t
    ");
}

/// Tools whose annotations break the rules, and one that keeps them.
const ILLEGAL_HEADERS: &str = r#"
    {"name":"number","inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}},
    {"name":"twice","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}},
    {"name":"items","inputSchema":{"properties":{"a":{"items":{"type":"string","x-mcp-header":"A"}}}}},
    {"name":"legal","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}"#;

#[tokio::test]
async fn first_list_does_not_wait_for_silent_servers() {
    let dead = ReservedAddress::new();
    let silent = TestUpstream::start(never_called);
    let good = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], never_called));
    let handlers = [("dead", dead.address(), ""), ("silent", silent.address, ""), ("good", good.address, "")];
    let running = gateway(&handlers, "timeouts: {firstList: 300ms}").await;
    assert_eq!(names(&running).await, "t");
}

/// Clients of both eras get a notification when a server starts after they subscribed.
#[tokio::test]
async fn server_that_starts_later_is_announced() {
    let reserved = ReservedAddress::new();
    let running = gateway(&[("late", reserved.address(), "")], "").await;
    let legacy = WireClient::in_session(running.address()).await;
    let mut legacy = legacy.changes().await;
    let mut modern = WireClient::new(running.address(), ClientMode::Modern).await.changes().await;
    assert_eq!(names(&running).await, "");
    let mut messages = vec![modern.message().await.unwrap()];
    let late = reserved.start(ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], |r: &ReceivedRequest| {
        ScriptedReply::result(r, "{}")
    }));
    messages.push(modern.message().await.unwrap());
    messages.push(legacy.message().await.unwrap());
    assert_snapshot!(messages.join("\n"), @r#"
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
    // On shutdown, the gateway ends open streams in the way of their era.
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
async fn restarted_server_is_used_again() {
    for eras in [
        [UpstreamEra::Modern, UpstreamEra::Modern],
        [UpstreamEra::Legacy, UpstreamEra::Modern],
        [UpstreamEra::Modern, UpstreamEra::Legacy],
    ] {
        check_restart(eras).await;
    }
}

/// Checks that a server is used again after a restart, possibly in another era.
async fn check_restart([era, era_then]: [UpstreamEra; 2]) {
    let server = |era| {
        ScriptedUpstream::new(era, &[TOOL], |r: &ReceivedRequest| ScriptedReply::result(r, r#"{"good":1}"#))
    };
    let upstream = TestUpstream::start(server(era));
    let address = upstream.address;
    let running = gateway(&[("h", address, "")], "").await;
    let mut registry = running.gateway().watch();
    let mut client = WireClient::new(running.address(), ClientMode::Bare).await;
    let good = r#"{"jsonrpc":"2.0","id":7,"result":{"good":1}}"#;
    assert_eq!(client.call("t", "{}").await.body, good);
    drop(upstream);
    // The first call may find the connection broken rather than refused. The gateway then advertises the tool no
    // longer, and a call of it fails as unavailable.
    while !registry.borrow_and_update().entries(toolyard_core::registry::EntryKind::Tools).is_empty() {
        let answer = client.call("t", "{}").await.body;
        assert!(answer.contains(r#""code":"unavailable""#), "{answer}");
    }
    let answer = client.call("t", "{}").await.body;
    assert!(answer.contains(r#""code":"unavailable""#), "{answer}");
    let _upstream = ReservedAddress::at(address).start(server(era_then));
    registry
        .wait_for(|registry| !registry.entries(toolyard_core::registry::EntryKind::Tools).is_empty())
        .await
        .unwrap();
    assert_eq!(client.call("t", "{}").await.body, good);
}

#[tokio::test]
async fn each_change_is_announced_once() {
    for era in [UpstreamEra::Legacy, UpstreamEra::Modern] {
        let (tools, offered) = watch::channel(vec![TOOL.to_owned()]);
        let upstream =
            TestUpstream::start(ScriptedUpstream { era, tools: offered, call: Box::new(never_called) });
        let running = gateway(&[("h", upstream.address, "")], "").await;
        let stream = if era == UpstreamEra::Legacy { "GET" } else { "subscriptions/listen" };
        upstream.saw(|log| log.count(stream) > 0, |_| ()).await;
        let mut modern = WireClient::new(running.address(), ClientMode::Modern).await.changes().await;
        modern.message().await.unwrap();
        // An equal list is no change.
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
