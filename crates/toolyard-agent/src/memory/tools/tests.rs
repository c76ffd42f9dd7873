use std::time::Duration;

use serde_json::{Value, json};
use toolyard_core::access::AccessGrant;
use toolyard_core::{Backend, Call, Json, Outcome};
use toolyard_manifest::MemorySettings;

use super::*;
use crate::memory::testing::ManualStore;
use crate::memory::{NewEntry, SESSION_META};

/// The tools with their store.
struct MemoryHarness {
    store: Arc<ManualStore>,
    memory: WorkingMemory,
    backend: Arc<dyn Backend>,
}

impl MemoryHarness {
    fn new(limits: MemorySettings) -> Self {
        let (store, memory) = ManualStore::memory(limits);
        let server = add(Server::new("memory", "1.0.0"), memory.clone()).expect("tools");
        Self { store, memory, backend: server.into_backend() }
    }

    async fn call_as(&self, session: Option<&str>, tool: &str, arguments: Value) -> String {
        let mut call = Call::tool(tool, Json::from_value(&arguments));
        let memory = ["patrol/*".parse().expect("a pattern")].into_iter().collect();
        call.caller.grant = Some(Arc::new(AccessGrant { memory, ..AccessGrant::default() }));
        if let Some(session) = session {
            let handle = ManualStore::handle(&self.memory, session).await;
            call.meta.set(SESSION_META, Json::string(&handle));
        }
        match self.backend.call(call).await {
            Ok(Outcome::Done(output)) => {
                let body = output.body.to_json().to_value();
                let text = body["content"][0]["text"].as_str().unwrap_or_default();
                if output.is_error { format!("error: {text}") } else { text.to_owned() }
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) => format!("refused: {error}"),
        }
    }

    /// Calls several tools in order and returns their texts.
    async fn read(&self, calls: &[(&str, Value)]) -> String {
        let mut read = Vec::new();
        for (tool, arguments) in calls {
            let answer = self.call_as(Some("abc123"), tool, arguments.clone()).await;
            read.push(format!("> {tool} {arguments}\n{answer}"));
        }
        read.join("\n\n")
    }
}

#[tokio::test]
async fn tool_definitions() {
    let agent = MemoryHarness::new(MemorySettings::default());
    let catalog = agent.backend.catalog().borrow().clone();
    let definitions: Vec<_> = catalog.tools.iter().map(|tool| tool.definition.to_json().to_value()).collect();
    let names: Vec<_> = definitions.iter().filter_map(|definition| definition["name"].as_str()).collect();
    assert_eq!(names, NAMES);
    insta::assert_snapshot!(serde_json::to_string_pretty(&definitions).expect("JSON"));
}

#[tokio::test]
async fn memory_tool_results() {
    let agent = MemoryHarness::new(MemorySettings { entries: 5, ..MemorySettings::default() });
    let read = agent
        .read(&[
            (LIST, json!({})),
            (SAVE, json!({"key": "Notes", "data": "sales went up"})),
            (SAVE, json!({"key": "prices", "data": {"items": [{"id": "a", "price": 1}, {"id": "b", "price": 3}]}, "ttl_minutes": 90, "category": "research/prices", "tags": "sales, 2026"})),
            (SAVE, json!({"key": "session/abc123/plan/today", "data": "first this,\nthen that", "ttl_minutes": 0.5, "tags": ["plan"]})),
            (GET, json!({"key": "notes"})),
            (GET, json!({"key": "session/abc123/NOTES"})),
            (GET, json!({"key": "plan/today"})),
            (GET, json!({"key": "prices"})),
            (LIST, json!({})),
            (LIST, json!({"namespace": "session/abc123/pl"})),
            (LIST, json!({"namespace": "plan"})),
            (LIST, json!({"namespace": "session/abc"})),
            (SEARCH, json!({"query": "sales"})),
            (SEARCH, json!({"category": "research", "tags": ["2026"]})),
            (SEARCH, json!({"query": "nobody"})),
            (QUERY, json!({"key": "prices", "expression": "items[?price > `2`].id"})),
            (QUERY, json!({"key": "prices", "expression": "models"})),
            (QUERY, json!({"key": "notes", "expression": "@"})),
            (QUERY, json!({"key": "nothing", "expression": "@"})),
            (DELETE, json!({"key": "notes"})),
            (DELETE, json!({"key": "notes"})),
            (GET, json!({"key": "notes"})),
        ])
        .await;
    insta::assert_snapshot!(read);
}

