//! Requests as bytes on a socket, so that a test sees what is sent and what comes back.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use super::LIMIT;

/// A response, read to its end.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

/// A request that was sent. Dropping it hangs up.
pub(crate) struct Exchange {
    socket: TcpStream,
    /// What of the response was read.
    bytes: Vec<u8>,
}

/// Sends a request and reads the response.
#[track_caller]
pub(crate) fn send(address: SocketAddr, line: &str, headers: &[(&str, &str)], body: &str) -> Response {
    open(address, line, headers, body).response().expect("the connection was closed without an answer")
}

/// Sends a request, and leaves it to the caller when to read the response.
#[track_caller]
pub(crate) fn open(address: SocketAddr, line: &str, headers: &[(&str, &str)], body: &str) -> Exchange {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    let mut request = format!("{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
    socket.write_all(request.as_bytes()).unwrap();
    Exchange { socket, bytes: Vec::new() }
}

impl Exchange {
    /// Waits for the part of a stream that has this in it.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) {
        let mut chunk = [0; 1024];
        while !String::from_utf8_lossy(&self.bytes).contains(text) {
            let length = self.socket.read(&mut chunk).unwrap();
            assert!(length > 0, "the stream ended before {text:?}");
            self.bytes.extend_from_slice(&chunk[..length]);
        }
    }

    /// The response, read to its end; `None` where the connection was closed without any.
    #[track_caller]
    pub(crate) fn response(mut self) -> Option<Response> {
        match self.socket.read_to_end(&mut self.bytes) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
            read => read.unwrap(),
        };
        let text = String::from_utf8(self.bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().unwrap();
        let mut response = Response { status, head: head.to_owned(), body: body.to_owned() };
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

impl Response {
    /// A header of the response.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        fields.into_iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The messages of the response, whether it is a stream of events or one JSON text.
    #[track_caller]
    pub(crate) fn messages(&self) -> Vec<Value> {
        match self.header("content-type") {
            Some("text/event-stream") => {
                let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
                data.map(|data| serde_json::from_str(data).unwrap()).collect()
            }
            _ => vec![serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))],
        }
    }

    /// The result of the request.
    #[track_caller]
    pub(crate) fn result(&self) -> Value {
        let last = self.messages().pop().unwrap();
        assert!(last["result"].is_object(), "no result: {self:?}");
        last["result"].clone()
    }
}
