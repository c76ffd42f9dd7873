//! A backend that asks and waits, and a client without a session: its request ends with what is needed, and is sent
//! again with the answers (2026-07-28, basic/patterns/mrtr).

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join;
use insta::assert_snapshot;
use tokio::sync::watch;
use tokio::time::advance;
use toolyard_core::{Ask, AskKind, Json, Notice, Object};
use toolyard_mcp::server::FrontendLimits;

use crate::client::{ABLE, Carrier, Client, ELICIT, ELICIT_URL, MODERN, ROOTS, SAMPLE, asking, tool_params};
use crate::script::text;
use crate::yard::{Setup, Yard};

const CARRIERS: [Carrier; 2] = [Carrier::Pipe, Carrier::Web];

/// The same request again, with the state that was given last, and these answers.
async fn retry(client: &mut Client, tool: &str, arguments: &str, answers: &str) -> String {
    let params = again(client, tool, arguments, answers);
    client.ask("tools/call", &params).await
}

/// The parameters of a retry.
fn again(client: &Client, tool: &str, arguments: &str, answers: &str) -> String {
    let state = client.last("requestState");
    format!(r#"{},"inputResponses":{{{answers}}},"requestState":"{state}""#, tool_params(tool, arguments))
}

#[tokio::test]
async fn each_kind_of_question() {
    let yard = Yard::new();
    let mut said = Vec::new();
    for carrier in CARRIERS {
        let mut client = Client::new(&yard, carrier, MODERN, ABLE).await;
        let mut lines = Vec::new();
        for (question, key) in [
            (ELICIT, "elicitation-1"),
            (ELICIT_URL, "elicitation-1"),
            (SAMPLE, "sampling-1"),
            (ROOTS, "roots-1"),
        ] {
            let arguments = asking(&[question]);
            lines.push(client.call("ask", &arguments).await);
            lines.push(retry(&mut client, "ask", &arguments, &format!(r#""{key}":{{"n":1.10}}"#)).await);
        }
        said.push(lines.join("\n"));
    }
    assert_eq!(said[0], said[1]);
    assert_snapshot!(said[0], @r#"
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"parked.<0>"}}
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\"n\":1.10}"}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":3,"result":{"resultType":"input_required","inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"mode":"url","url":"https://a.example"}}},"requestState":"parked.<1>"}}
    {"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"{\"n\":1.10}"}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":5,"result":{"resultType":"input_required","inputRequests":{"sampling-1":{"method":"sampling/createMessage","params":{"maxTokens":1}}},"requestState":"parked.<2>"}}
    {"jsonrpc":"2.0","id":6,"result":{"content":[{"type":"text","text":"{\"n\":1.10}"}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required","inputRequests":{"roots-1":{"method":"roots/list","params":{}}},"requestState":"parked.<3>"}}
    {"jsonrpc":"2.0","id":8,"result":{"content":[{"type":"text","text":"{\"n\":1.10}"}],"resultType":"complete"}}
    "#);
}

/// What can be asked for beside tools: prompts and resources, but no completions.
#[tokio::test]
async fn what_may_need_something() {
    let yard = Yard::new();
    let mut lines = Vec::new();
    for (method, params) in [
        ("prompts/get", r#""name":"greet""#),
        (
            "completion/complete",
            r#""ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"a","value":""}"#,
        ),
    ] {
        let mut client = Client::piped(&yard, MODERN, ABLE).await;
        let params = format!(r#"{params},"arguments":{{{}}}"#, asking(&[ROOTS]));
        lines.push(client.ask(method, &params).await);
        if lines.last().unwrap().contains("requestState") {
            let state = client.last("requestState");
            let answers = r#""inputResponses":{"roots-1":{"roots":[]}}"#;
            lines.push(client.ask(method, &format!(r#"{params},{answers},"requestState":"{state}""#)).await);
        }
    }
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"roots-1":{"method":"roots/list","params":{}}},"requestState":"parked.<0>"}}
    {"jsonrpc":"2.0","id":2,"result":{"description":"greet","messages":[],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The client did not give what it was asked for","data":{"code":"execution_failed","reason":"The client did not give what it was asked for","retryable":false}}}
    "#);
}

/// Two at once; one is answered, then what nobody asked, then the other; then comes a second round.
#[tokio::test]
async fn several_rounds() {
    let yard = Yard::new();
    let mut said = Vec::new();
    for carrier in CARRIERS {
        let mut client = Client::new(&yard, carrier, MODERN, ABLE).await;
        let arguments = asking(&[&format!("{ELICIT},{SAMPLE}"), ELICIT]);
        let mut lines = vec![client.call("ask", &arguments).await];
        for answers in [
            r#""sampling-2":{"second":1}"#,
            r#""sampling-2":{"again":1},"elicitation-7":{},"":{}"#,
            "",
            r#""elicitation-1":{"first":1},"other":7"#,
            r#""elicitation-3":{"third":1}"#,
        ] {
            lines.push(retry(&mut client, "ask", &arguments, answers).await);
        }
        said.push(lines.join("\n"));
    }
    assert_eq!(said[0], said[1]);
    assert_snapshot!(said[0], @r#"
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"message":"who?"}},"sampling-2":{"method":"sampling/createMessage","params":{"maxTokens":1}}},"requestState":"parked.<0>"}}
    {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"parked.<1>"}}
    {"jsonrpc":"2.0","id":3,"result":{"resultType":"input_required","inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"parked.<2>"}}
    {"jsonrpc":"2.0","id":4,"result":{"resultType":"input_required","inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"parked.<3>"}}
    {"jsonrpc":"2.0","id":5,"result":{"resultType":"input_required","inputRequests":{"elicitation-3":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"parked.<4>"}}
    {"jsonrpc":"2.0","id":6,"result":{"content":[{"type":"text","text":"{\"first\":1} {\"second\":1} {\"third\":1}"}],"resultType":"complete"}}
    "#);
}

/// Each request says for itself what its client can be asked.
#[tokio::test]
async fn what_a_retry_declares() {
    let yard = Yard::new();
    let mut client = Client::piped(&yard, MODERN, ABLE).await;
    let mut lines = Vec::new();
    let arguments = asking(&[ELICIT, SAMPLE]);
    client.call("try", &arguments).await;
    client.capabilities = r#"{"elicitation":{}}"#.to_owned();
    lines.push(retry(&mut client, "try", &arguments, r#""elicitation-1":{"n":1}"#).await);
    // What is open and cannot be asked any more is not shown again.
    client.call("try", &arguments).await;
    client.capabilities = r#"{"sampling":{}}"#.to_owned();
    lines.push(retry(&mut client, "try", &arguments, "").await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\"n\":1} (the client does not support sampling)"}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":4,"result":{"resultType":"input_required","inputRequests":{"sampling-2":{"method":"sampling/createMessage","params":{"maxTokens":1}}},"requestState":"parked.<2>"}}
    "#);
}

/// What is no object is no answer, and a client that says so nonetheless has refused.
#[tokio::test]
async fn answers_that_are_none() {
    let yard = Yard::new();
    let mut client = Client::piped(&yard, MODERN, ABLE).await;
    let mut lines = Vec::new();
    for answer in ["null", "7", r#"{"action":"decline"}"#, r#"[{"action":"accept"}]"#] {
        let arguments = asking(&[ELICIT]);
        client.call("try", &arguments).await;
        lines.push(retry(&mut client, "try", &arguments, &format!(r#""elicitation-1":{answer}"#)).await);
    }
    // Parameters that are malformed as a whole answer nothing.
    client.call("try", &asking(&[ELICIT])).await;
    let state = client.last("requestState");
    let params =
        format!(r#"{},"inputResponses":[],"requestState":"{state}""#, tool_params("try", &asking(&[ELICIT])));
    lines.push(client.ask("tools/call", &params).await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"(the client's answer does not fit: it is no object)"}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"(the client's answer does not fit: it is no object)"}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":6,"result":{"content":[{"type":"text","text":"{\"action\":\"decline\"}"}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":8,"result":{"content":[{"type":"text","text":"(the client's answer does not fit: it is no object)"}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":10,"result":{"resultType":"input_required","inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"parked.<5>"}}
    "#);
}

/// A state opens the call of the same request of the same client, once.
#[tokio::test]
async fn who_comes_with_a_state() {
    let yard = Yard::new();
    let mut client = Client::piped(&yard, MODERN, ABLE).await;
    let mut other = Client::piped(&yard, MODERN, ABLE).await;
    let arguments = asking(&[ROOTS]);
    client.call("ask", &arguments).await;
    let state = client.last("requestState");
    let answers = r#""inputResponses":{"roots-1":{}}"#;
    let right = format!(r#"{},{answers},"requestState":"{state}""#, tool_params("ask", &arguments));
    let mut lines = vec![other.ask("tools/call", &right).await];
    for (method, params) in [
        ("tools/call", right.replace("maxTokens", "most").replace("roots/list", "sampling/createMessage")),
        ("tools/call", right.replace("\"ask\":[[", "\"more\":1,\"ask\":[[")),
        ("tools/call", right.replace("\"name\":\"ask\"", "\"name\":\"try\"")),
        ("prompts/get", right.replace("\"name\":\"ask\"", "\"name\":\"greet\"")),
        ("tools/call", right.replace(&state, &format!("{state}0"))),
        ("tools/call", right.replace(&state, "parked.")),
        // As the right one, though its arguments are written in another order and with white space.
        ("tools/call", right.replace(r#""arguments":{"#, r#""arguments":{ "#)),
        ("tools/call", right.clone()),
    ] {
        lines.push(client.ask(method, &params).await);
    }
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`params.requestState` is unknown here, or too old"}}
    {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"`params.requestState` is unknown here, or too old"}}
    {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"`params.requestState` is unknown here, or too old"}}
    {"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"`params.requestState` is unknown here, or too old"}}
    {"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"`params.requestState` is unknown here, or too old"}}
    {"jsonrpc":"2.0","id":6,"error":{"code":-32602,"message":"`params.requestState` is unknown here, or too old"}}
    {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"`params.requestState` is unknown here, or too old"}}
    {"jsonrpc":"2.0","id":8,"result":{"content":[{"type":"text","text":"{}"}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"`params.requestState` is unknown here, or too old"}}
    "#);
}

/// Nobody on the web can be told from another; a state of another gateway is none here.
#[tokio::test]
async fn states_on_the_web() {
    let [yard, other] = [Yard::new(), Yard::new()];
    let arguments = asking(&[ROOTS]);
    let mut client = Client::new(&other, Carrier::Web, MODERN, ABLE).await;
    client.call("ask", &arguments).await;
    let state = client.last("requestState");
    let params = format!(r#"{},"requestState":"{state}""#, tool_params("ask", &arguments));
    let mut client = Client::new(&yard, Carrier::Web, MODERN, ABLE).await;
    assert_snapshot!(client.ask("tools/call", &params).await, @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`params.requestState` is unknown here, or too old"}}"#);
}

/// What a client has not declared with its request it is not asked, and a call that depends on it fails.
#[tokio::test]
async fn what_a_client_can_be_asked() {
    let yard = Yard::new();
    let mut lines = Vec::new();
    for carrier in CARRIERS {
        for capabilities in
            ["{}", r#"{"elicitation":{}}"#, r#"{"elicitation":{"url":{}},"sampling":{}}"#, r#"{"roots":{}}"#]
        {
            let mut client = Client::new(&yard, carrier, MODERN, capabilities).await;
            for question in [ELICIT, ELICIT_URL, SAMPLE, ROOTS] {
                lines.push(client.call("ask", &asking(&[question])).await);
            }
            lines.push(client.call("try", &asking(&[&format!("{ELICIT},{SAMPLE},{ROOTS}")])).await);
        }
    }
    // Each client has its own numbers.
    let said = lines.join("\n");
    let (piped, web) = said.split_at(said.find("400 ").unwrap());
    assert_eq!(piped.trim_end(), web.replace("400 ", ""));
    assert_snapshot!(web, @r#"
    400 {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"elicitation":{"form":{}}}}}}
    400 {"jsonrpc":"2.0","id":2,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"elicitation":{"url":{}}}}}}
    400 {"jsonrpc":"2.0","id":3,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"sampling":{}}}}}
    400 {"jsonrpc":"2.0","id":4,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"roots":{}}}}}
    {"jsonrpc":"2.0","id":5,"result":{"content":[{"type":"text","text":"(the client does not support elicitation.form) (the client does not support sampling) (the client does not support roots)"}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"parked.<0>"}}
    400 {"jsonrpc":"2.0","id":2,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"elicitation":{"url":{}}}}}}
    400 {"jsonrpc":"2.0","id":3,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"sampling":{}}}}}
    400 {"jsonrpc":"2.0","id":4,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"roots":{}}}}}
    {"jsonrpc":"2.0","id":5,"result":{"resultType":"input_required","inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"parked.<1>"}}
    400 {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"elicitation":{"form":{}}}}}}
    {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"mode":"url","url":"https://a.example"}}},"requestState":"parked.<0>"}}
    {"jsonrpc":"2.0","id":3,"result":{"resultType":"input_required","inputRequests":{"sampling-1":{"method":"sampling/createMessage","params":{"maxTokens":1}}},"requestState":"parked.<1>"}}
    400 {"jsonrpc":"2.0","id":4,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"roots":{}}}}}
    {"jsonrpc":"2.0","id":5,"result":{"resultType":"input_required","inputRequests":{"sampling-1":{"method":"sampling/createMessage","params":{"maxTokens":1}}},"requestState":"parked.<2>"}}
    400 {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"elicitation":{"form":{}}}}}}
    400 {"jsonrpc":"2.0","id":2,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"elicitation":{"url":{}}}}}}
    400 {"jsonrpc":"2.0","id":3,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"sampling":{}}}}}
    {"jsonrpc":"2.0","id":4,"result":{"resultType":"input_required","inputRequests":{"roots-1":{"method":"roots/list","params":{}}},"requestState":"parked.<0>"}}
    {"jsonrpc":"2.0","id":5,"result":{"resultType":"input_required","inputRequests":{"roots-1":{"method":"roots/list","params":{}}},"requestState":"parked.<1>"}}
    "#);
}

