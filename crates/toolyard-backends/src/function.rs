//! A tool that is a function: the arguments are the event, and the returned `{statusCode, body}` is the result.

use std::sync::Arc;
use std::time::Duration;

use ::http::StatusCode;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use toolyard_core::access::CallPrice;
use toolyard_core::{
    AttemptVerdict, Backend, Call, CallOutput, Catalog, ErrorCode, FunctionStatus, Json, MessageExchange,
    Object, Outcome, RetrySchedule, Tool, ToolError,
};

use crate::http::response::ResponseConversion;

/// Configuration of a function tool.
pub struct FunctionToolOptions {
    /// The tool.
    pub tool: Tool,
    /// The runtime that invokes the function.
    pub exchange: Arc<dyn MessageExchange>,
    /// Retries of calls that did not reach the function or lost their connection.
    pub retry: RetrySchedule,
    /// Timeout of one attempt.
    pub attempt_time: Duration,
    /// Conversion of responses to results.
    pub reading: ResponseConversion,
}

/// A backend of a single, constant tool. Its phase follows the status of its exchange.
pub struct FunctionBackend {
    catalog: watch::Sender<Arc<Catalog>>,
    exchange: Arc<dyn MessageExchange>,
    retry: RetrySchedule,
    attempt_time: Duration,
    reading: ResponseConversion,
    _status_task: JoinSet<()>,
}

impl FunctionBackend {
    /// Creates a backend for the tool of `options`.
    #[must_use]
    pub fn new(options: FunctionToolOptions) -> Self {
        let FunctionToolOptions { tool, exchange, retry, attempt_time, reading } = options;
        let tools = vec![Arc::new(tool)];
        let status = exchange.status();
        let phase = status.borrow().phase.clone();
        let catalog = watch::Sender::new(Arc::new(Catalog { phase, tools, ..Catalog::default() }));
        let mut status_task = JoinSet::new();
        // Most exchanges never change their status, and have dropped the sender.
        if status.has_changed().is_ok() {
            status_task.spawn(follow_status(status, catalog.clone()));
        }
        Self { catalog, exchange, retry, attempt_time, reading, _status_task: status_task }
    }

    async fn run(&self, call: Call) -> Result<Outcome, ToolError> {
        let event = call.arguments().cloned().unwrap_or_else(|| Object::new().to_json());
        let judge = |answer: &Result<Json, ToolError>| match answer {
            Err(error) if error.code() == ErrorCode::Unavailable => {
                AttemptVerdict::Again { wait: error.wait() }
            }
            Ok(_) | Err(_) => AttemptVerdict::Final,
        };
        let attempt = || self.attempt(event.clone(), call.deadline);
        let returned = self.retry.run(call.deadline, attempt, judge).await.last?;
        parse_output(&self.reading, &returned).map(Outcome::Done)
    }

    async fn attempt(&self, event: Json, deadline: Option<Instant>) -> Result<Json, ToolError> {
        let own = Instant::now().checked_add(self.attempt_time);
        let until = [own, deadline].into_iter().flatten().min();
        let answer = self.exchange.exchange(event, until);
        match until {
            Some(until) => timeout_at(until, answer).await.unwrap_or_else(|_| {
                Err(ToolError::new(ErrorCode::Timeout, "The function did not answer in time"))
            }),
            None => answer.await,
        }
    }
}

/// Publishes changes of the exchange's status in the catalog.
async fn follow_status(mut status: watch::Receiver<FunctionStatus>, catalog: watch::Sender<Arc<Catalog>>) {
    loop {
        let phase = status.borrow_and_update().phase.clone();
        catalog.send_if_modified(|catalog| {
            let has_changed = catalog.phase != phase;
            if has_changed {
                *catalog = Arc::new(Catalog { phase, ..(**catalog).clone() });
            }
            has_changed
        });
        if status.changed().await.is_err() {
            return;
        }
    }
}

impl Backend for FunctionBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    fn price(&self, _: &Call) -> Option<CallPrice> {
        self.exchange.status().borrow().price
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(self.run(call))
    }
}

/// Converts a returned response to a result. A pure function.
fn parse_output(reading: &ResponseConversion, returned: &Json) -> Result<CallOutput, ToolError> {
    let malformed =
        || ToolError::new(ErrorCode::ExecutionFailed, "The function did not return `{statusCode, body}`");
    let response = returned.to_object().map_err(|error| malformed().caused_by(error))?;
    let status = response.get("statusCode").and_then(parse_status).ok_or_else(malformed)?;
    let body = match response.get("body").filter(|body| !body.is_null()) {
        Some(body) => body.to_str().map_or_else(|| body.bytes(), |text| text.into_owned().into()),
        None => bytes::Bytes::new(),
    };
    match status.is_success() {
        true => reading.output(status, None, body),
        false => Ok(reading.failure("", status, &body, true)),
    }
}

/// Parses a whole number as a status; some languages write it as `200.0`.
fn parse_status(value: &Json) -> Option<StatusCode> {
    let number = value.to_value().as_f64().filter(|number| number.fract() == 0.0)?;
    StatusCode::from_bytes(format!("{number:.0}").as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(returned: &str, expect: Result<&str, &str>) {
        let output = parse_output(&ResponseConversion::default(), &Json::parse(returned.to_owned()).unwrap());
        let result = output.map(|output| {
            assert_eq!(output.is_error, output.body.get("isError").is_some());
            output.body.to_json().as_text().to_owned()
        });
        assert_eq!(result.as_deref().map_err(ToolError::message), expect, "{returned}");
    }

    #[test]
    fn body_is_text_and_structured_if_it_is_an_object() {
        let text = |text: &str| {
            format!(r#"{{"content":[{{"type":"text","text":{}}}]}}"#, Json::string(text).as_text())
        };
        check(r#"{"statusCode":200,"body":"hello"}"#, Ok(&text("hello")));
        check(r#"{"statusCode":200.0,"body":[1]}"#, Ok(&text("[1]")));
        check(r#"{"statusCode":204}"#, Ok(&text("204 No Content")));
        let both = r#"{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}"#;
        check(r#"{"statusCode":201,"body":{"a":1}}"#, Ok(both));
        check(r#"{"statusCode":200,"body":"{\"a\":1}"}"#, Ok(both));
    }

    #[test]
    fn other_statuses_are_error_results() {
        let failure = |text: &str| {
            format!(
                r#"{{"content":[{{"type":"text","text":{}}}],"isError":true}}"#,
                Json::string(text).as_text()
            )
        };
        check(
            r#"{"statusCode":500,"body":{"error":"Runtime error: boom"}}"#,
            Ok(&failure(r#"HTTP 500 Internal Server Error: {"error":"Runtime error: boom"}"#)),
        );
        check(
            r#"{"statusCode":404,"body":"no such city"}"#,
            Ok(&failure("HTTP 404 Not Found: no such city")),
        );
        check(r#"{"statusCode":302}"#, Ok(&failure("HTTP 302 Found (redirects are not followed)")));
    }

    #[test]
    fn malformed_responses_are_refused() {
        let malformed = Err("The function did not return `{statusCode, body}`");
        for returned in [
            "null",
            "7",
            "[]",
            "{}",
            r#"{"body":"a"}"#,
            r#"{"statusCode":"200"}"#,
            r#"{"statusCode":99}"#,
            r#"{"statusCode":1000}"#,
            r#"{"statusCode":200.5}"#,
            r#"{"statusCode":-200}"#,
            r#"{"statusCode":1e300}"#,
        ] {
            check(returned, malformed);
        }
    }
}
