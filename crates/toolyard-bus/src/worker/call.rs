//! One call, from its delivery to its answer.

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{FusedFuture, FutureExt};
use tokio::time::{Instant, timeout, timeout_at};
use toolyard_core::registry::RegistryEntry;
use toolyard_core::{Call, CallTarget, Caller, ErrorCode, Json, Outcome, ToolError};
use toolyard_manifest::Acknowledgement;

use super::client::{self, BusClient};
use super::{CallRouting, WorkerShared};
use crate::bus::{BusError, Delivery};
use crate::consumer::{AcknowledgedRequest, log_failure};
use crate::envelope::{Envelope, TraceContext};
use crate::headers::{self, ContentTrust};
use crate::mcp::routing::tool_of_server;
use crate::message::ToolResult;
use crate::record::{self, ToolInvokeError, ToolInvokeRequest, ToolInvokeResponse, codes};
use crate::reply::{CLOCK_TOLERANCE, ReplyRoute, reply_to, reply_topic, time_left, time_limit};
use crate::topic::{TOOL_RESULT, Topic};

/// Time for the notices that a call has left behind.
const NOTICE_TIME: Duration = Duration::from_secs(1);

type Answer = Result<CallResult, ToolInvokeError>;

/// The result of a tool that ran.
enum CallResult {
    /// Its text.
    Text(ToolInvokeResponse),
    /// The whole of it, for a request that asks for it.
    Full(ToolResult),
}

/// A call that was read from its message.
struct ReceivedCall {
    envelope: Arc<Envelope>,
    request: ToolInvokeRequest,
    reply_topic: Topic,
    /// End of the time limit.
    deadline: Instant,
}

/// Runs the call of a delivery and sends its answer. A message that is no call is a dead letter.
pub(super) async fn handle(shared: Arc<WorkerShared>, delivery: Delivery) {
    let call = match ReceivedCall::read(&delivery, &shared) {
        Ok(call) => call,
        Err(reason) => return log_failure(delivery.dead_letter(reason).await),
    };
    let answer = match prepared(&shared, &call).await {
        Err(error) => Err(error),
        Ok((caller, entry)) if is_repeatable(&entry, &shared) => {
            let Some(answer) = run(&shared, &call, caller, &entry).await else {
                return log_failure(delivery.ack().await);
            };
            Ok(answer)
        }
        Ok((caller, entry)) => return run_at_most_once(&shared, call, caller, &entry, delivery).await,
    };
    let answer = answer.unwrap_or_else(|error| Err(call.request.refusal(&error)));
    match call.answer(&shared, answer).await {
        // If the broker does not hear of it, a call that may be repeated runs again.
        Ok(()) => log_failure(delivery.ack_unconfirmed().await),
        // The caller may still wait: another worker may reach it.
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "cannot answer a call; it is run again");
            log_failure(delivery.retry().await);
        }
    }
}

/// Runs a call that must not run twice. It is acknowledged first, and not run if it may have been run before.
async fn run_at_most_once(
    shared: &WorkerShared,
    call: ReceivedCall,
    caller: Caller,
    entry: &RegistryEntry,
    delivery: Delivery,
) {
    let answer = match shared.at_most_once.acknowledge(delivery).await {
        None => return,
        Some(AcknowledgedRequest::New) => run(shared, &call, caller, entry).await,
        Some(AcknowledgedRequest::MayHaveRun) => {
            let message = "The call was delivered before and may have run; it is not run a second time.";
            Some(Err(call.request.error(codes::EXECUTION_FAILED, message)))
        }
    };
    if let Some(answer) = answer {
        log_failure(call.answer(shared, answer).await);
    }
}

/// Finds the caller and the tool of a call.
async fn prepared(
    shared: &WorkerShared,
    call: &ReceivedCall,
) -> Result<(Caller, Arc<RegistryEntry>), ToolError> {
    if call.deadline <= Instant::now() {
        return Err(ToolError::new(
            ErrorCode::Timeout,
            "The time limit of the call ended before it was run.",
        ));
    }
    let preparing = async {
        let caller = shared.principal.caller().await?;
        let registry = shared.gateway.settled_for(&caller).await;
        let tool = &call.request.tool_name;
        let entry = match &shared.routing {
            CallRouting::Tools => registry.tool_or_nearest(tool)?.clone(),
            CallRouting::Servers(_) => {
                let server = call.envelope.headers.get(headers::MCP_SERVER);
                tool_of_server(&registry, server.map(String::as_str), tool)?
            }
        };
        if entry.handler.is_on_bus {
            return Err(ToolError::unknown_tool(tool));
        }
        Ok((caller, entry))
    };
    let late = || Err(ToolError::new(ErrorCode::Timeout, "The tools were not ready in time."));
    timeout_at(call.deadline, preparing).await.unwrap_or_else(|_| late())
}

