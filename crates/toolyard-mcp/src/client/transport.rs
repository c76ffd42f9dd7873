//! How messages get to a server: the contract that all transports keep.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use tokio::sync::Notify;
use tokio::time::Instant;
use toolyard_core::{Client, Json, Object, ToolError};
use toolyard_net::auth::Unreadable;

use super::exchange::Answerer;
use super::followed::Followed;
use super::http::Http;
use super::session;
use super::sse::Sse;
use super::stale::{Lists, Stale};
use super::stdio::Stdio;
use crate::wire::{Id, Message, RpcError, meta, method};

/// Why a request was not answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum TransportError {
    #[error("the server cannot be reached")]
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
    /// Nothing of an answer had come: whether the request was read is not known.
    #[error("the connection broke before an answer came")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
    /// The answer had begun.
    #[error("the connection broke in the middle of the answer")]
    Interrupted(#[source] Box<dyn Error + Send + Sync>),
    /// The request was refused for want of a session.
    #[error("the server has ended the session")]
    SessionOver,
    /// The request was at work: what became of it nobody will say.
    #[error("the server has ended the session in the middle of the answer")]
    SessionLost,
    /// The request was not sent.
    #[error(transparent)]
    Credentials(Unreadable),
    #[error("the server answered with HTTP status {0}")]
    Status(StatusCode),
    #[error("the server's answer is no MCP message: {0}")]
    Malformed(String),
    #[error("the server's answer is larger than {0} bytes")]
    TooLarge(usize),
    /// Whoever had it answered knows why.
    #[error(transparent)]
    Exchange(#[from] ToolError),
}

/// What the server said to a request.
pub(super) type Answer = Result<Json, RpcError>;

/// One request, written.
pub(super) struct Outgoing {
    pub(super) id: u64,
    pub(super) message: Bytes,
    /// What HTTP carries beside the message.
    pub(super) headers: HeaderMap,
    /// When nobody waits for the answer any more, where that is known.
    pub(super) deadline: Option<Instant>,
}

/// What a connection has to tell its keeper.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// The lists that may have changed.
    pub(super) stale: Stale,
    /// Who wants to know of changes of resources.
    pub(super) followed: Arc<Followed>,
    /// Whether the server is of the modern era.
    pub(super) is_modern: AtomicBool,
    /// The connection is of no use any more.
    pub(super) lost: Notify,
    /// The stream of what belongs to no request is open, or it is known that there is none.
    pub(super) listens: Arc<Notify>,
    /// How many messages have come, where they come on a connection of their own: such a server is not silent.
    pub(super) heard: AtomicU64,
    /// How many of these were no answers: what it asks, and what it has to say.
    pub(super) spoken: AtomicU64,
}

impl Signals {
    /// Takes a notification that is about the server itself.
    pub(super) fn noticed(&self, method: &str, params: &Object) {
        self.stale.note(Lists::changed_by(method));
        match method {
            method::RESOURCE_UPDATED => self.followed.updated(&without_subscription(params)),
            method::ACKNOWLEDGED => self.acknowledged(params),
            _ => {}
        }
    }

    /// A modern server says first of what it will tell.
    fn acknowledged(&self, params: &Object) {
        let granted = params.get("notifications").and_then(|granted| granted.to_object().ok());
        let uris = granted.and_then(|granted| granted.get("resourceSubscriptions")?.to_items().ok());
        for uri in uris.iter().flatten().filter_map(Json::to_str) {
            self.followed.arranged(&uri);
        }
    }
}

/// The ways to a server.
pub(super) enum Transport {
    Http(Http),
    Sse(Sse),
    Stdio(Stdio),
    Exchange(Answerer),
}

impl Transport {
    /// Sends a request and waits for its answer; what the server says meanwhile goes to `client`.
    /// Dropping the future withdraws the request.
    pub(super) async fn request(
        &self,
        request: Outgoing,
        client: &Arc<dyn Client>,
    ) -> Result<Answer, TransportError> {
        let answer = match self {
            Self::Http(http) => http.request(request, client).await,
            Self::Sse(sse) => sse.request(request, client).await,
            Self::Stdio(stdio) => stdio.request(request, client).await,
            Self::Exchange(answerer) => answerer.request(request).await,
        }?;
        match &answer {
            Err(error) if self.in_session() && session::is_over(error) => Err(TransportError::SessionOver),
            _ => Ok(answer),
        }
    }

    /// Whether there is a session that the server may forget.
    fn in_session(&self) -> bool {
        match self {
            Self::Http(http) => http.in_session(),
            Self::Sse(_) => true,
            Self::Stdio(_) | Self::Exchange(_) => false,
        }
    }

    /// Answers what the server asks. Where that is not delivered, the server is the one to mind.
    pub(super) async fn answer(&self, response: Vec<Bytes>) {
        match self {
            // Servers may say what they make of it, on the stream of the call, before they confirm that it came.
            Self::Http(http) => http.post(response.concat().into()),
            Self::Sse(sse) => sse.answer(response).await,
            Self::Stdio(stdio) => drop(stdio.tell(response).await),
            // It takes nothing that is no request.
            Self::Exchange(_) => {}
        }
    }

    /// The same, by who cannot wait.
    pub(super) fn post(&self, response: Vec<Bytes>) {
        match self {
            Self::Http(http) => http.post(response.concat().into()),
            Self::Sse(sse) => sse.post(response),
            Self::Stdio(stdio) => stdio.post(response),
            Self::Exchange(_) => {}
        }
    }
}

/// What a server says of a resource, without the subscription for which it says so: that is between it and us.
fn without_subscription(params: &Object) -> Object {
    let mut said = params.clone();
    let meta = said.get("_meta").and_then(|meta| meta.to_object().ok());
    let Some(mut meta) = meta.filter(|meta| meta.get(meta::SUBSCRIPTION_ID).is_some()) else { return said };
    meta.remove(meta::SUBSCRIPTION_ID);
    match meta.is_empty() {
        true => drop(said.remove("_meta")),
        false => said.set("_meta", meta.to_json()),
    }
    said
}

/// Reads a message of a server.
pub(super) fn parse(text: Bytes) -> Result<Message, TransportError> {
    Message::parse(text).map_err(|bad| TransportError::Malformed(bad.error.body().as_text().to_owned()))
}

/// The request that progress is about: its id is the token.
pub(super) fn request_of(params: &Object) -> Option<u64> {
    params.get(meta::PROGRESS_TOKEN).and_then(Id::parse)?.to_number()
}

/// The parameters of `notifications/cancelled`.
pub(super) fn cancelled(id: u64) -> Object {
    Object::new().with("requestId", Id::number(id).to_json())
}
