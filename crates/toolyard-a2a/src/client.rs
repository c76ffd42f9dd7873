//! Requests to agents.
//!
//! - [`endpoint`]: the address of an agent, and the credentials for it;
//! - [`events`]: the stream of the events of a task;
//! - [`progress`]: the state and the result of a task, of its events.

pub mod endpoint;
pub mod error;
pub mod events;
pub mod progress;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method as HttpMethod, Request, Response, Uri, header};
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout, timeout_at};
use toolyard_core::random::{hex, random_bytes};
use toolyard_net::body::{self, BodyReadError};
use toolyard_net::client::{HttpClient, ResponseBody};

use self::endpoint::{AgentEndpoint, AgentHeaders};
use self::error::AgentError;
use self::events::EventStream;
use crate::wire::ProtocolVersion;
use crate::wire::message::Message;
use crate::wire::push::PushConfig;
use crate::wire::rpc::{self, Method, VERSION_HEADER};
use crate::wire::task::{Task, TaskEvent};

/// Limits of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLimits {
    /// Time limit of short requests, and until the answer to others begins.
    pub timeout: Duration,
    /// Maximum size of a card, in bytes.
    pub card_bytes: usize,
    /// Maximum size of a response, or of an event of a stream, in bytes.
    pub response_bytes: usize,
}

/// Makes a client. It may read files.
pub type ClientLoader = fn() -> io::Result<HttpClient>;

/// Sends requests to agents. Clones share its connections.
#[derive(Debug, Clone)]
pub struct AgentClient {
    load: ClientLoader,
    clients: Arc<OnceCell<EgressClients>>,
}

/// The clients by what they may connect to.
#[derive(Debug)]
struct EgressClients {
    /// Public addresses only, for URLs that an agent card names.
    public: HttpClient,
    /// Any address, for URLs that the operator names.
    any: HttpClient,
}

impl AgentClient {
    /// Returns a client, whose connections `load` makes when the first request needs them.
    #[must_use]
    pub fn new(load: ClientLoader) -> Self {
        Self { load, clients: Arc::default() }
    }

    /// Returns the text of a card, or of a set of keys, at a URL that the operator names.
    ///
    /// # Errors
    /// If there is none.
    pub async fn document(
        &self,
        url: &Uri,
        headers: &AgentHeaders,
        limits: ClientLimits,
    ) -> Result<Bytes, AgentError> {
        let mut request = Request::get(url.clone())
            .header(header::ACCEPT, "application/json")
            .header(VERSION_HEADER, ProtocolVersion::V1.header())
            .body(Full::default())
            .map_err(|_| AgentError::BadUrl)?;
        headers.add_to(request.headers_mut());
        let exchange = async {
            let response = self.clients().await?.any.send(request).await?;
            let status = response.status();
            if !status.is_success() {
                return Err(AgentError::Status(status.as_u16()));
            }
            read(response.into_body(), limits.card_bytes).await
        };
        in_time(limits.timeout, exchange).await
    }

    /// Sends a notification. Its URL is one that a client has named, and must have a public address unless `any_address`.
    ///
    /// # Errors
    /// If the status is not that of a success, or there is none in time.
    pub async fn post(
        &self,
        url: &Uri,
        headers: &HeaderMap,
        body: Bytes,
        any_address: bool,
        time: Duration,
    ) -> Result<(), AgentError> {
        let mut request = Request::post(url.clone())
            .header(header::USER_AGENT, concat!("toolyard/", env!("CARGO_PKG_VERSION")))
            .header(VERSION_HEADER, ProtocolVersion::V1.header())
            .body(Full::new(body))
            .map_err(|_| AgentError::BadUrl)?;
        request.headers_mut().extend(headers.clone());
        let exchange = async {
            let clients = self.clients().await?;
            let client = if any_address { &clients.any } else { &clients.public };
            let status = client.send(request).await?.status();
            if status.is_success() { Ok(()) } else { Err(AgentError::Status(status.as_u16())) }
        };
        in_time(time, exchange).await
    }

    /// Sends a message without waiting for the result of its task, and returns the first answer. With `push`, a URL and a
    /// token, the agent is asked to notify the URL of changes of the task.
    ///
    /// # Errors
    /// If the agent does not answer before `deadline`, or refuses the message.
    pub async fn send(
        &self,
        endpoint: &AgentEndpoint,
        message: &Message,
        push: Option<(&str, &str)>,
        limits: ClientLimits,
        deadline: Instant,
    ) -> Result<TaskEvent, AgentError> {
        let exchange = async {
            let mut params = message_params(endpoint, message, false);
            if let Some((url, token)) = push {
                let (member, config) = PushConfig::of_message(url, token, endpoint.version);
                params["configuration"][member] = config;
            }
            let response = self.request(endpoint, Method::SendMessage, params).await?;
            let result = result_of(response, limits.response_bytes).await?;
            Ok(TaskEvent::of_value(result)?)
        };
        // An agent may answer only when its task has ended, although it is asked not to.
        timeout_at(deadline, exchange).await.map_err(|_| AgentError::Slow)?
    }

