//! A backend that ends with what it needs, and is called again with the answers.

use insta::assert_snapshot;
use toolyard_core::{Json, Object, Outcome};

use crate::client::{ABLE, Carrier, Client, ELICIT, ELICIT_URL, LEGACY, MODERN, ROOTS, SAMPLE, tool_params};
use crate::yard::{Setup, Yard};

/// The arguments with which a tool needs one set of answers after the other.
fn needing(rounds: &[&str]) -> String {
    format!(r#""need":[{}]"#, rounds.join(","))
}

/// A legacy client is asked by requests, all of a round at once.
#[tokio::test]
async fn of_a_legacy_client() {
    let yard = Yard::new();
    let mut said = Vec::new();
    for (carrier, revision) in
        [(Carrier::Pipe, LEGACY[3]), (Carrier::Web, LEGACY[3]), (Carrier::Sse, LEGACY[0])]
    {
        let mut client = Client::new(&yard, carrier, revision, ABLE).await;
        let rounds =
            [format!(r#"{{"a":{ELICIT},"b":{SAMPLE}}}"#), "{}".to_owned(), format!(r#"{{"a":{ROOTS}}}"#)];
        let mut lines = vec![client.call("need", &needing(&rounds.each_ref().map(|round| &**round))).await];
        lines.push(client.hear().await);
        client.answer(1, r#"{"n":1.10}"#).await;
        client.answer(0, r#"{"action":"decline"}"#).await;
        lines.push(client.hear().await);
        client.answer(2, r#"{"roots":[]}"#).await;
        lines.push(client.hear().await);
        said.push(lines.join("\n"));
    }
    assert!(said.iter().all(|other| *other == said[0]), "{said:#?}");
    assert_snapshot!(said[0], @r#"
    {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"who?"}}
    {"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"maxTokens":1}}
    {"jsonrpc":"2.0","id":2,"method":"roots/list","params":{}}
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"a\":{\"roots\":[]}} with 3"}]}}
    "#);
}

/// What stands in the way of a legacy client's answers.
#[tokio::test]
async fn of_a_legacy_client_in_vain() {
    let yard = Yard::new();
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
        let mut client = Client::piped(&yard, LEGACY[3], capabilities).await;
        lines.push(client.call("need", &needing(&[&need])).await);
    }
    let mut client = Client::piped(&yard, LEGACY[3], ABLE).await;
    client.call("need", &needing(&[&format!(r#"{{"a":{ROOTS}}}"#)])).await;
    client.say(r#"{"jsonrpc":"2.0","id":0,"error":{"code":-1,"message":"no"}}"#).await;
    lines.push(client.hear().await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The client lacks a capability that this needs","data":{"code":"missing_capability","reason":"The client lacks a capability that this needs","retryable":false}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The client lacks a capability that this needs","data":{"code":"missing_capability","reason":"The client lacks a capability that this needs","retryable":false}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The client lacks a capability that this needs","data":{"code":"missing_capability","reason":"The client lacks a capability that this needs","retryable":false}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"What the tool asks is malformed","data":{"code":"execution_failed","reason":"What the tool asks is malformed","retryable":false}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"What the tool asks is malformed","data":{"code":"execution_failed","reason":"What the tool asks is malformed","retryable":false}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"What the tool asks is malformed","data":{"code":"execution_failed","reason":"What the tool asks is malformed","retryable":false}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"What the tool asks is malformed","data":{"code":"execution_failed","reason":"What the tool asks is malformed","retryable":false}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The client did not give what it was asked for","data":{"code":"execution_failed","reason":"The client did not give what it was asked for","retryable":false}}}
    "#);
}

/// A question that is not wanted is withdrawn with the call, and so are those beside one that was refused.
#[tokio::test]
async fn what_is_asked_no_more() {
    let yard = Yard::new();
    let both = needing(&[&format!(r#"{{"a":{ELICIT},"b":{ROOTS}}}"#)]);
    let mut client = Client::piped(&yard, LEGACY[3], ABLE).await;
    client.request("tools/call", &tool_params("need", &both)).await;
    client.hear_all(2).await;
    client.withdraw(1).await;
    let mut lines = vec![client.hear_all(2).await];
    client.request("tools/call", &tool_params("need", &both)).await;
    client.hear_all(2).await;
    client.say(r#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"no"}}"#).await;
    lines.push(client.hear_all(2).await);
    lines.push(client.ask("ping", "").await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}
    {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
    {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
    {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"The client did not give what it was asked for","data":{"code":"execution_failed","reason":"The client did not give what it was asked for","retryable":false}}}
    {"jsonrpc":"2.0","id":3,"result":{}}
    "#);
}

/// A backend that never has enough is told so.
#[tokio::test]
async fn again_and_again() {
    let yard = Yard::build(Setup::default(), |_| async {
        let asked = Object::new().with("inputRequests", Object::new().to_json());
        Ok(Outcome::NeedsInput(asked.with("requestState", Json::string("more"))))
    });
    let mut client = Client::piped(&yard, LEGACY[3], ABLE).await;
    assert_snapshot!(client.call("need", "").await, @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The tool asks again and again","data":{"code":"execution_failed","reason":"The tool asks again and again","retryable":false}}}"#);
    assert_eq!(yard.over().len(), 17);
}

/// To a modern client it passes as it came, and so do its answers.
#[tokio::test]
async fn of_a_modern_client() {
    let yard = Yard::new();
    let mut said = Vec::new();
    for carrier in [Carrier::Pipe, Carrier::Web] {
        let mut client = Client::new(&yard, carrier, MODERN, ABLE).await;
        let arguments = needing(&[&format!(r#"{{"a":{ELICIT},"b":{{"method":"x/y","params":1.10}}}}"#)]);
        let mut lines = vec![client.call("need", &arguments).await];
        let call = tool_params("need", &arguments);
        for answers in
            [r#""inputResponses":{"a":{"n":1.10},"c":7},"requestState":"1""#, r#""requestState":"9""#]
        {
            lines.push(client.ask("tools/call", &format!("{call},{answers}")).await);
        }
        said.push(lines.join("\n"));
    }
    assert_eq!(said[0], said[1]);
    assert_snapshot!(said[0], @r#"
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"who?"}},"b":{"method":"x/y","params":1.10}},"requestState":"1"}}
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\"a\":{\"n\":1.10},\"c\":7} with 1"}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"nothing with 9"}],"resultType":"complete"}}
    "#);
}

/// A modern client is not asked for what it has not declared, whatever the backend says.
#[tokio::test]
async fn of_a_modern_client_in_vain() {
    let yard = Yard::new();
    let mut lines = Vec::new();
    for (capabilities, request) in [
        ("{}", ELICIT),
        (r#"{"elicitation":{}}"#, ELICIT_URL),
        (r#"{"elicitation":{"url":{}}}"#, ELICIT),
        (r#"{"elicitation":{}}"#, SAMPLE),
        (r#"{"sampling":{}}"#, r#"{"method":"sampling/createMessage","params":{"tools":[]}}"#),
        (r#"{"sampling":{}}"#, ROOTS),
    ] {
        let mut client = Client::new(&yard, Carrier::Web, MODERN, capabilities).await;
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

/// A backend that works as a task by itself, for a client that did not ask for that.
#[tokio::test]
async fn tasks_of_a_backend() {
    let task = r#"{"resultType":"task","taskId":"t","status":"working","createdAt":"","lastUpdatedAt":"","ttlMs":null}"#;
    let yard = Yard::build(Setup::default(), move |_| async move {
        Ok(Outcome::Task(Json::parse(task).unwrap().to_object().unwrap().into()))
    });
    let mut lines = Vec::new();
    for (revision, capabilities) in
        [(LEGACY[3], ABLE), (MODERN, "{}"), (MODERN, r#"{"sampling":{}}"#), (MODERN, ABLE)]
    {
        let mut client = Client::piped(&yard, revision, capabilities).await;
        lines.push(client.call("echo", "").await);
    }
    let mut client = Client::piped(&yard, MODERN, ABLE).await;
    lines.push(client.ask("prompts/get", r#""name":"greet""#).await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The server's task is malformed","data":{"code":"execution_failed","reason":"The server's task is malformed","retryable":false}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
    {"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"<0>","status":"working","createdAt":"","lastUpdatedAt":"","ttlMs":null}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The tool asks for something that this client cannot do","data":{"code":"execution_failed","reason":"The tool asks for something that this client cannot do","retryable":false}}}
    "#);
}

/// Who has no session can be asked for nothing.
#[tokio::test]
async fn of_a_client_without_a_session() {
    let yard = Yard::new();
    let mut client = Client::silent(&yard, Carrier::Web, LEGACY[3], ABLE).await;
    assert_snapshot!(client.call("need", &needing(&["{}"])).await, @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The tool asks for something that this client cannot do","data":{"code":"execution_failed","reason":"The tool asks for something that this client cannot do","retryable":false}}}"#);
}

/// Prompts and resources may need something, too; completions may not.
#[tokio::test]
async fn what_may_need_something() {
    let needed = format!(r#"{{"inputRequests":{{"a":{ROOTS}}},"requestState":"s"}}"#);
    let yard = Yard::build(Setup::default(), move |_| {
        let needed = Json::parse(needed.clone()).unwrap().to_object().unwrap();
        async move { Ok(Outcome::NeedsInput(needed)) }
    });
    let mut client = Client::piped(&yard, MODERN, ABLE).await;
    let mut lines = Vec::new();
    for (method, params) in [
        ("tools/call", r#""name":"need""#),
        ("prompts/get", r#""name":"greet""#),
        ("resources/read", r#""uri":"mem:one""#),
        ("completion/complete", r#""ref":{"type":"ref/prompt","name":"greet"}"#),
    ] {
        lines.push(client.ask(method, params).await);
    }
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"result":{"inputRequests":{"a":{"method":"roots/list","params":{}}},"requestState":"s","resultType":"input_required"}}
    {"jsonrpc":"2.0","id":2,"result":{"inputRequests":{"a":{"method":"roots/list","params":{}}},"requestState":"s","resultType":"input_required"}}
    {"jsonrpc":"2.0","id":3,"result":{"inputRequests":{"a":{"method":"roots/list","params":{}}},"requestState":"s","resultType":"input_required"}}
    {"jsonrpc":"2.0","id":4,"error":{"code":-32603,"message":"The tool asks for something that this client cannot do","data":{"code":"execution_failed","reason":"The tool asks for something that this client cannot do","retryable":false}}}
    "#);
}

/// A backend that is not done yet, and asks nothing, is called again after a while.
#[tokio::test(start_paused = true)]
async fn a_state_without_questions() {
    let yard = Yard::build(Setup::default(), |call| async move {
        let turns = call.params.get_str("requestState").map_or(0, |state| state.len());
        let later =
            format!(r#"{{"resultType":"input_required","requestState":"{}"}}"#, "x".repeat(turns + 1));
        Ok(match turns {
            30 => crate::script::text("done"),
            _ => Outcome::NeedsInput(Json::parse(later).unwrap().to_object().unwrap()),
        })
    });
    let mut client = Client::piped(&yard, LEGACY[3], ABLE).await;
    assert_snapshot!(client.call("echo", "").await, @r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}]}}"#);
}
