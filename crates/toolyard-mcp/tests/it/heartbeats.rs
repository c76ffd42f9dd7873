//! Calls that outlast their clients' patience.

use std::time::Duration;

use toolyard_core::{Ask, AskKind, Call, Json, Notice, Object};

use crate::client::{ABLE, Carrier, Client, LEGACY, MODERN, tool_params};
use crate::script::text;
use crate::yard::{Ended, Setup, Yard};

/// Asks where it is told to, is silent for a minute, says how far it is, and goes on for half of one.
async fn slowly(call: Call) -> Ended {
    if &**call.target.name() == "ask" {
        let _answer = call.client.ask(Ask { kind: AskKind::Roots, params: Object::new() }).await;
    }
    tokio::time::sleep(Duration::from_secs(61)).await;
    call.client.notify(Notice::Progress(Object::new().with("progress", Json::integer(0))));
    tokio::time::sleep(Duration::from_secs(30)).await;
    Ok(text("done"))
}

fn yard() -> Yard {
    Yard::build(Setup { timeout: Duration::from_secs(1_000_000), ..Setup::default() }, slowly)
}

const ALIVE: [&str; 5] = ["0", "1e-6", "2e-6", "3e-6", "4e-6"];

/// The values of progress that a client hears of before something else, and that.
async fn values(client: &mut Client) -> (Vec<String>, String) {
    let mut values = Vec::new();
    loop {
        let heard = client.hear().await;
        let Some((_, rest)) = heard.split_once(r#""progress":"#) else { return (values, heard) };
        values.push(rest.split([',', '}']).next().unwrap().to_owned());
    }
}

#[tokio::test(start_paused = true)]
async fn clients_that_want_progress_are_kept() {
    for revision in [LEGACY[0], LEGACY[3], MODERN] {
        let yard = yard();
        let mut client = Client::piped(&yard, revision, "{}").await;
        for no_token in ["", r#""progressToken":null"#, r#""progressToken":{}"#] {
            client.meta = no_token;
            client.request("tools/call", &tool_params("echo", "")).await;
            let (silence, answer) = values(&mut client).await;
            assert!(silence.is_empty() && answer.contains("done"), "nobody asked for progress: {no_token}");
        }
        client.meta = r#""progressToken":"t""#;
        client.request("tools/call", &tool_params("echo", "")).await;
        let (told, answer) = values(&mut client).await;
        assert_eq!(told, ALIVE, "{revision}");
        assert!(answer.contains("done"));
    }
}

/// While a modern client is to answer there is no request that could be kept alive. The one that it comes back with is.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_come_back_to() {
    let yard = yard();
    let mut client = Client::piped(&yard, MODERN, ABLE).await;
    client.meta = r#""progressToken":"t""#;
    let asked = client.call("ask", "").await;
    assert!(asked.contains("input_required"), "{asked}");
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(client.heard_already(), "");
    let state = client.last("requestState");
    let responses = r#""inputResponses":{"roots-1":{"roots":[]}}"#;
    let params = format!(r#"{},{responses},"requestState":"{state}""#, tool_params("ask", ""));
    client.request("tools/call", &params).await;
    let (told, answer) = values(&mut client).await;
    assert_eq!(told, ALIVE);
    assert!(answer.contains("done"), "{answer}");
}

/// Clocks cannot be stopped on the threads of a listener: here it is a short time that is waited for.
#[tokio::test]
async fn on_the_web() {
    let limits =
        toolyard_mcp::server::FrontendLimits { heartbeat: Duration::from_millis(5), ..Default::default() };
    for revision in [LEGACY[3], MODERN] {
        let (release, released) = tokio::sync::watch::channel(false);
        let yard = Yard::build(Setup { limits, ..Setup::default() }, move |_| {
            let mut released = released.clone();
            async move {
                released.wait_for(|released| *released).await.unwrap();
                Ok(text("done"))
            }
        });
        let mut client = Client::new(&yard, Carrier::Web, revision, "{}").await;
        client.meta = r#""progressToken":"t""#;
        client.request("tools/call", &tool_params("echo", "")).await;
        let told = client.hear_all(3).await;
        assert_eq!(told.matches("notifications/progress").count(), 3, "{told}");
        release.send_replace(true);
        assert!(values(&mut client).await.1.contains("done"));
    }
}
