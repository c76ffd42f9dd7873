//! One call of a function: what its handler is given, and what becomes of what it returns.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::json;
use tokio::time::{Instant, timeout_at};
use toolyard_core::access::Price;
use toolyard_core::{Json, Object};

use crate::code::{Context, Language};
use crate::edition::Edition;
use crate::project::Kind;
use crate::run::{Ran, Run, RunError};

/// What a call is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Of a function of MCP: the JSON-RPC response, as its handler returned it.
    Message(Json),
    /// Of another function.
    Response {
        /// What it calls the HTTP status, 100 to 599.
        status: u16,
        /// An object or a string.
        body: Json,
    },
    /// The event was a notification: its handler was not called, and there is nothing to say.
    Nothing,
}

impl Reply {
    /// What the caller reads. Where there is nothing to say this is `null`.
    #[must_use]
    pub fn to_json(&self) -> Json {
        match self {
            Self::Message(message) => message.clone(),
            Self::Response { status, body } => {
                let status = Json::unsigned(u64::from(*status));
                Object::new().with("statusCode", status).with("body", body.clone()).to_json()
            }
            Self::Nothing => Json::null(),
        }
    }

    /// Whether the function says that it failed.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        match self {
            Self::Message(message) => message.to_object().is_ok_and(|message| message.get("error").is_some()),
            Self::Response { status, .. } => *status >= 400,
            Self::Nothing => false,
        }
    }
}

/// A call that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invoked {
    /// The answer.
    pub reply: Reply,
    /// What it costs.
    pub cost: Price,
    /// What the handler has printed, as far as that is kept.
    pub log: String,
    /// Why the reply is one that says so, where the handler did not return one.
    pub failure: Option<RunError>,
}

/// Why a call was not answered. What a function does wrong itself is an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvokeError {
    /// There was no answer in time.
    #[error("no answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// As many calls run as may run.
    #[error("as many calls of this version run as may run: try again later")]
    Busy,
    /// Functions cannot run now.
    #[error("functions cannot run now")]
    Unavailable(String),
}

impl InvokeError {
    /// The HTTP status that says it.
    #[must_use]
    pub const fn status(&self) -> u16 {
        match self {
            Self::TimedOut(_) => 408,
            Self::Busy => 429,
            Self::Unavailable(_) => 503,
        }
    }

    /// In one word, for logs.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::TimedOut(_) => "timeout",
            Self::Busy => "overloaded",
            Self::Unavailable(_) => "unavailable",
        }
    }

    /// Whether the handler was called, or may have been: such a call is paid for.
    #[must_use]
    pub const fn may_have_run(&self) -> bool {
        // Without any time it was not begun.
        matches!(self, Self::TimedOut(time) if !time.is_zero())
    }
}

/// Calls a version once, and within its time. Dropping the future ends the call.
///
/// # Errors
/// When it is not answered.
pub async fn invoke(
    run: &dyn Run,
    edition: &Edition,
    event: &Json,
    request_id: &Arc<str>,
    deadline: Option<Instant>,
) -> Result<Invoked, InvokeError> {
    let request = Request::of(edition.kind, event);
    if request == Request::Notification {
        let (cost, log) = (Price::default(), String::new());
        return Ok(Invoked { reply: Reply::Nothing, cost, log, failure: None });
    }
    let begun = Instant::now();
    let last = begun + edition.code.limits.wall;
    let deadline = deadline.map_or(last, |deadline| deadline.min(last));
    let time = deadline.saturating_duration_since(begun);
    if time.is_zero() {
        return Err(InvokeError::TimedOut(time));
    }
    let context = Context {
        function_id: edition.id.clone(),
        version: edition.version.clone(),
        request_id: request_id.clone(),
        deadline: SystemTime::now() + time,
    };
    // Whoever runs it ends it then, too; that it does is not for its callers to rely on.
    let ran = timeout_at(deadline, run.run(&edition.code, event, &context)).await;
    let late = || InvokeError::TimedOut(time);
    let (failure, log) = match ran.map_err(|_| late())? {
        Ok(Ran { answer, log }) => {
            let log = edition.secrets.hide(&log).into_owned();
            match reply(&request, &answer) {
                Ok(reply) => return Ok(Invoked { reply, cost: edition.price, log, failure: None }),
                Err(wrong) => (wrong.failure(), log),
            }
        }
        Err(RunError::TimedOut) => return Err(late()),
        Err(RunError::Busy) => return Err(InvokeError::Busy),
        Err(RunError::Unavailable(why)) => return Err(InvokeError::Unavailable(why)),
        Err(failure) => {
            let failure = failure.hiding(&edition.secrets);
            let log = failure.log().to_owned();
            (failure, log)
        }
    };
    let cost = if failure.may_have_run() { edition.price } else { Price::default() };
    let reply = request.failed(edition, &failure);
    Ok(Invoked { reply, cost, log, failure: Some(failure) })
}

