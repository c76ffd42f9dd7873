//! A small MCP server with one tool, good or faulty: what stands behind the gateway in the arena.

mod http;
mod stdio;

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use clap::ValueEnum;
use serde_json::{Value, json};

use super::fault::Fault;
use crate::client::{Era, LEGACY, MODERN};

/// How a server is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Transport {
    Stdio,
    Http,
}

/// What the server is told.
#[derive(clap::Args)]
pub(super) struct Args {
    #[arg(long, value_enum)]
    transport: Transport,
    #[arg(long, value_enum)]
    era: Era,
    /// The name of its tool, which returns the text that it is given
    #[arg(long)]
    tool: String,
    #[arg(long, value_enum, requires = "switch")]
    fault: Option<Fault>,
    /// The fault shows while this file is there; each time it does, the file grows by a byte
    #[arg(long)]
    switch: Option<PathBuf>,
    /// Where to listen, over HTTP
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

/// Serves until its input ends, or until it is killed.
pub(super) fn serve(args: Args) -> anyhow::Result<()> {
    let Args { transport, era, tool, fault, switch, listen } = args;
    let peer = Peer { era, tool, fault: fault.zip(switch), calls: AtomicU64::new(0) };
    match transport {
        Transport::Stdio => stdio::serve(&peer),
        Transport::Http => http::serve(peer, listen),
    }
}

/// The length of a result, and of a log line, of [`Fault::Large`].
const LARGE: usize = 1_000_000;
/// What the gateway takes, in bytes: more than that.
pub(super) const LIMIT: usize = 2 * LARGE;

/// The server.
struct Peer {
    era: Era,
    tool: String,
    fault: Option<(Fault, PathBuf)>,
    /// How often its tool was called.
    calls: AtomicU64,
}

/// A request: its id, its method and its parameters.
struct Request {
    id: Value,
    method: String,
    params: Value,
}

/// The code and the message of an error.
type Refusal = (i32, &'static str);

const UNKNOWN_METHOD: i32 = -32601;
const UNKNOWN_VERSION: i32 = -32022;

impl Request {
    /// Nothing where the message wants no answer.
    fn parse(message: &[u8]) -> Option<Request> {
        let mut message: Value = serde_json::from_slice(message).ok()?;
        let method = message["method"].as_str()?.to_owned();
        let id = message.get("id")?.clone();
        Some(Request { id, method, params: message["params"].take() })
    }

    fn response(&self, answer: Result<Value, Refusal>) -> String {
        let id = &self.id;
        match answer {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, message)) => {
                // What else a client could ask for; only this error has to say so.
                let data = (code == UNKNOWN_VERSION).then(|| json!({"supported": [MODERN]}));
                let error = json!({"code": code, "message": message, "data": data});
                json!({"jsonrpc": "2.0", "id": id, "error": error})
            }
        }
        .to_string()
    }
}

impl Peer {
    /// Whether the fault shows now.
    fn has(&self, fault: Fault) -> bool {
        self.fault.as_ref().is_some_and(|(own, switch)| *own == fault && switch.exists())
    }

    /// The same, where the fault is about to show: that is noted.
    fn commits(&self, fault: Fault) -> bool {
        self.fault.as_ref().is_some_and(|(own, switch)| *own == fault && note(switch).is_ok())
    }

    fn answer(&self, request: &Request) -> Result<Value, Refusal> {
        let mut result = match (self.era, &*request.method) {
            (_, "tools/list") => json!({"tools": [self.definition()]}),
            (_, "tools/call") => json!({"content": [{"type": "text", "text": self.said(&request.params)?}]}),
            (Era::Legacy, "initialize") => {
                let about = json!({"name": self.tool, "version": "1.0.0"});
                json!({"protocolVersion": LEGACY, "capabilities": {"tools": {}}, "serverInfo": about})
            }
            (Era::Legacy, "ping") => json!({}),
            (Era::Modern, "server/discover") => {
                json!({"supportedVersions": [MODERN], "capabilities": {"tools": {}}})
            }
            (Era::Modern, "initialize") => {
                return Err((UNKNOWN_VERSION, "this protocol version is not served"));
            }
            _ => return Err((UNKNOWN_METHOD, "there is no such method")),
        };
        if self.era == Era::Modern {
            result["resultType"] = "complete".into();
            result["ttlMs"] = 60_000.into();
            result["cacheScope"] = "public".into();
        }
        Ok(result)
    }

    fn definition(&self) -> Value {
        let text =
            json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
        json!({"name": self.tool, "description": "Returns the text that it is given.", "inputSchema": text})
    }

    /// The text that the tool was given. With [`Fault::Large`] much follows it, and in every eighth result too much.
    fn said(&self, params: &Value) -> Result<String, Refusal> {
        let text = params["arguments"]["text"].as_str().filter(|_| params["name"] == *self.tool);
        let text = text.ok_or((-32602, "there is one tool, and it wants a text"))?;
        let filling = match (self.has(Fault::Large), self.calls.fetch_add(1, Ordering::Relaxed) % 8) {
            (true, 7) => LIMIT,
            (true, _) => LARGE,
            (false, _) => 0,
        };
        Ok(format!("{text}{}", "x".repeat(filling)))
    }
}

/// Notes that the fault has shown once more. Fails where there is no such file.
pub(super) fn note(switch: &Path) -> io::Result<()> {
    OpenOptions::new().append(true).open(switch)?.write_all(b".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_speaks_its_era_only() {
        let cases = [
            (Era::Legacy, "initialize", true),
            (Era::Legacy, "server/discover", false),
            (Era::Modern, "initialize", false),
            (Era::Modern, "server/discover", true),
            (Era::Legacy, "tools/list", true),
            (Era::Modern, "tools/list", true),
        ];
        for (era, method, is_known) in cases {
            let peer = Peer { era, tool: "echo".to_owned(), fault: None, calls: AtomicU64::new(0) };
            let request = json!({"jsonrpc": "2.0", "id": 1, "method": method}).to_string();
            let answer = peer.answer(&Request::parse(request.as_bytes()).unwrap());
            assert_eq!(answer.is_ok(), is_known, "{era:?} {method}");
        }
    }

    #[test]
    fn a_notification_wants_no_answer() {
        assert!(Request::parse(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).is_none());
    }
}
