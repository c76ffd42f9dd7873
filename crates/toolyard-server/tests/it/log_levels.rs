//! Log levels: the level that the gateway sets at servers, and the notifications that each client gets.

use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;
use tokio::time;
use toolyard_core::{Call, ClientNotification, Json, LogLevel};
use toolyard_testing::json;
use toolyard_testing::upstream::{ReceivedRequest, ScriptedReply, TestUpstream, UpstreamEra};
use toolyard_testing::wire_client::{ClientMode, MODERN_META, WireClient};

use crate::catalog_server::{CatalogServer, ERAS, ask};
use crate::gateway::gateway;

/// The gateway sets the most verbose level of its clients at a server, and each client gets its own level.
#[tokio::test]
async fn log_levels() {
    const LEVEL: &str = "io.modelcontextprotocol/logLevel";
    let answer = |r: &ReceivedRequest| {
        if r.method() == "logging/setLevel" {
            return ScriptedReply::result(r, "{}");
        }
        let log = |level: &str| {
            let params = format!(r#"{{"level":"{level}","data":1.10}}"#);
            format!(
                "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{params}}}\n\n"
            )
        };
        let end = format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{}}}}\n\n", r.id());
        ScriptedReply::events([(log("debug") + &log("error") + &end).into()])
    };
    for era in ERAS {
        let upstream = TestUpstream::start(CatalogServer::new(era, answer));
        let running = gateway(&[("h", upstream.address, "")], "").await;
        let mut lines = Vec::new();
        for level in ["error", "debug", "error", "critical"] {
            let meta = format!(r#"{MODERN_META},"{LEVEL}":"{level}""#);
            let client = WireClient::new(running.address(), ClientMode::Modern).await;
            let mut stream =
                client.open("resources/read", &format!(r#"{{"uri":"res://one","_meta":{{{meta}}}}}"#)).await;
            let mut messages = Vec::new();
            while let Some(message) = stream.message().await {
                let params = json::read(&message).find("params").cloned();
                messages.extend(params.map(|params| params.get("level").plain()));
            }
            let params = upstream.now(|log| log.last("resources/read").params());
            let call_level = params.find("_meta").and_then(|meta| meta.find(LEVEL)).cloned();
            let call_level = call_level.map_or_else(|| "nothing".to_owned(), |level| level.plain());
            let set_levels = upstream.now(|log| log.count("logging/setLevel"));
            lines.push(format!("{level}: received {messages:?}, level of the request {call_level}, {set_levels} setLevel requests"));
        }
        match era {
            UpstreamEra::Legacy => assert_snapshot!(lines.join("\n"), @r#"
            error: received ["error"], level of the request nothing, 1 setLevel requests
            debug: received ["debug", "error"], level of the request nothing, 2 setLevel requests
            error: received ["error"], level of the request nothing, 2 setLevel requests
            critical: received [], level of the request nothing, 2 setLevel requests
            "#),
            UpstreamEra::Modern => assert_snapshot!(lines.join("\n"), @r#"
            error: received ["error"], level of the request error, 0 setLevel requests
            debug: received ["debug", "error"], level of the request debug, 0 setLevel requests
            error: received ["error"], level of the request error, 0 setLevel requests
            critical: received [], level of the request critical, 0 setLevel requests
            "#),
        }
        if era == UpstreamEra::Legacy {
            assert_eq!(
                upstream.now(|log| log.last("logging/setLevel").params().text()),
                r#"{"level":"debug"}"#
            );
        }
        // A client without a log level sets none at the server.
        let other = TestUpstream::start(CatalogServer::new(era, answer));
        let running = gateway(&[("h", other.address, "")], "").await;
        ask(
            &mut WireClient::new(running.address(), ClientMode::Bare).await,
            "resources/read",
            r#""uri":"res://one""#,
        )
        .await;
        assert!(!other.now(|log| log.requests.iter().any(|r| r.body.contains("evel\""))));
    }
}

/// A client that only listens to log messages.
#[derive(Debug)]
struct LogListener;

impl toolyard_core::Client for LogListener {
    fn capabilities(&self) -> Option<&Json> {
        None
    }

    fn listens(&self) -> bool {
        false
    }

    fn log_level(&self) -> Option<LogLevel> {
        Some(LogLevel::Debug)
    }

    fn notify(&self, _: ClientNotification) {}
}

/// The gateway calls a server that does not answer `logging/setLevel`, and does not repeat the request.
#[tokio::test]
async fn unanswered_log_level_request_does_not_block_calls() {
    let server =
        CatalogServer::new(UpstreamEra::Legacy, |request: &ReceivedRequest| match &*request.method() {
            "logging/setLevel" => ScriptedReply::never(),
            _ => ScriptedReply::result(request, "{}"),
        });
    let upstream = TestUpstream::start(server);
    let running = gateway(&[("h", upstream.address, "")], "").await;
    let call = || Call { client: Arc::new(LogListener), ..Call::tool("t", Json::parse("{}").unwrap()) };
    let (first, ()) = tokio::join!(running.gateway().invoke(call()), async {
        upstream.saw(|log| log.count("logging/setLevel") == 1, |_| ()).await;
        assert_eq!(upstream.now(|log| log.count("tools/call")), 0);
        time::pause();
        time::advance(Duration::from_secs(10)).await;
        time::resume();
    });
    let second = running.gateway().invoke(call()).await;
    assert!(first.is_ok() && second.is_ok());
    let counts = upstream.now(|log| [log.count("logging/setLevel"), log.count("tools/call")]);
    assert_eq!(counts, [1, 2]);
}
