//! A tool whose calls are plain HTTP requests.
//!
//! [`request`] converts a call to a request, [`delivery`](crate::delivery) sends it, and [`response`] converts the
//! response to a result. Both conversions are pure functions.

pub mod mapping;
pub mod request;
pub mod response;
pub mod target;

use std::sync::Arc;
use std::time::SystemTime;

use ::http::{Request, header};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use toolyard_core::long_work::WorkAborted;
use toolyard_core::output_schema::STRUCTURED;
use toolyard_core::{
    Backend, BackendPhase, Call, CallOutput, Catalog, ErrorCode, FailureCause, LongWork, Outcome, Tool,
    ToolError,
};
use toolyard_net::auth::{CredentialsError, UpstreamCredentials};
use toolyard_net::client::HttpClient;
use toolyard_net::trace;

use self::request::HttpRequestPlan;
use self::response::ResponseConversion;
use crate::delivery::{ReceivedResponse, RequestDelivery};
use crate::health::{ServiceHealth, ServiceProbe};

/// Configuration of an HTTP tool.
pub struct HttpToolOptions {
    /// Name of the handler, for logs.
    pub name: Arc<str>,
    /// The tool.
    pub tool: Tool,
    /// Construction of requests.
    pub plan: HttpRequestPlan,
    /// Credentials for the upstream.
    pub auth: Option<UpstreamCredentials>,
    /// Timeouts, retries and size limits of requests.
    pub delivery: RequestDelivery,
    /// Conversion of responses to results.
    pub reading: ResponseConversion,
    /// Regular checks of the endpoint, whose host is constant then.
    pub probe: Option<ServiceProbe>,
}

/// A backend of a single, constant tool.
pub struct HttpBackend {
    health: ServiceHealth,
    plan: Arc<HttpRequestPlan>,
    auth: Option<UpstreamCredentials>,
    delivery: RequestDelivery,
    reading: Arc<ResponseConversion>,
    client: HttpClient,
    long_work: Option<LongWork>,
}

impl HttpBackend {
    /// Creates a backend that sends its requests through `client`. If arguments decide the host, requests go to public
    /// addresses only.
    #[must_use]
    pub fn new(options: HttpToolOptions, client: &HttpClient) -> Self {
        let HttpToolOptions { name, tool, plan, auth, delivery, reading, probe } = options;
        let client = if plan.target.has_variable_host() { client.public_only() } else { client.clone() };
        let tools = vec![Arc::new(tool)];
        let catalog = Catalog { phase: BackendPhase::Ready, tools, ..Catalog::default() };
        let health = ServiceHealth::of_http(name, catalog, client.clone(), probe);
        if let Some(origin) = plan.target.origin() {
            health.set_target(&origin);
        }
        Self {
            health,
            plan: Arc::new(plan),
            auth,
            delivery,
            reading: Arc::new(reading),
            client,
            long_work: None,
        }
    }

    /// Sets the background runner for mappings of large data. Without one they run on the thread of the call.
    #[must_use]
    pub fn with_long_work(self, long_work: Option<LongWork>) -> Self {
        Self { long_work, ..self }
    }

    /// Builds the request of a call.
    async fn request(&self, call: &Call) -> Result<Request<Bytes>, ToolError> {
        let bytes = call.arguments().map_or(0, |arguments| arguments.as_bytes().len());
        match &self.long_work {
            Some(long_work) if !self.plan.is_brief(bytes) => {
                let (plan, arguments) = (self.plan.clone(), call.arguments().cloned());
                long_work
                    .run(call, move |_| plan.request(arguments.as_ref()))
                    .await
                    .map_err(mapping_aborted)?
            }
            _ => self.plan.request(call.arguments()),
        }
    }

    /// Converts a successful response to a result, and reserves budget for its copies.
    async fn output(&self, call: &Call, received: ReceivedResponse) -> Result<CallOutput, ToolError> {
        let (status, body) = (received.status, received.body);
        let content_type = received.headers.get(header::CONTENT_TYPE).cloned();
        let mut output = match &self.long_work {
            Some(long_work) if !self.reading.is_brief(body.len()) => {
                let reading = self.reading.clone();
                let convert = move |_| reading.output(status, content_type.as_ref(), body);
                long_work.run(call, convert).await.map_err(mapping_aborted)??
            }
            _ => self.reading.output(status, content_type.as_ref(), body)?,
        };
        // An unchanged structure is a slice of the body, whose bytes are reserved already.
        let copies =
            if self.reading.changes_structure() { &["content", STRUCTURED][..] } else { &["content"] };
        self.delivery.reserve_copies(&mut output, copies).await?;
        Ok(output)
    }

    async fn run(&self, call: Call) -> Result<Outcome, ToolError> {
        let mut request = self.request(&call).await?;
        if let Some(auth) = &self.auth {
            request
                .headers_mut()
                .insert(header::AUTHORIZATION, auth.header().await.map_err(credentials_error)?);
        }
        request.headers_mut().extend(trace::context_headers(|name| call.meta.get_str(name)));
        let (prefix, received) =
            self.delivery.send(&request, call.time_limit(), &self.client, &self.health).await?;
        if received.status.is_success() {
            return self.output(&call, received).await.map(Outcome::Done);
        }
        let failure = self.reading.failure(&prefix, received.status, &received.body, received.is_complete);
        Ok(Outcome::Done(failure))
    }
}

impl Backend for HttpBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.health.subscribe()
    }

    fn last_failure(&self) -> Option<(FailureCause, SystemTime)> {
        self.health.last_failure()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(self.run(call))
    }
}

fn mapping_aborted(error: WorkAborted) -> ToolError {
    ToolError::new(ErrorCode::ExecutionFailed, "A mapping of this tool was aborted").caused_by(error)
}

pub(crate) fn credentials_error(error: CredentialsError) -> ToolError {
    ToolError::new(ErrorCode::Unavailable, "The credentials of this tool cannot be read")
        .unsent()
        .caused_by(error)
}

#[cfg(test)]
mod tests;
