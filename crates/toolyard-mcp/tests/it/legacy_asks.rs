//! A backend that asks and waits, and a client with a session: it is asked by requests of the server.

use std::time::Duration;

use futures_util::future::join_all;
use insta::assert_snapshot;
use tokio::sync::watch;
use toolyard_core::{Ask, AskKind, Object};
use toolyard_mcp::server::FrontendLimits;

use crate::client::{ABLE, Carrier, Client, ELICIT, ELICIT_URL, LEGACY, ROOTS, SAMPLE, asking, tool_params};
use crate::script::text;
use crate::yard::{Setup, Yard};

const CARRIERS: [Carrier; 3] = [Carrier::Pipe, Carrier::Web, Carrier::Sse];

/// What clients of each carrier hear must be the same.
#[track_caller]
fn same(said: &[String]) -> &str {
    assert!(said.iter().all(|other| *other == said[0]), "{said:#?}");
    &said[0]
}

#[tokio::test]
async fn each_kind_of_question() {
    let yard = Yard::new();
    let mut said = Vec::new();
    for (carrier, revision) in [
        (Carrier::Pipe, LEGACY[3]),
        (Carrier::Web, LEGACY[1]),
        (Carrier::Web, LEGACY[3]),
        (Carrier::Sse, LEGACY[0]),
    ] {
        let mut client = Client::new(&yard, carrier, revision, ABLE).await;
        let mut lines = Vec::new();
        for (id, question) in (0..).zip([ELICIT, ELICIT_URL, SAMPLE, ROOTS]) {
            lines.push(client.call("ask", &asking(&[question])).await);
            client.answer(id, r#"{"n":1.10}"#).await;
            lines.push(client.hear().await);
        }
        said.push(lines.join("\n"));
    }
    assert_snapshot!(same(&said), @r#"
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

/// All of a round is asked at once, and answered in any order; then comes the next one.
#[tokio::test]
async fn several_questions() {
    let yard = Yard::new();
    let mut said = Vec::new();
    for carrier in CARRIERS {
        let mut client = Client::new(&yard, carrier, LEGACY[3], ABLE).await;
        let questions = asking(&[&format!("{ELICIT},{SAMPLE}"), ROOTS]);
        let mut lines = vec![client.call("ask", &questions).await, client.hear().await];
        client.answer(1, r#"{"second":1}"#).await;
        client.answer(0, r#"{"first":1}"#).await;
        lines.push(client.hear().await);
        client.answer(2, r#"{"third":1}"#).await;
        lines.push(client.hear().await);
        said.push(lines.join("\n"));
    }
    assert_snapshot!(same(&said), @r#"
    {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"who?"}}
    {"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"maxTokens":1}}
    {"jsonrpc":"2.0","id":2,"method":"roots/list","params":{}}
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"first\":1} {\"second\":1} {\"third\":1}"}]}}
    "#);
}

const SAMPLE_TOOLS: &str = r#"{"method":"sampling/createMessage","params":{"tools":[]}}"#;
const SAMPLE_CHOICE: &str = r#"{"method":"sampling/createMessage","params":{"toolChoice":{"mode":"auto"}}}"#;

/// What a client declared decides what it is asked: nothing else reaches it.
#[tokio::test]
async fn what_a_client_can_be_asked() {
    let yard = Yard::new();
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
        let mut client = Client::piped(&yard, LEGACY[3], capabilities).await;
        let mut asked = Vec::new();
        for question in [ELICIT, ELICIT_URL, SAMPLE, SAMPLE_TOOLS, SAMPLE_CHOICE, ROOTS] {
            let heard = client.call("try", &asking(&[question])).await;
            if heard.contains(r#""method""#) {
                asked.push(heard.split('"').nth(9).unwrap().to_owned());
                client.answer(asked.len() as u64 - 1, "{}").await;
                client.hear().await;
            }
        }
        lines.push(format!("{capabilities}: {}", asked.join(" ")));
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

/// Answers that are none, and what the call comes to.
#[tokio::test]
async fn what_a_client_answers() {
    let yard = Yard::new();
    let mut client = Client::piped(&yard, LEGACY[3], ABLE).await;
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
            // Neither of these answers it.
            for other in [&id.to_string() as &str, "99", "null"] {
                let other = other.replace(&id.to_string(), &format!("\"{id}\""));
                client.say(&format!(r#"{{"jsonrpc":"2.0","id":{other},"result":{{}}}}"#)).await;
            }
            client.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#)).await;
            lines.push(client.hear().await);
        }
    }
    let mut unable = Client::piped(&yard, LEGACY[3], "{}").await;
    lines.push(unable.call("try", &asking(&[ELICIT, SAMPLE, ROOTS])).await);
    lines.push(unable.call("ask", &asking(&[ELICIT])).await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"action\":\"decline\"}"}]}}
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\"action\":\"decline\"}"}]}}
    {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"(the client refused: No, thank you)"}]}}
    {"jsonrpc":"2.0","id":4,"error":{"code":-32603,"message":"The client did not give what it was asked for","data":{"code":"execution_failed","reason":"The client did not give what it was asked for","retryable":false}}}
    {"jsonrpc":"2.0","id":5,"result":{"content":[{"type":"text","text":"(the client refused: no message)"}]}}
    {"jsonrpc":"2.0","id":6,"error":{"code":-32603,"message":"The client did not give what it was asked for","data":{"code":"execution_failed","reason":"The client did not give what it was asked for","retryable":false}}}
    {"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"7"}]}}
    {"jsonrpc":"2.0","id":8,"result":{"content":[{"type":"text","text":"7"}]}}
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"(the client does not support elicitation.form) (the client does not support sampling) (the client does not support roots)"}]}}
    {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"The client lacks a capability that this needs","data":{"code":"missing_capability","reason":"The client lacks a capability that this needs","retryable":false}}}
    "#);
}

