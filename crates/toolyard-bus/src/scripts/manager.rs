//! The manager: runs the scripts of `script.invoke`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use tokio::time::{Instant, timeout_at};
use toolyard_core::script::{PythonScript, ScriptExecutor, ScriptOutcome};
use toolyard_core::{ErrorCode, ToolError};
use toolyard_manifest::BusSettings;

use super::{DEFAULT_TIMEOUT, NOT_RUN, TOOL};
use crate::bus::{BusError, Delivery, MessageBus, Subscription};
use crate::consumer::{
    AcknowledgedRequest, AtMostOnce, Consumer, ConsumerOptions, RequestHandler, RunningRequests, log_failure,
};
use crate::envelope::{Envelope, new_id};
use crate::headers::{self, ContentTrust};
use crate::message::{ScriptInvokeRequest, ScriptInvokeResponse};
use crate::record::ToolInvokeRequest;
use crate::reply::{ReplyRoute, reply_to, reply_topic, time_left, time_limit};
use crate::topic::{SCRIPT_INVOKE, SCRIPT_RESULT, TOOL_CANCEL, Topic};

/// Time for a result after the deadline of its sender.
const LAST_RESULT_TIME: Duration = Duration::from_secs(5);

/// Options of a manager.
#[derive(Debug, Clone, Copy)]
pub struct ScriptsManagerOptions {
    /// Maximum number of scripts at a time. Further ones stay in the queue.
    pub concurrent: usize,
}

/// Runs scripts that arrive on the bus. Dropping it stops them.
#[derive(Debug)]
pub struct ScriptsManager(Consumer);

struct ScriptsManagerShared {
    bus: Arc<dyn MessageBus>,
    executor: Arc<dyn ScriptExecutor>,
    settings: BusSettings,
    running: RunningRequests,
    at_most_once: AtMostOnce,
}

/// A script that was read from its message.
struct ReceivedScript {
    envelope: Arc<Envelope>,
    request: ScriptInvokeRequest,
    reply_topic: Topic,
    /// Time at which the sender stops waiting, if the message has it.
    deadline: Option<Instant>,
}

/// The outcome of a script; an error if it was not run.
type ScriptResult = Result<ScriptOutcome, ToolError>;

impl ScriptsManager {
    /// Starts a manager. It subscribes once the broker can be reached.
    #[must_use]
    pub fn start(
        bus: Arc<dyn MessageBus>,
        executor: Arc<dyn ScriptExecutor>,
        options: ScriptsManagerOptions,
        settings: &BusSettings,
    ) -> Self {
        let group = &settings.scripts.group;
        let subscription = Subscription::of_group(group, Topic::of(SCRIPT_INVOKE));
        let consumer = ConsumerOptions {
            subscriptions: vec![subscription.prefetching(options.concurrent)],
            concurrent: options.concurrent,
            cancellations: Some(Topic::of(TOOL_CANCEL)),
        };
        let shared = Arc::new(ScriptsManagerShared {
            bus: bus.clone(),
            executor,
            settings: settings.clone(),
            running: RunningRequests::default(),
            at_most_once: AtMostOnce::default(),
        });
        Self(Consumer::start(bus, shared, consumer, settings))
    }

    /// Returns once the manager has subscribed; `false` if the broker refuses that.
    pub async fn subscribed(&self) -> bool {
        self.0.subscribed().await
    }

    /// Takes no further scripts, and waits for the running ones.
    pub async fn stop(self, drain: Duration) {
        self.0.stop(drain).await;
    }
}

impl RequestHandler for ScriptsManagerShared {
    fn handle(self: Arc<Self>, delivery: Delivery) -> BoxFuture<'static, ()> {
        async move { self.run_at_most_once(delivery).await }.boxed()
    }

    fn cancel(&self, id: &str) {
        self.running.cancel(id);
    }
}

impl ScriptsManagerShared {
    /// Runs the script of a delivery and sends its result. It is acknowledged first, and not run if it may have been run
    /// before. A message that is no script is a dead letter.
    async fn run_at_most_once(&self, delivery: Delivery) {
        let script = match ReceivedScript::read(&delivery) {
            Ok(script) => script,
            Err(reason) => return log_failure(delivery.dead_letter(reason).await),
        };
        let result = match self.at_most_once.acknowledge(delivery).await {
            None => return,
            Some(AcknowledgedRequest::New) => self.run(&script).await,
            Some(AcknowledgedRequest::MayHaveRun) => {
                let message = "the script was delivered before and may have run; it is not run a second time";
                Some(Err(ToolError::new(ErrorCode::ExecutionFailed, message)))
            }
        };
        if let Some(result) = result {
            script.log(&result);
            log_failure(self.send(&script, result).await);
        }
    }

