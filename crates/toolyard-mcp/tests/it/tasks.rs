//! Calls that go on after their answer: the tasks extension (SEP-2663).

use std::time::Duration;

use insta::assert_snapshot;
use tokio::sync::watch;
use tokio::time::advance;
use toolyard_core::{Ask, AskKind, Call, Code, Json, Object, Outcome, Output, ToolError};
use toolyard_mcp::server::FrontendLimits;

use crate::client::{ABLE, Carrier, Client, ELICIT, LEGACY, MODERN, ROOTS, SAMPLE, asking, tool_params};
use crate::script::text;
use crate::yard::{Ended, Setup, Yard};

const TASKS: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

/// A setup in which whatever takes any time becomes a task.
fn eager(tasks: usize) -> Setup {
    let limits = FrontendLimits { tasks, task_after: Duration::ZERO, ..FrontendLimits::default() };
    Setup { limits, ..Setup::default() }
}

/// A yard whose calls take until they are told to end: as their arguments say.
fn waiting(tasks: usize) -> (Yard, watch::Sender<bool>) {
    let (go, gone) = watch::channel(false);
    let yard = Yard::build(eager(tasks), move |call| {
        let mut gone = gone.clone();
        async move {
            gone.wait_for(|gone| *gone).await.unwrap();
            end(&call).await
        }
    });
    (yard, go)
}

async fn end(call: &Call) -> Ended {
    let arguments = call.arguments().map_or("{}", Json::as_text);
    match arguments {
        r#"{"end":"fail"}"# => Err(ToolError::new(Code::Unavailable, "It is down")),
        r#"{"end":"refuse"}"# => Ok(Outcome::Done(Output::failure("no"))),
        r#"{"end":"panic"}"# => panic!("the end"),
        r#"{"end":"never"}"# => std::future::pending().await,
        _ => Ok(text(arguments)),
    }
}

