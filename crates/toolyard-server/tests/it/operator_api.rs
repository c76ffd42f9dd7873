//! The REST API for operators: the served manifest, working memory, known agents, and the message bus.

use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_core::store::Store;
use toolyard_server::GatewayOptions;
use toolyard_testing::wire_client::WireConnection;

use crate::gateway::{manifest, started_with};
use crate::keyed_gateway::{KeyedGateway, memory};

async fn get(gateway: &KeyedGateway, key: &str, path: &str) -> Value {
    let response = gateway.ask(key, &format!("GET /api/v1{path}"), "").await;
    assert_eq!(response.head.status(), 200, "{}", response.body);
    serde_json::from_str(&response.body).expect("JSON")
}

async fn check(gateway: &KeyedGateway, key: &str, body: &Value) -> Value {
    let response = gateway.ask(key, "POST /api/v1/manifest/check", &body.to_string()).await;
    assert_eq!(response.head.status(), 200, "{}", response.body);
    serde_json::from_str(&response.body).expect("JSON")
}

#[tokio::test]
async fn served_manifest_is_shown_and_compared() {
    let gateway = KeyedGateway::start("llm: {baseURL: 'http://a/', model: m, apiKey: secret-key}").await;
    let admin = gateway.key_for("admin tools:*").await;
    let served = get(&gateway, &admin, "/manifest").await;
    assert_eq!(served["digest"], get(&gateway, &admin, "/status").await["manifestDigest"]);
    let documents = served["documents"].as_array().expect("documents");
    assert_eq!(documents.iter().map(|it| &it["source"]).collect::<Vec<_>>(), ["test.yaml", "test.yaml"]);
    let texts: Vec<_> = documents.iter().map(|it| it["text"].as_str().expect("a text")).collect();
    assert!(texts[0].contains("apiKey: \"[REDACTED]\"") && !texts[0].contains("secret-key"), "{}", texts[0]);

    let whole = texts.join("---\n");
    let same = json!({"added": [], "changed": [], "removed": [], "unchanged": 2, "changesSettings": false});
    assert_eq!(check(&gateway, &admin, &json!({"text": whole})).await["difference"], same);
    let edited = whole.replace("name: math", "name: maths").replace("model: m", "model: n");
    let report = check(&gateway, &admin, &json!({"text": edited, "replaces": "test.yaml"})).await;
    let expected = json!({
        "added": ["maths"], "changed": [], "removed": ["math"], "unchanged": 1, "changesSettings": true,
    });
    assert_eq!(report["difference"], expected);
    assert_eq!(report["documents"][1]["text"], texts[1].replace("name: math", "name: maths"));
    let unknown = json!({"text": "", "replaces": "other.yaml"}).to_string();
    let line = "POST /api/v1/manifest/check";
    assert_eq!(gateway.short(&admin, line, &unknown, "").await, "404 not_found");
    let invalid = check(&gateway, &admin, &json!({"text": "kind: x"})).await;
    assert_eq!((invalid.get("difference"), invalid["problems"].as_array().map(Vec::len)), (None, Some(1)));
}

#[tokio::test]
async fn memory_is_listed_without_its_values() {
    let gateway = KeyedGateway::start("builtins: {}").await;
    let admin = gateway.key_for("admin tools:*").await;
    let empty = json!({"enabled": true, "truncated": false, "namespaces": []});
    assert_eq!(get(&gateway, &admin, "/memory").await, empty);
    let agent = gateway.key_for("tools:* rest").await;
    let id = agent.split('_').nth(1).expect("the id of a key");
    let note = json!({"arguments": {"key": "note", "data": "a private text"}}).to_string();
    let saved = gateway.ask(&agent, "POST /api/v1/tools/save_to_working_memory/call", &note).await;
    assert_eq!(saved.head.status(), 200, "{}", saved.body);

    let listed = get(&gateway, &admin, "/memory").await;
    let namespace = &listed["namespaces"][0];
    assert_eq!(namespace["namespace"], format!("key/{id}"));
    assert_eq!(namespace["key"], json!({"id": id, "name": "a key"}));
    assert_eq!((&namespace["entries"], &namespace["bytes"]), (&json!(1), &json!("a private text".len())));
    let entries = get(&gateway, &admin, &format!("/memory/entries?namespace=key/{id}")).await;
    assert_eq!(entries["entries"][0]["key"], format!("key/{id}/note"));
    assert!(!format!("{listed}{entries}").contains("private"));
    assert_eq!(get(&gateway, &admin, "/memory/entries?namespace=key/none").await, json!({"entries": []}));
    for line in ["GET /api/v1/memory/entries", "GET /api/v1/memory/entries?namespace=a"] {
        assert_eq!(gateway.short(&admin, line, "", "").await, "400 bad_request", "{line}");
    }
}

