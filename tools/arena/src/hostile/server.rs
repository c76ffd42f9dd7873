//! The server that hostile clients call: its schemas are expensive to validate, and its responses are large.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::RESPONSE_BYTES;
use super::attacks::arguments;
use crate::peer::{self, PeerRequest};

/// The tool with a schema that branches at each level.
pub(super) const FORKS: &str = "forks";
/// The tool with a schema of many alternatives.
pub(super) const CHOICES: &str = "choices";
/// The tool with a response almost as large as the gateway accepts.
pub(super) const LARGE: &str = "large";
/// The tool that reports progress.
pub(super) const PROGRESS: &str = "progress";

/// Length of a large response, in bytes.
const LARGE_BYTES: usize = RESPONSE_BYTES / 8 * 7;
/// A chunk of a large response.
const CHUNK: &[u8] = &[b'x'; 64 << 10];

/// Number of progress messages of one call, and length of each in bytes: 10 MB together.
const MESSAGES: usize = 300;
const MESSAGE_BYTES: usize = 32 << 10;

type ServerResponse = Response<BoxBody<Bytes, Infallible>>;

/// Arguments of the server.
#[derive(clap::Args)]
pub(crate) struct HostileServerArgs {
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

/// Serves until the process is killed.
pub(crate) fn serve(args: &HostileServerArgs) -> anyhow::Result<()> {
    peer::serve_http(args.listen, answer)
}

async fn answer(request: hyper::Request<Incoming>) -> Result<ServerResponse, hyper::Error> {
    if request.method() != Method::POST {
        return Ok(empty(StatusCode::METHOD_NOT_ALLOWED));
    }
    let body = request.into_body().collect().await?.to_bytes();
    Ok(PeerRequest::parse(&body).map_or_else(|| empty(StatusCode::ACCEPTED), |request| respond(&request)))
}

fn respond(request: &PeerRequest) -> ServerResponse {
    match (&*request.method, request.params["name"].as_str()) {
        ("server/discover", _) => json_result(request, peer::discover_result()),
        ("tools/list", _) => json_result(request, json!({"tools": tools()})),
        ("tools/call", Some(LARGE)) => large_result(request),
        ("tools/call", Some(PROGRESS)) => progress_stream(request),
        ("tools/call", _) => json_result(request, text_result("checked")),
        _ => {
            let error = request.response(Err((peer::UNKNOWN_METHOD, "method not found")));
            reply(StatusCode::NOT_FOUND, "application/json", Full::from(error).boxed())
        }
    }
}

fn tools() -> Value {
    let any = json!({"type": "object"});
    let tools =
        [(FORKS, arguments::forks()), (CHOICES, arguments::choices()), (LARGE, any.clone()), (PROGRESS, any)];
    tools.map(|(name, schema)| json!({"name": name, "description": name, "inputSchema": schema})).into()
}

fn json_result(request: &PeerRequest, result: Value) -> ServerResponse {
    let response = request.response(Ok(peer::modern_result(result)));
    reply(StatusCode::OK, "application/json", Full::from(response).boxed())
}

/// Sends a long text in chunks that share one buffer.
fn large_result(request: &PeerRequest) -> ServerResponse {
    const MARK: &str = "MARK";
    let response = request.response(Ok(peer::modern_result(text_result(MARK))));
    let (begin, end) = response.split_once(MARK).unwrap_or_default();
    let padding = std::iter::repeat_n(Bytes::from_static(CHUNK), LARGE_BYTES / CHUNK.len());
    let pieces = std::iter::once(Bytes::from(begin.to_owned())).chain(padding);
    let pieces = pieces.chain(std::iter::once(Bytes::from(end.to_owned())));
    reply(StatusCode::OK, "application/json", chunked_body(pieces))
}

/// Sends progress messages, then the result.
fn progress_stream(request: &PeerRequest) -> ServerResponse {
    let token = request.params["_meta"]["progressToken"].clone();
    let message = "x".repeat(MESSAGE_BYTES);
    let messages = (0..MESSAGES).map(move |number| {
        let params = json!({"progressToken": token, "progress": number, "message": message});
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).to_string()
    });
    let last = request.response(Ok(peer::modern_result(text_result("done"))));
    let events = messages.chain([last]).map(|message| Bytes::from(format!("data: {message}\n\n")));
    reply(StatusCode::OK, "text/event-stream", chunked_body(events))
}

fn text_result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn chunked_body(pieces: impl Iterator<Item = Bytes> + Send + Sync + 'static) -> BoxBody<Bytes, Infallible> {
    StreamBody::new(stream::iter(pieces.map(|piece| Ok(Frame::data(piece))))).boxed()
}

fn empty(status: StatusCode) -> ServerResponse {
    reply(status, "application/json", Full::default().boxed())
}

fn reply(status: StatusCode, kind: &'static str, body: BoxBody<Bytes, Infallible>) -> ServerResponse {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}
