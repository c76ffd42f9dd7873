//! Changes of the lists while the server serves.

use serde_json::json;
use toolyard_sdk::{RegisterError, Server, Tool, ToolFailure};

use crate::support::Peer;

fn open() -> &'static str {
    "open"
}

#[tokio::test]
async fn tools_are_added_and_removed() {
    let server = Server::new("test", "1.0.0").tool("b", "", open).unwrap().tool("a", "", open).unwrap();
    let handle = server.handle();
    let mut peer = Peer::initialized(server).await;
    assert_eq!(peer.tools().await, ["b", "a"]);

    handle.add_tool(Tool::new("c", ""), open).unwrap();
    assert_eq!(peer.next().await["method"], "notifications/tools/list_changed");
    assert_eq!(peer.tools().await, ["b", "a", "c"]);
    assert_eq!(peer.text("c", json!({})).await, "open");

    assert!(handle.remove_tool("b"));
    assert!(!handle.remove_tool("b"));
    assert_eq!(peer.next().await["method"], "notifications/tools/list_changed");
    assert_eq!(peer.tools().await, ["a", "c"]);
    assert_eq!(peer.text("b", json!({})).await, "error -32602: Unknown tool: b");

    handle.add_tool(Tool::new("b", ""), open).unwrap();
    assert_eq!(peer.next().await["method"], "notifications/tools/list_changed");
    assert_eq!(peer.tools().await, ["a", "c", "b"], "at the end of the list");
    let duplicate = handle.add_tool(Tool::new("b", ""), open).unwrap_err();
    assert_eq!(duplicate, RegisterError::Duplicate { kind: "tool", name: "b".into() });

    peer.close().await.unwrap();
    assert_eq!(handle.add_tool(Tool::new("d", ""), open), Err(RegisterError::Ended));
    assert!(!handle.remove_tool("a"));
}

#[tokio::test]
async fn tool_adds_another_tool() {
    let server = Server::new("test", "1.0.0");
    let handle = server.handle();
    let unlock = move || {
        handle.add_tool(Tool::new("open", "Opens the door."), open)?;
        Ok::<_, ToolFailure>("unlocked")
    };
    let server = server.tool("unlock", "Unlocks the door.", unlock).unwrap();
    let mut peer = Peer::initialized(server).await;
    assert_eq!(peer.text("unlock", json!({})).await, "unlocked");
    assert_eq!(peer.tools().await, ["unlock", "open"]);
    let again = "failed: the tool \"open\" is already registered: remove it first, or choose another name";
    assert_eq!(peer.text("unlock", json!({})).await, again);
}

#[tokio::test]
async fn capabilities_follow_the_registered_items() {
    let initialize = async |server: Server| {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}});
        let mut peer = Peer::connect(server);
        peer.request("initialize", params).await
    };
    let named = Server::new("door", "1.2.3").title("The door").instructions("Knock first.");
    let result = initialize(named.tool("open", "", open).unwrap()).await;
    assert_eq!(result["serverInfo"], json!({"name": "door", "title": "The door", "version": "1.2.3"}));
    assert_eq!(result["instructions"], "Knock first.");
    assert_eq!(result["capabilities"], json!({"tools": {"listChanged": true}, "logging": {}}));

    let server = Server::new("door", "1.2.3");
    let _handle = server.handle();
    let kinds: Vec<_> =
        initialize(server).await["capabilities"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(kinds, ["tools", "prompts", "resources", "completions", "logging"]);
}
