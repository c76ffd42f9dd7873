//! The status of the gateway, as operators read it.

use insta::assert_snapshot;
use serde_json::Value;
use toolyard_core::{BackendPhase, Registry};
use toolyard_server::{GatewayOptions, RunningGateway};
use toolyard_testing::upstream::{
    ReceivedRequest, ReservedAddress, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra,
};
use toolyard_testing::wire_client::WireConnection;

use crate::gateway::{gateway, manifest};

/// The status as it is served.
async fn served_status(running: &RunningGateway) -> Value {
    let mut connection = WireConnection::open(running.address()).await;
    connection.send(b"GET /api/v1/status HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let body = connection.response().await.unwrap().body;
    serde_json::from_str(&body).unwrap()
}

/// The status with times, ports and digests replaced, which differ between runs.
async fn status(running: &RunningGateway) -> Value {
    let mut status = served_status(running).await;
    anonymize(&mut status);
    status
}

fn anonymize(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match (&**name, member) {
                    ("since" | "time", Value::String(time)) => *time = "(a time)".to_owned(),
                    ("manifestDigest", Value::String(digest)) => *digest = "(a digest)".to_owned(),
                    ("endpoint", Value::String(url)) => *url = "(a URL)".to_owned(),
                    ("address", Value::String(address)) => *address = "(an address)".to_owned(),
                    (_, member) => anonymize(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(anonymize),
        _ => {}
    }
}

/// The parts of the status that change with the handlers.
async fn changes(running: &RunningGateway) -> String {
    let status = status(running).await;
    let conditions = status["conditions"].as_array().unwrap().iter();
    let conditions = conditions.map(|one| format!("{}: {} ({})", one["type"], one["status"], one["message"]));
    let members = [
        "phase",
        "discoveredToolsCount",
        "availableToolsCount",
        "discoveredTools",
        "handlers",
        "list",
        "lastEdit",
    ];
    let members = members.map(|name| format!("{name}: {}", status[name]));
    members.into_iter().chain(conditions).collect::<Vec<_>>().join("\n")
}

/// Waits until the phases of the handlers satisfy `is_so`.
async fn until(running: &RunningGateway, is_so: impl Fn(&[BackendPhase]) -> bool) {
    let mut registry = running.gateway().watch();
    let phases = |now: &Registry| now.phases().iter().map(|(_, phase)| phase.clone()).collect::<Vec<_>>();
    registry.wait_for(|now| is_so(&phases(now))).await.unwrap();
}

fn answers(request: &ReceivedRequest) -> ScriptedReply {
    // The request that ends a session has no body.
    if request.body.is_empty() {
        ScriptedReply::http(200, "", "")
    } else {
        ScriptedReply::result(request, "{}")
    }
}

const OTHER_TOOL: &str = r#"{"name":"u","inputSchema":{"type":"object"}}"#;

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "the snapshot has a line for each member")]
async fn healthy_gateway_is_ready() {
    let one = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Legacy, &[TOOL], answers));
    let other = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[OTHER_TOOL], answers));
    let running = gateway(&[("there", one.address, ""), ("other", other.address, "")], "").await;
    assert_snapshot!(serde_json::to_string_pretty(&status(&running).await).unwrap(), @r#"
    {
      "phase": "Ready",
      "discoveredToolsCount": 2,
      "availableToolsCount": 2,
      "discoveredTools": [
        {
          "handlerName": "there",
          "name": "t",
          "status": "Available",
          "endpoint": "(a URL)"
        },
        {
          "handlerName": "other",
          "name": "u",
          "status": "Available",
          "endpoint": "(a URL)"
        }
      ],
      "conditions": [
        {
          "type": "HandlersAvailable",
          "status": "True",
          "reason": "HandlerReady",
          "message": "2 of 2 handlers are ready"
        },
        {
          "type": "AllHandlersReady",
          "status": "True",
          "reason": "AllReady",
          "message": "2 of 2 handlers are ready"
        },
        {
          "type": "ToolsDiscovered",
          "status": "True",
          "reason": "ToolsFound",
          "message": "2 tools are known"
        },
        {
          "type": "HandlersValid",
          "status": "True",
          "reason": "Valid",
          "message": "the manifest is valid"
        }
      ],
      "handlers": [
        {
          "name": "there",
          "registry": "test",
          "origin": "manifest",
          "type": "mcp",
          "endpoint": "(a URL)",
          "phase": "Ready",
          "since": "(a time)",
          "tools": 1,
          "protocol": "MCP 2025-11-25"
        },
        {
          "name": "other",
          "registry": "test",
          "origin": "manifest",
          "type": "mcp",
          "endpoint": "(a URL)",
          "phase": "Ready",
          "since": "(a time)",
          "tools": 1,
          "protocol": "MCP 2026-07-28"
        }
      ],
      "list": {
        "tools": 2,
        "characters": 91,
        "estimatedTokens": 21
      },
      "listeners": [
        {
          "protocol": "http",
          "address": "(an address)"
        }
      ],
      "manifestDigest": "(a digest)",
      "version": "0.1.0"
    }
    "#);
}

