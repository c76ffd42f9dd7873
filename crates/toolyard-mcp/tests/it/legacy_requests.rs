//! A backend that asks and waits, with a legacy client: the client gets requests of the server.

use std::time::Duration;

use futures_util::future::join_all;
use insta::assert_snapshot;
use tokio::sync::watch;
use toolyard_core::{InputRequest, InputRequestKind, Object};
use toolyard_mcp::server::FrontendLimits;

use crate::client::{
    ABLE, Client, ELICIT, ELICIT_URL, LEGACY, ROOTS, SAMPLE, Transport, asking, tool_params,
};
use crate::script::text;
use crate::test_gateway::{Setup, TestGateway};

const TRANSPORTS: [Transport; 3] = [Transport::Pipe, Transport::Web, Transport::Sse];

/// Checks that clients of all transports get the same messages.
#[track_caller]
fn same(outputs: &[String]) -> &str {
    assert!(outputs.iter().all(|other| *other == outputs[0]), "{outputs:#?}");
    &outputs[0]
}

#[tokio::test]
async fn each_kind_of_request_reaches_the_client() {
    let gateway = TestGateway::new();
    let mut outputs = Vec::new();
    for (transport, revision) in [
        (Transport::Pipe, LEGACY[3]),
        (Transport::Web, LEGACY[1]),
        (Transport::Web, LEGACY[3]),
        (Transport::Sse, LEGACY[0]),
    ] {
        let mut client = Client::new(&gateway, transport, revision, ABLE).await;
        let mut lines = Vec::new();
        for (id, question) in (0..).zip([ELICIT, ELICIT_URL, SAMPLE, ROOTS]) {
            lines.push(client.call("ask", &asking(&[question])).await);
            client.answer(id, r#"{"n":1.10}"#).await;
            lines.push(client.receive().await);
        }
        outputs.push(lines.join("\n"));
    }
    assert_snapshot!(same(&outputs), @r#"
    {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"who?"}}
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"n\":1.10}"}]}}
    {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":"url","url":"https://a.example"}}
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\"n\":1.10}"}]}}
    {"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{"maxTokens":1}}
    {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"{\"n\":1.10}"}]}}
    {"jsonrpc":"2.0","id":3,"method":"roots/list","params":{}}
    {"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"{\"n\":1.10}"}]}}
    "#);
}

/// The questions of a round are sent at once, and answered in any order; then comes the next round.
#[tokio::test]
async fn concurrent_requests_reach_the_client() {
    let gateway = TestGateway::new();
    let mut outputs = Vec::new();
    for transport in TRANSPORTS {
        let mut client = Client::new(&gateway, transport, LEGACY[3], ABLE).await;
        let questions = asking(&[&format!("{ELICIT},{SAMPLE}"), ROOTS]);
        let mut lines = vec![client.call("ask", &questions).await, client.receive().await];
        client.answer(1, r#"{"second":1}"#).await;
        client.answer(0, r#"{"first":1}"#).await;
        lines.push(client.receive().await);
        client.answer(2, r#"{"third":1}"#).await;
        lines.push(client.receive().await);
        outputs.push(lines.join("\n"));
    }
    assert_snapshot!(same(&outputs), @r#"
    {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"who?"}}
    {"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"maxTokens":1}}
    {"jsonrpc":"2.0","id":2,"method":"roots/list","params":{}}
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"first\":1} {\"second\":1} {\"third\":1}"}]}}
    "#);
}

const SAMPLE_TOOLS: &str = r#"{"method":"sampling/createMessage","params":{"tools":[]}}"#;
const SAMPLE_CHOICE: &str = r#"{"method":"sampling/createMessage","params":{"toolChoice":{"mode":"auto"}}}"#;

