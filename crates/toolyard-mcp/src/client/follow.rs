//! Follows the changes of a server over HTTP.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::convert::is_transient;
use super::events::Position;
use super::http::Http;
use super::transport::{Outgoing, Signals, TransportError};

/// The pause before a stream that ended is opened again, and the longest. Servers that poll
/// (2025-11-25) end their streams on purpose, every few seconds.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Opens a stream of changes again and again, until the server says that it has none or cannot be
/// reached. `listen` writes the request for it, with an id of its own each time; a legacy server is asked
/// without one, for the rest of what it said the last time. `opened` hears of each opening, and `missed` before the next
/// one: whatever changed while there was no stream was not announced, and no server has to make up for that.
pub(super) async fn follow(
    name: Arc<str>,
    http: Http,
    signals: Arc<Signals>,
    opened: Arc<Notify>,
    listen: impl Fn() -> Option<Outgoing>,
    missed: impl Fn(),
) {
    let (mut pause, mut position) = (PAUSE.0, Position::default());
    loop {
        let since = Instant::now();
        match http.follow(listen(), &mut position, &signals, &opened).await {
            Ok(()) if since.elapsed() >= PAUSE.0 => pause = PAUSE.0,
            Ok(()) => pause = (pause * 2).min(PAUSE.1),
            Err(TransportError::Unreachable(_)) => {
                signals.lost.notify_one();
                return;
            }
            // It may be the rest that it has not.
            Err(TransportError::Status(status)) if has_none(status) && position.is_known() => {
                position = Position::default();
            }
            Err(TransportError::Status(status)) if has_none(status) => {
                tracing::debug!(handler = %name, %status, "the server has no stream of changes");
                return;
            }
            Err(error) => {
                tracing::debug!(handler = %name, %error, "the stream of changes broke");
                pause = (pause * 2).min(PAUSE.1);
            }
        }
        sleep(pause.max(position.wait())).await;
        missed();
    }
}

/// Whether a server that answers like this will not have a stream a little later either. A session that
/// is over answers so as well, which the next call finds out. A conflict is one with the last stream, which the server
/// has not noticed the end of.
fn has_none(status: StatusCode) -> bool {
    status.is_client_error() && status != StatusCode::CONFLICT && !is_transient(status)
}
