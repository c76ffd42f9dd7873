//! Streamable HTTP, as a client of either era.

mod running;
mod streams;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use hyper::body::Incoming;
use tokio::time::timeout;
use toolyard_core::Client;
use toolyard_net::body::{self, ReadError};

use running::Running;

use super::asked::Callers;
use super::endpoint::HttpEndpoint;
use super::events;
use super::session;
use super::transport::{Answer, Outgoing, TransportError, cancelled, parse};
use crate::wire::headers::{PROTOCOL_VERSION, SESSION_ID};
use crate::wire::{Id, Message, message, method};

/// A server at a URL.
#[derive(Clone)]
pub(super) struct Http {
    endpoint: HttpEndpoint,
    message_bytes: usize,
    /// What every request carries once the handshake is over.
    fixed: HeaderMap,
    /// Whom the server may ask.
    callers: Arc<Callers>,
    /// Who is told of progress.
    running: Running,
}

/// The response to a request, opened as far as its kind of body.
enum Opened {
    Json(Bytes),
    Stream(Incoming),
}

impl Http {
    pub(super) fn new(endpoint: HttpEndpoint, message_bytes: usize, callers: Arc<Callers>) -> Self {
        Self { endpoint, message_bytes, fixed: HeaderMap::new(), callers, running: Running::default() }
    }

    /// The same server, with headers that every further request is to carry.
    pub(super) fn with_fixed(mut self, fixed: HeaderMap) -> Self {
        self.fixed = fixed;
        self
    }

    pub(super) async fn request(
        &self,
        request: Outgoing,
        client: &Arc<dyn Client>,
    ) -> Result<Answer, TransportError> {
        self.exchange(request, client).await.map(|(answer, _)| answer)
    }

    /// Sends a request; gives the answer and the head that it came with.
    pub(super) async fn exchange(
        &self,
        request: Outgoing,
        client: &Arc<dyn Client>,
    ) -> Result<(Answer, HeaderMap), TransportError> {
        let mut withdrawal = Withdrawal { http: self, id: Some(request.id) };
        let answer = self.attempt(request, client).await;
        // It came to an end of its own.
        withdrawal.id = None;
        answer
    }

    async fn attempt(
        &self,
        request: Outgoing,
        client: &Arc<dyn Client>,
    ) -> Result<(Answer, HeaderMap), TransportError> {
        let id = request.id;
        let _runs = self.running.enter(id, client);
        let response = self.send(Method::POST, request.message, &request.headers).await?;
        let (head, response) = response.into_parts();
        let answer = match self.open(id, head.status, &head.headers, response).await? {
            Opened::Json(text) => answer_to(id, parse(text)?)?,
            Opened::Stream(stream) => self.read_answer(id, stream, &**client).await?,
        };
        Ok((answer, head.headers))
    }

    /// Sends what wants no answer: a notification, or a response.
    pub(super) async fn tell(&self, message: Bytes) -> Result<(), TransportError> {
        let response = self.send(Method::POST, message, &HeaderMap::new()).await?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(self.failure(status, &Bytes::new())),
        }
    }

    /// Answers what the server asks. Where that is not delivered, the server is the one to mind.
    pub(super) async fn answer(&self, response: Vec<Bytes>) {
        let told = timeout(TELL_TIME, self.tell(response.concat().into())).await;
        if !matches!(told, Ok(Ok(()))) {
            tracing::debug!("a server's request could not be answered");
        }
    }

    /// Sends what wants no answer, and does not wait until it is there. It is the one thing that outlives its call.
    pub(super) fn post(&self, message: Bytes) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let http = self.clone();
        runtime.spawn(async move {
            if !matches!(timeout(TELL_TIME, http.tell(message)).await, Ok(Ok(()))) {
                tracing::debug!("a message to a server was not delivered");
            }
        });
    }

    /// Ends the session, where there is one. A server need not allow it.
    pub(super) async fn end_session(&self) {
        if self.in_session() {
            let _refused = self.send(Method::DELETE, Bytes::new(), &HeaderMap::new()).await.map(drop);
        }
    }

    async fn send(
        &self,
        method: Method,
        body: Bytes,
        headers: &HeaderMap,
    ) -> Result<Response<Incoming>, TransportError> {
        let accept = match method {
            Method::GET => HeaderValue::from_static("text/event-stream"),
            _ => HeaderValue::from_static("application/json, text/event-stream"),
        };
        let mut whole = self.fixed.clone();
        whole.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        whole.insert(header::ACCEPT, accept);
        whole.extend(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        self.endpoint.send(method, &self.endpoint.route().url, body, &whole).await
    }

    async fn open(
        &self,
        id: u64,
        status: StatusCode,
        headers: &HeaderMap,
        response: Incoming,
    ) -> Result<Opened, TransportError> {
        if status.is_success() && events::is_stream(headers) {
            return Ok(Opened::Stream(response));
        }
        // An error of JSON-RPC may come with any status of failure.
        match body::read(response, self.message_bytes).await {
            Ok(text) if status.is_success() || answers(id, &text) => Ok(Opened::Json(text)),
            Ok(text) => Err(self.failure(status, &text)),
            Err(ReadError::TooLarge(limit)) => Err(TransportError::TooLarge(limit)),
            Err(error @ ReadError::Broken(_)) => Err(TransportError::Interrupted(error.into())),
        }
    }

    /// What a failure means that is no answer to the request.
    fn failure(&self, status: StatusCode, text: &Bytes) -> TransportError {
        match self.in_session() && session::is_refused(status, text) {
            true => TransportError::SessionOver,
            false => TransportError::Status(status),
        }
    }

    /// Whether a stream that breaks off can be asked for again. The modern era has nothing like it, nor has the
    /// handshake.
    fn may_resume(&self) -> bool {
        self.fixed.contains_key(PROTOCOL_VERSION)
    }

    /// Whether the server has opened a session. Without one nothing can be over.
    pub(super) fn in_session(&self) -> bool {
        self.fixed.contains_key(SESSION_ID)
    }
}

/// Whether the body of a failed request answers it. Without the request's own id it is about something
/// else: a lost session, for one.
fn answers(id: u64, text: &Bytes) -> bool {
    let answered = Message::parse(text.clone());
    matches!(answered, Ok(Message::Response { id: Some(answered), answer: Err(_) }) if answered == Id::number(id))
}

fn answer_to(expected: u64, message: Message) -> Result<Answer, TransportError> {
    match message {
        Message::Response { id, answer }
            if id.as_ref().is_none_or(|id| id.to_number_or_text() == Some(expected)) =>
        {
            Ok(answer)
        }
        _ => Err(TransportError::Malformed("not the response to the request".to_owned())),
    }
}

/// How long the delivery of what wants no answer is tried.
pub(super) const TELL_TIME: Duration = Duration::from_secs(5);

/// Tells a legacy server that a request is not wanted any more, when it is dropped: there, unlike in the
/// modern era, a closed connection does not say so.
struct Withdrawal<'a> {
    http: &'a Http,
    /// The request, for as long as there is something to withdraw.
    id: Option<u64>,
}

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.filter(|_| self.http.in_session()) else { return };
        self.http.post(message::notification(method::CANCELLED, &cancelled(id)));
    }
}
