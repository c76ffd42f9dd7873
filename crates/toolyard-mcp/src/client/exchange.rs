//! A server that answers one message with one other, without a connection: a hosted function.
//!
//! It is of the legacy era, which begins with `initialize`, and has no memory of that: what else it is told beside
//! requests it cannot take. A notification would be answered with an error that belongs to no request.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::watch;
use toolyard_core::{Code, Exchange, Json, Object, ToolError};

use super::transport::{Answer, Outgoing, TransportError, parse};
use super::{ClientOptions, Endpoint, LaneOptions};
use crate::wire::{Message, method};

/// Who answers.
pub(super) struct Answerer {
    exchange: Arc<dyn Exchange>,
    message_bytes: usize,
}

impl Answerer {
    pub(super) fn new(exchange: Arc<dyn Exchange>, message_bytes: usize) -> Self {
        Self { exchange, message_bytes }
    }

    pub(super) async fn request(&self, request: Outgoing) -> Result<Answer, TransportError> {
        let Outgoing { id, message, deadline, .. } = request;
        let asked = Json::parse(message).map_err(|error| TransportError::Malformed(error.to_string()))?;
        // A panic here would end the task that keeps the connection.
        let answer = AssertUnwindSafe(async { self.exchange.exchange(asked, deadline).await }).catch_unwind();
        let answer = answer.await.unwrap_or_else(|panic| Err(panicked(panic.as_ref())))?;
        if answer.as_bytes().len() > self.message_bytes {
            return Err(TransportError::TooLarge(self.message_bytes));
        }
        answer_to(id, parse(answer.bytes())?)
    }
}

/// What it said to a request. Only an error may come without an id: of a request that could not be read.
fn answer_to(asked: u64, message: Message) -> Result<Answer, TransportError> {
    let other = |what: &str| Err(TransportError::Malformed(what.to_owned()));
    match message {
        Message::Response { id: None, answer: Ok(_) } => other("a result without an id"),
        Message::Response { id: Some(id), .. } if id.to_number_or_text() != Some(asked) => {
            other("the response to another request")
        }
        Message::Response { answer, .. } => Ok(answer),
        Message::Request { .. } | Message::Notification { .. } => other("not a response"),
    }
}

fn panicked(panic: &(dyn Any + Send)) -> ToolError {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    let error = ToolError::new(Code::ExecutionFailed, "The call failed because of a fault in the server");
    error.caused_by(text.unwrap_or_else(|| "a panic without a message".to_owned()))
}

/// Puts into a request what authors of functions count on: many read an argument without asking whether there are any.
pub(super) fn complete(method: &str, params: &mut Object) {
    let has_arguments = [method::TOOLS_CALL, method::PROMPTS_GET].contains(&method);
    if has_arguments && params.get("arguments").is_none_or(Json::is_null) {
        params.set("arguments", Object::new().to_json());
    }
}

/// What is not done with such a server: it has no connection that could be one client's, and to ask whether it is there
/// would cost as much as a call.
pub(super) fn without_connection(options: ClientOptions) -> ClientOptions {
    ClientOptions { lanes: LaneOptions::SHARED, probe: None, ..options }
}

/// Tells that who answers may be another one by now. At a server with a connection that is never so.
#[derive(Clone)]
pub(super) struct Generation(Option<watch::Receiver<u64>>);

impl Generation {
    pub(super) fn of(endpoint: &Endpoint) -> Self {
        match endpoint {
            Endpoint::Exchange(exchange) => Self(Some(exchange.generation())),
            Endpoint::Http(_) | Endpoint::Stdio { .. } => Self(None),
        }
    }

    /// Whether there may be others.
    pub(super) const fn may_change(&self) -> bool {
        self.0.is_some()
    }

    /// What is there now is asked from here on.
    pub(super) fn note(&mut self) {
        self.0.iter_mut().for_each(watch::Receiver::mark_unchanged);
    }

    /// Waits until there is another one than was noted.
    pub(super) async fn renewed(&mut self) {
        let is_other = match &mut self.0 {
            Some(generation) => generation.changed().await.is_ok(),
            None => false,
        };
        if !is_other {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(answer: &'static str, expect: Result<&str, &str>) {
        let read = parse(answer.into()).and_then(|message| answer_to(7, message));
        match (read, expect) {
            (Ok(Ok(result)), Ok(expected)) => assert_eq!(result.as_text(), expected),
            (Ok(Err(error)), Ok(expected)) => assert_eq!(error.body().as_text(), expected),
            (Err(error), Err(expected)) => assert_eq!(error.to_string(), expected),
            (read, _) => panic!("{answer}: {read:?}"),
        }
    }

    #[test]
    fn what_answers_a_request() {
        check(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, Ok("{}"));
        check(r#"{"jsonrpc":"2.0","id":"7","result":{}}"#, Ok("{}"));
        check(
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"a"}}"#,
            Ok(r#"{"code":-1,"message":"a"}"#),
        );
        check(
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"a"}}"#,
            Ok(r#"{"code":-1,"message":"a"}"#),
        );
    }

    #[test]
    fn what_does_not() {
        let prefix = "the server's answer is no MCP message: ";
        let cases = [
            (r#"{"jsonrpc":"2.0","id":8,"result":{}}"#, "the response to another request"),
            (
                r#"{"jsonrpc":"2.0","id":8,"error":{"code":-1,"message":"a"}}"#,
                "the response to another request",
            ),
            (r#"{"jsonrpc":"2.0","id":7.5,"result":{}}"#, "the response to another request"),
            (r#"{"jsonrpc":"2.0","result":{}}"#, "a result without an id"),
            (r#"{"jsonrpc":"2.0","method":"a"}"#, "not a response"),
            (r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#, "not a response"),
        ];
        for (answer, expect) in cases {
            check(answer, Err(&format!("{prefix}{expect}")));
        }
        for answer in
            ["null", "7", "[]", "{}", r#"{"id":7,"result":{}}"#, r#"{"statusCode":200,"body":"{}"}"#]
        {
            assert!(parse(answer.into()).is_err(), "{answer}");
        }
    }

    #[track_caller]
    fn completed(method: &str, params: &str, expect: &str) {
        let mut params = Object::parse(params.to_owned()).unwrap();
        complete(method, &mut params);
        assert_eq!(params.to_json().as_text(), expect);
    }

    #[test]
    fn a_call_without_arguments_has_empty_ones() {
        completed(method::TOOLS_CALL, r#"{"name":"a"}"#, r#"{"name":"a","arguments":{}}"#);
        completed(method::PROMPTS_GET, r#"{"name":"a","arguments":null}"#, r#"{"name":"a","arguments":{}}"#);
        completed(
            method::TOOLS_CALL,
            r#"{"name":"a","arguments":{"b":1}}"#,
            r#"{"name":"a","arguments":{"b":1}}"#,
        );
        completed(method::RESOURCES_READ, r#"{"uri":"a"}"#, r#"{"uri":"a"}"#);
    }
}
