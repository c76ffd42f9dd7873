//! The tools of a service that an OpenAPI document describes.
//!
//! A keeper reads the description ([`source`]), and again from time to time; what has changed of it changes the tools. A
//! call of a tool is one request, with what opens the service ([`credentials`]).

pub mod credentials;
mod keeper;
pub mod source;
mod token;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderMap, Request, Response, StatusCode};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use toolyard_core::{Backend, Breaker, Call, Catalog, Code, Outcome, Target, ToolError};
use toolyard_net::auth::Auth;
use toolyard_net::client::Client;
use toolyard_net::trace;
use toolyard_openapi::{Described, Operation, Promise, Requirement, Scheme};

use self::credentials::{Credentials, Signed};
use self::keeper::Keeper;
use self::source::Source;
use crate::delivery::{Delivery, Received};
use crate::http::no_credentials;

/// A service, and how it is called.
pub struct Options {
    /// The name of the handler, for logs.
    pub name: Arc<str>,
    /// Where the description is.
    pub source: Source,
    /// Where requests go, if not where the description says.
    pub base_url: Option<String>,
    /// How the description is read.
    pub reading: toolyard_openapi::Options,
    /// The most tools that it may have.
    pub tools: usize,
    /// What every request carries, the one for the description too.
    pub headers: HeaderMap,
    /// Who requests are made for, the one for the description too.
    pub auth: Option<Auth>,
    /// What opens the schemes of the description.
    pub credentials: Credentials,
    /// How requests are sent.
    pub delivery: Delivery,
    /// How often the description is read again. `None`: only when somebody asks.
    pub refresh: Option<Duration>,
    /// The most that reading it may take.
    pub read_time: Duration,
    /// The most that all of its files may have, in bytes.
    pub document_bytes: usize,
}

/// A backend of all operations of a service.
pub struct OpenApiBackend {
    catalog: watch::Receiver<Arc<Catalog>>,
    service: watch::Receiver<Arc<Service>>,
    refresh: Arc<Notify>,
    shared: Arc<Shared>,
    delivery: Delivery,
    client: Client,
    breaker: Breaker,
    /// Ends with the backend.
    _keeper: JoinSet<()>,
}

/// What calls and the keeper have in common.
struct Shared {
    base_url: Option<String>,
    headers: HeaderMap,
    auth: Option<Auth>,
    credentials: Credentials,
}

/// What the description says now.
#[derive(Default)]
struct Service {
    operations: HashMap<String, Callable>,
    schemes: std::collections::BTreeMap<String, Scheme>,
}

/// An operation, as far as calls go.
struct Callable {
    operation: Operation,
    promise: Promise,
    security: Vec<Vec<Requirement>>,
}

impl OpenApiBackend {
    /// A backend that begins to read its description at once, on the runtime that this is called on.
    #[must_use]
    pub fn start(options: Options, client: &Client) -> Self {
        let Options { name, source, base_url, reading, tools, headers, auth, credentials, delivery, .. } =
            options;
        let shared = Arc::new(Shared { base_url, headers, auth, credentials });
        let (catalog, catalog_now) = watch::channel(Arc::default());
        let (service, service_now) = watch::channel(Arc::default());
        let refresh = Arc::<Notify>::default();
        let keeper = Keeper {
            name,
            reader: source::Reader::new(source, client.clone(), shared.clone(), options.document_bytes),
            reading,
            most: tools,
            every: options.refresh,
            read_time: options.read_time,
            shared: shared.clone(),
            origins: None,
            catalog,
            service,
            refresh: refresh.clone(),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(keeper.keep());
        Self {
            catalog: catalog_now,
            service: service_now,
            refresh,
            shared,
            delivery,
            client: client.clone(),
            breaker: Breaker::default(),
            _keeper: tasks,
        }
    }

    async fn run(&self, call: Call) -> Result<Outcome, ToolError> {
        let service = self.service.borrow().clone();
        let callable = match &call.target {
            Target::Tool(name) => service.operations.get(&**name),
            _ => None,
        };
        let gone = || ToolError::new(Code::ToolNotFound, "The service has no such operation any more");
        let callable = callable.ok_or_else(gone)?;
        let (request, signed) = self.request(&call, callable, &service).await?;
        let mut answered = self.delivery.run(&request, call.deadline, &self.client, &self.breaker).await?;
        // A token that was good when it was kept may be good no more.
        if answered.1.status == StatusCode::UNAUTHORIZED && self.shared.credentials.forget(&signed) {
            let (request, _) = self.request(&call, callable, &service).await?;
            answered = self.delivery.run(&request, call.deadline, &self.client, &self.breaker).await?;
        }
        let (before, received) = answered;
        let is_failure = !received.status.is_success();
        let response = response(received);
        let output = match is_failure {
            true => callable.operation.failure(&before, &response),
            false => callable.operation.result(&response, request.uri(), callable.promise),
        };
        Ok(Outcome::Done(output))
    }

    /// The request of a call, with what opens the operation.
    async fn request(
        &self,
        call: &Call,
        callable: &Callable,
        service: &Service,
    ) -> Result<(Request<Bytes>, Signed), ToolError> {
        let Self { shared, client, .. } = self;
        let mut request = callable.operation.request(call.arguments(), shared.base_url.as_deref())?;
        shared.dress(&mut request).await?;
        request.headers_mut().extend(trace::headers(|name| call.meta.get_str(name)));
        let signed =
            shared.credentials.sign(&mut request, &callable.security, &service.schemes, client).await?;
        Ok((request, signed))
    }
}

impl Shared {
    /// Whether there is anything that not everybody may have.
    fn has_credentials(&self) -> bool {
        self.auth.is_some() || !self.headers.is_empty() || !self.credentials.by_scheme.is_empty()
    }

    /// Puts on what every request carries. What an argument says goes before it, but for who it is made for.
    async fn dress<B>(&self, request: &mut Request<B>) -> Result<(), ToolError> {
        for (name, value) in &self.headers {
            request.headers_mut().insert(name.clone(), value.clone());
        }
        if let Some(auth) = &self.auth {
            let value = auth.header().await.map_err(no_credentials)?;
            request.headers_mut().insert(::http::header::AUTHORIZATION, value);
        }
        Ok(())
    }
}

impl Service {
    fn of(operations: Vec<Described>, schemes: std::collections::BTreeMap<String, Scheme>) -> Self {
        let callable = |described: Described| {
            let Described { operation, promise, security, .. } = described;
            (operation.name.clone(), Callable { operation, promise, security })
        };
        Self { operations: operations.into_iter().map(callable).collect(), schemes }
    }
}

fn response(received: Received) -> Response<Bytes> {
    let mut response = Response::new(received.body);
    *response.status_mut() = received.status;
    *response.headers_mut() = received.headers;
    response
}

impl Backend for OpenApiBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.clone()
    }

    fn refresh(&self) {
        self.refresh.notify_one();
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(self.run(call))
    }
}
