//! How much log servers are asked for, and who hears it.

use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;
use tokio::time;
use toolyard_core::{Call, Json, LogLevel, Notice};

use crate::client::{Client, MODERN_META, Speech};
use crate::gateway;
use crate::json;
use crate::stocked::{ERAS, Stocked, ask};
use crate::upstream::{Era, Received, Reply, Upstream};

/// A server logs as much as the client wants that wants most, and each client hears what it wants.
#[tokio::test]
async fn log_levels() {
    const LEVEL: &str = "io.modelcontextprotocol/logLevel";
    let answer = |r: &Received| {
        if r.method() == "logging/setLevel" {
            return Reply::result(r, "{}");
        }
        let log = |level: &str| {
            let params = format!(r#"{{"level":"{level}","data":1.10}}"#);
            format!(
                "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{params}}}\n\n"
            )
        };
        let end = format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{}}}}\n\n", r.id());
        Reply::events([(log("debug") + &log("error") + &end).into()])
    };
    for era in ERAS {
        let upstream = Upstream::start(Stocked::new(era, answer));
        let running = gateway(&[("h", upstream.address, "")], "").await;
        let mut lines = Vec::new();
        for level in ["error", "debug", "error", "critical"] {
            let meta = format!(r#"{MODERN_META},"{LEVEL}":"{level}""#);
            let client = Client::new(running.address(), Speech::Modern).await;
            let mut stream =
                client.open("resources/read", &format!(r#"{{"uri":"res://one","_meta":{{{meta}}}}}"#)).await;
            let mut heard = Vec::new();
            while let Some(message) = stream.message().await {
                let params = json::read(&message).find("params").cloned();
                heard.extend(params.map(|params| params.get("level").plain()));
            }
            let params = upstream.now(|log| log.last("resources/read").params());
            let told = params.find("_meta").and_then(|meta| meta.find(LEVEL)).cloned();
            let told = told.map_or_else(|| "nothing".to_owned(), |level| level.plain());
            let asked = upstream.now(|log| log.count("logging/setLevel"));
            lines.push(format!("{level}: heard {heard:?}, told {told}, asked {asked} times"));
        }
        match era {
            Era::Legacy => assert_snapshot!(lines.join("\n"), @r#"
            error: heard ["error"], told nothing, asked 1 times
            debug: heard ["debug", "error"], told nothing, asked 2 times
            error: heard ["error"], told nothing, asked 2 times
            critical: heard [], told nothing, asked 2 times
            "#),
            Era::Modern => assert_snapshot!(lines.join("\n"), @r#"
            error: heard ["error"], told error, asked 0 times
            debug: heard ["debug", "error"], told debug, asked 0 times
            error: heard ["error"], told error, asked 0 times
            critical: heard [], told critical, asked 0 times
            "#),
        }
        if era == Era::Legacy {
            assert_eq!(
                upstream.now(|log| log.last("logging/setLevel").params().text()),
                r#"{"level":"debug"}"#
            );
        }
        // Who hears nothing wants nothing.
        let other = Upstream::start(Stocked::new(era, answer));
        let running = gateway(&[("h", other.address, "")], "").await;
        ask(
            &mut Client::new(running.address(), Speech::Bare).await,
            "resources/read",
            r#""uri":"res://one""#,
        )
        .await;
        assert!(!other.now(|log| log.requests.iter().any(|r| r.body.contains("evel\""))));
    }
}

/// Who wants log, and nothing else.
#[derive(Debug)]
struct Listener;

impl toolyard_core::Client for Listener {
    fn capabilities(&self) -> Option<&Json> {
        None
    }

    fn listens(&self) -> bool {
        false
    }

    fn log_level(&self) -> Option<LogLevel> {
        Some(LogLevel::Debug)
    }

    fn notify(&self, _: Notice) {}
}

/// A server that does not say whether it will log as much is called all the same, and not asked again.
#[tokio::test]
async fn a_server_that_does_not_answer_for_its_log() {
    let server = Stocked::new(Era::Legacy, |request: &Received| match &*request.method() {
        "logging/setLevel" => Reply::never(),
        _ => Reply::result(request, "{}"),
    });
    let upstream = Upstream::start(server);
    let running = gateway(&[("h", upstream.address, "")], "").await;
    let call = || Call { client: Arc::new(Listener), ..Call::tool("t", Json::parse("{}").unwrap()) };
    let (first, ()) = tokio::join!(running.gateway().invoke(call()), async {
        upstream.saw(|log| log.count("logging/setLevel") == 1, |_| ()).await;
        assert_eq!(upstream.now(|log| log.count("tools/call")), 0);
        time::pause();
        time::advance(Duration::from_secs(10)).await;
        time::resume();
    });
    let second = running.gateway().invoke(call()).await;
    assert!(first.is_ok() && second.is_ok());
    let asked = upstream.now(|log| [log.count("logging/setLevel"), log.count("tools/call")]);
    assert_eq!(asked, [1, 2]);
}
