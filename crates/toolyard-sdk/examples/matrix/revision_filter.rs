//! A layer that restricts a server to one revision of the protocol.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_sdk::axum::Router;
use toolyard_sdk::axum::body::{Body, to_bytes};
use toolyard_sdk::axum::extract::{Request, State};
use toolyard_sdk::axum::http::{Method, StatusCode};
use toolyard_sdk::axum::middleware::{Next, from_fn_with_state};
use toolyard_sdk::axum::response::{IntoResponse, Response};

const STATELESS_REVISION: &str = "2026-07-28";
const SSE_REVISION: &str = "2024-11-05";
const MAX_BODY_BYTES: usize = 1 << 20;

/// The supported revision. The rest of the server is unchanged.
pub(crate) struct RevisionFilter {
    revision: String,
}

impl RevisionFilter {
    pub(crate) const fn new(revision: String) -> Self {
        Self { revision }
    }

    /// The path of the endpoint in this revision.
    pub(crate) fn path(&self) -> &'static str {
        if self.revision == SSE_REVISION { "/sse" } else { "/mcp" }
    }

    pub(crate) fn restrict(self, routes: Router) -> Router {
        routes.layer(from_fn_with_state(Arc::new(self), filter_request))
    }

    /// True if this revision has such a path.
    fn has(&self, path: &str) -> bool {
        (path == "/mcp") != (self.revision == SSE_REVISION)
    }

    /// Negotiates this revision, whatever the client requests (2025-11-25, basic/lifecycle, version negotiation).
    fn negotiate(&self, body: &mut Value) {
        if body["method"] == "initialize" {
            body["params"]["protocolVersion"] = self.revision.as_str().into();
        }
    }

    /// The response of a server of this revision to a request of another one.
    fn refusal(&self) -> Response {
        match self.revision == STATELESS_REVISION {
            true => {
                let data = json!({"supported": [STATELESS_REVISION]});
                let error = json!({"code": -32022, "message": "Unsupported protocol version", "data": data});
                let body = json!({"jsonrpc": "2.0", "id": null, "error": error});
                (StatusCode::BAD_REQUEST, [("content-type", "application/json")], body.to_string())
                    .into_response()
            }
            false => (StatusCode::BAD_REQUEST, "Bad Request: Unsupported protocol version").into_response(),
        }
    }
}

async fn filter_request(State(filter): State<Arc<RevisionFilter>>, request: Request, next: Next) -> Response {
    if !filter.has(request.uri().path()) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let (parts, body) = request.into_parts();
    let is_supported =
        parts.headers.get("mcp-protocol-version").is_none_or(|version| *version == *filter.revision);
    if parts.method != Method::POST {
        return if is_supported {
            next.run(Request::from_parts(parts, body)).await
        } else {
            filter.refusal()
        };
    }
    let Ok(bytes) = to_bytes(body, MAX_BODY_BYTES).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let Ok(mut body) = serde_json::from_slice::<Value>(&bytes) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let opens = body["method"] == "initialize";
    if (opens && filter.revision == STATELESS_REVISION) || !(is_supported || opens) {
        return filter.refusal();
    }
    filter.negotiate(&mut body);
    next.run(Request::from_parts(parts, Body::from(body.to_string()))).await
}
