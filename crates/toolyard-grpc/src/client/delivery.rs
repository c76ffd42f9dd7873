//! Sends the request of a call, with retries, and reads the messages of the response.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, header};
use prost::Message;
use tokio::time::{Instant, timeout_at};
use tonic::metadata::MetadataMap;
use tonic::{Code, Extensions, Request, Status, Streaming};
use tonic_prost::ProstCodec;
use toolyard_backends::health::{RequestEnd, ServiceHealth};
use toolyard_core::{AttemptVerdict, Call, CallTimeLimit, ErrorCode, RetryOutcome, RetrySchedule, ToolError};
use toolyard_net::auth::UpstreamCredentials;
use toolyard_net::budget::ByteReservation;
use toolyard_net::trace;

use super::channel::GrpcChannel;
use super::codec::BytesCodec;
use super::status::RequestFault;

/// Maximum time before the deadline of a stream at which it is cut, for making its result.
const MAX_RESULT_TIME: Duration = Duration::from_secs(1);

/// Timeouts, retries and size limits of requests.
pub struct GrpcDelivery {
    /// The server.
    pub channel: GrpcChannel,
    /// Metadata of every request.
    pub metadata: HeaderMap,
    /// Credentials of every request.
    pub auth: Option<UpstreamCredentials>,
    /// Timeout of one attempt.
    pub attempt_time: Duration,
    /// Number of attempts, and the waits between them.
    pub retry: RetrySchedule,
    /// Status codes after which a request is sent again.
    pub retryable: Vec<Code>,
    /// Maximum size of a message, in bytes.
    pub response_bytes: usize,
}

/// A stream that has begun: the server has sent a message or ended it.
pub(super) struct BegunStream {
    pub(super) messages: MessageStream,
    /// The first message.
    pub(super) first: Option<Bytes>,
    /// The time at which a stream that has not ended is cut.
    pub(super) cut_at: Option<Instant>,
}

/// Encoded messages, each of which holds its reservation.
pub(super) struct MessageStream(Streaming<(Bytes, ByteReservation)>);

impl MessageStream {
    /// Returns the next message, or `None` at the end.
    ///
    /// # Errors
    /// The status that ends the stream.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        Ok(self.0.message().await?.map(|(message, reserved)| reserved.hold(message)))
    }
}

impl GrpcDelivery {
    /// Returns the metadata of requests: the constant ones, the credentials, which override them, and the trace context
    /// of a call.
    ///
    /// # Errors
    /// [`ErrorCode::Unavailable`] if the credentials cannot be read.
    pub(super) async fn headers(&self, call: Option<&Call>) -> Result<HeaderMap, ToolError> {
        let mut headers = self.metadata.clone();
        if let Some(auth) = &self.auth {
            let value = auth.header().await.map_err(|error| {
                let text = "The credentials of this tool cannot be read";
                ToolError::new(ErrorCode::Unavailable, text).unsent().caused_by(error)
            })?;
            headers.insert(header::AUTHORIZATION, value);
        }
        if let Some(call) = call {
            headers.extend(trace::context_headers(|name| call.meta.get_str(name)));
        }
        Ok(headers)
    }

    /// Runs attempts of a request until one is final. `request` runs one attempt, until the given time.
    ///
    /// # Errors
    /// When the last attempt fails, or the breaker is open.
    pub(super) async fn run<T, F>(
        &self,
        limit: CallTimeLimit,
        health: &ServiceHealth,
        request: impl Fn(Option<Instant>) -> F,
    ) -> Result<T, ToolError>
    where
        F: Future<Output = Result<T, RequestFault>>,
    {
        self.run_then(limit, health, request, |response| ready(Ok(response))).await
    }

