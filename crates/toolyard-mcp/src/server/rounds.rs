//! Questions of a call to its client, in each era's way.
//!
//! A backend asks in one of two ways: it asks the call's client and waits, or it ends with an outcome that says what
//! it needs and is called again. A client is asked in one of two ways, too: by a request of ours (legacy), or by
//! a result that says what is needed (modern). Where both are of one kind, a question passes. Here are the other two.

use std::future::{poll_fn, ready};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, try_join_all};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use toolyard_core::{
    AskError, Call, Client, Code, Gateway, Json, Object, Outcome, Started, Target, ToolError,
};

use super::foreign_task::{TakesTasks, looked_after, wants_task};
use super::requester::{Question, Requester};
use super::{tasks, visit};
use crate::wire::{ask_of, method_of};

/// How often a backend may need something before it is told that nobody answers any more.
pub(super) const MOST_ROUNDS: usize = 16;

/// How long a tool that asks nothing is left alone before it is called again: at first, and at last.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(5);

/// How long a call may need something, in all.
const MOST_TIME: Duration = Duration::from_secs(3600);

/// Runs a call of a legacy client; what it turns out to need is asked of the client, until nothing is left. A server that
/// runs it as a task only is told that the client takes tasks, and the task is looked after here.
pub(super) async fn invoke(gateway: &Arc<Gateway>, mut call: Call) -> Came {
    let mut came = gateway.invoke(call.clone()).await;
    if came.as_ref().is_err_and(wants_task) && matches!(call.target, Target::Tool(_)) {
        call.client = Arc::new(TakesTasks::new(call.client));
        came = gateway.invoke(call.clone()).await;
    }
    match came? {
        Outcome::NeedsInput(needed) if call.client.capabilities().is_some() => {
            go_on(gateway, call, needed).await
        }
        Outcome::Task(task) => looked_after(gateway.clone(), call, task).await,
        outcome => Ok(outcome),
    }
}

