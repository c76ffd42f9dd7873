//! The server over streamable HTTP.

use std::convert::Infallible;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;
use xtask_client::{McpEra, SESSION_HEADER};

use super::{ArenaPeer, PeerRequest, ServerFault};

/// Number of calls after which [`ServerFault::Expire`] drops its sessions.
const CALLS_PER_SESSION: u64 = 10;

type PeerResponse = Response<Full<Bytes>>;

/// The server and its sessions. Session IDs are numbers; those from `oldest` to `newest` are valid.
struct HttpPeer {
    peer: ArenaPeer,
    oldest: AtomicU64,
    newest: AtomicU64,
    /// Number of calls, including refused ones.
    calls: AtomicU64,
}

pub(super) fn serve(peer: ArenaPeer, listen: SocketAddr) -> anyhow::Result<()> {
    let (oldest, newest, calls) = (AtomicU64::new(1), AtomicU64::new(0), AtomicU64::new(0));
    let server = Arc::new(HttpPeer { peer, oldest, newest, calls });
    serve_http(listen, move |request| answer(server.clone(), request))
}

/// Prints its address, then serves requests until the process is killed.
pub(crate) fn serve_http<A, B>(
    listen: SocketAddr,
    answer: impl Fn(hyper::Request<Incoming>) -> A + Clone + Send + 'static,
) -> anyhow::Result<()>
where
    A: Future<Output = Result<Response<B>, hyper::Error>> + Send + 'static,
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(listen).await?;
        writeln!(std::io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let service = service_fn(answer.clone());
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    })
}

async fn answer(
    server: Arc<HttpPeer>,
    request: hyper::Request<Incoming>,
) -> Result<PeerResponse, hyper::Error> {
    let (head, body) = request.into_parts();
    match head.method {
        Method::POST => Ok(server.post(&head.headers, &body.collect().await?.to_bytes())),
        Method::DELETE => Ok(reply(StatusCode::OK, String::new())),
        _ => Ok(reply(StatusCode::METHOD_NOT_ALLOWED, String::new())),
    }
}

impl HttpPeer {
    fn post(&self, headers: &HeaderMap, body: &[u8]) -> PeerResponse {
        let Some(request) = PeerRequest::parse(body) else {
            return reply(StatusCode::ACCEPTED, String::new());
        };
        let is_initialize = request.method == "initialize";
        if self.peer.era == McpEra::Legacy && !is_initialize {
            if request.method == "tools/call" {
                self.expire_if_due();
            }
            if let Some(refusal) = self.refuse_session(headers) {
                return refusal;
            }
        }
        let answer = self.peer.answer(&request);
        let status = match (&answer, self.peer.era) {
            (Err(_), McpEra::Modern) => StatusCode::NOT_FOUND,
            _ => StatusCode::OK,
        };
        let mut answer = reply(status, request.response(answer));
        if is_initialize {
            let session = self.newest.fetch_add(1, Ordering::Relaxed) + 1;
            answer.headers_mut().insert(SESSION_HEADER, session.into());
        }
        answer
    }

    fn expire_if_due(&self) {
        let calls = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if calls.is_multiple_of(CALLS_PER_SESSION) && self.peer.trigger(ServerFault::Expire) {
            self.oldest.store(self.newest.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// Refuses an expired session: every second one with a text only, as many servers do.
    fn refuse_session(&self, headers: &HeaderMap) -> Option<PeerResponse> {
        let requested =
            headers.get(SESSION_HEADER).and_then(|session| session.to_str().ok()?.parse::<u64>().ok());
        let valid = self.oldest.load(Ordering::Relaxed)..=self.newest.load(Ordering::Relaxed);
        match requested {
            Some(session) if valid.contains(&session) => None,
            Some(session) if session % 2 == 0 => Some(reply(StatusCode::NOT_FOUND, String::new())),
            _ => {
                let error = json!({"code": -32000, "message": "Bad Request: no valid session ID provided"});
                let body = json!({"jsonrpc": "2.0", "id": null, "error": error});
                Some(reply(StatusCode::BAD_REQUEST, body.to_string()))
            }
        }
    }
}

fn reply(status: StatusCode, body: String) -> PeerResponse {
    let mut answer = Response::new(Full::from(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}
