//! The state of an open connection, shared without a lock by its thread and the table of all connections.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use futures_util::task::AtomicWaker;
use http_body::{Frame, SizeHint};

/// A request to end a connection, from outside of its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum ConnectionSignal {
    /// The connection goes on.
    None,
    /// The connection ends after its open request, or at once without one.
    Finish,
    /// The connection ends at once.
    Cut,
}

/// An open connection.
#[derive(Debug, Default)]
pub(super) struct OpenConnection {
    /// Number of starts and ends of requests; if it is unchanged, the connection was silent.
    changes: AtomicU64,
    /// Number of open requests.
    open_requests: AtomicU32,
    /// `true` while the client does not read the response.
    is_blocked: AtomicBool,
    is_authenticated: AtomicBool,
    is_closed: AtomicBool,
    signal: AtomicU8,
    waker: AtomicWaker,
}

impl OpenConnection {
    /// `true` if closing the connection would lose a response.
    pub(super) fn is_busy(&self) -> bool {
        self.open_requests.load(Ordering::Acquire) > 0 || self.is_blocked.load(Ordering::Relaxed)
    }

    pub(super) fn is_authenticated(&self) -> bool {
        self.is_authenticated.load(Ordering::Relaxed)
    }

    /// `true` if the connection is closed, or was told to end at once.
    pub(super) fn is_ending(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
            || self.signal.load(Ordering::Relaxed) == ConnectionSignal::Cut as u8
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Records whether the client reads the response.
    pub(super) fn set_blocked(&self, is_blocked: bool) {
        self.is_blocked.store(is_blocked, Ordering::Relaxed);
    }

    pub(super) fn set_closed(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// Sends a signal, unless a stronger one was sent before.
    pub(super) fn send(&self, signal: ConnectionSignal) {
        self.signal.fetch_max(signal as u8, Ordering::Release);
        self.waker.wake();
    }

    /// Returns the latest signal, and wakes the task of `context` for the next one.
    pub(super) fn poll_signal(&self, context: &Context<'_>) -> ConnectionSignal {
        self.waker.register(context.waker());
        match self.signal.load(Ordering::Acquire) {
            0 => ConnectionSignal::None,
            1 => ConnectionSignal::Finish,
            _ => ConnectionSignal::Cut,
        }
    }
}

/// A request that is open on a connection until this is dropped.
#[derive(Debug)]
pub(super) struct OpenRequest(Arc<OpenConnection>);

impl OpenRequest {
    pub(super) fn begin(connection: &Arc<OpenConnection>) -> Self {
        connection.changes.fetch_add(1, Ordering::Relaxed);
        connection.open_requests.fetch_add(1, Ordering::Release);
        Self(connection.clone())
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.changes.fetch_add(1, Ordering::Relaxed);
        self.0.open_requests.fetch_sub(1, Ordering::Release);
    }
}

/// The connection of a request, in the extensions of requests on connections that are not authenticated.
#[derive(Debug, Clone)]
pub struct ClientConnection(pub(super) Arc<OpenConnection>);

impl ClientConnection {
    /// Marks the connection as authenticated, as it had an admitted request. It is then evicted only if no connection
    /// without an admitted request is left.
    pub fn set_authenticated(&self) {
        self.0.is_authenticated.store(true, Ordering::Relaxed);
    }
}

/// The body of a response; its request is open until the body is dropped.
pub(super) struct ResponseBody {
    pub(super) body: Body,
    pub(super) _request: OpenRequest,
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