#[tokio::test]
async fn agents_of_a_file_are_listed() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("agents.json");
    let skill = json!({"id": "sum", "name": "Sum", "description": "Adds numbers"});
    let agent = json!({"name": "Helper", "description": "Helps", "version": "1.0", "skills": [skill]});
    fs::write(&file, json!([agent]).to_string()).unwrap();
    let gateway = KeyedGateway::start(&format!("builtins: {{agents: {{file: '{}'}}}}", file.display())).await;
    let admin = gateway.key_for("admin").await;
    let listed = loop {
        let listed = get(&gateway, &admin, "/agents").await;
        if listed["agents"].as_array().is_some_and(|agents| !agents.is_empty()) {
            break listed;
        }
        tokio::task::yield_now().await;
    };
    let expected = json!({
        "name": "Helper", "description": "Helps", "version": "1.0", "source": "bus", "wellKnown": true, "skills": [skill],
    });
    let mut seen = listed["agents"][0].clone();
    seen.as_object_mut().expect("an agent").remove("problem");
    assert_eq!((&listed["enabled"], seen), (&json!(true), expected));

    let without = KeyedGateway::start("").await;
    let admin = without.key_for("admin").await;
    assert_eq!(get(&without, &admin, "/agents").await, json!({"enabled": false, "agents": []}));
}

#[tokio::test]
async fn bus_is_shown_without_its_password() {
    let gateway =
        KeyedGateway::start("bus: {url: 'nats://me:secret-word@127.0.0.1:1', publishTimeout: 100ms}").await;
    let admin = gateway.key_for("admin").await;
    let bus = get(&gateway, &admin, "/bus").await;
    assert_eq!(
        (&bus["enabled"], &bus["source"], &bus["group"]),
        (&json!(true), &json!("toolyard"), &json!("toolyard"))
    );
    assert!(!bus.to_string().contains("secret-word"), "{bus}");
    let line = "GET /api/v1/bus/dead-letters";
    assert_eq!(gateway.short(&admin, line, "", "").await, "503 unavailable");
    assert_eq!(gateway.short(&admin, &format!("{line}?topic=%20"), "", "").await, "400 bad_request");

    let without = KeyedGateway::start("").await;
    let admin = without.key_for("admin").await;
    assert_eq!(get(&without, &admin, "/bus").await, json!({"enabled": false}));
    assert_eq!(without.short(&admin, line, "", "").await, "404 not_found");
}

#[tokio::test]
async fn gateways_of_a_cluster_see_each_other() {
    let store = memory().await;
    let gateway = async |address: &str, store: &Arc<dyn Store>| {
        let process = format!("cluster: {{address: 'http://{address}', key: {}}}", "k".repeat(32));
        let options = GatewayOptions {
            store: Some(store.clone()),
            store_location: Some("/var/lib/a.db".to_owned()),
            ..GatewayOptions::default()
        };
        // Its server does not answer, which changes nothing here.
        let handlers = [("absent", "127.0.0.1:1".parse().unwrap(), "")];
        started_with(&manifest(&handlers, &process), &options).await
    };
    let one = gateway("10.0.0.1:8080", &store).await;
    // It reads the signs of life after its own, which the other one has stored before.
    let other = gateway("10.0.0.2:8080", &store).await;
    let status = loop {
        let mut connection = WireConnection::open(other.address()).await;
        connection.send(b"GET /api/v1/status HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
        let response = connection.response().await.expect("a response");
        let status: Value = serde_json::from_str(&response.body).expect("JSON");
        if status["cluster"].as_array().is_some_and(|members| members.len() == 2) {
            break status;
        }
        tokio::task::yield_now().await;
    };
    let addresses: Vec<_> = status["cluster"].as_array().unwrap().iter().map(|it| &it["address"]).collect();
    assert_eq!(addresses, ["http://10.0.0.1:8080", "http://10.0.0.2:8080"]);
    assert_eq!(status["store"], "/var/lib/a.db");
    drop((one, other));
}
