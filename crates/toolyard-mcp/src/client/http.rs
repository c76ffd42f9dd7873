//! Streamable HTTP, as a client of either era.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::time::timeout;
use toolyard_core::{Client, Notice};
use toolyard_net::body::{self, ReadError};
use toolyard_net::client::{Client as HttpClient, RequestError};
use toolyard_net::sse::Decoder;

use super::transport::{Answer, Outgoing, Signals, TransportError, cancelled, parse, response_to};
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
        let mut withdrawal = Withdrawal { http: self, id: Some(request.id) };
        let answer = self.attempt(request, client).await;
        // It came to an end of its own.
        withdrawal.id = None;
        answer
    }

    async fn attempt(
        &self,
        request: Outgoing,
        client: &dyn Client,
    ) -> Result<(Answer, HeaderMap), TransportError> {
        let id = request.id;
        let response = self.send(Method::POST, Full::new(request.message), &request.headers).await?;
        let (head, response) = response.into_parts();
        let answer = match self.open(id, head.status, &head.headers, response).await? {
            Opened::Json(text) => answer_to(id, parse(text)?)?,
            Opened::Stream(stream) => self.read_stream(id, stream, client).await?,
        };
        Ok((answer, head.headers))
    }

    /// Sends what wants no answer: a notification, or a response.
    pub(super) async fn tell(&self, message: Bytes) -> Result<(), TransportError> {
        let response = self.send(Method::POST, Full::new(message), &HeaderMap::new()).await?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(self.failure(status, &Bytes::new())),
        }
    }

    /// Follows the stream of what belongs to no request: a `GET` of the legacy era, or a
    /// `subscriptions/listen` of the modern one. Returns when it has ended.
    pub(super) async fn follow(
        &self,
        listen: Option<Outgoing>,
        signals: &Signals,
    ) -> Result<(), TransportError> {
        let response = match listen {
            None => self.send(Method::GET, Full::default(), &HeaderMap::new()).await?,
            Some(listen) => {
                self.send(Method::POST, Full::new(listen.message.clone()), &listen.headers).await?
            }
        };
        let (head, response) = response.into_parts();
        if !head.status.is_success() {
            return Err(TransportError::Status(head.status));
        }
        let Opened::Stream(stream) = self.open(0, head.status, &head.headers, response).await? else {
            return Err(TransportError::Malformed("not a stream".to_owned()));
        };
        let mut events = Events { stream, decoder: Decoder::new(self.message_bytes) };
        while let Some(message) = events.next().await? {
            match message {
                Message::Notification { method, .. } if method == method::TOOLS_CHANGED => {
                    signals.changed.notify_one();
                }
                Message::Request { id, method, .. } => self.answer(&id, &method).await,
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
                Message::Request { id, method, .. } => self.answer(&id, &method).await,
                response @ Message::Response { .. } => return answer_to(id, response),
            }
        }
        Err(TransportError::Broken("the stream ended without an answer".into()))
    }

    /// Answers what the server asks. Where that is not delivered, the server is the one to mind.
    async fn answer(&self, id: &Id, method: &str) {
        let told = timeout(TELL_TIME, self.tell(response_to(id, method).concat().into())).await;
        if !matches!(told, Ok(Ok(()))) {
            tracing::debug!("a server's request could not be answered");
        }
    }

    /// Ends the session, where there is one. A server need not allow it.
    pub(super) async fn end_session(&self) {
        if self.fixed.contains_key(SESSION_ID) {
            let _refused = self.send(Method::DELETE, Full::default(), &HeaderMap::new()).await.map(drop);
        }
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
            RequestError::Connect(_) | RequestError::NotPublic => TransportError::Unreachable(error.into()),
            RequestError::Broken(_) => TransportError::Broken(error.into()),
        })
    }

    async fn open(
        &self,
        id: u64,
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
            Ok(text) if status.is_success() || answers(id, &text) => Ok(Opened::Json(text)),
            Ok(text) => Err(self.failure(status, &text)),
            Err(ReadError::TooLarge(limit)) => Err(TransportError::TooLarge(limit)),
            Err(error @ ReadError::Broken(_)) => Err(TransportError::Broken(error.into())),
        }
    }

    /// What a failure means that is no answer to the request. The specification has 404 for a session that
    /// is over; some servers say 400, and what they mean only in words.
    fn failure(&self, status: StatusCode, text: &Bytes) -> TransportError {
        let in_session = self.fixed.contains_key(SESSION_ID);
        let of_session = || memchr::memmem::find(&text.to_ascii_lowercase(), b"session").is_some();
        match status {
            StatusCode::NOT_FOUND if in_session => TransportError::SessionOver,
            StatusCode::BAD_REQUEST if in_session && of_session() => TransportError::SessionOver,
            status => TransportError::Status(status),
        }
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
                // The first event of a resumable stream has an id and no data; other types are not ours.
                Some(event) if event.data.is_empty() || !matches!(&*event.kind, "" | "message") => {}
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

/// How long the delivery of what wants no answer is tried. For a withdrawal it is the one thing that
/// outlives its request.
const TELL_TIME: Duration = Duration::from_secs(5);

/// Tells a legacy server that a request is not wanted any more, when it is dropped: there, unlike in the
/// modern era, a closed connection does not say so.
struct Withdrawal<'a> {
    http: &'a Http,
    /// The request, for as long as there is something to withdraw.
    id: Option<u64>,
}

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.filter(|_| self.http.fixed.contains_key(SESSION_ID)) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (http, message) = (self.http.clone(), message::notification(method::CANCELLED, &cancelled(id)));
        runtime.spawn(async move {
            if !matches!(timeout(TELL_TIME, http.tell(message)).await, Ok(Ok(()))) {
                tracing::debug!("a withdrawal was not delivered");
            }
        });
    }
}
