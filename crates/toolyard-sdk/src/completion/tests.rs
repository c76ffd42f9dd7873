use serde_json::{Value, json};
use toolyard_core::{Reference, Target};

use super::*;
use crate::context::testing::{self, shown};

/// What a completer answers to these parameters.
async fn completed_of<M>(completer: impl Completer<M>, params: Value) -> String {
    let target = Target::Completion(Reference::Prompt("p".into()));
    let call = testing::call(target, params, &Arc::default());
    let (context, _running) = testing::of(&call);
    shown(handler(completer)(call, context).await)
}

async fn completed<M>(completer: impl Completer<M>) -> String {
    let params = json!({
        "ref": {"type": "ref/prompt", "name": "p"},
        "argument": {"name": "framework", "value": "fl"},
        "context": {"arguments": {"language": "python", "number": 7}},
    });
    completed_of(completer, params).await
}

#[tokio::test]
async fn all_kinds_of_completers() {
    let one = |value: &str| format!(r#"{{"completion":{{"values":["{value}"],"total":1,"hasMore":false}}}}"#);
    assert_eq!(completed(|typed: String| vec![typed]).await, one("fl"));
    assert_eq!(completed(async |typed: String| [typed + "ask"]).await, one("flask"));
    let request = async |request: CompletionRequest| {
        vec![format!("{} {} {:?}", request.argument, request.value, request.context).replace('"', "'")]
    };
    assert_eq!(completed(request).await, one("framework fl {'language': 'python'}"));
    let both =
        |ctx: Context, request: CompletionRequest| vec![format!("{} {}", ctx.request_name(), request.value)];
    assert_eq!(completed(both).await, one("p fl"));
    assert_eq!(
        completed(async |ctx: Context, typed: String| vec![format!("{} {typed}", ctx.request_name())]).await,
        one("p fl")
    );
    assert_eq!(completed(async |_: String| Ok::<_, ToolFailure>(["a"])).await, one("a"));
    assert_eq!(
        completed(async |_: String| Err::<Vec<String>, _>("no list")).await,
        "ExecutionFailed no list"
    );
}

#[tokio::test]
async fn at_most_a_hundred_go_out() {
    let check = async |completion: Completion, expected: (usize, Option<u64>, bool)| {
        let answer = completed(async move |_: String| completion).await;
        let completion = &serde_json::from_str::<Value>(&answer).unwrap()["completion"];
        let values = completion["values"].as_array().unwrap().len();
        assert_eq!((values, completion["total"].as_u64(), completion["hasMore"] == true), expected);
    };
    let numbers = |count: u32| (0..count).map(|number| number.to_string());
    check(Completion::of(numbers(0)), (0, Some(0), false)).await;
    check(Completion::of(numbers(100)), (100, Some(100), false)).await;
    check(Completion::of(numbers(101)), (100, Some(101), true)).await;
    let some = Completion { values: numbers(101).collect(), ..Completion::default() };
    check(some, (100, None, true)).await;
    let some = Completion { values: numbers(3).collect(), total: Some(10), has_more: true };
    check(some, (3, Some(10), true)).await;
}

#[tokio::test]
async fn requests_that_are_none() {
    let none = "InvalidArguments A completion needs an `argument` with a `name` and a `value` that are texts";
    for params in [json!({}), json!({"argument": {}}), json!({"argument": {"name": "a", "value": 7}})] {
        assert_eq!(completed_of(|typed: String| vec![typed], params).await, none);
    }
    let least = json!({"argument": {"name": "a", "value": ""}, "context": null});
    assert!(completed_of(|typed: String| vec![typed], least).await.contains(r#""values":[""]"#));
}
