//! Who called what.

use std::sync::Arc;

use insta::assert_snapshot;
use serde_json::Value;
use toolyard_core::store::Store;
use toolyard_manifest::Process;
use toolyard_server::audit::query::{self, Wanted};
use toolyard_server::audit::{By, Deed, Event, Trail};
use toolyard_store::{Location, Reopening, StoreOptions};

use crate::door::{Yard, memory};

/// The records that fit, oldest first, once there are so many of them. What differs from run to run is left out.
async fn records(yard: &Yard, query: &str, count: usize) -> Vec<String> {
    loop {
        let page = yard.ask("", &format!("GET /api/v1/audit{query}"), "").await;
        assert_eq!(page.head.status(), 200, "{}", page.body);
        let page: Value = serde_json::from_str(&page.body).unwrap();
        let records = page["records"].as_array().unwrap();
        if records.len() >= count {
            return records.iter().rev().map(shown).collect();
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

fn shown(record: &Value) -> String {
    let mut record = record.clone();
    let members = record.as_object_mut().unwrap();
    for member in ["time", "durationMs", "address"] {
        members.shift_remove(member);
    }
    if members.get("requestId").is_some_and(|id| id.as_str().is_some_and(|id| !id.starts_with("mine"))) {
        members["requestId"] = Value::from("(made)");
    }
    record.to_string()
}

async fn call(yard: &Yard, name: &str, arguments: &str) {
    let line = format!("POST /api/v1/tools/{name}/call");
    yard.ask_with("", &line, "x-request-id: mine\r\n", &format!(r#"{{"arguments":{arguments}}}"#)).await;
}

#[tokio::test]
async fn calls_are_noted_however_they_end() {
    let yard = Yard::start("allowUnauthenticated: true").await;
    let key = yard.key_for("tools:* rest").await;
    call(&yard, "search", r#"{"q":"x"}"#).await;
    call(&yard, "delete", "{}").await;
    call(&yard, "add", "{}").await;
    call(&yard, &"n".repeat(300), "{}").await;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search"}}"#;
    yard.ask(&key, "POST /mcp", body).await;
    let id = key.split('_').nth(1).unwrap();
    let lines =
        records(&yard, "", 5).await.join("\n").replace(id, "(id)").replace(&"n".repeat(200), "n(200)");
    assert_snapshot!(lines, @r#"
    {"action":"call","requestId":"mine","kind":"tool","name":"search","handler":"web","argumentsDigest":"sha256:a69fbbcf7209c6f659a75067c9fa03037c2ae23f55a6f854d5994209129bbbf6","argumentsBytes":9,"outcome":"ok"}
    {"action":"call","requestId":"mine","kind":"tool","name":"delete","handler":"web","argumentsDigest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","argumentsBytes":2,"outcome":"tool_error"}
    {"action":"call","requestId":"mine","kind":"tool","name":"add","handler":"math","argumentsDigest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","argumentsBytes":2,"outcome":"invalid_arguments"}
    {"action":"call","requestId":"mine","kind":"tool","name":"n(200)","argumentsDigest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","argumentsBytes":2,"outcome":"tool_not_found"}
    {"action":"call","requestId":"(made)","principal":"(id)","keyName":"a key","kind":"tool","name":"search","handler":"web","outcome":"ok"}
    "#);
    assert_eq!(records(&yard, "?outcome=tool_error", 1).await.len(), 1);
    assert_eq!(records(&yard, "?name=search", 2).await.len(), 2);
    assert_eq!(records(&yard, "?name=search&handler=web&limit=1", 1).await.len(), 1);
    assert_eq!(records(&yard, &format!("?principal={id}"), 1).await.len(), 1);
    assert_eq!(records(&yard, "?handler=math", 1).await.len(), 1);
    assert_eq!(records(&yard, "?until=2020-01-01T00:00:00Z", 0).await.len(), 0);
    for query in ["?limit=0", "?limit=1001", "?since=today", "?before=x", "?who=me"] {
        assert_eq!(
            yard.short("", &format!("GET /api/v1/audit{query}"), "", "").await,
            "400 bad_request",
            "{query}"
        );
    }
}

#[tokio::test]
async fn pages() {
    let yard = Yard::start("").await;
    for _ in 0..5 {
        call(&yard, "search", "{}").await;
    }
    records(&yard, "", 5).await;
    let (mut seen, mut query) = (0, "?limit=2".to_owned());
    loop {
        let page = yard.ask("", &format!("GET /api/v1/audit{query}"), "").await;
        let page: Value = serde_json::from_str(&page.body).unwrap();
        seen += page["records"].as_array().unwrap().len();
        let Some(next) = page["next"].as_u64() else { break };
        query = format!("?limit=2&before={next}");
    }
    assert_eq!(seen, 5);
}

#[tokio::test]
async fn what_operators_do_is_noted() {
    let yard = Yard::start("allowUnauthenticated: true").await;
    let admin = yard.key_for("admin").await;
    let made = yard.ask(&admin, "POST /api/v1/keys", r#"{"name":"x","scopes":["rest"]}"#).await.body;
    let made: Value = serde_json::from_str(&made).unwrap();
    yard.ask(&admin, &format!("DELETE /api/v1/keys/{}", made["id"].as_str().unwrap()), "").await;
    yard.ask(&admin, "POST /api/v1/handlers/web/refresh", "").await;
    let lines = records(&yard, "", 3).await.join("\n");
    let lines = lines.replace(made["id"].as_str().unwrap(), "(made)");
    assert_snapshot!(lines.replace(admin.split('_').nth(1).unwrap(), "(admin)"), @r#"
    {"action":"key_created","principal":"(admin)","keyName":"a key","name":"(made)"}
    {"action":"key_revoked","principal":"(admin)","keyName":"a key","name":"(made)"}
    {"action":"handler_refreshed","principal":"(admin)","keyName":"a key","name":"web"}
    "#);
}

#[tokio::test]
async fn arguments_are_kept_without_what_nobody_is_to_see() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let process = format!("audit: {{arguments: redacted, redact: [PIN, token], file: '{}'}}", file.display());
    let yard = Yard::start(&process).await;
    call(&yard, "search", r#"{"pin":1234,"a":[{"Token":"x","b":1}],"token":{"c":2}}"#).await;
    call(&yard, "search", &format!(r#"{{"a":"{}"}}"#, "x".repeat(20_000))).await;
    let lines = records(&yard, "", 2).await;
    assert_snapshot!(lines.join("\n"), @r#"
    {"action":"call","requestId":"mine","kind":"tool","name":"search","handler":"web","argumentsDigest":"sha256:1cefa000aac2a38727d6110f1159887881fe2bd28529290d9f849e29936afdad","argumentsBytes":54,"arguments":{"pin":"[REDACTED]","a":[{"Token":"[REDACTED]","b":1}],"token":"[REDACTED]"},"outcome":"ok"}
    {"action":"call","requestId":"mine","kind":"tool","name":"search","handler":"web","argumentsDigest":"sha256:9218cfbc3eebaeafcbf122799c4d9b759c403074d040d624ecafe1ba075dc769","argumentsBytes":20008,"outcome":"ok"}
    "#);
    yard.running.stop().await;
    let written = std::fs::read_to_string(file).unwrap();
    let written: Vec<Value> = written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(written.iter().map(shown).collect::<Vec<_>>(), lines);
}

#[tokio::test]
async fn what_was_noted_is_written_before_the_end() {
    let yard = Yard::start("").await;
    for _ in 0..20 {
        call(&yard, "search", "{}").await;
    }
    let store = yard.store.clone();
    yard.running.stop().await;
    let wanted = toolyard_server::audit::query::Wanted::default();
    let page = toolyard_server::audit::query::read(&*store, wanted).await.unwrap();
    assert_eq!(page.records.len(), 20);
}

/// Key `k0` and so on are made, so many that they do not find room, and the gateway ends. What the trail is missing then,
/// as it says itself, and how many records were lost in all.
async fn missing(store: Arc<dyn Store>, keys: usize) -> (Vec<String>, u64) {
    let mut process = Process::default();
    process.limits.queued_records = 2;
    let trail = Trail::start(&process, &store);
    let audit = trail.audit.clone();
    for number in 0..keys {
        audit.note(Event { by: By::default(), deed: Deed::KeyCreated, object: format!("k{number}") });
    }
    trail.stop(process.timeouts.drain).await;
    let page = query::read(&*store, Wanted::default()).await;
    let lines = page.map_or_else(
        |error| vec![error.to_string()],
        |page| {
            let records =
                page.records.iter().rev().map(|record| serde_json::from_str::<Value>(record.get()).unwrap());
            records
                .map(|record| format!("{} {}", record["action"], record["name"]).replace('"', ""))
                .collect()
        },
    );
    (lines, audit.lost())
}

#[tokio::test]
async fn what_is_missing_is_counted_and_noted() {
    let check = async |store: Arc<dyn Store>, keys: usize, expected: &[&str], lost: u64| {
        let (lines, all) = missing(store, keys).await;
        assert_eq!(
            (lines.iter().map(|line| &**line).collect::<Vec<_>>(), all),
            (expected.to_vec(), lost),
            "{keys}"
        );
    };
    check(memory().await, 2, &["key_created k0", "key_created k1"], 0).await;
    check(memory().await, 5, &["key_created k0", "key_created k1", "records_lost 3"], 3).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let no_folder = StoreOptions::at(Location::File(file.path().join("store.db")));
    let away = Arc::new(Reopening::new(no_folder));
    // What waits at the end and the note of the loss count too.
    check(away, 5, &["the store cannot be reached"], 6).await;
}
