use insta::assert_snapshot;

use super::*;

fn object(text: &str) -> Object {
    Object::parse(text.to_owned()).unwrap()
}

/// The answers to a client of each era.
fn answers_of_both_eras(came_to: impl Fn() -> Result<Outcome, ToolError>) -> String {
    let answer_of = |era| match to_answer(came_to(), &CallTarget::Tool("t".into()), era) {
        Ok(pieces) => String::from_utf8(pieces.concat()).unwrap(),
        Err(error) => format!("error {}", error.body().as_text()),
    };
    [ProtocolEra::Legacy, ProtocolEra::Modern].map(answer_of).join("\n")
}

fn done(body: &str) -> Result<Outcome, ToolError> {
    Ok(Outcome::Done(CallOutput { body: object(body), is_error: false }))
}

#[test]
fn result_type_is_added_for_modern_clients() {
    assert_snapshot!(answers_of_both_eras(|| done(r#"{"b":1.10,"a":[ ]}"#)), @r#"
    {"b":1.10,"a":[ ]}
    {"b":1.10,"a":[ ],"resultType":"complete"}
    "#);
    assert_snapshot!(answers_of_both_eras(|| done(r#"{"resultType":"complete","a":1}"#)), @r#"
    {"resultType":"complete","a":1}
    {"resultType":"complete","a":1}
    "#);
    assert_snapshot!(answers_of_both_eras(|| done("{}")), @r#"
    {}
    {"resultType":"complete"}
    "#);
}

#[test]
fn input_and_tasks_need_a_modern_client() {
    assert_snapshot!(answers_of_both_eras(|| Ok(Outcome::NeedsInput(object(r#"{"resultType":"input_required"}"#)))), @r#"
    error {"code":-32603,"message":"The tool needs something that this client does not support","data":{"code":"execution_failed","reason":"the call failed","retryable":false}}
    {"resultType":"input_required"}
    "#);
    assert_snapshot!(answers_of_both_eras(|| Ok(Outcome::Task(object(r#"{"resultType":"task"}"#).into()))), @r#"
    error {"code":-32603,"message":"The tool needs something that this client does not support","data":{"code":"execution_failed","reason":"the call failed","retryable":false}}
    {"resultType":"task"}
    "#);
}

#[test]
fn errors() {
    assert_snapshot!(answers_of_both_eras(|| Err(ToolError::new(ErrorCode::InvalidArguments, "/n: too large"))), @r#"
    {"content":[{"type":"text","text":"/n: too large"}],"isError":true}
    {"content":[{"type":"text","text":"/n: too large"}],"isError":true,"resultType":"complete"}
    "#);
    assert_snapshot!(answers_of_both_eras(|| Err(ToolError::new(ErrorCode::Overloaded, "later").caused_by("a secret"))), @r#"
    error {"code":-32603,"message":"later","data":{"code":"overloaded","reason":"a limit of the gateway is reached","retryable":true}}
    error {"code":-32603,"message":"later","data":{"code":"overloaded","reason":"a limit of the gateway is reached","retryable":true}}
    "#);
    let peer = || Json::parse(r#"{"x":1.0,"code":7,"message":"theirs"}"#).unwrap();
    assert_snapshot!(answers_of_both_eras(|| Err(ToolError::new(ErrorCode::ExecutionFailed, "ours").from_peer(peer()))), @r#"
    error {"x":1.0,"code":7,"message":"theirs"}
    error {"x":1.0,"code":7,"message":"theirs"}
    "#);
}

/// The answers of a legacy server that reports an unknown resource, for clients of both eras.
fn unknown_resource(target: &CallTarget, error: &str) -> String {
    let answer_of = |era| {
        let peer = Json::parse(error.to_owned()).unwrap();
        let error = ToolError::new(ErrorCode::ExecutionFailed, "ours").from_peer(peer);
        to_answer(Err(error), target, era).unwrap_err().body().as_text().to_owned()
    };
    [ProtocolEra::Legacy, ProtocolEra::Modern].map(answer_of).join("\n")
}

#[test]
fn unknown_resource_of_a_legacy_server_is_converted_for_modern_clients() {
    let resource = CallTarget::Resource("res://x".into());
    let template = CallTarget::Completion(toolyard_core::CompletionReference::Template("doc://{id}".into()));
    let cases = [
        ("no data", &resource, r#"{"code":-32002,"message":"m"}"#),
        ("data with a URI", &resource, r#"{"code":-32002,"message":"m","data":{"a":1,"uri":"own://x"}}"#),
        ("data without a URI", &resource, r#"{"code":-32002,"message":"m","data":{"a":1.10}}"#),
        ("null", &resource, r#"{"code":-32002,"message":"m","data":null}"#),
        ("a string", &resource, r#"{"code":-32002,"message":"m","data":"res://x"}"#),
        ("an array", &resource, r#"{"x":[ ],"code":-32002,"message":"m","data":[1, 2]}"#),
        ("a tool", &CallTarget::Tool("t".into()), r#"{"code":-32002,"message":"m"}"#),
        (
            "a tool that names it",
            &CallTarget::Tool("t".into()),
            r#"{"code":-32002,"message":"m","data":{"uri":"own://x"}}"#,
        ),
        ("a prompt", &CallTarget::Prompt("p".into()), r#"{"code":-32002,"message":"m"}"#),
        ("a template", &template, r#"{"code":-32002,"message":"m"}"#),
        ("another code", &resource, r#"{"code":-32003,"message":"m"}"#),
    ];
    let lines = cases.map(|(name, target, error)| format!("{name}:\n{}", unknown_resource(target, error)));
    assert_snapshot!(lines.join("\n"), @r#"
    no data:
    {"code":-32002,"message":"m"}
    {"code":-32602,"message":"m","data":{"uri":"res://x"}}
    data with a URI:
    {"code":-32002,"message":"m","data":{"a":1,"uri":"own://x"}}
    {"code":-32602,"message":"m","data":{"a":1,"uri":"own://x"}}
    data without a URI:
    {"code":-32002,"message":"m","data":{"a":1.10}}
    {"code":-32602,"message":"m","data":{"a":1.10,"uri":"res://x"}}
    null:
    {"code":-32002,"message":"m","data":null}
    {"code":-32602,"message":"m","data":{"uri":"res://x"}}
    a string:
    {"code":-32002,"message":"m","data":"res://x"}
    {"code":-32602,"message":"m","data":{"data":"res://x","uri":"res://x"}}
    an array:
    {"x":[ ],"code":-32002,"message":"m","data":[1, 2]}
    {"x":[ ],"code":-32602,"message":"m","data":{"data":[1, 2],"uri":"res://x"}}
    a tool:
    {"code":-32002,"message":"m"}
    {"code":-32002,"message":"m"}
    a tool that names it:
    {"code":-32002,"message":"m","data":{"uri":"own://x"}}
    {"code":-32002,"message":"m","data":{"uri":"own://x"}}
    a prompt:
    {"code":-32002,"message":"m"}
    {"code":-32002,"message":"m"}
    a template:
    {"code":-32002,"message":"m"}
    {"code":-32602,"message":"m","data":{"uri":"doc://{id}"}}
    another code:
    {"code":-32003,"message":"m"}
    {"code":-32003,"message":"m"}
    "#);
}
