//! A client for tests, and the contexts of its calls.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::Value;
use toolyard_core::{
    Ask, AskError, Call, Caller, Client, Json, LogLevel, Notice, Object, Outcome, Target, ToolError,
};
use toolyard_mcp::seal::Sealer;
use toolyard_mcp::wire::method_of;

use super::{CancelGuard, Context, Shared};

/// A client that gives the answers that it was given, in their order, and remembers what it heard.
#[derive(Debug, Default)]
pub(crate) struct Scripted {
    capabilities: Option<Json>,
    listens: bool,
    log_level: Option<LogLevel>,
    answers: Mutex<VecDeque<Result<Json, AskError>>>,
    heard: Mutex<Vec<String>>,
}

impl Scripted {
    /// A client with these capabilities.
    pub(crate) fn with(capabilities: Value) -> Self {
        Self { capabilities: Some(Json::from_value(&capabilities)), ..Self::default() }
    }

    pub(crate) fn listening(mut self, log_level: Option<LogLevel>) -> Self {
        (self.listens, self.log_level) = (true, log_level);
        self
    }

    pub(crate) fn answering(self, answers: impl IntoIterator<Item = Result<Value, AskError>>) -> Self {
        let answers = answers.into_iter().map(|answer| answer.map(|answer| Json::from_value(&answer)));
        Self { answers: Mutex::new(answers.collect()), ..self }
    }

    /// What was told and asked so far, a line each.
    pub(crate) fn heard(&self) -> String {
        std::mem::take(&mut *self.heard.lock().unwrap()).join("\n")
    }

    fn hear(&self, what: &str, params: &Object) {
        self.heard.lock().unwrap().push(format!("{what} {}", params.to_json().as_text()));
    }
}

impl Client for Scripted {
    fn capabilities(&self) -> Option<&Json> {
        self.capabilities.as_ref()
    }

    fn listens(&self) -> bool {
        self.listens
    }

    fn log_level(&self) -> Option<LogLevel> {
        self.log_level
    }

    fn notify(&self, notice: Notice) {
        match notice {
            Notice::Progress(params) => self.hear("progress", &params),
            Notice::Log(params) => self.hear("log", &params),
            Notice::Other { method, params } => self.hear(&method, &params),
        }
    }

    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<Json, AskError>> {
        self.hear(method_of(ask.kind), &ask.params);
        ready(self.answers.lock().unwrap().pop_front().unwrap_or(Err(AskError::Gone))).boxed()
    }
}

/// A call with these parameters, which must be an object.
pub(crate) fn call(target: Target, params: Value, client: &Arc<Scripted>) -> Call {
    Call {
        target,
        params: Json::from_value(&params).to_object().unwrap(),
        meta: Object::new(),
        caller: Caller::default(),
        origin: None,
        deadline: None,
        client: client.clone(),
    }
}

/// Always with the same key.
pub(crate) fn shared() -> Arc<Shared> {
    Arc::new(Shared::new(Sealer::with_key([7; 32])))
}

/// The context of a call.
pub(crate) fn of(call: &Call) -> (Context, CancelGuard) {
    Context::new(call, shared())
}

/// What a call came to, in one line.
pub(crate) fn shown(answer: Result<Outcome, ToolError>) -> String {
    match answer {
        Ok(Outcome::Done(output)) => output.body.to_json().as_text().to_owned(),
        Ok(Outcome::NeedsInput(body)) => format!("asks {}", body.to_json().as_text()),
        Ok(Outcome::Task(started)) => format!("task {}", started.body.to_json().as_text()),
        Err(error) => match (error.peer(), error.required_capabilities()) {
            (Some(peer), _) => format!("{:?} {}", error.code(), peer.as_text()),
            (None, Some(required)) => format!("{:?} {}", error.code(), required.to_json().as_text()),
            (None, None) => format!("{:?} {error}", error.code()),
        },
    }
}