/// Asks a call's client what the call needs, and runs it again, until nothing is left.
async fn go_on(gateway: &Gateway, mut call: Call, mut needed: Object) -> Came {
    let (begun, mut pause) = (Instant::now(), FIRST_PAUSE);
    let mut asked = 0;
    while asked < MOST_ROUNDS && begun.elapsed() < MOST_TIME {
        match needed.get("inputRequests") {
            Some(_) => asked += 1,
            // It only wants to be called again, when it is done with something (2026-07-28, basic/patterns/mrtr).
            None => {
                sleep(pause).await;
                pause = (pause * 2).min(LAST_PAUSE);
            }
        }
        let responses = ask(&*call.client, &needed).await?;
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
    Err(never_enough())
}

/// Whatever a client answers, more is asked.
pub(super) fn never_enough() -> ToolError {
    ToolError::new(Code::ExecutionFailed, "The tool asks again and again")
}

/// Asks a client all that an outcome needs, at once.
pub(super) async fn ask(client: &dyn Client, needed: &Object) -> Result<Object, ToolError> {
    let malformed = || ToolError::new(Code::ExecutionFailed, "What the tool asks is malformed");
    let requests = match needed.get("inputRequests") {
        Some(requests) => requests.to_object().map_err(|_| malformed())?,
        None => Object::new(),
    };
    let questions = requests.iter().map(|(key, request)| Some((key.into_owned(), ask_of(request)?)));
    let questions: Vec<_> = questions.collect::<Option<_>>().ok_or_else(malformed)?;
    let answers = questions
        .into_iter()
        .map(|(key, ask)| async move { Ok::<_, AskError>((key, client.ask(ask).await?)) });
    // One that gets no answer makes the others worthless: they are withdrawn.
    let answers = try_join_all(answers).await?;
    Ok(answers.into_iter().fold(Object::new(), |responses, (key, answer)| responses.with(&key, answer)))
}

/// What a call came to, as far as its modern client takes it. It is asked for nothing that it has not declared
/// (2026-07-28, basic/patterns/mrtr, server requirements), and given no task (SEP-2663, capability negotiation).
pub(super) fn permitted(came: Came, client: &Requester) -> Came {
    let unable = |needed: &Object| {
        let requests = needed.get("inputRequests").and_then(|requests| requests.to_object().ok());
        let mut asks = requests.iter().flat_map(Object::iter).filter_map(|(_, request)| ask_of(request));
        let unable = asks.find(|ask| !client.takes(ask))?;
        Some(Err(AskError::Unsupported(unable.required()).into()))
    };
    match &came {
        Ok(Outcome::NeedsInput(needed)) => unable(needed).unwrap_or(came),
        Err(error) => visit::needed(error).and_then(|needed| unable(&needed)).unwrap_or(came),
        Ok(Outcome::Task(_)) if !tasks::has_opted_in(client.capabilities()) => {
            Err(ToolError::missing_capability(tasks::extension()))
        }
        _ => came,
    }
}

/// Leaves out of a task's description what its reader has not declared that it can be asked.
pub(super) fn show_permitted(task: &mut Object, client: &Requester) {
    let Some(requests) = task.get("inputRequests").and_then(|requests| requests.to_object().ok()) else {
        return;
    };
    let shown = requests.iter().filter(|(_, request)| ask_of(request).is_none_or(|ask| client.takes(&ask)));
    let shown = shown.fold(Object::new(), |shown, (key, request)| shown.with(&key, request.clone()));
    task.set("inputRequests", shown.to_json());
}

/// What a call came to.
pub(super) type Came = Result<Outcome, ToolError>;

/// A call of a modern client that may ask.
pub(super) struct Job {
    gateway: Arc<Gateway>,
    call: Call,
    running: BoxFuture<'static, Came>,
    questions: mpsc::Receiver<Question>,
    pub(super) client: Arc<Requester>,
    pub(super) open: Open,
}

/// What a [`Job`] came to next.
pub(super) enum Step {
    /// It is over.
    Over(Came),
    /// It asks something else than it did.
    Asks,
}

impl Job {
    pub(super) fn new(
        gateway: Arc<Gateway>,
        call: Call,
        questions: mpsc::Receiver<Question>,
        client: Arc<Requester>,
    ) -> Self {
        let (door, first) = (gateway.clone(), call.clone());
        let running = async move { visit::invoke(&door, first).await }.boxed();
        Self { gateway, call, running, questions, client, open: Open::default() }
    }

    /// Goes on with another request of the same client, which brings answers. What that one does not declare is not asked
    /// any more.
    pub(super) fn continue_with(&mut self, client: &Requester, responses: &Object) {
        self.client.continue_with(client);
        self.open.answer(responses);
        self.open.retain(&self.client);
    }

    /// What is called.
    pub(super) const fn target(&self) -> &Target {
        &self.call.target
    }

    /// Goes on until the call is over, or asks something else than it did.
    pub(super) async fn step(&mut self) -> Step {
        tokio::select! {
            biased;
            came = &mut self.running => Step::Over(came),
            () = self.open.withdrawn() => Step::Asks,
            Some(question) = self.questions.recv() => {
                self.open.add(question);
                while let Ok(question) = self.questions.try_recv() {
                    self.open.add(question);
                }
                // They may have waited for longer than their client could be asked.
                self.open.retain(&self.client);
                Step::Asks
            }
        }
    }

    /// Keeps what the call came to for the next step.
    pub(super) fn keep(&mut self, came: Came) {
        self.running = ready(came).boxed();
    }

    /// Runs the call again, once its client has given what it turned out to need.
    pub(super) fn ask_and_retry(&mut self, needed: Object) {
        let (gateway, call) = (self.gateway.clone(), self.call.clone());
        self.running = async move { go_on(&gateway, call, needed).await }.boxed();
    }

    /// Waits for the end of the task that the server has made of the call.
    pub(super) fn look_after(&mut self, task: Started) {
        self.running = looked_after(self.gateway.clone(), self.call.clone(), task).boxed();
    }
}

/// The questions of one call that are open, by keys that are never used again.
#[derive(Debug, Default)]
pub(super) struct Open {
    asked: u64,
    questions: Vec<(String, Question)>,
}

impl Open {
    fn add(&mut self, question: Question) {
        self.asked += 1;
        self.questions.push((format!("{}-{}", question.ask.kind.capability(), self.asked), question));
    }

    /// Whether nothing is asked any more. A question that was withdrawn counts as answered.
    pub(super) fn is_empty(&mut self) -> bool {
        self.questions.retain(|(_, question)| !question.answer.is_closed());
        self.questions.is_empty()
    }

    /// Refuses what the client does not take.
    fn retain(&mut self, client: &Requester) {
        let (kept, refused) = std::mem::take(&mut self.questions)
            .into_iter()
            .partition(|(_, question)| client.takes(&question.ask));
        self.questions = kept;
        for (_, Question { ask, answer }) in refused {
            let _withdrawn = answer.send(Err(AskError::Unsupported(ask.required())));
        }
    }

    /// Waits until a question is not asked any more, and forgets it.
    async fn withdrawn(&mut self) {
        poll_fn(|cx| {
            let asked = self.questions.len();
            self.questions.retain_mut(|(_, question)| question.answer.poll_closed(cx).is_pending());
            if self.questions.len() < asked { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// What is asked, as the client is to read it.
    pub(super) fn requests(&self) -> Json {
        let request = |question: &Question| {
            let method = Json::string(method_of(question.ask.kind));
            Object::new().with("method", method).with("params", question.ask.params.to_json()).to_json()
        };
        let requests = self.questions.iter();
        requests.fold(Object::new(), |all, (key, question)| all.with(key, request(question))).to_json()
    }

    /// Takes the client's answers. What was not asked is passed over.
    pub(super) fn answer(&mut self, responses: &Object) {
        for (key, question) in std::mem::take(&mut self.questions) {
            match responses.get(&key) {
                Some(response) => {
                    let answer = match response.is_object() {
                        true => Ok(response.detach()),
                        false => Err(AskError::BadAnswer("it is no object".to_owned())),
                    };
                    let _withdrawn = question.answer.send(answer);
                }
                None => self.questions.push((key, question)),
            }
        }
    }
}