/// Without a session, or a stream to be asked on, there is nobody to ask.
#[tokio::test]
async fn who_cannot_be_asked() {
    let yard = Yard::new();
    let mut bare = Client::silent(&yard, Carrier::Web, LEGACY[3], ABLE).await;
    let mut plain = Client::new(&yard, Carrier::Web, LEGACY[3], ABLE).await;
    plain.web().wants_plain_answers();
    let said = [bare.call("try", &asking(&[ELICIT])).await, plain.call("try", &asking(&[ELICIT])).await];
    assert_snapshot!(same(&said), @r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"(the client does not support elicitation.form)"}]}}"#);
}

/// Sessions number their questions alike; an answer counts in its own.
#[tokio::test]
async fn answers_of_another_session() {
    let yard = Yard::new();
    for carrier in CARRIERS {
        let mut one = Client::new(&yard, carrier, LEGACY[3], ABLE).await;
        let mut two = Client::new(&yard, carrier, LEGACY[3], ABLE).await;
        let questions =
            [one.call("ask", &asking(&[ELICIT])).await, two.call("ask", &asking(&[ELICIT])).await];
        assert_eq!(questions[0], questions[1]);
        one.answer(0, r#"{"of":"one"}"#).await;
        assert!(one.hear().await.contains("of\\\":\\\"one"));
        one.answer(0, r#"{"of":"one"}"#).await;
        two.answer(0, r#"{"of":"two"}"#).await;
        assert!(two.hear().await.contains("of\\\":\\\"two"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_not_answered_in_time() {
    let limits = FrontendLimits { ask_time: Duration::from_secs(100), ..FrontendLimits::default() };
    let yard = Yard::with(Setup { limits, ..Setup::default() });
    let mut client = Client::piped(&yard, LEGACY[3], ABLE).await;
    client.request("tools/call", &tool_params("try", &asking(&[ELICIT]))).await;
    client.request("tools/call", &tool_params("ask", &asking(&[ELICIT]))).await;
    let heard = client.hear_all(6).await;
    let mut lines: Vec<_> = heard.lines().collect();
    lines.sort_unstable();
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"who?"}}
    {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"who?"}}
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"(the client did not answer in time)"}]}}
    {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"The client did not answer in time","data":{"code":"timeout","reason":"The client did not answer in time","retryable":true}}}
    {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}
    {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
    "#);
    // It is too late for these.
    client.answer(0, "{}").await;
    client.answer(1, "{}").await;
    assert!(client.ask("ping", "").await.contains(r#""result":{}"#));
}

/// Whoever leaves, or does not want its answer any more, is asked no more, and the call is over.
#[tokio::test]
async fn calls_of_who_does_not_wait() {
    for carrier in CARRIERS {
        let yard = Yard::new();
        let mut client = Client::new(&yard, carrier, LEGACY[3], ABLE).await;
        client.call("ask", &asking(&[ELICIT])).await;
        client.withdraw(1).await;
        assert_eq!(yard.ended(1).await, ["ask Err(Cancelled)"], "withdrawn over {carrier:?}");
        let withdrawn = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}"#;
        assert_eq!(client.hear().await, withdrawn);
        let asked = client.call("ask", &asking(&[ELICIT])).await;
        assert!(asked.contains(r#""id":1"#), "{asked}");
        match carrier {
            Carrier::Web => client.hang_up(2),
            Carrier::Pipe | Carrier::Sse => drop(client),
        }
        assert_eq!(yard.ended(2).await[1], "ask Err(Cancelled)", "gone over {carrier:?}");
    }
}

/// At the end of its input a client can answer nothing: calls that ask it end at once, now and later.
#[tokio::test(start_paused = true)]
async fn at_the_end_of_the_input() {
    let (go, gone) = watch::channel(false);
    let yard =
        Yard::build(Setup { timeout: Duration::from_secs(1_000_000), ..Setup::default() }, move |call| {
            let mut gone = gone.clone();
            async move {
                if &**call.target.name() == "wait" {
                    gone.wait_for(|gone| *gone).await.unwrap();
                }
                let asked = call.client.ask(Ask { kind: AskKind::Roots, params: Object::new() }).await;
                Ok(text(&format!("{asked:?}")))
            }
        });
    let mut client = Client::piped(&yard, LEGACY[3], ABLE).await;
    client.call("ask", "").await;
    client.request("tools/call", &tool_params("wait", "")).await;
    client.ask("ping", "").await;
    let start = tokio::time::Instant::now();
    let (heard, ()) = tokio::join!(client.end(), async {
        yard.ended(1).await;
        go.send_replace(true);
    });
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_snapshot!(heard, @r#"
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Err(Gone)"}]}}
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"Err(Gone)"}]}}
    "#);
}

