//! Streamable HTTP, as a client of either era.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::time::timeout;
use toolyard_core::{Client, Notice, Object};
use toolyard_net::body::{self, ReadError};
use toolyard_net::client::{Client as HttpClient, RequestError};
use toolyard_net::sse::Decoder;

use super::transport::{Answer, Outgoing, Signals, TransportError, parse, response_to};
use crate::wire::headers::SESSION_ID;
use crate::wire::{Id, Message, message, method};

/// A server at a URL.
#[derive(Clone)]
pub(super) struct Http {
    url: Uri,
    client: HttpClient,
    message_bytes: usize,
    /// What every request carries once the handshake is over.
    fixed: HeaderMap,
}

/// The response to a request, opened as far as its kind of body.
enum Opened {
    Json(Bytes),
    Stream(Incoming),
}

impl Http {
    pub(super) fn new(url: Uri, client: HttpClient, message_bytes: usize) -> Self {
        Self { url, client, message_bytes, fixed: HeaderMap::new() }
    }

    /// The same server, with headers that every further request is to carry.
    pub(super) fn with_fixed(mut self, fixed: HeaderMap) -> Self {
        self.fixed = fixed;
        self
    }

    pub(super) async fn request(
        &self,
        request: Outgoing,
        client: &dyn Client,
    ) -> Result<Answer, TransportError> {
        self.exchange(request, client).await.map(|(answer, _)| answer)
    }

    /// Sends a request; gives the answer and the head that it came with.
    pub(super) async fn exchange(
        &self,
        request: Outgoing,
        client: &dyn Client,
    ) -> Result<(Answer, HeaderMap), TransportError> {
        let mut withdrawal = Withdrawal::of(self, request.id);
        let response = self.send(Method::POST, Full::new(request.message), &request.headers).await?;
        let (head, response) = response.into_parts();
        let answer = match self.open(head.status, &head.headers, response).await? {
            Opened::Json(text) => answer_to(request.id, parse(text)?)?,
            Opened::Stream(stream) => self.read_stream(request.id, stream, client).await?,
        };
        withdrawal.done();
        Ok((answer, head.headers))
    }

    /// Sends what wants no answer: a notification, or a response.
    pub(super) async fn tell(&self, message: Bytes) -> Result<(), TransportError> {
        let response = self.send(Method::POST, Full::new(message), &HeaderMap::new()).await?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(self.failure(status)),
        }
    }

    /// Follows the stream of what belongs to no request: a `GET` of the legacy era, or a
    /// `subscriptions/listen` of the modern one. Returns when it has ended.
    pub(super) async fn follow(
        &self,
        listen: Option<&Outgoing>,
        signals: &Signals,
    ) -> Result<(), TransportError> {
        let response = match listen {
            None => self.send(Method::GET, Full::default(), &HeaderMap::new()).await?,
            Some(listen) => {
                self.send(Method::POST, Full::new(listen.message.clone()), &listen.headers).await?
            }
        };
        let (head, response) = response.into_parts();
        let Opened::Stream(stream) = self.open(head.status, &head.headers, response).await? else {
            return Err(TransportError::Malformed("not a stream".to_owned()));
        };
        let mut events = Events { stream, decoder: Decoder::new(self.message_bytes) };
        while let Some(message) = events.next().await? {
            match message {
                Message::Notification { method, .. } if method == method::TOOLS_CHANGED => {
                    signals.changed.notify_one();
                }
                Message::Request { id, method, .. } => self.answer(&id, &method).await?,
                // The server ends the stream of its own will.
                Message::Response { .. } => return Ok(()),
                Message::Notification { .. } => {}
            }
        }
        Ok(())
    }

    async fn read_stream(
        &self,
        id: u64,
        stream: Incoming,
        client: &dyn Client,
    ) -> Result<Answer, TransportError> {
        let mut events = Events { stream, decoder: Decoder::new(self.message_bytes) };
        while let Some(message) = events.next().await? {
            match message {
                Message::Notification { method, params } if method == method::PROGRESS => {
                    client.notify(Notice::Progress(params));
                }
                Message::Notification { .. } => {}
                Message::Request { id, method, .. } => self.answer(&id, &method).await?,
                response @ Message::Response { .. } => return answer_to(id, response),
            }
        }
        Err(TransportError::Broken("the stream ended without an answer".into()))
    }

    async fn answer(&self, id: &Id, method: &str) -> Result<(), TransportError> {
        self.tell(response_to(id, method).concat().into()).await
    }

    async fn send(
        &self,
        method: Method,
        body: Full<Bytes>,
        headers: &HeaderMap,
    ) -> Result<Response<Incoming>, TransportError> {
        let accept = match method {
            Method::GET => HeaderValue::from_static("text/event-stream"),
            _ => HeaderValue::from_static("application/json, text/event-stream"),
        };
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = self.url.clone();
        let sent = request.headers_mut();
        sent.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        sent.insert(header::ACCEPT, accept);
        sent.extend(self.fixed.iter().chain(headers).map(|(name, value)| (name.clone(), value.clone())));
        self.client.send(request).await.map_err(|error| match error {
            RequestError::Connect(_) => TransportError::Unreachable(error.into()),
            RequestError::Broken(_) => TransportError::Broken(error.into()),
        })
    }

    async fn open(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        response: Incoming,
    ) -> Result<Opened, TransportError> {
        let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if status.is_success() && kind.starts_with("text/event-stream") {
            return Ok(Opened::Stream(response));
        }
        // An error of JSON-RPC may come with any status of failure.
        match body::read(response, self.message_bytes).await {
            Ok(text) if status.is_success() || says_error(&text) => Ok(Opened::Json(text)),
            Ok(_) => Err(self.failure(status)),
            Err(ReadError::TooLarge(limit)) => Err(TransportError::TooLarge(limit)),
            Err(error @ ReadError::Broken(_)) => Err(TransportError::Broken(error.into())),
        }
    }

    fn failure(&self, status: StatusCode) -> TransportError {
        match status {
            StatusCode::NOT_FOUND if self.fixed.contains_key(SESSION_ID) => TransportError::SessionOver,
            status => TransportError::Status(status),
        }
    }
}

