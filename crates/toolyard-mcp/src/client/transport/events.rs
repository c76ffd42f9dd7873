//! The events of a response stream, and the position for resuming it.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use toolyard_net::body;
use toolyard_net::budget::{BudgetExhausted, ByteBudget, ByteReservation, SMALL_MESSAGE};
use toolyard_net::client::ResponseBody;
use toolyard_net::sse::{SseDecoder, SseEvent};

use super::non_messages::{SkippedMessages, id_of_malformed};
use super::{TransportError, messages_in, parse_message};
use crate::wire::RpcMessage;
use crate::wire::headers::{LAST_EVENT_ID, RequestHeaders};

/// Delay before resuming a stream if the server sets none.
const DEFAULT_RETRY: Duration = Duration::from_secs(1);

/// Range of that delay: a server that ends every stream at once must not cause a busy loop.
const RETRY_RANGE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(300));

/// Maximum number of events in a row that are skipped because they are not messages. A stream with more is not one of
/// MCP.
const MAX_SKIPPED: usize = 10_000;

/// Reads a stream of events of limited size.
pub(super) struct SseEventReader {
    stream: ResponseBody,
    decoder: SseDecoder,
    budget: ByteBudget,
    /// Reserved bytes for a large event that is not complete yet.
    reserved: ByteReservation,
    /// True if the stream has the answers to all callers.
    is_shared: bool,
    skipped: SkippedMessages,
    /// Number of events since the last message that were skipped.
    skipped_in_row: usize,
    /// Messages of a batch that were not returned yet.
    batched: VecDeque<Bytes>,
}

/// The position in a stream, and the delay before resuming it.
#[derive(Debug, Default)]
pub(in crate::client) struct StreamPosition {
    last_id: Option<HeaderValue>,
    retry: Option<Duration>,
}

impl StreamPosition {
    /// Advances to the position that `events` has reached.
    pub(super) fn advance(&mut self, events: &SseEventReader) {
        if let Some(id) = events.decoder.last_id() {
            // An empty id, or one that no header can carry, cannot be resumed from.
            self.last_id = HeaderValue::from_bytes(id.as_bytes()).ok().filter(|id| !id.is_empty());
        }
        self.retry = events.decoder.retry().or(self.retry);
    }

    /// True if the stream can be resumed.
    pub(in crate::client) const fn is_resumable(&self) -> bool {
        self.last_id.is_some()
    }

    /// Returns the headers of a request that resumes the stream.
    pub(super) fn headers(&self) -> RequestHeaders {
        self.last_id.iter().map(|id| (LAST_EVENT_ID, id.clone())).collect()
    }

    /// Returns the delay before resuming the stream.
    pub(in crate::client) fn retry_delay(&self) -> Duration {
        self.retry.unwrap_or(DEFAULT_RETRY).clamp(RETRY_RANGE.0, RETRY_RANGE.1)
    }
}

/// True for the response to another request. Only errors may lack the id.
pub(super) fn answers_another(id: u64, message: &RpcMessage) -> bool {
    match message {
        RpcMessage::Response { id: Some(other), .. } => other.to_lenient_number() != Some(id),
        RpcMessage::Response { id: None, answer } => answer.is_ok(),
        _ => false,
    }
}

/// True if an event carries a message. The first event of a resumable stream has an id and no data; other event types
/// are not part of MCP.
pub(super) fn is_message(event: &SseEvent) -> bool {
    !event.data.is_empty() && matches!(&*event.kind, "" | "message")
}

impl SseEventReader {
    pub(super) fn new(
        stream: ResponseBody,
        event_bytes: usize,
        budget: ByteBudget,
        skipped: SkippedMessages,
    ) -> Self {
        let (decoder, reserved) = (SseDecoder::new(event_bytes), ByteReservation::default());
        let batched = VecDeque::new();
        Self { stream, decoder, budget, reserved, is_shared: false, skipped, skipped_in_row: 0, batched }
    }

    /// For a stream with the answers to all callers: the share of the budget's owner, the server, is only for the event
    /// that is being read.
    pub(super) fn shared_by_callers(self) -> Self {
        Self { is_shared: true, ..self }
    }

