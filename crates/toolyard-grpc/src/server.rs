//! The gateway's tools as a service of the Omnia tool protocol.
//!
//! - `status`: the gateway's errors as statuses;
//! - `result`: results of tools as JSON;
//! - `deadline`: the time that a caller waits.
//!
//! HTTP/2 and the authentication of callers are not part of this: see `toolyard-net` and `toolyard-server`.

mod deadline;
mod result;
mod status;

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{Request, StatusCode, header};
use http_body_util::Full;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tonic::Status;
use tonic::server::{Grpc, UnaryService};
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tonic_prost::ProstCodec;
use toolyard_core::registry::EntryKind;
use toolyard_core::{Call, Caller, ErrorCode, Gateway, Json, Object, ToolError};
use toolyard_net::body::{BodyReadError, read_request};
use toolyard_net::budget::ByteBudget;
use tower_service::Service;

use crate::omnia::{
    self, EXECUTE_PATH, LIST_TOOLS_PATH, ListToolsRequest, ListToolsResponse, ToolInfo, ToolRequest,
    ToolResponse,
};

pub use status::{status_of, unauthenticated};

/// Member of a call's `_meta` that has the entries of [`ToolRequest::metadata`].
pub const METADATA_KEY: &str = "omnia.altairalabs.ai/metadata";

/// Bytes before a message: its compression and its length.
const MESSAGE_HEAD_BYTES: usize = 5;

/// Beginnings of the paths of [`public_routes`].
pub const PUBLIC_PATHS: [&str; 2] = ["/grpc.health.v1.Health/", "/grpc.reflection."];

/// Path of the health check.
pub const HEALTH_PATH: &str = "/grpc.health.v1.Health/Check";

/// The parts of the gateway that the service uses.
pub struct ToolServiceParts {
    /// The gateway that runs all calls.
    pub gateway: Arc<Gateway>,
    /// Returns the caller of a request, or the reason why it may not use the service.
    pub caller: fn(&Parts) -> Result<Caller, Status>,
    /// Returns the owner of a request, from whose share of the budget large messages take their bytes.
    pub owner: fn(&Parts) -> Option<Arc<str>>,
    /// True once the gateway starts no further calls.
    pub stopping: watch::Receiver<bool>,
    /// Budget from which large messages take their bytes.
    pub budget: ByteBudget,
    /// Maximum bytes of a request's message.
    pub message_bytes: usize,
    /// Maximum time to read a request's message.
    pub message_time: Duration,
}

/// The service `omnia.tools.v1.ToolService`.
#[derive(Clone)]
pub struct ToolService(Arc<ToolServiceParts>);

impl fmt::Debug for ToolService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToolService")
    }
}

/// Returns the routes of the service of tools.
pub fn tool_routes(parts: ToolServiceParts) -> Router {
    let path = format!("/{}/{{*method}}", omnia::SERVICE);
    Router::new().route_service(&path, ToolService(Arc::new(parts)))
}

/// Returns the routes that need no key: server reflection, health checks, and the answer to unknown services. They
/// reveal nothing about the tools.
///
/// # Panics
/// Never: the descriptors are constants.
pub fn public_routes() -> (Router, ServiceHealth) {
    let (reporter, health) = tonic_health::server::health_reporter();
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_file_descriptor_set(omnia::file_descriptor_set())
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let v1 = reflection().build_v1().expect("valid descriptors");
    let v1alpha = reflection().build_v1alpha().expect("valid descriptors");
    let services = tonic::service::Routes::new(health).add_service(v1).add_service(v1alpha);
    (services.into_axum_router(), ServiceHealth(reporter))
}

/// The health that the gateway reports to `grpc.health.v1.Health`.
#[derive(Debug)]
pub struct ServiceHealth(HealthReporter);

impl ServiceHealth {
    /// Sets whether calls are served: in all, and of the service of tools.
    pub async fn set_serving(&self, is_serving: bool) {
        let status = if is_serving { ServingStatus::Serving } else { ServingStatus::NotServing };
        for service in ["", omnia::SERVICE] {
            self.0.set_service_status(service, status).await;
        }
    }
}

