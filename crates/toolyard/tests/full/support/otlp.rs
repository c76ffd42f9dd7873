//! An OTLP collector over HTTP that keeps the ids of spans.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A span, by its ids in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CollectedSpan {
    /// Name of the process, as in the path of its endpoint.
    pub(crate) process: String,
    pub(crate) name: String,
    pub(crate) trace: String,
    pub(crate) id: String,
    /// Id of the parent; empty for a root.
    pub(crate) parent: String,
}

/// A collector for several processes. Its threads end with the test's process.
pub(crate) struct SpanCollector {
    address: SocketAddr,
    spans: Arc<Mutex<Vec<CollectedSpan>>>,
}

impl SpanCollector {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let spans = Arc::<Mutex<Vec<_>>>::default();
        let collected = spans.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, collected) = (stream.unwrap(), collected.clone());
                std::thread::spawn(move || serve(stream, &collected));
            }
        });
        Self { address, spans }
    }

    /// Returns the endpoint of a process, by which its spans are told apart.
    pub(crate) fn endpoint(&self, process: &str) -> String {
        format!("http://{}/{process}", self.address)
    }

    /// Returns the spans of a trace.
    pub(crate) fn trace(&self, id: &str) -> Vec<CollectedSpan> {
        let spans = self.spans.lock().unwrap();
        spans.iter().filter(|span| span.trace == id).cloned().collect()
    }
}

/// Answers the requests of a connection.
fn serve(stream: TcpStream, spans: &Mutex<Vec<CollectedSpan>>) {
    let (mut reader, mut writer) = (BufReader::new(stream.try_clone().unwrap()), stream);
    loop {
        let head: Vec<String> =
            reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
        let Some(path) = head.first().and_then(|line| line.split(' ').nth(1)) else { return };
        let length = head.iter().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
        });
        let mut body = vec![0; length.unwrap_or_default()];
        reader.read_exact(&mut body).unwrap();
        if let Some(process) = path.strip_suffix("/v1/traces") {
            spans.lock().unwrap().extend(spans_of(process.trim_start_matches('/'), &body));
        }
        // The process may have ended.
        if writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_err() {
            return;
        }
    }
}

/// Returns the spans of an `ExportTraceServiceRequest`.
fn spans_of(process: &str, request: &[u8]) -> Vec<CollectedSpan> {
    // By the numbers of the fields: resource_spans, scope_spans, spans.
    let of_resources = messages(request, 1);
    let of_scopes = of_resources.into_iter().flat_map(|resource| messages(resource, 2));
    let spans = of_scopes.flat_map(|scope| messages(scope, 2));
    let text =
        |span: &[u8], field: u64| messages(span, field).first().map(|text| text.to_vec()).unwrap_or_default();
    let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    spans
        .map(|span| CollectedSpan {
            process: process.to_owned(),
            trace: hex(text(span, 1)),
            id: hex(text(span, 2)),
            parent: hex(text(span, 4)),
            name: String::from_utf8(text(span, 5)).unwrap(),
        })
        .collect()
}

/// Returns the contents of a field of a message of Protocol Buffers: of messages, texts or bytes.
fn messages(mut message: &[u8], number: u64) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        match tag & 7 {
            0 => drop(varint(&mut message)),
            1 => message = &message[8..],
            2 => {
                let length = usize::try_from(varint(&mut message)).unwrap();
                let (content, rest) = message.split_at(length);
                found.extend((tag >> 3 == number).then_some(content));
                message = rest;
            }
            5 => message = &message[4..],
            kind => panic!("a field of the kind {kind}"),
        }
    }
    found
}

fn varint(message: &mut &[u8]) -> u64 {
    let mut value = 0;
    for position in 0.. {
        let (first, rest) = message.split_first().unwrap();
        *message = rest;
        value |= u64::from(first & 127) << (7 * position);
        if first & 128 == 0 {
            break;
        }
    }
    value
}
