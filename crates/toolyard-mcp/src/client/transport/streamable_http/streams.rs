//! The streams of a server: that of a request until its answer, and that of messages without a request. In the legacy
//! era interrupted streams are resumed (2025-11-25, basic/transports, resumability and redelivery).

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use tokio::sync::Notify;
use tokio::time::sleep;
use toolyard_core::{Client, NotificationBody, Object};
use toolyard_net::budget::ByteBudget;
use toolyard_net::client::ResponseBody;

use super::{HttpResponseBody, HttpTransport, match_response};
use crate::client::convert::is_transient;
use crate::client::transport::events::{SseEventReader, StreamPosition, answers_another};
use crate::client::transport::{
    ConnectionSignals, OutgoingRequest, TransportError, UpstreamResult, client_notification, messages_in,
    parse_message,
};
use crate::wire::{RequestId, RpcMessage, method};

/// Maximum number of attempts to resume a stream. The delay doubles after each.
const MAX_RESUME_ATTEMPTS: usize = 3;

impl HttpTransport {
    /// Reads the stream of messages that belong to no request: a `GET` of the legacy era, resumed at `position`, or a
    /// `subscriptions/listen` of the modern era. `opened` is notified of the response, whether or not it is a stream.
    /// Returns at the end of the stream.
    pub(in crate::client) async fn read_change_stream(
        &self,
        listen: Option<OutgoingRequest>,
        position: &mut StreamPosition,
        signals: &ConnectionSignals,
        opened: &Notify,
    ) -> Result<(), TransportError> {
        let request = match listen {
            None => self.build_request(Method::GET, Bytes::new(), position.headers()).await?,
            Some(listen) => self.build_request(Method::POST, listen.message, listen.headers).await?,
        };
        let (head, response) = self.endpoint.client().send(request).await?.into_parts();
        opened.notify_one();
        if !head.status.is_success() {
            return Err(self.endpoint.status_error(head.status, &head.headers));
        }
        let stream = self.stream_of(head.status, &head.headers, response).await?;
        let mut events = self.events(stream, self.budget.clone());
        let ended = self.handle_changes(&mut events, signals).await;
        position.advance(&events);
        ended
    }

    fn events(&self, stream: ResponseBody, budget: ByteBudget) -> SseEventReader {
        SseEventReader::new(stream, self.max_message_bytes, budget, self.skipped.clone())
    }

    async fn handle_changes(
        &self,
        events: &mut SseEventReader,
        signals: &ConnectionSignals,
    ) -> Result<(), TransportError> {
        let mut flushes = signals.stream_flush.reader();
        loop {
            let message = tokio::select! {
                biased;
                message = events.next_message(None) => message?,
                never = flushes.serve() => match never {},
            };
            match message {
                Some(RpcMessage::Request { id, method, params, .. }) => {
                    self.handle_request(None, id, &method, params).await
                }
                Some(RpcMessage::Notification { method, body }) => {
                    self.handle_server_notification(&method, body, signals);
                }
                // The server ends the stream on purpose.
                Some(RpcMessage::Response { .. }) | None => return Ok(()),
            }
        }
    }

    /// Handles a notification that belongs to no request.
    fn handle_server_notification(&self, method: &str, body: NotificationBody, signals: &ConnectionSignals) {
        match method {
            method::PROGRESS => self.progress_routes.forward_progress(body),
            method::CANCELLED => self.server_requests.handle_cancellation(&body.params),
            method::ELICIT_COMPLETE => self.server_requests.url_elicitations.complete(body),
            method => match client_notification(method, body) {
                Ok(notice) => self.server_requests.forward_notice(notice),
                Err(body) => signals.handle_notification(method, &body.params),
            },
        }
    }