    /// Sends a message, and returns the events of its task.
    ///
    /// # Errors
    /// If the agent does not answer in time, or refuses the message.
    pub async fn stream(
        &self,
        endpoint: &AgentEndpoint,
        message: &Message,
        limits: ClientLimits,
    ) -> Result<EventStream, AgentError> {
        let exchange = async {
            let params = message_params(endpoint, message, true);
            let response = self.request(endpoint, Method::SendStreamingMessage, params).await?;
            EventStream::of(response, limits.response_bytes).await
        };
        in_time(limits.timeout, exchange).await
    }

    /// Returns a task.
    ///
    /// # Errors
    /// If the agent does not answer in time, or does not know the task.
    pub async fn task(
        &self,
        endpoint: &AgentEndpoint,
        id: &str,
        limits: ClientLimits,
    ) -> Result<Task, AgentError> {
        self.about_task(endpoint, Method::GetTask, id, limits).await
    }

    /// Cancels a task, and returns it.
    ///
    /// # Errors
    /// If the agent does not answer in time, or does not cancel the task.
    pub async fn cancel(
        &self,
        endpoint: &AgentEndpoint,
        id: &str,
        limits: ClientLimits,
    ) -> Result<Task, AgentError> {
        self.about_task(endpoint, Method::CancelTask, id, limits).await
    }

    async fn about_task(
        &self,
        endpoint: &AgentEndpoint,
        method: Method,
        id: &str,
        limits: ClientLimits,
    ) -> Result<Task, AgentError> {
        let exchange = async {
            let params = with_tenant(endpoint, json!({ "id": id }));
            let response = self.request(endpoint, method, params).await?;
            let result = result_of(response, limits.response_bytes).await?;
            serde_json::from_value(result).map_err(|error| AgentError::Malformed(error.to_string()))
        };
        in_time(limits.timeout, exchange).await
    }

    /// Sends a request, and returns its response with any status.
    async fn request(
        &self,
        endpoint: &AgentEndpoint,
        method: Method,
        params: Value,
    ) -> Result<Response<ResponseBody>, AgentError> {
        let id = random_id()?;
        let body = rpc::request(method, endpoint.version, &id, &params);
        let mut request = Request::builder()
            .method(HttpMethod::POST)
            .uri(endpoint.url.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream")
            .header(header::USER_AGENT, concat!("toolyard/", env!("CARGO_PKG_VERSION")))
            .header(VERSION_HEADER, endpoint.version.header())
            .body(Full::new(Bytes::from(body)))
            .map_err(|_| AgentError::BadUrl)?;
        endpoint.headers.add_to(request.headers_mut());
        let clients = self.clients().await?;
        let client = if endpoint.is_trusted { &clients.any } else { &clients.public };
        Ok(client.send(request).await?)
    }

    async fn clients(&self) -> Result<&EgressClients, AgentError> {
        let load = self.load;
        let make = async || {
            let client = spawn_blocking(load).await.unwrap_or_else(|error| Err(io::Error::other(error)));
            client.map(|any| EgressClients { public: any.public_only(), any }).map_err(AgentError::NoClient)
        };
        self.clients.get_or_try_init(make).await
    }
}

/// Returns 32 random hexadecimal digits.
pub(crate) fn random_id() -> Result<String, AgentError> {
    Ok(hex(&random_bytes::<16>().map_err(|error| AgentError::NoClient(io::Error::other(error)))?))
}

/// Returns the parameters of a message. Unless it is streamed, the agent is asked to answer at once.
fn message_params(endpoint: &AgentEndpoint, message: &Message, is_streamed: bool) -> Value {
    let version = endpoint.version;
    let configuration = match version {
        _ if is_streamed => json!({}),
        ProtocolVersion::V1 => json!({"returnImmediately": true}),
        ProtocolVersion::V03 => json!({"blocking": false}),
    };
    with_tenant(endpoint, json!({"message": message.to_json(version), "configuration": configuration}))
}

fn with_tenant(endpoint: &AgentEndpoint, mut params: Value) -> Value {
    if !endpoint.tenant.is_empty() {
        params["tenant"] = json!(endpoint.tenant);
    }
    params
}

/// Returns the result of a response. An error of JSON-RPC takes precedence over a status.
async fn result_of(response: Response<ResponseBody>, limit: usize) -> Result<Value, AgentError> {
    let status = response.status();
    let body = read(response.into_body(), limit).await?;
    match rpc::result(&body) {
        Err(rpc::ResponseError::Malformed) if !status.is_success() => {
            Err(AgentError::Status(status.as_u16()))
        }
        result => Ok(result?),
    }
}

async fn read(body: ResponseBody, limit: usize) -> Result<Bytes, AgentError> {
    body::read(body, limit).await.map_err(|error| match error {
        BodyReadError::TooLarge(limit) => AgentError::TooLarge(limit),
        BodyReadError::Broken(_) | BodyReadError::UsedUp(..) | BodyReadError::Stalled => AgentError::Broken,
    })
}

async fn in_time<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, AgentError>>,
) -> Result<T, AgentError> {
    timeout(limit, work).await.map_err(|_| AgentError::Slow)?
}
