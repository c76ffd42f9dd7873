//! Streamable HTTP, for servers of both eras.

mod progress_routes;
mod streams;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::Full;
use tokio::time::timeout;
use toolyard_core::Client;
use toolyard_net::body::{self, BodyReadError};
use toolyard_net::budget::ByteBudget;
use toolyard_net::client::ResponseBody;
use toolyard_net::header_values::{EVENT_STREAM, content_is};

use progress_routes::ProgressRoutes;

use super::endpoint::HttpEndpoint;
use super::non_messages::SkippedMessages;
use super::{
    ConnectionSignals, OutgoingRequest, TransportError, UpstreamResult, cancel_params, parse_message,
    session_errors,
};
use crate::client::ClientOptions;
use crate::client::server_requests::ServerRequestRouter;
use crate::wire::headers::{PROTOCOL_VERSION, RequestHeaders, SESSION_ID};
use crate::wire::{RequestId, RpcMessage, batch, message, method};

/// A server with streamable HTTP.
#[derive(Clone)]
pub(in crate::client) struct HttpTransport {
    endpoint: HttpEndpoint,
    max_message_bytes: usize,
    budget: ByteBudget,
    /// Headers of every request after the handshake.
    session_headers: HeaderMap,
    /// All headers that the messages have in common, so that a call copies one map.
    message_headers: HeaderMap,
    /// Signals to the keeper of the connection.
    signals: Arc<ConnectionSignals>,
    /// Requests of the server to clients.
    server_requests: Arc<ServerRequestRouter>,
    /// Clients that receive progress.
    progress_routes: ProgressRoutes,
    /// Counts text that is not a message.
    skipped: SkippedMessages,
}

/// The body of a response.
enum HttpResponseBody {
    Json(Bytes),
    Stream(ResponseBody),
}

impl HttpTransport {
    pub(in crate::client) fn new(
        name: &Arc<str>,
        endpoint: HttpEndpoint,
        options: &ClientOptions,
        signals: Arc<ConnectionSignals>,
        server_requests: Arc<ServerRequestRouter>,
    ) -> Self {
        let (max_message_bytes, budget) = (options.max_message_bytes, options.budget.clone());
        let (session_headers, progress_routes) = (HeaderMap::new(), ProgressRoutes::default());
        let message_headers = endpoint.headers(&Method::POST);
        Self {
            endpoint,
            max_message_bytes,
            budget,
            session_headers,
            message_headers,
            signals,
            server_requests,
            progress_routes,
            skipped: SkippedMessages::new(name, options),
        }
    }

    /// Sets the headers of all further requests.
    pub(in crate::client) fn with_session_headers(mut self, session_headers: HeaderMap) -> Self {
        self.message_headers.extend(session_headers.clone());
        self.session_headers = session_headers;
        self
    }

    /// Sends a request, and returns the answer with the headers of the response. Dropping the future cancels the
    /// request.
    pub(in crate::client) async fn request(
        &self,
        request: OutgoingRequest,
        client: &Arc<dyn Client>,
    ) -> Result<(UpstreamResult, HeaderMap), TransportError> {
        let (id, budget) = (request.id, request.answer_budget(&self.budget));
        let request = self.build_request(Method::POST, request.message, request.headers).await?;
        let _progress_route = self.progress_routes.register(id, client);
        let mut cancel_guard = HttpCancelGuard { http: self, id: Some(id) };
        let answer = match self.endpoint.client().send(request).await {
            Ok(response) => self.read_response(id, response, &**client, &budget).await,
            Err(error) => Err(error.into()),
        };
        // The request is done: there is nothing to cancel.
        cancel_guard.id = None;
        if self.server_requests.serves_one_client() {
            Box::pin(self.signals.stream_flush.wait()).await;
        }
        answer
    }

