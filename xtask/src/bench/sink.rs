//! A collector of OpenTelemetry that takes everything, and keeps nothing: what it costs is no part of what is measured.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response};

use super::serve;

/// Serves until it is killed.
pub(super) fn run() -> anyhow::Result<()> {
    serve::forever(take)
}

/// An empty message of Protocol Buffers says that everything was taken.
async fn take(request: Request<Incoming>) -> Result<Response<Empty<Bytes>>, hyper::Error> {
    request.into_body().collect().await?;
    let mut answer = Response::new(Empty::new());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
    Ok(answer)
}
