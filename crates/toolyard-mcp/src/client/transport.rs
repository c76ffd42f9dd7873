//! How messages get to a server: the contract that all transports keep.

use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use tokio::sync::Notify;
use toolyard_core::{Client, Json, Object};
use toolyard_net::auth::Unreadable;

use super::http::Http;
use super::session;
use super::sse::Sse;
use super::stdio::Stdio;
use crate::wire::{Id, Message, RpcError, message, method};

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
    #[error("the server has ended the session")]
    SessionOver,
    /// The request was not sent.
    #[error(transparent)]
    Credentials(Unreadable),
    #[error("the server answered with HTTP status {0}")]
    Status(StatusCode),
    #[error("the server's answer is no MCP message: {0}")]
    Malformed(String),
    #[error("the server's answer is larger than {0} bytes")]
    TooLarge(usize),
}

/// What the server said to a request.
pub(super) type Answer = Result<Json, RpcError>;

/// One request, written.
pub(super) struct Outgoing {
    pub(super) id: u64,
    pub(super) message: Bytes,
    /// What HTTP carries beside the message.
    pub(super) headers: HeaderMap,
}

/// What a connection has to tell its keeper.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// The list of tools may have changed.
    pub(super) changed: Notify,
    /// The connection is of no use any more.
    pub(super) lost: Notify,
}

/// The ways to a server.
pub(super) enum Transport {
    Http(Http),
    Sse(Sse),
    Stdio(Stdio),
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
            Self::Http(http) => http.request(request, &**client).await,
            Self::Sse(sse) => sse.request(request, client).await,
            Self::Stdio(stdio) => stdio.request(request, client).await,
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
            Self::Stdio(_) => false,
        }
    }
}

/// The response to what a server asks of the gateway outside of the modern rounds. No capability is
/// declared to legacy servers, so that they may only ask whether it is there.
pub(super) fn response_to(id: &Id, method: &str) -> Vec<Bytes> {
    let answer = match method {
        method::PING => Ok(vec![Bytes::from_static(b"{}")]),
        _ => Err(RpcError::method_not_found(method)),
    };
    message::response(Some(id), answer)
}

/// Reads a message of a server.
pub(super) fn parse(text: Bytes) -> Result<Message, TransportError> {
    Message::parse(text).map_err(|bad| TransportError::Malformed(bad.error.body().as_text().to_owned()))
}

/// The parameters of `notifications/cancelled`.
pub(super) fn cancelled(id: u64) -> Object {
    Object::new().with("requestId", Id::number(id).to_json())
}
