//! HTTP requests as bytes on a socket, for tests that block.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use crate::wait::LIMIT;

/// A complete response.
#[derive(Debug)]
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    head: String,
    /// The body, without its chunks.
    pub body: String,
}

/// A sent request whose response is pending. Dropping it closes the connection.
pub struct SentRequest {
    socket: TcpStream,
    /// The part of the response that was read.
    bytes: Vec<u8>,
}

/// Sends a request and reads the response.
#[track_caller]
pub fn send(address: SocketAddr, line: &str, headers: &[(&str, &str)], body: &str) -> HttpResponse {
    open_request(address, line, headers, body)
        .response()
        .expect("the connection was closed without an answer")
}

/// Sends a request with a JSON body and, unless it is empty, an API key, and reads the response.
#[track_caller]
pub fn send_with_key(address: SocketAddr, key: &str, line: &str, body: &str) -> HttpResponse {
    let bearer = format!("Bearer {key}");
    let headers = [("Content-Type", "application/json"), ("Authorization", &*bearer)];
    send(address, line, if key.is_empty() { &headers[..1] } else { &headers }, body)
}

/// Sends a request and returns before the response.
#[track_caller]
pub fn open_request(address: SocketAddr, line: &str, headers: &[(&str, &str)], body: &str) -> SentRequest {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    let mut request = format!("{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
    socket.write_all(request.as_bytes()).unwrap();
    SentRequest { socket, bytes: Vec::new() }
}

impl SentRequest {
    /// Waits until the stream contains a text.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        let mut chunk = [0; 1024];
        while !String::from_utf8_lossy(&self.bytes).contains(text) {
            let length = self.socket.read(&mut chunk).unwrap();
            assert!(length > 0, "the stream ended before {text:?}");
            self.bytes.extend_from_slice(&chunk[..length]);
        }
    }

    /// Waits until the rest of the stream contains a text, and drops the stream up to its end: the next call waits for
    /// the next one.
    #[track_caller]
    pub fn skip_through(&mut self, text: &str) {
        self.wait_for(text);
        let read = String::from_utf8_lossy(&self.bytes).into_owned();
        self.bytes = read.split_once(text).unwrap().1.as_bytes().to_vec();
    }

    /// Reads the response to its end. Returns `None` if the connection was closed without one.
    #[track_caller]
    pub fn response(mut self) -> Option<HttpResponse> {
        match self.socket.read_to_end(&mut self.bytes) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
            read => read.unwrap(),
        };
        let text = String::from_utf8(self.bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().unwrap();
        let mut response = HttpResponse { status, head: head.to_owned(), body: body.to_owned() };
        if response.header("transfer-encoding") == Some("chunked") {
            response.body = without_chunks(body);
        }
        Some(response)
    }
}

fn without_chunks(mut chunked: &str) -> String {
    let mut body = String::new();
    loop {
        let (length, rest) = chunked.split_once("\r\n").unwrap();
        let (chunk, rest) = rest.split_at(usize::from_str_radix(length, 16).unwrap());
        if chunk.is_empty() {
            return body;
        }
        body += chunk;
        chunked = rest.strip_prefix("\r\n").unwrap();
    }
}

impl HttpResponse {
    /// Returns a header of the response.
    pub fn header(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        fields.into_iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Returns the messages of the response, which is an event stream or one JSON text.
    #[track_caller]
    pub fn messages(&self) -> Vec<Value> {
        match self.header("content-type") {
            Some("text/event-stream") => {
                let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
                // The first event of a stream that can be resumed has no message.
                let data = data.filter(|data| !data.is_empty());
                data.map(|data| serde_json::from_str(data).unwrap()).collect()
            }
            _ => vec![serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))],
        }
    }

    /// Returns the result of the only message.
    #[track_caller]
    pub fn result(&self) -> Value {
        let last = self.messages().pop().unwrap();
        assert!(last["result"].is_object(), "no result: {self:?}");
        last["result"].clone()
    }
}
