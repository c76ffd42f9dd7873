//! A conversation with `toolyard stdio`: the tools that it lists.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

/// The messages of a client: a handshake, and the request for the list.
pub(crate) const REQUESTS: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
"#;

/// Runs a command that ends in `toolyard stdio`, and returns the names of the tools.
pub(crate) fn of(command: &mut Command) -> Vec<String> {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(REQUESTS.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{stderr}", output.status);
    in_responses(&String::from_utf8(output.stdout).unwrap())
}

/// Returns the names of the tools in the responses to [`REQUESTS`].
pub(crate) fn in_responses(text: &str) -> Vec<String> {
    let mut messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let list = messages.find(|message| message["id"] == 2).unwrap_or_else(|| panic!("no list in {text}"));
    let tools = list["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Fails unless the tools are those of the demo.
pub(crate) fn assert_demo(tools: &[String]) {
    assert!(tools.iter().any(|name| name == "reverse_string"), "{tools:?}");
}