/// What a call says while it waits for its client is kept for when that comes back: the latest, as much as may wait.
#[tokio::test]
async fn what_is_said_to_a_client_that_is_away() {
    let limits = FrontendLimits { queued_notices: 3, ..FrontendLimits::default() };
    let said = Arc::new(watch::Sender::new(false));
    let (says, parked) = (said.clone(), watch::Sender::new(false));
    let waits = parked.subscribe();
    let yard = Yard::build(Setup { limits, ..Setup::default() }, move |call| {
        let (says, mut waits) = (says.clone(), waits.clone());
        async move {
            let tell = |number| {
                let progress = Object::new().with("progress", Json::integer(number));
                call.client.notify(Notice::Progress(progress));
            };
            let log = |level| {
                call.client.notify(Notice::Log(Object::new().with("level", Json::string(level))));
            };
            let speak = async {
                waits.wait_for(|waits| *waits).await.unwrap();
                (1..=2).for_each(tell);
                log("error");
                log("debug");
                (3..=4).for_each(tell);
                says.send_replace(true);
            };
            let ask = Ask { kind: AskKind::Roots, params: Object::new() };
            let (asked, ()) = join(call.client.ask(ask), speak).await;
            Ok(text(&format!("{}", asked.is_ok())))
        }
    });
    let mut heard = Vec::new();
    for carrier in CARRIERS {
        let mut client = Client::new(&yard, carrier, MODERN, ABLE).await;
        client.meta = r#""progressToken":"first","io.modelcontextprotocol/logLevel":"error""#;
        let mut lines = vec![client.call("ask", "").await];
        parked.send_replace(true);
        said.subscribe().wait_for(|said| *said).await.unwrap();
        client.meta = r#""progressToken":"second","io.modelcontextprotocol/logLevel":"error""#;
        lines.push(retry(&mut client, "ask", "", r#""roots-1":{}"#).await);
        lines.push(client.hear_all(3).await);
        heard.push(lines.join("\n"));
        parked.send_replace(false);
        said.send_replace(false);
    }
    assert_eq!(heard[0], heard[1]);
    assert_snapshot!(heard[0], @r#"
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"roots-1":{"method":"roots/list","params":{}}},"requestState":"parked.<0>"}}
    {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error"}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":3,"progressToken":"second"}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":4,"progressToken":"second"}}
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"true"}],"resultType":"complete"}}
    "#);
}

