//! Calls of the tools of workers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, timeout, timeout_at};
use toolyard_core::{CallOutput, Client, ClientNotification, ErrorCode, NoClient, Object, ToolError};

use crate::bus::{BusError, MessageBus};
use crate::envelope::{Envelope, TraceContext};
use crate::headers::{self, ContentTrust};
use crate::message::{ToolCancel, ToolLog, ToolProgress, ToolResult};
use crate::record::{ToolInvokeError, ToolInvokeRequest, ToolInvokeResponse};
use crate::request::{Repetition, Requester, is_notice};
use crate::stored_results;
use crate::topic::{TOOL_CANCEL, TOOL_INVOKE, Topic};

/// Time within which a cancellation is sent.
const CANCEL_TIME: Duration = Duration::from_secs(5);

/// Calls tools of workers.
#[derive(Debug)]
pub struct ToolCaller {
    bus: Arc<dyn MessageBus>,
    requester: Requester,
    source: String,
}

/// A call of a tool of a worker, beside its request.
pub struct RemoteCall {
    /// Topic of the workers.
    pub topic: Topic,
    /// Time limit.
    pub timeout: Duration,
    /// Consequence of a loss of the connection while the call waits for its answer.
    pub repetition: Repetition,
    /// Trace of the call.
    pub trace: Option<TraceContext>,
    /// Further headers, such as [`headers::MCP_SERVER`].
    pub headers: Vec<(String, String)>,
    /// Receives progress and log messages.
    pub client: Arc<dyn Client>,
}

impl RemoteCall {
    /// Returns a call on `tool.invoke` without notices, which is sent once.
    #[must_use]
    pub fn within(timeout: Duration) -> Self {
        let (topic, client) = (Topic::of(TOOL_INVOKE), Arc::new(NoClient));
        Self { topic, timeout, repetition: Repetition::Never, trace: None, headers: Vec::new(), client }
    }
}

impl ToolCaller {
    /// Returns a caller. At most `limit` calls wait at a time. `source` names it in its messages.
    ///
    /// # Errors
    /// As for [`MessageBus::subscribe`].
    pub async fn start(bus: Arc<dyn MessageBus>, source: &str, limit: usize) -> Result<Self, BusError> {
        let requester = Requester::start(bus.clone(), limit).await?;
        Ok(Self { bus, requester, source: source.to_owned() })
    }

    /// Returns a caller whose results arrive on this topic, such as `tool.result.{agent}`. Others may receive them too.
    ///
    /// # Errors
    /// As for [`MessageBus::subscribe`].
    pub async fn on(
        bus: Arc<dyn MessageBus>,
        source: &str,
        topic: Topic,
        limit: usize,
    ) -> Result<Self, BusError> {
        let requester = Requester::on(bus.clone(), topic, limit).await?;
        Ok(Self { bus, requester, source: source.to_owned() })
    }

    /// Calls a tool. Dropping the future cancels the call.
    ///
    /// # Errors
    /// The error of the worker; one of the bus if it did not carry the call; or [`ErrorCode::Timeout`].
    pub async fn call(
        &self,
        request: &ToolInvokeRequest,
        call: RemoteCall,
    ) -> Result<ToolInvokeResponse, ToolError> {
        answer_of(&self.exchange(request, call).await?)
    }

