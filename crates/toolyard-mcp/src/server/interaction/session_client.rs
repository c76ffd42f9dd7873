//! Requests to a legacy client that belong to none of its calls: on the stream of its session.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::timeout;
use toolyard_core::{ClientSession, InputRequest, InputRequestError, Json};

use crate::server::session::legacy_client::LegacyClient;

/// A legacy client that is asked in its session. It does not keep the session open.
#[derive(Debug)]
pub(super) struct LegacySessionClient {
    peer: Arc<LegacyClient>,
    /// Maximum time of an unanswered question.
    ask_timeout: Duration,
}

impl LegacySessionClient {
    pub(super) const fn new(peer: Arc<LegacyClient>, ask_timeout: Duration) -> Self {
        Self { peer, ask_timeout }
    }

    async fn ask_in_time(&self, ask: InputRequest) -> Result<Json, InputRequestError> {
        if !ask.is_for(Some(self.peer.capabilities())) {
            return Err(InputRequestError::Unsupported(ask.required()));
        }
        let cancel = |notification| self.peer.notify(notification);
        let streams = self.peer.session_streams();
        let answer = self.peer.outbound_requests.request_in_session(ask, streams, &cancel);
        timeout(self.ask_timeout, answer).await.unwrap_or(Err(InputRequestError::TooLate))
    }
}

impl ClientSession for LegacySessionClient {
    fn ask(&self, ask: InputRequest) -> BoxFuture<'_, Result<Json, InputRequestError>> {
        self.ask_in_time(ask).boxed()
    }

    fn ended(&self) -> BoxFuture<'_, ()> {
        self.peer.outbound_requests.closed().boxed()
    }
}

#[cfg(test)]
mod tests;
