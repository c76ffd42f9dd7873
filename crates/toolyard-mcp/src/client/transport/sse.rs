//! HTTP+SSE, the transport of 2024-11-05: the server sends everything on one stream, starting with the URL of messages
//! to it.

mod reference;

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Response, Uri};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolyard_core::Client;
use toolyard_net::body;
use toolyard_net::client::ResponseBody;
use toolyard_net::header_values::{EVENT_STREAM, content_is};

use super::endpoint::HttpEndpoint;
use super::events::{self, SseEventReader};
use super::inbox::{MessageInbox, PendingRequests};
use super::non_messages::SkippedMessages;
use super::streamable_http::DELIVERY_TIMEOUT;
use super::{ConnectionSignals, OutgoingRequest, TransportError, UpstreamResult, session_errors};
use crate::client::ClientOptions;
use crate::client::connection::ConnectError;
use crate::client::server_requests::ServerRequestRouter;

/// Capacity of the queue of responses and cancellations. Further messages are dropped.
const OUTBOX_CAPACITY: usize = 64;

/// Maximum number of bytes read from the response to a message, which only confirms its receipt.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// The stream of a server and its message endpoint. Dropping it closes the stream, which ends the session.
pub(in crate::client) struct SseTransport {
    message_endpoint: MessageEndpoint,
    outbox: mpsc::Sender<Vec<Bytes>>,
    pending: Arc<PendingRequests>,
    _tasks: JoinSet<()>,
}

/// The URL for messages to the server.
#[derive(Clone)]
struct MessageEndpoint {
    endpoint: HttpEndpoint,
    url: Uri,
}

impl SseTransport {
    /// Opens the stream and waits for its first event.
    ///
    /// # Errors
    /// [`ConnectError::WrongTransport`] if the response is not such a stream.
    pub(in crate::client) async fn open(
        name: &Arc<str>,
        endpoint: &HttpEndpoint,
        options: &ClientOptions,
        signals: Arc<ConnectionSignals>,
        server_requests: Arc<ServerRequestRouter>,
    ) -> Result<Self, ConnectError> {
        let url = &endpoint.route().url;
        let request = endpoint.build_request(Method::GET, url, Bytes::new()).await?;
        let response = endpoint.client().send(request).await.map_err(TransportError::from)?;
        let mut events = SseEventReader::new(
            into_stream(endpoint, response)?,
            options.max_message_bytes,
            options.budget.clone(),
            SkippedMessages::new(name, options),
        )
        .shared_by_callers();
        // A server of streamable HTTP may open a stream as well, and send nothing.
        let first = timeout(options.discover_timeout, events.next_endpoint()).await;
        let first = first.map_err(|_| no_endpoint())??;
        let url = reference::resolve(url, &first.ok_or_else(no_endpoint)?);
        let url = url.ok_or(ConnectError::InvalidEndpoint)?;
        let endpoint = MessageEndpoint { endpoint: endpoint.clone(), url };
        let (outbox, unsent) = mpsc::channel(OUTBOX_CAPACITY);
        let pending = Arc::<PendingRequests>::default();
        let inbox = MessageInbox {
            name: name.clone(),
            pending: pending.clone(),
            outbox: outbox.clone(),
            signals,
            server_requests,
            skipped: SkippedMessages::new(name, options),
            budget: options.budget.clone(),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(read_stream(events, inbox));
        tasks.spawn(send_queued(unsent, endpoint.clone()));
        Ok(Self { message_endpoint: endpoint, outbox, pending, _tasks: tasks })
    }

    pub(in crate::client) async fn request(
        &self,
        request: OutgoingRequest,
        client: &Arc<dyn Client>,
    ) -> Result<UpstreamResult, TransportError> {
        let mut answer = self.pending.register(&request, client, &self.outbox).ok_or_else(stream_ended)?;
        let result = tokio::select! {
            // Some servers send the response on the stream before they confirm the request.
            biased;
            result = answer.wait() => result,
            delivered = self.notify(request.message) => match delivered {
                Ok(()) => answer.wait().await,
                Err(error) => {
                    answer.discard();
                    return Err(error);
                }
            }
        };
        result.unwrap_or_else(|| Err(stream_ended()))
    }

    /// Sends a notification.
    pub(in crate::client) async fn notify(&self, message: Bytes) -> Result<(), TransportError> {
        self.message_endpoint.post(message).await
    }

    /// Queues a response to the server, and waits for room in the queue.
    pub(super) async fn respond(&self, message: Vec<Bytes>) {
        let _ended = self.outbox.send(message).await;
    }

    /// Queues a message, if there is room.
    pub(super) fn enqueue(&self, message: Vec<Bytes>) {
        if self.outbox.try_send(message).is_err() {
            tracing::debug!("dropped a message: the queue is full");
        }
    }

    /// True once the stream has ended, so that no response can come any more.
    pub(in crate::client) fn is_closed(&self) -> bool {
        self.pending.is_closed()
    }
}

impl MessageEndpoint {
    async fn post(&self, message: Bytes) -> Result<(), TransportError> {
        let request = self.endpoint.build_request(Method::POST, &self.url, message).await?;
        let response = self.endpoint.client().send(request).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        // Read the body, so that the connection can be reused.
        let text = body::read_start(response.into_body(), MAX_RESPONSE_BYTES).await;
        match text {
            _ if status.is_success() => Ok(()),
            Ok((text, _)) if session_errors::is_session_refusal(status, &text) => {
                Err(TransportError::SessionExpired)
            }
            Ok(_) | Err(_) => Err(self.endpoint.status_error(status, &headers)),
        }
    }
}

fn into_stream(
    endpoint: &HttpEndpoint,
    response: Response<ResponseBody>,
) -> Result<ResponseBody, ConnectError> {
    let (head, body) = response.into_parts();
    match head.status {
        status if status.is_success() && content_is(&head.headers, EVENT_STREAM) => Ok(body),
        status if status.is_success() => {
            Err(ConnectError::WrongTransport("the response is not an event stream"))
        }
        status => Err(endpoint.status_error(status, &head.headers).into()),
    }
}

fn no_endpoint() -> ConnectError {
    ConnectError::WrongTransport("the stream does not start with an endpoint event")
}

fn stream_ended() -> TransportError {
    TransportError::Broken("the server has closed its stream".into())
}

/// The task that reads the stream.
async fn read_stream(mut events: SseEventReader, inbox: MessageInbox) {
    loop {
        match events.next_event().await {
            Ok(Some(event)) if events::is_message(&event) => inbox.handle_message(event.data),
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(handler = %inbox.name, %error, "failed to read the server's stream");
                break;
            }
        }
    }
    inbox.close();
}

/// The task that sends the queued messages.
async fn send_queued(mut unsent: mpsc::Receiver<Vec<Bytes>>, message_endpoint: MessageEndpoint) {
    while let Some(message) = unsent.recv().await {
        let delivered = timeout(DELIVERY_TIMEOUT, message_endpoint.post(message.concat().into())).await;
        if !matches!(delivered, Ok(Ok(()))) {
            tracing::debug!("failed to deliver a message to the server");
        }
    }
}
