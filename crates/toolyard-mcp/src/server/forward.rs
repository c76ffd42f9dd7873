//! Requests for what goes on at another gateway: a balancer in front of several sends each request to any of them.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Method, Request, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::time::timeout;
use toolyard_core::{Caller, Code, ToolError};
use toolyard_net::client::Client;

use super::http::accepts_stream;
use super::reply::refusal;
use super::ticket::Place;
use super::{Frontend, call, parked};
use crate::wire::{Id, RpcError, method};

/// Marks what another gateway has sent on: it is not sent on again, however wrong an address is.
const FORWARDED: HeaderName = HeaderName::from_static("toolyard-forwarded");

/// How long another gateway may take to begin its response: of a call that is silent it says so after 15 s.
const HEAD_TIME: Duration = Duration::from_secs(25);

/// The same, where the client takes no stream, and nothing can be said before the answer.
const ANSWER_TIME: Duration = Duration::from_secs(600);

/// Headers that are between two neighbours (RFC 9110, 7.6.1), that say whom the request was sent to, or, like the page that
/// it came from, were checked where it came in.
const LEFT_OUT: [HeaderName; 8] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TE,
    header::UPGRADE,
    header::EXPECT,
    header::ORIGIN,
];

impl Frontend {
    /// Where a modern request goes on, if that is at another gateway. What cannot be read is refused later.
    pub(super) fn elsewhere(&self, request: &super::Request, caller: &Caller) -> Option<String> {
        let place = match &*request.method {
            method::TOOLS_CALL | method::PROMPTS_GET | method::RESOURCES_READ => {
                let state = parked::state_of(&request.params)?;
                let target = call::target(request).ok()?;
                self.parked.place(&state, &call::identity(target, request, caller)).ok()?
            }
            method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL => {
                self.tasks.place(&request.params.get_str("taskId")?, caller).ok()?
            }
            _ => return None,
        };
        match place {
            Place::Gateway(address) => Some(address.to_string()),
            Place::Here | Place::Server { .. } => None,
        }
    }
}

/// Whether another gateway has sent this on.
pub(super) fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.contains_key(FORWARDED)
}

/// Sends another gateway a message, as the client sent this one.
pub(super) async fn send(
    client: &Client,
    address: &str,
    parts: &Parts,
    message: Bytes,
) -> Result<http::Response<Incoming>, String> {
    let mut request = Request::builder().method(Method::POST).uri(format!("{address}/mcp"));
    for (name, value) in parts.headers.iter().filter(|(name, _)| !LEFT_OUT.contains(name)) {
        request = request.header(name, value);
    }
    let request = request.header(FORWARDED, "1").body(Full::new(message));
    let time = if accepts_stream(&parts.headers) { HEAD_TIME } else { ANSWER_TIME };
    match timeout(time, client.send(request.map_err(|error| error.to_string())?)).await {
        Ok(sent) => sent.map_err(|error| error.to_string()),
        Err(_) => Err("it does not answer".to_owned()),
    }
}

/// Has another gateway answer a request. Its response goes on as it comes; dropping it ends the request there, too.
pub(super) async fn forward(
    client: &Client,
    address: &str,
    parts: &Parts,
    id: &Id,
    message: Bytes,
) -> Response {
    match send(client, address, parts, message).await {
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
                "a request cannot be sent on to the gateway that has its call"
            );
            let error = ToolError::new(Code::Unavailable, "The gateway that has this call cannot be reached");
            refusal(StatusCode::OK, Some(id), RpcError::from(&error))
        }
    }
}