    /// Reads the next event of any type; `None` at the end.
    pub(super) async fn next_event(&mut self) -> Result<Option<SseEvent>, TransportError> {
        loop {
            if let Some(event) =
                self.decoder.next_event().map_err(|error| TransportError::TooLarge(error.0))?
            {
                return Ok(Some(self.hold(event)));
            }
            match body::next_data(&mut self.stream).await {
                Ok(Some(bytes)) => {
                    self.reserve_room(bytes.len()).await?;
                    self.decoder.push(&bytes);
                }
                Ok(None) => return Ok(None),
                Err(error) => return Err(TransportError::Interrupted(error.into())),
            }
        }
    }

    /// Reserves memory for `more` bytes.
    async fn reserve_room(&mut self, more: usize) -> Result<(), BudgetExhausted> {
        let needed = self.decoder.buffered_len() + more;
        if needed > SMALL_MESSAGE && needed > self.reserved.bytes() {
            self.reserved.add(self.budget.reserve(needed - self.reserved.bytes()).await?);
        }
        Ok(())
    }

    /// Attaches the reservation of an event to its data.
    fn hold(&mut self, mut event: SseEvent) -> SseEvent {
        if event.data.len() > SMALL_MESSAGE {
            let reserved = self.reserved.split(event.data.len());
            let reserved = if self.is_shared { reserved.disowned() } else { reserved };
            event.data = reserved.hold(event.data);
        }
        self.reserved.shrink(self.decoder.buffered_len());
        event
    }

    /// Reads the next message; `None` at the end. What is not a message is skipped, and so is the response to another
    /// request than the one with the id `awaited`, of which a malformed response is an error.
    pub(super) async fn next_message(
        &mut self,
        awaited: Option<u64>,
    ) -> Result<Option<RpcMessage>, TransportError> {
        while let Some(text) = self.next_text().await? {
            match parse_message(text.clone()) {
                Ok(message) if awaited.is_some_and(|id| answers_another(id, &message)) => {
                    self.skipped
                        .record(&TransportError::Malformed("the response to another request".to_owned()));
                    self.skip_event()?;
                }
                Ok(message) => {
                    self.skipped_in_row = 0;
                    return Ok(Some(message));
                }
                Err(error) if awaited.is_some() && id_of_malformed(&text) == awaited => {
                    return Err(error);
                }
                Err(error) => {
                    self.skipped.record(&error);
                    self.skip_event()?;
                }
            }
        }
        Ok(None)
    }

    /// Reads the text of the next message; `None` at the end.
    async fn next_text(&mut self) -> Result<Option<Bytes>, TransportError> {
        loop {
            if let Some(text) = self.batched.pop_front() {
                return Ok(Some(text));
            }
            let Some(event) = self.next_event().await? else { return Ok(None) };
            if !is_message(&event) {
                self.skip_event()?;
                continue;
            }
            match messages_in(event.data) {
                Ok(messages) => self.batched = messages,
                Err(error) => {
                    self.skipped.record(&error);
                    self.skip_event()?;
                }
            }
        }
    }

    /// Reads the first event of HTTP+SSE, the URL of messages to the server; `None` if a message precedes it, or the
    /// stream ends.
    pub(super) async fn next_endpoint(&mut self) -> Result<Option<Bytes>, TransportError> {
        while let Some(event) = self.next_event().await? {
            if event.kind == "endpoint" {
                return Ok(Some(event.data));
            }
            if is_message(&event) {
                match parse_message(event.data) {
                    Ok(_) => break,
                    Err(error) => self.skipped.record(&error),
                }
            }
            self.skip_event()?;
        }
        Ok(None)
    }

    fn skip_event(&mut self) -> Result<(), TransportError> {
        self.skipped_in_row += 1;
        match self.skipped_in_row > MAX_SKIPPED {
            true => Err(TransportError::Malformed(format!("{MAX_SKIPPED} events without a message"))),
            false => Ok(()),
        }
    }
}