/// The declared capabilities decide which requests reach a client.
#[tokio::test]
async fn requests_need_declared_capabilities() {
    let gateway = TestGateway::new();
    let mut lines = Vec::new();
    for capabilities in [
        "{}",
        r#"{"elicitation":{}}"#,
        r#"{"elicitation":{"form":{}}}"#,
        r#"{"elicitation":{"url":{}}}"#,
        r#"{"sampling":{},"roots":{"listChanged":true}}"#,
        r#"{"sampling":{"tools":{}}}"#,
        r#"{"elicitation":true,"sampling":null,"roots":[]}"#,
    ] {
        let mut client = Client::on_pipe(&gateway, LEGACY[3], capabilities).await;
        let mut methods = Vec::new();
        for question in [ELICIT, ELICIT_URL, SAMPLE, SAMPLE_TOOLS, SAMPLE_CHOICE, ROOTS] {
            let received = client.call("try", &asking(&[question])).await;
            if received.contains(r#""method""#) {
                methods.push(received.split('"').nth(9).unwrap().to_owned());
                client.answer(methods.len() as u64 - 1, "{}").await;
                client.receive().await;
            }
        }
        lines.push(format!("{capabilities}: {}", methods.join(" ")));
    }
    assert_snapshot!(lines.join("\n"), @r#"
    {}: 
    {"elicitation":{}}: elicitation/create
    {"elicitation":{"form":{}}}: elicitation/create
    {"elicitation":{"url":{}}}: elicitation/create
    {"sampling":{},"roots":{"listChanged":true}}: sampling/createMessage roots/list
    {"sampling":{"tools":{}}}: sampling/createMessage sampling/createMessage sampling/createMessage
    {"elicitation":true,"sampling":null,"roots":[]}:
    "#);
}

/// Invalid answers, and the results of their calls.
#[tokio::test]
async fn invalid_answers_fail() {
    let gateway = TestGateway::new();
    let mut client = Client::on_pipe(&gateway, LEGACY[3], ABLE).await;
    let mut lines = Vec::new();
    for (id, answer) in [
        (0, r#""result":{"action":"decline"}"#),
        (1, r#""error":{"code":-1,"message":"No, thank you"}"#),
        (2, r#""error":"no error at all""#),
        (3, r#""result":7"#),
    ] {
        for tool in ["try", "ask"] {
            let id = 2 * id + u64::from(tool == "ask");
            client.call(tool, &asking(&[ELICIT])).await;
            // None of these ids matches.
            for other in [&id.to_string() as &str, "99", "null"] {
                let other = other.replace(&id.to_string(), &format!("\"{id}\""));
                client.send(&format!(r#"{{"jsonrpc":"2.0","id":{other},"result":{{}}}}"#)).await;
            }
            client.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#)).await;
            lines.push(client.receive().await);
        }
    }
    let mut unable = Client::on_pipe(&gateway, LEGACY[3], "{}").await;
    lines.push(unable.call("try", &asking(&[ELICIT, SAMPLE, ROOTS])).await);
    lines.push(unable.call("ask", &asking(&[ELICIT])).await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"action\":\"decline\"}"}]}}
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\"action\":\"decline\"}"}]}}
    {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"(the client refused: No, thank you)"}]}}
    {"jsonrpc":"2.0","id":4,"error":{"code":-32603,"message":"The client did not give what it was asked for","data":{"code":"execution_failed","reason":"the call failed","retryable":false}}}
    {"jsonrpc":"2.0","id":5,"result":{"content":[{"type":"text","text":"(the client refused: no message)"}]}}
    {"jsonrpc":"2.0","id":6,"error":{"code":-32603,"message":"The client did not give what it was asked for","data":{"code":"execution_failed","reason":"the call failed","retryable":false}}}
    {"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"7"}]}}
    {"jsonrpc":"2.0","id":8,"result":{"content":[{"type":"text","text":"7"}]}}
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"(the client does not support elicitation.form) (the client does not support sampling) (the client does not support roots)"}]}}
    {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"The client lacks a capability that this needs","data":{"code":"missing_capability","reason":"the client lacks a capability","retryable":false}}}
    "#);
}

