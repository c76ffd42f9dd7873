//! Servers added while a gateway runs: in one process, on a shared store, and after a restart.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_core::registry::EntryKind;
use toolyard_core::store::{KeySpace, Store};
use toolyard_core::{Call, Json, Outcome, Registry};
use toolyard_server::RunningGateway;
use toolyard_testing::upstream::{
    ReceivedRequest, ReservedAddress, ScriptedReply, ScriptedUpstream, TestUpstream, UpstreamEra, but,
};

use crate::gateway::{entry, manifest_of, started_on};
use crate::keyed_gateway::memory;

/// The settings of `builtins` that these tests need.
const MCP: &str = "timeouts: {keyCheck: 20ms, connect: 5s}, builtins: {scripts: {enabled: false}, memory: {enabled: false}, \
results: {enabled: false}, guides: {enabled: false}, skills: {enabled: false}, search: {enabled: false}, mcp: {ALLOW}}";

const ALLOWED: &str = "servers: 2, allow: {hosts: [127.0.0.1], commands: [/nowhere/server]}";

/// A server whose tool answers with its own name.
fn server(word: &'static str) -> ScriptedUpstream {
    let tool = format!(r#"{{"name":"{word}","description":"Says it.","inputSchema":{{"type":"object"}}}}"#);
    ScriptedUpstream::new(UpstreamEra::Modern, &[&tool], move |request: &ReceivedRequest| {
        ScriptedReply::result(request, &format!(r#"{{"content":[{{"type":"text","text":"{word}"}}]}}"#))
    })
}

/// A gateway on a given store, with one server in its manifest.
struct StoreGateway {
    running: RunningGateway,
    configured: SocketAddr,
}

impl StoreGateway {
    async fn start(store: &Arc<dyn Store>, configured: SocketAddr, mcp: &str) -> Self {
        let manifest = manifest_of(&handler("configured", configured), &MCP.replace("ALLOW", mcp));
        let running = started_on(store, &manifest).await;
        Self { running, configured }
    }

    /// Calls a tool, and returns the text of its result as a model reads it.
    async fn read(&self, tool: &str, arguments: Value) -> String {
        let call = Call::tool(tool, Json::from_value(&arguments));
        match self.running.gateway().invoke(call).await {
            Ok(Outcome::Done(output)) => {
                let body = output.body.to_json().to_value();
                let text = body["content"][0]["text"].as_str().unwrap_or_default();
                if output.is_error { format!("error: {text}") } else { text.to_owned() }
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) => format!("refused: {error}"),
        }
    }

    async fn register(&self, name: &str, address: SocketAddr) -> String {
        let url = format!("http://{address}/mcp");
        let answer = self.read("mcp_register_server", json!({"server_name": name, "url": url})).await;
        answer.replace(&address.to_string(), "ADDRESS")
    }

    async fn unregister(&self, name: &str) -> String {
        self.read("mcp_unregister_server", json!({"server_name": name})).await
    }

    /// The advertised servers without their summaries.
    async fn services(&self) -> String {
        let tools: Value = serde_json::from_str(&self.read("mcp_list_services", json!({})).await).unwrap();
        let line = |server: &Value| {
            let added = if server["addedAtRunTime"] == true { "+" } else { "" };
            format!("{added}{} {}", server["serverName"].as_str().unwrap(), server["toolNames"])
        };
        tools.as_array().unwrap().iter().map(line).collect::<Vec<_>>().join(" ")
    }

    /// Waits until the gateway advertises exactly these tools beside its own.
    async fn until(&self, tools: &[&str]) {
        let is_so = |now: &Registry| {
            let servers =
                now.entries(EntryKind::Tools).iter().filter(|entry| &*entry.handler.name != "builtins");
            servers.map(|entry| &*entry.name).eq(tools.iter().copied())
        };
        let mut registry = self.running.gateway().watch();
        let there = registry.wait_for(|now| is_so(now));
        tokio::time::timeout(std::time::Duration::from_secs(30), there).await.expect("in time").unwrap();
    }
}

fn handler(name: &str, address: SocketAddr) -> String {
    entry(name, "", &format!("transport: streamable-http, endpoint: 'http://{address}/mcp'"))
}

/// The names of the servers in the store.
async fn stored_names(store: &Arc<dyn Store>) -> Vec<String> {
    let stored = store.list(KeySpace("mcp-servers"), "", None, 100).await.unwrap();
    stored.into_iter().map(|(name, _)| name).collect()
}

#[tokio::test]
async fn added_server_is_callable_survives_a_restart_and_is_removable() {
    let [configured, one] = ["here", "one"].map(|word| TestUpstream::start(server(word)));
    let store = memory().await;
    let site = StoreGateway::start(&store, configured.address, ALLOWED).await;
    assert_eq!(
        site.register("First", one.address).await,
        "Server 'first' registered successfully. 1 tool(s) available."
    );
    // The server is usable at once, by each way to call its tools.
    assert_eq!(site.services().await, r#"configured ["here"] +first ["one"]"#);
    assert_eq!(site.read("first_one", json!({})).await, "one");
    let invoked = site.read("mcp_invoke_tool", json!({"server_name": "FIRST", "tool_name": "One"})).await;
    assert_eq!(invoked, "one");
    assert_eq!(
        site.register("first", one.address).await,
        "error: Failed to register server 'first': the name is in use, and a server cannot be replaced: choose another name"
    );
    assert_eq!(
        site.register("configured", one.address).await,
        "error: Failed to register server 'configured': the name is in use, and a server cannot be replaced: choose another \
         name"
    );
    site.running.stop().await;

    let site = StoreGateway::start(&store, configured.address, ALLOWED).await;
    site.until(&["here", "first_one"]).await;
    assert_eq!(site.services().await, r#"configured ["here"] +first ["one"]"#);
    assert_eq!(
        site.unregister("configured").await,
        "error: Failed to remove server 'configured': it was configured by the operator: only servers that were added with \
         mcp_register_server can be removed"
    );
    assert_eq!(site.unregister("FIRST").await, "Server 'first' removed successfully.");
    assert_eq!(site.services().await, r#"configured ["here"]"#);
    assert_eq!(site.unregister("first").await, "error: Server 'first' not found. Servers: configured.");
    assert!(stored_names(&store).await.is_empty());
    site.running.stop().await;
}

#[tokio::test]
async fn added_servers_are_shared_by_gateways_on_one_store() {
    let [configured, one] = ["here", "one"].map(|word| TestUpstream::start(server(word)));
    let store = memory().await;
    let sites = [(); 2].map(|()| StoreGateway::start(&store, configured.address, ALLOWED));
    let [here, there] = sites;
    let (here, there) = (here.await, there.await);
    here.register("first", one.address).await;
    there.until(&["here", "first_one"]).await;
    assert_eq!(there.services().await, r#"configured ["here"] +first ["one"]"#);
    // `there` removes the server without waiting for `here` to learn of it.
    assert_eq!(there.unregister("first").await, "Server 'first' removed successfully.");
    here.until(&["here"]).await;
    here.running.stop().await;
    there.running.stop().await;
}

#[tokio::test]
async fn server_that_does_not_start_is_not_added() {
    let configured = TestUpstream::start(server("here"));
    let away = TestUpstream::start(but(server("away"), |_| Some(ScriptedReply::http(503, "", ""))));
    let store = memory().await;
    let site = StoreGateway::start(&store, configured.address, ALLOWED).await;
    let nobody = ReservedAddress::new();
    let mut answers =
        vec![site.register("away", away.address).await, site.register("nobody", nobody.address()).await];
    let program = json!({"server_name": "program", "command": "/nowhere/server"});
    answers.push(site.read("mcp_register_server", program).await);
    insta::assert_snapshot!(answers.join("\n"));
    assert_eq!(site.services().await, r#"configured ["here"]"#);
    assert!(stored_names(&store).await.is_empty());
    site.running.stop().await;
}

#[tokio::test]
async fn abandoned_registration_leaves_no_server() {
    let [configured, one] = ["here", "one"].map(|word| TestUpstream::start(server(word)));
    let silent = TestUpstream::start(but(server("silent"), |_| Some(ScriptedReply::never())));
    let store = memory().await;
    let site = StoreGateway::start(&store, configured.address, ALLOWED).await;
    tokio::select! {
        answer = site.register("first", silent.address) => panic!("{answer}"),
        () = silent.saw(|log| !log.requests.is_empty(), |_| ()) => {}
    }
    silent.saw(|log| !log.dropped.is_empty(), |_| ()).await;
    assert!(stored_names(&store).await.is_empty());
    // The name is free again.
    let answer = site.register("first", one.address).await;
    assert_eq!(answer, "Server 'first' registered successfully. 1 tool(s) available.");
    site.running.stop().await;
}

#[tokio::test]
async fn server_outside_the_allow_list_is_not_added() {
    let [configured, one, other] = ["here", "one", "other"].map(|word| TestUpstream::start(server(word)));
    let store = memory().await;
    let site = StoreGateway::start(&store, configured.address, "").await;
    let mut answers = vec![site.register("first", one.address).await];
    site.running.stop().await;
    let site = StoreGateway::start(&store, configured.address, ALLOWED).await;
    let elsewhere = json!({"server_name": "x", "url": "http://169.254.169.254/mcp"});
    answers.push(site.read("mcp_register_server", elsewhere).await);
    let shell = json!({"server_name": "x", "command": "sh", "arguments": ["-c", "id"]});
    answers.push(site.read("mcp_register_server", shell).await);
    for name in ["first", "second", "third"] {
        let address = if name == "first" { one.address } else { other.address };
        answers.push(site.register(name, address).await);
    }
    insta::assert_snapshot!(answers.join("\n"));
    site.running.stop().await;

    // The operator has revoked the permission; a caller with full access can still remove a server that does not run.
    let site = StoreGateway::start(&store, configured.address, "allow: {hosts: [example.com]}").await;
    assert_eq!(site.services().await, r#"configured ["here"]"#);
    assert_eq!(site.unregister("second").await, "Server 'second' removed successfully.");
    assert_eq!(stored_names(&store).await, ["first"]);
    for (mcp, tools) in [
        (ALLOWED, &["here", "first_one"][..]),
        ("enabled: false", &["here"]),
        (ALLOWED, &["here", "first_one"]),
        ("allow: {}", &["here"]),
    ] {
        let edited = manifest_of(&handler("configured", site.configured), &MCP.replace("ALLOW", mcp));
        site.running.apply(&edited).await.unwrap();
        site.until(tools).await;
    }
    assert_eq!(stored_names(&store).await, ["first"]);
    site.running.stop().await;
}

#[tokio::test]
async fn manifest_edits_keep_added_servers_except_conflicting_names() {
    let [configured, one, other] = ["here", "one", "other"].map(|word| TestUpstream::start(server(word)));
    let store = memory().await;
    let site = StoreGateway::start(&store, configured.address, ALLOWED).await;
    site.register("first", one.address).await;
    let edit = async |handlers: &[(&str, SocketAddr)]| {
        let handlers: String = handlers.iter().map(|(name, address)| handler(name, *address)).collect();
        let edited = manifest_of(&handlers, &MCP.replace("ALLOW", ALLOWED));
        site.running.apply(&edited).await.unwrap().to_string()
    };
    assert_eq!(
        edit(&[("second", other.address), ("configured", configured.address)]).await,
        "added second; 3 unchanged"
    );
    site.until(&["other", "here", "first_one"]).await;
    assert_eq!(
        edit(&[("first", other.address)]).await,
        "changed first; removed second, configured; 1 unchanged"
    );
    site.until(&["other"]).await;
    assert_eq!(site.services().await, r#"first ["other"]"#);
    assert_eq!(
        edit(&[("configured", configured.address)]).await,
        "added configured; changed first; 1 unchanged"
    );
    site.until(&["here", "first_one"]).await;
    assert_eq!(site.services().await, r#"configured ["here"] +first ["one"]"#);
    site.running.stop().await;
}