    /// Calls a tool, and returns its whole result. Dropping the future cancels the call.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub async fn call_in_full(
        &self,
        request: &ToolInvokeRequest,
        mut call: RemoteCall,
    ) -> Result<CallOutput, ToolError> {
        call.headers.push((headers::RESULT.to_owned(), headers::FULL_RESULT.to_owned()));
        output_of(&self.exchange(request, call).await?)
    }

    /// Sends a call, passes notices on, and returns the answer.
    async fn exchange(&self, request: &ToolInvokeRequest, call: RemoteCall) -> Result<Envelope, ToolError> {
        let deadline = Instant::now() + call.timeout;
        let late = || ToolError::new(ErrorCode::Timeout, "No worker answered in time");
        let envelope = self.envelope(request, &call)?;
        let mut pending = self.requester.begin(&call.topic, envelope, call.repetition)?;
        // From here on the message may reach a worker.
        let cancellation = CancelOnDrop::new(&self.bus, &self.source, &request.tool_call_id);
        loop {
            let reply = match timeout_at(deadline, pending.next()).await.map_err(|_| late())? {
                Ok(reply) => reply,
                Err(error) => {
                    cancellation.disarm();
                    return Err(error.into());
                }
            };
            if let Some(notice) = notice_of(&reply) {
                call.client.notify(notice);
                continue;
            }
            cancellation.disarm();
            let answer = timeout_at(deadline, stored_results::resolve(&*self.bus, reply)).await;
            return Ok(answer.map_err(|_| late())??);
        }
    }

    fn envelope(&self, request: &ToolInvokeRequest, call: &RemoteCall) -> Result<Envelope, BusError> {
        let millis = u64::try_from(call.timeout.as_millis()).unwrap_or(u64::MAX);
        let mut envelope = Envelope::of(request, &self.source)?
            // Equal ids: some receivers correlate by one of them, some by the other.
            .correlated(&*request.tool_call_id)
            .traced(call.trace.clone())
            .header(headers::CONTENT_TRUST, ContentTrust::ToolRequest.as_str())
            .header(headers::TIMEOUT_MS, millis.to_string());
        if call.client.listens() {
            envelope = envelope.header(headers::PROGRESS, "true");
        }
        if let Some(level) = call.client.log_level() {
            envelope = envelope.header(headers::LOG_LEVEL, level.as_str());
        }
        if self.bus.stored_results().is_some() {
            envelope = envelope.header(headers::RESULT_STORE, "true");
        }
        envelope.headers.extend(call.headers.iter().cloned());
        Ok(envelope)
    }
}

/// Sends a cancellation of a call unless its answer has come.
pub(crate) struct CancelOnDrop<'a> {
    bus: &'a Arc<dyn MessageBus>,
    source: &'a str,
    call_id: Option<String>,
}

impl<'a> CancelOnDrop<'a> {
    pub(crate) fn new(bus: &'a Arc<dyn MessageBus>, source: &'a str, call_id: &str) -> Self {
        Self { bus, source, call_id: Some(call_id.to_owned()) }
    }

    pub(crate) fn disarm(mut self) {
        self.call_id = None;
    }
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let Some(tool_call_id) = self.call_id.take() else { return };
        let (bus, source) = (self.bus.clone(), self.source.to_owned());
        // Outside of a runtime there is no bus any more.
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(timeout(CANCEL_TIME, async move {
            let cancelled = async {
                let envelope = Envelope::of(&ToolCancel { tool_call_id }, &source)?;
                bus.broadcast(&Topic::of(TOOL_CANCEL), envelope).await
            };
            if let Err(error) = cancelled.await {
                tracing::debug!(error = &error as &dyn std::error::Error, "cannot cancel a call on the bus");
            }
        }));
    }
}

/// Returns a notice about a running call; `None` for another message.
fn notice_of(envelope: &Envelope) -> Option<ClientNotification> {
    if !is_notice(envelope) {
        return None;
    }
    let params = |text: String| Object::parse(text).unwrap_or_default().into();
    if let Ok(ToolProgress { params: text, .. }) = envelope.read() {
        return Some(ClientNotification::Progress(params(text)));
    }
    let ToolLog { params: text, .. } = envelope.read().ok()?;
    Some(ClientNotification::Log(params(text)))
}

fn answer_of(envelope: &Envelope) -> Result<ToolInvokeResponse, ToolError> {
    if envelope.is::<ToolInvokeError>() {
        let error: ToolInvokeError = envelope.read().map_err(invalid_answer)?;
        return Err(error.into());
    }
    envelope.read().map_err(invalid_answer)
}

/// Reads a whole result. A worker of an earlier version answers with the text of one.
fn output_of(envelope: &Envelope) -> Result<CallOutput, ToolError> {
    if !envelope.is::<ToolResult>() {
        return answer_of(envelope).map(|response| response.to_output());
    }
    let ToolResult { result, is_error, .. } = envelope.read().map_err(invalid_answer)?;
    let invalid = |_| ToolError::new(ErrorCode::ExecutionFailed, "The worker sent an invalid answer");
    Ok(CallOutput { body: Object::parse(result).map_err(invalid)?, is_error })
}

fn invalid_answer(problem: crate::envelope::InvalidBody) -> ToolError {
    ToolError::new(ErrorCode::ExecutionFailed, "The worker sent an invalid answer").caused_by(problem)
}

/// Shows the topic and the time limit.
impl fmt::Debug for RemoteCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topic, timeout, .. } = self;
        f.debug_struct("RemoteCall").field("topic", topic).field("timeout", timeout).finish_non_exhaustive()
    }
}
