//! The transport to a hosted function, which answers each message without a connection.
//!
//! A function belongs to the legacy era, which starts with `initialize`, but keeps no session. It receives requests
//! only: it would answer a notification with an error that belongs to no request.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::watch;
use toolyard_core::{ErrorCode, Json, MessageExchange, Object, ToolError};
use toolyard_net::budget::ByteBudget;

use super::{OutgoingRequest, TransportError, UpstreamResult, parse_message};
use crate::client::{ClientOptions, DedicatedOptions, ServerEndpoint};
use crate::wire::{RpcMessage, method};

/// A hosted function as a transport.
pub(in crate::client) struct FunctionTransport {
    function: Arc<dyn MessageExchange>,
    message_bytes: usize,
    budget: ByteBudget,
}

impl FunctionTransport {
    pub(in crate::client) fn new(exchange: Arc<dyn MessageExchange>, options: &ClientOptions) -> Self {
        Self { function: exchange, message_bytes: options.max_message_bytes, budget: options.budget.clone() }
    }

    pub(in crate::client) async fn request(
        &self,
        request: OutgoingRequest,
    ) -> Result<UpstreamResult, TransportError> {
        let budget = request.answer_budget(&self.budget);
        let OutgoingRequest { id, message, deadline, .. } = request;
        let request_json =
            Json::parse(message).map_err(|error| TransportError::Malformed(error.to_string()))?;
        // A panic here would end the task that keeps the connection.
        let answer =
            AssertUnwindSafe(async { self.function.exchange(request_json, deadline).await }).catch_unwind();
        let answer = answer.await.unwrap_or_else(|panic| Err(panic_error(panic.as_ref())))?;
        if answer.as_bytes().len() > self.message_bytes {
            return Err(TransportError::TooLarge(self.message_bytes));
        }
        match_response(id, parse_message(budget.hold(answer.bytes()).await?)?)
    }
}

/// Checks that a message is the response to a request. Only an error may lack the id, if the function could not read
/// it.
fn match_response(expected_id: u64, message: RpcMessage) -> Result<UpstreamResult, TransportError> {
    let other = |what: &str| Err(TransportError::Malformed(what.to_owned()));
    match message {
        RpcMessage::Response { id: None, answer: Ok(_) } => other("a result without an id"),
        RpcMessage::Response { id: Some(id), .. } if id.to_lenient_number() != Some(expected_id) => {
            other("the response to another request")
        }
        RpcMessage::Response { answer, .. } => Ok(answer),
        RpcMessage::Request { .. } | RpcMessage::Notification { .. } => other("not a response"),
    }
}

fn panic_error(panic: &(dyn Any + Send)) -> ToolError {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    let error =
        ToolError::new(ErrorCode::ExecutionFailed, "The call failed because of a fault in the server");
    error.caused_by(text.unwrap_or_else(|| "a panic without a message".to_owned()))
}

/// Adds empty arguments if there are none: many functions read an argument without checking.
pub(in crate::client) fn fill_arguments(method: &str, params: &mut Object) {
    let has_arguments = [method::TOOLS_CALL, method::PROMPTS_GET].contains(&method);
    if has_arguments && params.get("arguments").is_none_or(Json::is_null) {
        params.set("arguments", Object::new().to_json());
    }
}

/// Disables what needs a connection: dedicated connections, and the liveness probe, which would cost as much as a call.
pub(in crate::client) fn without_connection_options(options: ClientOptions) -> ClientOptions {
    ClientOptions { dedicated: DedicatedOptions::SHARED, probe: None, ..options }
}

/// Signals that a function was replaced. A server with a connection is never replaced.
#[derive(Clone)]
pub(in crate::client) struct FunctionGeneration(Option<watch::Receiver<u64>>);

impl FunctionGeneration {
    pub(in crate::client) fn of(endpoint: &ServerEndpoint) -> Self {
        match endpoint {
            ServerEndpoint::Function(exchange) => Self(Some(exchange.generation())),
            ServerEndpoint::Http(_) | ServerEndpoint::Stdio { .. } => Self(None),
        }
    }

    /// True if the server may be replaced.
    pub(in crate::client) const fn may_change(&self) -> bool {
        self.0.is_some()
    }

    /// Marks the current generation as seen.
    pub(in crate::client) fn mark_seen(&mut self) {
        self.0.iter_mut().for_each(watch::Receiver::mark_unchanged);
    }

    /// Waits for another generation than the seen one.
    pub(in crate::client) async fn wait_for_change(&mut self) {
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
        let read = parse_message(answer.into()).and_then(|message| match_response(7, message));
        match (read, expect) {
            (Ok(Ok(result)), Ok(expected)) => assert_eq!(result.as_text(), expected),
            (Ok(Err(error)), Ok(expected)) => assert_eq!(error.body().as_text(), expected),
            (Err(error), Err(expected)) => assert_eq!(error.to_string(), expected),
            (read, _) => panic!("{answer}: {read:?}"),
        }
    }

    #[test]
    fn matching_responses_are_accepted() {
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
    fn other_messages_are_refused() {
        let prefix = "the server's response is not an MCP message: ";
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
            assert!(parse_message(answer.into()).is_err(), "{answer}");
        }
    }

    #[track_caller]
    fn check_filled(method: &str, params: &str, expect: &str) {
        let mut params = Object::parse(params.to_owned()).unwrap();
        fill_arguments(method, &mut params);
        assert_eq!(params.to_json().as_text(), expect);
    }

    #[test]
    fn missing_arguments_become_empty() {
        check_filled(method::TOOLS_CALL, r#"{"name":"a"}"#, r#"{"name":"a","arguments":{}}"#);
        check_filled(
            method::PROMPTS_GET,
            r#"{"name":"a","arguments":null}"#,
            r#"{"name":"a","arguments":{}}"#,
        );
        check_filled(
            method::TOOLS_CALL,
            r#"{"name":"a","arguments":{"b":1}}"#,
            r#"{"name":"a","arguments":{"b":1}}"#,
        );
        check_filled(method::RESOURCES_READ, r#"{"uri":"a"}"#, r#"{"uri":"a"}"#);
    }
}