/// Begins a task; gives its id.
async fn begin(client: &mut Client, arguments: &str) -> String {
    let heard = client.call("may", arguments).await;
    assert!(heard.contains(r#""resultType":"task""#), "{heard}");
    client.last("taskId")
}

async fn ask(client: &mut Client, method: &str, task: &str) -> String {
    client.ask(method, &format!(r#""taskId":"{task}""#)).await
}

/// Looks after a task until it is as expected.
async fn until(client: &mut Client, task: &str, expected: &str) -> String {
    loop {
        let heard = ask(client, "tasks/get", task).await;
        if heard.contains(expected) {
            return heard;
        }
        tokio::task::yield_now().await;
    }
}

/// What was heard, without the ids of requests: they differ with how often a task was looked after.
fn without_ids(lines: &[String]) -> String {
    let without = |line: &String| {
        let (_head, rest) = line.split_once(r#","id":"#).unwrap();
        rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',').to_owned()
    };
    lines.iter().map(without).collect::<Vec<_>>().join("\n")
}

/// Whether a call becomes a task is up to its tool, and to its client.
#[tokio::test]
async fn who_takes_tasks() {
    let (yard, go) = waiting(100);
    let mut lines = Vec::new();
    for capabilities in ["{}", r#"{"extensions":{}}"#, r#"{"tasks":{}}"#, TASKS] {
        for tool in ["echo", "may", "must"] {
            let mut client = Client::new(&yard, Carrier::Web, MODERN, capabilities).await;
            let id = client
                .request("tools/call", &format!(r#"{},"task":{{"ttl":1}}"#, tool_params(tool, "")))
                .await;
            // A call that is no task waits for this.
            go.send_replace(capabilities != TASKS || tool == "echo");
            let heard = client.hear().await;
            assert!(heard.contains(&format!(r#""id":{id}"#)));
            lines.push(format!("{tool} {capabilities}: {}", heard.split_once(r#""id":1,"#).unwrap().1));
        }
    }
    assert_snapshot!(lines.join("\n"), @r#"
    echo {}: "result":{"content":[{"type":"text","text":"{}"}],"resultType":"complete"}}
    may {}: "result":{"content":[{"type":"text","text":"{}"}],"resultType":"complete"}}
    must {}: "error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
    echo {"extensions":{}}: "result":{"content":[{"type":"text","text":"{}"}],"resultType":"complete"}}
    may {"extensions":{}}: "result":{"content":[{"type":"text","text":"{}"}],"resultType":"complete"}}
    must {"extensions":{}}: "error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
    echo {"tasks":{}}: "result":{"content":[{"type":"text","text":"{}"}],"resultType":"complete"}}
    may {"tasks":{}}: "result":{"content":[{"type":"text","text":"{}"}],"resultType":"complete"}}
    must {"tasks":{}}: "error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
    echo {"extensions":{"io.modelcontextprotocol/tasks":{}}}: "result":{"content":[{"type":"text","text":"{}"}],"resultType":"complete"}}
    may {"extensions":{"io.modelcontextprotocol/tasks":{}}}: "result":{"resultType":"task","taskId":"<0>","status":"working","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000}}
    must {"extensions":{"io.modelcontextprotocol/tasks":{}}}: "result":{"resultType":"task","taskId":"<0>","status":"working","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000}}
    "#);
}

/// Whether a tool may be a task is known once its owner has had its time to answer.
#[tokio::test]
async fn tools_that_are_not_heard_of_yet() {
    let yard = Yard::with(Setup { settled: false, ..eager(100) });
    for capabilities in ["{}", r#"{"sampling":{}}"#] {
        let mut client = Client::piped(&yard, MODERN, capabilities).await;
        client.request("tools/call", &tool_params("must", "")).await;
        client.ask("server/discover", "").await;
        yard.offer(crate::script::OFFERED);
        assert!(client.hear().await.contains("-32021"), "{capabilities}");
        yard.unsettle();
    }
}

/// What is over at once is answered at once.
#[tokio::test]
async fn quick_calls() {
    let yard = Yard::with(eager(0));
    let mut client = Client::piped(&yard, MODERN, TASKS).await;
    let mut lines = vec![client.call("may", "").await, client.call("must", "").await];
    lines.push(client.call("may", &asking(&[ROOTS])).await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":""}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":""}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":3,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"roots":{}}}}}
    "#);
}

/// A legacy client knows nothing of this extension.
#[tokio::test]
async fn legacy_clients() {
    let yard = Yard::with(eager(100));
    let mut client = Client::piped(&yard, LEGACY[3], TASKS).await;
    assert_snapshot!(client.call("must", "").await, @r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":""}]}}"#);
}

#[tokio::test]
async fn how_tasks_end() {
    let mut said = Vec::new();
    for carrier in [Carrier::Pipe, Carrier::Web] {
        let (yard, go) = waiting(100);
        let mut client = Client::new(&yard, carrier, MODERN, TASKS).await;
        let mut tasks = Vec::new();
        let ends = ["", r#""end":"refuse""#, r#""end":"fail""#, r#""end":"panic""#];
        let mut lines = Vec::new();
        for arguments in ends {
            tasks.push(begin(&mut client, arguments).await);
        }
        lines.push(ask(&mut client, "tasks/get", &tasks[0]).await);
        go.send_replace(true);
        for task in &tasks {
            lines.push(until(&mut client, task, r#"ed","createdAt""#).await);
            // To cancel what is over changes nothing.
            lines.push(ask(&mut client, "tasks/cancel", task).await);
            let after = ask(&mut client, "tasks/get", task).await;
            let status = |heard: &str| heard.split(r#""status""#).nth(1).unwrap().to_owned();
            assert_eq!(status(&after), status(&lines[lines.len() - 2]));
        }
        said.push(without_ids(&lines));
    }
    assert_eq!(said[0], said[1]);
    assert_snapshot!(said[0], @r#"
    "result":{"resultType":"complete","taskId":"<0>","status":"working","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000}}
    "result":{"resultType":"complete","taskId":"<0>","status":"completed","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000,"result":{"content":[{"type":"text","text":"{}"}],"resultType":"complete"}}}
    "result":{"resultType":"complete"}}
    "result":{"resultType":"complete","taskId":"<1>","status":"completed","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000,"result":{"content":[{"type":"text","text":"no"}],"isError":true,"resultType":"complete"}}}
    "result":{"resultType":"complete"}}
    "result":{"resultType":"complete","taskId":"<2>","status":"failed","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000,"error":{"code":-32603,"message":"It is down","data":{"code":"unavailable","reason":"It is down","retryable":true}}}}
    "result":{"resultType":"complete"}}
    "result":{"resultType":"complete","taskId":"<3>","status":"failed","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000,"error":{"code":-32603,"message":"The call failed because of a fault in the server","data":{"code":"execution_failed","reason":"The call failed because of a fault in the server","retryable":false}}}}
    "result":{"resultType":"complete"}}
    "#);
}

#[tokio::test]
async fn tasks_that_are_cancelled() {
    let (yard, _go) = waiting(100);
    let mut client = Client::new(&yard, Carrier::Web, MODERN, TASKS).await;
    let task = begin(&mut client, r#""end":"never""#).await;
    let mut lines = vec![ask(&mut client, "tasks/cancel", &task).await];
    assert_eq!(yard.ended(1).await, ["may Err(Cancelled)"]);
    lines.push(ask(&mut client, "tasks/get", &task).await);
    lines.push(ask(&mut client, "tasks/cancel", &task).await);
    lines.push(client.ask("tasks/update", &format!(r#""taskId":"{task}","inputResponses":{{}}"#)).await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete"}}
    {"jsonrpc":"2.0","id":3,"result":{"resultType":"complete","taskId":"<0>","status":"cancelled","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000}}
    {"jsonrpc":"2.0","id":4,"result":{"resultType":"complete"}}
    {"jsonrpc":"2.0","id":5,"result":{"resultType":"complete"}}
    "#);
}

#[tokio::test]
async fn requests_that_name_no_task() {
    let (yard, _go) = waiting(100);
    let mut client = Client::piped(&yard, MODERN, TASKS).await;
    let mut other = Client::piped(&yard, MODERN, TASKS).await;
    let mut unable = Client::piped(&yard, MODERN, r#"{"sampling":{}}"#).await;
    let task = begin(&mut client, "").await;
    let mut lines = Vec::new();
    for (method, responses) in
        [("tasks/get", ""), ("tasks/update", r#","inputResponses":{}"#), ("tasks/cancel", "")]
    {
        lines.push(client.ask(method, &format!(r#""taskId":"x"{responses}"#)).await);
        lines.push(client.ask(method, &format!(r#""taskId":7{responses}"#)).await);
        lines.push(other.ask(method, &format!(r#""taskId":"{task}"{responses}"#)).await);
        lines.push(unable.ask(method, &format!(r#""taskId":"{task}"{responses}"#)).await);
    }
    for responses in ["", r#","inputResponses":[]"#, r#","inputResponses":null"#] {
        lines.push(client.ask("tasks/update", &format!(r#""taskId":"{task}"{responses}"#)).await);
    }
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"`params.taskId` is no task that is known here"}}
    {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"`params.taskId` is not a string"}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`params.taskId` is no task that is known here"}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
    {"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"`params.taskId` is no task that is known here"}}
    {"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"`params.taskId` is not a string"}}
    {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"`params.taskId` is no task that is known here"}}
    {"jsonrpc":"2.0","id":2,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
    {"jsonrpc":"2.0","id":6,"error":{"code":-32602,"message":"`params.taskId` is no task that is known here"}}
    {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"`params.taskId` is not a string"}}
    {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"`params.taskId` is no task that is known here"}}
    {"jsonrpc":"2.0","id":3,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
    {"jsonrpc":"2.0","id":8,"error":{"code":-32602,"message":"`params.inputResponses` is not an object"}}
    {"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"`params.inputResponses` is not an object"}}
    {"jsonrpc":"2.0","id":10,"error":{"code":-32602,"message":"`params.inputResponses` is not an object"}}
    "#);
    assert!(ask(&mut client, "tasks/get", &task).await.contains("working"), "nobody else has touched it");
}

/// What a task asks is asked by way of the task: each question under a key of its own.
#[tokio::test]
async fn tasks_that_ask() {
    let yard = Yard::with(eager(100));
    let mut said = Vec::new();
    for carrier in [Carrier::Pipe, Carrier::Web] {
        let mut client = Client::new(&yard, carrier, MODERN, ABLE).await;
        let task = begin(&mut client, &asking(&[&format!("{ELICIT},{SAMPLE}"), ELICIT])).await;
        let mut lines = vec![until(&mut client, &task, "input_required").await];
        for (answers, expected) in [
            (
                r#""sampling-2":{"second":1},"other":7"#,
                r#"{"elicitation-1":{"method":"elicitation/create","params":{"message":"who?"}}}}}"#,
            ),
            (r#""sampling-2":{"again":1}"#, "input_required"),
            (r#""elicitation-1":{"first":1}"#, "elicitation-3"),
            (r#""elicitation-3":{"third":1.10}"#, "completed"),
        ] {
            let params = format!(r#""taskId":"{task}","inputResponses":{{{answers}}}"#);
            lines.push(client.ask("tasks/update", &params).await);
            lines.push(until(&mut client, &task, expected).await);
        }
        said.push(without_ids(&lines));
    }
    assert_eq!(said[0], said[1]);
    assert_snapshot!(said[0], @r#"
    "result":{"resultType":"complete","taskId":"<0>","status":"input_required","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000,"inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"message":"who?"}},"sampling-2":{"method":"sampling/createMessage","params":{"maxTokens":1}}}}}
    "result":{"resultType":"complete"}}
    "result":{"resultType":"complete","taskId":"<0>","status":"input_required","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000,"inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"message":"who?"}}}}}
    "result":{"resultType":"complete"}}
    "result":{"resultType":"complete","taskId":"<0>","status":"input_required","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000,"inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"message":"who?"}}}}}
    "result":{"resultType":"complete"}}
    "result":{"resultType":"complete","taskId":"<0>","status":"input_required","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000,"inputRequests":{"elicitation-3":{"method":"elicitation/create","params":{"message":"who?"}}}}}
    "result":{"resultType":"complete"}}
    "result":{"resultType":"complete","taskId":"<0>","status":"completed","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000,"result":{"content":[{"type":"text","text":"{\"first\":1} {\"second\":1} {\"third\":1.10}"}],"resultType":"complete"}}}
    "#);
}

/// A backend that ends with what it needs is called again, once the task was given it.
#[tokio::test(start_paused = true)]
async fn tasks_that_need_something() {
    let yard = Yard::build(eager(100), |call| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        match call.params.get("inputResponses") {
            Some(given) => {
                Ok(text(&format!("{} {:?}", given.as_text(), call.params.get_str("requestState"))))
            }
            None => {
                let requests = Json::parse(format!(r#"{{"a":{ELICIT},"b":{ROOTS}}}"#)).unwrap();
                let state = Json::string("passed.state");
                Ok(Outcome::NeedsInput(
                    Object::new().with("inputRequests", requests).with("requestState", state),
                ))
            }
        }
    });
    let mut client = Client::piped(&yard, MODERN, ABLE).await;
    let task = begin(&mut client, "").await;
    advance(Duration::from_secs(2)).await;
    let mut lines = vec![until(&mut client, &task, "input_required").await];
    let answers = r#""elicitation-1":{},"roots-2":{"n":1.10}"#;
    client.ask("tasks/update", &format!(r#""taskId":"{task}","inputResponses":{{{answers}}}"#)).await;
    yard.ended(1).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    lines.push(until(&mut client, &task, "completed").await);
    assert_snapshot!(without_ids(&lines), @r#"
    "result":{"resultType":"complete","taskId":"<0>","status":"input_required","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000,"inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"message":"who?"}},"roots-2":{"method":"roots/list","params":{}}}}}
    "result":{"resultType":"complete","taskId":"<0>","status":"completed","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000,"result":{"content":[{"type":"text","text":"{\"a\":{},\"b\":{\"n\":1.10}} Some(\"passed.state\")"}],"resultType":"complete"}}}
    "#);
}

/// A question that the backend lost interest in, or that took too long, does not stand there any more.
#[tokio::test(start_paused = true)]
async fn questions_that_are_withdrawn() {
    let yard = Yard::build(eager(100), |call| async move {
        let asked = call.client.ask(Ask { kind: AskKind::Roots, params: Object::new() });
        let asked = tokio::time::timeout(Duration::from_secs(10), asked).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        Ok(text(&format!("{}", asked.is_ok())))
    });
    let mut client = Client::piped(&yard, MODERN, ABLE).await;
    let task = begin(&mut client, "").await;
    assert!(ask(&mut client, "tasks/get", &task).await.contains("input_required"));
    advance(Duration::from_secs(11)).await;
    assert!(ask(&mut client, "tasks/get", &task).await.contains("working"));
    advance(Duration::from_secs(11)).await;
    assert!(until(&mut client, &task, "completed").await.contains("false"));
}

/// A task is remembered from its beginning on for a time, and its work ends with it.
#[tokio::test(start_paused = true)]
async fn how_long_tasks_are_remembered() {
    let limits = FrontendLimits { task_ttl: Duration::from_secs(100), ..eager(100).limits };
    let setup = Setup { limits, timeout: Duration::from_secs(1_000_000), ..Setup::default() };
    let yard = Yard::build(setup, |call| async move {
        tokio::time::sleep(Duration::from_secs(50)).await;
        end(&call).await
    });
    let mut client = Client::piped(&yard, MODERN, TASKS).await;
    let [over, running] = [begin(&mut client, "").await, begin(&mut client, r#""end":"never""#).await];
    advance(Duration::from_secs(60)).await;
    let mut lines =
        vec![until(&mut client, &over, "completed").await, until(&mut client, &running, "working").await];
    advance(Duration::from_secs(41)).await;
    assert_eq!(yard.ended(2).await[1], "may Err(Cancelled)");
    lines.push(ask(&mut client, "tasks/get", &over).await);
    lines.push(ask(&mut client, "tasks/get", &running).await);
    let filter = format!(r#""notifications":{{"taskIds":["{over}","{running}"]}}"#);
    let granted = client.ask("subscriptions/listen", &filter).await;
    assert!(granted.ends_with(r#""notifications":{}}}"#), "{granted}");
    assert_snapshot!(without_ids(&lines), @r#"
    "result":{"resultType":"complete","taskId":"<0>","status":"completed","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":100000,"pollIntervalMs":1000,"result":{"content":[{"type":"text","text":"{}"}],"resultType":"complete"}}}
    "result":{"resultType":"complete","taskId":"<1>","status":"working","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":100000,"pollIntervalMs":1000}}
    "error":{"code":-32602,"message":"`params.taskId` is no task that is known here"}}
    "error":{"code":-32602,"message":"`params.taskId` is no task that is known here"}}
    "#);
}

/// There are only so many. What is over makes room, the oldest first; what runs does not.
#[tokio::test]
async fn how_many_tasks_are_remembered() {
    let (yard, go) = waiting(2);
    let mut client = Client::piped(&yard, MODERN, TASKS).await;
    let [one, two] = [begin(&mut client, "").await, begin(&mut client, "").await];
    // What finds no room goes on as the request that it is.
    client.request("tools/call", &tool_params("may", "")).await;
    yard.runs(3).await;
    go.send_replace(true);
    let mut lines = vec![client.hear().await];
    until(&mut client, &one, "completed").await;
    until(&mut client, &two, "completed").await;
    go.send_replace(false);
    let three = begin(&mut client, "").await;
    for task in [&one, &two, &three] {
        lines.push(ask(&mut client, "tasks/get", task).await);
    }
    assert_snapshot!(without_ids(&lines), @r#"
    "result":{"content":[{"type":"text","text":"{}"}],"resultType":"complete"}}
    "error":{"code":-32602,"message":"`params.taskId` is no task that is known here"}}
    "result":{"resultType":"complete","taskId":"<1>","status":"completed","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000,"result":{"content":[{"type":"text","text":"{}"}],"resultType":"complete"}}}
    "result":{"resultType":"complete","taskId":"<2>","status":"working","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000}}
    "#);
}

/// Tasks of a client that is gone end: nobody else may look after them.
#[tokio::test]
async fn who_leaves() {
    let (yard, _go) = waiting(100);
    let mut client = Client::piped(&yard, MODERN, TASKS).await;
    begin(&mut client, "").await;
    drop(client.end().await);
    assert_eq!(yard.ended(1).await, ["may Err(Cancelled)"]);
}

/// Who listens is told of each change of its tasks, and of no other's.
#[tokio::test]
async fn who_listens() {
    let mut said = Vec::new();
    for carrier in [Carrier::Pipe, Carrier::Web] {
        let yard = Yard::with(eager(100));
        let mut other = Client::piped(&yard, MODERN, ABLE).await;
        let others = begin(&mut other, &asking(&[ROOTS])).await;
        let mut client = Client::new(&yard, carrier, MODERN, ABLE).await;
        let task = begin(&mut client, &asking(&[ROOTS])).await;
        until(&mut client, &task, "input_required").await;
        let filter = format!(r#""notifications":{{"taskIds":["{task}","x","{others}","{task}",7]}}"#);
        let mut lines = vec![client.ask("subscriptions/listen", &filter).await, client.hear().await];
        client
            .request("tasks/update", &format!(r#""taskId":"{task}","inputResponses":{{"roots-1":{{}}}}"#))
            .await;
        loop {
            let heard = client.hear().await;
            let is_last = heard.contains("completed");
            // It may, or may not, be seen at work meanwhile; what it was answered comes at any time.
            if heard.contains("notifications/tasks") && !heard.contains("working") {
                lines.push(heard);
            }
            if is_last {
                break;
            }
        }
        assert!(ask(&mut client, "tasks/get", &task).await.contains("completed"), "nothing else is said");
        let subscription = format!(
            r#""io.modelcontextprotocol/subscriptionId":{}"#,
            lines[0].split("subscriptionId\":").nth(1).unwrap().split('}').next().unwrap()
        );
        said.push(lines.join("\n").replace(&subscription, r#""io.modelcontextprotocol/subscriptionId":0"#));
    }
    assert_eq!(said[0], said[1]);
    assert_snapshot!(said[0], @r#"
    {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":0},"notifications":{"taskIds":["<0>"]}}}
    {"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"<0>","status":"input_required","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000,"inputRequests":{"roots-1":{"method":"roots/list","params":{}}},"_meta":{"io.modelcontextprotocol/subscriptionId":0}}}
    {"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"<0>","status":"completed","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000,"result":{"content":[{"type":"text","text":"{}"}],"resultType":"complete"},"_meta":{"io.modelcontextprotocol/subscriptionId":0}}}
    "#);
}

#[tokio::test]
async fn who_may_not_listen() {
    let yard = Yard::with(eager(100));
    let mut client = Client::new(&yard, Carrier::Web, MODERN, "{}").await;
    assert_snapshot!(client.ask("subscriptions/listen", r#""notifications":{"taskIds":[]}"#).await, @r#"400 {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}"#);
}
