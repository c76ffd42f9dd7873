//! Requests for input from the client of a call, across the eras.
//!
//! A backend asks in one of two ways: it asks the call's client and waits, or it ends with an outcome that asks for
//! input and is called again with the responses. A client is asked in one of two ways, too: by a request (legacy), or
//! by a result that asks for input (modern). This module converts between the two ways.

use std::future::{poll_fn, ready};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, try_join_all};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use toolyard_core::{
    Call, CallTarget, Client, ErrorCode, Gateway, InputRequestError, Json, Object, Outcome, StartedTask,
    ToolError,
};

use super::request_client::{AskQuestion, RequestClient};
use super::url_elicitation;
use crate::server::tasks;
use crate::server::tasks::upstream_task::{TaskCapableClient, requires_task, wait_for_task};
use crate::wire::{ask_method, parse_ask};

/// Maximum number of round trips of one call.
pub(super) const MAX_ROUNDS: usize = 16;

/// The pause before repeating a call that asks for no input, and its maximum.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(5);

/// Maximum time of all round trips of one call.
const MAX_TIME: Duration = Duration::from_secs(3600);

/// Runs a call of a legacy client, and asks the client for input until the call is finished. If the server runs the
/// call only as a task, the gateway creates the task and awaits it.
pub(in crate::server) async fn invoke_for_legacy(gateway: &Arc<Gateway>, mut call: Call) -> InvokeResult {
    let mut result = gateway.invoke(call.clone()).await;
    if result.as_ref().is_err_and(requires_task) && matches!(call.target, CallTarget::Tool(_)) {
        call.client = Arc::new(TaskCapableClient::new(call.client));
        result = gateway.invoke(call.clone()).await;
    }
    match result? {
        Outcome::NeedsInput(needed) if call.client.capabilities().is_some() => {
            ask_and_repeat(gateway, call, needed).await
        }
        Outcome::Task(task) => wait_for_task(gateway.clone(), call, task).await,
        outcome => Ok(outcome),
    }
}

/// Asks the client of a call for input, and repeats the call until it is finished.
async fn ask_and_repeat(gateway: &Gateway, mut call: Call, mut needed: Object) -> InvokeResult {
    let (started, mut pause) = (Instant::now(), FIRST_PAUSE);
    let mut rounds = 0;
    while rounds < MAX_ROUNDS && started.elapsed() < MAX_TIME {
        match needed.get("inputRequests") {
            Some(_) => rounds += 1,
            // The server only wants to be called again later (2026-07-28, basic/patterns/mrtr).
            None => {
                sleep(pause).await;
                pause = (pause * 2).min(LAST_PAUSE);
            }
        }
        let responses = ask_all(&*call.client, &needed).await?;
        call.params.set("inputResponses", responses.to_json());
        match needed.get("requestState") {
            Some(state) => call.params.set("requestState", state.clone()),
            None => drop(call.params.remove("requestState")),
        }
        needed = match gateway.invoke(call.clone()).await? {
            Outcome::NeedsInput(needed) => needed,
            outcome => return Ok(outcome),
        };
    }
    Err(too_many_rounds())
}

/// The error of a call that asks for input again and again.
pub(super) fn too_many_rounds() -> ToolError {
    ToolError::new(ErrorCode::ExecutionFailed, "The tool asks for input too often")
}

/// Asks a client for all input that an outcome needs, concurrently.
pub(in crate::server) async fn ask_all(client: &dyn Client, needed: &Object) -> Result<Object, ToolError> {
    let malformed =
        || ToolError::new(ErrorCode::ExecutionFailed, "The tool's request for input is malformed");
    let requests = match needed.get("inputRequests") {
        Some(requests) => requests.to_object().map_err(|_| malformed())?,
        None => Object::new(),
    };
    let questions = requests.iter().map(|(key, request)| Some((key.into_owned(), parse_ask(request)?)));
    let questions: Vec<_> = questions.collect::<Option<_>>().ok_or_else(malformed)?;
    let answers = questions
        .into_iter()
        .map(|(key, ask)| async move { Ok::<_, InputRequestError>((key, client.ask(ask).await?)) });
    // A failure makes the other responses useless: their requests are cancelled.
    let answers = try_join_all(answers).await?;
    Ok(answers.into_iter().fold(Object::new(), |responses, (key, answer)| responses.with(&key, answer)))
}

/// Replaces an outcome that the modern client does not support by an error: input without the declared capability
/// (2026-07-28, basic/patterns/mrtr, server requirements), and tasks without the extension (SEP-2663, capability
/// negotiation).
pub(in crate::server) fn check_permitted(result: InvokeResult, client: &RequestClient) -> InvokeResult {
    let unsupported = |needed: &Object| {
        let requests = needed.get("inputRequests").and_then(|requests| requests.to_object().ok());
        let mut asks = requests.iter().flat_map(Object::iter).filter_map(|(_, request)| parse_ask(request));
        let ask = asks.find(|ask| !client.accepts(ask))?;
        Some(Err(InputRequestError::Unsupported(ask.required()).into()))
    };
    match &result {
        Ok(Outcome::NeedsInput(needed)) => unsupported(needed).unwrap_or(result),
        Err(error) => {
            url_elicitation::required_urls(error).and_then(|needed| unsupported(&needed)).unwrap_or(result)
        }
        Ok(Outcome::Task(_)) if !tasks::has_opted_in(client.capabilities()) => {
            Err(ToolError::missing_capability(tasks::required_capabilities()))
        }
        _ => result,
    }
}

