//! One call of a function: the event for its handler, and the reply.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::json;
use tokio::time::{Instant, timeout_at};
use toolyard_core::access::CallPrice;
use toolyard_core::{Json, Object};

use crate::code::{CallContext, SourceLanguage};
use crate::loaded_version::LoadedVersion;
use crate::project::FunctionKind;
use crate::run::{CodeRunner, RunError, RunOutput};

/// Time that a runner gets to say why a call has exceeded its deadline.
const RUNNER_DELAY: Duration = Duration::from_millis(200);

/// Reply to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FunctionReply {
    /// Reply of an MCP function: the JSON-RPC response of the handler, or a JSON-RPC error if the event is a string
    /// that is not JSON.
    Message(Json),
    /// Reply of another function.
    Response {
        /// HTTP status, 100 to 599.
        status: u16,
        /// An object or a string.
        body: Json,
    },
    /// The event was a notification: the handler was not called, and there is no reply.
    None,
}

impl FunctionReply {
    /// Converts the reply to JSON; `null` if there is none.
    #[must_use]
    pub fn to_json(&self) -> Json {
        match self {
            Self::Message(message) => message.clone(),
            Self::Response { status, body } => {
                let status = Json::unsigned(u64::from(*status));
                Object::new().with("statusCode", status).with("body", body.clone()).to_json()
            }
            Self::None => Json::null(),
        }
    }

    /// True if the reply reports an error.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        match self {
            Self::Message(message) => message.to_object().is_ok_and(|message| message.get("error").is_some()),
            Self::Response { status, .. } => *status >= 400,
            Self::None => false,
        }
    }
}

/// Result of a call with a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvocationResult {
    /// Reply to the caller.
    pub reply: FunctionReply,
    /// Cost of the call.
    pub cost: CallPrice,
    /// Printed output, up to the limit.
    pub log: String,
    /// Failure that the reply reports, if the handler returned no valid reply.
    pub failure: Option<RunError>,
}

/// Error of a call without a reply. Failures of the function itself are replies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvokeError {
    /// The call exceeded its time limit.
    #[error("no answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The maximum number of calls is running.
    #[error("the maximum number of calls of this version is running; try again later")]
    Busy,
    /// Functions cannot run now.
    #[error("functions cannot run now: `toolyard doctor --sandbox` says why")]
    Unavailable(String),
}

impl InvokeError {
    /// HTTP status of the error.
    #[must_use]
    pub const fn status(&self) -> u16 {
        match self {
            Self::TimedOut(_) => 408,
            Self::Busy => 429,
            Self::Unavailable(_) => 503,
        }
    }

    /// True if the handler was called, or may have been: such a call has its full price.
    #[must_use]
    pub const fn may_have_run(&self) -> bool {
        // With no time left the handler was not called.
        matches!(self, Self::TimedOut(time) if !time.is_zero())
    }
}