/// Progress and log of a call that goes on reach the request that it goes on with.
#[tokio::test]
async fn notices_follow_the_request() {
    let yard = Yard::build(Setup::default(), |call| async move {
        let tell = |number| {
            call.client.notify(Notice::Progress(Object::new().with("progress", Json::integer(number))));
        };
        tell(1);
        let asked = call.client.ask(Ask { kind: AskKind::Roots, params: Object::new() }).await;
        tell(2);
        Ok(text(&format!("{}", asked.is_ok())))
    });
    let mut said = Vec::new();
    for carrier in CARRIERS {
        let mut client = Client::new(&yard, carrier, MODERN, ABLE).await;
        client.meta = r#""progressToken":"first""#;
        let mut lines = vec![client.call("ask", "").await, client.hear().await];
        client.meta = r#""progressToken":"second""#;
        lines.push(retry(&mut client, "ask", "", r#""roots-1":{}"#).await);
        lines.push(client.hear().await);
        said.push(lines.join("\n"));
    }
    assert_eq!(said[0], said[1]);
    assert_snapshot!(said[0], @r#"
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":"first"}}
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"roots-1":{"method":"roots/list","params":{}}},"requestState":"parked.<0>"}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":2,"progressToken":"second"}}
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"true"}],"resultType":"complete"}}
    "#);
}

