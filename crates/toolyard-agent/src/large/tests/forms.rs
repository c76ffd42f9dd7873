//! Results of each form, and those of tasks.

use super::*;

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "the table has a case for each kind of result")]
async fn results_of_each_kind() {
    let long = "# One\nfirst words of it\n## Two | b\nsecond words of it";
    let image: Value = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
    let link = json!({"type": "resource_link", "uri": "file:///a", "name": "a"});
    let records = json!({"items": [{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}]});
    let cases = [
        ("a short text", "list_models", json!({"content": [text("short")]})),
        ("as long as may be", "list_models", json!({"content": [text(&"é".repeat(40))]})),
        ("a long text", "list_models", json!({"content": [text(long)], "_meta": {"a": 1}, "isError": false})),
        ("a long failure", "list_models", json!({"content": [text(long)], "isError": true})),
        ("a tool of its own threshold", "strict", json!({"content": [text("more than ten")]})),
        (
            "what is no text stays",
            "list_models",
            json!({"content": [image.clone(), text("first words of several,"), {"type": "note"}, text("second words of several")]}),
        ),
        (
            "only an image",
            "list_models",
            json!({"content": [json!({"type": "image", "data": "A".repeat(100), "mimeType": "image/png"})]}),
        ),
        (
            "structure, repeated as text",
            "list_models",
            json!({"content": [text(&records.to_string())], "structuredContent": records}),
        ),
        ("structure alone", "list_models", json!({"content": [], "structuredContent": records})),
        (
            "a list, repeated item by item",
            "list_models",
            json!({"content": [text(&"a".repeat(30)), text("{\"id\": 1}")], "structuredContent": {"result": ["a".repeat(30), {"id": 1}]}}),
        ),
        (
            "a resource with a short text",
            "list_models",
            json!({"content": [text(long), {"type": "resource", "resource": {"uri": "file:///a", "text": "short"}}]}),
        ),
        (
            "a resource with a long text",
            "list_models",
            json!({"content": [{"type": "resource", "resource": {"uri": "file:///a", "text": long}}]}),
        ),
        (
            "lines of a log",
            "list_models",
            json!({"content": [text("[INFO] line one happened\n[INFO] line two happened")]}),
        ),
        (
            "structure that is promised",
            "typed",
            json!({"content": [text(&records.to_string())], "structuredContent": records}),
        ),
        (
            "a text that is promised as structure",
            "typed",
            json!({"content": [text(long)], "structuredContent": {"result": long}}),
        ),
        (
            "promised structure that fits without the text",
            "typed",
            json!({"content": [text("{\"result\":\"15 letters text\"}")], "structuredContent": {"result": "15 letters text"}}),
        ),
        (
            "structure that fits without the text",
            "list_models",
            json!({"content": [text(long)], "structuredContent": {"count": 2}}),
        ),
        (
            "text that fits without the promised structure",
            "typed",
            json!({"content": [text("Found four of them")], "structuredContent": records}),
        ),
        (
            "text that fits without the promised structure which escapes it",
            "typed",
            json!({"content": [text(&"\n".repeat(30))], "structuredContent": {"result": "\n".repeat(30)}}),
        ),
        (
            "text that fits without the structure",
            "list_models",
            json!({"content": [text("{\"result\": \"15 letters text\"}")], "structuredContent": {"result": "15 letters text"}}),
        ),
        (
            "links and short resources that are long together",
            "list_models",
            json!({"content": [link, {"type": "resource", "resource": {"uri": "file:///a", "text": "short"}}, image]}),
        ),
        ("a failure where structure is promised", "typed", json!({"content": [text(long)], "isError": true})),
        (
            "structure that is given up",
            "loose",
            json!({"content": [text(&records.to_string())], "structuredContent": records}),
        ),
        (
            "structure that is kept",
            "kept",
            json!({"content": [text(&records.to_string())], "structuredContent": records}),
        ),
    ];
    let mut sections = Vec::new();
    for (what, tool, result) in cases {
        let after = LargeResultHarness::small(result.clone()).result(tool).await;
        let after =
            if after == result { "as it was".to_owned() } else { format!("{after:#}").replace("\\n", "\n") };
        sections.push(format!("=== {what}\n{after}"));
    }
    insta::assert_snapshot!(sections.join("\n"));
}

#[tokio::test]
async fn result_of_a_task_is_shortened() {
    let check = async |status: &str, result: Value, expected: &str| {
        let harness = LargeResultHarness::small(json!({"taskId": "7", "status": status, "result": result}));
        let (tool, handler, id) = ("list_models".into(), "fixed".into(), "7".into());
        let target = CallTarget::Task(TaskReference { tool, handler, id, action: TaskAction::Get });
        let meta = harness.meta(&json!({"toolyard/session": "abc123"})).await;
        let call = Call { client: Arc::new(ModelClient), target, meta, ..Call::tool("", Json::null()) };
        let Ok(Outcome::Done(output)) = harness.gateway.invoke(call).await else { panic!("no task") };
        let body = output.body.to_json().to_value();
        assert_eq!((&body["taskId"], &body["status"]), (&json!("7"), &json!(status)));
        let answer = body["result"]["content"][0]["text"].as_str().unwrap_or("nothing");
        assert!(answer.starts_with(expected), "{body}");
    };
    let long = json!({"content": [text(&"long ".repeat(20))]});
    check("completed", long, "Tool result for 'list_models' is large (100 chars)").await;
    check("completed", json!({"content": [text("short")]}), "short").await;
    check("working", Value::Null, "nothing").await;
}
