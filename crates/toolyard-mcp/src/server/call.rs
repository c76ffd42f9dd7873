//! From a request to a call, and on until it is over, parked, or a task.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::timeout;
use toolyard_core::{Call, Caller, Client, Json, Object, Outcome, Reference, Target, Task, TaskAction};

use super::parked::{self, Identity, ParkedCall};
use super::requester::{Audience, Requester};
use super::rounds::{self, Came, Job, Step};
use super::tasks::{self, Handover};
use super::ticket::Place;
use super::{Answer, Frontend, Request, Sender, TaskOffer, convert};
use crate::wire::{Era, RpcError, TaskSupport, method};

/// When a call of any tool may go on as a task, one of a tool that says so itself does after this time. A modern server has begun
/// a task of its own by then, if it wants one.
const EXPECTED_AFTER: Duration = Duration::from_secs(1);

impl Frontend {
    /// Runs what a request calls.
    pub(super) async fn call(self: Arc<Self>, request: Request, sender: Sender) -> Answer {
        let target = target(&request)?;
        match sender.era {
            Era::Legacy => self.call_legacy(target, request, sender).await,
            Era::Modern => self.call_modern(target, request, sender).await,
        }
    }

    async fn call_legacy(&self, target: Target, request: Request, sender: Sender) -> Answer {
        let _told = Audience(sender.client.clone());
        let call = call(target.clone(), request, &sender);
        convert::answer(rounds::invoke(&self.gateway, call).await, &target, Era::Legacy)
    }

    async fn call_modern(&self, target: Target, mut request: Request, mut sender: Sender) -> Answer {
        let identity = identity(target.clone(), &request, &sender.caller);
        let handover = self.handover(&target, &sender).await?;
        if let Some(state) = parked::state_of(&request.params) {
            let mut call = self.parked.take(&state, identity).await?;
            call.job.continue_with(&sender.client, &object(&request.params, "inputResponses"));
            return self.go_on(call, handover).await;
        }
        parked::pass_back(&mut request.params);
        // What could be written needs nothing (2026-07-28, basic/patterns/mrtr, supported requests).
        let may_ask = !matches!(target, Target::Completion(_));
        let Some(questions) = sender.questions.take().filter(|_| may_ask) else {
            let _told = Audience(sender.client.clone());
            let call = call(target, request, &sender);
            let came = self.gateway.invoke(call).await;
            return self.modern(came, &identity, &sender.client);
        };
        let call = call(target, request, &sender);
        let job = Job::new(self.gateway.clone(), call, questions, sender.client);
        self.go_on(ParkedCall { job, request: identity }, handover).await
    }

    /// Goes on with a call until it is over, asks something, or has its time as a mere request behind it. What is over soon is
    /// answered as if there were no tasks (SEP-2663, task creation).
    async fn go_on(&self, mut call: ParkedCall, handover: Option<Handover>) -> Answer {
        let _told = Audience(call.job.client.clone());
        loop {
            let step = match (call.job.open.is_empty(), handover) {
                // What was answered may be enough.
                (false, _) => call.job.step().now_or_never(),
                (true, None) => Some(call.job.step().await),
                (true, Some(handover)) => match timeout(handover.after, call.job.step()).await {
                    Ok(Step::Asks) if handover.when_asking => return self.as_task(call),
                    Ok(step) => Some(step),
                    Err(_) if self.tasks.has_room() => return self.as_task(call),
                    // It goes on as the request that it is.
                    Err(_) => Some(call.job.step().await),
                },
            };
            match step {
                Some(Step::Over(came)) => return self.modern(came, &call.request, &call.job.client),
                Some(Step::Asks) => {}
                None => return self.parked.park(call),
            }
        }
    }

    fn as_task(&self, call: ParkedCall) -> Answer {
        self.tasks.start(call.job, call.request.caller)
    }

    /// When a call goes on as a task; `None` where it does not.
    ///
    /// # Errors
    /// When it would have to, and its client takes none.
    async fn handover(&self, target: &Target, sender: &Sender) -> Result<Option<Handover>, RpcError> {
        let takes = tasks::has_opted_in(sender.client.capabilities());
        let (Target::Tool(name), true) = (target, takes || self.offers.tasks == TaskOffer::Declared) else {
            return Ok(None);
        };
        let registry = self.gateway.settled_for(&sender.caller).await;
        let tool = registry.tool(name).ok().and_then(|entry| entry.tool.clone());
        let declared = tool.map_or(TaskSupport::Forbidden, |tool| TaskSupport::of(&tool.definition));
        let after = self.limits.task_after;
        match (self.offers.tasks, declared) {
            (TaskOffer::Never, _) | (TaskOffer::Declared, TaskSupport::Forbidden) => Ok(None),
            (TaskOffer::Declared, TaskSupport::Required) if !takes => Err(tasks::not_opted_in()),
            (TaskOffer::Declared, _) if !takes => Ok(None),
            (TaskOffer::Declared, _) => Ok(Some(Handover { after, when_asking: true })),
            (TaskOffer::Any, TaskSupport::Forbidden) => Ok(Some(Handover { after, when_asking: false })),
            (TaskOffer::Any, _) => {
                Ok(Some(Handover { after: after.min(EXPECTED_AFTER), when_asking: false }))
            }
        }
    }

