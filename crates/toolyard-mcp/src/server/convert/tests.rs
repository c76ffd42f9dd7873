use insta::assert_snapshot;

use super::*;

fn object(text: &str) -> Object {
    Object::parse(text.to_owned()).unwrap()
}

/// What a client of each era is told.
fn told(came_to: impl Fn() -> Result<Outcome, ToolError>) -> String {
    let told = |era| match answer(came_to(), era) {
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
    assert_snapshot!(told(|| done(r#"{"b":1.10,"a":[ ]}"#)), @"");
    assert_snapshot!(told(|| done(r#"{"resultType":"complete","a":1}"#)), @"");
    assert_snapshot!(told(|| done("{}")), @"");
}

#[test]
fn questions_and_tasks_are_for_clients_that_know_them() {
    assert_snapshot!(told(|| Ok(Outcome::NeedsInput(object(r#"{"resultType":"input_required"}"#)))), @"");
    assert_snapshot!(told(|| Ok(Outcome::Task(object(r#"{"resultType":"task"}"#)))), @"");
}

#[test]
fn errors() {
    assert_snapshot!(told(|| Err(ToolError::new(Code::InvalidArguments, "/n: too large"))), @"");
    assert_snapshot!(told(|| Err(ToolError::new(Code::Overloaded, "later").caused_by("a secret"))), @"");
    let peer = || Json::parse(r#"{"x":1.0,"code":7,"message":"theirs"}"#).unwrap();
    assert_snapshot!(told(|| Err(ToolError::new(Code::ExecutionFailed, "ours").from_peer(peer()))), @"");
}
