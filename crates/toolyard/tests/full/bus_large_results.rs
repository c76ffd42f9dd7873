//! Results above the limit of messages, between a worker and a gateway that share a store or do not.

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::brokers::{BrokerProgram, MessageBroker};
use toolyard_testing::manifest::stdio_handler;
use toolyard_testing::peers;
use toolyard_testing::postgres::PostgresServer;
use toolyard_testing::scripted_server::script;
use toolyard_testing::wait::eventually;

use crate::bus_processes::{on_bus, only, stop};
use crate::support::gateway::TestGateway;

/// Size of the result of the tool.
const LARGE: usize = 2 << 20;

/// Returns settings of a process with this store.
fn settings(broker: &MessageBroker, store: &Value, stored: &Value) -> Value {
    let mut bus = json!({"url": broker.url()});
    if !stored.is_null() {
        bus["storedResults"] = stored.clone();
    }
    json!({"bus": bus, "store": store, "builtins": only(&[])})
}

/// Calls a tool of a worker at a gateway, and returns the size of its result, or the error.
#[track_caller]
fn call(broker: &MessageBroker, stores: [&Value; 2], stored: &Value) -> Result<usize, String> {
    let home = TempDir::new().unwrap();
    let (python, server) = (peers::peer("python/bin/python"), script("large.py"));
    let large = stdio_handler("large", python.to_str().unwrap(), &[server.to_str().unwrap()]);
    let worker = on_bus("worker", broker, home.path(), &[large], settings(broker, stores[0], stored));
    let workers = json!({"name": "workers", "type": "bus"});
    let gateway = TestGateway::with_settings(&[workers], settings(broker, stores[1], stored));
    eventually("the tool", || gateway.tools().iter().any(|name| name == "plain").then_some(()));
    let response = gateway.call("plain", json!({}));
    let message: Value = serde_json::from_str(&response.body).unwrap();
    stop(worker);
    match message["result"]["content"][0]["text"].as_str() {
        Some(text) if message["result"]["isError"] != true => Ok(text.len()),
        _ => Err(message.to_string()),
    }
}

#[test]
fn large_results_of_workers_go_through_the_store() {
    let broker = MessageBroker::start(BrokerProgram::Nats);
    let (folder, postgres) = (TempDir::new().unwrap(), PostgresServer::start());
    let file = |name: &str| json!({"path": folder.path().join(name)});
    let (shared, other, database) = (file("shared.db"), file("other.db"), json!({"url": postgres.url()}));
    for store in [&shared, &database] {
        assert_eq!(call(&broker, [store, store], &json!({})), Ok(LARGE), "{store}");
    }
    let error = call(&broker, [&shared, &other], &json!({})).unwrap_err();
    assert!(error.contains("is not in the store of this process"), "{error}");
    let error = call(&broker, [&shared, &shared], &Value::Null).unwrap_err();
    assert!(error.contains("set `bus.storedResults` of both"), "{error}");
}