/// Calls a version once within its time limit. Dropping the future cancels the call.
///
/// # Errors
/// If there is no reply.
pub async fn invoke(
    run: &dyn CodeRunner,
    loaded: &LoadedVersion,
    event: &Json,
    request_id: &Arc<str>,
    deadline: Option<Instant>,
) -> Result<InvocationResult, InvokeError> {
    let request = HandlerEvent::of(loaded.kind, event);
    if let Some(reply) = request.reply_without_handler() {
        return Ok(InvocationResult { reply, cost: CallPrice::default(), log: String::new(), failure: None });
    }
    let started_at = Instant::now();
    let last = started_at + loaded.code.limits.time_limit;
    let deadline = deadline.map_or(last, |deadline| deadline.min(last));
    let time = deadline.saturating_duration_since(started_at);
    if time.is_zero() {
        return Err(InvokeError::TimedOut(time));
    }
    let context = CallContext {
        function_id: loaded.id.clone(),
        version: loaded.version.clone(),
        request_id: request_id.clone(),
        deadline: SystemTime::now() + time,
    };
    // The runner has the same limit, and knows what took the time; callers do not depend on it.
    let ran = timeout_at(deadline + RUNNER_DELAY, run.run(&loaded.code, event, &context)).await;
    let late = || InvokeError::TimedOut(time);
    let (failure, log) = match ran.map_err(|_| late())? {
        Ok(RunOutput { answer, log }) => {
            let log = loaded.secrets.hide(&log).into_owned();
            match parse_reply(&request, &answer) {
                Ok(reply) => return Ok(InvocationResult { reply, cost: loaded.price, log, failure: None }),
                Err(wrong) => (wrong.failure(), log),
            }
        }
        Err(RunError::TimedOut) => return Err(late()),
        Err(RunError::Busy) => return Err(InvokeError::Busy),
        Err(RunError::Unavailable(why)) => return Err(InvokeError::Unavailable(why)),
        Err(failure) => {
            let failure = failure.redacted(&loaded.secrets);
            let log = failure.log().to_owned();
            (failure, log)
        }
    };
    let cost = if failure.may_have_run() { loaded.price } else { CallPrice::default() };
    let reply = request.failure_reply(loaded, &failure);
    Ok(InvocationResult { reply, cost, log, failure: Some(failure) })
}

/// True if an event is passed to the handler of a function of this kind. Other events cost nothing.
#[must_use]
pub fn calls_handler(kind: FunctionKind, event: &Json) -> bool {
    HandlerEvent::of(kind, event).reply_without_handler().is_none()
}

/// Classification of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
enum HandlerEvent {
    /// An event in the function's own format.
    Event,
    /// A JSON-RPC request with its id: `null` if there is none.
    Message(Json),
    /// A notification, which handlers do not expect.
    Notification,
    /// A string that is not JSON, with the parse error.
    Unparsable(String),
}

impl HandlerEvent {
    fn of(kind: FunctionKind, event: &Json) -> Self {
        if kind == FunctionKind::Function {
            return Self::Event;
        }
        // The message itself, or its text.
        let text = event.to_str().map(|text| Json::parse(text.into_owned())).transpose();
        let text = match text {
            Ok(text) => text,
            Err(error) => return Self::Unparsable(error.to_string()),
        };
        let Ok(message) = text.as_ref().unwrap_or(event).to_object() else {
            return Self::Message(Json::null());
        };
        match (message.get("id"), message.get_str("method")) {
            (Some(id), _) => Self::Message(id.clone()),
            (None, Some(_)) => Self::Notification,
            (None, None) => Self::Message(Json::null()),
        }
    }

    /// Returns the reply to an event that is not passed to the handler.
    fn reply_without_handler(&self) -> Option<FunctionReply> {
        match self {
            Self::Notification => Some(FunctionReply::None),
            Self::Unparsable(fault) => {
                Some(error_message(Json::null(), -32700, &format!("Parse error: {fault}")))
            }
            Self::Event | Self::Message(_) => None,
        }
    }

    /// Returns the reply for a failed handler.
    fn failure_reply(&self, loaded: &LoadedVersion, failure: &RunError) -> FunctionReply {
        match self {
            Self::Message(id) => error_message(id.clone(), -32603, &format!("Internal error: {failure}")),
            Self::Event | Self::Notification | Self::Unparsable(_) => {
                FunctionReply::Response { status: 500, body: failure_body(loaded.code.language, failure) }
            }
        }
    }
}

/// Returns a JSON-RPC error.
fn error_message(id: Json, code: i32, message: &str) -> FunctionReply {
    let error = json!({ "code": code, "message": message });
    let response = Object::new()
        .with("jsonrpc", Json::string("2.0"))
        .with("id", id)
        .with("error", Json::from_value(&error));
    FunctionReply::Message(response.to_json())
}

