//! A tool that is a function: its arguments are the event, and the `{statusCode, body}` that comes back is its result.

use std::sync::Arc;
use std::time::Duration;

use ::http::StatusCode;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use toolyard_core::access::Price;
use toolyard_core::{
    Backend, Call, Catalog, Code, Exchange, Json, Object, Outcome, Output, Retry, Standing, Tool, ToolError,
    Verdict,
};

use crate::http::response::Reading;

/// What the tool is, and how it is called.
pub struct Options {
    /// The tool.
    pub tool: Tool,
    /// Who runs it.
    pub exchange: Arc<dyn Exchange>,
    /// How often a call is made that did not reach the function, or broke off.
    pub retry: Retry,
    /// The most that one attempt may take.
    pub attempt_time: Duration,
    /// What responses mean.
    pub reading: Reading,
}

/// A backend of one tool, which is there from the beginning. Whether it can be called is what its exchange says.
pub struct FunctionBackend {
    catalog: watch::Sender<Arc<Catalog>>,
    exchange: Arc<dyn Exchange>,
    retry: Retry,
    attempt_time: Duration,
    reading: Reading,
    _following: JoinSet<()>,
}

impl FunctionBackend {
    /// A backend of this tool.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let Options { tool, exchange, retry, attempt_time, reading } = options;
        let tools = vec![Arc::new(tool)];
        let standing = exchange.standing();
        let phase = standing.borrow().phase.clone();
        let catalog = watch::Sender::new(Arc::new(Catalog { phase, tools, ..Catalog::default() }));
        let mut following = JoinSet::new();
        // Most are as they were at the beginning.
        if standing.has_changed().is_ok() {
            following.spawn(follow(standing, catalog.clone()));
        }
        Self { catalog, exchange, retry, attempt_time, reading, _following: following }
    }

    async fn run(&self, call: Call) -> Result<Outcome, ToolError> {
        let event = call.arguments().cloned().unwrap_or_else(|| Object::new().to_json());
        let judge = |answer: &Result<Json, ToolError>| match answer {
            Err(error) if error.code() == Code::Unavailable => Verdict::Again { wait: error.wait() },
            Ok(_) | Err(_) => Verdict::Final,
        };
        let attempt = || self.attempt(event.clone(), call.deadline);
        let returned = self.retry.run(call.deadline, attempt, judge).await.last?;
        output(&self.reading, &returned).map(Outcome::Done)
    }

    async fn attempt(&self, event: Json, deadline: Option<Instant>) -> Result<Json, ToolError> {
        let own = Instant::now().checked_add(self.attempt_time);
        let until = [own, deadline].into_iter().flatten().min();
        let answer = self.exchange.exchange(event, until);
        match until {
            Some(until) => timeout_at(until, answer).await.unwrap_or_else(|_| {
                Err(ToolError::new(Code::Timeout, "The function did not answer in time"))
            }),
            None => answer.await,
        }
    }
}

/// Says in the catalog how who answers is.
async fn follow(mut standing: watch::Receiver<Standing>, catalog: watch::Sender<Arc<Catalog>>) {
    loop {
        let phase = standing.borrow_and_update().phase.clone();
        catalog.send_if_modified(|catalog| {
            let is_other = catalog.phase != phase;
            if is_other {
                *catalog = Arc::new(Catalog { phase, ..(**catalog).clone() });
            }
            is_other
        });
        if standing.changed().await.is_err() {
            return;
        }
    }
}

impl Backend for FunctionBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    fn price(&self, _: &Call) -> Option<Price> {
        self.exchange.standing().borrow().price
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(self.run(call))
    }
}

/// The result that a response is. A pure function.
fn output(reading: &Reading, returned: &Json) -> Result<Output, ToolError> {
    let malformed =
        || ToolError::new(Code::ExecutionFailed, "The function did not return `{statusCode, body}`");
    let response = returned.to_object().map_err(|error| malformed().caused_by(error))?;
    let status = response.get("statusCode").and_then(status).ok_or_else(malformed)?;
    let body = match response.get("body").filter(|body| !body.is_null()) {
        Some(body) => body.to_str().map_or_else(|| body.bytes(), |text| text.into_owned().into()),
        None => bytes::Bytes::new(),
    };
    match status.is_success() {
        true => reading.output(status, None, body),
        false => Ok(reading.failure("", status, &body, true)),
    }
}

/// A whole number that is a status, however the language of the function writes it.
fn status(value: &Json) -> Option<StatusCode> {
    let number = value.to_value().as_f64().filter(|number| number.fract() == 0.0)?;
    StatusCode::from_bytes(format!("{number:.0}").as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(returned: &str, expect: Result<&str, &str>) {
        let output = output(&Reading::default(), &Json::parse(returned.to_owned()).unwrap());
        let shown = output.map(|output| {
            assert_eq!(output.is_error, output.body.get("isError").is_some());
            output.body.to_json().as_text().to_owned()
        });
        assert_eq!(shown.as_deref().map_err(ToolError::message), expect, "{returned}");
    }

    #[test]
    fn a_body_is_text_and_where_it_is_an_object_structure() {
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
    fn any_other_status_is_a_failure_that_the_model_reads() {
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
    fn what_is_no_response_is_refused() {
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
