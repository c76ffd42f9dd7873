//! Calls that continue as tasks (SEP-2663).

use std::time::Duration;

use insta::assert_snapshot;
use tokio::sync::watch;
use tokio::time::advance;
use toolyard_core::{
    Call, CallOutput, ErrorCode, InputRequest, InputRequestKind, Json, Object, Outcome, ToolError,
};
use toolyard_mcp::server::FrontendLimits;

use crate::client::{ABLE, Client, ELICIT, LEGACY, MODERN, ROOTS, SAMPLE, Transport, asking, tool_params};
use crate::script::text;
use crate::test_gateway::{Ended, Setup, TestGateway};

const TASKS: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

/// A setup in which any call that takes time becomes a task.
fn eager(tasks: usize) -> Setup {
    let limits = FrontendLimits { tasks, task_after: Duration::ZERO, ..FrontendLimits::default() };
    Setup { limits, ..Setup::default() }
}

/// A gateway whose calls end when they are told to, as their arguments say.
fn waiting(tasks: usize) -> (TestGateway, watch::Sender<bool>) {
    let (go, gone) = watch::channel(false);
    let gateway = TestGateway::build(eager(tasks), move |call| {
        let mut gone = gone.clone();
        async move {
            gone.wait_for(|gone| *gone).await.unwrap();
            end(&call).await
        }
    });
    (gateway, go)
}

async fn end(call: &Call) -> Ended {
    let arguments = call.arguments().map_or("{}", Json::as_text);
    match arguments {
        r#"{"end":"fail"}"# => Err(ToolError::new(ErrorCode::Unavailable, "It is down")),
        r#"{"end":"refuse"}"# => Ok(Outcome::Done(CallOutput::failure("no"))),
        r#"{"end":"panic"}"# => panic!("the end"),
        r#"{"end":"never"}"# => std::future::pending().await,
        _ => Ok(text(arguments)),
    }
}

