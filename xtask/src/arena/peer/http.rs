//! The server over streamable HTTP.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;

use super::{Fault, Peer, Request};
use crate::client::{Era, SESSION};

/// After so many calls [`Fault::Expire`] forgets its sessions.
const CALLS_A_SESSION: u64 = 10;

type Answer = Response<Full<Bytes>>;

/// The server and its sessions: their ids are numbers, and those from `oldest` to `newest` are known.
struct Site {
    peer: Peer,
    oldest: AtomicU64,
    newest: AtomicU64,
    /// How many calls there were, those included that were refused.
    calls: AtomicU64,
}

/// Prints first where it listens.
pub(super) fn serve(peer: Peer, listen: SocketAddr) -> anyhow::Result<()> {
    let (oldest, newest, calls) = (AtomicU64::new(1), AtomicU64::new(0), AtomicU64::new(0));
    let site = Arc::new(Site { peer, oldest, newest, calls });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(listen).await?;
        writeln!(std::io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let site = site.clone();
            let service = service_fn(move |request| answer(site.clone(), request));
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    })
}

async fn answer(site: Arc<Site>, request: hyper::Request<Incoming>) -> Result<Answer, hyper::Error> {
    let (head, body) = request.into_parts();
    match head.method {
        Method::POST => Ok(site.post(&head.headers, &body.collect().await?.to_bytes())),
        Method::DELETE => Ok(reply(StatusCode::OK, String::new())),
        _ => Ok(reply(StatusCode::METHOD_NOT_ALLOWED, String::new())),
    }
}

impl Site {
    fn post(&self, headers: &HeaderMap, body: &[u8]) -> Answer {
        let Some(request) = Request::parse(body) else {
            return reply(StatusCode::ACCEPTED, String::new());
        };
        let begins = request.method == "initialize";
        if self.peer.era == Era::Legacy && !begins {
            if request.method == "tools/call" {
                self.expire_sometimes();
            }
            if let Some(refusal) = self.refuse_session(headers) {
                return refusal;
            }
        }
        let answer = self.peer.answer(&request);
        let status = match (&answer, self.peer.era) {
            (Err(_), Era::Modern) => StatusCode::NOT_FOUND,
            _ => StatusCode::OK,
        };
        let mut answer = reply(status, request.response(answer));
        if begins {
            let session = self.newest.fetch_add(1, Ordering::Relaxed) + 1;
            answer.headers_mut().insert(SESSION, session.into());
        }
        answer
    }

    fn expire_sometimes(&self) {
        let calls = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if calls.is_multiple_of(CALLS_A_SESSION) && self.peer.commits(Fault::Expire) {
            self.oldest.store(self.newest.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// Says of every other session that is over in words only that it is, as many servers do.
    fn refuse_session(&self, headers: &HeaderMap) -> Option<Answer> {
        let named = headers.get(SESSION).and_then(|session| session.to_str().ok()?.parse::<u64>().ok());
        let known = self.oldest.load(Ordering::Relaxed)..=self.newest.load(Ordering::Relaxed);
        match named {
            Some(session) if known.contains(&session) => None,
            Some(session) if session % 2 == 0 => Some(reply(StatusCode::NOT_FOUND, String::new())),
            _ => {
                let error = json!({"code": -32000, "message": "Bad Request: no valid session ID provided"});
                let body = json!({"jsonrpc": "2.0", "id": null, "error": error});
                Some(reply(StatusCode::BAD_REQUEST, body.to_string()))
            }
        }
    }
}

fn reply(status: StatusCode, body: String) -> Answer {
    let mut answer = Response::new(Full::from(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}
