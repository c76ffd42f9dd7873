//! Raw clients that send exactly the bytes that a test specifies.

use std::net::SocketAddr;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::http1::{BodyFraming, Http1Reader, HttpHead};
use crate::json::{self, JsonNode};

/// The members of `_meta` in every request of the modern era.
pub const MODERN_META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;

/// One connection to a server.
pub struct WireConnection {
    reader: Http1Reader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
}

/// A complete response.
#[derive(Debug)]
pub struct WireResponse {
    /// The head.
    pub head: HttpHead,
    /// The body, without its chunks.
    pub body: String,
}

impl WireConnection {
    /// Connects to a server.
    pub async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (reader, writer) = stream.into_split();
        Self { reader: Http1Reader::new(reader), writer }
    }

    /// Sends bytes. Ignores a failure to write: the test checks the response of the peer.
    pub async fn send(&mut self, bytes: &[u8]) {
        let _enough = self.writer.write_all(bytes).await;
    }

    /// Reads the next response; `None` if the connection ends without one.
    pub async fn response(&mut self) -> Option<WireResponse> {
        let head = self.reader.head().await.ok()??;
        let body = self.reader.body(head.framing(BodyFraming::ToEnd)).await.ok()?;
        Some(WireResponse { head, body })
    }

    /// Reads the head of the next response, which is a stream of events.
    pub async fn stream(mut self) -> WireEventStream {
        let head = self.reader.head().await.unwrap().unwrap();
        WireEventStream {
            framing: head.framing(BodyFraming::ToEnd),
            connection: self,
            head,
            text: String::new(),
            last_id: None,
        }
    }
}

/// A response that is read event by event.
pub struct WireEventStream {
    connection: WireConnection,
    /// The head of the response.
    pub head: HttpHead,
    framing: BodyFraming,
    text: String,
    /// The id of the latest event that had one.
    pub last_id: Option<String>,
}

impl WireEventStream {
    /// Reads the raw text up to the end of the stream.
    pub async fn rest(mut self) -> String {
        while let Ok(Some(piece)) = self.connection.reader.piece(&mut self.framing).await {
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
        self.text
    }

    /// Reads the text of the next event without the blank line after it; `None` at the end of the stream.
    pub async fn event(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(event);
            }
            let piece = self.connection.reader.piece(&mut self.framing).await.ok()??;
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    /// Reads the message of the next event that has one; `None` at the end of the stream.
    pub async fn message(&mut self) -> Option<String> {
        loop {
            let event = self.event().await?;
            let (id, event) = match event.strip_prefix("id: ").and_then(|event| event.split_once('\n')) {
                Some((id, event)) => (Some(id.to_owned()), event),
                None => (None, &*event),
            };
            self.last_id = id.or(self.last_id.take());
            match event.strip_prefix("event: message\ndata: ") {
                Some(message) => return Some(message.to_owned()),
                None => assert!(
                    event.starts_with(':') || event == "retry: 1000\ndata: ",
                    "neither a message, nor a comment, nor a time for a reconnection: {event:?}"
                ),
            }
        }
    }
}

/// Returns the bytes of a POST request. `headers` are complete lines with their line ends.
pub fn post(headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// The protocol mode of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientMode {
    /// In a session with this id.
    Session(String),
    /// Legacy requests without a session.
    Bare,
    /// Modern requests, each of which stands alone.
    Modern,
}

/// A client with one connection.
pub struct WireClient {
    connection: WireConnection,
    /// The protocol mode, which a test may change.
    pub mode: ClientMode,
}

impl WireClient {
    /// Connects a client that has sent nothing.
    pub async fn new(address: SocketAddr, mode: ClientMode) -> Self {
        Self { connection: WireConnection::open(address).await, mode }
    }

    /// Connects a client and opens a session.
    pub async fn in_session(address: SocketAddr) -> Self {
        let mut client = Self::new(address, ClientMode::Bare).await;
        let params =
            r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;
        let response = client.ask("initialize", params).await;
        client.mode = ClientMode::Session(response.head.header("mcp-session-id").unwrap().to_owned());
        client
    }

    /// Returns the headers that mirror the body of a request.
    pub fn headers(&self, method: &str, params: &str) -> String {
        match &self.mode {
            ClientMode::Session(id) => {
                format!("mcp-session-id: {id}\r\nmcp-protocol-version: 2025-11-25\r\n")
            }
            ClientMode::Bare => String::new(),
            ClientMode::Modern => {
                let params = json::read(params);
                let name = params.find("name").or_else(|| params.find("uri")).map(JsonNode::plain);
                let name = name.map(|name| format!("mcp-name: {name}\r\n")).unwrap_or_default();
                format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n{name}")
            }
        }
    }

    /// Sends a request with these parameters verbatim.
    pub async fn ask(&mut self, method: &str, params: &str) -> WireResponse {
        self.send("", method, params).await;
        self.answered().await
    }

    /// Sends a request and returns its response as a stream. Consumes the connection.
    pub async fn open(mut self, method: &str, params: &str) -> WireEventStream {
        self.send("accept: application/json, text/event-stream\r\n", method, params).await;
        self.connection.stream().await
    }

    /// Opens the stream of server notifications that belong to no request.
    pub async fn changes(mut self) -> WireEventStream {
        if self.mode == ClientMode::Modern {
            let filter = r#""notifications":{"toolsListChanged":true}"#;
            return self
                .open("subscriptions/listen", &format!("{{{filter},\"_meta\":{{{MODERN_META}}}}}"))
                .await;
        }
        let headers = self.headers("", "");
        let accept = "accept: text/event-stream\r\n";
        let head = format!("GET /mcp HTTP/1.1\r\nhost: localhost\r\n{accept}{headers}\r\n");
        self.connection.send(head.as_bytes()).await;
        self.connection.stream().await
    }

    /// Reads the response to the latest request.
    pub async fn answered(&mut self) -> WireResponse {
        self.connection.response().await.expect("a response")
    }

    /// Sends a request with additional headers, which are complete lines with their line ends.
    pub async fn send(&mut self, headers: &str, method: &str, params: &str) {
        let headers = headers.to_owned() + &self.headers(method, params);
        let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#);
        self.connection.send(&post(&headers, &body)).await;
    }

    /// Answers a request of the server.
    pub async fn respond(&mut self, response: &str) -> WireResponse {
        let headers = self.headers("", "");
        self.connection.send(&post(&headers, response)).await;
        self.answered().await
    }

    /// Calls a tool.
    pub async fn call(&mut self, name: &str, arguments: &str) -> WireResponse {
        self.ask("tools/call", &self.call_params(name, arguments, "")).await
    }

    /// Returns the parameters of a call. `meta` are optional members of `_meta` after the required ones.
    pub fn call_params(&self, name: &str, arguments: &str, meta: &str) -> String {
        let own = if self.mode == ClientMode::Modern { MODERN_META } else { "" };
        let comma = if own.is_empty() || meta.is_empty() { "" } else { "," };
        format!(r#"{{"name":"{name}","arguments":{arguments},"_meta":{{{own}{comma}{meta}}}}}"#)
    }

    /// Returns the definitions of all tools.
    pub async fn tools(&mut self) -> Vec<JsonNode> {
        let params = format!("{{\"_meta\":{{{MODERN_META}}}}}");
        let params = if self.mode == ClientMode::Modern { &params } else { "{}" };
        let response = self.ask("tools/list", params).await;
        json::read(&response.body).get("result").get("tools").items().to_vec()
    }
}