    /// Reads the stream of a request until its answer, and resumes it when it is interrupted.
    pub(super) async fn read_answer(
        &self,
        id: u64,
        mut stream: ResponseBody,
        client: &dyn Client,
        budget: &ByteBudget,
    ) -> Result<UpstreamResult, TransportError> {
        let mut position = StreamPosition::default();
        loop {
            let mut events = self.events(stream, budget.clone());
            let interruption = match self.read_until_answer(id, &mut events, client).await {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) => TransportError::Interrupted("the stream ended without a response".into()),
                Err(broken @ TransportError::Interrupted(_)) => broken,
                Err(error) => return Err(error),
            };
            position.advance(&events);
            if !self.can_resume() || !position.is_resumable() {
                return Err(interruption);
            }
            stream = Box::pin(self.resume(&position)).await?;
        }
    }

    /// Reads a stream until the answer to a request; `None` if the stream ends before.
    async fn read_until_answer(
        &self,
        id: u64,
        events: &mut SseEventReader,
        client: &dyn Client,
    ) -> Result<Option<UpstreamResult>, TransportError> {
        while let Some(message) = events.next_message(Some(id)).await? {
            if let Some(answer) = self.handle_message(id, message, client).await? {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }

    /// Reads the answer to a request from a batch, and handles its other messages.
    pub(super) async fn read_batch(
        &self,
        id: u64,
        text: Bytes,
        client: &dyn Client,
    ) -> Result<UpstreamResult, TransportError> {
        let mut found = None;
        for text in messages_in(text)? {
            match parse_message(text) {
                Ok(message) if answers_another(id, &message) => {}
                Ok(message) => found = self.handle_message(id, message, client).await?.or(found),
                Err(error) => self.skipped.record(&error),
            }
        }
        found.ok_or_else(|| TransportError::Malformed("a batch without the response".to_owned()))
    }

    /// Handles a message on the way to the answer to a request. Returns the answer.
    async fn handle_message(
        &self,
        id: u64,
        message: RpcMessage,
        client: &dyn Client,
    ) -> Result<Option<UpstreamResult>, TransportError> {
        match message {
            RpcMessage::Notification { method, body } => self.handle_notification(&method, body, client),
            RpcMessage::Request { id: server_id, method, params, .. } => {
                self.handle_request(Some(id), server_id, &method, params).await;
            }
            response @ RpcMessage::Response { .. } => return match_response(id, response).map(Some),
        }
        Ok(None)
    }

    /// Handles a notification on the stream of a request.
    fn handle_notification(&self, method: &str, body: NotificationBody, client: &dyn Client) {
        match method {
            method::PROGRESS => self.progress_routes.forward_progress(body),
            method::CANCELLED => self.server_requests.handle_cancellation(&body.params),
            method::ELICIT_COMPLETE => self.server_requests.url_elicitations.complete(body),
            // Some servers announce what a call has changed on the stream of the call.
            method if method::is_change(method) => self.signals.handle_notification(method, &body.params),
            method => {
                if let Ok(notice) = client_notification(method, body) {
                    client.notify(notice);
                }
            }
        }
    }

    /// Resumes the stream of a request after the delay that the server has set.
    async fn resume(&self, position: &StreamPosition) -> Result<ResponseBody, TransportError> {
        let (mut wait, mut attempts_left) = (position.retry_delay(), MAX_RESUME_ATTEMPTS);
        loop {
            sleep(wait).await;
            attempts_left -= 1;
            match self.open_stream_from(position).await {
                Ok(stream) => return Ok(stream),
                Err(error) if attempts_left > 0 && is_temporary(&error) => wait *= 2,
                Err(TransportError::SessionExpired) => return Err(TransportError::SessionLost),
                Err(error) => return Err(TransportError::Interrupted(error.into())),
            }
        }
    }

    async fn open_stream_from(&self, position: &StreamPosition) -> Result<ResponseBody, TransportError> {
        let request = self.build_request(Method::GET, Bytes::new(), position.headers()).await?;
        let (head, response) = self.endpoint.client().send(request).await?.into_parts();
        self.stream_of(head.status, &head.headers, response).await
    }

    async fn stream_of(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        response: ResponseBody,
    ) -> Result<ResponseBody, TransportError> {
        // Id 0 is never used, so that no body counts as an answer.
        match self.read_body(0, status, headers, response, &self.budget).await? {
            HttpResponseBody::Stream(stream) => Ok(stream),
            HttpResponseBody::Json(_) => Err(TransportError::Malformed("not a stream".to_owned())),
        }
    }

    async fn handle_request(&self, call_id: Option<u64>, id: RequestId, method: &str, params: Object) {
        if let Some(response) = self.server_requests.handle_request(call_id, id, method, params) {
            Box::pin(self.respond(response)).await;
        }
    }
}

/// True if the server may accept the request later. A conflict means that it has not noticed the end of the old stream
/// yet.
fn is_temporary(error: &TransportError) -> bool {
    match error {
        TransportError::Unreachable(_) | TransportError::Broken(_) => true,
        TransportError::Status(status) => {
            *status == StatusCode::CONFLICT || status.is_server_error() || is_transient(*status)
        }
        _ => false,
    }
}