/// A client without a session or a stream gets no requests.
#[tokio::test]
async fn client_without_session_or_stream_is_not_asked() {
    let gateway = TestGateway::new();
    let mut bare = Client::uninitialized(&gateway, Transport::Web, LEGACY[3], ABLE).await;
    let mut plain = Client::new(&gateway, Transport::Web, LEGACY[3], ABLE).await;
    plain.web().accept_json_only();
    let outputs = [bare.call("try", &asking(&[ELICIT])).await, plain.call("try", &asking(&[ELICIT])).await];
    assert_snapshot!(same(&outputs), @r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"(the client does not support elicitation.form)"}]}}"#);
}

/// Sessions use the same request ids; an answer counts in its own session.
#[tokio::test]
async fn answers_count_in_their_session() {
    let gateway = TestGateway::new();
    for transport in TRANSPORTS {
        let mut one = Client::new(&gateway, transport, LEGACY[3], ABLE).await;
        let mut two = Client::new(&gateway, transport, LEGACY[3], ABLE).await;
        let questions =
            [one.call("ask", &asking(&[ELICIT])).await, two.call("ask", &asking(&[ELICIT])).await];
        assert_eq!(questions[0], questions[1]);
        one.answer(0, r#"{"of":"one"}"#).await;
        assert!(one.receive().await.contains("of\\\":\\\"one"));
        one.answer(0, r#"{"of":"one"}"#).await;
        two.answer(0, r#"{"of":"two"}"#).await;
        assert!(two.receive().await.contains("of\\\":\\\"two"));
    }
}

#[tokio::test(start_paused = true)]
async fn unanswered_request_times_out() {
    let limits = FrontendLimits { ask_timeout: Duration::from_secs(100), ..FrontendLimits::default() };
    let gateway = TestGateway::with(Setup { limits, ..Setup::default() });
    let mut client = Client::on_pipe(&gateway, LEGACY[3], ABLE).await;
    client.send_request("tools/call", &tool_params("try", &asking(&[ELICIT]))).await;
    client.send_request("tools/call", &tool_params("ask", &asking(&[ELICIT]))).await;
    let received = client.receive_many(6).await;
    let mut lines: Vec<_> = received.lines().collect();
    lines.sort_unstable();
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"who?"}}
    {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"who?"}}
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"(the client did not answer in time)"}]}}
    {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"The client did not answer in time","data":{"code":"timeout","reason":"timed out after 60 s","retryable":true}}}
    {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}
    {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
    "#);
    // These answers are late.
    client.answer(0, "{}").await;
    client.answer(1, "{}").await;
    assert!(client.request("ping", "").await.contains(r#""result":{}"#));
}

/// A disconnect or a cancellation ends the call and withdraws its requests.
#[tokio::test]
async fn cancelled_calls_withdraw_requests() {
    for transport in TRANSPORTS {
        let gateway = TestGateway::new();
        let mut client = Client::new(&gateway, transport, LEGACY[3], ABLE).await;
        client.call("ask", &asking(&[ELICIT])).await;
        client.cancel(1).await;
        assert_eq!(gateway.ended(1).await, ["ask Err(Cancelled)"], "withdrawn over {transport:?}");
        let withdrawn = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}"#;
        assert_eq!(client.receive().await, withdrawn);
        let methods = client.call("ask", &asking(&[ELICIT])).await;
        assert!(methods.contains(r#""id":1"#), "{methods}");
        match transport {
            Transport::Web => client.disconnect(2),
            Transport::Pipe | Transport::Sse => drop(client),
        }
        assert_eq!(gateway.ended(2).await[1], "ask Err(Cancelled)", "gone over {transport:?}");
    }
}

/// After the end of its input a client can answer nothing: calls that ask it fail at once.
#[tokio::test(start_paused = true)]
async fn end_of_input_fails_requests() {
    let (go, gone) = watch::channel(false);
    let gateway = TestGateway::build(
        Setup { timeout: Duration::from_secs(1_000_000), ..Setup::default() },
        move |call| {
            let mut gone = gone.clone();
            async move {
                if &**call.target.name() == "wait" {
                    gone.wait_for(|gone| *gone).await.unwrap();
                }
                let methods = call
                    .client
                    .ask(InputRequest { kind: InputRequestKind::Roots, params: Object::new() })
                    .await;
                Ok(text(&format!("{methods:?}")))
            }
        },
    );
    let mut client = Client::on_pipe(&gateway, LEGACY[3], ABLE).await;
    client.call("ask", "").await;
    client.send_request("tools/call", &tool_params("wait", "")).await;
    client.request("ping", "").await;
    let start = tokio::time::Instant::now();
    let (received, ()) = tokio::join!(client.end(), async {
        gateway.ended(1).await;
        go.send_replace(true);
    });
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_snapshot!(received, @r#"
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Err(Gone)"}]}}
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"Err(Gone)"}]}}
    "#);
}