    /// Runs a script; `None` once it is cancelled.
    async fn run(&self, received: &ReceivedScript) -> Option<ScriptResult> {
        let script = match received.to_script(self.settings.scripts.max_timeout) {
            Ok(script) => script,
            Err(error) => return Some(Err(error)),
        };
        let (_running, cancelled) = self.running.register(&received.request.tool_call_id);
        let late = || ToolError::new(ErrorCode::Timeout, "the sender of the script waits no longer");
        let running = async {
            match received.deadline {
                None => self.executor.run(script).await,
                Some(deadline) if deadline <= Instant::now() => Err(late()),
                // Dropping the script ends its processes.
                Some(deadline) => {
                    timeout_at(deadline, self.executor.run(script)).await.unwrap_or_else(|_| Err(late()))
                }
            }
        };
        tokio::select! {
            result = running => Some(result),
            Ok(()) = cancelled => None,
        }
    }

    /// Sends the result.
    async fn send(&self, script: &ReceivedScript, result: ScriptResult) -> Result<(), BusError> {
        let until = script.deadline.unwrap_or_else(Instant::now).max(Instant::now()) + LAST_RESULT_TIME;
        let too_large = |reason: String| {
            let message = format!("the output of the script is too large for the bus: {reason}");
            Err(ToolError::new(ErrorCode::ExecutionFailed, message))
        };
        let envelope = |result: &ScriptResult| script.envelope_of(result, &self.settings.source);
        let route =
            ReplyRoute { bus: &*self.bus, request: &script.envelope, topic: &script.reply_topic, until };
        route.send(result, envelope, too_large).await
    }
}

impl ReceivedScript {
    /// Reads a script, or returns the reason why the message is none.
    fn read(delivery: &Delivery) -> Result<Self, String> {
        let envelope = delivery.envelope.clone();
        let request = envelope.read().map_err(|problem| problem.to_string())?;
        let reply_topic = reply_topic(&envelope, SCRIPT_RESULT)?;
        let limit = time_limit(&envelope);
        let deadline = limit.map(|limit| Instant::now() + time_left(&envelope, limit));
        Ok(Self { envelope, request, reply_topic, deadline })
    }

    /// Returns the script to run.
    ///
    /// # Errors
    /// If the request is no script that can run.
    fn to_script(&self, max_timeout: Duration) -> Result<PythonScript, ToolError> {
        let ScriptInvokeRequest { tool_call_id: _, script, input_data, timeout_seconds, pip_packages } =
            &self.request;
        let invalid = |why: &str| Err(ToolError::new(ErrorCode::InvalidArguments, why.to_owned()));
        if script.trim().is_empty() {
            return invalid("script: is empty; expected Python source");
        }
        let timeout = match u64::try_from(*timeout_seconds) {
            Ok(0) => DEFAULT_TIMEOUT,
            Ok(seconds) => Duration::from_secs(seconds),
            Err(_) => return invalid("timeoutSeconds: is negative"),
        };
        Ok(PythonScript {
            // Senders choose their ids by themselves, so that two running scripts could have the same.
            call_id: new_id()?,
            source: script.clone(),
            input: input_data.clone(),
            timeout: timeout.min(max_timeout),
            packages: pip_packages.clone(),
            trace_parent: self.envelope.trace.as_ref().map(|trace| trace.parent.clone()),
        })
    }

    /// Logs the end of a script, and nothing that it has read or written.
    fn log(&self, result: &ScriptResult) {
        let trace = self.envelope.trace.as_ref().and_then(|trace| trace.parent.split('-').nth(1));
        let trace_id = trace.unwrap_or_default();
        match result {
            Ok(ScriptOutcome { exit_code, elapsed, .. }) => {
                tracing::info!(exit_code, elapsed_ms = elapsed.as_millis(), trace_id, "script ended");
            }
            Err(error) => tracing::info!(code = ?error.code(), trace_id, "script was not run"),
        }
    }

    /// Returns the message with a result. A script that was not run has the exit status [`NOT_RUN`], the reason as its
    /// error output, and the code of the error in headers.
    fn envelope_of(&self, result: &ScriptResult, source: &str) -> Result<Envelope, BusError> {
        let tool_call_id = self.request.tool_call_id.clone();
        let response = match result {
            Ok(ScriptOutcome { output, stderr, exit_code, elapsed }) => ScriptInvokeResponse {
                tool_call_id,
                output: Some(output.clone()),
                stderr: Some(stderr.clone()),
                exit_code: i64::from(*exit_code),
                is_success: *exit_code == 0,
                elapsed_ms: i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX),
            },
            Err(error) => ScriptInvokeResponse {
                tool_call_id,
                output: None,
                stderr: Some(error.message().to_owned()),
                exit_code: i64::from(NOT_RUN),
                is_success: false,
                elapsed_ms: 0,
            },
        };
        let envelope = reply_to(&self.envelope, &response, source)?
            .header(headers::CONTENT_TRUST, ContentTrust::ToolOutput.as_str());
        let Err(error) = result else { return Ok(envelope) };
        let request = ToolInvokeRequest {
            tool_call_id: self.request.tool_call_id.clone(),
            tool_name: TOOL.to_owned(),
            arguments: None,
            session_id: None,
        };
        let refusal = request.refusal(error);
        Ok(envelope
            .header(headers::ERROR_CODE, refusal.code)
            .header(headers::ERROR_RETRYABLE, refusal.is_retryable.to_string()))
    }
}

impl fmt::Debug for ScriptsManagerShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptsManagerShared").field("bus", &self.bus).finish_non_exhaustive()
    }
}
