//! Reads the stream of change notifications of a server over HTTP.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::client::convert::is_transient;
use crate::client::transport::events::StreamPosition;
use crate::client::transport::streamable_http::HttpTransport;
use crate::client::transport::{ConnectionSignals, OutgoingRequest, TransportError};

/// The pause before reopening a stream, and its maximum. Servers that poll (2025-11-25) end their streams on purpose
/// every few seconds.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Opens a stream of change notifications again and again, until the server turns out to have none or cannot be
/// reached. `listen` builds the request of a modern server, with a new id each time; a legacy server gets a `GET` that
/// resumes the last stream. `opened` is notified of each attempt. `missed` is called before the next one: changes
/// without an open stream were not announced, and servers need not repeat them.
pub(in crate::client) async fn follow_changes(
    name: Arc<str>,
    http: HttpTransport,
    signals: Arc<ConnectionSignals>,
    opened: Arc<Notify>,
    listen: impl Fn() -> Option<OutgoingRequest>,
    missed: impl Fn(),
) {
    let (mut pause, mut position) = (PAUSE.0, StreamPosition::default());
    loop {
        let since = Instant::now();
        match http.read_change_stream(listen(), &mut position, &signals, &opened).await {
            Ok(()) if since.elapsed() >= PAUSE.0 => pause = PAUSE.0,
            Ok(()) => pause = (pause * 2).min(PAUSE.1),
            Err(TransportError::Unreachable(_)) => {
                signals.connection_lost.notify_one();
                return;
            }
            // The server may only lack the events to resume from.
            Err(error) if error.status().is_some_and(is_permanent) && position.is_resumable() => {
                position = StreamPosition::default();
            }
            Err(error) if error.status().is_some_and(is_permanent) => {
                tracing::debug!(handler = %name, %error, "the server has no stream of change notifications");
                return;
            }
            Err(error) => {
                tracing::debug!(handler = %name, %error, "the stream of change notifications failed");
                pause = (pause * 2).min(PAUSE.1);
            }
        }
        sleep(pause.max(position.retry_delay())).await;
        missed();
    }
}

/// True if the server will not offer a stream later either. An expired session is reported in the same way, which the
/// next call detects. A conflict is temporary: the server has not noticed the end of the last stream.
fn is_permanent(status: StatusCode) -> bool {
    status.is_client_error() && status != StatusCode::CONFLICT && !is_transient(status)
}
