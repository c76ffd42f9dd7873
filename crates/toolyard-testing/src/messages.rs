//! JSON-RPC messages of clients.

use serde_json::{Value, json};

/// Returns a `tools/call` request without client information.
pub fn tool_call(id: u64, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}}})
}

/// Returns the parameters of `initialize`.
pub fn initialize_params() -> Value {
    let client = json!({"name": "test", "version": "1"});
    json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
}

/// Returns the headers and the message of a stateless request. Existing members of `params._meta` are kept.
pub fn stateless_request(method: &str, mut params: Value) -> (Vec<(&str, &str)>, Value) {
    let meta = &mut params["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let headers = vec![ACCEPT_STREAMS, ("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
    (headers, json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
}

/// The header of a client that accepts event streams.
pub const ACCEPT_STREAMS: (&str, &str) = ("Accept", "application/json, text/event-stream");
