//! The tools of a service with an OpenAPI description.
//!
//! A task fetches the description ([`source`]) and refreshes it; changes of the description change the tools. Each
//! call is one request with the service's credentials ([`credentials`]).

pub mod credentials;
mod keeper;
pub mod source;
mod token;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ::http::{HeaderMap, Request, Response, StatusCode};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use toolyard_core::{
    Backend, Call, CallTarget, Catalog, ErrorCode, FailureCause, FailureLog, Outcome, ToolError,
};
use toolyard_net::auth::UpstreamCredentials;
use toolyard_net::client::HttpClient;
use toolyard_net::trace;
use toolyard_openapi::{
    DescribedOperation, OpenApiOperation, ResultPromise, SecurityRequirement, SecurityScheme,
};

use self::credentials::{AppliedTokens, ServiceCredentials};
use self::keeper::DescriptionKeeper;
use self::source::DescriptionLocation;
use crate::delivery::{ReceivedResponse, RequestDelivery};
use crate::health::{ServiceHealth, ServiceProbe};
use crate::http::credentials_error;

/// Configuration of an OpenAPI service.
pub struct OpenApiOptions {
    /// Name of the handler, for logs.
    pub name: Arc<str>,
    /// Location of the description.
    pub source: DescriptionLocation,
    /// Base URL of requests, instead of the description's servers.
    pub base_url: Option<String>,
    /// Options for reading the description.
    pub read_options: toolyard_openapi::ReadOptions,
    /// Maximum number of tools.
    pub max_tools: usize,
    /// Headers of every request, that for the description included.
    pub headers: HeaderMap,
    /// Credentials of every request, that for the description included.
    pub auth: Option<UpstreamCredentials>,
    /// Credentials for the description's security schemes.
    pub credentials: ServiceCredentials,
    /// Timeouts, retries and size limits of requests.
    pub delivery: RequestDelivery,
    /// Time between two refreshes of the description. `None`: on demand only.
    pub refresh: Option<Duration>,
    /// Timeout of fetching the description.
    pub read_time: Duration,
    /// Maximum size of all files of the description, in bytes.
    pub document_bytes: usize,
    /// Regular checks of the service.
    pub probe: Option<ServiceProbe>,
}

/// A backend of all operations of a service.
pub struct OpenApiBackend {
    health: ServiceHealth,
    service: watch::Receiver<Arc<LoadedService>>,
    refresh: Arc<Notify>,
    shared: Arc<ServiceAccess>,
    delivery: RequestDelivery,
    client: HttpClient,
    /// Aborted when the backend is dropped.
    _refresh_task: JoinSet<()>,
}

/// Headers and credentials that calls and the refresh task share.
struct ServiceAccess {
    base_url: Option<String>,
    headers: HeaderMap,
    auth: Option<UpstreamCredentials>,
    credentials: ServiceCredentials,
}

/// The operations and schemes of the current description.
#[derive(Default)]
struct LoadedService {
    operations: HashMap<String, CallableOperation>,
    schemes: std::collections::BTreeMap<String, SecurityScheme>,
}

/// An operation with its security requirements.
struct CallableOperation {
    operation: OpenApiOperation,
    promise: ResultPromise,
    security: Vec<Vec<SecurityRequirement>>,
}

