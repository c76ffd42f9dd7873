use serde_json::{Value, json};
use toolyard_core::{CallTarget, CompletionReference};

use super::*;
use crate::context::testing::{self, describe_outcome};

/// The outcome of a completer for these parameters.
async fn complete_params<M>(completer: impl Completer<M>, params: Value) -> String {
    let target = CallTarget::Completion(CompletionReference::Prompt("p".into()));
    let call = testing::call(target, params, &Arc::default());
    let (context, _running) = testing::context_of(&call);
    describe_outcome(handler(completer)(call, context).await)
}

async fn complete<M>(completer: impl Completer<M>) -> String {
    let params = json!({
        "ref": {"type": "ref/prompt", "name": "p"},
        "argument": {"name": "framework", "value": "fl"},
        "context": {"arguments": {"language": "python", "number": 7}},
    });
    complete_params(completer, params).await
}

#[tokio::test]
async fn completer_forms_are_supported() {
    let one = |value: &str| format!(r#"{{"completion":{{"values":["{value}"],"total":1,"hasMore":false}}}}"#);
    assert_eq!(complete(|typed: String| vec![typed]).await, one("fl"));
    assert_eq!(complete(async |typed: String| [typed + "ask"]).await, one("flask"));
    let request = async |request: CompletionRequest| {
        vec![format!("{} {} {:?}", request.argument, request.value, request.context).replace('"', "'")]
    };
    assert_eq!(complete(request).await, one("framework fl {'language': 'python'}"));
    let both =
        |ctx: Context, request: CompletionRequest| vec![format!("{} {}", ctx.request_name(), request.value)];
    assert_eq!(complete(both).await, one("p fl"));
    assert_eq!(
        complete(async |ctx: Context, typed: String| vec![format!("{} {typed}", ctx.request_name())]).await,
        one("p fl")
    );
    assert_eq!(complete(async |_: String| Ok::<_, ToolFailure>(["a"])).await, one("a"));
    assert_eq!(complete(async |_: String| Err::<Vec<String>, _>("no list")).await, "ExecutionFailed no list");
}

#[tokio::test]
async fn at_most_100_values_are_sent() {
    let check = async |completion: CompletionReply, expected: (usize, Option<u64>, bool)| {
        let answer = complete(async move |_: String| completion).await;
        let completion = &serde_json::from_str::<Value>(&answer).unwrap()["completion"];
        let values = completion["values"].as_array().unwrap().len();
        assert_eq!((values, completion["total"].as_u64(), completion["hasMore"] == true), expected);
    };
    let numbers = |count: u32| (0..count).map(|number| number.to_string());
    check(CompletionReply::of(numbers(0)), (0, Some(0), false)).await;
    check(CompletionReply::of(numbers(100)), (100, Some(100), false)).await;
    check(CompletionReply::of(numbers(101)), (100, Some(101), true)).await;
    let some = CompletionReply { values: numbers(101).collect(), ..CompletionReply::default() };
    check(some, (100, None, true)).await;
    let some = CompletionReply { values: numbers(3).collect(), total: Some(10), has_more: true };
    check(some, (3, Some(10), true)).await;
}

#[tokio::test]
async fn malformed_request_is_refused() {
    let refusal = "InvalidArguments A completion needs an `argument` with the strings `name` and `value`";
    for params in [json!({}), json!({"argument": {}}), json!({"argument": {"name": "a", "value": 7}})] {
        assert_eq!(complete_params(|typed: String| vec![typed], params).await, refusal);
    }
    let minimal = json!({"argument": {"name": "a", "value": ""}, "context": null});
    assert!(complete_params(|typed: String| vec![typed], minimal).await.contains(r#""values":[""]"#));
}