    /// The answer to a modern request.
    fn modern(&self, came: Came, request: &Identity, client: &Requester) -> Answer {
        let came = match (rounds::permitted(came, client), &request.target) {
            (Ok(Outcome::Task(started)), Target::Tool(_)) => {
                Ok(Outcome::Task(tasks::named(started, &request.caller, &self.tickets)?))
            }
            // What one caller may read is not what another one may keep.
            (Ok(Outcome::Done(mut output)), Target::Resource(_)) if request.caller.grant.is_some() => {
                output.body.set("cacheScope", Json::string("private"));
                Ok(Outcome::Done(output))
            }
            (came, _) => came,
        };
        convert::answer(came, &request.target, Era::Modern)
    }

    /// Does what a client wants of a task: one of ours, or one of a server.
    pub(super) async fn task(&self, action: TaskAction, request: Request, sender: Sender) -> Answer {
        let id = tasks::id(&request.params, &sender)?;
        match self.tasks.place(&id, &sender.caller)? {
            Place::Here => match action {
                TaskAction::Get => self.tasks.get(&id, &sender),
                TaskAction::Update => self.tasks.update(&id, &request.params, &sender.caller),
                TaskAction::Cancel => self.tasks.cancel(&id, &sender.caller),
            },
            Place::Server { handler, tool, task } => {
                let target = Target::Task(Task { tool, handler, id: task, action });
                let mut came = self.gateway.invoke(call(target.clone(), request, &sender)).await;
                if let Ok(Outcome::Done(output)) = &mut came
                    && output.body.get("taskId").is_some()
                {
                    output.body.set("taskId", Json::string(&id));
                    rounds::show_permitted(&mut output.body, &sender.client);
                }
                convert::answer(came, &target, Era::Modern)
            }
            Place::Gateway(_) => Err(tasks::unknown()),
        }
    }

    /// Lets go of what a client began that is gone, where it can be told from others.
    pub(super) fn forget(&self, caller: &Caller) {
        if caller.session.is_some() {
            self.parked.forget(caller);
            self.tasks.forget(caller);
        }
    }
}

fn call(target: Target, request: Request, sender: &Sender) -> Call {
    let Request { params, meta, .. } = request;
    let (caller, client) = (sender.caller.clone(), sender.client.clone());
    Call { target, params, meta, caller, origin: sender.origin.clone(), deadline: None, client }
}

/// What tells a request from others.
pub(super) fn identity(target: Target, request: &Request, caller: &Caller) -> Identity {
    let arguments = request.params.get("arguments").cloned();
    Identity { target, arguments, caller: caller.clone() }
}

fn object(params: &Object, name: &str) -> Object {
    params.get(name).and_then(|value| value.to_object().ok()).unwrap_or_default()
}

/// What a request calls.
pub(super) fn target(request: &Request) -> Result<Target, RpcError> {
    let text = |name: &str| {
        let text = request.params.get_str(name).map(Cow::into_owned);
        text.map(Arc::from)
            .ok_or_else(|| RpcError::invalid_params(format!("`params.{name}` is not a string")))
    };
    Ok(match &*request.method {
        method::PROMPTS_GET => Target::Prompt(text("name")?),
        method::RESOURCES_READ => Target::Resource(text("uri")?),
        method::COMPLETE => Target::Completion(reference(&object(&request.params, "ref"))?),
        _ => Target::Tool(text("name")?),
    })
}

fn reference(reference: &Object) -> Result<Reference, RpcError> {
    let (kind, name, uri) = (reference.get_str("type"), reference.get_str("name"), reference.get_str("uri"));
    match (kind.as_deref(), name, uri) {
        (Some("ref/prompt"), Some(name), _) => Ok(Reference::Prompt(name.into())),
        (Some("ref/resource"), _, Some(uri)) => Ok(Reference::Template(uri.into())),
        _ => Err(RpcError::invalid_params("`params.ref` is no reference to a prompt or a resource template")),
    }
}
