//! A small MCP server with one tool, good or faulty: an upstream of the arena.

mod http;
mod stdio;

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use clap::ValueEnum;
use serde_json::{Value, json};
use xtask_client::{LEGACY, MODERN, McpEra};

pub(super) use self::http::serve_http;
use super::fault::ServerFault;

/// The transport of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum PeerTransport {
    Stdio,
    Http,
}

/// Arguments of the server.
#[derive(clap::Args)]
pub(super) struct PeerArgs {
    #[arg(long, value_enum)]
    transport: PeerTransport,
    #[arg(long, value_enum)]
    era: McpEra,
    /// Name of its tool, which returns its argument
    #[arg(long)]
    tool: String,
    #[arg(long, value_enum, requires = "switch")]
    fault: Option<ServerFault>,
    /// Show the fault while this file exists; each time the fault shows, the file grows by a byte
    #[arg(long)]
    switch: Option<PathBuf>,
    /// Address to listen on, over HTTP
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

/// Serves until its input ends or the process is killed.
pub(super) fn serve(args: PeerArgs) -> anyhow::Result<()> {
    let PeerArgs { transport, era, tool, fault, switch, listen } = args;
    let peer = ArenaPeer { era, tool, fault: fault.zip(switch), calls: AtomicU64::new(0) };
    match transport {
        PeerTransport::Stdio => stdio::serve(&peer),
        PeerTransport::Http => http::serve(peer, listen),
    }
}

/// Length of a result, and of a log line, of [`ServerFault::Large`], in bytes.
const LARGE_BYTES: usize = 1_000_000;
/// Response limit of the gateway, in bytes.
pub(super) const RESPONSE_LIMIT: usize = 2 * LARGE_BYTES;

/// The server.
struct ArenaPeer {
    era: McpEra,
    tool: String,
    fault: Option<(ServerFault, PathBuf)>,
    /// Number of calls of its tool.
    calls: AtomicU64,
}

/// A request: its ID, method and parameters.
pub(super) struct PeerRequest {
    id: Value,
    pub method: String,
    pub params: Value,
}

/// Code and message of an error.
pub(super) type RpcErrorParts = (i32, &'static str);

pub(super) const UNKNOWN_METHOD: i32 = -32601;
const UNKNOWN_VERSION: i32 = -32022;

impl PeerRequest {
    /// Returns `None` for a message that expects no response.
    pub(super) fn parse(message: &[u8]) -> Option<PeerRequest> {
        let mut message: Value = serde_json::from_slice(message).ok()?;
        let method = message["method"].as_str()?.to_owned();
        let id = message.get("id")?.clone();
        Some(PeerRequest { id, method, params: message["params"].take() })
    }

    pub(super) fn response(&self, answer: Result<Value, RpcErrorParts>) -> String {
        let id = &self.id;
        match answer {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, message)) => {
                // Only this error has data: the supported versions.
                let data = (code == UNKNOWN_VERSION).then(|| json!({"supported": [MODERN]}));
                let error = json!({"code": code, "message": message, "data": data});
                json!({"jsonrpc": "2.0", "id": id, "error": error})
            }
        }
        .to_string()
    }
}

impl ArenaPeer {
    /// `true` while the fault is active.
    fn is_active(&self, fault: ServerFault) -> bool {
        self.fault.as_ref().is_some_and(|(own, switch)| *own == fault && switch.exists())
    }

    /// As [`ArenaPeer::is_active`], and records the occurrence.
    fn trigger(&self, fault: ServerFault) -> bool {
        self.fault.as_ref().is_some_and(|(own, switch)| *own == fault && record_occurrence(switch).is_ok())
    }

    fn answer(&self, request: &PeerRequest) -> Result<Value, RpcErrorParts> {
        let result = match (self.era, &*request.method) {
            (_, "tools/list") => json!({"tools": [self.definition()]}),
            (_, "tools/call") => {
                json!({"content": [{"type": "text", "text": self.echo_text(&request.params)?}]})
            }
            (McpEra::Legacy, "initialize") => {
                let about = json!({"name": self.tool, "version": "1.0.0"});
                json!({"protocolVersion": LEGACY, "capabilities": {"tools": {}}, "serverInfo": about})
            }
            (McpEra::Legacy, "ping") => json!({}),
            (McpEra::Modern, "server/discover") => discover_result(),
            (McpEra::Modern, "initialize") => {
                return Err((UNKNOWN_VERSION, "unsupported protocol version"));
            }
            _ => return Err((UNKNOWN_METHOD, "method not found")),
        };
        Ok(if self.era == McpEra::Modern { modern_result(result) } else { result })
    }

    fn definition(&self) -> Value {
        let text =
            json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
        json!({"name": self.tool, "description": "Returns its argument.", "inputSchema": text})
    }

    /// The argument of the tool, followed by padding with [`ServerFault::Large`], beyond the limit in every eighth
    /// result.
    fn echo_text(&self, params: &Value) -> Result<String, RpcErrorParts> {
        let text = params["arguments"]["text"].as_str().filter(|_| params["name"] == *self.tool);
        let text = text.ok_or((-32602, "unknown tool, or missing argument `text`"))?;
        let padding =
            match (self.is_active(ServerFault::Large), self.calls.fetch_add(1, Ordering::Relaxed) % 8) {
                (true, 7) => RESPONSE_LIMIT,
                (true, _) => LARGE_BYTES,
                (false, _) => 0,
            };
        Ok(format!("{text}{}", "x".repeat(padding)))
    }
}

/// The result of `server/discover`.
pub(super) fn discover_result() -> Value {
    json!({"supportedVersions": [MODERN], "capabilities": {"tools": {}}})
}

/// Adds the members that the modern era requires.
pub(super) fn modern_result(mut result: Value) -> Value {
    result["resultType"] = "complete".into();
    result["ttlMs"] = 60_000.into();
    result["cacheScope"] = "public".into();
    result
}

/// Records an occurrence of the fault. Errors if the switch file does not exist.
pub(super) fn record_occurrence(switch: &Path) -> io::Result<()> {
    OpenOptions::new().append(true).open(switch)?.write_all(b".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_supports_only_its_era() {
        let cases = [
            (McpEra::Legacy, "initialize", true),
            (McpEra::Legacy, "server/discover", false),
            (McpEra::Modern, "initialize", false),
            (McpEra::Modern, "server/discover", true),
            (McpEra::Legacy, "tools/list", true),
            (McpEra::Modern, "tools/list", true),
        ];
        for (era, method, is_known) in cases {
            let peer = ArenaPeer { era, tool: "echo".to_owned(), fault: None, calls: AtomicU64::new(0) };
            let request = json!({"jsonrpc": "2.0", "id": 1, "method": method}).to_string();
            let answer = peer.answer(&PeerRequest::parse(request.as_bytes()).unwrap());
            assert_eq!(answer.is_ok(), is_known, "{era:?} {method}");
        }
    }

    #[test]
    fn notification_gets_no_response() {
        assert!(PeerRequest::parse(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).is_none());
    }
}
