//! One client on standard input and output, which may use both eras.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use toolyard_core::CallerPeer;
use toolyard_mcp::server::duplex::{self, DuplexLimits};
use toolyard_mcp::server::{FrontendLimits, FrontendOptions, McpFrontend, OfferedFeatures, ServerInfo};
use toolyard_server::RunningGateway;
use toolyard_testing::json;
use toolyard_testing::line_pipe::LinePipe;
use toolyard_testing::upstream::{
    ReceivedRequest, ReplyScript, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra,
};
use toolyard_testing::wire_client::MODERN_META;

use crate::gateway::gateway;

/// A client at the other end of a pipe.
struct PipeClient {
    pipe: LinePipe,
    served: JoinHandle<io::Result<()>>,
    upstream: TestUpstream,
    _stopping: watch::Sender<bool>,
    _running: RunningGateway,
}

impl PipeClient {
    async fn start(tools: watch::Receiver<Vec<String>>, call: impl ReplyScript) -> Self {
        let upstream =
            TestUpstream::start(ScriptedUpstream { era: UpstreamEra::Modern, tools, call: Box::new(call) });
        let running = gateway(&[("h", upstream.address, "")], "").await;
        let (stopping, stopping_now) = watch::channel(false);
        let info = ServerInfo { name: "test".into(), version: "1".into(), ..ServerInfo::default() };
        let offers = OfferedFeatures { tools: true, ..OfferedFeatures::default() };
        let limits = FrontendLimits { max_queued_notices: 16, ..FrontendLimits::default() };
        let options = FrontendOptions { info, offers, limits, ..FrontendOptions::default() };
        let frontend = Arc::new(McpFrontend::new(running.gateway().clone(), options, stopping_now));
        let (pipe, input, output) = LinePipe::new(64 * 1024);
        let limits =
            DuplexLimits { max_line_bytes: 10_000, max_requests: 100, drain_time: Duration::from_secs(60) };
        let served = tokio::spawn(duplex::serve(frontend, input, output, limits, CallerPeer::Unknown));
        Self { pipe, served, upstream, _stopping: stopping, _running: running }
    }

    async fn with_tool(call: impl ReplyScript) -> Self {
        let (_, tools) = watch::channel(vec![TOOL.to_owned()]);
        Self::start(tools, call).await
    }

    async fn send_line(&mut self, line: &str) {
        self.pipe.send(line).await;
    }

    /// The next line; empty at the end.
    async fn next_line(&mut self) -> String {
        self.pipe.next().await.unwrap_or_default()
    }

    async fn ask(&mut self, line: &str) -> String {
        self.send_line(line).await;
        self.next_line().await
    }

    /// Closes the input of the gateway.
    async fn end(&mut self) {
        self.pipe.close_input().await;
    }
}

fn good(request: &ReceivedRequest) -> ScriptedReply {
    ScriptedReply::result(request, "{}")
}

fn legacy(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}}}}}"#)
}

fn modern(id: &str, method: &str, params: &str) -> String {
    let comma = if params.is_empty() { "" } else { "," };
    legacy(id, method, &format!("{params}{comma}\"_meta\":{{{MODERN_META}}}"))
}

const CANCELLED: &str = "notifications/cancelled";

fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{{params}}}}}"#)
}