    /// Runs attempts of a request until one is final, and then the rest of it, which is not repeated.
    ///
    /// # Errors
    /// As [`Self::run`], or when the rest fails.
    pub(super) async fn run_then<T, F, U, R>(
        &self,
        limit: CallTimeLimit,
        health: &ServiceHealth,
        request: impl Fn(Option<Instant>) -> F,
        rest: impl FnOnce(T) -> R,
    ) -> Result<U, ToolError>
    where
        F: Future<Output = Result<T, RequestFault>>,
        R: Future<Output = Result<U, RequestFault>>,
    {
        let verdict = |tried: &Result<T, RequestFault>| match tried {
            Err(fault) if fault.is_of_server() && self.retryable.contains(&fault.code()) => {
                AttemptVerdict::Again { wait: fault.retry_delay() }
            }
            _ => AttemptVerdict::Final,
        };
        let work = async {
            let attempts = self.retry.run(limit.at, || self.attempt(limit.at, &request), verdict);
            let RetryOutcome { last, attempts, exhausted } = attempts.await;
            let last = match last {
                Ok(begun) => rest(begun).await,
                Err(fault) => Err(fault),
            };
            RetryOutcome { last, attempts, exhausted }
        };
        let is_failure = |tried: &RetryOutcome<Result<U, RequestFault>>| {
            tried.last.as_ref().is_err_and(RequestFault::counts_as_failure)
        };
        let tried = health.breaker().run(limit, work, is_failure).await?;
        let end = match &tried.last {
            Ok(_) => Some(RequestEnd::Answered),
            Err(fault) => fault.request_end(),
        };
        if let Some(end) = end.filter(|_| !limit.is_cut_by_caller()) {
            health.record(self.channel.origin(), end);
        }
        let prefix = match tried {
            RetryOutcome { exhausted: true, attempts: attempts @ 2.., .. } => {
                format!("{attempts} attempts exhausted: ")
            }
            _ => String::new(),
        };
        tried.last.map_err(|fault| fault.into_error(&prefix))
    }

    async fn attempt<T, F>(
        &self,
        deadline: Option<Instant>,
        request: impl Fn(Option<Instant>) -> F,
    ) -> Result<T, RequestFault>
    where
        F: Future<Output = Result<T, RequestFault>>,
    {
        let own = Instant::now().checked_add(self.attempt_time);
        let until = [own, deadline].into_iter().flatten().min();
        match until {
            Some(until) => {
                timeout_at(until, request(Some(until))).await.unwrap_or(Err(RequestFault::Timeout))
            }
            None => request(None).await,
        }
    }

    /// Sends a message and returns the only message of the response. Both are encoded.
    pub(super) async fn unary(
        &self,
        path: &PathAndQuery,
        message: Bytes,
        headers: &HeaderMap,
        until: Option<Instant>,
    ) -> Result<Bytes, RequestFault> {
        let request = request(message, headers, until);
        let (mut client, codec) = self.channel.grpc(self.response_bytes, BytesCodec);
        let response = client.unary(request, path.clone(), codec).await;
        let (message, reserved) = response.map_err(|status| self.fault(status))?.into_inner();
        Ok(reserved.hold(message))
    }

    /// Sends a message and waits for the first message of the response.
    pub(super) async fn begin_stream(
        &self,
        path: &PathAndQuery,
        message: Bytes,
        headers: &HeaderMap,
        until: Option<Instant>,
    ) -> Result<BegunStream, RequestFault> {
        let cut_at = until.map(|until| until - result_time(until.saturating_duration_since(Instant::now())));
        let request = request(message, headers, until);
        let (mut client, codec) = self.channel.grpc(self.response_bytes, BytesCodec);
        let response = client.server_streaming(request, path.clone(), codec).await;
        let mut messages = MessageStream(response.map_err(|status| self.fault(status))?.into_inner());
        let first = messages.next().await.map_err(|status| self.fault(status))?;
        Ok(BegunStream { messages, first, cut_at })
    }

    /// Sends a message and returns the response, both of known types, and the response's reservation.
    pub(super) async fn typed<Q, R>(
        &self,
        path: &'static str,
        message: Q,
        headers: &HeaderMap,
        until: Option<Instant>,
    ) -> Result<(R, ByteReservation), RequestFault>
    where
        Q: Message + 'static,
        R: Message + Default + 'static,
    {
        let request = request(message, headers, until);
        let (mut client, codec) = self.channel.grpc(self.response_bytes, ProstCodec::<Q, R>::default());
        let response = client.unary(request, PathAndQuery::from_static(path), codec).await;
        Ok(response.map_err(|status| self.fault(status))?.into_inner())
    }

    /// Tells the server's statuses from others.
    pub(super) fn fault(&self, status: Status) -> RequestFault {
        RequestFault::of(status, self.response_bytes)
    }
}

/// Returns the part of the time of a stream that is left for making its result.
fn result_time(time: Duration) -> Duration {
    (time / 20).min(MAX_RESULT_TIME)
}

/// Returns a request, whose `grpc-timeout` is the rest of the time.
pub(super) fn request<M>(message: M, headers: &HeaderMap, until: Option<Instant>) -> Request<M> {
    let metadata = MetadataMap::from_headers(headers.clone());
    let mut request = Request::from_parts(metadata, Extensions::default(), message);
    if let Some(until) = until {
        request.set_timeout(until.saturating_duration_since(Instant::now()));
    }
    request
}

/// A delivery that calls and the task that reads the tools share.
pub(super) type SharedDelivery = Arc<GrpcDelivery>;