fn patient(ask_time: u64, parked_calls: usize) -> Setup {
    let ask_time = Duration::from_secs(ask_time);
    let limits = FrontendLimits { ask_time, parked_calls, ..FrontendLimits::default() };
    Setup { limits, ..Setup::default() }
}

/// A call waits for its client for as long as it may be asked. It takes nobody else's place meanwhile.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_come_back() {
    let yard = Yard::with(Setup { running: 1, ..patient(100, 10) });
    let mut client = Client::piped(&yard, MODERN, ABLE).await;
    let arguments = asking(&[ROOTS]);
    client.call("ask", &arguments).await;
    let params = again(&client, "ask", &arguments, r#""roots-1":{}"#);
    assert!(client.call("echo", "").await.contains("result"));
    advance(Duration::from_secs(99)).await;
    assert_eq!(yard.over(), ["echo Ok(true)"]);
    advance(Duration::from_secs(2)).await;
    assert_eq!(yard.ended(2).await.len(), 2);
    assert_snapshot!(client.ask("tools/call", &params).await, @r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"`params.requestState` is unknown here, or too old"}}"#);
}

/// A client that comes back and has nothing to say does not keep its call for longer than a question may be open.
#[tokio::test(start_paused = true)]
async fn a_client_that_comes_back_with_nothing() {
    let yard = Yard::with(Setup { running: 1, ..patient(100, 10) });
    let mut client = Client::piped(&yard, MODERN, ABLE).await;
    let arguments = asking(&[ROOTS]);
    let mut heard = client.call("try", &arguments).await;
    for _ in 0..3 {
        assert!(heard.contains("input_required"), "{heard}");
        advance(Duration::from_secs(40)).await;
        heard = retry(&mut client, "try", &arguments, "").await;
    }
    assert_snapshot!(heard, @r#"{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"(the client did not answer in time)"}],"resultType":"complete"}}"#);
}

/// What was answered in time is not lost, though another question was not.
#[tokio::test(start_paused = true)]
async fn a_backend_goes_on_while_its_client_is_away() {
    let (steps, step) = watch::channel(0);
    let yard = Yard::build(patient(100, 10), move |call| {
        let steps = steps.clone();
        async move {
            let ask = || call.client.ask(Ask { kind: AskKind::Roots, params: Object::new() });
            let work = async {
                ask().await.map_err(|error| error.to_string())?;
                for _ in 0..10 {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    steps.send_modify(|steps| *steps += 1);
                }
                Ok::<_, String>(())
            };
            let (worked, late) = tokio::join!(work, ask());
            Ok(text(&format!("{worked:?} {late:?}")))
        }
    });
    let mut client = Client::piped(&yard, MODERN, ABLE).await;
    client.call("ask", "").await;
    let heard = retry(&mut client, "ask", "", r#""roots-1":{}"#).await;
    assert!(heard.contains(r#""roots-2""#) && !heard.contains(r#""roots-1""#), "{heard}");
    step.clone().wait_for(|steps| *steps == 10).await.unwrap();
    let heard = retry(&mut client, "ask", "", r#""roots-2":{}"#).await;
    assert_snapshot!(heard, @r#"{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"Ok(()) Ok(Json(2 bytes))"}],"resultType":"complete"}}"#);
}

/// A backend may lose its interest in an answer: it is not asked for any more.
#[tokio::test(start_paused = true)]
async fn a_question_that_is_withdrawn() {
    let yard = Yard::build(patient(100, 10), |call| async move {
        let ask = |kind| call.client.ask(Ask { kind, params: Object::new() });
        let _late = tokio::time::timeout(Duration::from_secs(10), ask(AskKind::Elicit)).await;
        let asked = ask(AskKind::Roots).await;
        Ok(text(&format!("{}", asked.is_ok())))
    });
    let mut client = Client::piped(&yard, MODERN, ABLE).await;
    let mut lines = vec![client.call("ask", "").await];
    advance(Duration::from_secs(11)).await;
    lines.push(retry(&mut client, "ask", "", r#""elicitation-1":{}"#).await);
    lines.push(retry(&mut client, "ask", "", r#""roots-2":{}"#).await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{}}},"requestState":"parked.<0>"}}
    {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"roots-2":{"method":"roots/list","params":{}}},"requestState":"parked.<1>"}}
    {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"true"}],"resultType":"complete"}}
    "#);
}

#[tokio::test]
async fn too_many_parked_calls() {
    let yard = Yard::with(Setup { running: 3, ..patient(100, 2) });
    let mut client = Client::piped(&yard, MODERN, ABLE).await;
    let arguments = asking(&[ROOTS]);
    let mut lines = Vec::new();
    for _ in 0..3 {
        lines.push(client.call("ask", &arguments).await);
    }
    assert_eq!(yard.over(), ["ask Err(Cancelled)"], "its place is free again");
    assert_snapshot!(lines[2], @r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"Too many calls wait for their clients","data":{"code":"overloaded","reason":"Too many calls wait for their clients","retryable":true}}}"#);
}

/// What a client began that is gone is nobody's: its places are free at once.
#[tokio::test]
async fn who_leaves_while_it_is_asked() {
    let yard = Yard::new();
    for (count, dropped) in [(1, false), (2, true)] {
        let mut client = Client::piped(&yard, MODERN, ABLE).await;
        client.call("ask", &asking(&[ROOTS])).await;
        match dropped {
            true => drop(client),
            false => drop(client.end().await),
        }
        assert_eq!(yard.ended(count).await.len(), count);
    }
    // On the web the second request is the client's as much as the first one was.
    let mut client = Client::new(&yard, Carrier::Web, MODERN, ABLE).await;
    let arguments = asking(&[&format!("{ROOTS}],[{ROOTS}")]);
    client.call("ask", &arguments).await;
    assert_eq!(yard.over().len(), 2, "it waits");
}

/// A state of a backend's own goes on to it as it came, whatever it looks like: it may be the one of a yard behind
/// this one.
#[tokio::test]
async fn states_of_backends() {
    let yard = Yard::new();
    for carrier in CARRIERS {
        for prefix in ["", "parked.", "passed.", "parked.passed.parked."] {
            let mut client = Client::new(&yard, carrier, MODERN, ABLE).await;
            let arguments = format!(r#""prefix":"{prefix}","need":[{{"r":{ROOTS}}},{{"r":{ROOTS}}}]"#);
            client.call("need", &arguments).await;
            retry(&mut client, "need", &arguments, r#""r":{"n":1}"#).await;
            let heard = retry(&mut client, "need", &arguments, r#""r":{"n":2}"#).await;
            assert!(heard.contains(&format!(r#"{{\"r\":{{\"n\":2}}}} with {prefix}2""#)), "{heard}");
        }
    }
}
