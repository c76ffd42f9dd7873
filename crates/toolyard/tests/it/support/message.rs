//! What clients send.

use serde_json::{Value, json};

/// A call without a word about its client: in a session, or bare.
pub(crate) fn call(id: u64, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}}})
}

/// The parameters of `initialize`.
pub(crate) fn handshake() -> Value {
    let client = json!({"name": "test", "version": "1"});
    json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
}

/// A request of the stateless era: its headers and its message. What `params._meta` says already stays.
pub(crate) fn modern(method: &str, mut params: Value) -> (Vec<(&str, &str)>, Value) {
    let meta = &mut params["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let headers = vec![STREAMS, ("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
    (headers, json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
}

/// The header by which a client says that it can read a stream of events.
pub(crate) const STREAMS: (&str, &str) = ("Accept", "application/json, text/event-stream");
