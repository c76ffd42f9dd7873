//! What operators are told of the gateway.

use insta::assert_snapshot;
use serde_json::Value;
use toolyard_core::{Phase, Registry};
use toolyard_server::{Options, Running};

use crate::client::Connection;
use crate::upstream::{Era, Received, Reply, Reserved, Server, TOOL, Upstream};
use crate::{gateway, manifest};

/// The status as it is, times and ports apart, which are random.
async fn status(running: &Running) -> Value {
    let mut connection = Connection::open(running.address()).await;
    connection.send(b"GET /api/v1/status HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let body = connection.response().await.unwrap().body;
    let mut status: Value = serde_json::from_str(&body).unwrap();
    anonymize(&mut status);
    status
}

fn anonymize(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match (&**name, member) {
                    ("since" | "time", Value::String(time)) => *time = "(a time)".to_owned(),
                    ("endpoint", Value::String(url)) => *url = "(a URL)".to_owned(),
                    (_, member) => anonymize(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(anonymize),
        _ => {}
    }
}

/// What of it changes with its handlers.
async fn changes(running: &Running) -> String {
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

/// Waits until the handlers are as they are to be.
async fn until(running: &Running, is_so: impl Fn(&[Phase]) -> bool) {
    let mut registry = running.gateway().watch();
    let phases = |now: &Registry| now.phases().iter().map(|(_, phase)| phase.clone()).collect::<Vec<_>>();
    registry.wait_for(|now| is_so(&phases(now))).await.unwrap();
}

fn answers(request: &Received) -> Reply {
    // The end of a session has no body.
    if request.body.is_empty() { Reply::http(200, "", "") } else { Reply::result(request, "{}") }
}

const OTHER_TOOL: &str = r#"{"name":"u"}"#;

#[tokio::test]
async fn all_is_well() {
    let one = Upstream::start(Server::new(Era::Legacy, &[TOOL], answers));
    let other = Upstream::start(Server::new(Era::Modern, &[OTHER_TOOL], answers));
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
        "characters": 59,
        "estimatedTokens": 14
      },
      "version": "0.1.0"
    }
    "#);
}

#[tokio::test]
async fn a_handler_that_goes_and_comes_back() {
    let there = Upstream::start(Server::new(Era::Legacy, &[TOOL], answers));
    let goes = Upstream::start(Server::new(Era::Modern, &[OTHER_TOOL], answers));
    let address = goes.address;
    let running = gateway(&[("there", there.address, ""), ("goes", address, "")], "").await;
    drop(goes);
    // Whoever calls finds out.
    let call = || toolyard_core::Call::tool("u", toolyard_core::Json::parse("{}").unwrap());
    let _gone = running.gateway().invoke(call()).await;
    until(&running, |phases| matches!(phases, [_, Phase::Unavailable { .. }])).await;
    assert_snapshot!(changes(&running).await, @r#"
    phase: "Degraded"
    discoveredToolsCount: 2
    availableToolsCount: 1
    discoveredTools: [{"handlerName":"there","name":"t","status":"Available","endpoint":"(a URL)"},{"handlerName":"goes","name":"u","status":"Unavailable","endpoint":"(a URL)","error":"the server cannot be reached: cannot connect: client error (Connect): tcp connect error: Connection refused (os error 111)"}]
    handlers: [{"name":"there","registry":"test","origin":"manifest","type":"mcp","endpoint":"(a URL)","phase":"Ready","since":"(a time)","tools":1,"protocol":"MCP 2025-11-25"},{"name":"goes","registry":"test","origin":"manifest","type":"mcp","endpoint":"(a URL)","phase":"Unavailable","since":"(a time)","tools":1,"protocol":"MCP 2026-07-28","lastError":{"time":"(a time)","message":"the server cannot be reached: cannot connect: client error (Connect): tcp connect error: Connection refused (os error 111)"}}]
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
    discoveredTools: [{"handlerName":"goes","name":"u","status":"Unavailable","endpoint":"(a URL)","error":"the server cannot be reached: cannot connect: client error (Connect): tcp connect error: Connection refused (os error 111)"}]
    handlers: [{"name":"goes","registry":"test","origin":"manifest","type":"mcp","endpoint":"(a URL)","phase":"Unavailable","since":"(a time)","tools":1,"protocol":"MCP 2026-07-28","lastError":{"time":"(a time)","message":"the server cannot be reached: cannot connect: client error (Connect): tcp connect error: Connection refused (os error 111)"}}]
    list: {"tools":0,"characters":2,"estimatedTokens":1}
    lastEdit: {"time":"(a time)","applied":true,"message":"removed there; 1 not touched"}
    "HandlersAvailable": "False" ("0 of 1 handlers are ready")
    "AllHandlersReady": "False" ("0 of 1 handlers are ready")
    "ToolsDiscovered": "True" ("1 tools are known")
    "HandlersValid": "True" ("the manifest is valid")
    "#);
    let _goes = Reserved::at(address).start(Server::new(Era::Modern, &[OTHER_TOOL], answers));
    until(&running, |phases| matches!(phases, [Phase::Ready])).await;
    running.refuse("the manifest has problems".to_owned());
    assert_snapshot!(changes(&running).await, @r#"
    phase: "Ready"
    discoveredToolsCount: 1
    availableToolsCount: 1
    discoveredTools: [{"handlerName":"goes","name":"u","status":"Available","endpoint":"(a URL)"}]
    handlers: [{"name":"goes","registry":"test","origin":"manifest","type":"mcp","endpoint":"(a URL)","phase":"Ready","since":"(a time)","tools":1,"protocol":"MCP 2026-07-28","lastError":{"time":"(a time)","message":"the server cannot be reached: cannot connect: client error (Connect): tcp connect error: Connection refused (os error 111)"}}]
    list: {"tools":1,"characters":14,"estimatedTokens":4}
    lastEdit: {"time":"(a time)","applied":false,"message":"the manifest has problems"}
    "HandlersAvailable": "True" ("1 of 1 handlers are ready")
    "AllHandlersReady": "True" ("1 of 1 handlers are ready")
    "ToolsDiscovered": "True" ("1 tools are known")
    "HandlersValid": "True" ("the manifest is valid")
    "#);
}

/// While the first list is waited for, nothing is said that is not known.
#[tokio::test]
async fn before_the_first_list() {
    let silent = Upstream::start(|_: &Received| Reply::never());
    let manifest = manifest(&[("silent", silent.address, "")], "timeouts: {firstList: 1h}");
    let running = toolyard_server::start(&manifest, &Options::default()).await.unwrap();
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

/// A page in a browser that has found the gateway.
#[tokio::test]
async fn pages_of_other_origins_are_told_nothing() {
    let there = Upstream::start(Server::new(Era::Modern, &[TOOL], answers));
    let running = gateway(&[("there", there.address, "")], "").await;
    for header in ["host: evil.example", "host: localhost\r\norigin: https://evil.example"] {
        let mut connection = Connection::open(running.address()).await;
        connection.send(format!("GET /api/v1/status HTTP/1.1\r\n{header}\r\n\r\n").as_bytes()).await;
        let response = connection.response().await.unwrap();
        assert!(response.head.start.contains(" 403 "), "{}", response.head.start);
        assert!(response.body.contains(r#""code":"denied""#), "{}", response.body);
    }
}
