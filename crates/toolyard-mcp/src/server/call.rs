//! Calls: from a request to the call, until it is finished, suspended, or continues as a task.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::timeout;
use toolyard_core::{
    Call, CallTarget, Caller, Client, CompletionReference, InputRequest, Json, Object, Outcome, TaskAction,
    TaskReference,
};

use super::interaction::multi_round_trip::{self, CallExecution, ExecutionStep, InvokeResult};
use super::interaction::request_client::{ClientGuard, RequestClient};
use super::interaction::suspended_calls::{self, CallIdentity, SuspendedCall};
use super::interaction::ticket::TicketLocation;
use super::tasks::{self, TaskHandover};
use super::{McpAnswer, McpFrontend, McpRequest, RequestContext, TaskOffer, convert};
use crate::wire::{ProtocolEra, RpcError, ToolTaskSupport, method};

/// Time after which a call of a tool with declared task support continues as a task, if calls of any tool may. By then
/// a modern upstream server has created its own task, if it wants one.
const DECLARED_TASK_AFTER: Duration = Duration::from_secs(1);

impl McpFrontend {
    /// Runs the call of a request.
    pub(super) async fn handle_call(
        self: Arc<Self>,
        request: McpRequest,
        context: RequestContext,
    ) -> McpAnswer {
        let target = parse_target(&request)?;
        match context.era {
            ProtocolEra::Legacy => self.call_for_legacy(target, request, context).await,
            ProtocolEra::Modern => self.call_for_modern(target, request, context).await,
        }
    }

    async fn call_for_legacy(
        &self,
        target: CallTarget,
        request: McpRequest,
        context: RequestContext,
    ) -> McpAnswer {
        let _client_guard = ClientGuard(context.client.clone());
        let call = build_call(target.clone(), request, &context);
        convert::to_answer(
            multi_round_trip::invoke_for_legacy(&self.gateway, call).await,
            &target,
            ProtocolEra::Legacy,
        )
    }

    async fn call_for_modern(
        &self,
        target: CallTarget,
        mut request: McpRequest,
        mut context: RequestContext,
    ) -> McpAnswer {
        let identity = call_identity(target.clone(), &request, &context.caller);
        let handover = self.task_handover(&target, &context).await?;
        if let Some(state) = suspended_calls::own_state(&request.params) {
            let mut call = self.suspended.resume(&state, identity).await?;
            call.execution.continue_with(&context.client, &object_member(&request.params, "inputResponses"));
            return self.advance(call, handover).await;
        }
        suspended_calls::unescape_state(&mut request.params);
        // A completion must not ask for input (2026-07-28, basic/patterns/mrtr, supported requests).
        let may_ask = !matches!(target, CallTarget::Completion(_));
        let Some(questions) = context.questions.take().filter(|_| may_ask) else {
            let _client_guard = ClientGuard(context.client.clone());
            let call = build_call(target, request, &context);
            let result = self.gateway.invoke(call).await;
            return self.modern_answer(result, &identity, &context.client);
        };
        let call = build_call(target, request, &context);
        let execution = CallExecution::new(self.gateway.clone(), call, questions, context.client);
        self.advance(SuspendedCall { execution, identity }, handover).await
    }

    /// Runs a call until it is finished, asks for input, or has run long enough to continue as a task. A call that
    /// finishes early is answered as if there were no tasks (SEP-2663, task creation).
    async fn advance(&self, mut call: SuspendedCall, handover: Option<TaskHandover>) -> McpAnswer {
        let _client_guard = ClientGuard(call.execution.client.clone());
        loop {
            let step = match (call.execution.open.is_empty(), handover) {
                // The responses may be sufficient: go on as far as possible without waiting.
                (false, _) => call.execution.step().now_or_never(),
                (true, None) => Some(call.execution.step().await),
                (true, Some(handover)) => match timeout(handover.after, call.execution.step()).await {
                    Ok(ExecutionStep::NeedsAnswers) if handover.when_asking => {
                        return self.continue_as_task(call);
                    }
                    Ok(step) => Some(step),
                    Err(_) if self.tasks.has_room() => return self.continue_as_task(call),
                    // There is no room for a task: the call continues as a request.
                    Err(_) => Some(call.execution.step().await),
                },
            };
            match step {
                Some(ExecutionStep::Finished(result)) => {
                    return self.modern_answer(result, &call.identity, &call.execution.client);
                }
                Some(ExecutionStep::NeedsAnswers) => {}
                None => return self.suspended.suspend(call),
            }
        }
    }

    fn continue_as_task(&self, call: SuspendedCall) -> McpAnswer {
        self.tasks.start(call.execution, call.identity.caller)
    }

    /// Returns the time after which a call continues as a task; `None` if it does not.
    ///
    /// # Errors
    /// When it has to, and the client does not support tasks.
    async fn task_handover(
        &self,
        target: &CallTarget,
        context: &RequestContext,
    ) -> Result<Option<TaskHandover>, RpcError> {
        let takes_tasks = tasks::has_opted_in(context.client.capabilities());
        let (CallTarget::Tool(name), true) =
            (target, takes_tasks || self.offers.tasks == TaskOffer::Declared)
        else {
            return Ok(None);
        };
        let registry = self.gateway.settled_for(&context.caller).await;
        let tool = registry.tool(name).ok().and_then(|entry| entry.tool.clone());
        let declared = tool.map_or(ToolTaskSupport::Forbidden, |tool| ToolTaskSupport::of(&tool.definition));
        let after = self.limits.task_after;
        match (self.offers.tasks, declared) {
            (TaskOffer::Never, _) | (TaskOffer::Declared, ToolTaskSupport::Forbidden) => Ok(None),
            (TaskOffer::Declared, ToolTaskSupport::Required) if !takes_tasks => Err(tasks::not_opted_in()),
            (TaskOffer::Declared, _) if !takes_tasks => Ok(None),
            (TaskOffer::Declared, _) => Ok(Some(TaskHandover { after, when_asking: true })),
            (TaskOffer::Any, ToolTaskSupport::Forbidden) => {
                Ok(Some(TaskHandover { after, when_asking: false }))
            }
            (TaskOffer::Any, _) => {
                Ok(Some(TaskHandover { after: after.min(DECLARED_TASK_AFTER), when_asking: false }))
            }
        }
    }

