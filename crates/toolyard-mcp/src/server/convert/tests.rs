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
    error {"code":-32603,"message":"The tool needs something that this client does not support","data":{"code":"execution_failed","reason":"The tool needs something that this client does not support","retryable":false}}
    {"resultType":"input_required"}
    "#);
    assert_snapshot!(answers_of_both_eras(|| Ok(Outcome::Task(object(r#"{"resultType":"task"}"#).into()))), @r#"
    error {"code":-32603,"message":"The tool needs something that this client does not support","data":{"code":"execution_failed","reason":"The tool needs something that this client does not support","retryable":false}}
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
    error {"code":-32603,"message":"later","data":{"code":"overloaded","reason":"later","retryable":true}}
    error {"code":-32603,"message":"later","data":{"code":"overloaded","reason":"later","retryable":true}}
    "#);
    let peer = || Json::parse(r#"{"x":1.0,"code":7,"message":"theirs"}"#).unwrap();
    assert_snapshot!(answers_of_both_eras(|| Err(ToolError::new(ErrorCode::ExecutionFailed, "ours").from_peer(peer()))), @r#"
    error {"x":1.0,"code":7,"message":"theirs"}
    error {"x":1.0,"code":7,"message":"theirs"}
    "#);
}
