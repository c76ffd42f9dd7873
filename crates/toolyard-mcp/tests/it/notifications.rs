//! Progress and log messages of a running call.

use std::sync::Arc;

use futures_util::FutureExt;
use insta::assert_snapshot;
use tokio::sync::watch;
use toolyard_core::{ClientNotification, InputRequest, InputRequestKind, Json, LogLevel, Object};
use toolyard_mcp::server::{FrontendLimits, OfferedFeatures};

use crate::client::{Client, LEGACY, MODERN, Transport, tool_params};
use crate::script::text;
use crate::test_gateway::{EVERYTHING, Setup, TestGateway};

/// Returns the notifications of a call of `tell`, by name and level.
async fn notification_names(client: &mut Client) -> String {
    let id = client.send_request("tools/call", &tool_params("tell", "")).await;
    let mut names = Vec::new();
    loop {
        let received = client.receive().await;
        if received.contains(&format!(r#""id":{id}"#)) {
            return names.join(" ");
        }
        let level =
            LogLevel::ALL.iter().find(|level| received.contains(&format!(r#""level":"{}""#, level.as_str())));
        names.push(level.map_or("progress", |level| level.as_str()).to_owned());
    }
}

#[tokio::test]
async fn notifications_on_the_wire() {
    let gateway = TestGateway::new();
    let mut outputs = Vec::new();
    for (transport, revision) in [
        (Transport::Pipe, LEGACY[3]),
        (Transport::Web, LEGACY[3]),
        (Transport::Sse, LEGACY[0]),
        (Transport::Pipe, MODERN),
        (Transport::Web, MODERN),
    ] {
        let mut client = Client::new(&gateway, transport, revision, "{}").await;
        client.meta = match revision {
            MODERN => r#""progressToken":"t","io.modelcontextprotocol/logLevel":"alert""#,
            _ => r#""progressToken":"t""#,
        };
        if revision != MODERN {
            client.request("logging/setLevel", r#""level":"alert""#).await;
        }
        client.send_request("tools/call", &tool_params("tell", "")).await;
        outputs.push(
            client
                .receive_many(5)
                .await
                .replace(r#""id":2"#, r#""id":1"#)
                .replace(r#","resultType":"complete""#, ""),
        );
    }
    assert!(outputs.iter().all(|other| *other == outputs[0]), "{outputs:#?}");
    assert_snapshot!(outputs[0], @r#"
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":"t"}}
    {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"alert","data":null}}
    {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"emergency","data":null}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":2,"progressToken":"t"}}
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{}"}]}}
    "#);
}

#[tokio::test]
async fn legacy_session_sets_the_log_level() {
    let gateway = TestGateway::new();
    let mut other = Client::on_pipe(&gateway, LEGACY[3], "{}").await;
    let mut outputs = Vec::new();
    for transport in [Transport::Pipe, Transport::Web, Transport::Sse] {
        let mut client = Client::new(&gateway, transport, LEGACY[3], "{}").await;
        let mut lines = vec![format!("nothing: {}", notification_names(&mut client).await)];
        for level in LogLevel::ALL.map(LogLevel::as_str) {
            client.request("logging/setLevel", &format!(r#""level":"{level}""#)).await;
            lines.push(format!("{level}: {}", notification_names(&mut client).await));
        }
        outputs.push(lines.join("\n"));
    }
    assert!(outputs.iter().all(|other| *other == outputs[0]), "{outputs:#?}");
    assert_snapshot!(outputs[0], @"
    nothing: info notice warning error critical alert emergency
    debug: debug info notice warning error critical alert emergency
    info: info notice warning error critical alert emergency
    notice: notice warning error critical alert emergency
    warning: warning error critical alert emergency
    error: error critical alert emergency
    critical: critical alert emergency
    alert: alert emergency
    emergency: emergency
    ");
    assert!(
        notification_names(&mut other).await.starts_with("info"),
        "what one session says is not said for all"
    );
}

#[tokio::test]
async fn modern_request_sets_the_log_level() {
    let gateway = TestGateway::new();
    let mut lines = Vec::new();
    for transport in [Transport::Pipe, Transport::Web] {
        let mut client = Client::new(&gateway, transport, MODERN, "{}").await;
        for meta in [
            "",
            r#""progressToken":1"#,
            r#""io.modelcontextprotocol/logLevel":"debug""#,
            r#""io.modelcontextprotocol/logLevel":"error","progressToken":1"#,
        ] {
            client.meta = meta;
            lines.push(format!("{meta}: {}", notification_names(&mut client).await));
        }
        for meta in
            [r#""io.modelcontextprotocol/logLevel":"loud""#, r#""io.modelcontextprotocol/logLevel":1"#]
        {
            client.meta = meta;
            lines.push(client.call("echo", "").await.replace(r#""id":6"#, r#""id":5"#));
        }
    }
    assert_eq!(lines[..6], lines[6..]);
    assert_snapshot!(lines[..6].join("\n"), @r#"
    : 
    "progressToken":1: progress progress
    "io.modelcontextprotocol/logLevel":"debug": debug info notice warning error critical alert emergency
    "io.modelcontextprotocol/logLevel":"error","progressToken":1: progress error critical alert emergency progress
    {"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"`params._meta[\"io.modelcontextprotocol/logLevel\"]` is not a log level"}}
    {"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"`params._meta[\"io.modelcontextprotocol/logLevel\"]` is not a log level"}}
    "#);
}

/// Servers that send log messages declare the capability (2026-07-28 and before, server/utilities/logging,
/// capabilities).
#[tokio::test]
async fn log_is_not_sent_unless_offered() {
    let offers = OfferedFeatures { logging: false, ..EVERYTHING };
    let gateway = TestGateway::with(Setup { offers, ..Setup::default() });
    for (transport, revision) in [
        (Transport::Pipe, LEGACY[3]),
        (Transport::Web, LEGACY[3]),
        (Transport::Pipe, MODERN),
        (Transport::Web, MODERN),
    ] {
        let mut client = Client::new(&gateway, transport, revision, "{}").await;
        client.meta = match revision {
            MODERN => r#""progressToken":1,"io.modelcontextprotocol/logLevel":"debug""#,
            _ => r#""progressToken":1"#,
        };
        assert_eq!(
            notification_names(&mut client).await,
            "progress progress",
            "{revision} over {transport:?}"
        );
    }
}

/// A client without streams or without a session gets no notifications.
#[tokio::test]
async fn json_only_client_gets_no_notifications() {
    let gateway = TestGateway::new();
    let mut plain = Client::new(&gateway, Transport::Web, LEGACY[3], "{}").await;
    plain.web().accept_json_only();
    plain.meta = r#""progressToken":1"#;
    assert_eq!(notification_names(&mut plain).await, "");
    let mut bare = Client::uninitialized(&gateway, Transport::Web, LEGACY[3], "{}").await;
    bare.meta = r#""progressToken":1"#;
    assert_eq!(notification_names(&mut bare).await, "progress progress");
}

fn progress(number: i64) -> ClientNotification {
    ClientNotification::Progress(Object::new().with("progress", Json::integer(number)).into())
}

/// Notifications over the limit are dropped; those before the answer precede it.
#[tokio::test]
async fn notifications_precede_the_answer() {
    let limits = FrontendLimits { max_queued_notices: 5, ..FrontendLimits::default() };
    let gateway = TestGateway::build(Setup { limits, ..Setup::default() }, |call| async move {
        (1..=50).for_each(|number| call.client.notify(progress(number)));
        tokio::task::yield_now().await;
        (51..=100).for_each(|number| call.client.notify(progress(number)));
        Ok(text("done"))
    });
    for (transport, revision) in [
        (Transport::Pipe, LEGACY[3]),
        (Transport::Web, LEGACY[3]),
        (Transport::Sse, LEGACY[0]),
        (Transport::Pipe, MODERN),
        (Transport::Web, MODERN),
    ] {
        let mut client = Client::new(&gateway, transport, revision, "{}").await;
        client.meta = r#""progressToken":1"#;
        let id = client.send_request("tools/call", &tool_params("echo", "")).await;
        let mut numbers = Vec::new();
        loop {
            let received = client.receive().await;
            if received.contains(&format!(r#""id":{id}"#)) {
                break;
            }
            let number = received.split(r#""progress":"#).nth(1).unwrap();
            numbers.push(number.split(',').next().unwrap().parse::<u32>().unwrap());
        }
        assert!((5..100).contains(&numbers.len()) && numbers.is_sorted(), "{transport:?}: {numbers:?}");
        assert_eq!(client.received_so_far(), "", "{revision} over {transport:?}");
    }
}

/// A backend may keep the client of its call; nothing is sent for a finished request.
#[tokio::test]
async fn no_notification_follows_the_answer() {
    let (clients, mut client_watch) = watch::channel::<Option<Arc<dyn toolyard_core::Client>>>(None);
    let gateway = TestGateway::build(Setup::default(), move |call| {
        clients.send_replace(Some(call.client.clone()));
        async move {
            match call.arguments().map(Json::as_text) {
                Some(r#"{"wait":1}"#) => std::future::pending().await,
                Some(r#"{"ask":1}"#) => {
                    let ask = InputRequest { kind: InputRequestKind::Roots, params: Object::new() };
                    call.client.ask(ask).await.map(|_| text("done")).map_err(Into::into)
                }
                _ => Ok(text("done")),
            }
        }
    });
    for (revision, arguments) in [
        (LEGACY[3], ""),
        (LEGACY[3], r#""wait":1"#),
        (MODERN, ""),
        (MODERN, r#""wait":1"#),
        (MODERN, r#""ask":1"#),
        (MODERN, r#""task":1"#),
    ] {
        let mut client = Client::on_pipe(&gateway, revision, crate::client::ABLE).await;
        client.meta = r#""progressToken":1"#;
        client_watch.mark_unchanged();
        let tool = if arguments.contains("task") { "may" } else { "echo" };
        let id = client.send_request("tools/call", &tool_params(tool, arguments)).await;
        client_watch.changed().await.unwrap();
        let old_client = client_watch.borrow_and_update().clone().unwrap();
        match arguments {
            r#""wait":1"# => client.cancel(id).await,
            _ => drop(client.receive().await),
        }
        // Everything sent before this answer was processed.
        client.request("tools/list", "").await;
        assert!(!old_client.listens(), "{revision} {arguments}");
        old_client.notify(progress(1));
        let answer = client.request("tools/list", "").await;
        assert!(answer.contains(r#""tools""#), "{revision} {arguments}: {answer}");
        assert!(old_client.log_level().is_none() && client.receive().now_or_never().is_none());
    }
}
