//! A backend that ends with a request for input, and is called again with the responses.

use insta::assert_snapshot;
use toolyard_core::{Json, Object, Outcome};

use crate::client::{
    ABLE, Client, ELICIT, ELICIT_URL, LEGACY, MODERN, ROOTS, SAMPLE, Transport, tool_params,
};
use crate::test_gateway::{Setup, TestGateway};

/// The arguments with which a tool needs one set of responses after the other.
fn needing(rounds: &[&str]) -> String {
    format!(r#""need":[{}]"#, rounds.join(","))
}

/// A legacy client gets the requests of a round at once.
#[tokio::test]
async fn legacy_client_is_asked() {
    let gateway = TestGateway::new();
    let mut outputs = Vec::new();
    for (transport, revision) in
        [(Transport::Pipe, LEGACY[3]), (Transport::Web, LEGACY[3]), (Transport::Sse, LEGACY[0])]
    {
        let mut client = Client::new(&gateway, transport, revision, ABLE).await;
        let rounds =
            [format!(r#"{{"a":{ELICIT},"b":{SAMPLE}}}"#), "{}".to_owned(), format!(r#"{{"a":{ROOTS}}}"#)];
        let mut lines = vec![client.call("need", &needing(&rounds.each_ref().map(|round| &**round))).await];
        lines.push(client.receive().await);
        client.answer(1, r#"{"n":1.10}"#).await;
        client.answer(0, r#"{"action":"decline"}"#).await;
        lines.push(client.receive().await);
        client.answer(2, r#"{"roots":[]}"#).await;
        lines.push(client.receive().await);
        outputs.push(lines.join("\n"));
    }
    assert!(outputs.iter().all(|other| *other == outputs[0]), "{outputs:#?}");
    assert_snapshot!(outputs[0], @r#"
    {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"who?"}}
    {"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"maxTokens":1}}
    {"jsonrpc":"2.0","id":2,"method":"roots/list","params":{}}
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"a\":{\"roots\":[]}} with 3"}]}}
    "#);
}

/// Requests that a legacy client does not support or that are malformed, and a refusal.
#[tokio::test]
async fn legacy_client_cannot_answer() {
    let gateway = TestGateway::new();
    let mut lines = Vec::new();
    for (capabilities, need) in [
        ("{}", format!(r#"{{"a":{ELICIT}}}"#)),
        (r#"{"elicitation":{}}"#, format!(r#"{{"a":{ELICIT_URL}}}"#)),
        (r#"{"elicitation":{}}"#, format!(r#"{{"a":{SAMPLE}}}"#)),
        (ABLE, r#"{"a":{"method":"tools/call","params":{}}}"#.to_owned()),
        (ABLE, r#"{"a":{"method":"roots/list","params":7}}"#.to_owned()),
        (ABLE, r#"{"a":7}"#.to_owned()),
        (ABLE, "7".to_owned()),
    ] {
        let mut client = Client::on_pipe(&gateway, LEGACY[3], capabilities).await;
        lines.push(client.call("need", &needing(&[&need])).await);
    }
    let mut client = Client::on_pipe(&gateway, LEGACY[3], ABLE).await;
    client.call("need", &needing(&[&format!(r#"{{"a":{ROOTS}}}"#)])).await;
    client.send(r#"{"jsonrpc":"2.0","id":0,"error":{"code":-1,"message":"no"}}"#).await;
    lines.push(client.receive().await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The client lacks a capability that this needs","data":{"code":"missing_capability","reason":"the client lacks a capability","retryable":false}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The client lacks a capability that this needs","data":{"code":"missing_capability","reason":"the client lacks a capability","retryable":false}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The client lacks a capability that this needs","data":{"code":"missing_capability","reason":"the client lacks a capability","retryable":false}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The tool's request for input is malformed","data":{"code":"execution_failed","reason":"the call failed","retryable":false}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The tool's request for input is malformed","data":{"code":"execution_failed","reason":"the call failed","retryable":false}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The tool's request for input is malformed","data":{"code":"execution_failed","reason":"the call failed","retryable":false}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The tool's request for input is malformed","data":{"code":"execution_failed","reason":"the call failed","retryable":false}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The client did not give what it was asked for","data":{"code":"execution_failed","reason":"the call failed","retryable":false}}}
    "#);
}

/// A cancelled call withdraws its requests, and so does a call with a refused one.
#[tokio::test]
async fn failed_call_withdraws_requests() {
    let gateway = TestGateway::new();
    let both = needing(&[&format!(r#"{{"a":{ELICIT},"b":{ROOTS}}}"#)]);
    let mut client = Client::on_pipe(&gateway, LEGACY[3], ABLE).await;
    client.send_request("tools/call", &tool_params("need", &both)).await;
    client.receive_many(2).await;
    client.cancel(1).await;
    let mut lines = vec![client.receive_many(2).await];
    client.send_request("tools/call", &tool_params("need", &both)).await;
    client.receive_many(2).await;
    client.send(r#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"no"}}"#).await;
    lines.push(client.receive_many(2).await);
    lines.push(client.request("ping", "").await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}
    {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
    {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
    {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"The client did not give what it was asked for","data":{"code":"execution_failed","reason":"the call failed","retryable":false}}}
    {"jsonrpc":"2.0","id":3,"result":{}}
    "#);
}

/// The number of round trips is limited.
#[tokio::test]
async fn round_trips_are_limited() {
    let gateway = TestGateway::build(Setup::default(), |_| async {
        let question = Object::new().with("inputRequests", Object::new().to_json());
        Ok(Outcome::NeedsInput(question.with("requestState", Json::string("more"))))
    });
    let mut client = Client::on_pipe(&gateway, LEGACY[3], ABLE).await;
    assert_snapshot!(client.call("need", "").await, @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The tool asks for input too often","data":{"code":"execution_failed","reason":"the call failed","retryable":false}}}"#);
    assert_eq!(gateway.over().len(), 17);
}

/// A modern client gets the request unchanged, and so does the backend the responses.
#[tokio::test]
async fn modern_client_gets_requests_unchanged() {
    let gateway = TestGateway::new();
    let mut outputs = Vec::new();
    for transport in [Transport::Pipe, Transport::Web] {
        let mut client = Client::new(&gateway, transport, MODERN, ABLE).await;
        let arguments = needing(&[&format!(r#"{{"a":{ELICIT},"b":{{"method":"x/y","params":1.10}}}}"#)]);
        let mut lines = vec![client.call("need", &arguments).await];
        let call = tool_params("need", &arguments);
        for answers in
            [r#""inputResponses":{"a":{"n":1.10},"c":7},"requestState":"1""#, r#""requestState":"9""#]
        {
            lines.push(client.request("tools/call", &format!("{call},{answers}")).await);
        }
        outputs.push(lines.join("\n"));
    }
    assert_eq!(outputs[0], outputs[1]);
    assert_snapshot!(outputs[0], @r#"
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"who?"}},"b":{"method":"x/y","params":1.10}},"requestState":"1"}}
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\"a\":{\"n\":1.10},\"c\":7} with 1"}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"nothing with 9"}],"resultType":"complete"}}
    "#);
}

/// A modern client gets no requests without the declared capability.
#[tokio::test]
async fn modern_client_lacks_capability() {
    let gateway = TestGateway::new();
    let mut lines = Vec::new();
    for (capabilities, request) in [
        ("{}", ELICIT),
        (r#"{"elicitation":{}}"#, ELICIT_URL),
        (r#"{"elicitation":{"url":{}}}"#, ELICIT),
        (r#"{"elicitation":{}}"#, SAMPLE),
        (r#"{"sampling":{}}"#, r#"{"method":"sampling/createMessage","params":{"tools":[]}}"#),
        (r#"{"sampling":{}}"#, ROOTS),
    ] {
        let mut client = Client::new(&gateway, Transport::Web, MODERN, capabilities).await;
        lines.push(client.call("need", &needing(&[&format!(r#"{{"a":{request}}}"#)])).await);
    }
    assert_snapshot!(lines.join("\n"), @r#"
    400 {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"elicitation":{"form":{}}}}}}
    400 {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"elicitation":{"url":{}}}}}}
    400 {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"elicitation":{"form":{}}}}}}
    400 {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"sampling":{}}}}}
    400 {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"sampling":{"tools":{}}}}}}
    400 {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"roots":{}}}}}
    "#);
}

/// A backend that creates a task for a client without the extension.
#[tokio::test]
async fn backend_tasks_need_the_extension() {
    let task = r#"{"resultType":"task","taskId":"t","status":"working","createdAt":"","lastUpdatedAt":"","ttlMs":null}"#;
    let gateway = TestGateway::build(Setup::default(), move |_| async move {
        Ok(Outcome::Task(Json::parse(task).unwrap().to_object().unwrap().into()))
    });
    let mut lines = Vec::new();
    for (revision, capabilities) in
        [(LEGACY[3], ABLE), (MODERN, "{}"), (MODERN, r#"{"sampling":{}}"#), (MODERN, ABLE)]
    {
        let mut client = Client::on_pipe(&gateway, revision, capabilities).await;
        lines.push(client.call("echo", "").await);
    }
    let mut client = Client::on_pipe(&gateway, MODERN, ABLE).await;
    lines.push(client.request("prompts/get", r#""name":"greet""#).await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The server's task is malformed","data":{"code":"execution_failed","reason":"the call failed","retryable":false}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"<0>","status":"working","createdAt":"","lastUpdatedAt":"","ttlMs":null}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The tool needs something that this client does not support","data":{"code":"execution_failed","reason":"the call failed","retryable":false}}}
    "#);
}

/// A client without a session cannot be asked.
#[tokio::test]
async fn client_without_session_is_not_asked() {
    let gateway = TestGateway::new();
    let mut client = Client::uninitialized(&gateway, Transport::Web, LEGACY[3], ABLE).await;
    assert_snapshot!(client.call("need", &needing(&["{}"])).await, @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The tool needs something that this client does not support","data":{"code":"execution_failed","reason":"the call failed","retryable":false}}}"#);
}

/// Prompts and resources may ask for input; completions may not.
#[tokio::test]
async fn completions_cannot_ask_for_input() {
    let needed = format!(r#"{{"inputRequests":{{"a":{ROOTS}}},"requestState":"s"}}"#);
    let gateway = TestGateway::build(Setup::default(), move |_| {
        let needed = Json::parse(needed.clone()).unwrap().to_object().unwrap();
        async move { Ok(Outcome::NeedsInput(needed)) }
    });
    let mut client = Client::on_pipe(&gateway, MODERN, ABLE).await;
    let mut lines = Vec::new();
    for (method, params) in [
        ("tools/call", r#""name":"need""#),
        ("prompts/get", r#""name":"greet""#),
        ("resources/read", r#""uri":"mem:one""#),
        ("completion/complete", r#""ref":{"type":"ref/prompt","name":"greet"}"#),
    ] {
        lines.push(client.request(method, params).await);
    }
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"result":{"inputRequests":{"a":{"method":"roots/list","params":{}}},"requestState":"s","resultType":"input_required"}}
    {"jsonrpc":"2.0","id":2,"result":{"inputRequests":{"a":{"method":"roots/list","params":{}}},"requestState":"s","resultType":"input_required"}}
    {"jsonrpc":"2.0","id":3,"result":{"inputRequests":{"a":{"method":"roots/list","params":{}}},"requestState":"s","resultType":"input_required"}}
    {"jsonrpc":"2.0","id":4,"error":{"code":-32603,"message":"The tool needs something that this client does not support","data":{"code":"execution_failed","reason":"the call failed","retryable":false}}}
    "#);
}

/// A backend that asks for no input is polled.
#[tokio::test(start_paused = true)]
async fn state_without_requests_is_polled() {
    let gateway = TestGateway::build(Setup::default(), |call| async move {
        let turns = call.params.get_str("requestState").map_or(0, |state| state.len());
        let later =
            format!(r#"{{"resultType":"input_required","requestState":"{}"}}"#, "x".repeat(turns + 1));
        Ok(match turns {
            30 => crate::script::text("done"),
            _ => Outcome::NeedsInput(Json::parse(later).unwrap().to_object().unwrap()),
        })
    });
    let mut client = Client::on_pipe(&gateway, LEGACY[3], ABLE).await;
    assert_snapshot!(client.call("echo", "").await, @r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}]}}"#);
}