/// Returns the body for a failed handler, in the format of its language.
fn failure_body(language: SourceLanguage, failure: &RunError) -> Json {
    let (kind, details) = match failure {
        RunError::Thrown { kind, message, details, .. } if details.is_empty() => {
            (kind.as_str(), message.clone())
        }
        RunError::Thrown { kind, message, details, .. } => (kind.as_str(), format!("{message}\n{details}")),
        RunError::NotLoaded { message } => ("LoadError", message.clone()),
        RunError::OutOfMemory => ("OutOfMemory", failure.to_string()),
        RunError::OutputTooLarge { .. } => ("OutputTooLarge", failure.to_string()),
        _ => ("Error", failure.to_string()),
    };
    Json::from_value(&match (language, failure) {
        (SourceLanguage::Python, RunError::Thrown { message, .. }) => {
            json!({ "error": format!("Runtime error: {message}") })
        }
        (SourceLanguage::Python, failure) => json!({ "error": format!("Runtime error: {failure}") }),
        _ => json!({ "error": "Script execution failed", "type": kind, "details": details }),
    })
}

/// Fault of a handler's return value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InvalidReturn {
    NoMessage,
    OtherId,
    NoResponse,
}

impl InvalidReturn {
    fn failure(self) -> RunError {
        let message = match self {
            Self::NoMessage => "the handler must return a JSON-RPC response: an object with `jsonrpc`",
            Self::OtherId => "the handler must return a response with the `id` of the request",
            Self::NoResponse => {
                "the handler must return {statusCode, body}: a status from 100 to 599, and an object or a string"
            }
        };
        RunError::Thrown {
            kind: "InvalidReturn".into(),
            message: message.into(),
            details: String::new(),
            log: String::new(),
        }
    }
}

fn parse_reply(request: &HandlerEvent, answer: &Json) -> Result<FunctionReply, InvalidReturn> {
    match request {
        HandlerEvent::Message(id) => {
            let is_message =
                |json: &Json| json.to_object().is_ok_and(|message| message.get("jsonrpc").is_some());
            // Response to a batch, if the handler supports batches.
            let is_batch = |json: &Json| {
                json.to_items().is_ok_and(|items| !items.is_empty() && items.iter().all(is_message))
            };
            if !is_message(answer) && !is_batch(answer) {
                return Err(InvalidReturn::NoMessage);
            }
            is_response_to(id, answer)
                .then(|| FunctionReply::Message(answer.clone()))
                .ok_or(InvalidReturn::OtherId)
        }
        HandlerEvent::Event | HandlerEvent::Notification | HandlerEvent::Unparsable(_) => {
            let object = answer.to_object().map_err(|_| InvalidReturn::NoResponse)?;
            let status = object.get("statusCode").and_then(parse_status).ok_or(InvalidReturn::NoResponse)?;
            let body = object.get("body").filter(|body| body.is_object() || body.to_str().is_some());
            Ok(FunctionReply::Response { status, body: body.ok_or(InvalidReturn::NoResponse)?.clone() })
        }
    }
}

/// True if a message is the response to the request with this id, or if the request has no id. An error may have the id
/// `null`.
fn is_response_to(asked: &Json, answer: &Json) -> bool {
    if asked.is_null() {
        return true;
    }
    let Ok(message) = answer.to_object() else { return false };
    message.get("id").is_some_and(|id| {
        // Some languages write 7 as 7.0.
        let (id_value, asked_value) = (id.to_value(), asked.to_value());
        let is_same_number = id.is_number() && asked.is_number() && id_value.as_f64() == asked_value.as_f64();
        let is_unread = id.is_null() && message.get("error").is_some();
        id_value == asked_value || is_same_number || is_unread
    })
}

/// Parses a status, which some languages write as `200.0`.
fn parse_status(json: &Json) -> Option<u16> {
    let number = json.is_number().then(|| json.as_text().parse::<f64>().ok()).flatten()?;
    (100..600).find(|status| f64::from(*status) == number)
}

#[cfg(test)]
mod tests;
