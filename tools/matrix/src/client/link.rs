//! The connection of a client: one interface for all transports, with one inbox for what is received.

use anyhow::Context;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::http::HttpLink;
use super::sse::SseLink;
use super::stdio::StdioLink;
use super::{ClientKind, GatewayAccess, MatrixTransport, McpRevision};

/// An item of the inbox.
pub(super) struct InboxMessage {
    pub(super) origin: MessageOrigin,
    /// A message; `None` if its stream has ended.
    pub(super) message: anyhow::Result<Option<Value>>,
}

/// The stream of a message.
#[derive(Debug, Clone, Copy)]
pub(super) enum MessageOrigin {
    /// The response to the POST of this request.
    Request(u64),
    /// The stream that all messages share.
    Shared,
}

pub(super) type LinkInbox = UnboundedSender<InboxMessage>;

pub(super) enum ClientLink {
    Http(HttpLink),
    Sse(SseLink),
    Stdio(StdioLink),
}

impl ClientLink {
    pub(super) async fn open(
        kind: ClientKind,
        access: GatewayAccess<'_>,
    ) -> anyhow::Result<(Self, UnboundedReceiver<InboxMessage>)> {
        let (inbox, messages) = unbounded_channel();
        let link = match kind.carrier {
            MatrixTransport::Http => Self::Http(HttpLink::new(access.address, kind.revision, inbox)),
            MatrixTransport::Sse => {
                Self::Sse(SseLink::open(access.address, inbox).await.context("HTTP+SSE")?)
            }
            MatrixTransport::Stdio => Self::Stdio(StdioLink::start(access, inbox).context("stdio")?),
        };
        Ok((link, messages))
    }

    /// Sets the revision of the session.
    pub(super) fn set_revision(&mut self, revision: McpRevision) {
        if let Self::Http(http) = self {
            http.set_revision(revision);
        }
    }

    /// Reads a page of the list of tools, for their calls.
    pub(super) fn learn_tools(&mut self, tools: &Value) -> anyhow::Result<()> {
        match self {
            Self::Http(http) => http.learn_tools(tools),
            Self::Sse(_) | Self::Stdio(_) => Ok(()),
        }
    }

    /// Opens the stream for server messages outside of requests, if the transport has one.
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

    /// Sends a notification or a response.
    pub(super) async fn notify(&mut self, message: &Value) -> anyhow::Result<()> {
        match self {
            Self::Http(http) => http.notify(message).await,
            Self::Sse(sse) => sse.send(message).await,
            Self::Stdio(stdio) => stdio.send(message),
        }
    }

    /// Closes the stream of the response to a request.
    pub(super) fn drop_stream(&mut self, id: u64) {
        if let Self::Http(http) = self {
            http.drop_stream(id);
        }
    }
}
