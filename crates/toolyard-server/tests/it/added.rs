//! Servers that are added while a gateway runs: in one process, on one store, and after a restart.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_core::registry::Kind;
use toolyard_core::store::{Space, Store};
use toolyard_core::{Call, Json, Outcome, Registry};
use toolyard_server::{Options, Running};

use crate::door::memory;
use crate::upstream::{Era, Received, Reply, Reserved, Server, Upstream, but};
use crate::{entry, manifest_of};

/// What of `builtins` these tests need.
const MCP: &str = "timeouts: {keyCheck: 20ms, connect: 5s}, builtins: {scripts: {enabled: false}, memory: {enabled: false}, \
results: {enabled: false}, guides: {enabled: false}, skills: {enabled: false}, search: {enabled: false}, mcp: {ALLOW}}";

const ALLOWED: &str = "servers: 2, allow: {hosts: [127.0.0.1], commands: [/nowhere/server]}";

/// A server whose tools answer with a word.
fn server(word: &'static str) -> Server {
    let tool = format!(r#"{{"name":"{word}","description":"Says it.","inputSchema":{{"type":"object"}}}}"#);
    Server::new(Era::Modern, &[&tool], move |request: &Received| {
        Reply::result(request, &format!(r#"{{"content":[{{"type":"text","text":"{word}"}}]}}"#))
    })
}

/// A gateway on a store, with a server of the manifest.
struct Site {
    running: Running,
    configured: SocketAddr,
}

impl Site {
    async fn start(store: &Arc<dyn Store>, configured: SocketAddr, mcp: &str) -> Self {
        let options = Options { store: Some(store.clone()), ..Options::default() };
        let manifest = manifest_of(&handler("configured", configured), &MCP.replace("ALLOW", mcp));
        let running = toolyard_server::start(&manifest, &options).await.unwrap();
        running.gateway().settled().await;
        Self { running, configured }
    }

    /// What a model reads.
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

    /// The servers as they are listed, without their summaries.
    async fn listed(&self) -> String {
        let listed: Value = serde_json::from_str(&self.read("mcp_list_services", json!({})).await).unwrap();
        let line = |server: &Value| {
            let added = if server["addedAtRunTime"] == true { "+" } else { "" };
            format!("{added}{} {}", server["serverName"].as_str().unwrap(), server["toolNames"])
        };
        listed.as_array().unwrap().iter().map(line).collect::<Vec<_>>().join(" ")
    }

    /// Waits until these tools are listed, beside the gateway's own.
    async fn until(&self, tools: &[&str]) {
        let is_so = |now: &Registry| {
            let servers = now.entries(Kind::Tools).iter().filter(|entry| &*entry.handler.name != "builtins");
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

/// The names that the store has.
async fn kept(store: &Arc<dyn Store>) -> Vec<String> {
    let kept = store.list(Space("mcp-servers"), "", None, 100).await.unwrap();
    kept.into_iter().map(|(name, _)| name).collect()
}

#[tokio::test]
async fn a_server_is_added_called_found_again_and_removed() {
    let [configured, one] = ["here", "one"].map(|word| Upstream::start(server(word)));
    let store = memory().await;
    let site = Site::start(&store, configured.address, ALLOWED).await;
    assert_eq!(
        site.register("First", one.address).await,
        "Server 'first' registered successfully. 1 tool(s) available."
    );
    // At once, by all ways.
    assert_eq!(site.listed().await, r#"configured ["here"] +first ["first_one"]"#);
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

    let site = Site::start(&store, configured.address, ALLOWED).await;
    site.until(&["here", "first_one"]).await;
    assert_eq!(site.listed().await, r#"configured ["here"] +first ["first_one"]"#);
    assert_eq!(
        site.unregister("configured").await,
        "error: Failed to remove server 'configured': it was configured by the operator: only servers that were added with \
         mcp_register_server can be removed"
    );
    assert_eq!(site.unregister("FIRST").await, "Server 'first' removed successfully.");
    assert_eq!(site.listed().await, r#"configured ["here"]"#);
    assert_eq!(site.unregister("first").await, "error: Server 'first' not found. Servers: configured.");
    assert!(kept(&store).await.is_empty());
    site.running.stop().await;
}

#[tokio::test]
async fn gateways_on_one_store_have_the_same() {
    let [configured, one] = ["here", "one"].map(|word| Upstream::start(server(word)));
    let store = memory().await;
    let sites = [(); 2].map(|()| Site::start(&store, configured.address, ALLOWED));
    let [here, there] = sites;
    let (here, there) = (here.await, there.await);
    here.register("first", one.address).await;
    there.until(&["here", "first_one"]).await;
    assert_eq!(there.listed().await, r#"configured ["here"] +first ["first_one"]"#);
    // Nobody waits for the other one to have noticed.
    assert_eq!(there.unregister("first").await, "Server 'first' removed successfully.");
    here.until(&["here"]).await;
    here.running.stop().await;
    there.running.stop().await;
}

#[tokio::test]
async fn a_server_that_does_not_come_up_leaves_nothing() {
    let configured = Upstream::start(server("here"));
    let away = Upstream::start(but(server("away"), |_| Some(Reply::http(503, "", ""))));
    let store = memory().await;
    let site = Site::start(&store, configured.address, ALLOWED).await;
    let nobody = Reserved::new();
    let mut said =
        vec![site.register("away", away.address).await, site.register("nobody", nobody.address()).await];
    let program = json!({"server_name": "program", "command": "/nowhere/server"});
    said.push(site.read("mcp_register_server", program).await);
    insta::assert_snapshot!(said.join("\n"));
    assert_eq!(site.listed().await, r#"configured ["here"]"#);
    assert!(kept(&store).await.is_empty());
    site.running.stop().await;
}

#[tokio::test]
async fn a_server_that_nobody_waits_for_any_more_is_let_go() {
    let [configured, one] = ["here", "one"].map(|word| Upstream::start(server(word)));
    let silent = Upstream::start(but(server("silent"), |_| Some(Reply::never())));
    let store = memory().await;
    let site = Site::start(&store, configured.address, ALLOWED).await;
    tokio::select! {
        said = site.register("first", silent.address) => panic!("{said}"),
        () = silent.saw(|log| !log.requests.is_empty(), |_| ()) => {}
    }
    silent.saw(|log| !log.dropped.is_empty(), |_| ()).await;
    assert!(kept(&store).await.is_empty());
    // The name is free again.
    let said = site.register("first", one.address).await;
    assert_eq!(said, "Server 'first' registered successfully. 1 tool(s) available.");
    site.running.stop().await;
}

#[tokio::test]
async fn what_is_not_allowed_is_neither_added_nor_started() {
    let [configured, one, other] = ["here", "one", "other"].map(|word| Upstream::start(server(word)));
    let store = memory().await;
    let site = Site::start(&store, configured.address, "").await;
    let mut said = vec![site.register("first", one.address).await];
    site.running.stop().await;
    let site = Site::start(&store, configured.address, ALLOWED).await;
    let elsewhere = json!({"server_name": "x", "url": "http://169.254.169.254/mcp"});
    said.push(site.read("mcp_register_server", elsewhere).await);
    let shell = json!({"server_name": "x", "command": "sh", "arguments": ["-c", "id"]});
    said.push(site.read("mcp_register_server", shell).await);
    for name in ["first", "second", "third"] {
        let address = if name == "first" { one.address } else { other.address };
        said.push(site.register(name, address).await);
    }
    insta::assert_snapshot!(said.join("\n"));
    site.running.stop().await;

    // The operator has thought otherwise, and who may use everything can still remove what does not run.
    let site = Site::start(&store, configured.address, "allow: {hosts: [example.com]}").await;
    assert_eq!(site.listed().await, r#"configured ["here"]"#);
    assert_eq!(site.unregister("second").await, "Server 'second' removed successfully.");
    assert_eq!(kept(&store).await, ["first"]);
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
    assert_eq!(kept(&store).await, ["first"]);
    site.running.stop().await;
}

#[tokio::test]
async fn edits_of_the_manifest_leave_them_alone_but_for_the_names_that_it_wants() {
    let [configured, one, other] = ["here", "one", "other"].map(|word| Upstream::start(server(word)));
    let store = memory().await;
    let site = Site::start(&store, configured.address, ALLOWED).await;
    site.register("first", one.address).await;
    let edit = async |handlers: &[(&str, SocketAddr)]| {
        let handlers: String = handlers.iter().map(|(name, address)| handler(name, *address)).collect();
        let edited = manifest_of(&handlers, &MCP.replace("ALLOW", ALLOWED));
        site.running.apply(&edited).await.unwrap().to_string()
    };
    assert_eq!(
        edit(&[("second", other.address), ("configured", configured.address)]).await,
        "added second; 3 not touched"
    );
    site.until(&["other", "here", "first_one"]).await;
    assert_eq!(
        edit(&[("first", other.address)]).await,
        "changed first; removed second, configured; 1 not touched"
    );
    site.until(&["other"]).await;
    assert_eq!(site.listed().await, r#"first ["other"]"#);
    assert_eq!(
        edit(&[("configured", configured.address)]).await,
        "added configured; changed first; 1 not touched"
    );
    site.until(&["here", "first_one"]).await;
    assert_eq!(site.listed().await, r#"configured ["here"] +first ["first_one"]"#);
    site.running.stop().await;
}