impl Service<Request<Body>> for ToolService {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await.unwrap_or_else(Status::into_http)) })
    }
}

impl ToolService {
    /// Answers a request. The caller is checked before its message is read.
    async fn answer(self, request: Request<Body>) -> Result<Response, Status> {
        if !is_grpc(&request) {
            // gRPC over HTTP2, "Requests": other content types get this status of HTTP.
            let mut response = Response::new(Body::from("the content type must be `application/grpc`"));
            *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return Ok(response);
        }
        let (parts, body) = request.into_parts();
        let caller = (self.0.caller)(&parts)?;
        let deadline = deadline::parse_grpc_timeout(&parts.headers, Instant::now())?;
        if *self.0.stopping.borrow() {
            return Err(status_of(&ToolError::new(ErrorCode::Unavailable, "the gateway is stopping")));
        }
        let message = self.read(&parts, body).await?;
        let request = Request::from_parts(parts.clone(), Full::new(message.clone()));
        let parts = Arc::new(parts);
        let limit = self.0.message_bytes;
        let response = match parts.uri.path() {
            EXECUTE_PATH => {
                let execute = Execute { service: self, parts, caller, deadline, _message: message };
                let mut grpc = Grpc::new(ProstCodec::default()).max_decoding_message_size(limit);
                grpc.unary(execute, request).await
            }
            LIST_TOOLS_PATH => {
                let mut grpc = Grpc::new(ProstCodec::default()).max_decoding_message_size(limit);
                grpc.unary(ListTools { service: self, caller, deadline }, request).await
            }
            path => return Err(Status::unimplemented(format!("no such method: {path:.200}"))),
        };
        Ok(response.map(Body::new))
    }

    /// Reads the message of a request. Its bytes are part of the budget until they are dropped.
    async fn read(&self, parts: &Parts, body: Body) -> Result<Bytes, Status> {
        let ToolServiceParts { budget, message_bytes, message_time, owner, .. } = &*self.0;
        let shared = || owner(parts).map_or_else(|| budget.clone(), |owner| budget.owned_by(&owner));
        let limit = message_bytes.saturating_add(MESSAGE_HEAD_BYTES);
        let read = timeout(*message_time, read_request(&parts.headers, body, limit, shared)).await;
        let too_slow = || Status::cancelled("reading the message timed out");
        let too_large =
            || Status::resource_exhausted(format!("the message is larger than {message_bytes} bytes"));
        let message = read.map_err(|_| too_slow())?.map_err(|error| match error {
            BodyReadError::TooLarge(_) => too_large(),
            BodyReadError::UsedUp(..) => Status::unavailable(error.to_string()),
            BodyReadError::Stalled => too_slow(),
            BodyReadError::Broken(_) => Status::cancelled("the message ended early"),
        })?;
        // tonic reports a length that exceeds the limit as OUT_OF_RANGE.
        match declared_length(&message).is_some_and(|length| length > *message_bytes) {
            true => Err(too_large()),
            false => Ok(message),
        }
    }
}

/// Returns the length in the prefix of a message: a flag and four bytes (gRPC over HTTP2, "Length-Prefixed-Message").
fn declared_length(message: &[u8]) -> Option<usize> {
    let length = message.get(1..MESSAGE_HEAD_BYTES)?.try_into().ok()?;
    usize::try_from(u32::from_be_bytes(length)).ok()
}

fn is_grpc(request: &Request<Body>) -> bool {
    let content_type = request.headers().get(header::CONTENT_TYPE).map(|kind| kind.as_bytes());
    content_type.and_then(|kind| kind.strip_prefix(b"application/grpc")).is_some_and(|rest| {
        // Not gRPC-Web.
        matches!(rest.first(), None | Some(b'+' | b';'))
    })
}

