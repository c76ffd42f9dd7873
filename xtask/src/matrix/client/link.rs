//! What carries messages, one shape for all carriers: sent here, heard in one inbox.

use anyhow::Context;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::http::Http;
use super::sse::Sse;
use super::stdio::Stdio;
use super::{Carrier, Door, Kind, Revision};

/// What has come.
pub(super) struct Heard {
    pub(super) origin: Origin,
    /// A message; none where its stream has ended.
    pub(super) message: anyhow::Result<Option<Value>>,
}

/// The stream that something came on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    /// The response to a POST of this request.
    Request(u64),
    /// Whatever all messages share.
    Shared,
}

pub(super) type Inbox = UnboundedSender<Heard>;

pub(super) enum Link {
    Http(Http),
    Sse(Sse),
    Stdio(Stdio),
}

impl Link {
    pub(super) async fn open(kind: Kind, door: Door<'_>) -> anyhow::Result<(Self, UnboundedReceiver<Heard>)> {
        let (inbox, heard) = unbounded_channel();
        let link = match kind.carrier {
            Carrier::Http => Self::Http(Http::new(door.address, kind.revision, inbox)),
            Carrier::Sse => Self::Sse(Sse::open(door.address, inbox).await.context("HTTP+SSE")?),
            Carrier::Stdio => Self::Stdio(Stdio::start(door, inbox).context("stdio")?),
        };
        Ok((link, heard))
    }

    /// The session has this revision from now on.
    pub(super) fn agree(&mut self, revision: Revision) {
        if let Self::Http(http) = self {
            http.agree(revision);
        }
    }

    /// Tools are called as this page of their list wants it.
    pub(super) fn learn(&mut self, tools: &Value) -> anyhow::Result<()> {
        match self {
            Self::Http(http) => http.learn(tools),
            Self::Sse(_) | Self::Stdio(_) => Ok(()),
        }
    }

    /// Opens the stream on which a server says what belongs to no request, where that is another one.
    pub(super) async fn listen(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Http(http) => http.listen().await,
            Self::Sse(_) | Self::Stdio(_) => Ok(()),
        }
    }

    pub(super) async fn send_request(
        &mut self,
        id: u64,
        method: &str,
        message: &Value,
    ) -> anyhow::Result<()> {
        match self {
            Self::Http(http) => http.request(id, method, message).await,
            Self::Sse(sse) => sse.send(message).await,
            Self::Stdio(stdio) => stdio.send(message),
        }
    }

    /// Sends what is not answered.
    pub(super) async fn tell(&mut self, message: &Value) -> anyhow::Result<()> {
        match self {
            Self::Http(http) => http.tell(message).await,
            Self::Sse(sse) => sse.send(message).await,
            Self::Stdio(stdio) => stdio.send(message),
        }
    }

    /// Hangs up on the answer to a request.
    pub(super) fn drop_stream(&mut self, id: u64) {
        if let Self::Http(http) = self {
            http.drop_stream(id);
        }
    }
}