/// Removes the requests for input from a task that its reader has not declared a capability for.
pub(in crate::server) fn filter_requests(task: &mut Object, client: &RequestClient) {
    let Some(requests) = task.get("inputRequests").and_then(|requests| requests.to_object().ok()) else {
        return;
    };
    let permitted =
        requests.iter().filter(|(_, request)| parse_ask(request).is_none_or(|ask| client.accepts(&ask)));
    let permitted =
        permitted.fold(Object::new(), |permitted, (key, request)| permitted.with(&key, request.clone()));
    task.set("inputRequests", permitted.to_json());
}

/// The result of invoking a call.
pub(in crate::server) type InvokeResult = Result<Outcome, ToolError>;

/// A running call of a modern client, which may ask for input.
pub(in crate::server) struct CallExecution {
    gateway: Arc<Gateway>,
    call: Call,
    running: BoxFuture<'static, InvokeResult>,
    questions: mpsc::Receiver<AskQuestion>,
    pub(in crate::server) client: Arc<RequestClient>,
    pub(in crate::server) open: OpenQuestions,
}

/// The next event of a [`CallExecution`].
pub(in crate::server) enum ExecutionStep {
    /// The call is finished.
    Finished(InvokeResult),
    /// The open questions have changed.
    NeedsAnswers,
}

impl CallExecution {
    pub(in crate::server) fn new(
        gateway: Arc<Gateway>,
        call: Call,
        questions: mpsc::Receiver<AskQuestion>,
        client: Arc<RequestClient>,
    ) -> Self {
        let (first_gateway, first) = (gateway.clone(), call.clone());
        let running = async move { url_elicitation::invoke_with_urls(&first_gateway, first).await }.boxed();
        Self { gateway, call, running, questions, client, open: OpenQuestions::default() }
    }

    /// Continues with another request of the same client and its responses. Questions that the client no longer
    /// supports are refused.
    pub(in crate::server) fn continue_with(&mut self, client: &RequestClient, responses: &Object) {
        self.client.continue_with(client);
        self.open.answer(responses);
        self.open.refuse_unsupported(&self.client);
    }

    /// Returns the target of the call.
    pub(in crate::server) const fn target(&self) -> &CallTarget {
        &self.call.target
    }

    /// Runs until the call is finished or its open questions change.
    pub(in crate::server) async fn step(&mut self) -> ExecutionStep {
        tokio::select! {
            biased;
            result = &mut self.running => ExecutionStep::Finished(result),
            () = self.open.remove_closed() => ExecutionStep::NeedsAnswers,
            Some(question) = self.questions.recv() => {
                self.open.add(question);
                while let Ok(question) = self.questions.try_recv() {
                    self.open.add(question);
                }
                // The capabilities may have changed while the questions were queued.
                self.open.refuse_unsupported(&self.client);
                ExecutionStep::NeedsAnswers
            }
        }
    }

    /// Stores the result for the next step.
    pub(super) fn store_result(&mut self, result: InvokeResult) {
        self.running = ready(result).boxed();
    }

    /// Asks the client for input, and repeats the call.
    pub(in crate::server) fn ask_and_retry(&mut self, needed: Object) {
        let (gateway, call) = (self.gateway.clone(), self.call.clone());
        self.running = async move { ask_and_repeat(&gateway, call, needed).await }.boxed();
    }

    /// Waits for the end of the task that the server created for the call.
    pub(in crate::server) fn wait_for_task(&mut self, task: StartedTask) {
        self.running = wait_for_task(self.gateway.clone(), self.call.clone(), task).boxed();
    }
}

/// The open questions of one call, by keys that are never reused.
#[derive(Debug, Default)]
pub(in crate::server) struct OpenQuestions {
    issued: u64,
    questions: Vec<(String, AskQuestion)>,
}

impl OpenQuestions {
    fn add(&mut self, question: AskQuestion) {
        self.issued += 1;
        self.questions.push((format!("{}-{}", question.ask.kind.capability(), self.issued), question));
    }

    /// True if no question is open. A withdrawn question counts as answered.
    pub(in crate::server) fn is_empty(&mut self) -> bool {
        self.questions.retain(|(_, question)| !question.answer.is_closed());
        self.questions.is_empty()
    }

    /// Refuses the questions that the client does not support.
    fn refuse_unsupported(&mut self, client: &RequestClient) {
        let (supported, refused) = std::mem::take(&mut self.questions)
            .into_iter()
            .partition(|(_, question)| client.accepts(&question.ask));
        self.questions = supported;
        for (_, AskQuestion { ask, answer }) in refused {
            let _withdrawn = answer.send(Err(InputRequestError::Unsupported(ask.required())));
        }
    }

    /// Waits until a question is withdrawn, and removes it.
    async fn remove_closed(&mut self) {
        poll_fn(|cx| {
            let before = self.questions.len();
            self.questions.retain_mut(|(_, question)| question.answer.poll_closed(cx).is_pending());
            if self.questions.len() < before { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Returns the questions as the client gets them.
    pub(in crate::server) fn requests(&self) -> Json {
        let request = |question: &AskQuestion| {
            let method = Json::string(ask_method(question.ask.kind));
            Object::new().with("method", method).with("params", question.ask.params.to_json()).to_json()
        };
        let requests = self.questions.iter();
        requests.fold(Object::new(), |all, (key, question)| all.with(key, request(question))).to_json()
    }

    /// Hands the responses of the client to their questions. Unknown keys are ignored.
    pub(in crate::server) fn answer(&mut self, responses: &Object) {
        for (key, question) in std::mem::take(&mut self.questions) {
            match responses.get(&key) {
                Some(response) => {
                    let answer = match response.is_object() {
                        true => Ok(response.detach()),
                        false => {
                            Err(InputRequestError::BadAnswer("the response is not an object".to_owned()))
                        }
                    };
                    let _withdrawn = question.answer.send(answer);
                }
                None => self.questions.push((key, question)),
            }
        }
    }
}