#[tokio::test]
async fn handler_phase_follows_its_server() {
    let there = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Legacy, &[TOOL], answers));
    let goes = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[OTHER_TOOL], answers));
    let address = goes.address;
    let running = gateway(&[("there", there.address, ""), ("goes", address, "")], "").await;
    drop(goes);
    // The gateway detects the lost connection by a call.
    let call = || toolyard_core::Call::tool("u", toolyard_core::Json::parse("{}").unwrap());
    let _gone = running.gateway().invoke(call()).await;
    until(&running, |phases| matches!(phases, [_, BackendPhase::Unavailable { .. }])).await;
    assert_snapshot!(changes(&running).await, @r#"
    phase: "Degraded"
    discoveredToolsCount: 2
    availableToolsCount: 1
    discoveredTools: [{"handlerName":"there","name":"t","status":"Available","endpoint":"(a URL)"},{"handlerName":"goes","name":"u","status":"Unavailable","endpoint":"(a URL)","error":"the server cannot be reached: connection refused"}]
    handlers: [{"name":"there","registry":"test","origin":"manifest","type":"mcp","endpoint":"(a URL)","phase":"Ready","since":"(a time)","tools":1,"protocol":"MCP 2025-11-25"},{"name":"goes","registry":"test","origin":"manifest","type":"mcp","endpoint":"(a URL)","phase":"Unavailable","since":"(a time)","tools":1,"protocol":"MCP 2026-07-28","lastError":{"time":"(a time)","code":"connection_refused","message":"the server cannot be reached: connection refused"}}]
    list: {"tools":1,"characters":46,"estimatedTokens":11}
    lastEdit: null
    "HandlersAvailable": "True" ("1 of 2 handlers are ready")
    "AllHandlersReady": "False" ("1 of 2 handlers are ready")
    "ToolsDiscovered": "True" ("2 tools are known")
    "HandlersValid": "True" ("the manifest is valid")
    "#);
    let applied = running.apply(&manifest(&[("goes", address, "")], "")).await.unwrap();
    assert_eq!(applied.handlers.removed, ["there"]);
    until(&running, |phases| phases.len() == 1).await;
    assert_snapshot!(changes(&running).await, @r#"
    phase: "Failed"
    discoveredToolsCount: 1
    availableToolsCount: 0
    discoveredTools: [{"handlerName":"goes","name":"u","status":"Unavailable","endpoint":"(a URL)","error":"the server cannot be reached: connection refused"}]
    handlers: [{"name":"goes","registry":"test","origin":"manifest","type":"mcp","endpoint":"(a URL)","phase":"Unavailable","since":"(a time)","tools":1,"protocol":"MCP 2026-07-28","lastError":{"time":"(a time)","code":"connection_refused","message":"the server cannot be reached: connection refused"}}]
    list: {"tools":0,"characters":2,"estimatedTokens":1}
    lastEdit: {"time":"(a time)","applied":true,"message":"removed there; 1 unchanged"}
    "HandlersAvailable": "False" ("0 of 1 handlers are ready")
    "AllHandlersReady": "False" ("0 of 1 handlers are ready")
    "ToolsDiscovered": "True" ("1 tools are known")
    "HandlersValid": "True" ("the manifest is valid")
    "#);
    let _goes = ReservedAddress::at(address).start(ScriptedUpstream::new(
        UpstreamEra::Modern,
        &[OTHER_TOOL],
        answers,
    ));
    until(&running, |phases| matches!(phases, [BackendPhase::Ready])).await;
    running.refuse("the manifest has problems".to_owned());
    assert_snapshot!(changes(&running).await, @r#"
    phase: "Ready"
    discoveredToolsCount: 1
    availableToolsCount: 1
    discoveredTools: [{"handlerName":"goes","name":"u","status":"Available","endpoint":"(a URL)"}]
    handlers: [{"name":"goes","registry":"test","origin":"manifest","type":"mcp","endpoint":"(a URL)","phase":"Ready","since":"(a time)","tools":1,"protocol":"MCP 2026-07-28","lastError":{"time":"(a time)","code":"connection_refused","message":"the server cannot be reached: connection refused"}}]
    list: {"tools":1,"characters":46,"estimatedTokens":11}
    lastEdit: {"time":"(a time)","applied":false,"message":"the manifest has problems"}
    "HandlersAvailable": "True" ("1 of 1 handlers are ready")
    "AllHandlersReady": "True" ("1 of 1 handlers are ready")
    "ToolsDiscovered": "True" ("1 tools are known")
    "HandlersValid": "True" ("the manifest is valid")
    "#);
}

#[tokio::test]
async fn digest_is_that_of_the_served_manifest() {
    let there = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], answers));
    let one = manifest(&[("one", there.address, "")], "");
    let two = manifest(&[("two", there.address, "")], "");
    let moved = manifest(&[("three", there.address, "")], "secretsDir: /elsewhere");
    let running = toolyard_server::start(&one, &GatewayOptions::default()).await.unwrap();
    let check = async |expected: &toolyard_manifest::Manifest| {
        let status = served_status(&running).await;
        assert_eq!(status["manifestDigest"], expected.digest);
        let handlers =
            status["handlers"].as_array().unwrap().iter().map(|handler| handler["name"].as_str().unwrap());
        assert_eq!(handlers.collect::<Vec<_>>(), [expected.handlers[0].name.as_str()]);
    };
    check(&one).await;
    running.apply(&two).await.unwrap();
    check(&two).await;
    running.apply(&moved).await.unwrap_err();
    running.refuse("the manifest has problems".to_owned());
    check(&two).await;
}