/// Starts a task and returns its id.
async fn begin(client: &mut Client, arguments: &str) -> String {
    let received = client.call("may", arguments).await;
    assert!(received.contains(r#""resultType":"task""#), "{received}");
    client.last("taskId")
}

async fn ask(client: &mut Client, method: &str, task: &str) -> String {
    client.request(method, &format!(r#""taskId":"{task}""#)).await
}

/// Polls a task until it is as expected.
async fn until(client: &mut Client, task: &str, expected: &str) -> String {
    loop {
        let received = ask(client, "tasks/get", task).await;
        if received.contains(expected) {
            return received;
        }
        tokio::task::yield_now().await;
    }
}

/// Removes the ids of requests, which depend on the number of polls.
fn without_ids(lines: &[String]) -> String {
    let without = |line: &String| {
        let (_head, rest) = line.split_once(r#","id":"#).unwrap();
        rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',').to_owned()
    };
    lines.iter().map(without).collect::<Vec<_>>().join("\n")
}

/// The tool and the client decide whether a call becomes a task.
#[tokio::test]
async fn tool_and_client_decide_on_tasks() {
    let (gateway, go) = waiting(100);
    let mut lines = Vec::new();
    for capabilities in ["{}", r#"{"extensions":{}}"#, r#"{"tasks":{}}"#, TASKS] {
        for tool in ["echo", "may", "must"] {
            let mut client = Client::new(&gateway, Transport::Web, MODERN, capabilities).await;
            let id = client
                .send_request("tools/call", &format!(r#"{},"task":{{"ttl":1}}"#, tool_params(tool, "")))
                .await;
            // A call that is not a task waits for this.
            go.send_replace(capabilities != TASKS || tool == "echo");
            let received = client.receive().await;
            assert!(received.contains(&format!(r#""id":{id}"#)));
            lines.push(format!("{tool} {capabilities}: {}", received.split_once(r#""id":1,"#).unwrap().1));
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

/// The task support of a tool is known once the handlers had time to connect.
#[tokio::test]
async fn task_support_waits_for_handlers() {
    let gateway = TestGateway::with(Setup { settled: false, ..eager(100) });
    for capabilities in ["{}", r#"{"sampling":{}}"#] {
        let mut client = Client::on_pipe(&gateway, MODERN, capabilities).await;
        client.send_request("tools/call", &tool_params("must", "")).await;
        client.request("server/discover", "").await;
        gateway.offer(crate::script::OFFERED);
        assert!(client.receive().await.contains("-32021"), "{capabilities}");
        gateway.disconnect_backend();
    }
}

/// A call that finishes at once is answered.
#[tokio::test]
async fn quick_calls_are_answered() {
    let gateway = TestGateway::with(eager(0));
    let mut client = Client::on_pipe(&gateway, MODERN, TASKS).await;
    let mut lines = vec![client.call("may", "").await, client.call("must", "").await];
    lines.push(client.call("may", &asking(&[ROOTS])).await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":""}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":""}],"resultType":"complete"}}
    {"jsonrpc":"2.0","id":3,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"roots":{}}}}}
    "#);
}

/// Legacy clients do not know the extension.
#[tokio::test]
async fn legacy_clients_get_no_tasks() {
    let gateway = TestGateway::with(eager(100));
    let mut client = Client::on_pipe(&gateway, LEGACY[3], TASKS).await;
    assert_snapshot!(client.call("must", "").await, @r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":""}]}}"#);
}

#[tokio::test]
async fn final_task_statuses() {
    let mut outputs = Vec::new();
    for transport in [Transport::Pipe, Transport::Web] {
        let (gateway, go) = waiting(100);
        let mut client = Client::new(&gateway, transport, MODERN, TASKS).await;
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
            // Cancelling a finished task has no effect.
            lines.push(ask(&mut client, "tasks/cancel", task).await);
            let after = ask(&mut client, "tasks/get", task).await;
            let status = |received: &str| received.split(r#""status""#).nth(1).unwrap().to_owned();
            assert_eq!(status(&after), status(&lines[lines.len() - 2]));
        }
        outputs.push(without_ids(&lines));
    }
    assert_eq!(outputs[0], outputs[1]);
    assert_snapshot!(outputs[0], @r#"
    "result":{"resultType":"complete","taskId":"<0>","status":"working","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000}}
    "result":{"resultType":"complete","taskId":"<0>","status":"completed","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000,"result":{"content":[{"type":"text","text":"{}"}],"resultType":"complete"}}}
    "result":{"resultType":"complete"}}
    "result":{"resultType":"complete","taskId":"<1>","status":"completed","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000,"result":{"content":[{"type":"text","text":"no"}],"isError":true,"resultType":"complete"}}}
    "result":{"resultType":"complete"}}
    "result":{"resultType":"complete","taskId":"<2>","status":"failed","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000,"error":{"code":-32603,"message":"It is down","data":{"code":"unavailable","reason":"temporarily unavailable","retryable":true}}}}
    "result":{"resultType":"complete"}}
    "result":{"resultType":"complete","taskId":"<3>","status":"failed","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000,"error":{"code":-32603,"message":"The call failed because of a fault in the server","data":{"code":"execution_failed","reason":"the call failed","retryable":false}}}}
    "result":{"resultType":"complete"}}
    "#);
}

#[tokio::test]
async fn tasks_can_be_cancelled() {
    let (gateway, _go) = waiting(100);
    let mut client = Client::new(&gateway, Transport::Web, MODERN, TASKS).await;
    let task = begin(&mut client, r#""end":"never""#).await;
    let mut lines = vec![ask(&mut client, "tasks/cancel", &task).await];
    assert_eq!(gateway.ended(1).await, ["may Err(Cancelled)"]);
    lines.push(ask(&mut client, "tasks/get", &task).await);
    lines.push(ask(&mut client, "tasks/cancel", &task).await);
    lines.push(client.request("tasks/update", &format!(r#""taskId":"{task}","inputResponses":{{}}"#)).await);
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete"}}
    {"jsonrpc":"2.0","id":3,"result":{"resultType":"complete","taskId":"<0>","status":"cancelled","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000}}
    {"jsonrpc":"2.0","id":4,"result":{"resultType":"complete"}}
    {"jsonrpc":"2.0","id":5,"result":{"resultType":"complete"}}
    "#);
}

#[tokio::test]
async fn unknown_tasks_are_refused() {
    let (gateway, _go) = waiting(100);
    let mut client = Client::on_pipe(&gateway, MODERN, TASKS).await;
    let mut other = Client::on_pipe(&gateway, MODERN, TASKS).await;
    let mut unable = Client::on_pipe(&gateway, MODERN, r#"{"sampling":{}}"#).await;
    let task = begin(&mut client, "").await;
    let mut lines = Vec::new();
    for (method, responses) in
        [("tasks/get", ""), ("tasks/update", r#","inputResponses":{}"#), ("tasks/cancel", "")]
    {
        lines.push(client.request(method, &format!(r#""taskId":"x"{responses}"#)).await);
        lines.push(client.request(method, &format!(r#""taskId":7{responses}"#)).await);
        lines.push(other.request(method, &format!(r#""taskId":"{task}"{responses}"#)).await);
        lines.push(unable.request(method, &format!(r#""taskId":"{task}"{responses}"#)).await);
    }
    for responses in ["", r#","inputResponses":[]"#, r#","inputResponses":null"#] {
        lines.push(client.request("tasks/update", &format!(r#""taskId":"{task}"{responses}"#)).await);
    }
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"unknown `params.taskId`"}}
    {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"`params.taskId` is not a string"}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unknown `params.taskId`"}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
    {"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"unknown `params.taskId`"}}
    {"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"`params.taskId` is not a string"}}
    {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"unknown `params.taskId`"}}
    {"jsonrpc":"2.0","id":2,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
    {"jsonrpc":"2.0","id":6,"error":{"code":-32602,"message":"unknown `params.taskId`"}}
    {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"`params.taskId` is not a string"}}
    {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"unknown `params.taskId`"}}
    {"jsonrpc":"2.0","id":3,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
    {"jsonrpc":"2.0","id":8,"error":{"code":-32602,"message":"`params.inputResponses` is not an object"}}
    {"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"`params.inputResponses` is not an object"}}
    {"jsonrpc":"2.0","id":10,"error":{"code":-32602,"message":"`params.inputResponses` is not an object"}}
    "#);
    assert!(ask(&mut client, "tasks/get", &task).await.contains("working"), "nobody else has touched it");
}

/// The questions of a task are part of it, each with a unique key.
#[tokio::test]
async fn task_input_uses_unique_keys() {
    let gateway = TestGateway::with(eager(100));
    let mut outputs = Vec::new();
    for transport in [Transport::Pipe, Transport::Web] {
        let mut client = Client::new(&gateway, transport, MODERN, ABLE).await;
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
            lines.push(client.request("tasks/update", &params).await);
            lines.push(until(&mut client, &task, expected).await);
        }
        outputs.push(without_ids(&lines));
    }
    assert_eq!(outputs[0], outputs[1]);
    assert_snapshot!(outputs[0], @r#"
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

/// A backend that asks for input is called again once the task has it.
#[tokio::test(start_paused = true)]
async fn task_repeats_the_call_with_input() {
    let gateway = TestGateway::build(eager(100), |call| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        match call.params.get("inputResponses") {
            Some(responses) => {
                Ok(text(&format!("{} {:?}", responses.as_text(), call.params.get_str("requestState"))))
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
    let mut client = Client::on_pipe(&gateway, MODERN, ABLE).await;
    let task = begin(&mut client, "").await;
    advance(Duration::from_secs(2)).await;
    let mut lines = vec![until(&mut client, &task, "input_required").await];
    let answers = r#""elicitation-1":{},"roots-2":{"n":1.10}"#;
    client.request("tasks/update", &format!(r#""taskId":"{task}","inputResponses":{{{answers}}}"#)).await;
    gateway.ended(1).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    lines.push(until(&mut client, &task, "completed").await);
    assert_snapshot!(without_ids(&lines), @r#"
    "result":{"resultType":"complete","taskId":"<0>","status":"input_required","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000,"inputRequests":{"elicitation-1":{"method":"elicitation/create","params":{"message":"who?"}},"roots-2":{"method":"roots/list","params":{}}}}}
    "result":{"resultType":"complete","taskId":"<0>","status":"completed","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000,"result":{"content":[{"type":"text","text":"{\"a\":{},\"b\":{\"n\":1.10}} Some(\"passed.state\")"}],"resultType":"complete"}}}
    "#);
}

/// A withdrawn question, or one that timed out, is not part of the task any more.
#[tokio::test(start_paused = true)]
async fn withdrawn_questions_disappear_from_the_task() {
    let gateway = TestGateway::build(eager(100), |call| async move {
        let answer = call.client.ask(InputRequest { kind: InputRequestKind::Roots, params: Object::new() });
        let answer = tokio::time::timeout(Duration::from_secs(10), answer).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        Ok(text(&format!("{}", answer.is_ok())))
    });
    let mut client = Client::on_pipe(&gateway, MODERN, ABLE).await;
    let task = begin(&mut client, "").await;
    assert!(ask(&mut client, "tasks/get", &task).await.contains("input_required"));
    advance(Duration::from_secs(11)).await;
    assert!(ask(&mut client, "tasks/get", &task).await.contains("working"));
    advance(Duration::from_secs(11)).await;
    assert!(until(&mut client, &task, "completed").await.contains("false"));
}

/// A task expires after its time to live, which ends its work.
#[tokio::test(start_paused = true)]
async fn tasks_expire() {
    let limits = FrontendLimits { task_ttl: Duration::from_secs(100), ..eager(100).limits };
    let setup = Setup { limits, timeout: Duration::from_secs(1_000_000), ..Setup::default() };
    let gateway = TestGateway::build(setup, |call| async move {
        tokio::time::sleep(Duration::from_secs(50)).await;
        end(&call).await
    });
    let mut client = Client::on_pipe(&gateway, MODERN, TASKS).await;
    let [over, running] = [begin(&mut client, "").await, begin(&mut client, r#""end":"never""#).await];
    advance(Duration::from_secs(60)).await;
    let mut lines =
        vec![until(&mut client, &over, "completed").await, until(&mut client, &running, "working").await];
    advance(Duration::from_secs(41)).await;
    assert_eq!(gateway.ended(2).await[1], "may Err(Cancelled)");
    lines.push(ask(&mut client, "tasks/get", &over).await);
    lines.push(ask(&mut client, "tasks/get", &running).await);
    let filter = format!(r#""notifications":{{"taskIds":["{over}","{running}"]}}"#);
    let granted = client.request("subscriptions/listen", &filter).await;
    assert!(granted.ends_with(r#""notifications":{}}}"#), "{granted}");
    assert_snapshot!(without_ids(&lines), @r#"
    "result":{"resultType":"complete","taskId":"<0>","status":"completed","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":100000,"pollIntervalMs":1000,"result":{"content":[{"type":"text","text":"{}"}],"resultType":"complete"}}}
    "result":{"resultType":"complete","taskId":"<1>","status":"working","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":100000,"pollIntervalMs":1000}}
    "error":{"code":-32602,"message":"unknown `params.taskId`"}}
    "error":{"code":-32602,"message":"unknown `params.taskId`"}}
    "#);
}

/// The number of tasks is limited. Finished ones make room, the oldest first; running ones do not.
#[tokio::test]
async fn tasks_are_limited() {
    let (gateway, go) = waiting(2);
    let mut client = Client::on_pipe(&gateway, MODERN, TASKS).await;
    let [one, two] = [begin(&mut client, "").await, begin(&mut client, "").await];
    // Without room, the call stays a request.
    client.send_request("tools/call", &tool_params("may", "")).await;
    gateway.wait_for_running(3).await;
    go.send_replace(true);
    let mut lines = vec![client.receive().await];
    until(&mut client, &one, "completed").await;
    until(&mut client, &two, "completed").await;
    go.send_replace(false);
    let three = begin(&mut client, "").await;
    for task in [&one, &two, &three] {
        lines.push(ask(&mut client, "tasks/get", task).await);
    }
    assert_snapshot!(without_ids(&lines), @r#"
    "result":{"content":[{"type":"text","text":"{}"}],"resultType":"complete"}}
    "error":{"code":-32602,"message":"unknown `params.taskId`"}}
    "result":{"resultType":"complete","taskId":"<1>","status":"completed","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000,"result":{"content":[{"type":"text","text":"{}"}],"resultType":"complete"}}}
    "result":{"resultType":"complete","taskId":"<2>","status":"working","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000}}
    "#);
}

/// The tasks of a disconnected client end.
#[tokio::test]
async fn disconnect_cancels_tasks() {
    let (gateway, _go) = waiting(100);
    let mut client = Client::on_pipe(&gateway, MODERN, TASKS).await;
    begin(&mut client, "").await;
    drop(client.end().await);
    assert_eq!(gateway.ended(1).await, ["may Err(Cancelled)"]);
}

/// A subscriber is notified of each change of its own tasks.
#[tokio::test]
async fn task_changes_reach_subscribers() {
    let mut outputs = Vec::new();
    for transport in [Transport::Pipe, Transport::Web] {
        let gateway = TestGateway::with(eager(100));
        let mut other = Client::on_pipe(&gateway, MODERN, ABLE).await;
        let others = begin(&mut other, &asking(&[ROOTS])).await;
        let mut client = Client::new(&gateway, transport, MODERN, ABLE).await;
        let task = begin(&mut client, &asking(&[ROOTS])).await;
        until(&mut client, &task, "input_required").await;
        let filter = format!(r#""notifications":{{"taskIds":["{task}","x","{others}","{task}",7]}}"#);
        let mut lines = vec![client.request("subscriptions/listen", &filter).await, client.receive().await];
        client
            .send_request(
                "tasks/update",
                &format!(r#""taskId":"{task}","inputResponses":{{"roots-1":{{}}}}"#),
            )
            .await;
        loop {
            let received = client.receive().await;
            let is_last = received.contains("completed");
            // The status `working` may be seen or not; the response comes at any time.
            if received.contains("notifications/tasks") && !received.contains("working") {
                lines.push(received);
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
        outputs
            .push(lines.join("\n").replace(&subscription, r#""io.modelcontextprotocol/subscriptionId":0"#));
    }
    assert_eq!(outputs[0], outputs[1]);
    assert_snapshot!(outputs[0], @r#"
    {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":0},"notifications":{"taskIds":["<0>"]}}}
    {"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"<0>","status":"input_required","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000,"inputRequests":{"roots-1":{"method":"roots/list","params":{}}},"_meta":{"io.modelcontextprotocol/subscriptionId":0}}}
    {"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"<0>","status":"completed","createdAt":"<time>","lastUpdatedAt":"<time>","ttlMs":3600000,"pollIntervalMs":1000,"result":{"content":[{"type":"text","text":"{}"}],"resultType":"complete"},"_meta":{"io.modelcontextprotocol/subscriptionId":0}}}
    "#);
}

#[tokio::test]
async fn task_subscription_needs_the_extension() {
    let gateway = TestGateway::with(eager(100));
    let mut client = Client::new(&gateway, Transport::Web, MODERN, "{}").await;
    assert_snapshot!(client.request("subscriptions/listen", r#""notifications":{"taskIds":[]}"#).await, @r#"400 {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}"#);
}
