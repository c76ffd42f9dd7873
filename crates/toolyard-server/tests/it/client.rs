//! Clients that say exactly what a test has them say.

use std::net::SocketAddr;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::http1::{Framing, Head, Reader};
use crate::json::{self, Node};

/// What every request of the modern era says about itself: members of `_meta`.
pub(crate) const MODERN_META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;

/// One connection to the gateway.
pub(crate) struct Connection {
    reader: Reader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
}

/// A whole response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) head: Head,
    pub(crate) body: String,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (reader, writer) = stream.into_split();
        Self { reader: Reader::new(reader), writer }
    }

    /// Sends bytes. That the other side has heard enough is no fault: what it says to them is what counts.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        let _enough = self.writer.write_all(bytes).await;
    }

    /// The next response; `None` where the connection ends without one.
    pub(crate) async fn response(&mut self) -> Option<Response> {
        let head = self.reader.head().await.ok()??;
        let body = self.reader.body(head.framing(Framing::ToEnd)).await.ok()?;
        Some(Response { head, body })
    }

    /// The head of the next response, which is a stream of events.
    pub(crate) async fn stream(mut self) -> Stream {
        let head = self.reader.head().await.unwrap().unwrap();
        Stream {
            framing: head.framing(Framing::ToEnd),
            connection: self,
            head,
            text: String::new(),
            last_id: None,
        }
    }
}

/// A response that is read event by event.
pub(crate) struct Stream {
    connection: Connection,
    pub(crate) head: Head,
    framing: Framing,
    text: String,
    /// The id of the latest event that had one.
    pub(crate) last_id: Option<String>,
}

impl Stream {
    /// All that comes until the stream ends, as it is.
    pub(crate) async fn rest(mut self) -> String {
        while let Ok(Some(piece)) = self.connection.reader.piece(&mut self.framing).await {
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
        self.text
    }

    /// The message of the next event; `None` at the end of the stream.
    pub(crate) async fn message(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                let (id, event) = match event.strip_prefix("id: ").and_then(|event| event.split_once('\n')) {
                    Some((id, event)) => (Some(id.to_owned()), event),
                    None => (None, &*event),
                };
                self.last_id = id.or(self.last_id.take());
                match event.strip_prefix("event: message\ndata: ") {
                    Some(message) => return Some(message.to_owned()),
                    None => assert!(
                        event.starts_with(':') || event == "retry: 1000\ndata: ",
                        "neither a message, nor a comment, nor something to come back with: {event:?}"
                    ),
                }
                continue;
            }
            let piece = self.connection.reader.piece(&mut self.framing).await.ok()??;
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }
}

/// The bytes of a POST. `headers` are lines with their ends.
pub(crate) fn post(headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// How a client speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Speech {
    /// In a session, with this id.
    Session(String),
    /// As in a session, without having opened one.
    Bare,
    /// Every request stands for itself.
    Modern,
}

/// A client with one connection.
pub(crate) struct Client {
    connection: Connection,
    pub(crate) speech: Speech,
}

impl Client {
    pub(crate) async fn new(address: SocketAddr, speech: Speech) -> Self {
        Self { connection: Connection::open(address).await, speech }
    }

    /// A client that has opened a session.
    pub(crate) async fn in_session(address: SocketAddr) -> Self {
        let mut client = Self::new(address, Speech::Bare).await;
        let params =
            r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;
        let response = client.ask("initialize", params).await;
        client.speech = Speech::Session(response.head.header("mcp-session-id").unwrap().to_owned());
        client
    }

    /// The headers of a request, which say what its body says.
    pub(crate) fn headers(&self, method: &str, params: &str) -> String {
        match &self.speech {
            Speech::Session(id) => format!("mcp-session-id: {id}\r\nmcp-protocol-version: 2025-11-25\r\n"),
            Speech::Bare => String::new(),
            Speech::Modern => {
                let params = json::read(params);
                let name = params.find("name").or_else(|| params.find("uri")).map(Node::plain);
                let name = name.map(|name| format!("mcp-name: {name}\r\n")).unwrap_or_default();
                format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n{name}")
            }
        }
    }

    /// Sends a request with these parameters, as they are.
    pub(crate) async fn ask(&mut self, method: &str, params: &str) -> Response {
        self.send("", method, params).await;
        self.answered().await
    }

    /// Sends a request and takes what is said to it as a stream. The connection is used up.
    pub(crate) async fn open(mut self, method: &str, params: &str) -> Stream {
        self.send("accept: application/json, text/event-stream\r\n", method, params).await;
        self.connection.stream().await
    }

    /// The stream on which this client is told of what belongs to no request.
    pub(crate) async fn changes(mut self) -> Stream {
        if self.speech == Speech::Modern {
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

    /// The answer to what was sent.
    pub(crate) async fn answered(&mut self) -> Response {
        self.connection.response().await.expect("a response")
    }

    pub(crate) async fn send(&mut self, headers: &str, method: &str, params: &str) {
        let headers = headers.to_owned() + &self.headers(method, params);
        let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#);
        self.connection.send(&post(&headers, &body)).await;
    }

    /// Answers a request of the server.
    pub(crate) async fn respond(&mut self, response: &str) -> Response {
        let headers = self.headers("", "");
        self.connection.send(&post(&headers, response)).await;
        self.answered().await
    }

    /// Calls a tool.
    pub(crate) async fn call(&mut self, name: &str, arguments: &str) -> Response {
        self.ask("tools/call", &self.call_params(name, arguments, "")).await
    }

    /// The parameters of a call. `meta` are members of `_meta` beside those that must be there.
    pub(crate) fn call_params(&self, name: &str, arguments: &str, meta: &str) -> String {
        let own = if self.speech == Speech::Modern { MODERN_META } else { "" };
        let comma = if own.is_empty() || meta.is_empty() { "" } else { "," };
        format!(r#"{{"name":"{name}","arguments":{arguments},"_meta":{{{own}{comma}{meta}}}}}"#)
    }

    /// The definitions of all tools.
    pub(crate) async fn tools(&mut self) -> Vec<Node> {
        let params = format!("{{\"_meta\":{{{MODERN_META}}}}}");
        let params = if self.speech == Speech::Modern { &params } else { "{}" };
        let response = self.ask("tools/list", params).await;
        json::read(&response.body).get("result").get("tools").items().to_vec()
    }
}