    /// Sends a notification or a response.
    pub(in crate::client) async fn notify(&self, message: Bytes) -> Result<(), TransportError> {
        let request = self.build_request(Method::POST, message, RequestHeaders::new()).await?;
        let response = self.endpoint.client().send(request).await?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(self.status_error(status, response.headers(), &Bytes::new())),
        }
    }

    /// Sends the response to a request of the server. A failure is only logged.
    pub(super) async fn respond(&self, response: Vec<Bytes>) {
        let delivered = timeout(DELIVERY_TIMEOUT, self.notify(response.concat().into())).await;
        if !matches!(delivered, Ok(Ok(()))) {
            tracing::debug!("failed to answer a request of the server");
        }
    }

    /// Sends a message in the background. Only such a message outlives its call.
    pub(super) fn enqueue(&self, message: Bytes) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let http = self.clone();
        runtime.spawn(async move {
            if !matches!(timeout(DELIVERY_TIMEOUT, http.notify(message)).await, Ok(Ok(()))) {
                tracing::debug!("failed to deliver a message to the server");
            }
        });
    }

    /// Ends the session, if there is one. Servers may refuse.
    pub(in crate::client) async fn end_session(&self) {
        if self.has_session()
            && let Ok(request) = self.build_request(Method::DELETE, Bytes::new(), RequestHeaders::new()).await
        {
            let _refused = self.endpoint.client().send(request).await.map(drop);
        }
    }

    /// Builds an HTTP request with the headers of the session and these.
    async fn build_request(
        &self,
        method: Method,
        body: Bytes,
        headers: RequestHeaders,
    ) -> Result<Request<Full<Bytes>>, TransportError> {
        let common = match method {
            Method::POST => &self.message_headers,
            _ => &{
                let mut common = self.endpoint.headers(&method);
                common.extend(self.session_headers.clone());
                common
            },
        };
        // Room for all, also for those of the transport: a map that grows is built again.
        let mut all = HeaderMap::with_capacity(common.len() + headers.len() + 2);
        for (name, value) in common {
            all.append(name, value.clone());
        }
        all.extend(headers);
        self.endpoint.request_with(method, &self.endpoint.route().url, all, body).await
    }

    /// Reads the response to a request until its answer.
    async fn read_response(
        &self,
        id: u64,
        response: Response<ResponseBody>,
        client: &dyn Client,
        budget: &ByteBudget,
    ) -> Result<(UpstreamResult, HeaderMap), TransportError> {
        let (head, response) = response.into_parts();
        let answer = match self.read_body(id, head.status, &head.headers, response, budget).await? {
            HttpResponseBody::Json(text) if batch::is_array(&text) => {
                self.read_batch(id, text, client).await?
            }
            HttpResponseBody::Json(text) => match_response(id, parse_message(text)?)?,
            HttpResponseBody::Stream(stream) => self.read_answer(id, stream, client, budget).await?,
        };
        Ok((answer, head.headers))
    }

    async fn read_body(
        &self,
        id: u64,
        status: StatusCode,
        headers: &HeaderMap,
        response: ResponseBody,
        budget: &ByteBudget,
    ) -> Result<HttpResponseBody, TransportError> {
        if status.is_success() && content_is(headers, EVENT_STREAM) {
            return Ok(HttpResponseBody::Stream(response));
        }
        // A JSON-RPC error may come with any error status.
        match body::read_within(response, self.max_message_bytes, budget).await {
            Ok(text) if status.is_success() || is_answer_to(id, &text) => Ok(HttpResponseBody::Json(text)),
            Ok(text) => Err(self.status_error(status, headers, &text)),
            Err(BodyReadError::TooLarge(limit)) => Err(TransportError::TooLarge(limit)),
            Err(BodyReadError::UsedUp(used_up, _)) => Err(TransportError::NoMemory(used_up)),
            Err(error @ (BodyReadError::Broken(_) | BodyReadError::Stalled)) => {
                Err(TransportError::Interrupted(error.into()))
            }
        }
    }

    /// Returns the error for a status of failure whose body does not answer the request.
    fn status_error(&self, status: StatusCode, headers: &HeaderMap, text: &Bytes) -> TransportError {
        match self.has_session() && session_errors::is_session_refusal(status, text) {
            true => TransportError::SessionExpired,
            false => self.endpoint.status_error(status, headers),
        }
    }

    /// True if an interrupted stream can be resumed, which neither the modern era nor the handshake supports.
    fn can_resume(&self) -> bool {
        self.session_headers.contains_key(PROTOCOL_VERSION)
    }

    /// True if the server has opened a session, which it may lose.
    pub(super) fn has_session(&self) -> bool {
        self.session_headers.contains_key(SESSION_ID)
    }
}

/// True if the body of a failed request answers it. A body without the id of the request is about something else, such
/// as a lost session.
fn is_answer_to(id: u64, text: &Bytes) -> bool {
    let parsed = RpcMessage::parse(text.clone());
    matches!(parsed, Ok(RpcMessage::Response { id: Some(parsed), answer: Err(_) }) if parsed == RequestId::number(id))
}

fn match_response(expected: u64, message: RpcMessage) -> Result<UpstreamResult, TransportError> {
    match message {
        RpcMessage::Response { id, answer }
            if id.as_ref().is_none_or(|id| id.to_lenient_number() == Some(expected)) =>
        {
            Ok(answer)
        }
        _ => Err(TransportError::Malformed("not a response to the request".to_owned())),
    }
}

/// Timeout of delivering a message without a response.
pub(super) const DELIVERY_TIMEOUT: Duration = Duration::from_secs(5);

/// Cancels a request when it is dropped. In the legacy era, unlike in the modern one, closing the connection does not
/// cancel the request.
struct HttpCancelGuard<'a> {
    http: &'a HttpTransport,
    /// The request; `None` once there is nothing to cancel.
    id: Option<u64>,
}

impl Drop for HttpCancelGuard<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.filter(|_| self.http.has_session()) else { return };
        self.http.enqueue(message::notification(method::CANCELLED, &cancel_params(id)));
    }
}
