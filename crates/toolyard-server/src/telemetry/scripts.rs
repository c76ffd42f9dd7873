//! Spans and measurements of scripts that arrive on a message bus.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;
use opentelemetry::trace::{Span as _, Status as SpanStatus};
use toolyard_core::{PythonScript, ScriptExecutor, ScriptOutcome, ToolError};

use super::metrics::CallMetrics;
use super::trace::CallTraces;

/// Runs scripts and measures them, each in a span that continues the trace of its call.
pub(super) struct ObservedScripts {
    pub(super) executor: Arc<dyn ScriptExecutor>,
    pub(super) traces: Arc<CallTraces>,
    pub(super) metrics: Arc<CallMetrics>,
}

impl ScriptExecutor for ObservedScripts {
    fn run(&self, script: PythonScript) -> BoxFuture<'_, Result<ScriptOutcome, ToolError>> {
        // A span that is dropped has ended.
        let mut span = self.traces.script_span(script.trace_parent.as_deref());
        Box::pin(async move {
            let started = Instant::now();
            let outcome = self.executor.run(script).await;
            let verdict = outcome.as_ref().map(ScriptOutcome::is_success).map_err(ToolError::code);
            self.metrics.record_script(verdict, started.elapsed());
            let failure = match &outcome {
                Ok(outcome) if outcome.is_success() => None,
                Ok(outcome) => Some(format!("exit status {}", outcome.exit_code)),
                Err(error) => Some(error.outline().to_string()),
            };
            if let (Some(span), Some(failure)) = (&mut span, failure) {
                span.set_status(SpanStatus::error(failure));
            }
            outcome
        })
    }
}
