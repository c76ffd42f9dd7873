//! The HTTP parts of the clients.

use std::collections::HashMap;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::{AbortHandle, JoinSet};
use toolyard_net::sse::{SseDecoder, SseEvent};

use crate::client::MODERN;

/// A response with its connection.
pub(crate) struct Exchange {
    pub(crate) response: Response<Incoming>,
    decoder: SseDecoder,
    /// The ids of the received events.
    pub(crate) ids: Vec<String>,
    _connection: JoinSet<()>,
}

impl Exchange {
    /// Sends a request on a connection of its own.
    pub(crate) async fn begin(address: SocketAddr, request: Request<Full<Bytes>>) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        let mut driving = JoinSet::new();
        driving.spawn(async move { drop(connection.await) });
        let response = sender.send_request(request).await.unwrap();
        Self { response, decoder: SseDecoder::new(1 << 20), ids: Vec::new(), _connection: driving }
    }

    pub(crate) fn is_stream(&self) -> bool {
        let kind = self.response.headers().get(header::CONTENT_TYPE);
        kind.is_some_and(|kind| kind == "text/event-stream")
    }

    /// Returns the next event with data; `None` at the end of the stream.
    pub(crate) async fn event(&mut self) -> Option<SseEvent> {
        loop {
            if let Some(event) = self.decoder.next_event().unwrap() {
                self.ids.extend(event.id.clone());
                match event.data.is_empty() {
                    true => continue,
                    false => return Some(event),
                }
            }
            let frame = self.response.frame().await?.ok()?;
            self.decoder.push(&frame.into_data().unwrap());
        }
    }

    /// Returns the text of a body that is no stream.
    pub(crate) async fn text(self) -> String {
        String::from_utf8(self.response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    /// Returns the id of the first event, which has no data.
    pub(crate) async fn priming(&mut self) -> String {
        loop {
            if let Some(event) = self.decoder.next_event().unwrap() {
                assert!(event.data.is_empty());
                return event.id.unwrap();
            }
            let frame = self.response.frame().await.unwrap().unwrap();
            self.decoder.push(&frame.into_data().unwrap());
        }
    }

    /// Returns the text of the next message.
    pub(crate) async fn message(&mut self) -> Option<String> {
        self.event().await.as_ref().map(text_of)
    }

    /// Forwards every event to `heard`.
    async fn tell(mut self, received: &UnboundedSender<String>) {
        while let Some(event) = self.event().await {
            let _unheard = received.send(text_of(&event));
        }
    }
}

fn text_of(event: &SseEvent) -> String {
    assert_eq!(event.kind, "message");
    String::from_utf8(event.data.to_vec()).unwrap()
}

/// Builds a request with these headers.
pub(crate) fn request(method: Method, path: &str, headers: &HeaderMap, body: &str) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(Bytes::from(body.to_owned())));
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().unwrap();
    *request.headers_mut() = headers.clone();
    request.headers_mut().insert(header::HOST, "localhost".parse().unwrap());
    request
}

/// A client of streamable HTTP.
pub(crate) struct Web {
    address: SocketAddr,
    received: UnboundedSender<String>,
    /// Headers of all requests.
    headers: HeaderMap,
    modern: bool,
    working: JoinSet<()>,
    requests: HashMap<u64, AbortHandle>,
}

