//! Request bodies: JSON within the configured limits.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::request::Parts;
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use toolyard_core::{ErrorCode, Object};
use toolyard_mcp::server::owner_of_request;
use toolyard_net::body::{BodyReadError, read_request};
use toolyard_net::header_values::{self, content_is};

use super::{ProblemDetails, RestState};

/// Marks the limit of the configuration in [`JsonBody`].
const CONFIGURED: usize = 0;

/// A JSON object as the body of a request, of at most `MAX_BYTES`.
pub(super) struct JsonBody<T, const MAX_BYTES: usize = CONFIGURED>(pub(super) T);

impl<T: DeserializeOwned, const MAX_BYTES: usize> FromRequest<Arc<RestState>> for JsonBody<T, MAX_BYTES> {
    type Rejection = ProblemDetails;

    async fn from_request(request: Request, rest: &Arc<RestState>) -> Result<Self, ProblemDetails> {
        let limit = if MAX_BYTES == CONFIGURED { rest.body_bytes } else { MAX_BYTES };
        let (_, text) = read(request, rest, limit).await?;
        // serde would also accept an array for a struct, which is not documented.
        if text.trim_ascii_start().first() != Some(&b'{') {
            return Err(ProblemDetails::bad_request("the body is not a JSON object"));
        }
        let mut reader = serde_json::Deserializer::from_slice(&text);
        let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            ProblemDetails::bad_request(format!("invalid body: {}: {}", error.path(), error.inner()))
        })?;
        reader.end().map_err(|error| {
            ProblemDetails::bad_request(format!("trailing data after the JSON body: {error}"))
        })?;
        Ok(Self(value))
    }
}

/// A request whose body is a JSON object with members of any type.
pub(super) struct ObjectRequest {
    pub(super) parts: Parts,
    pub(super) text: Bytes,
    pub(super) object: Object,
}

impl FromRequest<Arc<RestState>> for ObjectRequest {
    type Rejection = ProblemDetails;

    async fn from_request(request: Request, rest: &Arc<RestState>) -> Result<Self, ProblemDetails> {
        let (parts, text) = read(request, rest, rest.body_bytes).await?;
        let object = Object::parse(text.clone()).map_err(|error| {
            ProblemDetails::bad_request(format!("the body is not a JSON object: {error}"))
        })?;
        Ok(Self { parts, text, object })
    }
}

/// Reads the body of a request with JSON.
pub(crate) async fn read(
    request: Request,
    rest: &RestState,
    limit: usize,
) -> Result<(Parts, Bytes), ProblemDetails> {
    if !content_is(request.headers(), header_values::JSON) {
        return Err(ProblemDetails::unsupported_media_type());
    }
    read_bytes(request, rest, limit).await
}

/// Reads the body of a request with any content.
pub(crate) async fn read_bytes(
    request: Request,
    rest: &RestState,
    limit: usize,
) -> Result<(Parts, Bytes), ProblemDetails> {
    let (parts, body) = request.into_parts();
    let owner = || owner_of_request(&parts);
    let budget = || owner().map_or_else(|| rest.budget.clone(), |owner| rest.budget.owned_by(&owner));
    let read = timeout(rest.body_time, read_request(&parts.headers, body, limit, budget)).await;
    let text = read.map_err(|_| ProblemDetails::too_slow())?.map_err(|error| match error {
        BodyReadError::TooLarge(limit) => ProblemDetails::too_large(limit),
        BodyReadError::UsedUp(..) => ProblemDetails::new(ErrorCode::Unavailable, error.to_string()),
        BodyReadError::Stalled => ProblemDetails::too_slow(),
        BodyReadError::Broken(_) => ProblemDetails::bad_request("the body ended early"),
    })?;
    Ok((parts, text))
}
