//! Connections that speak HTTP/2, with many requests at a time.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::BoxError;
use axum::body::{Body, Bytes};
use axum::response::Response;
use http::{HeaderValue, Request, StatusCode, Version, header};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep, sleep};

use super::connection::{ConnectionSignal, OpenConnection, OpenRequest};
use super::timed::TimedWrites;
use super::{
    ClientAddress, ClientConnection, ConnectionService, HttpService, LINGER_TIME, ListenerLimits,
    overloaded_response,
};

/// Maximum number of open requests of a connection.
const MAX_STREAMS: u32 = 1024;

/// Maximum number of bytes that a client may send ahead of their reader: of a request, and of all on a connection.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 256 * 1024;

/// Maximum number of bytes of a response that are handed to the connection at once.
const PIECE_BYTES: usize = 64 * 1024;

/// Silence after which a client is asked for a sign of life, and maximum time of its answer.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIME: Duration = Duration::from_secs(20);

/// Serves a connection to its end.
pub(super) async fn serve_connection(
    service: ConnectionService,
    unguarded: &'static [&'static str],
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    client: ClientAddress,
    connection: Arc<OpenConnection>,
) -> Result<(), BoxError> {
    let limits = service.limits;
    let builder = builder(limits);
    let stream = TimedWrites::new(stream, limits.write_time, connection.clone());
    let requests = RequestService {
        service: service.service,
        health_paths: service.health_only.then_some(limits.health_paths),
        unguarded,
        client,
        connection: connection.clone(),
    };
    let answer = service_fn(move |request| requests.clone().answer(request));
    let mut conversation = pin!(builder.serve_connection(TokioIo::new(stream), answer));
    let mut silence = pin!(sleep(limits.head_time));
    let (mut changes, mut is_last) = (connection.changes(), false);
    poll_fn(|context| {
        let mut ends = match connection.poll_signal(context) {
            ConnectionSignal::Cut => return Poll::Ready(Ok(())),
            ConnectionSignal::Finish => !is_last,
            ConnectionSignal::None => false,
        };
        while silence.as_mut().poll(context).is_ready() {
            let is_silent = !connection.is_busy() && connection.changes() == changes;
            if is_last && is_silent {
                // The client had its time to read the last response, and to end the connection.
                return Poll::Ready(Ok(()));
            }
            ends |= is_silent;
            changes = connection.changes();
            let next = if is_last { LINGER_TIME } else { limits.head_time };
            silence.as_mut().reset(Instant::now() + next);
        }
        if ends {
            is_last = true;
            conversation.as_mut().graceful_shutdown();
            silence.as_mut().reset(Instant::now() + LINGER_TIME);
            // Registers the task for the new end of the silence.
            context.waker().wake_by_ref();
        }
        conversation.as_mut().poll(context)
    })
    .await
}

fn builder(limits: ListenerLimits) -> auto::Builder<StreamExecutor> {
    let mut builder = auto::Builder::new(StreamExecutor { time: limits.write_time });
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_buf_size(limits.head_bytes.max(8 * 1024))
        .keep_alive(false);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(PIECE_BYTES)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIME);
    builder
}

/// The service of the requests of a connection.
#[derive(Clone)]
struct RequestService {
    service: Arc<dyn HttpService>,
    /// The only paths, if the connection is beyond the limit of connections.
    health_paths: Option<&'static [&'static str]>,
    unguarded: &'static [&'static str],
    client: ClientAddress,
    connection: Arc<OpenConnection>,
}

impl RequestService {
    async fn answer(self, mut request: Request<Incoming>) -> Result<Response<PiecewiseBody>, Infallible> {
        let Self { service, health_paths, unguarded, client, connection } = self;
        let path = request.uri().path();
        let keeps_open = !unguarded.iter().any(|beginning| path.starts_with(beginning));
        // Any request is activity.
        let open = Some(OpenRequest::begin(&connection)).filter(|_| keeps_open);
        let response = if request.version() != Version::HTTP_2 {
            version_refusal()
        } else if health_paths.is_some_and(|paths| !paths.contains(&path)) {
            overloaded_response()
        } else {
            request.extensions_mut().insert(client);
            if !connection.is_authenticated() {
                request.extensions_mut().insert(ClientConnection(connection.clone()));
            }
            service.answer(request.map(Body::new)).await
        };
        if health_paths.is_some() {
            connection.send(ConnectionSignal::Finish);
        }
        Ok(response.map(|body| PiecewiseBody { body, rest: Bytes::new(), _request: open }))
    }
}

/// The response to a request of HTTP/1.
fn version_refusal() -> Response {
    let mut response = Response::new(Body::from("this port speaks gRPC, which needs HTTP/2\n"));
    *response.status_mut() = StatusCode::HTTP_VERSION_NOT_SUPPORTED;
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

// === clients that do not read ===

tokio::task_local! {
    /// The progress of the response of the current task.
    static PROGRESS: Arc<ResponseProgress>;
}

/// The progress of a response. HTTP/2 asks for the next piece once the client has room for it.
#[derive(Debug, Default)]
struct ResponseProgress {
    /// Number of pieces that were handed to the connection, or 0 while the client waits for the next one.
    pieces: AtomicU64,
}

/// The body of a response in pieces; its request is open until the body is dropped.
struct PiecewiseBody {
    body: Body,
    /// The rest of the current piece.
    rest: Bytes,
    _request: Option<OpenRequest>,
}

impl PiecewiseBody {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
        let length = self.rest.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }
}

impl http_body::Body for PiecewiseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let piece = self.poll_piece(context);
        // HTTP/1 has no task for each request, and only short responses here.
        let _http1 = PROGRESS.try_with(|progress| match piece {
            Poll::Ready(_) => drop(progress.pieces.fetch_add(1, Ordering::Relaxed)),
            Poll::Pending => progress.pieces.store(0, Ordering::Relaxed),
        });
        piece
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.rest.is_empty() { self.body.size_hint() } else { SizeHint::default() }
    }
}

/// Runs the tasks of requests on the thread of their connection, and ends those whose clients do not read the response.
#[derive(Debug, Clone)]
struct StreamExecutor {
    time: Duration,
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for StreamExecutor {
    fn execute(&self, stream: F) {
        let progress = Arc::<ResponseProgress>::default();
        let stream = Box::pin(PROGRESS.scope(progress.clone(), stream));
        tokio::spawn(TimedStream { stream, progress, time: self.time, pieces: 0, timer: None });
    }
}

/// The task of a request. It ends if the client has no room for the next piece of the response for longer than `time`;
/// the request is then reset.
struct TimedStream<F> {
    stream: Pin<Box<F>>,
    progress: Arc<ResponseProgress>,
    time: Duration,
    /// Number of pieces at the start of the timer.
    pieces: u64,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<F: Future<Output = ()>> Future for TimedStream<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.stream.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let pieces = self.progress.pieces.load(Ordering::Relaxed);
        if pieces == 0 {
            self.timer = None;
            return Poll::Pending;
        }
        if self.timer.is_none() || self.pieces != pieces {
            self.pieces = pieces;
            self.timer = Some(Box::pin(sleep(self.time)));
        }
        let Some(timer) = &mut self.timer else { return Poll::Pending };
        ready!(timer.as_mut().poll(context));
        tracing::debug!("reset a request: the client does not read its response fast enough");
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests;