    /// Returns the answer to a modern request.
    fn modern_answer(
        &self,
        result: InvokeResult,
        request: &CallIdentity,
        client: &RequestClient,
    ) -> McpAnswer {
        let result = match (multi_round_trip::check_permitted(result, client), &request.target) {
            (Ok(Outcome::Task(started)), CallTarget::Tool(_)) => {
                Ok(Outcome::Task(tasks::with_ticket(started, &request.caller, &self.tickets)?))
            }
            // A resource may differ between callers, so that it must not be cached for others.
            (Ok(Outcome::Done(mut output)), CallTarget::Resource(_)) if request.caller.grant.is_some() => {
                output.body.set("cacheScope", Json::string("private"));
                Ok(Outcome::Done(output))
            }
            (result, _) => result,
        };
        convert::to_answer(result, &request.target, ProtocolEra::Modern)
    }

    /// Runs an action on a task, of this gateway or of an upstream server.
    pub(super) async fn handle_task(
        &self,
        action: TaskAction,
        request: McpRequest,
        context: RequestContext,
    ) -> McpAnswer {
        let id = tasks::task_id_param(&request.params, &context)?;
        match self.tasks.locate(&id, &context.caller)? {
            TicketLocation::Here => match action {
                TaskAction::Get => self.tasks.get(&id, &context),
                TaskAction::Update => self.tasks.update(&id, &request.params, &context.caller),
                TaskAction::Cancel => self.tasks.cancel(&id, &context.caller),
            },
            TicketLocation::Server { handler, tool, task } => {
                let target = CallTarget::Task(TaskReference { tool, handler, id: task, action });
                let mut call = build_call(target.clone(), request, &context);
                // The task is known, and its requests for input are left out if the client does not take them.
                call.caller.lends_model = true;
                let mut result = self.gateway.invoke(call).await;
                if let Ok(Outcome::Done(output)) = &mut result
                    && output.body.get("taskId").is_some()
                {
                    output.body.set("taskId", Json::string(&id));
                    multi_round_trip::filter_requests(&mut output.body, &context.client);
                }
                convert::to_answer(result, &target, ProtocolEra::Modern)
            }
            TicketLocation::Gateway(_) => Err(tasks::unknown_task()),
        }
    }

    /// Returns true if the model of the sender can be used after its call: in its session, or by the input that a task
    /// requests.
    pub(super) fn lends_model(&self, sender: &RequestContext) -> bool {
        match &sender.peer {
            Some(peer) => peer.lends_model(),
            None => {
                let declared = sender.client.capabilities();
                sender.era == ProtocolEra::Modern
                    && self.offers.tasks != TaskOffer::Never
                    && tasks::has_opted_in(declared)
                    && InputRequest::can_give_tools(declared)
            }
        }
    }

    /// Drops the suspended calls and tasks of a client that is gone, if the client has an identity of its own.
    pub(super) fn forget_caller(&self, caller: &Caller) {
        if caller.session.is_some() {
            self.suspended.forget_caller(caller);
            self.tasks.forget_caller(caller);
        }
    }
}

fn build_call(target: CallTarget, request: McpRequest, context: &RequestContext) -> Call {
    let McpRequest { params, meta, .. } = request;
    let (caller, client) = (context.caller.clone(), context.client.clone());
    let origin = context.origin.clone();
    Call {
        target,
        params,
        meta,
        caller,
        origin,
        deadline: None,
        handler_deadline: None,
        parent: None,
        client,
    }
}

/// Returns the identity of a request.
pub(super) fn call_identity(target: CallTarget, request: &McpRequest, caller: &Caller) -> CallIdentity {
    let arguments = request.params.get("arguments").cloned();
    CallIdentity { target, arguments, caller: caller.clone() }
}

fn object_member(params: &Object, name: &str) -> Object {
    params.get(name).and_then(|value| value.to_object().ok()).unwrap_or_default()
}

/// Returns the target of a request.
pub(super) fn parse_target(request: &McpRequest) -> Result<CallTarget, RpcError> {
    let text = |name: &str| {
        let text = request.params.get_str(name).map(Cow::into_owned);
        text.map(Arc::from)
            .ok_or_else(|| RpcError::invalid_params(format!("`params.{name}` is not a string")))
    };
    Ok(match &*request.method {
        method::PROMPTS_GET => CallTarget::Prompt(text("name")?),
        method::RESOURCES_READ => CallTarget::Resource(text("uri")?),
        method::COMPLETE => CallTarget::Completion(parse_reference(&object_member(&request.params, "ref"))?),
        _ => CallTarget::Tool(text("name")?),
    })
}

fn parse_reference(reference: &Object) -> Result<CompletionReference, RpcError> {
    let (kind, name, uri) = (reference.get_str("type"), reference.get_str("name"), reference.get_str("uri"));
    match (kind.as_deref(), name, uri) {
        (Some("ref/prompt"), Some(name), _) => Ok(CompletionReference::Prompt(name.into())),
        (Some("ref/resource"), _, Some(uri)) => Ok(CompletionReference::Template(uri.into())),
        _ => Err(RpcError::invalid_params(
            "`params.ref` is not a reference to a prompt or a resource template",
        )),
    }
}