/// The method `Execute`, for one call.
struct Execute {
    service: ToolService,
    parts: Arc<Parts>,
    caller: Caller,
    deadline: Option<Instant>,
    /// Keeps the message in the budget while the call runs.
    _message: Bytes,
}

impl UnaryService<ToolRequest> for Execute {
    type Response = ToolResponse;
    type Future = BoxFuture<'static, Result<tonic::Response<ToolResponse>, Status>>;

    fn call(&mut self, request: tonic::Request<ToolRequest>) -> Self::Future {
        let call = call_of(request.into_inner(), self.parts.clone(), self.caller.clone(), self.deadline);
        let service = self.service.clone();
        Box::pin(async move {
            match service.0.gateway.invoke_to_end(call?).await {
                Ok(output) => Ok(tonic::Response::new(result::response_of(&output))),
                Err(error) => {
                    let code = error.code().row().wire;
                    tracing::debug!(code, error = format_args!("{:#}", error.outline()), "a call failed");
                    Err(status_of(&error))
                }
            }
        })
    }
}

/// Returns the call of a request.
fn call_of(
    request: ToolRequest,
    parts: Arc<Parts>,
    caller: Caller,
    deadline: Option<Instant>,
) -> Result<Call, Status> {
    let ToolRequest { tool_name, arguments_json, metadata } = request;
    let call = Call::tool(tool_name, arguments_of(arguments_json)?);
    let meta = meta_of(metadata);
    Ok(Call { meta, caller, origin: Some(parts), deadline, ..call })
}

/// Returns the arguments. Missing, empty and `null` stand for none.
fn arguments_of(text: String) -> Result<Json, Status> {
    if text.trim().is_empty() {
        return Ok(Object::new().to_json());
    }
    let arguments = Json::parse(text)
        .map_err(|error| Status::invalid_argument(format!("`arguments_json` is not JSON: {error}")))?;
    match arguments.is_null() {
        true => Ok(Object::new().to_json()),
        false if arguments.is_object() => Ok(arguments),
        false => Err(Status::invalid_argument("`arguments_json` is not a JSON object")),
    }
}

/// Returns the `_meta` of a call with these entries, in the order of their keys.
fn meta_of(metadata: HashMap<String, String>) -> Object {
    if metadata.is_empty() {
        return Object::new();
    }
    let mut entries: Vec<_> = metadata.into_iter().collect();
    entries.sort();
    let mut object = Object::new();
    for (key, value) in entries {
        object.set(&key, Json::string(&value));
    }
    Object::new().with(METADATA_KEY, object.to_json())
}

/// The method `ListTools`, for one call.
struct ListTools {
    service: ToolService,
    caller: Caller,
    deadline: Option<Instant>,
}

impl UnaryService<ListToolsRequest> for ListTools {
    type Response = ListToolsResponse;
    type Future = BoxFuture<'static, Result<tonic::Response<ListToolsResponse>, Status>>;

    fn call(&mut self, _request: tonic::Request<ListToolsRequest>) -> Self::Future {
        let (service, caller, deadline) = (self.service.clone(), self.caller.clone(), self.deadline);
        Box::pin(async move {
            let settled = service.0.gateway.settled_for(&caller);
            let late = |_| Status::deadline_exceeded("handlers have not answered yet");
            let registry = match deadline {
                Some(deadline) => timeout_at(deadline, settled).await.map_err(late)?,
                None => settled.await,
            };
            let tools = registry.definitions(EntryKind::Tools);
            let tools = tools.map(|(entry, definition)| tool_info(&entry.name, definition)).collect();
            Ok(tonic::Response::new(ListToolsResponse { tools }))
        })
    }
}

fn tool_info(name: &str, definition: &Json) -> ToolInfo {
    let definition = definition.to_object().unwrap_or_default();
    let description = definition.get_str("description").unwrap_or_default().into_owned();
    let schema = definition.get("inputSchema").map_or(r#"{"type":"object"}"#, Json::as_text);
    ToolInfo { name: name.to_owned(), description, input_schema: schema.to_owned() }
}

#[cfg(test)]
mod tests;
