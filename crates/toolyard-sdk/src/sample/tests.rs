use serde_json::{Value, json};

use super::*;

#[derive(serde::Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Place {
    city: String,
}

#[track_caller]
fn check(request: SampleRequest, need: RequiredCapability, expected: Value) {
    let prepared = request.prepare().unwrap();
    assert_eq!((prepared.need, prepared.ask.kind), (need, InputRequestKind::Sample));
    assert_eq!(prepared.ask.params.to_json().to_value(), expected);
}

#[test]
fn request_becomes_parameters() {
    let text = |text: &str| json!({"type": "text", "text": text});
    check(SampleRequest::new(), RequiredCapability::Sample, json!({"messages": [], "maxTokens": 1000}));
    check(
        SampleRequest::new()
            .system_prompt("Be brief.")
            .user("Hello")
            .assistant(Content::text("Hi"))
            .user(Content::image(b"abc", "image/png"))
            .max_tokens(100)
            .temperature(0.5)
            .temperature(f64::NAN)
            .stop_sequence("end")
            .model_hint("claude-sonnet")
            .model_hint("claude")
            .cost_priority(0.25)
            .speed_priority(-1.0)
            .intelligence_priority(7.0)
            .metadata(&json!({"seed": 7})),
        RequiredCapability::Sample,
        json!({
            "messages": [
                {"role": "user", "content": text("Hello")},
                {"role": "assistant", "content": text("Hi")},
                {"role": "user", "content": {"type": "image", "data": "YWJj", "mimeType": "image/png"}},
            ],
            "modelPreferences": {
                "costPriority": 0.25,
                "speedPriority": 0,
                "intelligencePriority": 1,
                "hints": [{"name": "claude-sonnet"}, {"name": "claude"}],
            },
            "stopSequences": ["end"],
            "systemPrompt": "Be brief.",
            "temperature": 0.5,
            "metadata": {"seed": 7},
            "maxTokens": 100,
        }),
    );
}

#[test]
fn tool_results_are_grouped() {
    let used = json!({
        "role": "assistant",
        "content": [
            {"type": "tool_use", "id": "1", "name": "weather", "input": {"city": "Paris"}, "_meta": {"cache": 1}},
            {"type": "tool_use", "id": "2", "name": "weather", "input": {"city": "London"}},
        ],
        "model": "m",
        "stopReason": "toolUse",
    });
    let answer = SampleRequest::read(&Json::from_value(&used)).unwrap();
    let uses: Vec<_> = answer.tool_uses().into_iter().map(|tool_use| (tool_use.id, tool_use.input)).collect();
    assert_eq!(uses, [("1".into(), json!({"city": "Paris"})), ("2".into(), json!({"city": "London"}))]);
    let result = |id: &str, text: &str| {
        let content = json!([{"type": "text", "text": text}]);
        json!({"type": "tool_result", "toolUseId": id, "content": content})
    };
    let mut failed = result("2", "no such city");
    failed["isError"] = json!(true);
    let schema = schema_of::<Place>();
    check(
        SampleRequest::new()
            .tool::<Place>("weather", "Says how it is.")
            .tool_choice(ToolChoice::Auto)
            .with_answer(&answer)
            .tool_result("1", "18 degrees")
            .tool_error("2", "no such city")
            .user("Go on."),
        RequiredCapability::SampleWithTools,
        json!({
            "messages": [
                {"role": "assistant", "content": used["content"]},
                {"role": "user", "content": [result("1", "18 degrees"), failed]},
                {"role": "user", "content": {"type": "text", "text": "Go on."}},
            ],
            "tools": [{"name": "weather", "description": "Says how it is.", "inputSchema": schema}],
            "toolChoice": {"mode": "auto"},
            "maxTokens": 1000,
        }),
    );
    check(
        SampleRequest::new().tool_choice(ToolChoice::None).tool_result("1", "a"),
        RequiredCapability::SampleWithTools,
        json!({
            "messages": [{"role": "user", "content": result("1", "a")}],
            "toolChoice": {"mode": "none"},
            "maxTokens": 1000,
        }),
    );
}

#[test]
fn response_is_parsed() {
    let read = |answer: Value| SampleRequest::read(&Json::from_value(&answer)).map_err(|error| error.0);
    let sample = read(json!({
        "model": "m",
        "role": "assistant",
        "content": [{"type": "text", "text": "a"}, {"type": "audio", "data": ""}, {"type": "text", "text": "b"}],
        "stopReason": "endTurn",
        "own": 1,
    }))
    .unwrap();
    assert_eq!((sample.text().as_str(), sample.model.as_str(), sample.role), ("ab", "m", Role::Assistant));
    assert_eq!((sample.stop_reason.as_deref(), sample.content.len()), (Some("endTurn"), 3));
    assert_eq!(sample.raw()["own"], 1);
    let minimal = read(json!({"role": "user", "content": {"type": "text", "text": "a"}})).unwrap();
    assert_eq!((minimal.text().as_str(), minimal.stop_reason), ("a", None));
    assert!(minimal.model.is_empty());
    assert_eq!(read(json!({"model": "m"})).unwrap_err(), "its `role` is not `user` or `assistant`");
    assert_eq!(read(json!({"role": "assistant"})).unwrap_err(), "it has no content");
    assert_eq!(read(json!({"role": "assistant", "content": "a"})).unwrap_err(), "its content is invalid");
    assert_eq!(read(json!(7)).unwrap_err(), "it is not an object");
    assert!(format!("{sample:?}").find("\"a\"").is_none(), "the text is hidden");
}
