//! One revision of the protocol, as a server speaks it that knows no other.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_sdk::axum::Router;
use toolyard_sdk::axum::body::{Body, to_bytes};
use toolyard_sdk::axum::extract::{Request, State};
use toolyard_sdk::axum::http::{Method, StatusCode};
use toolyard_sdk::axum::middleware::{Next, from_fn_with_state};
use toolyard_sdk::axum::response::{IntoResponse, Response};

const MODERN: &str = "2026-07-28";
const OVER_SSE: &str = "2024-11-05";
const MOST_BYTES: usize = 1 << 20;

/// What is spoken. All the rest of the server is as it is without this.
pub(crate) struct Only {
    revision: String,
}

impl Only {
    pub(crate) const fn new(revision: String) -> Self {
        Self { revision }
    }

    /// Where a server of this revision is looked for.
    pub(crate) fn path(&self) -> &'static str {
        if self.revision == OVER_SSE { "/sse" } else { "/mcp" }
    }

    pub(crate) fn restrict(self, routes: Router) -> Router {
        routes.layer(from_fn_with_state(Arc::new(self), pass))
    }

    /// Whether this revision has such a path.
    fn has(&self, path: &str) -> bool {
        (path == "/mcp") != (self.revision == OVER_SSE)
    }

    /// Offers a session of this revision, whichever is asked for (2025-11-25, basic/lifecycle, version negotiation).
    fn answer(&self, body: &mut Value) {
        if body["method"] == "initialize" {
            body["params"]["protocolVersion"] = self.revision.as_str().into();
        }
    }

    /// What a server of this revision says to a request of another one.
    fn refusal(&self) -> Response {
        match self.revision == MODERN {
            true => {
                let data = json!({"supported": [MODERN]});
                let error = json!({"code": -32022, "message": "Unsupported protocol version", "data": data});
                let body = json!({"jsonrpc": "2.0", "id": null, "error": error});
                (StatusCode::BAD_REQUEST, [("content-type", "application/json")], body.to_string())
                    .into_response()
            }
            false => (StatusCode::BAD_REQUEST, "Bad Request: Unsupported protocol version").into_response(),
        }
    }
}

async fn pass(State(only): State<Arc<Only>>, request: Request, next: Next) -> Response {
    if !only.has(request.uri().path()) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let (parts, body) = request.into_parts();
    let spoken = parts.headers.get("mcp-protocol-version").is_none_or(|version| *version == *only.revision);
    if parts.method != Method::POST {
        return if spoken { next.run(Request::from_parts(parts, body)).await } else { only.refusal() };
    }
    let Ok(bytes) = to_bytes(body, MOST_BYTES).await else { return StatusCode::BAD_REQUEST.into_response() };
    let Ok(mut body) = serde_json::from_slice::<Value>(&bytes) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let opens = body["method"] == "initialize";
    if (opens && only.revision == MODERN) || !(spoken || opens) {
        return only.refusal();
    }
    only.answer(&mut body);
    next.run(Request::from_parts(parts, Body::from(body.to_string()))).await
}
