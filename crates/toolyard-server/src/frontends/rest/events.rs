//! `/events`: server-sent events of what changes, so that clients need not poll.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{FutureExt, Stream, stream};
use http::header;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::query::NoQuery;
use super::{Rest, RestResult};
use crate::fleet::HandlerStatus;
use crate::keys::AuthenticatedCaller;
use crate::routes::GatewayStage;

/// Interval of the comments that keep an idle stream open.
const HEARTBEAT: Duration = Duration::from_secs(20);

/// Minimum time between two events about handlers: a fleet that starts changes often.
const HANDLERS_INTERVAL: Duration = Duration::from_secs(1);

/// The sources of a stream, and its state.
struct EventSources {
    statuses: watch::Receiver<Arc<[HandlerStatus]>>,
    stage: watch::Receiver<GatewayStage>,
    /// New records of the audit trail, for administrators.
    records: Option<broadcast::Receiver<Arc<str>>>,
    /// Earliest time of the next event about handlers.
    next_handlers: Instant,
}

/// `GET /events`: an event `handlers` when the status of handlers has changed, and for administrators `record` for each
/// record of the audit trail.
pub(super) async fn stream(State(rest): Rest, caller: AuthenticatedCaller, _: NoQuery) -> RestResult {
    let mut statuses = rest.reporter.statuses.clone();
    // A client that reads the handlers after the first event has missed nothing.
    statuses.mark_changed();
    let records = caller.access.admin.then(|| rest.audit.subscribe());
    let next_handlers = Instant::now();
    let sources = EventSources { statuses, stage: rest.stage.clone(), records, next_handlers };
    Ok(response(stream::unfold(sources, next)))
}

fn response(events: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static) -> Response {
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    (headers, Body::from_stream(events)).into_response()
}

/// Returns the next event. `None`: the gateway stops.
async fn next(mut sources: EventSources) -> Option<(Result<Bytes, Infallible>, EventSources)> {
    let heartbeat = Instant::now() + HEARTBEAT;
    let EventSources { statuses, stage, records, next_handlers } = &mut sources;
    let changed_handlers = async {
        sleep_until(*next_handlers).await;
        statuses.changed().await
    };
    let record = match records {
        Some(records) => records.recv().boxed(),
        None => std::future::pending().boxed(),
    };
    let text = tokio::select! {
        _stopping = stage.wait_for(|stage| *stage == GatewayStage::Draining) => return None,
        changed = changed_handlers => {
            changed.ok()?;
            *next_handlers = Instant::now() + HANDLERS_INTERVAL;
            event("handlers", "{}")
        }
        record = record => match record {
            Ok(record) => event("record", &record),
            Err(RecvError::Lagged(missed)) => event("missed", &format!("{{\"records\":{missed}}}")),
            Err(RecvError::Closed) => return None,
        },
        () = sleep_until(heartbeat) => Bytes::from_static(b":\n\n"),
    };
    Some((Ok(text), sources))
}

/// Formats an event. The data is one line: JSON as the gateway writes it.
fn event(kind: &str, data: &str) -> Bytes {
    format!("event: {kind}\ndata: {data}\n\n").into()
}