/// Whether the body of a failed request is an answer to it. An error without an id is about the
/// request as such, a lost session for one.
fn says_error(text: &Bytes) -> bool {
    matches!(Message::parse(text.clone()), Ok(Message::Response { id: Some(_), answer: Err(_) }))
}

fn answer_to(expected: u64, message: Message) -> Result<Answer, TransportError> {
    match message {
        Message::Response { id, answer } if id.is_none() || id == Some(Id::number(expected)) => Ok(answer),
        _ => Err(TransportError::Malformed("not the response to the request".to_owned())),
    }
}

/// The messages of a stream.
struct Events {
    stream: Incoming,
    decoder: Decoder,
}

impl Events {
    async fn next(&mut self) -> Result<Option<Message>, TransportError> {
        loop {
            match self.decoder.next_event().map_err(|error| TransportError::TooLarge(error.0))? {
                // The first event of a resumable stream has an id and no data.
                Some(event) if event.data.is_empty() => {}
                Some(event) => return parse(event.data).map(Some),
                None => match body::next_data(&mut self.stream).await {
                    Ok(Some(bytes)) => self.decoder.push(&bytes),
                    Ok(None) => return Ok(None),
                    Err(error) => return Err(TransportError::Broken(error.into())),
                },
            }
        }
    }
}

/// How long the delivery of a withdrawal is tried. It is the one thing that outlives its request.
const WITHDRAWAL_TIME: Duration = Duration::from_secs(5);

/// Tells a legacy server that a request is not wanted any more, when it is dropped unanswered: there,
/// unlike in the modern era, a closed connection does not say so.
struct Withdrawal {
    request: Option<(Http, u64)>,
}

impl Withdrawal {
    fn of(http: &Http, id: u64) -> Self {
        Self { request: http.fixed.contains_key(SESSION_ID).then(|| (http.clone(), id)) }
    }

    fn done(&mut self) {
        self.request = None;
    }
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        let Some((http, id)) = self.request.take() else { return };
        let message = message::notification(method::CANCELLED, &cancelled(id));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if !matches!(timeout(WITHDRAWAL_TIME, http.tell(message)).await, Ok(Ok(()))) {
                    tracing::debug!("a withdrawal was not delivered");
                }
            });
        }
    }
}

/// The parameters of `notifications/cancelled`.
pub(super) fn cancelled(id: u64) -> Object {
    Object::new().with("requestId", Id::number(id).to_json())
}