/// Includes all digits of numbers, and the order of members.
#[tokio::test]
async fn saved_json_is_unchanged() {
    let agent = MemoryHarness::new(MemorySettings::default());
    let check = async |data: &str, expected: &str| {
        let arguments = format!(r#"{{"key":"a","data":{data}}}"#);
        let mut call = Call::tool(SAVE, Json::parse(arguments).expect("JSON"));
        call.meta.set(SESSION_META, Json::string(&ManualStore::handle(&agent.memory, "abc123").await));
        agent.backend.call(call).await.expect("a result");
        assert_eq!(agent.call_as(Some("abc123"), GET, json!({"key": "a"})).await, expected);
    };
    check("12345678901234567890123456789", "12345678901234567890123456789").await;
    check(r#"{"b":1.10,"a":[1e400, null]}"#, r#"{"b":1.10,"a":[1e400, null]}"#).await;
    check(r#""a \"text\" of\ntwo lines""#, "a \"text\" of\ntwo lines").await;
    check("true", "true").await;
}

#[tokio::test]
async fn errors_of_invalid_arguments() {
    let agent =
        MemoryHarness::new(MemorySettings { entries: 1, value_bytes: 100, ..MemorySettings::default() });
    let read = agent
        .read(&[
            (SAVE, json!({"data": "x"})),
            (SAVE, json!({"key": "", "data": "x"})),
            (SAVE, json!({"key": "a\nb", "data": "x"})),
            (SAVE, json!({"key": "a", "data": "x", "ttl_minutes": 0})),
            (SAVE, json!({"key": "a", "data": "x", "ttl_minutes": "soon"})),
            (SAVE, json!({"key": "a", "data": "x", "tags": 7})),
            (SAVE, json!({"key": "a", "data": "x".repeat(101)})),
            (SAVE, json!({"key": "a", "data": null, "ttl_minutes": null, "category": null, "tags": null})),
            (SAVE, json!({"key": "b", "data": "x"})),
            (GET, json!({})),
            (QUERY, json!({"key": "a"})),
            (QUERY, json!({"key": "a", "expression": "foo["})),
        ])
        .await;
    insta::assert_snapshot!(read);
    let text = agent.call_as(None, GET, json!({"key": "a"})).await;
    insta::assert_snapshot!(text);
}

#[tokio::test]
async fn entries_of_another_session_are_inaccessible() {
    let agent = MemoryHarness::new(MemorySettings::default());
    agent.call_as(Some("one"), SAVE, json!({"key": "secret", "data": "of one"})).await;
    for key in
        ["secret", "session/one/secret", "SESSION/ONE/secret", "/session/one/secret", "session/one//secret"]
    {
        for tool in [GET, DELETE, QUERY] {
            let answer = agent.call_as(Some("two"), tool, json!({"key": key, "expression": "@"})).await;
            assert_eq!(answer, format!("Working memory entry '{key}' not found or has expired."), "{tool}");
        }
    }
    for namespace in ["session/one", "session", "session/", "", "session/one/", "session/on", "s"] {
        for tool in [LIST, SEARCH] {
            let answer = agent.call_as(Some("two"), tool, json!({"namespace": namespace})).await;
            assert!(!answer.contains("secret") && !answer.contains("of one"), "{tool} {namespace}: {answer}");
        }
    }
    assert_eq!(agent.call_as(Some("one"), GET, json!({"key": "secret"})).await, "of one");
}

#[tokio::test]
async fn key_grants_access_to_other_namespaces() {
    let agent = MemoryHarness::new(MemorySettings::default());
    for owner in ["night", "day"] {
        let namespace = crate::memory::MemoryNamespace::new("patrol", owner);
        let path = format!("{namespace}/found");
        agent.memory.save(&namespace, &[NewEntry::new(&path, owner)]).await.expect("room");
    }
    agent.store.pass(Duration::from_secs(60));
    let read = agent
        .read(&[
            (GET, json!({"key": "patrol/night/found"})),
            (LIST, json!({"namespace": "patrol/day"})),
            (LIST, json!({"namespace": "patrol"})),
            (SEARCH, json!({"query": "night", "namespace": "patrol"})),
            (SAVE, json!({"key": "patrol/night/found", "data": "mine"})),
            (GET, json!({"key": "patrol/night/found"})),
            (DELETE, json!({"key": "patrol/night/found"})),
            (GET, json!({"key": "patrol/night/found"})),
        ])
        .await;
    insta::assert_snapshot!(read);
}
