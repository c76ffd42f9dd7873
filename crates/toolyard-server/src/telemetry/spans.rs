//! Queue of spans to export. It is limited and never blocks a call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::losses::TelemetryLosses;

/// Queue of ended spans to export.
pub(super) struct SpanQueue {
    spans: Sender<SpanData>,
    losses: Arc<TelemetryLosses>,
}

impl SpanQueue {
    /// Creates a queue for `size` spans and returns its receiver.
    pub(super) fn new(size: usize, losses: Arc<TelemetryLosses>) -> (Self, Receiver<SpanData>) {
        let (spans, waiting) = mpsc::channel(size);
        (Self { spans, losses }, waiting)
    }
}

impl SpanProcessor for SpanQueue {
    fn on_start(&self, _span: &mut Span, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() && self.spans.try_send(span).is_err() {
            self.losses.lose_spans(1);
        }
    }

    /// Does nothing: the export task sends queued spans.
    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}

impl fmt::Debug for SpanQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpanQueue").field("room", &self.spans.capacity()).finish_non_exhaustive()
    }
}