/// The status before the first list contains no unknown values.
#[tokio::test]
async fn status_before_the_first_list() {
    let silent = TestUpstream::start(|_: &ReceivedRequest| ScriptedReply::never());
    let manifest = manifest(&[("silent", silent.address, "")], "timeouts: {firstList: 1h}");
    let running = toolyard_server::start(&manifest, &GatewayOptions::default()).await.unwrap();
    assert_snapshot!(changes(&running).await, @r#"
    phase: "Pending"
    discoveredToolsCount: 0
    availableToolsCount: 0
    discoveredTools: []
    handlers: [{"name":"silent","registry":"test","origin":"manifest","type":"mcp","endpoint":"(a URL)","phase":"Pending","since":"(a time)","tools":0}]
    list: {"tools":0,"characters":2,"estimatedTokens":1}
    lastEdit: null
    "HandlersAvailable": "False" ("0 of 1 handlers are ready")
    "AllHandlersReady": "False" ("0 of 1 handlers are ready")
    "ToolsDiscovered": "False" ("0 tools are known")
    "HandlersValid": "True" ("the manifest is valid")
    "#);
}

/// A web page of another origin gets no status.
#[tokio::test]
async fn other_origins_get_no_status() {
    let there = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], answers));
    let running = gateway(&[("there", there.address, "")], "").await;
    for header in ["host: evil.example", "host: localhost\r\norigin: https://evil.example"] {
        let mut connection = WireConnection::open(running.address()).await;
        connection.send(format!("GET /api/v1/status HTTP/1.1\r\n{header}\r\n\r\n").as_bytes()).await;
        let response = connection.response().await.unwrap();
        assert!(response.head.start.contains(" 403 "), "{}", response.head.start);
        assert!(response.body.contains(r#""code":"denied""#), "{}", response.body);
    }
}

/// Servers keep their own names of arguments unless the manifest asks for others.
#[tokio::test]
async fn tools_with_illegal_argument_names_are_counted() {
    let odd = r#"{"name":"odd","inputSchema":{"properties":{"a[]":{}}}}"#;
    let upstream = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL, odd], answers));
    let handlers = [("kept", upstream.address, ""), ("renamed", upstream.address, "renameArguments: true,")];
    let running = gateway(&handlers, "").await;
    let status = status(&running).await;
    let counts = |handler: usize| {
        let handler = &status["handlers"][handler];
        ["toolsWithRenamedArguments", "toolsWithIllegalArguments"].map(|name| handler[name].as_u64())
    };
    assert_eq!((counts(0), counts(1)), ([None, Some(1)], [Some(1), None]));
}

#[tokio::test]
async fn unchecked_tool_is_reported_with_its_reason() {
    let arms = vec![r#"{"type":"string"}"#; 5000].join(",");
    let costly =
        format!(r#"{{"name":"costly","inputSchema":{{"properties":{{"a":{{"anyOf":[{arms}]}}}}}}}}"#);
    let upstream = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL, &costly], answers));
    let running = gateway(&[("there", upstream.address, "")], "").await;
    let status = status(&running).await;
    let reason = "it costs too much to check: more than 4096 of its branches apply to one value";
    let expected = serde_json::json!([{"tool": "costly", "reason": reason}]);
    assert_eq!(status["handlers"][0]["unchecked"], expected);
    assert_eq!(status["handlers"][0]["phase"], "Ready");
}