impl OpenApiBackend {
    /// Creates a backend and spawns the task that fetches its description on the current runtime.
    #[must_use]
    pub fn start(options: OpenApiOptions, client: &HttpClient) -> Self {
        let OpenApiOptions {
            name,
            source,
            base_url,
            read_options,
            max_tools,
            headers,
            auth,
            credentials,
            delivery,
            ..
        } = options;
        let access = Arc::new(ServiceAccess { base_url, headers, auth, credentials });
        let health = ServiceHealth::of_http(name.clone(), Catalog::default(), client.clone(), options.probe);
        if let Some(base) = access.base_url.as_ref().and_then(|url| url.parse().ok()) {
            health.set_target(&base);
        }
        let (service, service_receiver) = watch::channel(Arc::default());
        let refresh = Arc::<Notify>::default();
        let keeper = DescriptionKeeper {
            name,
            reader: source::DescriptionFetcher::new(
                source,
                client.clone(),
                access.clone(),
                options.document_bytes,
            ),
            read_options,
            max_tools,
            interval: options.refresh,
            read_time: options.read_time,
            access: access.clone(),
            origins: None,
            health: health.clone(),
            service,
            refresh: refresh.clone(),
            failures: FailureLog::default(),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(keeper.run());
        Self {
            health,
            service: service_receiver,
            refresh,
            shared: access,
            delivery,
            client: client.clone(),
            _refresh_task: tasks,
        }
    }

    async fn run(&self, call: Call) -> Result<Outcome, ToolError> {
        let is_empty = |service: &LoadedService| service.operations.is_empty();
        let message = "The description of the service is not loaded";
        let service = self.health.loaded(&self.service, is_empty, message).await?;
        let callable = match &call.target {
            CallTarget::Tool(name) => service.operations.get(&**name),
            _ => None,
        };
        let unknown_operation =
            || ToolError::new(ErrorCode::ToolNotFound, "The service no longer has this operation");
        let callable = callable.ok_or_else(unknown_operation)?;
        let (request, applied_tokens) = self.request(&call, callable, &service).await?;
        let mut attempt = self.delivery.send(&request, call.time_limit(), &self.client, &self.health).await?;
        // A cached token may have been revoked.
        if attempt.1.status == StatusCode::UNAUTHORIZED && self.shared.credentials.forget(&applied_tokens) {
            let (request, _) = self.request(&call, callable, &service).await?;
            attempt = self.delivery.send(&request, call.time_limit(), &self.client, &self.health).await?;
        }
        let (prefix, received) = attempt;
        let is_failure = !received.status.is_success();
        let response = into_http_response(received);
        let output = match is_failure {
            true => callable.operation.failure(&prefix, &response),
            false => callable.operation.result(&response, request.uri(), callable.promise),
        };
        Ok(Outcome::Done(output))
    }

    /// Builds the request of a call, with credentials.
    async fn request(
        &self,
        call: &Call,
        callable: &CallableOperation,
        service: &LoadedService,
    ) -> Result<(Request<Bytes>, AppliedTokens), ToolError> {
        let Self { shared, client, .. } = self;
        let mut request = callable.operation.request(call.arguments(), shared.base_url.as_deref())?;
        shared.apply_headers(&mut request).await?;
        request.headers_mut().extend(trace::context_headers(|name| call.meta.get_str(name)));
        let applied_tokens =
            shared.credentials.apply(&mut request, &callable.security, &service.schemes, client).await?;
        Ok((request, applied_tokens))
    }
}

impl ServiceAccess {
    /// True if requests carry headers or credentials that only this service may see.
    fn has_credentials(&self) -> bool {
        self.auth.is_some() || !self.headers.is_empty() || !self.credentials.by_scheme.is_empty()
    }

    /// Sets the headers and the authorization of every request. `auth` overrides `headers`.
    async fn apply_headers<B>(&self, request: &mut Request<B>) -> Result<(), ToolError> {
        for (name, value) in &self.headers {
            request.headers_mut().insert(name.clone(), value.clone());
        }
        if let Some(auth) = &self.auth {
            let value = auth.header().await.map_err(credentials_error)?;
            request.headers_mut().insert(::http::header::AUTHORIZATION, value);
        }
        Ok(())
    }
}

impl LoadedService {
    fn new(
        operations: Vec<DescribedOperation>,
        schemes: std::collections::BTreeMap<String, SecurityScheme>,
    ) -> Self {
        let callable = |described: DescribedOperation| {
            let DescribedOperation { operation, promise, security, .. } = described;
            (operation.name.clone(), CallableOperation { operation, promise, security })
        };
        Self { operations: operations.into_iter().map(callable).collect(), schemes }
    }
}

fn into_http_response(received: ReceivedResponse) -> Response<Bytes> {
    let mut response = Response::new(received.body);
    *response.status_mut() = received.status;
    *response.headers_mut() = received.headers;
    response
}

impl Backend for OpenApiBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.health.subscribe()
    }

    fn last_failure(&self) -> Option<(FailureCause, SystemTime)> {
        self.health.last_failure()
    }

    fn refresh(&self) {
        self.refresh.notify_one();
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(self.run(call))
    }
}
