//! A call has a budget of time; what its client takes to answer questions is the client's own.

use std::time::Duration;

use insta::assert_snapshot;
use tokio::time::{advance, sleep};
use toolyard_core::{Ask, AskError, AskKind, Call, Json, Object, Outcome};

use crate::client::{ABLE, Client, DRAIN, LEGACY, MODERN, ROOTS, tool_params};
use crate::script::text;
use crate::yard::{Ended, Setup, Yard};

/// The time of a call.
const BUDGET: Duration = Duration::from_secs(10);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

async fn ask(call: &Call) -> Result<Json, AskError> {
    call.client.ask(Ask { kind: AskKind::Roots, params: Object::new() }).await
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

fn yard<F: Future<Output = Ended> + Send + 'static>(
    script: impl Fn(Call) -> F + Send + Sync + 'static,
) -> Yard {
    Yard::build(Setup { timeout: BUDGET, ..Setup::default() }, script)
}

/// What a call came to, in a word.
fn word(heard: &str) -> &'static str {
    match (heard.contains("done"), heard.contains(r#""code":"timeout""#)) {
        (true, false) => "done",
        (false, true) => "timeout",
        _ => panic!("{heard}"),
    }
}

/// How long the tool works before and after it asks, how long its client takes, and what comes of it.
const CASES: [(&str, u64, &str); 5] = [
    ("0,9", 0, "done"),
    ("0,9", 300, "done"),
    ("8,1", 300, "done"),
    ("8,3", 300, "timeout"),
    ("0,11", 1, "timeout"),
];

