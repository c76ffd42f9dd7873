//! Sends the request of a call, with retries, and reads the messages of the response.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, header};
use prost::Message;
use tokio::time::{Instant, timeout_at};
use tonic::metadata::MetadataMap;
use tonic::{Code, Extensions, Request, Streaming};
use tonic_prost::ProstCodec;
use toolyard_backends::health::{RequestEnd, ServiceHealth};
use toolyard_core::{AttemptVerdict, Call, ErrorCode, RetryOutcome, RetrySchedule, ToolError};
use toolyard_net::auth::UpstreamCredentials;
use toolyard_net::trace;

use super::channel::GrpcChannel;
use super::codec::BytesCodec;
use super::status::RequestFault;

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
        deadline: Option<Instant>,
        health: &ServiceHealth,
        request: impl Fn(Option<Instant>) -> F,
    ) -> Result<T, ToolError>
    where
        F: Future<Output = Result<T, RequestFault>>,
    {
        let attempts = self.retry.run(
            deadline,
            || self.attempt(deadline, &request),
            |tried| match tried {
                Err(fault) if fault.is_of_server() && self.retryable.contains(&fault.code()) => {
                    AttemptVerdict::Again { wait: fault.retry_delay() }
                }
                _ => AttemptVerdict::Final,
            },
        );
        let is_failure = |tried: &RetryOutcome<Result<T, RequestFault>>| {
            tried.last.as_ref().is_err_and(RequestFault::counts_as_failure)
        };
        let tried = health.breaker().run(deadline, attempts, is_failure).await?;
        let end = match &tried.last {
            Ok(_) => Some(RequestEnd::Answered),
            Err(fault) => fault.request_end(),
        };
        end.into_iter().for_each(|end| health.record(self.channel.origin(), end));
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
        let mut client = self.channel.grpc(self.response_bytes);
        let response = client.unary(request, path.clone(), BytesCodec).await;
        Ok(response.map_err(|status| self.fault(status))?.into_inner())
    }

    /// Sends a message and returns the stream of messages of the response.
    pub(super) async fn server_streaming(
        &self,
        path: &PathAndQuery,
        message: Bytes,
        headers: &HeaderMap,
        until: Option<Instant>,
    ) -> Result<Streaming<Bytes>, RequestFault> {
        let request = request(message, headers, until);
        let mut client = self.channel.grpc(self.response_bytes);
        let response = client.server_streaming(request, path.clone(), BytesCodec).await;
        Ok(response.map_err(|status| self.fault(status))?.into_inner())
    }

    /// Sends a message and returns the response, both of known types.
    pub(super) async fn typed<Q, R>(
        &self,
        path: &'static str,
        message: Q,
        headers: &HeaderMap,
        until: Option<Instant>,
    ) -> Result<R, RequestFault>
    where
        Q: Message + 'static,
        R: Message + Default + 'static,
    {
        let request = request(message, headers, until);
        let mut client = self.channel.grpc(self.response_bytes);
        let codec = ProstCodec::<Q, R>::default();
        let response = client.unary(request, PathAndQuery::from_static(path), codec).await;
        Ok(response.map_err(|status| self.fault(status))?.into_inner())
    }

    /// Tells the server's statuses from others.
    pub(super) fn fault(&self, status: tonic::Status) -> RequestFault {
        RequestFault::of(status, self.response_bytes)
    }
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
