//! The timeout of a call does not include the time that its client needs for answers.

use std::time::Duration;

use insta::assert_snapshot;
use tokio::time::{advance, sleep};
use toolyard_core::{Call, InputRequest, InputRequestError, InputRequestKind, Json, Object, Outcome};

use crate::client::{ABLE, Client, DRAIN, LEGACY, MODERN, ROOTS, tool_params};
use crate::script::text;
use crate::test_gateway::{Ended, Setup, TestGateway};

/// The timeout of a call.
const BUDGET: Duration = Duration::from_secs(10);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

async fn ask(call: &Call) -> Result<Json, InputRequestError> {
    call.client.ask(InputRequest { kind: InputRequestKind::Roots, params: Object::new() }).await
}

/// Works, asks, and works again, as long as the arguments say: `{"n":[4,5]}`.
async fn work(call: Call) -> Ended {
    let [before, after] = numbers(&call);
    sleep(before).await;
    ask(&call).await?;
    sleep(after).await;
    Ok(text("done"))
}

fn numbers(call: &Call) -> [Duration; 2] {
    let arguments = call.arguments().unwrap().to_object().unwrap();
    let numbers = arguments.get("n").unwrap().to_items().unwrap();
    [0, 1].map(|at| seconds(numbers[at].as_text().parse().unwrap()))
}

fn gateway<F: Future<Output = Ended> + Send + 'static>(
    script: impl Fn(Call) -> F + Send + Sync + 'static,
) -> TestGateway {
    TestGateway::build(Setup { timeout: BUDGET, ..Setup::default() }, script)
}

/// Returns the result of a call in a word.
fn word(received: &str) -> &'static str {
    match (received.contains("done"), received.contains(r#""code":"timeout""#)) {
        (true, false) => "done",
        (false, true) => "timeout",
        _ => panic!("{received}"),
    }
}

/// The working times before and after the question, the time of the client, and the expected result.
const CASES: [(&str, u64, &str); 5] = [
    ("0,9", 0, "done"),
    ("0,9", 300, "done"),
    ("8,1", 300, "done"),
    ("8,3", 300, "timeout"),
    ("0,11", 1, "timeout"),
];

