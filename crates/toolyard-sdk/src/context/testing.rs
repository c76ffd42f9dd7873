//! A scripted client for tests, and the contexts of its calls.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::Value;
use toolyard_core::seal::StateSealer;
use toolyard_core::{
    Call, CallTarget, Caller, Client, ClientNotification, InputRequest, InputRequestError, Json, LogLevel,
    Object, Outcome, ToolError,
};
use toolyard_mcp::wire::ask_method;

use super::{CancelGuard, Context, SharedContext};

/// A client that returns prepared answers in order and records the messages it receives.
#[derive(Debug, Default)]
pub(crate) struct ScriptedClient {
    capabilities: Option<Json>,
    listens: bool,
    log_level: Option<LogLevel>,
    answers: Mutex<VecDeque<Result<Json, InputRequestError>>>,
    messages: Mutex<Vec<String>>,
}

impl ScriptedClient {
    /// A client with these capabilities.
    pub(crate) fn with(capabilities: Value) -> Self {
        Self { capabilities: Some(Json::from_value(&capabilities)), ..Self::default() }
    }

    pub(crate) fn listening(mut self, log_level: Option<LogLevel>) -> Self {
        (self.listens, self.log_level) = (true, log_level);
        self
    }

    pub(crate) fn answering(
        self,
        answers: impl IntoIterator<Item = Result<Value, InputRequestError>>,
    ) -> Self {
        let answers = answers.into_iter().map(|answer| answer.map(|answer| Json::from_value(&answer)));
        Self { answers: Mutex::new(answers.collect()), ..self }
    }

    /// Takes the messages received so far, one per line.
    pub(crate) fn transcript(&self) -> String {
        std::mem::take(&mut *self.messages.lock().unwrap()).join("\n")
    }

    fn record(&self, method: &str, params: &Object) {
        self.messages.lock().unwrap().push(format!("{method} {}", params.to_json().as_text()));
    }
}

impl Client for ScriptedClient {
    fn capabilities(&self) -> Option<&Json> {
        self.capabilities.as_ref()
    }

    fn listens(&self) -> bool {
        self.listens
    }

    fn log_level(&self) -> Option<LogLevel> {
        self.log_level
    }

    fn notify(&self, notice: ClientNotification) {
        match notice {
            ClientNotification::Progress(body) => self.record("progress", &body.params),
            ClientNotification::Log(body) => self.record("log", &body.params),
            ClientNotification::Other { method, body } => self.record(&method, &body.params),
        }
    }

    fn ask(&self, ask: InputRequest) -> BoxFuture<'_, Result<Json, InputRequestError>> {
        self.record(ask_method(ask.kind), &ask.params);
        ready(self.answers.lock().unwrap().pop_front().unwrap_or(Err(InputRequestError::Gone))).boxed()
    }
}

/// A call with these parameters, which must be an object.
pub(crate) fn call(target: CallTarget, params: Value, client: &Arc<ScriptedClient>) -> Call {
    Call {
        target,
        params: Json::from_value(&params).to_object().unwrap(),
        meta: Object::new(),
        caller: Caller::default(),
        origin: None,
        deadline: None,
        handler_deadline: None,
        parent: None,
        client: client.clone(),
    }
}

/// A shared context whose key is always the same.
pub(crate) fn shared_context() -> Arc<SharedContext> {
    Arc::new(SharedContext::new(StateSealer::with_key([7; 32])))
}

/// The context of a call.
pub(crate) fn context_of(call: &Call) -> (Context, CancelGuard) {
    Context::new(call, shared_context())
}

/// The outcome of a call in one line.
pub(crate) fn describe_outcome(answer: Result<Outcome, ToolError>) -> String {
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
