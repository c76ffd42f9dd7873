//! Progress and log while a call runs.

use std::sync::Arc;

use futures_util::FutureExt;
use insta::assert_snapshot;
use tokio::sync::watch;
use toolyard_core::{Ask, AskKind, Json, LogLevel, Notice, Object};
use toolyard_mcp::server::{FrontendLimits, Offers};

use crate::client::{Carrier, Client, LEGACY, MODERN, tool_params};
use crate::script::text;
use crate::yard::{EVERYTHING, Setup, Yard};

/// What a call of `tell` is told, with a letter for each notice: `p` and the levels of log.
async fn told(client: &mut Client) -> String {
    let id = client.request("tools/call", &tool_params("tell", "")).await;
    let mut told = Vec::new();
    loop {
        let heard = client.hear().await;
        if heard.contains(&format!(r#""id":{id}"#)) {
            return told.join(" ");
        }
        let level =
            LogLevel::ALL.iter().find(|level| heard.contains(&format!(r#""level":"{}""#, level.as_str())));
        told.push(level.map_or("progress", |level| level.as_str()).to_owned());
    }
}

#[tokio::test]
async fn notices_on_the_wire() {
    let yard = Yard::new();
    let mut said = Vec::new();
    for (carrier, revision) in [
        (Carrier::Pipe, LEGACY[3]),
        (Carrier::Web, LEGACY[3]),
        (Carrier::Sse, LEGACY[0]),
        (Carrier::Pipe, MODERN),
        (Carrier::Web, MODERN),
    ] {
        let mut client = Client::new(&yard, carrier, revision, "{}").await;
        client.meta = match revision {
            MODERN => r#""progressToken":"t","io.modelcontextprotocol/logLevel":"alert""#,
            _ => r#""progressToken":"t""#,
        };
        if revision != MODERN {
            client.ask("logging/setLevel", r#""level":"alert""#).await;
        }
        client.request("tools/call", &tool_params("tell", "")).await;
        said.push(
            client
                .hear_all(5)
                .await
                .replace(r#""id":2"#, r#""id":1"#)
                .replace(r#","resultType":"complete""#, ""),
        );
    }
    assert!(said.iter().all(|other| *other == said[0]), "{said:#?}");
    assert_snapshot!(said[0], @r#"
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":"t"}}
    {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"alert","data":null}}
    {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"emergency","data":null}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":2,"progressToken":"t"}}
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{}"}]}}
    "#);
}

#[tokio::test]
async fn a_legacy_session_says_how_much_log_it_wants() {
    let yard = Yard::new();
    let mut other = Client::piped(&yard, LEGACY[3], "{}").await;
    let mut said = Vec::new();
    for carrier in [Carrier::Pipe, Carrier::Web, Carrier::Sse] {
        let mut client = Client::new(&yard, carrier, LEGACY[3], "{}").await;
        let mut lines = vec![format!("nothing: {}", told(&mut client).await)];
        for level in LogLevel::ALL.map(LogLevel::as_str) {
            client.ask("logging/setLevel", &format!(r#""level":"{level}""#)).await;
            lines.push(format!("{level}: {}", told(&mut client).await));
        }
        said.push(lines.join("\n"));
    }
    assert!(said.iter().all(|other| *other == said[0]), "{said:#?}");
    assert_snapshot!(said[0], @"
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
    assert!(told(&mut other).await.starts_with("info"), "what one session says is not said for all");
}

#[tokio::test]
async fn a_modern_request_says_how_much_log_it_wants() {
    let yard = Yard::new();
    let mut lines = Vec::new();
    for carrier in [Carrier::Pipe, Carrier::Web] {
        let mut client = Client::new(&yard, carrier, MODERN, "{}").await;
        for meta in [
            "",
            r#""progressToken":1"#,
            r#""io.modelcontextprotocol/logLevel":"debug""#,
            r#""io.modelcontextprotocol/logLevel":"error","progressToken":1"#,
        ] {
            client.meta = meta;
            lines.push(format!("{meta}: {}", told(&mut client).await));
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
    {"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"`params._meta[\"io.modelcontextprotocol/logLevel\"]` is not a level of log"}}
    {"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"`params._meta[\"io.modelcontextprotocol/logLevel\"]` is not a level of log"}}
    "#);
}

/// Servers that send log declare it (2026-07-28 and before, server/utilities/logging, capabilities).
#[tokio::test]
async fn log_that_is_not_offered_is_not_sent() {
    let offers = Offers { logging: false, ..EVERYTHING };
    let yard = Yard::with(Setup { offers, ..Setup::default() });
    for (carrier, revision) in [
        (Carrier::Pipe, LEGACY[3]),
        (Carrier::Web, LEGACY[3]),
        (Carrier::Pipe, MODERN),
        (Carrier::Web, MODERN),
    ] {
        let mut client = Client::new(&yard, carrier, revision, "{}").await;
        client.meta = match revision {
            MODERN => r#""progressToken":1,"io.modelcontextprotocol/logLevel":"debug""#,
            _ => r#""progressToken":1"#,
        };
        assert_eq!(told(&mut client).await, "progress progress", "{revision} over {carrier:?}");
    }
}

/// Who takes no stream, or has no session, is not told.
#[tokio::test]
async fn who_cannot_be_told() {
    let yard = Yard::new();
    let mut plain = Client::new(&yard, Carrier::Web, LEGACY[3], "{}").await;
    plain.web().wants_plain_answers();
    plain.meta = r#""progressToken":1"#;
    assert_eq!(told(&mut plain).await, "");
    let mut bare = Client::silent(&yard, Carrier::Web, LEGACY[3], "{}").await;
    bare.meta = r#""progressToken":1"#;
    assert_eq!(told(&mut bare).await, "progress progress");
}

fn progress(number: i64) -> Notice {
    Notice::Progress(Object::new().with("progress", Json::integer(number)))
}

/// More notices than may wait are dropped; what was said before the answer is heard before it.
#[tokio::test]
async fn notices_come_before_the_answer() {
    let limits = FrontendLimits { queued_notices: 5, ..FrontendLimits::default() };
    let yard = Yard::build(Setup { limits, ..Setup::default() }, |call| async move {
        (1..=50).for_each(|number| call.client.notify(progress(number)));
        tokio::task::yield_now().await;
        (51..=100).for_each(|number| call.client.notify(progress(number)));
        Ok(text("done"))
    });
    for (carrier, revision) in [
        (Carrier::Pipe, LEGACY[3]),
        (Carrier::Web, LEGACY[3]),
        (Carrier::Sse, LEGACY[0]),
        (Carrier::Pipe, MODERN),
        (Carrier::Web, MODERN),
    ] {
        let mut client = Client::new(&yard, carrier, revision, "{}").await;
        client.meta = r#""progressToken":1"#;
        let id = client.request("tools/call", &tool_params("echo", "")).await;
        let mut numbers = Vec::new();
        loop {
            let heard = client.hear().await;
            if heard.contains(&format!(r#""id":{id}"#)) {
                break;
            }
            let number = heard.split(r#""progress":"#).nth(1).unwrap();
            numbers.push(number.split(',').next().unwrap().parse::<u32>().unwrap());
        }
        assert!((5..100).contains(&numbers.len()) && numbers.is_sorted(), "{carrier:?}: {numbers:?}");
        assert_eq!(client.heard_already(), "", "{revision} over {carrier:?}");
    }
}

/// A backend may hold on to the client of its call; nothing is said of a request that is over.
#[tokio::test]
async fn nothing_comes_after_the_answer() {
    let (clients, mut given) = watch::channel::<Option<Arc<dyn toolyard_core::Client>>>(None);
    let yard = Yard::build(Setup::default(), move |call| {
        clients.send_replace(Some(call.client.clone()));
        async move {
            match call.arguments().map(Json::as_text) {
                Some(r#"{"wait":1}"#) => std::future::pending().await,
                Some(r#"{"ask":1}"#) => {
                    let ask = Ask { kind: AskKind::Roots, params: Object::new() };
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
        let mut client = Client::piped(&yard, revision, crate::client::ABLE).await;
        client.meta = r#""progressToken":1"#;
        given.mark_unchanged();
        let tool = if arguments.contains("task") { "may" } else { "echo" };
        let id = client.request("tools/call", &tool_params(tool, arguments)).await;
        given.changed().await.unwrap();
        let kept = given.borrow_and_update().clone().unwrap();
        match arguments {
            r#""wait":1"# => client.withdraw(id).await,
            _ => drop(client.hear().await),
        }
        // What was sent before this was answered has been taken in.
        client.ask("tools/list", "").await;
        assert!(!kept.listens(), "{revision} {arguments}");
        kept.notify(progress(1));
        let answer = client.ask("tools/list", "").await;
        assert!(answer.contains(r#""tools""#), "{revision} {arguments}: {answer}");
        assert!(kept.log_level().is_none() && client.hear().now_or_never().is_none());
    }
}