#[tokio::test(start_paused = true)]
async fn while_a_legacy_client_is_asked() {
    let yard = yard(work);
    let mut client = Client::piped(&yard, LEGACY[3], ABLE).await;
    for (id, (work, takes, expected)) in (0..).zip(CASES) {
        let asked = client.call("ask", &format!(r#""n":[{work}]"#)).await;
        assert!(asked.contains("roots/list"), "{asked}");
        sleep(seconds(takes)).await;
        client.answer(id, "{}").await;
        assert_eq!(word(&client.hear().await), expected, "{work} {takes}");
    }
}

#[tokio::test(start_paused = true)]
async fn while_a_modern_client_is_away() {
    let yard = yard(work);
    let mut client = Client::piped(&yard, MODERN, ABLE).await;
    for (work, takes, expected) in CASES {
        let call = tool_params("ask", &format!(r#""n":[{work}]"#));
        let asked = client.ask("tools/call", &call).await;
        assert!(asked.contains("input_required"), "{asked}");
        let state = client.last("requestState");
        sleep(seconds(takes)).await;
        let answers = r#""inputResponses":{"roots-1":{}}"#;
        let heard = client.ask("tools/call", &format!(r#"{call},{answers},"requestState":"{state}""#)).await;
        assert_eq!(word(&heard), expected, "{work} {takes}");
    }
}

/// A call that does not ask has its budget, and not more.
#[tokio::test(start_paused = true)]
async fn without_questions() {
    let yard = yard(|call| async move {
        sleep(numbers(&call)[0]).await;
        Ok(text("done"))
    });
    for revision in [LEGACY[3], MODERN] {
        let mut client = Client::piped(&yard, revision, ABLE).await;
        assert_eq!(word(&client.call("ask", r#""n":[9,0]"#).await), "done");
        assert_eq!(word(&client.call("ask", r#""n":[11,0]"#).await), "timeout");
    }
}

/// Questions that are open at the same time take the same time; those that follow each other take theirs.
#[tokio::test(start_paused = true)]
async fn several_questions() {
    let yard = yard(|call| async move {
        let (one, two) = tokio::join!(ask(&call), ask(&call));
        one.and(two)?;
        ask(&call).await?;
        sleep(numbers(&call)[0]).await;
        Ok(text("done"))
    });
    let mut client = Client::piped(&yard, LEGACY[3], ABLE).await;
    for (first, (work, expected)) in [(0, ("9,0", "done")), (3, ("11,0", "timeout"))] {
        client.request("tools/call", &tool_params("ask", &format!(r#""n":[{work}]"#))).await;
        client.hear_all(2).await;
        sleep(seconds(100)).await;
        client.answer(first, "{}").await;
        sleep(seconds(100)).await;
        client.answer(first + 1, "{}").await;
        client.hear().await;
        sleep(seconds(100)).await;
        client.answer(first + 2, "{}").await;
        assert_eq!(word(&client.hear().await), expected);
    }
}

/// A backend that is called again has its whole budget again, and not more: what its client took before was not
/// taken off this one.
#[tokio::test(start_paused = true)]
async fn of_each_round() {
    let yard = yard(|call| async move {
        let [before, after] = numbers(&call);
        if call.params.get("inputResponses").is_some() {
            sleep(after).await;
            return Ok(text("done"));
        }
        sleep(before).await;
        let requests = Json::parse(format!(r#"{{"a":{ROOTS}}}"#)).unwrap();
        Ok(Outcome::NeedsInput(Object::new().with("inputRequests", requests)))
    });
    let mut client = Client::piped(&yard, LEGACY[3], ABLE).await;
    for (id, (work, expected)) in [(0, ("9,9", "done")), (1, ("9,11", "timeout"))] {
        client.call("need", &format!(r#""n":[{work}]"#)).await;
        sleep(seconds(300)).await;
        client.answer(id, "{}").await;
        assert_eq!(word(&client.hear().await), expected, "{work}");
    }
}

/// The time goes on where a question was withdrawn.
#[tokio::test(start_paused = true)]
async fn after_a_question() {
    let yard = yard(|call| async move {
        let _late = tokio::time::timeout(seconds(100), ask(&call)).await;
        sleep(numbers(&call)[0]).await;
        Ok(text("done"))
    });
    for revision in [LEGACY[3], MODERN] {
        let mut client = Client::piped(&yard, revision, ABLE).await;
        let mut lines = Vec::new();
        for work in ["9,0", "11,0"] {
            let call = tool_params("ask", &format!(r#""n":[{work}]"#));
            client.ask("tools/call", &call).await;
            let start = tokio::time::Instant::now();
            if revision == MODERN {
                let state = client.last("requestState");
                advance(seconds(101)).await;
                lines.push(client.ask("tools/call", &format!(r#"{call},"requestState":"{state}""#)).await);
            } else {
                // The question, and the end of it.
                client.hear().await;
                lines.push(client.hear().await);
            }
            assert!(start.elapsed() < seconds(112), "{:?}", start.elapsed());
        }
        assert_eq!([word(&lines[0]), word(&lines[1])], ["done", "timeout"], "{revision}");
    }
}

/// What stands in the way of a call counts: it is not the client's.
#[tokio::test(start_paused = true)]
async fn what_the_model_reads() {
    let yard = yard(work);
    let mut client = Client::piped(&yard, LEGACY[3], ABLE).await;
    client.call("ask", r#""n":[0,11]"#).await;
    client.answer(0, "{}").await;
    assert_snapshot!(client.hear().await, @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The tool did not answer in time","data":{"code":"timeout","reason":"The tool did not answer in time","retryable":true}}}"#);
}

/// What runs when a client has said all is waited for, but not for as long as it likes.
#[tokio::test(start_paused = true)]
async fn after_the_end_of_the_input() {
    let yard = Yard::build(Setup { timeout: BUDGET * 10, ..Setup::default() }, |call| async move {
        sleep(numbers(&call)[0]).await;
        Ok(text("done"))
    });
    let mut seen = Vec::new();
    for work in [DRAIN - seconds(1), DRAIN + seconds(1)] {
        let mut client = Client::piped(&yard, MODERN, "{}").await;
        let start = tokio::time::Instant::now();
        client.request("tools/call", &tool_params("echo", &format!(r#""n":[{},0]"#, work.as_secs()))).await;
        let said = client.end().await;
        seen.push(format!("{:?} {said:?} {}", start.elapsed(), yard.over().pop().unwrap()));
    }
    assert_snapshot!(seen.join("\n"), @r#"
    9s "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"done\"}],\"resultType\":\"complete\"}}" echo Ok(true)
    10s "" echo Err(Cancelled)
    "#);
}
