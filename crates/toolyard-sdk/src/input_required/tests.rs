use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolyard_core::{Call, CallTarget, Caller};

use super::*;
use crate::context::testing::{self, ScriptedClient, describe_outcome};

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Name {
    name: String,
}

fn everything() -> Value {
    json!({"elicitation": {"url": {}, "form": {}}, "sampling": {}, "roots": {}})
}

fn call(capabilities: Value, params: Value) -> Call {
    testing::call(CallTarget::Tool("greet".into()), params, &Arc::new(ScriptedClient::with(capabilities)))
}

fn context(capabilities: Value, params: Value) -> Context {
    testing::context_of(&call(capabilities, params)).0
}

fn name() -> ElicitRequest {
    ElicitRequest::form::<Name>("Your name?")
}

/// The outcome of these questions for a client with these capabilities.
fn outcome_of(capabilities: Value, asks: InputRequired) -> String {
    describe_outcome(asks.outcome(&context(capabilities, json!({}))))
}

#[test]
fn questions_become_requests() {
    let all = InputRequired::new()
        .ask("user_name", name())
        .ask("greeting", SampleRequest::new().user("Generate a greeting").max_tokens(50))
        .ask("client_roots", RootsRequest);
    insta::assert_snapshot!(outcome_of(everything(), all), @r#"asks {"resultType":"input_required","inputRequests":{"user_name":{"method":"elicitation/create","params":{"mode":"form","message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}},"greeting":{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"Generate a greeting"}}],"maxTokens":50}},"client_roots":{"method":"roots/list","params":{}}}}"#);
    let twice = InputRequired::new().ask("a", name()).ask("a", RootsRequest);
    insta::assert_snapshot!(outcome_of(everything(), twice), @r#"asks {"resultType":"input_required","inputRequests":{"a":{"method":"roots/list","params":{}}}}"#);
}

#[test]
fn unsupported_question_is_not_sent() {
    let must = || InputRequired::new().ask("name", name()).ask("roots", RootsRequest);
    insta::assert_snapshot!(outcome_of(json!({"roots": {}}), must()), @r#"MissingCapability {"elicitation":{}}"#);
    insta::assert_snapshot!(outcome_of(json!({"elicitation": {}}), must()), @r#"MissingCapability {"roots":{}}"#);
    let may =
        || InputRequired::new().ask_if_supported("name", name()).ask_if_supported("roots", RootsRequest);
    insta::assert_snapshot!(outcome_of(json!({"roots": {}}), may()), @r#"asks {"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list","params":{}}}}"#);
    insta::assert_snapshot!(outcome_of(json!({}), may()), @r#"MissingCapability {"elicitation":{},"roots":{}}"#);
    let page = || {
        InputRequired::new().ask_if_supported("page", ElicitRequest::url("Open", "https://example.com", "1"))
    };
    insta::assert_snapshot!(outcome_of(json!({"elicitation": {}}), page()), @r#"MissingCapability {"elicitation":{"url":{}}}"#);
    let tools = SampleRequest::new().tool::<Name>("greet", "Greets.");
    insta::assert_snapshot!(outcome_of(json!({"sampling": {}}), InputRequired::new().ask("a", tools)), @r#"MissingCapability {"sampling":{"tools":{}}}"#);
    insta::assert_snapshot!(outcome_of(everything(), InputRequired::new()), @r#"ExecutionFailed The tool asks no question"#);
    let bad = ElicitRequest::form_with_schema(
        "?",
        json!({"type": "object", "properties": {"a": {"type": "object"}}}),
    );
    insta::assert_snapshot!(outcome_of(everything(), InputRequired::new().ask("a", bad)), @"ExecutionFailed The tool asks an invalid question");
}

#[test]
fn answers_are_read_by_key() {
    let answers = json!({
        "name": {"action": "accept", "content": {"name": "Ada"}},
        "other": {"action": "accept", "content": {"wrong": 1}},
        "no": {"action": "decline"},
        "sample": {"role": "assistant", "content": {"type": "text", "text": "Hi"}, "model": "m"},
        "roots": {"roots": [{"uri": "file:///a"}]},
        "number": 12345,
        "null": null,
    });
    let ctx = context(everything(), json!({"inputResponses": answers}));
    assert_eq!(ctx.elicit_answer("name"), Some(ElicitResult::Accepted(Name { name: "Ada".into() })));
    assert_eq!(ctx.elicit_answer::<Name>("no"), Some(ElicitResult::Declined));
    assert_eq!(ctx.sample_answer("sample").map(|sample| sample.text()), Some("Hi".to_owned()));
    assert_eq!(ctx.roots_answer("roots").map(|roots| roots.len()), Some(1));
    assert_eq!(ctx.answer("other"), Some(json!({"action": "accept", "content": {"wrong": 1}})));
    assert!(ctx.is_retry());
    for key in ["other", "sample", "roots", "number", "null", "unknown"] {
        assert_eq!(ctx.elicit_answer::<Name>(key), None, "{key}");
    }
    for key in ["name", "roots", "number", "unknown"] {
        assert!(ctx.sample_answer(key).is_none(), "{key}");
        assert!(key == "roots" || ctx.roots_answer(key).is_none(), "{key}");
    }
    for params in [json!({}), json!({"inputResponses": null}), json!({"inputResponses": [1]})] {
        assert_eq!(context(everything(), params).answer("name"), None);
    }
    assert!(!context(everything(), json!({})).is_retry());
}

/// The sealed state of a call.
fn state_of(call: &Call, state: &impl Serialize, valid_for: Duration) -> Json {
    let asks = InputRequired::new().state(state).unwrap().valid_for(valid_for);
    match asks.outcome(&testing::context_of(call).0) {
        Ok(Outcome::NeedsInput(body)) => body.get("requestState").unwrap().clone(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check(mut call: Call, state: &Json, expected: Result<Option<u32>, &str>) {
    call.params.set("requestState", state.clone());
    let opened = testing::context_of(&call).0.state::<u32>().map_err(|failure| failure.to_string());
    let expected = expected.map_err(|reason| format!("Invalid request state: {reason}"));
    assert_eq!(opened, expected);
}

#[test]
fn state_opens_only_for_the_same_call() {
    const TAMPERED: Result<Option<u32>, &str> = Err("it was not made for this request, or it was changed");
    let first = || call(json!({}), json!({"arguments": {"a": 1, "b": {"c": [2], "d": 3}}}));
    let state = state_of(&first(), &7, STATE_TTL);
    check(first(), &state, Ok(Some(7)));
    assert_ne!(state, state_of(&first(), &7, STATE_TTL), "no two states are alike");

    let reordered =
        json!({"arguments": {"b": {"d": 3, "c": [2]}, "a": 1}, "inputResponses": {}, "name": "greet"});
    check(call(json!({}), reordered), &state, Ok(Some(7)));
    check(call(json!({}), json!({"arguments": {"a": 2, "b": {"c": [2], "d": 3}}})), &state, TAMPERED);
    check(call(json!({}), json!({})), &state, TAMPERED);
    let targets = [
        CallTarget::Tool("other".into()),
        CallTarget::Prompt("greet".into()),
        CallTarget::Resource("greet".into()),
    ];
    for target in targets {
        check(Call { target, ..first() }, &state, TAMPERED);
    }
    let caller_of = |session: Option<&str>, principal: Option<&str>| Caller {
        session: session.map(Into::into),
        principal: principal.map(Into::into),
        ..Caller::default()
    };
    for caller in [caller_of(Some("s"), None), caller_of(None, Some("s"))] {
        check(Call { caller: caller.clone(), ..first() }, &state, TAMPERED);
        let theirs = state_of(&Call { caller: caller.clone(), ..first() }, &7, STATE_TTL);
        check(Call { caller, ..first() }, &theirs, Ok(Some(7)));
        check(first(), &theirs, TAMPERED);
        check(Call { caller: caller_of(Some("s"), Some("s")), ..first() }, &theirs, TAMPERED);
    }

    let text = state.to_str().unwrap().into_owned();
    for changed in [format!("{text}A"), text.to_lowercase(), "tampered".to_owned(), String::new()] {
        check(first(), &Json::string(&changed), TAMPERED);
    }
    check(first(), &Json::integer(7), Err("it is not a string"));
    check(first(), &state_of(&first(), &7, Duration::ZERO), Err("it has expired"));
    check(first(), &state_of(&first(), &"seven", STATE_TTL), Err("it does not have the expected type"));
    assert_eq!(testing::context_of(&first()).0.state::<u32>().ok(), Some(None));
}

#[test]
fn missing_and_empty_arguments_are_equal() {
    let state = state_of(&call(json!({}), json!({})), &7, STATE_TTL);
    check(call(json!({}), json!({"arguments": {}})), &state, Ok(Some(7)));
    check(call(json!({}), json!({"arguments": null})), &state, Ok(Some(7)));
}

#[test]
fn invalid_state_is_a_protocol_error() {
    let ctx = context(json!({}), json!({"requestState": "tampered"}));
    let error = ctx.state::<u32>().unwrap_err().into_error();
    insta::assert_snapshot!(describe_outcome(Err(error)), @r#"ExecutionFailed {"code":-32602,"message":"Invalid request state: it was not made for this request, or it was changed"}"#);
}

#[test]
fn debug_output_hides_the_state() {
    let asks = InputRequired::new().ask("name", name()).state("secret").unwrap();
    assert_eq!(format!("{asks:?}"), r#"InputRequired { questions: ["name"], .. }"#);
    let Ok(Outcome::NeedsInput(body)) = asks.outcome(&context(everything(), json!({}))) else { panic!() };
    let text = body.to_json().as_text().to_owned();
    assert!(text.contains("requestState") && !text.contains("secret"), "{text}");
}
