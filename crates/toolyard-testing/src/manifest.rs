//! Manifests of a gateway, as JSON.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Writes a registry of these handlers and returns its path.
#[track_caller]
pub fn registry_document(folder: &Path, handlers: &[Value]) -> PathBuf {
    let registry = json!({
        "apiVersion": "omnia.altairalabs.ai/v1alpha1",
        "kind": "ToolRegistry",
        "metadata": {"name": "test"},
        "spec": {"handlers": handlers},
    });
    write_json(folder.join("registry.json"), &registry)
}

/// Writes a `Toolyard` document with this `spec` and returns its path.
#[track_caller]
pub fn process_document(folder: &Path, spec: Value) -> PathBuf {
    let process = json!({"apiVersion": "toolyard.dev/v1alpha1", "kind": "Toolyard", "spec": spec});
    write_json(folder.join("process.json"), &process)
}

#[track_caller]
fn write_json(path: PathBuf, document: &Value) -> PathBuf {
    std::fs::write(&path, document.to_string()).unwrap();
    path
}

/// Returns a handler for a program on stdio.
pub fn stdio_handler(name: &str, command: &str, args: &[&str]) -> Value {
    let config = json!({"transport": "stdio", "command": command, "args": args});
    json!({"name": name, "type": "mcp", "mcpConfig": config})
}

/// Returns a handler for a server on streamable HTTP.
pub fn http_handler(name: &str, url: &str) -> Value {
    with_transport(name, "streamable-http", url)
}

/// Returns a handler for a server at a URL with this transport.
pub fn with_transport(name: &str, transport: &str, url: &str) -> Value {
    json!({"name": name, "type": "mcp", "mcpConfig": {"transport": transport, "endpoint": url}})
}
