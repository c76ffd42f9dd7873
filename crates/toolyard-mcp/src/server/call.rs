//! From a request to a call, and on until it is over, parked, or a task.

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::time::timeout;
use toolyard_core::{Call, Caller, Client, Object, Reference, Target};

use super::parked::{self, Identity, ParkedCall};
use super::requester::{Audience, Requester};
use super::rounds::{self, Came, Job, Step};
use super::tasks::{self, TaskSupport};
use super::{Answer, Frontend, Request, Sender, convert};
use crate::wire::{Era, RpcError, method};

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
        if let Some(state) = request.params.get_str("requestState").filter(|state| parked::is_state(state)) {
            let mut call = self.parked.take(&state, &identity(&target, &request, &sender)).await?;
            call.job.client.continue_with(&sender.client);
            call.job.open.answer(&object(&request.params, "inputResponses"));
            return self.go_on(call).await;
        }
        parked::pass_back(&mut request.params);
        let support = self.task_support(&target, &sender.caller).await;
        let opted_in = tasks::has_opted_in(sender.client.capabilities());
        if support == TaskSupport::Required && !opted_in {
            return Err(tasks::not_opted_in());
        }
        // What could be written needs nothing (2026-07-28, basic/patterns/mrtr, supported requests).
        let may_ask = !matches!(target, Target::Completion(_));
        let Some(questions) = sender.questions.take().filter(|_| may_ask) else {
            let _told = Audience(sender.client.clone());
            let call = call(target.clone(), request, &sender);
            return modern(self.gateway.invoke(call).await, &target, &sender.client);
        };
        let request_of_caller = identity(&target, &request, &sender);
        let call = call(target, request, &sender);
        let job = Job::new(self.gateway.clone(), call, questions, sender.client);
        if opted_in && support != TaskSupport::Forbidden {
            return self.call_as_task(job, request_of_caller.caller).await;
        }
        self.go_on(ParkedCall { job, request: request_of_caller }).await
    }

    /// What is over soon, or needs something before it begins, is answered as if there were no tasks
    /// (SEP-2663, task creation).
    async fn call_as_task(&self, mut job: Job, caller: Caller) -> Answer {
        let _told = Audience(job.client.clone());
        match timeout(self.limits.task_after, job.step()).await {
            Ok(Step::Over(came)) => modern(came, job.target(), &job.client),
            Ok(Step::Asks) | Err(_) => self.tasks.start(job, caller),
        }
    }

    /// Goes on with a call until it is over or asks something.
    async fn go_on(&self, mut call: ParkedCall) -> Answer {
        let _told = Audience(call.job.client.clone());
        loop {
            let step = match call.job.open.is_empty() {
                true => Some(call.job.step().await),
                // What was answered may be enough.
                false => call.job.step().now_or_never(),
            };
            match step {
                Some(Step::Over(came)) => return modern(came, call.job.target(), &call.job.client),
                Some(Step::Asks) => {}
                None => return self.parked.park(call),
            }
        }
    }

    /// Lets go of what a client began that is gone, where it can be told from others.
    pub(super) fn forget(&self, caller: &Caller) {
        if caller.session.is_some() {
            self.parked.forget(caller);
            self.tasks.forget(caller);
        }
    }

    async fn task_support(&self, target: &Target, caller: &Caller) -> TaskSupport {
        match target {
            Target::Tool(name) if self.offers.tasks => {
                let registry = self.gateway.settled_for(caller).await;
                let tool = registry.tool(name).ok().and_then(|entry| entry.tool.clone());
                tool.map_or(TaskSupport::Forbidden, |tool| TaskSupport::of(&tool.definition))
            }
            _ => TaskSupport::Forbidden,
        }
    }
}

/// The answer to a modern request.
fn modern(came: Came, target: &Target, client: &Requester) -> Answer {
    convert::answer(rounds::permitted(came, client), target, Era::Modern)
}

fn call(target: Target, request: Request, sender: &Sender) -> Call {
    let Request { params, meta, .. } = request;
    let (caller, client) = (sender.caller.clone(), sender.client.clone());
    Call { target, params, meta, caller, origin: sender.origin.clone(), deadline: None, client }
}

fn identity(target: &Target, request: &Request, sender: &Sender) -> Identity {
    let arguments = request.params.get("arguments").cloned();
    Identity { target: target.clone(), arguments, caller: sender.caller.clone() }
}

fn object(params: &Object, name: &str) -> Object {
    params.get(name).and_then(|value| value.to_object().ok()).unwrap_or_default()
}

/// What a request calls.
fn target(request: &Request) -> Result<Target, RpcError> {
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
