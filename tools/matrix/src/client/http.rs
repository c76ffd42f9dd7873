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

use super::link::{InboxMessage, LinkInbox, MessageOrigin};
use super::param_headers::ParamHeaders;
use super::stream::{EventReader, media_type, send};
use super::{McpRevision, RESPONSE_TIMEOUT};

const VERSION_HEADER: &str = "mcp-protocol-version";
const SESSION_HEADER: &str = "mcp-session-id";

pub(super) struct HttpLink {
    address: SocketAddr,
    revision: McpRevision,
    /// The headers of every request; a session adds its own.
    headers: HeaderMap,
    session: Arc<Mutex<Option<HeaderValue>>>,
    param_headers: ParamHeaders,
    inbox: LinkInbox,
    streams: JoinSet<()>,
    request_streams: HashMap<u64, AbortHandle>,
}

impl HttpLink {
    pub(super) fn new(address: SocketAddr, revision: McpRevision, inbox: LinkInbox) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if revision.is_modern() {
            headers.insert(VERSION_HEADER, HeaderValue::from_static(revision.name()));
        }
        Self {
            address,
            revision,
            headers,
            session: Arc::default(),
            param_headers: ParamHeaders::default(),
            inbox,
            streams: JoinSet::new(),
            request_streams: HashMap::new(),
        }
    }

    /// Adds the header of the version, which exists since 2025-06-18.
    pub(super) fn set_revision(&mut self, revision: McpRevision) {
        if revision >= McpRevision::V2025_06_18 {
            self.headers.insert(VERSION_HEADER, HeaderValue::from_static(revision.name()));
        }
    }

    /// Reads the parameter headers of tools. The legacy era has none.
    pub(super) fn learn_tools(&mut self, tools: &Value) -> anyhow::Result<()> {
        if self.revision.is_modern() { self.param_headers.learn(tools) } else { Ok(()) }
    }

    pub(super) async fn listen(&mut self) -> anyhow::Result<()> {
        let request = self.build_request(Method::GET, Bytes::new())?;
        let response =
            timeout(RESPONSE_TIMEOUT, send(self.address, request)).await.context("no stream in time")??;
        let (mut events, inbox) = (EventReader::of(response)?, self.inbox.clone());
        self.streams.spawn(async move { receive_stream(&mut events, MessageOrigin::Shared, &inbox).await });
        Ok(())
    }

    /// Sends a request; its messages go to the inbox.
    pub(super) async fn request(&mut self, id: u64, method: &str, message: &Value) -> anyhow::Result<()> {
        let mut request = self.build_request(Method::POST, message.to_string().into())?;
        if self.revision.is_modern() {
            request.headers_mut().insert("mcp-method", HeaderValue::from_str(method)?);
            if let Some(name) = repeated_name(method, &message["params"]) {
                request.headers_mut().insert("mcp-name", HeaderValue::from_str(name)?);
            }
            if method == "tools/call" {
                request.headers_mut().extend(self.param_headers.headers(&message["params"])?);
            }
        }
        let (address, inbox, session) = (self.address, self.inbox.clone(), self.session.clone());
        let stream = self.streams.spawn(async move {
            let origin = MessageOrigin::Request(id);
            let outcome = match send(address, request).await {
                Ok(response) => {
                    store_session(response.headers(), &session);
                    receive_response(response, origin, &inbox).await
                }
                Err(error) => Err(error),
            };
            // Fails if the client is gone.
            let _gone = inbox.send(InboxMessage { origin, message: outcome.map(|()| None) });
        });
        self.request_streams.insert(id, stream);
        Ok(())
    }

    pub(super) async fn notify(&mut self, message: &Value) -> anyhow::Result<()> {
        let request = self.build_request(Method::POST, message.to_string().into())?;
        let response = timeout(RESPONSE_TIMEOUT, send(self.address, request))
            .await
            .context("not accepted in time")??;
        let status = response.status();
        ensure!(status == StatusCode::ACCEPTED, "unexpected status {status} for {message}");
        Ok(())
    }

    pub(super) fn drop_stream(&mut self, id: u64) {
        if let Some(stream) = self.request_streams.remove(&id) {
            stream.abort();
        }
    }

    fn build_request(&self, method: Method, body: Bytes) -> anyhow::Result<Request<Full<Bytes>>> {
        let mut request = Request::builder().method(method).uri("/mcp").body(Full::new(body))?;
        request.headers_mut().clone_from(&self.headers);
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = &*session {
            request.headers_mut().insert(SESSION_HEADER, session.clone());
        }
        Ok(request)
    }
}

/// The value of the header `Mcp-Name` (2026-07-28, basic/transports/streamable-http).
fn repeated_name<'a>(method: &str, params: &'a Value) -> Option<&'a str> {
    let member = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    params[member].as_str()
}

fn store_session(headers: &HeaderMap, session: &Mutex<Option<HeaderValue>>) {
    if let Some(id) = headers.get(SESSION_HEADER) {
        *session.lock().unwrap_or_else(PoisonError::into_inner) = Some(id.clone());
    }
}

async fn receive_response(
    response: Response<Incoming>,
    origin: MessageOrigin,
    inbox: &LinkInbox,
) -> anyhow::Result<()> {
    if media_type(response.headers()) == "text/event-stream" {
        receive_stream(&mut EventReader::of(response)?, origin, inbox).await;
        return Ok(());
    }
    let (status, kind) = (response.status(), media_type(response.headers()).to_owned());
    let body = response.into_body().collect().await?.to_bytes();
    let description = || format!("{status} with {kind:?}: {}", String::from_utf8_lossy(&body));
    ensure!(kind == "application/json", "{}", description());
    let message = serde_json::from_slice(&body).with_context(description);
    let _gone = inbox.send(InboxMessage { origin, message: message.map(Some) });
    Ok(())
}

async fn receive_stream(events: &mut EventReader, origin: MessageOrigin, inbox: &LinkInbox) {
    loop {
        let message = match events.next().await {
            Ok(Some(event)) => event.message(),
            Ok(None) => return,
            Err(error) => Err(error),
        };
        if !matches!(message, Ok(None)) && inbox.send(InboxMessage { origin, message }).is_err() {
            return;
        }
    }
}
