//! The executor of a process that has no right to run scripts: it sends them to a manager.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout_at};
use toolyard_core::script::{PythonScript, ScriptExecutor, ScriptOutcome};
use toolyard_core::{ErrorCode, ToolError};
use toolyard_manifest::BusSettings;

use super::TOOL;
use crate::bus::{BusError, MessageBus};
use crate::caller::CancelOnDrop;
use crate::envelope::{Envelope, InvalidBody, TraceContext, new_id};
use crate::headers::{self, ContentTrust};
use crate::message::{ScriptInvokeRequest, ScriptInvokeResponse};
use crate::record::ToolInvokeError;
use crate::request::Requester;
use crate::stored_results;
use crate::topic::{SCRIPT_INVOKE, Topic};

/// Sends scripts to a manager. Results arrive on `script.result.{source}`, to which it subscribes at the first script.
#[derive(Debug)]
pub struct BusScriptRunner {
    bus: Arc<dyn MessageBus>,
    settings: BusSettings,
    requester: OnceCell<Requester>,
}

impl BusScriptRunner {
    /// Returns a runner for the managers on a bus.
    #[must_use]
    pub fn new(bus: Arc<dyn MessageBus>, settings: &BusSettings) -> Self {
        Self { bus, settings: settings.clone(), requester: OnceCell::new() }
    }

    async fn run(&self, script: PythonScript) -> Result<ScriptOutcome, ToolError> {
        let wait = script.timeout.saturating_add(self.settings.scripts.start_timeout);
        let deadline = Instant::now() + wait;
        let late = || ToolError::new(ErrorCode::Timeout, "no scripts manager has answered in time");
        let running = async {
            let requester = self.requester.get_or_try_init(|| self.subscribe()).await?;
            let tool_call_id = new_id()?;
            let envelope = self.envelope(script, &tool_call_id, wait)?;
            // From here on the message may reach a manager.
            let cancellation = CancelOnDrop::new(&self.bus, &self.settings.source, &tool_call_id);
            let mut request = match requester.send(&Topic::of(SCRIPT_INVOKE), envelope).await {
                Ok(request) => request,
                Err(error) => {
                    cancellation.disarm();
                    return Err(not_sent(error));
                }
            };
            let reply = request.reply_before(deadline).await?;
            cancellation.disarm();
            outcome_of(&stored_results::resolve(&*self.bus, reply).await?)
        };
        timeout_at(deadline, running).await.unwrap_or_else(|_| Err(late()))
    }

    async fn subscribe(&self) -> Result<Requester, BusError> {
        let invalid = |_| BusError::invalid("the name of this process cannot be part of a topic");
        let topic = Topic::script_result_of(&self.settings.source).map_err(invalid)?;
        Requester::on(self.bus.clone(), topic, self.settings.pending_requests).await
    }

    fn envelope(&self, script: PythonScript, id: &str, wait: Duration) -> Result<Envelope, BusError> {
        let PythonScript { call_id: _, source, input, timeout, packages, trace_parent } = script;
        let trace = trace_parent.and_then(|parent| TraceContext::parse(&parent, None));
        // Rounded up to whole seconds.
        let seconds = timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0);
        let request = ScriptInvokeRequest {
            tool_call_id: id.to_owned(),
            script: source,
            input_data: input,
            timeout_seconds: i64::try_from(seconds).unwrap_or(i64::MAX),
            pip_packages: packages,
        };
        let envelope = Envelope::of(&request, &self.settings.source)?
            .correlated(id)
            .traced(trace)
            .header(headers::CONTENT_TRUST, ContentTrust::ToolRequest.as_str())
            .header(headers::TIMEOUT_MS, wait.as_millis().to_string());
        Ok(match self.bus.stored_results() {
            Some(_) => envelope.header(headers::RESULT_STORE, "true"),
            None => envelope,
        })
    }
}

impl ScriptExecutor for BusScriptRunner {
    fn run(&self, script: PythonScript) -> BoxFuture<'_, Result<ScriptOutcome, ToolError>> {
        self.run(script).boxed()
    }
}

/// Explains a script that did not reach the bus.
fn not_sent(error: BusError) -> ToolError {
    let error = ToolError::from(error);
    let message = format!("the script was not run: {}", error.message());
    ToolError::new(error.code(), message).caused_by(error).unsent()
}

/// Returns the outcome in the response of a manager.
fn outcome_of(reply: &Envelope) -> Result<ScriptOutcome, ToolError> {
    let response: ScriptInvokeResponse = reply.read().map_err(invalid)?;
    if let Some(code) = reply.headers.get(headers::ERROR_CODE) {
        let is_retryable = reply.headers.get(headers::ERROR_RETRYABLE).is_some_and(|value| value == "true");
        return Err(ToolError::from(ToolInvokeError {
            tool_call_id: response.tool_call_id,
            tool_name: TOOL.to_owned(),
            code: code.clone(),
            message: response.stderr.unwrap_or_default(),
            is_retryable,
        }));
    }
    let ScriptInvokeResponse { tool_call_id: _, output, stderr, exit_code, is_success, elapsed_ms } =
        response;
    // `isSuccess` decides if the exit status contradicts it.
    let exit_code = match (is_success, i32::try_from(exit_code).unwrap_or(super::NOT_RUN)) {
        (true, _) => 0,
        (false, 0) => 1,
        (false, code) => code,
    };
    Ok(ScriptOutcome {
        output: output.unwrap_or_default(),
        stderr: stderr.unwrap_or_default(),
        exit_code,
        elapsed: Duration::from_millis(u64::try_from(elapsed_ms).unwrap_or_default()),
    })
}

fn invalid(problem: InvalidBody) -> ToolError {
    ToolError::new(ErrorCode::ExecutionFailed, "the scripts manager sent an invalid result")
        .caused_by(problem)
}
