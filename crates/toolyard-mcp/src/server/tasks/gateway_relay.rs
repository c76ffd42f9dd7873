//! Relays requests for a suspended call or a task to the gateway that has it: a load balancer sends requests to any.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Method, Request, StatusCode, header};
use http_body_util::Full;
use tokio::time::timeout;
use toolyard_core::{Caller, ErrorCode, ToolError};
use toolyard_net::client::{HttpClient, ResponseBody};

use crate::server::interaction::suspended_calls;
use crate::server::interaction::ticket::TicketLocation;
use crate::server::transport::http::accepts_stream;
use crate::server::transport::reply::error_response;
use crate::server::{McpFrontend, call};
use crate::wire::{RequestId, RpcError, method};

/// Marks a request that another gateway has relayed. It is not relayed again, whatever its address says.
const RELAYED: HeaderName = HeaderName::from_static("toolyard-forwarded");

/// Maximum time until the other gateway starts its response: a silent call starts a stream after 15 s.
const STREAM_HEAD_TIMEOUT: Duration = Duration::from_secs(25);

/// Maximum time until the answer if the client accepts no stream.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// Headers that are not relayed: hop-by-hop headers (RFC 9110, 7.6.1), the addressed host, and the origin, which was
/// checked on arrival.
const DROPPED_HEADERS: [HeaderName; 8] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TE,
    header::UPGRADE,
    header::EXPECT,
    header::ORIGIN,
];

impl McpFrontend {
    /// Returns the address of the gateway that a modern request has to go to, if it is another one. Invalid requests
    /// are refused later.
    pub(in crate::server) fn other_gateway(
        &self,
        request: &crate::server::McpRequest,
        caller: &Caller,
    ) -> Option<String> {
        let location = match &*request.method {
            method::TOOLS_CALL | method::PROMPTS_GET | method::RESOURCES_READ => {
                let state = suspended_calls::own_state(&request.params)?;
                let target = call::parse_target(request).ok()?;
                self.suspended.locate(&state, &call::call_identity(target, request, caller)).ok()?
            }
            method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL => {
                self.tasks.locate(&request.params.get_str("taskId")?, caller).ok()?
            }
            _ => return None,
        };
        match location {
            TicketLocation::Gateway(address) => Some(address.to_string()),
            TicketLocation::Here | TicketLocation::Server { .. } => None,
        }
    }
}

/// True if another gateway has relayed the request.
pub(in crate::server) fn is_relayed(headers: &HeaderMap) -> bool {
    headers.contains_key(RELAYED)
}

/// Sends a message to another gateway with the headers of the client.
pub(super) async fn send_to_gateway(
    client: &HttpClient,
    address: &str,
    parts: &Parts,
    message: Bytes,
) -> Result<http::Response<ResponseBody>, String> {
    let mut request = Request::builder().method(Method::POST).uri(format!("{address}/mcp"));
    for (name, value) in parts.headers.iter().filter(|(name, _)| !DROPPED_HEADERS.contains(name)) {
        request = request.header(name, value);
    }
    let request = request.header(RELAYED, "1").body(Full::new(message));
    let time = if accepts_stream(&parts.headers) { STREAM_HEAD_TIMEOUT } else { ANSWER_TIMEOUT };
    match timeout(time, client.send(request.map_err(|error| error.to_string())?)).await {
        Ok(sent) => sent.map_err(|error| error.to_string()),
        Err(_) => Err("timed out".to_owned()),
    }
}

/// Relays a request and returns the response of the other gateway as it streams in. Dropping the response cancels the
/// request there.
pub(in crate::server) async fn relay_request(
    client: &HttpClient,
    address: &str,
    parts: &Parts,
    id: &RequestId,
    message: Bytes,
) -> Response {
    match send_to_gateway(client, address, parts, message).await {
        Ok(response) => {
            let (mut head, body) = response.into_parts();
            head.headers.remove(header::CONNECTION);
            head.headers.remove(header::TRANSFER_ENCODING);
            Response::from_parts(head, Body::new(body))
        }
        Err(error) => {
            tracing::warn!(
                gateway = address,
                error,
                "failed to relay a request to the gateway that holds its call"
            );
            let error =
                ToolError::new(ErrorCode::Unavailable, "The gateway that has this call cannot be reached");
            error_response(StatusCode::OK, Some(id), RpcError::from(&error))
        }
    }
}
