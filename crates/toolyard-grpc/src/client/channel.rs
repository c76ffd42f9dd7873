//! The connection to a server as tonic uses it, with checks of what the server sends.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, Request, Response, StatusCode, Uri, header};
use http_body::{Body, Frame, SizeHint};
use tonic::codec::Codec;
use tonic::{Code, Status};
use toolyard_net::budget::ByteBudget;
use toolyard_net::client::RequestError;
use toolyard_net::http2::Http2Client;
use tower_service::Service;

use super::codec::{CountingCodec, UndecodedBytes};
use super::status::foreign_message;

/// The HTTP/2 client of a server.
pub type GrpcHttpClient = Http2Client<tonic::body::Body>;

/// The header with the details of a status, whose value is base64.
const STATUS_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// The encoding of binary metadata (gRPC over HTTP/2): padding is optional.
const METADATA_BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A server and the connections to it. Clones share the connections.
#[derive(Clone)]
pub struct GrpcChannel {
    client: GrpcHttpClient,
    origin: Uri,
    budget: ByteBudget,
}

impl GrpcChannel {
    /// Creates the channel to a host and port. Nothing is connected yet.
    #[must_use]
    pub fn new(client: GrpcHttpClient, server: &Authority, is_encrypted: bool, budget: ByteBudget) -> Self {
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(if is_encrypted { Scheme::HTTPS } else { Scheme::HTTP });
        parts.authority = Some(server.clone());
        parts.path_and_query = Some(PathAndQuery::from_static("/"));
        Self { client, origin: Uri::from_parts(parts).unwrap_or_default(), budget }
    }

    /// Returns the URL of the server, which has no path.
    pub(super) const fn origin(&self) -> &Uri {
        &self.origin
    }

    /// Returns the HTTP client.
    pub(super) const fn client(&self) -> &GrpcHttpClient {
        &self.client
    }

    /// Returns tonic's client for one request, which refuses messages of more than `bytes` bytes, and its codec. The codec
    /// returns each message with its reservation.
    pub(super) fn grpc<C: Codec>(
        &self,
        bytes: usize,
        codec: C,
    ) -> (tonic::client::Grpc<RequestChannel>, CountingCodec<C>) {
        let undecoded = UndecodedBytes::default();
        let channel = RequestChannel { channel: self.clone(), undecoded: undecoded.clone() };
        let client = tonic::client::Grpc::with_origin(channel, self.origin.clone());
        (client.max_decoding_message_size(bytes), CountingCodec { codec, undecoded })
    }
}

/// A channel for one request.
pub(super) struct RequestChannel {
    channel: GrpcChannel,
    undecoded: UndecodedBytes,
}

impl Service<Request<tonic::body::Body>> for RequestChannel {
    type Response = Response<CheckedBody<hyper::body::Incoming>>;
    type Error = RequestError;
    type Future = BoxFuture<'static, Result<Self::Response, RequestError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), RequestError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<tonic::body::Body>) -> Self::Future {
        let GrpcChannel { client, budget, .. } = self.channel.clone();
        let undecoded = self.undecoded.clone();
        Box::pin(async move {
            let mut response = client.send(request).await?;
            drop_malformed_details(response.headers_mut());
            if let Some(status) = foreign_status(&response) {
                // The status is of ASCII, and has no details: it fits into headers.
                let _infallible = status.add_header(response.headers_mut());
            }
            Ok(response.map(|body| CheckedBody { body, budget, undecoded }))
        })
    }
}

/// Returns the status of a response that is not one of gRPC, such as a proxy's, by its status of HTTP
/// (http-grpc-status-mapping.md of gRPC).
fn foreign_status<B>(response: &Response<B>) -> Option<Status> {
    let content_type = response.headers().get(header::CONTENT_TYPE).map(|kind| kind.as_bytes());
    let is_grpc = response.status() == StatusCode::OK
        && content_type.is_some_and(|kind| kind.starts_with(b"application/grpc"));
    if is_grpc || response.headers().contains_key(Status::GRPC_STATUS) {
        return None;
    }
    let status = response.status().as_u16();
    let code = match status {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        429 | 502..=504 => Code::Unavailable,
        _ => Code::Unknown,
    };
    Some(Status::new(code, foreign_message(status)))
}

/// Removes details that are not base64: tonic panics about them.
fn drop_malformed_details(headers: &mut HeaderMap) {
    let is_malformed =
        headers.get(STATUS_DETAILS).is_some_and(|details| METADATA_BASE64.decode(details).is_err());
    if is_malformed {
        headers.remove(STATUS_DETAILS);
    }
}

/// The body of a response, whose bytes are counted until they are decoded.
pub(super) struct CheckedBody<B> {
    body: B,
    budget: ByteBudget,
    undecoded: UndecodedBytes,
}

impl<B> Body for CheckedBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let mut frame = match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => frame,
            other => return other.map_err(Into::into),
        };
        if let Some(trailers) = frame.trailers_mut() {
            drop_malformed_details(trailers);
        }
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        let counted = self.undecoded.add(bytes, &self.budget);
        Poll::Ready(Some(counted.map(|()| frame).map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn details_that_are_not_base64_are_dropped() {
        for (details, is_kept) in
            [("AAECAw==", true), ("AAECAw", true), ("", true), ("!", false), ("A", false)]
        {
            let mut headers = HeaderMap::from_iter([(STATUS_DETAILS, HeaderValue::from_static(details))]);
            headers.insert("grpc-status", HeaderValue::from_static("5"));
            drop_malformed_details(&mut headers);
            assert_eq!(headers.contains_key(STATUS_DETAILS), is_kept, "{details:?}");
            // Otherwise this panics.
            assert_eq!(tonic::Status::from_header_map(&headers).unwrap().code(), tonic::Code::NotFound);
        }
    }
}