#[tokio::test(start_paused = true)]
async fn legacy_answer_time_is_not_counted() {
    let gateway = gateway(work);
    let mut client = Client::on_pipe(&gateway, LEGACY[3], ABLE).await;
    for (id, (work, takes, expected)) in (0..).zip(CASES) {
        let question = client.call("ask", &format!(r#""n":[{work}]"#)).await;
        assert!(question.contains("roots/list"), "{question}");
        sleep(seconds(takes)).await;
        client.answer(id, "{}").await;
        assert_eq!(word(&client.receive().await), expected, "{work} {takes}");
    }
}

#[tokio::test(start_paused = true)]
async fn modern_answer_time_is_not_counted() {
    let gateway = gateway(work);
    let mut client = Client::on_pipe(&gateway, MODERN, ABLE).await;
    for (work, takes, expected) in CASES {
        let call = tool_params("ask", &format!(r#""n":[{work}]"#));
        let question = client.request("tools/call", &call).await;
        assert!(question.contains("input_required"), "{question}");
        let state = client.last("requestState");
        sleep(seconds(takes)).await;
        let answers = r#""inputResponses":{"roots-1":{}}"#;
        let received =
            client.request("tools/call", &format!(r#"{call},{answers},"requestState":"{state}""#)).await;
        assert_eq!(word(&received), expected, "{work} {takes}");
    }
}

/// A call without questions has its timeout.
#[tokio::test(start_paused = true)]
async fn call_without_questions_times_out() {
    let gateway = gateway(|call| async move {
        sleep(numbers(&call)[0]).await;
        Ok(text("done"))
    });
    for revision in [LEGACY[3], MODERN] {
        let mut client = Client::on_pipe(&gateway, revision, ABLE).await;
        assert_eq!(word(&client.call("ask", r#""n":[9,0]"#).await), "done");
        assert_eq!(word(&client.call("ask", r#""n":[11,0]"#).await), "timeout");
    }
}

/// Concurrent questions count once; consecutive ones count each.
#[tokio::test(start_paused = true)]
async fn concurrent_questions_count_once() {
    let gateway = gateway(|call| async move {
        let (one, two) = tokio::join!(ask(&call), ask(&call));
        one.and(two)?;
        ask(&call).await?;
        sleep(numbers(&call)[0]).await;
        Ok(text("done"))
    });
    let mut client = Client::on_pipe(&gateway, LEGACY[3], ABLE).await;
    for (first, (work, expected)) in [(0, ("9,0", "done")), (3, ("11,0", "timeout"))] {
        client.send_request("tools/call", &tool_params("ask", &format!(r#""n":[{work}]"#))).await;
        client.receive_many(2).await;
        sleep(seconds(100)).await;
        client.answer(first, "{}").await;
        sleep(seconds(100)).await;
        client.answer(first + 1, "{}").await;
        client.receive().await;
        sleep(seconds(100)).await;
        client.answer(first + 2, "{}").await;
        assert_eq!(word(&client.receive().await), expected);
    }
}

/// A repeated call has its full timeout again, without the answer time of the client.
#[tokio::test(start_paused = true)]
async fn each_round_trip_has_its_own_timeout() {
    let gateway = gateway(|call| async move {
        let [before, after] = numbers(&call);
        if call.params.get("inputResponses").is_some() {
            sleep(after).await;
            return Ok(text("done"));
        }
        sleep(before).await;
        let requests = Json::parse(format!(r#"{{"a":{ROOTS}}}"#)).unwrap();
        Ok(Outcome::NeedsInput(Object::new().with("inputRequests", requests)))
    });
    let mut client = Client::on_pipe(&gateway, LEGACY[3], ABLE).await;
    for (id, (work, expected)) in [(0, ("9,9", "done")), (1, ("9,11", "timeout"))] {
        client.call("need", &format!(r#""n":[{work}]"#)).await;
        sleep(seconds(300)).await;
        client.answer(id, "{}").await;
        assert_eq!(word(&client.receive().await), expected, "{work}");
    }
}

/// The clock resumes when a question is withdrawn.
#[tokio::test(start_paused = true)]
async fn clock_resumes_after_withdrawn_question() {
    let gateway = gateway(|call| async move {
        let _late = tokio::time::timeout(seconds(100), ask(&call)).await;
        sleep(numbers(&call)[0]).await;
        Ok(text("done"))
    });
    for revision in [LEGACY[3], MODERN] {
        let mut client = Client::on_pipe(&gateway, revision, ABLE).await;
        let mut lines = Vec::new();
        for work in ["9,0", "11,0"] {
            let call = tool_params("ask", &format!(r#""n":[{work}]"#));
            client.request("tools/call", &call).await;
            let start = tokio::time::Instant::now();
            if revision == MODERN {
                let state = client.last("requestState");
                advance(seconds(101)).await;
                lines
                    .push(client.request("tools/call", &format!(r#"{call},"requestState":"{state}""#)).await);
            } else {
                // The question and its cancellation.
                client.receive().await;
                lines.push(client.receive().await);
            }
            assert!(start.elapsed() < seconds(112), "{:?}", start.elapsed());
        }
        assert_eq!([word(&lines[0]), word(&lines[1])], ["done", "timeout"], "{revision}");
    }
}

/// A timeout after a question is the tool's, not the client's.
#[tokio::test(start_paused = true)]
async fn timeout_error_text() {
    let gateway = gateway(work);
    let mut client = Client::on_pipe(&gateway, LEGACY[3], ABLE).await;
    client.call("ask", r#""n":[0,11]"#).await;
    client.answer(0, "{}").await;
    assert_snapshot!(client.receive().await, @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The tool did not answer in time","data":{"code":"timeout","reason":"timed out after 10 s","retryable":true}}}"#);
}

/// Calls that run at the end of the input are drained within a limit.
#[tokio::test(start_paused = true)]
async fn calls_are_drained_after_end_of_input() {
    let gateway = TestGateway::build(Setup { timeout: BUDGET * 10, ..Setup::default() }, |call| async move {
        sleep(numbers(&call)[0]).await;
        Ok(text("done"))
    });
    let mut seen = Vec::new();
    for work in [DRAIN - seconds(1), DRAIN + seconds(1)] {
        let mut client = Client::on_pipe(&gateway, MODERN, "{}").await;
        let start = tokio::time::Instant::now();
        client
            .send_request("tools/call", &tool_params("echo", &format!(r#""n":[{},0]"#, work.as_secs())))
            .await;
        let outputs = client.end().await;
        seen.push(format!("{:?} {outputs:?} {}", start.elapsed(), gateway.over().pop().unwrap()));
    }
    assert_snapshot!(seen.join("\n"), @r#"
    9s "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"done\"}],\"resultType\":\"complete\"}}" echo Ok(true)
    10s "" echo Err(Cancelled)
    "#);
}
