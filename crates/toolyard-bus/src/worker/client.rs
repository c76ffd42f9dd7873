//! The client of a running call: sends progress and log messages to the topic of its reply, if the request asks for them.

use std::fmt;

use tokio::sync::mpsc;
use toolyard_core::{Client, ClientNotification, Json, LogLevel, NotificationBody};

use super::WorkerShared;
use crate::bus::BusError;
use crate::envelope::Envelope;
use crate::headers;
use crate::message::{ToolLog, ToolProgress};
use crate::reply::reply_to;
use crate::topic::Topic;

/// Number of notices that wait to be sent. Further ones are dropped.
const WAITING: usize = 64;

/// The sender of a request, as backends see it.
pub(super) struct BusClient {
    has_progress: bool,
    log_level: Option<LogLevel>,
    notices: mpsc::Sender<ClientNotification>,
}

impl BusClient {
    /// Returns the client of a request, and its notices.
    pub(super) fn of(envelope: &Envelope) -> (Self, mpsc::Receiver<ClientNotification>) {
        let (notices, receiver) = mpsc::channel(WAITING);
        let header = |name: &str| envelope.headers.get(name).map(String::as_str);
        let has_progress = header(headers::PROGRESS).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let log_level = header(headers::LOG_LEVEL).and_then(LogLevel::parse);
        // Without a topic of its own the notices would reach everyone.
        let is_private = envelope.reply_to.is_some();
        let client = Self {
            has_progress: has_progress && is_private,
            log_level: log_level.filter(|_| is_private),
            notices,
        };
        (client, receiver)
    }
}

impl Client for BusClient {
    fn capabilities(&self) -> Option<&Json> {
        None
    }

    fn listens(&self) -> bool {
        self.has_progress
    }

    fn log_level(&self) -> Option<LogLevel> {
        self.log_level
    }

    fn notify(&self, notice: ClientNotification) {
        let is_wanted = match &notice {
            ClientNotification::Progress(_) => self.has_progress,
            ClientNotification::Log(_) => self.log_level.is_some(),
            ClientNotification::Other { .. } => false,
        };
        if is_wanted {
            // A broker that is too slow costs notices, and never the outcome.
            drop(self.notices.try_send(notice));
        }
    }
}

impl fmt::Debug for BusClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BusClient").field("has_progress", &self.has_progress).finish_non_exhaustive()
    }
}

/// Sends the notices of a call until its client is dropped.
pub(super) async fn forward(
    shared: &WorkerShared,
    request: &Envelope,
    call_id: &str,
    topic: &Topic,
    mut notices: mpsc::Receiver<ClientNotification>,
) {
    while let Some(notice) = notices.recv().await {
        if let Err(error) = send(shared, request, call_id, topic, notice).await {
            tracing::debug!(error = &error as &dyn std::error::Error, "lost a notice of a call");
        }
    }
}

async fn send(
    shared: &WorkerShared,
    request: &Envelope,
    call_id: &str,
    topic: &Topic,
    notice: ClientNotification,
) -> Result<(), BusError> {
    let (source, tool_call_id) = (&shared.settings.source, call_id.to_owned());
    let params = |body: NotificationBody| {
        let mut params = body.params;
        // The token is that of the gateway; the correlation id takes its place.
        params.remove("progressToken");
        params.to_json().as_text().to_owned()
    };
    let envelope = match notice {
        ClientNotification::Progress(body) => {
            reply_to(request, &ToolProgress { tool_call_id, params: params(body) }, source)?
        }
        ClientNotification::Log(body) => {
            reply_to(request, &ToolLog { tool_call_id, params: params(body) }, source)?
        }
        ClientNotification::Other { .. } => return Ok(()),
    };
    shared.bus.broadcast(topic, envelope).await
}
