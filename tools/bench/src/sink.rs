//! An OpenTelemetry collector that accepts and drops everything, so that its own cost is not measured.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response};

use super::serve;

/// Serves until the process is killed.
pub(super) fn run() -> anyhow::Result<()> {
    serve::serve_forever(accept_export)
}

/// Responds with an empty Protocol Buffers message: everything was accepted.
async fn accept_export(request: Request<Incoming>) -> Result<Response<Empty<Bytes>>, hyper::Error> {
    request.into_body().collect().await?;
    let mut answer = Response::new(Empty::new());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
    Ok(answer)
}