/// What runs goes on, and can be withdrawn as before.
#[tokio::test]
async fn calls_of_the_first_session_on_a_pipe() {
    let yard = Yard::new();
    let mut client = Client::piped(&yard, LEGACY[3], ABLE).await;
    client.request("tools/call", &tool_params("wait", "")).await;
    client.ask("initialize", r#""protocolVersion":"2025-06-18","capabilities":{}"#).await;
    client.withdraw(1).await;
    assert_eq!(yard.ended(1).await, ["wait Err(Cancelled)"]);
}

/// Who opens another session is somebody else: what the first one was asked is not asked any more, and its late
/// answers are not taken for those to later questions.
#[tokio::test]
async fn a_second_session_on_the_same_pipe() {
    let yard = Yard::new();
    let mut client = Client::piped(&yard, LEGACY[3], ABLE).await;
    client.call("try", &asking(&[ELICIT])).await;
    let mut lines =
        vec![client.ask("initialize", r#""protocolVersion":"2025-06-18","capabilities":{"roots":{}}"#).await];
    lines.push(client.hear().await);
    lines.push(client.call("try", &asking(&[ROOTS])).await);
    client.answer(0, r#"{"late":1}"#).await;
    client.answer(1, r#"{"roots":[]}"#).await;
    lines.push(client.hear().await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}},"serverInfo":{"name":"yard","version":"1"}}}
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"(the client cannot be asked)"}]}}
    {"jsonrpc":"2.0","id":1,"method":"roots/list","params":{}}
    {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"{\"roots\":[]}"}]}}
    "#);
}

/// An `initialize` that is refused opens no session: the one before goes on.
#[tokio::test]
async fn a_second_session_that_is_refused() {
    let yard = Yard::new();
    let mut client = Client::piped(&yard, LEGACY[3], ABLE).await;
    client.call("ask", &asking(&[ROOTS])).await;
    assert!(client.ask("initialize", "").await.contains("error"));
    client.answer(0, "{}").await;
    assert!(client.hear().await.contains("result"));
}

/// A client is asked so much at once, and no more.
#[tokio::test]
async fn too_many_questions() {
    let yard = Yard::build(Setup::default(), |call| async move {
        let ask = || call.client.ask(Ask { kind: AskKind::Roots, params: Object::new() });
        let answers = join_all((0..70).map(|_| ask())).await;
        Ok(text(&format!("{} answers", answers.iter().filter(|answer| answer.is_ok()).count())))
    });
    for carrier in CARRIERS {
        let mut client = Client::new(&yard, carrier, LEGACY[3], ABLE).await;
        client.request("tools/call", &tool_params("ask", "")).await;
        for id in 0..64 {
            assert!(client.hear().await.contains(&format!(r#""id":{id},"method":"roots/list""#)));
        }
        for id in 0..64 {
            client.answer(id, "{}").await;
        }
        assert!(client.hear().await.contains("64 answers"));
    }
}

/// Backends hear of other folders of each session, whatever carries it.
#[tokio::test]
async fn folders_that_change() {
    let yard = Yard::new();
    let said = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;
    let mut clients = Vec::new();
    for (times, carrier) in (1..).zip(CARRIERS) {
        let mut client = Client::new(&yard, carrier, LEGACY[1], ABLE).await;
        client.say(said).await;
        assert_eq!(yard.roots_changed(2 * times - 1).await, times);
        client.say(&format!("[{said}]")).await;
        assert_eq!(yard.roots_changed(2 * times).await, times);
        clients.push(client);
    }
}