/// Running calls go on, and can be cancelled as before.
#[tokio::test]
async fn calls_survive_a_second_session() {
    let gateway = TestGateway::new();
    let mut client = Client::on_pipe(&gateway, LEGACY[3], ABLE).await;
    client.send_request("tools/call", &tool_params("wait", "")).await;
    client.request("initialize", r#""protocolVersion":"2025-06-18","capabilities":{}"#).await;
    client.cancel(1).await;
    assert_eq!(gateway.ended(1).await, ["wait Err(Cancelled)"]);
}

/// A second session withdraws the requests of the first one; late answers do not count for later requests.
#[tokio::test]
async fn second_session_withdraws_requests() {
    let gateway = TestGateway::new();
    let mut client = Client::on_pipe(&gateway, LEGACY[3], ABLE).await;
    client.call("try", &asking(&[ELICIT])).await;
    let mut lines = vec![
        client.request("initialize", r#""protocolVersion":"2025-06-18","capabilities":{"roots":{}}"#).await,
    ];
    lines.push(client.receive().await);
    lines.push(client.call("try", &asking(&[ROOTS])).await);
    client.answer(0, r#"{"late":1}"#).await;
    client.answer(1, r#"{"roots":[]}"#).await;
    lines.push(client.receive().await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}},"serverInfo":{"name":"gateway","version":"1"}}}
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"(the client cannot be asked)"}]}}
    {"jsonrpc":"2.0","id":1,"method":"roots/list","params":{}}
    {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"{\"roots\":[]}"}]}}
    "#);
}

/// A refused `initialize` opens no session: the current one goes on.
#[tokio::test]
async fn refused_initialize_keeps_the_session() {
    let gateway = TestGateway::new();
    let mut client = Client::on_pipe(&gateway, LEGACY[3], ABLE).await;
    client.call("ask", &asking(&[ROOTS])).await;
    assert!(client.request("initialize", "").await.contains("error"));
    client.answer(0, "{}").await;
    assert!(client.receive().await.contains("result"));
}

/// The number of open requests to a client is limited.
#[tokio::test]
async fn open_requests_are_limited() {
    let gateway = TestGateway::build(Setup::default(), |call| async move {
        let ask = || call.client.ask(InputRequest { kind: InputRequestKind::Roots, params: Object::new() });
        let answers = join_all((0..70).map(|_| ask())).await;
        Ok(text(&format!("{} answers", answers.iter().filter(|answer| answer.is_ok()).count())))
    });
    for transport in TRANSPORTS {
        let mut client = Client::new(&gateway, transport, LEGACY[3], ABLE).await;
        client.send_request("tools/call", &tool_params("ask", "")).await;
        for id in 0..64 {
            assert!(client.receive().await.contains(&format!(r#""id":{id},"method":"roots/list""#)));
        }
        for id in 0..64 {
            client.answer(id, "{}").await;
        }
        assert!(client.receive().await.contains("64 answers"));
    }
}

/// Changed roots of each session reach the backend, over every transport.
#[tokio::test]
async fn changed_roots_reach_the_backend() {
    let gateway = TestGateway::new();
    let outputs = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;
    let mut clients = Vec::new();
    for (times, transport) in (1..).zip(TRANSPORTS) {
        let mut client = Client::new(&gateway, transport, LEGACY[1], ABLE).await;
        client.send(outputs).await;
        assert_eq!(gateway.roots_changed(2 * times - 1).await, times);
        client.send(&format!("[{outputs}]")).await;
        assert_eq!(gateway.roots_changed(2 * times).await, times);
        clients.push(client);
    }
}