impl Web {
    pub(crate) fn new(
        address: SocketAddr,
        received: UnboundedSender<String>,
        revision: &'static str,
    ) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
        headers.insert(header::ACCEPT, "application/json, text/event-stream".parse().unwrap());
        if revision >= "2025-06-18" {
            headers.insert("mcp-protocol-version", revision.parse().unwrap());
        }
        let modern = revision == MODERN;
        Self { address, received, headers, modern, working: JoinSet::new(), requests: HashMap::new() }
    }

    /// Posts a message. The response to a request or a batch is received later; anything else is accepted.
    pub(crate) async fn post(&mut self, message: &str) {
        let read: Value = serde_json::from_str(message).unwrap();
        let request = request(Method::POST, "/mcp", &self.headers_of(&read), message);
        let is_request = read.get("id").is_some() && read.get("method").is_some();
        if !is_request && !read.is_array() {
            let exchange = Exchange::begin(self.address, request).await;
            assert_eq!(exchange.response.status(), StatusCode::ACCEPTED);
            return;
        }
        if read["method"] == "initialize" && !self.modern {
            return self.open(request).await;
        }
        let (address, received) = (self.address, self.received.clone());
        let working = self.working.spawn(async move {
            let exchange = Exchange::begin(address, request).await;
            let status = exchange.response.status();
            if exchange.is_stream() {
                return exchange.tell(&received).await;
            }
            let text = exchange.text().await;
            let _unheard = received.send(if status == StatusCode::OK {
                text
            } else {
                format!("{} {text}", status.as_u16())
            });
        });
        self.requests.insert(read["id"].as_u64().unwrap_or_default(), working);
    }

    /// Posts a text and returns the status and the text of the response.
    pub(crate) async fn exchange(&self, text: &str) -> String {
        let exchange =
            Exchange::begin(self.address, request(Method::POST, "/mcp", &self.headers, text)).await;
        format!("{} {}", exchange.response.status().as_u16(), exchange.text().await)
    }

    async fn open(&mut self, request: Request<Full<Bytes>>) {
        let exchange = Exchange::begin(self.address, request).await;
        let session = exchange.response.headers().get("mcp-session-id").unwrap().clone();
        self.headers.insert("mcp-session-id", session);
        let _unheard = self.received.send(exchange.text().await);
    }

    /// Returns the headers that mirror a message.
    fn headers_of(&self, message: &Value) -> HeaderMap {
        let mut headers = self.headers.clone();
        if self.modern {
            let method = message["method"].as_str().unwrap_or_default();
            headers.insert("mcp-method", method.parse().unwrap());
            let params = &message["params"];
            let name = match method {
                "tools/call" | "prompts/get" => params["name"].as_str(),
                "resources/read" => params["uri"].as_str(),
                "tasks/get" | "tasks/update" | "tasks/cancel" => params["taskId"].as_str(),
                _ => None,
            };
            if let Some(name) = name {
                headers.insert("mcp-name", name.parse().unwrap());
            }
        }
        headers
    }

    /// Opens the notification stream of a legacy client.
    pub(crate) async fn listen(&mut self) {
        let exchange = Exchange::begin(self.address, request(Method::GET, "/mcp", &self.headers, "")).await;
        assert!(exchange.is_stream());
        let received = self.received.clone();
        self.working.spawn(async move { exchange.tell(&received).await });
    }

    pub(crate) fn disconnect(&mut self, id: u64) {
        self.requests[&id].abort();
    }

    /// Sets the principal.
    pub(crate) fn set_principal(&mut self, principal: &'static str) {
        self.headers.insert("x-principal", principal.parse().unwrap());
    }

    /// Returns the status of a request with another method, or of an answer to the server.
    pub(crate) async fn status(&self, method: Method, body: &str) -> u16 {
        Exchange::begin(self.address, request(method, "/mcp", &self.headers, body))
            .await
            .response
            .status()
            .as_u16()
    }

    /// Accepts no streams from now on.
    pub(crate) fn accept_json_only(&mut self) {
        self.headers.insert(header::ACCEPT, "application/json".parse().unwrap());
    }
}

/// A client of HTTP+SSE.
pub(crate) struct Sse {
    address: SocketAddr,
    path: String,
    _stream: JoinSet<()>,
}

impl Sse {
    pub(crate) async fn open(address: SocketAddr, received: UnboundedSender<String>) -> Self {
        let mut exchange =
            Exchange::begin(address, request(Method::GET, "/sse", &HeaderMap::new(), "")).await;
        assert!(exchange.is_stream());
        let first = exchange.event().await.unwrap();
        assert_eq!(first.kind, "endpoint");
        let path = String::from_utf8(first.data.to_vec()).unwrap();
        let mut stream = JoinSet::new();
        stream.spawn(async move { exchange.tell(&received).await });
        Self { address, path, _stream: stream }
    }

    pub(crate) async fn post(&mut self, message: &str) {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
        let exchange =
            Exchange::begin(self.address, request(Method::POST, &self.path, &headers, message)).await;
        assert_eq!(exchange.response.status(), StatusCode::ACCEPTED);
    }
}
