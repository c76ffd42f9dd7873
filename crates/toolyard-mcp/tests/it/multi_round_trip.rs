//! A backend that asks and waits, with a modern client: its request ends with a result that asks for input, and is
//! repeated with the responses (2026-07-28, basic/patterns/mrtr).

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join;
use insta::assert_snapshot;
use tokio::sync::watch;
use tokio::time::advance;
use toolyard_core::{ClientNotification, InputRequest, InputRequestKind, Json, Object};
use toolyard_mcp::server::FrontendLimits;

use crate::client::{
    ABLE, Client, ELICIT, ELICIT_URL, MODERN, ROOTS, SAMPLE, Transport, asking, tool_params,
};
use crate::script::text;
use crate::test_gateway::{Setup, TestGateway};

const TRANSPORTS: [Transport; 2] = [Transport::Pipe, Transport::Web];

/// Repeats the request with the last state and these responses.
async fn retry(client: &mut Client, tool: &str, arguments: &str, answers: &str) -> String {
    let params = retry_params(client, tool, arguments, answers);
    client.request("tools/call", &params).await
}

/// Returns the parameters of a retry.
fn retry_params(client: &Client, tool: &str, arguments: &str, answers: &str) -> String {
    let state = client.last("requestState");
    format!(r#"{},"inputResponses":{{{answers}}},"requestState":"{state}""#, tool_params(tool, arguments))
}

#[tokio::test]
async fn each_kind_of_input_is_requested() {
    let gateway = TestGateway::new();
    let mut outputs = Vec::new();
    for transport in TRANSPORTS {
        let mut client = Client::new(&gateway, transport, MODERN, ABLE).await;
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
        outputs.push(lines.join("\n"));
    }
    assert_eq!(outputs[0], outputs[1]);
    assert_snapshot!(outputs[0], @r#"
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

/// Prompts and resources may ask for input, completions may not.
#[tokio::test]
async fn completions_cannot_ask_for_input() {
    let gateway = TestGateway::new();
    let mut lines = Vec::new();
    for (method, params) in [
        ("prompts/get", r#""name":"greet""#),
        (
            "completion/complete",
            r#""ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"a","value":""}"#,
        ),
    ] {
        let mut client = Client::on_pipe(&gateway, MODERN, ABLE).await;
        let params = format!(r#"{params},"arguments":{{{}}}"#, asking(&[ROOTS]));
        lines.push(client.request(method, &params).await);
        if lines.last().unwrap().contains("requestState") {
            let state = client.last("requestState");
            let answers = r#""inputResponses":{"roots-1":{"roots":[]}}"#;
            lines.push(
                client.request(method, &format!(r#"{params},{answers},"requestState":"{state}""#)).await,
            );
        }
    }
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"roots-1":{"method":"roots/list","params":{}}},"requestState":"parked.<0>"}}
    {"jsonrpc":"2.0","id":2,"result":{"description":"greet","messages":[],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The client did not give what it was asked for","data":{"code":"execution_failed","reason":"the call failed","retryable":false}}}
    "#);
}

/// Two questions at once, answered with partial, unknown and repeated responses; then a second round.
#[tokio::test]
async fn several_round_trips() {
    let gateway = TestGateway::new();
    let mut outputs = Vec::new();
    for transport in TRANSPORTS {
        let mut client = Client::new(&gateway, transport, MODERN, ABLE).await;
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
        outputs.push(lines.join("\n"));
    }
    assert_eq!(outputs[0], outputs[1]);
    assert_snapshot!(outputs[0], @r#"
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"message":"who?"}},"sampling-2":{"method":"sampling/createMessage","params":{"maxTokens":1}}},"requestState":"parked.<0>"}}
    {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"parked.<1>"}}
    {"jsonrpc":"2.0","id":3,"result":{"resultType":"input_required","inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"parked.<2>"}}
    {"jsonrpc":"2.0","id":4,"result":{"resultType":"input_required","inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"parked.<3>"}}
    {"jsonrpc":"2.0","id":5,"result":{"resultType":"input_required","inputRequests":{"elicitation-3":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"parked.<4>"}}
    {"jsonrpc":"2.0","id":6,"result":{"content":[{"type":"text","text":"{\"first\":1} {\"second\":1} {\"third\":1}"}],"resultType":"complete"}}
    "#);
}

/// Each request declares its own capabilities.
#[tokio::test]
async fn retry_declares_its_own_capabilities() {
    let gateway = TestGateway::new();
    let mut client = Client::on_pipe(&gateway, MODERN, ABLE).await;
    let mut lines = Vec::new();
    let arguments = asking(&[ELICIT, SAMPLE]);
    client.call("try", &arguments).await;
    client.capabilities = r#"{"elicitation":{}}"#.to_owned();
    lines.push(retry(&mut client, "try", &arguments, r#""elicitation-1":{"n":1}"#).await);
    // An open question without the capability is not repeated.
    client.call("try", &arguments).await;
    client.capabilities = r#"{"sampling":{}}"#.to_owned();
    lines.push(retry(&mut client, "try", &arguments, "").await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\"n\":1} (the client does not support sampling)"}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":4,"result":{"resultType":"input_required","inputRequests":{"sampling-2":{"method":"sampling/createMessage","params":{"maxTokens":1}}},"requestState":"parked.<2>"}}
    "#);
}

/// A response that is not an object is invalid, and the question counts as refused.
#[tokio::test]
async fn non_object_answers_are_refused() {
    let gateway = TestGateway::new();
    let mut client = Client::on_pipe(&gateway, MODERN, ABLE).await;
    let mut lines = Vec::new();
    for answer in ["null", "7", r#"{"action":"decline"}"#, r#"[{"action":"accept"}]"#] {
        let arguments = asking(&[ELICIT]);
        client.call("try", &arguments).await;
        lines.push(retry(&mut client, "try", &arguments, &format!(r#""elicitation-1":{answer}"#)).await);
    }
    // Malformed parameters answer nothing.
    client.call("try", &asking(&[ELICIT])).await;
    let state = client.last("requestState");
    let params =
        format!(r#"{},"inputResponses":[],"requestState":"{state}""#, tool_params("try", &asking(&[ELICIT])));
    lines.push(client.request("tools/call", &params).await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"(the client's answer does not fit: the response is not an object)"}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"(the client's answer does not fit: the response is not an object)"}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":6,"result":{"content":[{"type":"text","text":"{\"action\":\"decline\"}"}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":8,"result":{"content":[{"type":"text","text":"(the client's answer does not fit: the response is not an object)"}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":10,"result":{"resultType":"input_required","inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"parked.<5>"}}
    "#);
}

/// A state is valid for the same request of the same client, once.
#[tokio::test]
async fn state_is_bound_to_request_and_client() {
    let gateway = TestGateway::new();
    let mut client = Client::on_pipe(&gateway, MODERN, ABLE).await;
    let mut other = Client::on_pipe(&gateway, MODERN, ABLE).await;
    let arguments = asking(&[ROOTS]);
    client.call("ask", &arguments).await;
    let state = client.last("requestState");
    let answers = r#""inputResponses":{"roots-1":{}}"#;
    let right = format!(r#"{},{answers},"requestState":"{state}""#, tool_params("ask", &arguments));
    let mut lines = vec![other.request("tools/call", &right).await];
    for (method, params) in [
        ("tools/call", right.replace("maxTokens", "most").replace("roots/list", "sampling/createMessage")),
        ("tools/call", right.replace("\"ask\":[[", "\"more\":1,\"ask\":[[")),
        ("tools/call", right.replace("\"name\":\"ask\"", "\"name\":\"try\"")),
        ("prompts/get", right.replace("\"name\":\"ask\"", "\"name\":\"greet\"")),
        ("tools/call", right.replace(&state, &format!("{state}0"))),
        ("tools/call", right.replace(&state, "parked.")),
        // The right one, with another order of arguments and white space.
        ("tools/call", right.replace(r#""arguments":{"#, r#""arguments":{ "#)),
        ("tools/call", right.clone()),
    ] {
        lines.push(client.request(method, &params).await);
    }
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid or expired `params.requestState`"}}
    {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"invalid or expired `params.requestState`"}}
    {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"invalid or expired `params.requestState`"}}
    {"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"invalid or expired `params.requestState`"}}
    {"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"invalid or expired `params.requestState`"}}
    {"jsonrpc":"2.0","id":6,"error":{"code":-32602,"message":"invalid or expired `params.requestState`"}}
    {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"invalid or expired `params.requestState`"}}
    {"jsonrpc":"2.0","id":8,"result":{"content":[{"type":"text","text":"{}"}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"invalid or expired `params.requestState`"}}
    "#);
}

/// A state of another gateway is invalid.
#[tokio::test]
async fn state_of_another_gateway_is_invalid() {
    let [gateway, other] = [TestGateway::new(), TestGateway::new()];
    let arguments = asking(&[ROOTS]);
    let mut client = Client::new(&other, Transport::Web, MODERN, ABLE).await;
    client.call("ask", &arguments).await;
    let state = client.last("requestState");
    let params = format!(r#"{},"requestState":"{state}""#, tool_params("ask", &arguments));
    let mut client = Client::new(&gateway, Transport::Web, MODERN, ABLE).await;
    assert_snapshot!(client.request("tools/call", &params).await, @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid or expired `params.requestState`"}}"#);
}

/// A call that needs an undeclared capability fails.
#[tokio::test]
async fn undeclared_input_fails_the_call() {
    let gateway = TestGateway::new();
    let mut lines = Vec::new();
    for transport in TRANSPORTS {
        for capabilities in
            ["{}", r#"{"elicitation":{}}"#, r#"{"elicitation":{"url":{}},"sampling":{}}"#, r#"{"roots":{}}"#]
        {
            let mut client = Client::new(&gateway, transport, MODERN, capabilities).await;
            for question in [ELICIT, ELICIT_URL, SAMPLE, ROOTS] {
                lines.push(client.call("ask", &asking(&[question])).await);
            }
            lines.push(client.call("try", &asking(&[&format!("{ELICIT},{SAMPLE},{ROOTS}")])).await);
        }
    }
    // Each client has its own numbers.
    let outputs = lines.join("\n");
    let (on_pipe, web) = outputs.split_at(outputs.find("400 ").unwrap());
    assert_eq!(on_pipe.trim_end(), web.replace("400 ", ""));
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

/// Notifications of a suspended call are kept for the retry: the latest, up to the limit.
#[tokio::test]
async fn notifications_wait_for_the_retry() {
    let limits = FrontendLimits { max_queued_notices: 3, ..FrontendLimits::default() };
    let outputs = Arc::new(watch::Sender::new(false));
    let (says, parked) = (outputs.clone(), watch::Sender::new(false));
    let waits = parked.subscribe();
    let gateway = TestGateway::build(Setup { limits, ..Setup::default() }, move |call| {
        let (says, mut waits) = (says.clone(), waits.clone());
        async move {
            let tell = |number| {
                let progress = Object::new().with("progress", Json::integer(number));
                call.client.notify(ClientNotification::Progress(progress.into()));
            };
            let log = |level| {
                call.client
                    .notify(ClientNotification::Log(Object::new().with("level", Json::string(level)).into()));
            };
            let speak = async {
                waits.wait_for(|waits| *waits).await.unwrap();
                (1..=2).for_each(tell);
                log("error");
                log("debug");
                (3..=4).for_each(tell);
                says.send_replace(true);
            };
            let ask = InputRequest { kind: InputRequestKind::Roots, params: Object::new() };
            let (answer, ()) = join(call.client.ask(ask), speak).await;
            Ok(text(&format!("{}", answer.is_ok())))
        }
    });
    let mut received = Vec::new();
    for transport in TRANSPORTS {
        let mut client = Client::new(&gateway, transport, MODERN, ABLE).await;
        client.meta = r#""progressToken":"first","io.modelcontextprotocol/logLevel":"error""#;
        let mut lines = vec![client.call("ask", "").await];
        parked.send_replace(true);
        outputs.subscribe().wait_for(|outputs| *outputs).await.unwrap();
        client.meta = r#""progressToken":"second","io.modelcontextprotocol/logLevel":"error""#;
        lines.push(retry(&mut client, "ask", "", r#""roots-1":{}"#).await);
        lines.push(client.receive_many(3).await);
        received.push(lines.join("\n"));
        parked.send_replace(false);
        outputs.send_replace(false);
    }
    assert_eq!(received[0], received[1]);
    assert_snapshot!(received[0], @r#"
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"roots-1":{"method":"roots/list","params":{}}},"requestState":"parked.<0>"}}
    {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error"}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":3,"progressToken":"second"}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":4,"progressToken":"second"}}
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"true"}],"resultType":"complete"}}
    "#);
}

/// Notifications go to the latest request of the call.
#[tokio::test]
async fn notifications_follow_the_request() {
    let gateway = TestGateway::build(Setup::default(), |call| async move {
        let tell = |number| {
            call.client.notify(ClientNotification::Progress(
                Object::new().with("progress", Json::integer(number)).into(),
            ));
        };
        tell(1);
        let answer =
            call.client.ask(InputRequest { kind: InputRequestKind::Roots, params: Object::new() }).await;
        tell(2);
        Ok(text(&format!("{}", answer.is_ok())))
    });
    let mut outputs = Vec::new();
    for transport in TRANSPORTS {
        let mut client = Client::new(&gateway, transport, MODERN, ABLE).await;
        client.meta = r#""progressToken":"first""#;
        let mut lines = vec![client.call("ask", "").await, client.receive().await];
        client.meta = r#""progressToken":"second""#;
        lines.push(retry(&mut client, "ask", "", r#""roots-1":{}"#).await);
        lines.push(client.receive().await);
        outputs.push(lines.join("\n"));
    }
    assert_eq!(outputs[0], outputs[1]);
    assert_snapshot!(outputs[0], @r#"
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":"first"}}
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"roots-1":{"method":"roots/list","params":{}}},"requestState":"parked.<0>"}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":2,"progressToken":"second"}}
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"true"}],"resultType":"complete"}}
    "#);
}

fn with_limits(ask_time: u64, parked_calls: usize) -> Setup {
    let ask_time = Duration::from_secs(ask_time);
    let limits =
        FrontendLimits { ask_timeout: ask_time, suspended_calls: parked_calls, ..FrontendLimits::default() };
    Setup { limits, ..Setup::default() }
}

/// A suspended call waits until the ask timeout, without holding a permit.
#[tokio::test(start_paused = true)]
async fn suspended_call_times_out() {
    let gateway = TestGateway::with(Setup { running: 1, ..with_limits(100, 10) });
    let mut client = Client::on_pipe(&gateway, MODERN, ABLE).await;
    let arguments = asking(&[ROOTS]);
    client.call("ask", &arguments).await;
    let params = retry_params(&client, "ask", &arguments, r#""roots-1":{}"#);
    assert!(client.call("echo", "").await.contains("result"));
    advance(Duration::from_secs(99)).await;
    assert_eq!(gateway.over(), ["echo Ok(true)"]);
    advance(Duration::from_secs(2)).await;
    assert_eq!(gateway.ended(2).await.len(), 2);
    assert_snapshot!(client.request("tools/call", &params).await, @r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"invalid or expired `params.requestState`"}}"#);
}

/// A client that retries without responses does not extend the ask timeout.
#[tokio::test(start_paused = true)]
async fn empty_retries_do_not_extend_the_timeout() {
    let gateway = TestGateway::with(Setup { running: 1, ..with_limits(100, 10) });
    let mut client = Client::on_pipe(&gateway, MODERN, ABLE).await;
    let arguments = asking(&[ROOTS]);
    let mut received = client.call("try", &arguments).await;
    for _ in 0..3 {
        assert!(received.contains("input_required"), "{received}");
        advance(Duration::from_secs(40)).await;
        received = retry(&mut client, "try", &arguments, "").await;
    }
    assert_snapshot!(received, @r#"{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"(the client did not answer in time)"}],"resultType":"complete"}}"#);
}

/// An answer in time counts, even if another question times out.
#[tokio::test(start_paused = true)]
async fn suspended_backend_keeps_running() {
    let (steps, step) = watch::channel(0);
    let gateway = TestGateway::build(with_limits(100, 10), move |call| {
        let steps = steps.clone();
        async move {
            let ask =
                || call.client.ask(InputRequest { kind: InputRequestKind::Roots, params: Object::new() });
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
    let mut client = Client::on_pipe(&gateway, MODERN, ABLE).await;
    client.call("ask", "").await;
    let received = retry(&mut client, "ask", "", r#""roots-1":{}"#).await;
    assert!(received.contains(r#""roots-2""#) && !received.contains(r#""roots-1""#), "{received}");
    step.clone().wait_for(|steps| *steps == 10).await.unwrap();
    let received = retry(&mut client, "ask", "", r#""roots-2":{}"#).await;
    assert_snapshot!(received, @r#"{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"Ok(()) Ok(Json(2 bytes))"}],"resultType":"complete"}}"#);
}

/// A question that the backend withdraws disappears.
#[tokio::test(start_paused = true)]
async fn withdrawn_question_disappears() {
    let gateway = TestGateway::build(with_limits(100, 10), |call| async move {
        let ask = |kind| call.client.ask(InputRequest { kind, params: Object::new() });
        let _late = tokio::time::timeout(Duration::from_secs(10), ask(InputRequestKind::Elicit)).await;
        let answer = ask(InputRequestKind::Roots).await;
        Ok(text(&format!("{}", answer.is_ok())))
    });
    let mut client = Client::on_pipe(&gateway, MODERN, ABLE).await;
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
async fn suspended_calls_are_limited() {
    let gateway = TestGateway::with(Setup { running: 3, ..with_limits(100, 2) });
    let mut client = Client::on_pipe(&gateway, MODERN, ABLE).await;
    let arguments = asking(&[ROOTS]);
    let mut lines = Vec::new();
    for _ in 0..3 {
        lines.push(client.call("ask", &arguments).await);
    }
    assert_eq!(gateway.over(), ["ask Err(Cancelled)"], "its place is free again");
    assert_snapshot!(lines[2], @r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"Too many calls wait for their clients","data":{"code":"overloaded","reason":"a limit of the gateway is reached","retryable":true}}}"#);
}

/// A disconnect drops suspended calls and frees their permits at once.
#[tokio::test]
async fn disconnect_drops_suspended_calls() {
    let gateway = TestGateway::new();
    for (count, dropped) in [(1, false), (2, true)] {
        let mut client = Client::on_pipe(&gateway, MODERN, ABLE).await;
        client.call("ask", &asking(&[ROOTS])).await;
        match dropped {
            true => drop(client),
            false => drop(client.end().await),
        }
        assert_eq!(gateway.ended(count).await.len(), count);
    }
    // Over HTTP the requests of a client cannot be told from those of others.
    let mut client = Client::new(&gateway, Transport::Web, MODERN, ABLE).await;
    let arguments = asking(&[&format!("{ROOTS}],[{ROOTS}")]);
    client.call("ask", &arguments).await;
    assert_eq!(gateway.over().len(), 2, "it waits");
}

/// The state of a backend is passed unchanged, whatever it looks like: it may be that of another gateway behind this
/// one.
#[tokio::test]
async fn backend_states_are_escaped() {
    let gateway = TestGateway::new();
    for transport in TRANSPORTS {
        for prefix in ["", "parked.", "passed.", "parked.passed.parked."] {
            let mut client = Client::new(&gateway, transport, MODERN, ABLE).await;
            let arguments = format!(r#""prefix":"{prefix}","need":[{{"r":{ROOTS}}},{{"r":{ROOTS}}}]"#);
            client.call("need", &arguments).await;
            retry(&mut client, "need", &arguments, r#""r":{"n":1}"#).await;
            let received = retry(&mut client, "need", &arguments, r#""r":{"n":2}"#).await;
            assert!(received.contains(&format!(r#"{{\"r\":{{\"n\":2}}}} with {prefix}2""#)), "{received}");
        }
    }
}
