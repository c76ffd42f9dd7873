//! The stream of the events of a task.

use std::fmt;

use http::Response;
use serde_json::Value;
use toolyard_net::body;
use toolyard_net::client::ResponseBody;
use toolyard_net::header_values::{EVENT_STREAM, content_is};
use toolyard_net::sse::SseDecoder;

use super::error::AgentError;
use super::result_of;
use crate::wire::rpc;
use crate::wire::task::TaskEvent;

/// All events together may have so many times the bytes of one: the pieces of a result, and the states between them.
const STREAM_FACTOR: usize = 8;

/// The events of a task. Dropping it closes the connection.
pub struct EventStream(Events);

enum Events {
    Streamed {
        body: ResponseBody,
        decoder: SseDecoder,
        /// Bytes that the stream may still have.
        left: usize,
        limit: usize,
    },
    /// The answer of an agent that does not stream.
    Single(Option<Value>),
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventStream")
    }
}

impl EventStream {
    /// Returns the events of a response. Each event may have `limit` bytes, and all together eight times as many.
    pub(super) async fn of(response: Response<ResponseBody>, limit: usize) -> Result<Self, AgentError> {
        let is_stream = content_is(response.headers(), EVENT_STREAM);
        if !is_stream || !response.status().is_success() {
            return Ok(Self(Events::Single(Some(result_of(response, limit).await?))));
        }
        let all = limit.saturating_mul(STREAM_FACTOR);
        let (body, decoder) = (response.into_body(), SseDecoder::new(limit));
        Ok(Self(Events::Streamed { body, decoder, left: all, limit: all }))
    }

    /// Returns the next event; `None` at the end.
    ///
    /// # Errors
    /// If the connection breaks, or the agent sends an error or something else.
    pub async fn next(&mut self) -> Result<Option<TaskEvent>, AgentError> {
        let (body, decoder, left, limit) = match &mut self.0 {
            Events::Single(result) => {
                return result.take().map(TaskEvent::of_value).transpose().map_err(Into::into);
            }
            Events::Streamed { body, decoder, left, limit } => (body, decoder, left, *limit),
        };
        loop {
            let event = decoder.next_event().map_err(|error| AgentError::TooLarge(error.0))?;
            if let Some(event) = event {
                return Ok(Some(TaskEvent::of_value(rpc::result(&event.data)?)?));
            }
            match body::next_data(body).await.map_err(|_| AgentError::Broken)? {
                Some(data) => {
                    // An endless stream would occupy a processor up to the time limit of its task.
                    *left = left.checked_sub(data.len()).ok_or(AgentError::TooLarge(limit))?;
                    decoder.push(&data);
                }
                None => return Ok(None),
            }
        }
    }
}
