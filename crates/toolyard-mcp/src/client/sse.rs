//! HTTP+SSE, the transport of 2024-11-05: on one stream the server says everything, and first of all where it is to
//! be told things.

mod reference;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, Uri, header};
use hyper::body::Incoming;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolyard_core::Client;
use toolyard_net::body;

use super::ClientOptions;
use super::asked::Callers;
use super::connection::OpenError;
use super::endpoint::HttpEndpoint;
use super::events::{self, Events};
use super::http::TELL_TIME;
use super::inbox::{Inbox, Waiting};
use super::session;
use super::transport::{Answer, Outgoing, Signals, TransportError};

/// Answers and withdrawals that wait to be sent. More are dropped.
const OUTBOX: usize = 64;

/// How much of the response to a message is read, in bytes: it says no more than whether the message was taken.
const RESPONSE_BYTES: usize = 64 * 1024;

/// The stream of a server, and where it is told things. Dropping it closes the stream, which ends the session.
pub(super) struct Sse {
    messages: Messages,
    outbox: mpsc::Sender<Vec<Bytes>>,
    waiting: Arc<Waiting>,
    _tasks: JoinSet<()>,
}

/// Where a server is told things.
#[derive(Clone)]
struct Messages {
    endpoint: HttpEndpoint,
    url: Uri,
}

impl Sse {
    /// Opens the stream and waits for its first event.
    ///
    /// # Errors
    /// [`OpenError::NotHere`] when what answers is no such stream.
    pub(super) async fn open(
        name: &Arc<str>,
        endpoint: &HttpEndpoint,
        options: &ClientOptions,
        signals: Arc<Signals>,
        callers: Arc<Callers>,
    ) -> Result<Self, OpenError> {
        let url = &endpoint.route().url;
        let response = endpoint.send(Method::GET, url, Bytes::new(), &accepting("text/event-stream")).await?;
        let mut events = Events::new(stream(response)?, options.message_bytes);
        // A server of streamable HTTP may open a stream as well, and say nothing on it.
        let first = timeout(options.probe_time, events.event()).await;
        let first = first.map_err(|_| no_endpoint())??.filter(|event| event.kind == "endpoint");
        let url = reference::resolve(url, &first.ok_or_else(no_endpoint)?.data);
        let url = url.ok_or(OpenError::Endpoint)?;
        let messages = Messages { endpoint: endpoint.clone(), url };
        let (outbox, unsent) = mpsc::channel(OUTBOX);
        let waiting = Arc::<Waiting>::default();
        let inbox =
            Inbox { name: name.clone(), waiting: waiting.clone(), outbox: outbox.clone(), signals, callers };
        let mut tasks = JoinSet::new();
        tasks.spawn(read(events, inbox));
        tasks.spawn(send(unsent, messages.clone()));
        Ok(Self { messages, outbox, waiting, _tasks: tasks })
    }

    pub(super) async fn request(
        &self,
        request: Outgoing,
        client: &Arc<dyn Client>,
    ) -> Result<Answer, TransportError> {
        let mut answer = self.waiting.enter(request.id, client, &self.outbox).ok_or_else(ended)?;
        let answered = tokio::select! {
            // Some servers answer on the stream before they have done with the message.
            biased;
            answered = answer.wait() => answered,
            told = self.tell(request.message) => match told {
                Ok(()) => answer.wait().await,
                Err(error) => {
                    answer.forget();
                    return Err(error);
                }
            }
        };
        answered.unwrap_or_else(|| Err(ended()))
    }

    /// Sends what wants no answer.
    pub(super) async fn tell(&self, message: Bytes) -> Result<(), TransportError> {
        self.messages.send(message).await
    }

    /// Sends what wants no answer, and does not wait until it is there.
    pub(super) async fn answer(&self, message: Vec<Bytes>) {
        let _ended = self.outbox.send(message).await;
    }

    /// The same, if there is room for it.
    pub(super) fn post(&self, message: Vec<Bytes>) {
        if self.outbox.try_send(message).is_err() {
            tracing::debug!("a message is dropped: the server takes none");
        }
    }

    /// Whether the stream has ended, so that nothing will be answered any more.
    pub(super) fn is_over(&self) -> bool {
        self.waiting.is_closed()
    }
}

impl Messages {
    async fn send(&self, message: Bytes) -> Result<(), TransportError> {
        let headers = accepting("application/json, text/event-stream");
        let response = self.endpoint.send(Method::POST, &self.url, message, &headers).await?;
        let status = response.status();
        // Read, so that the connection can be used again.
        let text = body::read_start(response.into_body(), RESPONSE_BYTES).await;
        match text {
            _ if status.is_success() => Ok(()),
            Ok((text, _)) if session::is_refused(status, &text) => Err(TransportError::SessionOver),
            Ok(_) | Err(_) => Err(TransportError::Status(status)),
        }
    }
}

fn accepting(kinds: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static(kinds));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers
}

fn stream(response: Response<Incoming>) -> Result<Incoming, OpenError> {
    let (head, body) = response.into_parts();
    match head.status {
        status if status.is_success() && events::is_stream(&head.headers) => Ok(body),
        status if status.is_success() => Err(OpenError::NotHere("the answer is no stream")),
        status => Err(TransportError::Status(status).into()),
    }
}

fn no_endpoint() -> OpenError {
    OpenError::NotHere("the stream does not begin with an endpoint")
}

fn ended() -> TransportError {
    TransportError::Broken("the server has ended its stream".into())
}

/// The task that reads the stream.
async fn read(mut events: Events, inbox: Inbox) {
    loop {
        match events.event().await {
            Ok(Some(event)) if events::is_message(&event) => inbox.take(event.data),
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(handler = %inbox.name, %error, "the server's stream cannot be read on");
                break;
            }
        }
    }
    inbox.close();
}

/// The task that sends what nobody waits for.
async fn send(mut unsent: mpsc::Receiver<Vec<Bytes>>, messages: Messages) {
    while let Some(message) = unsent.recv().await {
        let told = timeout(TELL_TIME, messages.send(message.concat().into())).await;
        if !matches!(told, Ok(Ok(()))) {
            tracing::debug!("a message to a server was not delivered");
        }
    }
}