/// Runs a call; `None` once it is cancelled.
async fn run(
    shared: &WorkerShared,
    received: &ReceivedCall,
    caller: Caller,
    entry: &RegistryEntry,
) -> Option<Answer> {
    let ReceivedCall { envelope, request, reply_topic, deadline } = received;
    let mut call = match request.to_call() {
        Ok(call) => call,
        Err(error) => return Some(Err(error)),
    };
    let (client, notices) = BusClient::of(envelope);
    call.target = CallTarget::Tool(entry.name.clone());
    call.caller = caller;
    call.deadline = Some(*deadline);
    call.client = Arc::new(client);
    if let Some(TraceContext { parent, state }) = &envelope.trace {
        call.meta.set("traceparent", Json::string(parent));
        if let Some(state) = state {
            call.meta.set("tracestate", Json::string(state));
        }
    }
    let (_running, cancelled) = shared.running.register(&request.tool_call_id);
    let forwarding = client::forward(shared, envelope, &request.tool_call_id, reply_topic, notices);
    let mut forwarding = pin!(forwarding.fuse());
    let outcome = {
        let invoked = invoke(shared, call, entry);
        tokio::select! {
            outcome = until_deadline(invoked, *deadline) => outcome,
            // It ends with the client of the call, and has no outcome.
            outcome = async { forwarding.as_mut().await; pending().await } => outcome,
            Ok(()) = cancelled => return None,
        }
    };
    if !forwarding.is_terminated() {
        drop(timeout(NOTICE_TIME, forwarding).await);
    }
    let is_full = envelope.headers.get(headers::RESULT).is_some_and(|form| form == headers::FULL_RESULT);
    Some(match outcome {
        Ok(Outcome::Done(output)) if is_full => Ok(CallResult::Full(ToolResult {
            tool_call_id: request.tool_call_id.clone(),
            tool_name: request.tool_name.clone(),
            result: output.body.to_json().as_text().to_owned(),
            is_error: output.is_error,
        })),
        outcome => request.answer(outcome).map(CallResult::Text),
    })
}

/// Runs a call. One that has not reached its server, or that may run twice, is repeated once after the bridge has connected
/// to the server again.
async fn invoke(shared: &WorkerShared, call: Call, entry: &RegistryEntry) -> Result<Outcome, ToolError> {
    let CallRouting::Servers(servers) = &shared.routing else { return shared.gateway.invoke(call).await };
    let again = call.clone();
    match shared.gateway.invoke(call).await {
        Err(error)
            if error.code() == ErrorCode::Unavailable
                && (!error.may_have_run() || is_repeatable(entry, shared)) =>
        {
            servers.reconnect(Some(&entry.handler.name)).await;
            shared.gateway.invoke(again).await
        }
        outcome => outcome,
    }
}

/// The gateway observes the deadline. This is for a backend that does not return.
async fn until_deadline<T>(
    invoked: impl Future<Output = Result<T, ToolError>>,
    deadline: Instant,
) -> Result<T, ToolError> {
    let late = || Err(ToolError::new(ErrorCode::Timeout, "The call took too long."));
    timeout_at(deadline + CLOCK_TOLERANCE, invoked).await.unwrap_or_else(|_| late())
}

/// Returns `true` if a call of the tool may run twice.
fn is_repeatable(entry: &RegistryEntry, shared: &WorkerShared) -> bool {
    match shared.settings.worker.acknowledge {
        Acknowledgement::After => true,
        Acknowledgement::Before => false,
        Acknowledgement::Auto => entry.tool.as_deref().is_some_and(record::is_repeatable),
    }
}

impl ReceivedCall {
    /// Reads a call, or returns the reason why the message is none.
    fn read(delivery: &Delivery, shared: &WorkerShared) -> Result<Self, String> {
        let envelope = delivery.envelope.clone();
        let request: ToolInvokeRequest = envelope.read().map_err(|problem| problem.to_string())?;
        let reply_topic = reply_topic(&envelope, TOOL_RESULT)?;
        let worker = &shared.settings.worker;
        let limit = time_limit(&envelope).unwrap_or(worker.timeout).min(worker.max_timeout);
        let deadline = Instant::now() + time_left(&envelope, limit);
        Ok(Self { envelope, request, reply_topic, deadline })
    }

    /// Sends the answer.
    async fn answer(&self, shared: &WorkerShared, answer: Answer) -> Result<(), BusError> {
        let until = self.deadline.max(Instant::now()) + shared.settings.publish_timeout;
        let too_large = |reason: String| {
            let message = format!("The result is too large for the bus: {reason}");
            Err(self.request.error(codes::EXECUTION_FAILED, message))
        };
        let envelope = |answer: &Answer| self.envelope_of(shared, answer);
        let route =
            ReplyRoute { bus: &*shared.bus, request: &self.envelope, topic: &self.reply_topic, until };
        route.send(answer, envelope, too_large).await
    }

    fn envelope_of(&self, shared: &WorkerShared, answer: &Answer) -> Result<Envelope, BusError> {
        let source = &shared.settings.source;
        let envelope = match answer {
            Ok(CallResult::Text(response)) => reply_to(&self.envelope, response, source)?,
            Ok(CallResult::Full(result)) => reply_to(&self.envelope, result, source)?,
            Err(error) => reply_to(&self.envelope, error, source)?,
        };
        Ok(envelope.header(headers::CONTENT_TRUST, ContentTrust::ToolOutput.as_str()))
    }
}
