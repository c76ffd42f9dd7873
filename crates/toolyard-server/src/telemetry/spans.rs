//! Spans on their way to the collector: a bounded queue, which no call ever waits for.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::losses::Losses;

/// Where spans that are over wait to be sent.
pub(super) struct Queue {
    spans: Sender<SpanData>,
    losses: Arc<Losses>,
}

impl Queue {
    /// A queue for `size` spans, and the other end of it.
    pub(super) fn new(size: usize, losses: Arc<Losses>) -> (Self, Receiver<SpanData>) {
        let (spans, waiting) = mpsc::channel(size);
        (Self { spans, losses }, waiting)
    }
}

impl SpanProcessor for Queue {
    fn on_start(&self, _span: &mut Span, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() && self.spans.try_send(span).is_err() {
            self.losses.lose_spans(1);
        }
    }

    /// What waits is sent by a task of its own.
    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("room", &self.spans.capacity()).finish_non_exhaustive()
    }
}
