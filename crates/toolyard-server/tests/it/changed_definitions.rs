//! Tools that change after the gateway has seen them, and tool names that imitate another server.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolyard_core::registry::EntryKind;
use toolyard_core::store::Store;
use toolyard_testing::upstream::{
    ReceivedRequest, ScriptedReply, ScriptedUpstream, TestUpstream, UpstreamEra, but,
};
use toolyard_testing::wire_client::{ClientMode, WireClient};

use crate::gateway::{gateway, manifest, started_on};
use crate::keyed_gateway::{KeyedGateway, memory};

/// A server with an exchangeable list of tools.
fn exchangeable_server(list: &Arc<Mutex<Value>>) -> TestUpstream {
    let list = list.clone();
    let server = ScriptedUpstream::new(UpstreamEra::Modern, &[], |request: &ReceivedRequest| {
        ScriptedReply::result(request, r#"{"content":[{"type":"text","text":"done"}]}"#)
    });
    TestUpstream::start(but(server, move |request: &ReceivedRequest| {
        let list = || json!({"tools": *list.lock().unwrap(), "resultType": "complete"}).to_string();
        (request.method() == "tools/list").then(|| ScriptedReply::result(request, &list()))
    }))
}

fn tool(name: &str, description: &str, argument: &str) -> Value {
    let schema =
        json!({"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]});
    json!({"name": name, "description": description, "inputSchema": schema})
}

struct DriftGateway {
    keyed: KeyedGateway,
    lists: [Arc<Mutex<Value>>; 2],
}

impl DriftGateway {
    /// A gateway with one handler that warns and one that holds, both with the tools `t` and `u`.
    async fn start(store: &Arc<dyn Store>, list: Value) -> Self {
        let lists = [(); 2].map(|()| Arc::new(Mutex::new(list.clone())));
        let upstreams = lists.each_ref().map(exchangeable_server);
        let [warns, holds] = upstreams.each_ref().map(|upstream| upstream.address);
        let handlers = [("warns", warns, "prefix: always,"), ("holds", holds, "prefix: always, pin: hold,")];
        let running = started_on(store, &manifest(&handlers, "")).await;
        Self { keyed: KeyedGateway { running, store: store.clone(), upstreams }, lists }
    }

    /// Changes the tools of both servers, and waits until the status reports these pending changes.
    async fn offer(&self, list: Value, pending: &str) -> String {
        for current in &self.lists {
            *current.lock().unwrap() = list.clone();
        }
        for handler in ["warns", "holds"] {
            let line = format!("POST /api/v1/handlers/{handler}/refresh");
            assert_eq!(self.keyed.ask("", &line, "").await.head.status(), 202);
        }
        self.until(pending).await
    }

    /// Waits until the status reports these pending changes; returns the served tools.
    async fn until(&self, pending: &str) -> String {
        while self.changes().await != pending {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let registry = self.keyed.running.gateway().registry();
        let summary = |entry: &Arc<toolyard_core::RegistryEntry>| {
            let tool = entry.tool.as_ref().unwrap();
            format!("{}={}", entry.name, tool.definition.get_str("description").unwrap())
        };
        registry.entries(EntryKind::Tools).iter().map(summary).collect::<Vec<_>>().join(" ")
    }

    /// The changed tools in the status.
    async fn changes(&self) -> String {
        let status: Value =
            serde_json::from_str(&self.keyed.ask("", "GET /api/v1/status", "").await.body).unwrap();
        let mut lines = Vec::new();
        for handler in status["handlers"].as_array().unwrap() {
            for change in handler["changes"].as_array().into_iter().flatten() {
                let digest = |name: &str| {
                    let digest = change[name].as_str()?;
                    assert!(digest.starts_with("sha256:") && digest.len() == 71, "{digest}");
                    Some(digest)
                };
                assert_ne!(digest("oldDigest"), digest("newDigest"));
                let new = if digest("oldDigest").is_none() { "+" } else { "" };
                let [name, tool, served] =
                    [&handler["name"], &change["tool"], &change["served"]].map(|text| text.as_str().unwrap());
                lines.push(format!("{new}{name}/{tool}:{served}"));
            }
        }
        lines.join(" ")
    }

    async fn stop(self) {
        self.keyed.running.stop().await;
    }
}

#[tokio::test]
async fn changed_tool_is_held_until_it_is_accepted() {
    let store = memory().await;
    let old = json!([tool("t", "old", "a"), tool("u", "old", "a")]);
    let new = json!([tool("t", "evil", "b"), tool("u", "old", "a"), tool("v", "new", "a")]);
    let gateway = DriftGateway::start(&store, old).await;
    assert_eq!(gateway.until("").await, "warns_t=old warns_u=old holds_t=old holds_u=old");
    let waiting = "warns/t:new holds/t:old +holds/v:nothing";
    let tools = gateway.offer(new.clone(), waiting).await;
    assert_eq!(tools, "warns_t=evil warns_u=old warns_v=new holds_t=old holds_u=old");
    // The gateway checks arguments against the served definition, and forwards the call.
    let mut client = WireClient::new(gateway.keyed.running.address(), ClientMode::Bare).await;
    for (tool, arguments, part) in [
        ("holds_t", r#"{"a":"x"}"#, "done"),
        ("holds_t", r#"{"b":"x"}"#, "required property"),
        ("warns_t", r#"{"b":"x"}"#, "done"),
        ("holds_v", r#"{"a":"x"}"#, "Unknown tool"),
    ] {
        let answer = client.call(tool, arguments).await.body;
        assert!(answer.contains(part), "{tool} {arguments}: {answer}");
    }
    gateway.stop().await;

    // Both changes survive a restart, and the gateway detects changes made during one.
    let gateway = DriftGateway::start(&store, new).await;
    let tools = gateway.until(waiting).await;
    assert_eq!(tools, "warns_t=evil warns_u=old warns_v=new holds_t=old holds_u=old");
    let keyed = &gateway.keyed;
    let accept = async |handler: &str, body: &str, pick: &str| {
        keyed.short("", &format!("POST /api/v1/handlers/{handler}/accept"), body, pick).await
    };
    assert_eq!(accept("holds", r#"{"tool":"t","digest":"sha256:0"}"#, "").await, "409 changed_again");
    assert_eq!(accept("holds", r#"{"tool":"u"}"#, "").await, "404 not_found");
    assert_eq!(accept("nobody", "{}", "").await, "404 not_found");
    assert_eq!(accept("holds", r#"{"tool":"t"}"#, "/accepted/0/tool").await, r#"200 "t""#);
    let tools = gateway.until("warns/t:new +holds/v:nothing").await;
    assert!(tools.ends_with("holds_t=evil holds_u=old"), "{tools}");
    assert_eq!(accept("holds", "{}", "/accepted/0/tool").await, r#"200 "v""#);
    assert_eq!(accept("warns", "{}", "/accepted/0/tool").await, r#"200 "t""#);
    assert!(gateway.until("").await.ends_with("holds_t=evil holds_u=old holds_v=new"));
    assert_eq!(accept("warns", "{}", "/accepted").await, "200 []");
    gateway.stop().await;

    let gateway = DriftGateway::start(&store, json!([tool("t", "evil", "b")])).await;
    assert_eq!(gateway.until("").await, "warns_t=evil holds_t=evil");
    let audit = gateway.keyed.ask("", "GET /api/v1/audit", "").await.body;
    let audit: Value = serde_json::from_str(&audit).unwrap();
    let mut records = Vec::new();
    for record in audit["records"].as_array().unwrap().iter().rev() {
        if record["action"].as_str().unwrap().starts_with("tool_") {
            let part = |name: &str| {
                record[name].as_str().map_or("-", |text| text.get(..7).unwrap_or(text)).to_owned()
            };
            let [action, handler, name] =
                ["action", "handler", "name"].map(|name| record[name].as_str().unwrap());
            records.push(format!("{action} {handler}/{name} {} {}", part("oldDigest"), part("newDigest")));
        }
    }
    records.sort();
    let expected = [
        "tool_accepted holds/t sha256: sha256:",
        "tool_accepted holds/v - sha256:",
        "tool_accepted warns/t sha256: sha256:",
        "tool_added holds/v - sha256:",
        "tool_changed holds/t sha256: sha256:",
        "tool_changed warns/t sha256: sha256:",
    ];
    assert_eq!(records, expected);
    gateway.stop().await;
}

#[tokio::test]
async fn change_accepted_at_one_gateway_is_served_by_the_others() {
    let store = memory().await;
    let old = json!([tool("t", "old", "a")]);
    let (one, other) =
        (DriftGateway::start(&store, old.clone()).await, DriftGateway::start(&store, old).await);
    let new = json!([tool("t", "new", "a")]);
    for gateway in [&one, &other] {
        let tools = gateway.offer(new.clone(), "warns/t:new holds/t:old").await;
        assert_eq!(tools, "warns_t=new holds_t=old");
    }
    let line = "POST /api/v1/handlers/holds/accept";
    assert_eq!(one.keyed.short("", line, "{}", "/accepted/0/tool").await, r#"200 "t""#);
    assert_eq!(other.until("warns/t:new").await, "warns_t=new holds_t=new");
    one.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn key_without_admin_scope_sees_no_changes() {
    let store = memory().await;
    let gateway = DriftGateway::start(&store, json!([tool("t", "old", "a")])).await;
    gateway.offer(json!([tool("t", "new", "a")]), "warns/t:new holds/t:old").await;
    let keyed = &gateway.keyed;
    let (reader, admin) = (keyed.key_for("rest tools:*").await, keyed.key_for("admin").await);
    let pick = "/handlers/0/changes/0/tool";
    assert_eq!(keyed.short(&admin, "GET /api/v1/status", "", pick).await, r#"200 "t""#);
    assert_eq!(keyed.short(&reader, "GET /api/v1/status", "", pick).await, "200 null");
    let line = "POST /api/v1/handlers/holds/accept";
    assert_eq!(keyed.short(&reader, line, "{}", "").await, "403 denied");
    assert_eq!(keyed.short(&admin, line, "{}", "/accepted/0/served").await, r#"200 "new""#);
}

/// Holds whichever order servers start in, and for a server that an edit adds.
#[tokio::test]
async fn tool_name_that_imitates_another_server_is_prefixed() {
    let echo = |name: &str| {
        TestUpstream::start(ScriptedUpstream::new(
            UpstreamEra::Modern,
            &[&format!(r#"{{"name":"{name}"}}"#)],
            |request: &ReceivedRequest| ScriptedReply::result(request, "{}"),
        ))
    };
    let (good, shadow) = (echo("echo"), echo("good_echo"));
    let both = [("good", good.address, ""), ("shadow", shadow.address, "")];
    let names = |running: &toolyard_server::RunningGateway| {
        let registry = running.gateway().registry();
        let mut names: Vec<_> =
            registry.entries(EntryKind::Tools).iter().map(|entry| entry.name.to_string()).collect();
        names.sort();
        names.join(" ")
    };
    for handlers in [[both[0], both[1]], [both[1], both[0]]] {
        assert_eq!(names(&gateway(&handlers, "").await), "echo shadow_good_echo");
    }
    let running = gateway(&both[1..], "").await;
    assert_eq!(names(&running), "good_echo");
    let mut registry = running.gateway().watch();
    running.apply(&manifest(&both, "")).await.unwrap();
    registry.wait_for(|now| now.entries(EntryKind::Tools).len() == 2).await.unwrap();
    assert_eq!(names(&running), "echo shadow_good_echo");
}
