//! Heartbeats of calls that exceed the timeout of their clients.

use std::time::Duration;

use toolyard_core::{Call, ClientNotification, InputRequest, InputRequestKind, Json, Object};

use crate::client::{ABLE, Client, LEGACY, MODERN, Transport, tool_params};
use crate::script::text;
use crate::test_gateway::{Ended, Setup, TestGateway};

/// Asks if it is told to, is silent for a minute, reports progress, and goes on for half a minute.
async fn slowly(call: Call) -> Ended {
    if &**call.target.name() == "ask" {
        let _answer =
            call.client.ask(InputRequest { kind: InputRequestKind::Roots, params: Object::new() }).await;
    }
    tokio::time::sleep(Duration::from_secs(61)).await;
    call.client.notify(ClientNotification::Progress(Object::new().with("progress", Json::integer(0)).into()));
    tokio::time::sleep(Duration::from_secs(30)).await;
    Ok(text("done"))
}

fn gateway() -> TestGateway {
    TestGateway::build(Setup { timeout: Duration::from_secs(1_000_000), ..Setup::default() }, slowly)
}

const ALIVE: [&str; 5] = ["0", "1e-6", "2e-6", "3e-6", "4e-6"];

/// Returns the progress values before the next other message, and that message.
async fn values(client: &mut Client) -> (Vec<String>, String) {
    let mut values = Vec::new();
    loop {
        let received = client.receive().await;
        let Some((_, rest)) = received.split_once(r#""progress":"#) else { return (values, received) };
        values.push(rest.split([',', '}']).next().unwrap().to_owned());
    }
}

#[tokio::test(start_paused = true)]
async fn silent_calls_send_heartbeats() {
    for revision in [LEGACY[0], LEGACY[3], MODERN] {
        let gateway = gateway();
        let mut client = Client::on_pipe(&gateway, revision, "{}").await;
        for no_token in ["", r#""progressToken":null"#, r#""progressToken":{}"#] {
            client.meta = no_token;
            client.send_request("tools/call", &tool_params("echo", "")).await;
            let (silence, answer) = values(&mut client).await;
            assert!(silence.is_empty() && answer.contains("done"), "nobody asked for progress: {no_token}");
        }
        client.meta = r#""progressToken":"t""#;
        client.send_request("tools/call", &tool_params("echo", "")).await;
        let (values_seen, answer) = values(&mut client).await;
        assert_eq!(values_seen, ALIVE, "{revision}");
        assert!(answer.contains("done"));
    }
}

/// A suspended call has no request to keep alive; its retry gets heartbeats.
#[tokio::test(start_paused = true)]
async fn resumed_call_sends_heartbeats() {
    let gateway = gateway();
    let mut client = Client::on_pipe(&gateway, MODERN, ABLE).await;
    client.meta = r#""progressToken":"t""#;
    let question = client.call("ask", "").await;
    assert!(question.contains("input_required"), "{question}");
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(client.received_so_far(), "");
    let state = client.last("requestState");
    let responses = r#""inputResponses":{"roots-1":{"roots":[]}}"#;
    let params = format!(r#"{},{responses},"requestState":"{state}""#, tool_params("ask", ""));
    client.send_request("tools/call", &params).await;
    let (values_seen, answer) = values(&mut client).await;
    assert_eq!(values_seen, ALIVE);
    assert!(answer.contains("done"), "{answer}");
}

/// Time cannot be paused on the threads of a listener, so that the interval is short.
#[tokio::test]
async fn heartbeats_over_http() {
    let limits =
        toolyard_mcp::server::FrontendLimits { heartbeat: Duration::from_millis(5), ..Default::default() };
    for revision in [LEGACY[3], MODERN] {
        let (release, released) = tokio::sync::watch::channel(false);
        let gateway = TestGateway::build(Setup { limits, ..Setup::default() }, move |_| {
            let mut released = released.clone();
            async move {
                released.wait_for(|released| *released).await.unwrap();
                Ok(text("done"))
            }
        });
        let mut client = Client::new(&gateway, Transport::Web, revision, "{}").await;
        client.meta = r#""progressToken":"t""#;
        client.send_request("tools/call", &tool_params("echo", "")).await;
        let values_seen = client.receive_many(3).await;
        assert_eq!(values_seen.matches("notifications/progress").count(), 3, "{values_seen}");
        release.send_replace(true);
        assert!(values(&mut client).await.1.contains("done"));
    }
}
