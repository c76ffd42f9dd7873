//! Values that are nested deeply, through the built binary: up to `limits.jsonDepth` they pass, and beyond it an item of
//! a list, or a call, fails alone.

use serde_json::{Value, json};
use toolyard_testing::http::HttpResponse;
use toolyard_testing::manifest::http_handler;
use toolyard_testing::upstream::{
    BackgroundUpstream, ReceivedRequest, ScriptedReply, ScriptedUpstream, UpstreamEra,
};

use crate::support::gateway::TestGateway;

const LIMIT: &str = "nested more than 600 levels deep, the limit of `limits.jsonDepth`";

fn nested(depth: usize) -> String {
    "[".repeat(depth) + &"]".repeat(depth)
}

/// A tool whose input schema has this depth, which is even.
fn tool(name: &str, depth: usize) -> String {
    let levels = depth / 2;
    let schema = r#"{"items":[true,"#.repeat(levels) + "true" + &"]}".repeat(levels);
    format!(r#"{{"name":"{name}","inputSchema":{schema}}}"#)
}

/// A schema of arguments that are nested in themselves.
const TREE: &str = r##"{"name":"tree","inputSchema":{"type":"object","properties":{"a":{"$ref":"#"}},"additionalProperties":false}}"##;

fn serve(era: UpstreamEra) -> (TestGateway, BackgroundUpstream) {
    let answer = |request: &ReceivedRequest| {
        let message = request.message();
        let asked = message.find("params").and_then(|params| params.find("arguments"));
        let depth = asked.and_then(|arguments| arguments.find("depth")).map(|depth| depth.plain());
        let depth = depth.and_then(|depth| depth.parse().ok()).unwrap_or(1);
        let rest = r#""content":[],"resultType":"complete""#;
        ScriptedReply::result(
            request,
            &format!(r#"{{"structuredContent":{{"a":{}}},{rest}}}"#, nested(depth)),
        )
    };
    let tools =
        [tool("shallow", 2), tool("deep", 600), tool("deeper", 602), tool("deepest", 200_000), TREE.into()];
    let tools: Vec<_> = tools.iter().map(String::as_str).collect();
    let upstream = BackgroundUpstream::start(ScriptedUpstream::new(era, &tools, answer));
    let handler = http_handler("there", &upstream.url("/mcp"));
    let gateway = TestGateway::with_settings(&[handler], json!({"limits": {"jsonDepth": 600}}));
    (gateway, upstream)
}

fn call(gateway: &TestGateway, tool: &str, arguments: &str) -> HttpResponse {
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    );
    let headers = [("Content-Type", "application/json")];
    toolyard_testing::http::send(gateway.address, "POST /mcp", &headers, &text)
}

#[test]
fn deep_tool_is_left_out_alone() {
    for era in [UpstreamEra::Legacy, UpstreamEra::Modern] {
        let (gateway, _upstream) = serve(era);
        let listed = call_list(&gateway);
        assert!(
            ["shallow", "deep", "tree"].iter().all(|name| listed.contains(&format!("\"name\":\"{name}\"")))
        );
        assert!(!listed.contains("deeper") && !listed.contains("deepest"));
        let status: Value = serde_json::from_str(&gateway.get("/api/v1/status").body).unwrap();
        let left_out = |name| json!({"kind": "tool", "name": name, "reason": LIMIT});
        assert_eq!(status["handlers"][0]["leftOut"], json!([left_out("deeper"), left_out("deepest")]));
        assert_eq!(status["handlers"][0]["phase"], "Ready");
        let log = gateway.process.stderr.text();
        for name in ["deeper", "deepest"] {
            assert!(log.lines().any(|line| line.contains(name) && line.contains(LIMIT)), "{log}");
        }
    }
}

/// Returns the list of tools as text: common JSON readers refuse its depth.
fn call_list(gateway: &TestGateway) -> String {
    gateway.request("tools/list", json!({})).body
}

#[test]
fn deep_arguments_and_results_fail_alone() {
    let (gateway, _upstream) = serve(UpstreamEra::Legacy);
    let objects = |depth: usize| r#"{"a":"#.repeat(depth - 1) + "{}" + &"}".repeat(depth - 1);
    for depth in [500, 600] {
        for tool in ["shallow", "deep", "tree"] {
            let body = call(&gateway, tool, &objects(depth)).body;
            assert!(body.contains(r#""structuredContent":{"a":[]}"#), "{tool} {depth} {body}");
        }
    }
    for depth in [601, 100_000] {
        let body = call(&gateway, "shallow", &objects(depth)).body;
        assert!(body.contains(&format!("Invalid arguments: {LIMIT}")), "{depth} {body}");
    }
    let result = |depth: usize| call(&gateway, "shallow", &format!(r#"{{"depth":{depth}}}"#)).body;
    assert!(result(599).contains(&nested(599)));
    for depth in [600, 100_000] {
        assert!(result(depth).contains(&format!("The server's result is {LIMIT}")), "{depth}");
    }
    assert!(result(1).contains(r#""structuredContent":{"a":[]}"#));
}