/// Whether an event is nothing that a handler of this kind is called for. It costs nothing.
#[must_use]
pub fn is_notification(kind: Kind, event: &Json) -> bool {
    Request::of(kind, event) == Request::Notification
}

/// What an event is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Request {
    /// Something of the function's own.
    Event,
    /// A JSON-RPC request, with its id: `null` where it cannot be found.
    Message(Json),
    /// A message that nobody answers, and which handlers do not expect.
    Notification,
}

impl Request {
    fn of(kind: Kind, event: &Json) -> Self {
        if kind == Kind::Function {
            return Self::Event;
        }
        // The message itself, or as text.
        let text = event.to_str().and_then(|text| Json::parse(text.into_owned()).ok());
        let Ok(message) = text.as_ref().unwrap_or(event).to_object() else {
            return Self::Message(Json::null());
        };
        match (message.get("id"), message.get_str("method")) {
            (Some(id), _) => Self::Message(id.clone()),
            (None, Some(_)) => Self::Notification,
            (None, None) => Self::Message(Json::null()),
        }
    }

    /// What is answered in the place of a handler that gave no answer.
    fn failed(&self, edition: &Edition, failure: &RunError) -> Reply {
        match self {
            Self::Message(id) => {
                let error = json!({ "code": -32603, "message": format!("Internal error: {failure}") });
                let message = Object::new()
                    .with("jsonrpc", Json::string("2.0"))
                    .with("id", id.clone())
                    .with("error", Json::from_value(&error));
                Reply::Message(message.to_json())
            }
            Self::Event | Self::Notification => {
                Reply::Response { status: 500, body: body(edition.code.language, failure) }
            }
        }
    }
}

/// How the languages say that a handler has failed.
fn body(language: Language, failure: &RunError) -> Json {
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
        (Language::Python, RunError::Thrown { message, .. }) => {
            json!({ "error": format!("Runtime error: {message}") })
        }
        (Language::Python, failure) => json!({ "error": format!("Runtime error: {failure}") }),
        _ => json!({ "error": "Script execution failed", "type": kind, "details": details }),
    })
}

/// What is wrong with what a handler returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    NoMessage,
    OtherId,
    NoResponse,
}

impl Wrong {
    fn failure(self) -> RunError {
        let message = match self {
            Self::NoMessage => "the handler has to return a JSON-RPC response: an object with `jsonrpc`",
            Self::OtherId => "the handler has to return a response with the `id` of the request",
            Self::NoResponse => {
                "the handler has to return {statusCode, body}: a status from 100 to 599, and an object or a string"
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

fn reply(request: &Request, answer: &Json) -> Result<Reply, Wrong> {
    match request {
        Request::Message(id) => {
            let is_message =
                |json: &Json| json.to_object().is_ok_and(|message| message.get("jsonrpc").is_some());
            // To a batch, where a handler knows batches.
            let is_batch = |json: &Json| {
                json.to_items().is_ok_and(|items| !items.is_empty() && items.iter().all(is_message))
            };
            if !is_message(answer) && !is_batch(answer) {
                return Err(Wrong::NoMessage);
            }
            answers(id, answer).then(|| Reply::Message(answer.clone())).ok_or(Wrong::OtherId)
        }
        Request::Event | Request::Notification => {
            let object = answer.to_object().map_err(|_| Wrong::NoResponse)?;
            let status = object.get("statusCode").and_then(status).ok_or(Wrong::NoResponse)?;
            let body = object.get("body").filter(|body| body.is_object() || body.to_str().is_some());
            Ok(Reply::Response { status, body: body.ok_or(Wrong::NoResponse)?.clone() })
        }
    }
}

/// Whether a message is the response to the request of this id, where that has one. An error may say that the request
/// could not be read.
fn answers(asked: &Json, answer: &Json) -> bool {
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

/// A status, which some languages write as `200.0`.
fn status(json: &Json) -> Option<u16> {
    let number = json.is_number().then(|| json.as_text().parse::<f64>().ok()).flatten()?;
    (100..600).find(|status| f64::from(*status) == number)
}

#[cfg(test)]
mod tests;
