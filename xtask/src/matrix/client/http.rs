//! Streamable HTTP.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::Value;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use super::link::{Heard, Inbox, Origin};
use super::params::Repeated;
use super::stream::{Events, media_type, send};
use super::{PATIENCE, Revision};

const VERSION: &str = "mcp-protocol-version";
const SESSION: &str = "mcp-session-id";

pub(super) struct Http {
    address: SocketAddr,
    revision: Revision,
    /// What every request carries; a session adds its own.
    headers: HeaderMap,
    session: Arc<Mutex<Option<HeaderValue>>>,
    repeated: Repeated,
    inbox: Inbox,
    streams: JoinSet<()>,
    open: HashMap<u64, AbortHandle>,
}

impl Http {
    pub(super) fn new(address: SocketAddr, revision: Revision, inbox: Inbox) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if revision.is_modern() {
            headers.insert(VERSION, HeaderValue::from_static(revision.name()));
        }
        Self {
            address,
            revision,
            headers,
            session: Arc::default(),
            repeated: Repeated::default(),
            inbox,
            streams: JoinSet::new(),
            open: HashMap::new(),
        }
    }

    /// The header of the version came with 2025-06-18.
    pub(super) fn agree(&mut self, revision: Revision) {
        if revision >= Revision::V2025_06_18 {
            self.headers.insert(VERSION, HeaderValue::from_static(revision.name()));
        }
    }

    /// Reads what tools want repeated in headers. The legacy era has none of that.
    pub(super) fn learn(&mut self, tools: &Value) -> anyhow::Result<()> {
        if self.revision.is_modern() { self.repeated.learn(tools) } else { Ok(()) }
    }

    pub(super) async fn listen(&mut self) -> anyhow::Result<()> {
        let request = self.post(Method::GET, Bytes::new())?;
        let response =
            timeout(PATIENCE, send(self.address, request)).await.context("no stream in time")??;
        let (mut events, inbox) = (Events::of(response)?, self.inbox.clone());
        self.streams.spawn(async move { hear_all(&mut events, Origin::Shared, &inbox).await });
        Ok(())
    }

    /// Sends a request; what is said to it goes to the inbox.
    pub(super) async fn request(&mut self, id: u64, method: &str, message: &Value) -> anyhow::Result<()> {
        let mut request = self.post(Method::POST, message.to_string().into())?;
        if self.revision.is_modern() {
            request.headers_mut().insert("mcp-method", HeaderValue::from_str(method)?);
            if let Some(name) = named(method, &message["params"]) {
                request.headers_mut().insert("mcp-name", HeaderValue::from_str(name)?);
            }
            if method == "tools/call" {
                request.headers_mut().extend(self.repeated.headers(&message["params"])?);
            }
        }
        let (address, inbox, session) = (self.address, self.inbox.clone(), self.session.clone());
        let stream = self.streams.spawn(async move {
            let origin = Origin::Request(id);
            let heard = match send(address, request).await {
                Ok(response) => {
                    note_session(response.headers(), &session);
                    hear(response, origin, &inbox).await
                }
                Err(error) => Err(error),
            };
            // Nobody hears it who is gone.
            let _gone = inbox.send(Heard { origin, message: heard.map(|()| None) });
        });
        self.open.insert(id, stream);
        Ok(())
    }

    pub(super) async fn tell(&mut self, message: &Value) -> anyhow::Result<()> {
        let request = self.post(Method::POST, message.to_string().into())?;
        let response =
            timeout(PATIENCE, send(self.address, request)).await.context("not taken in time")??;
        let status = response.status();
        ensure!(status == StatusCode::ACCEPTED, "{message} was answered with {status}");
        Ok(())
    }

    pub(super) fn drop_stream(&mut self, id: u64) {
        if let Some(stream) = self.open.remove(&id) {
            stream.abort();
        }
    }

    fn post(&self, method: Method, body: Bytes) -> anyhow::Result<Request<Full<Bytes>>> {
        let mut request = Request::builder().method(method).uri("/mcp").body(Full::new(body))?;
        request.headers_mut().clone_from(&self.headers);
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = &*session {
            request.headers_mut().insert(SESSION, session.clone());
        }
        Ok(request)
    }
}

/// What the header `Mcp-Name` repeats (2026-07-28, basic/transports/streamable-http).
fn named<'a>(method: &str, params: &'a Value) -> Option<&'a str> {
    let member = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    params[member].as_str()
}

fn note_session(headers: &HeaderMap, session: &Mutex<Option<HeaderValue>>) {
    if let Some(id) = headers.get(SESSION) {
        *session.lock().unwrap_or_else(PoisonError::into_inner) = Some(id.clone());
    }
}

async fn hear(response: Response<Incoming>, origin: Origin, inbox: &Inbox) -> anyhow::Result<()> {
    if media_type(response.headers()) == "text/event-stream" {
        hear_all(&mut Events::of(response)?, origin, inbox).await;
        return Ok(());
    }
    let (status, kind) = (response.status(), media_type(response.headers()).to_owned());
    let body = response.into_body().collect().await?.to_bytes();
    let shown = || format!("{status} with {kind:?}: {}", String::from_utf8_lossy(&body));
    ensure!(kind == "application/json", "{}", shown());
    let message = serde_json::from_slice(&body).with_context(shown);
    let _gone = inbox.send(Heard { origin, message: message.map(Some) });
    Ok(())
}

async fn hear_all(events: &mut Events, origin: Origin, inbox: &Inbox) {
    loop {
        let message = match events.next().await {
            Ok(Some(event)) => event.message(),
            Ok(None) => return,
            Err(error) => Err(error),
        };
        if !matches!(message, Ok(None)) && inbox.send(Heard { origin, message }).is_err() {
            return;
        }
    }
}
