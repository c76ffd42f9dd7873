use insta::assert_snapshot;

use super::*;

fn object(text: &str) -> Object {
    Object::parse(text.to_owned()).unwrap()
}

/// What a client of each era is told.
fn told(came_to: impl Fn() -> Result<Outcome, ToolError>) -> String {
    let told = |era| match answer(came_to(), &Target::Tool("t".into()), era) {
        Ok(pieces) => String::from_utf8(pieces.concat()).unwrap(),
        Err(error) => format!("error {}", error.body().as_text()),
    };
    [Era::Legacy, Era::Modern].map(told).join("\n")
}

fn done(body: &str) -> Result<Outcome, ToolError> {
    Ok(Outcome::Done(Output { body: object(body), is_error: false }))
}

#[test]
fn a_result_is_complete_where_that_must_be_said() {
    assert_snapshot!(told(|| done(r#"{"b":1.10,"a":[ ]}"#)), @r#"
    {"b":1.10,"a":[ ]}
    {"b":1.10,"a":[ ],"resultType":"complete"}
    "#);
    assert_snapshot!(told(|| done(r#"{"resultType":"complete","a":1}"#)), @r#"
    {"resultType":"complete","a":1}
    {"resultType":"complete","a":1}
    "#);
    assert_snapshot!(told(|| done("{}")), @r#"
    {}
    {"resultType":"complete"}
    "#);
}

#[test]
fn questions_and_tasks_are_for_clients_that_know_them() {
    assert_snapshot!(told(|| Ok(Outcome::NeedsInput(object(r#"{"resultType":"input_required"}"#)))), @r#"
    error {"code":-32603,"message":"The tool asks for something that this client cannot do","data":{"code":"execution_failed","reason":"The tool asks for something that this client cannot do","retryable":false}}
    {"resultType":"input_required"}
    "#);
    assert_snapshot!(told(|| Ok(Outcome::Task(object(r#"{"resultType":"task"}"#).into()))), @r#"
    error {"code":-32603,"message":"The tool asks for something that this client cannot do","data":{"code":"execution_failed","reason":"The tool asks for something that this client cannot do","retryable":false}}
    {"resultType":"task"}
    "#);
}

#[test]
fn errors() {
    assert_snapshot!(told(|| Err(ToolError::new(Code::InvalidArguments, "/n: too large"))), @r#"
    {"content":[{"type":"text","text":"/n: too large"}],"isError":true}
    {"content":[{"type":"text","text":"/n: too large"}],"isError":true,"resultType":"complete"}
    "#);
    assert_snapshot!(told(|| Err(ToolError::new(Code::Overloaded, "later").caused_by("a secret"))), @r#"
    error {"code":-32603,"message":"later","data":{"code":"overloaded","reason":"later","retryable":true}}
    error {"code":-32603,"message":"later","data":{"code":"overloaded","reason":"later","retryable":true}}
    "#);
    let peer = || Json::parse(r#"{"x":1.0,"code":7,"message":"theirs"}"#).unwrap();
    assert_snapshot!(told(|| Err(ToolError::new(Code::ExecutionFailed, "ours").from_peer(peer()))), @r#"
    error {"x":1.0,"code":7,"message":"theirs"}
    error {"x":1.0,"code":7,"message":"theirs"}
    "#);
}