#[tokio::test]
async fn both_eras_on_one_pipe() {
    let mut client = PipeClient::with_tool(good).await;
    let call = r#""name":"t","arguments":{}"#;
    let lines = [
        modern("1", "server/discover", ""),
        legacy("2", "initialize", r#""protocolVersion":"2025-06-18","capabilities":{}"#),
        modern("\"3\"", "tools/list", ""),
        legacy("4", "tools/list", ""),
        modern("5", "tools/call", call),
        legacy("6", "tools/call", call),
        legacy("7", "ping", ""),
        modern("8", "ping", ""),
        legacy("9", "server/discover", ""),
        modern("10", "tools/call", r#""name":"x""#),
        "oops".to_owned(),
        "[]".to_owned(),
        r#"{"jsonrpc":"2.0","id":11}"#.to_owned(),
    ];
    let mut messages = Vec::new();
    for line in &lines {
        messages.push(client.ask(line).await);
    }
    assert_snapshot!(messages.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":30000,"cacheScope":"public","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}}}}
    {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"test","version":"1"}}}
    {"jsonrpc":"2.0","id":"3","result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"public","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}}}}
    {"jsonrpc":"2.0","id":4,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}
    {"jsonrpc":"2.0","id":5,"result":{"resultType":"complete"}}
    {"jsonrpc":"2.0","id":6,"result":{}}
    {"jsonrpc":"2.0","id":7,"result":{}}
    {"jsonrpc":"2.0","id":8,"error":{"code":-32601,"message":"Method not found: ping"}}
    {"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"`params._meta[\"io.modelcontextprotocol/protocolVersion\"]` is missing or malformed"}}
    {"jsonrpc":"2.0","id":10,"error":{"code":-32602,"message":"Unknown tool: x","data":{"code":"tool_not_found","reason":"no tool of this name","retryable":false}}}
    {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: expected a value at byte 0"}}
    {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a message is an object"}}
    {"jsonrpc":"2.0","id":11,"error":{"code":-32600,"message":"Invalid request: none of `method`, `result` and `error`"}}
    "#);
}

#[tokio::test]
async fn many_requests_run_at_once() {
    let (arrived, all) = watch::channel(0);
    let together = move |request: &ReceivedRequest| {
        arrived.send_modify(|arrived| *arrived += 1);
        let mut all = all.clone();
        let reply = ScriptedReply::result(request, &request.params().get("arguments").text());
        reply.after(async move {
            all.wait_for(|arrived| *arrived == 50).await.unwrap();
        })
    };
    let mut client = PipeClient::with_tool(together).await;
    for number in 0..50 {
        let params = format!(r#""name":"t","arguments":{{"n":{number}}}"#);
        client.send_line(&legacy(&number.to_string(), "tools/call", &params)).await;
    }
    let mut answered = Vec::new();
    for _ in 0..50 {
        let message = json::read(&client.next_line().await);
        assert_eq!(message.get("id").text(), message.get("result").get("n").text());
        answered.push(message.get("id").text().parse::<u32>().unwrap());
    }
    answered.sort_unstable();
    assert!(answered.into_iter().eq(0..50));
}

#[tokio::test]
async fn cancelled_request_is_not_answered() {
    let mut client = PipeClient::with_tool(|_: &ReceivedRequest| ScriptedReply::never()).await;
    for (already, request) in [legacy, modern].into_iter().enumerate() {
        client.send_line(&request("\"a\"", "tools/call", r#""name":"t""#)).await;
        client.upstream.saw(|log| log.count("tools/call") > already, |_| ()).await;
        client.send_line(&notification(CANCELLED, r#""requestId":"a""#)).await;
        client.upstream.saw(|log| log.dropped.len() > already, |_| ()).await;
        assert_eq!(client.ask(&legacy("2", "ping", "")).await, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    }
    client.end().await;
    assert_eq!(client.next_line().await, "");
    client.served.await.unwrap().unwrap();
}

#[tokio::test]
async fn changes_are_sent_to_subscribers() {
    let (tools, offered) = watch::channel(vec![TOOL.to_owned()]);
    let mut client = PipeClient::start(offered, good).await;
    client.upstream.saw(|log| log.count("subscriptions/listen") > 0, |_| ()).await;
    let mut messages = Vec::new();
    let filter = r#""notifications":{"toolsListChanged":true,"promptsListChanged":true}"#;
    messages.push(client.ask(&modern("\"s\"", "subscriptions/listen", filter)).await);
    messages.push(client.ask(&modern("2", "subscriptions/listen", "")).await);
    // The response shows that the gateway has read the earlier messages.
    client.send_line(&notification("notifications/initialized", "")).await;
    client.ask(&legacy("3", "ping", "")).await;
    tools.send_replace(vec![TOOL.replace("\"t\"", "\"u\"")]);
    let mut notices = [client.next_line().await, client.next_line().await];
    notices.sort();
    messages.extend(notices);
    client.send_line(&notification(CANCELLED, r#""requestId":"s""#)).await;
    client.ask(&legacy("4", "ping", "")).await;
    tools.send_replace(Vec::new());
    messages.push(client.next_line().await);
    messages.push(client.ask(&legacy("5", "ping", "")).await);
    assert_snapshot!(messages.join("\n"), @r#"
    {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"},"notifications":{"toolsListChanged":true}}}
    {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2},"notifications":{}}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}
    {"jsonrpc":"2.0","id":5,"result":{}}
    "#);
}

#[tokio::test]
async fn running_requests_are_answered_after_the_input_ends() {
    let (release, released) = watch::channel(false);
    let waiting = move |request: &ReceivedRequest| {
        let mut released = released.clone();
        good(request).after(async move {
            released.wait_for(|released| *released).await.unwrap();
        })
    };
    let mut client = PipeClient::with_tool(waiting).await;
    client.send_line(&legacy("1", "tools/call", r#""name":"t""#)).await;
    client.upstream.saw(|log| log.count("tools/call") == 1, |_| ()).await;
    client.end().await;
    assert!(!client.served.is_finished());
    release.send_replace(true);
    assert_eq!(client.next_line().await, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert_eq!(client.next_line().await, "");
    client.served.await.unwrap().unwrap();
}

/// The sender of an oversized line gets an error, and all other requests continue.
#[tokio::test]
async fn oversized_line_is_skipped() {
    let (release, released) = watch::channel(false);
    let waiting = move |request: &ReceivedRequest| {
        let mut released = released.clone();
        good(request).after(async move {
            released.wait_for(|released| *released).await.unwrap();
        })
    };
    let mut client = PipeClient::with_tool(waiting).await;
    client.send_line(&legacy("1", "tools/call", r#""name":"t""#)).await;
    let mut messages = Vec::new();
    for line in ["x".repeat(10_001), legacy("2", "ping", &format!(r#""x":"{}""#, "x".repeat(200_000)))] {
        messages.push(client.ask(&line).await);
        messages.push(client.ask(&legacy("3", "ping", "")).await);
    }
    release.send_replace(true);
    messages.push(client.next_line().await);
    assert_snapshot!(messages.join("\n"), @r#"
    {"jsonrpc":"2.0","error":{"code":-32600,"message":"the message is larger than 10000 bytes"}}
    {"jsonrpc":"2.0","id":3,"result":{}}
    {"jsonrpc":"2.0","error":{"code":-32600,"message":"the message is larger than 10000 bytes"}}
    {"jsonrpc":"2.0","id":3,"result":{}}
    {"jsonrpc":"2.0","id":1,"result":{}}
    "#);
}
