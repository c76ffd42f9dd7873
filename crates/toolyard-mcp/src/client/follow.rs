//! Follows the changes of a server over HTTP.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::http::Http;
use super::transport::{Outgoing, Signals, TransportError};

/// The pause before a stream that ended is opened again, and the longest. Servers that poll
/// (2025-11-25) end their streams on purpose, every few seconds.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Opens the stream of changes again and again until the server says that it has none, or cannot be
/// reached.
pub(super) async fn follow(name: Arc<str>, http: Http, listen: Option<Outgoing>, signals: Arc<Signals>) {
    let mut pause = PAUSE.0;
    loop {
        match http.follow(listen.as_ref(), &signals).await {
            Ok(()) => pause = PAUSE.0,
            Err(TransportError::Unreachable(_) | TransportError::SessionOver) => {
                signals.lost.notify_one();
                return;
            }
            Err(TransportError::Broken(_)) => pause = (pause * 2).min(PAUSE.1),
            Err(error) => {
                tracing::debug!(handler = %name, %error, "the server has no stream of changes");
                return;
            }
        }
        sleep(pause).await;
        // Whatever changed while there was no stream was not announced.
        signals.changed.notify_one();
    }
}
