//! The audit trail of calls and of operator actions.

use std::sync::Arc;

use insta::assert_snapshot;
use serde_json::Value;
use toolyard_core::store::Store;
use toolyard_manifest::ProcessSettings;
use toolyard_server::audit::query::{self, AuditQuery};
use toolyard_server::audit::{
    AuditAction, AuditActor, AuditEvent, AuditQueue, AuditQueueOptions, AuditService,
};
use toolyard_store::{DatabaseLocation, ReopeningStore, StoreOptions};

use crate::keyed_gateway::{KeyedGateway, memory};

/// The records that match the query, oldest first, once there are `count` of them. Omits members that differ between
/// runs.
pub(crate) async fn records(gateway: &KeyedGateway, query: &str, count: usize) -> Vec<String> {
    loop {
        let page = gateway.ask("", &format!("GET /api/v1/audit{query}"), "").await;
        assert_eq!(page.head.status(), 200, "{}", page.body);
        let page: Value = serde_json::from_str(&page.body).unwrap();
        let records = page["records"].as_array().unwrap();
        if records.len() >= count {
            return records.iter().rev().map(stable_text).collect();
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

fn stable_text(record: &Value) -> String {
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

async fn call(gateway: &KeyedGateway, name: &str, arguments: &str) {
    let line = format!("POST /api/v1/tools/{name}/call");
    gateway.ask_with("", &line, "x-request-id: mine\r\n", &format!(r#"{{"arguments":{arguments}}}"#)).await;
}

#[tokio::test]
async fn calls_are_audited_for_each_outcome() {
    let gateway = KeyedGateway::start("allowUnauthenticated: true").await;
    let key = gateway.key_for("tools:* rest").await;
    call(&gateway, "search", r#"{"q":"x"}"#).await;
    call(&gateway, "delete", "{}").await;
    call(&gateway, "add", "{}").await;
    call(&gateway, &"n".repeat(300), "{}").await;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search"}}"#;
    gateway.ask(&key, "POST /mcp", body).await;
    let id = key.split('_').nth(1).unwrap();
    let lines =
        records(&gateway, "", 5).await.join("\n").replace(id, "(id)").replace(&"n".repeat(200), "n(200)");
    assert_snapshot!(lines, @r#"
    {"action":"call","requestId":"mine","kind":"tool","name":"search","handler":"web","argumentsBytes":9,"outcome":"ok"}
    {"action":"call","requestId":"mine","kind":"tool","name":"delete","handler":"web","argumentsBytes":2,"outcome":"tool_error"}
    {"action":"call","requestId":"mine","kind":"tool","name":"add","handler":"math","argumentsBytes":2,"outcome":"invalid_arguments"}
    {"action":"call","requestId":"mine","kind":"tool","name":"n(200)","argumentsBytes":2,"outcome":"tool_not_found"}
    {"action":"call","requestId":"(made)","principal":"(id)","keyName":"a key","kind":"tool","name":"search","handler":"web","outcome":"ok"}
    "#);
    assert_eq!(records(&gateway, "?outcome=tool_error", 1).await.len(), 1);
    assert_eq!(records(&gateway, "?name=search", 2).await.len(), 2);
    assert_eq!(records(&gateway, "?name=search&handler=web&limit=1", 1).await.len(), 1);
    assert_eq!(records(&gateway, &format!("?principal={id}"), 1).await.len(), 1);
    assert_eq!(records(&gateway, "?handler=math", 1).await.len(), 1);
    assert_eq!(records(&gateway, "?until=2020-01-01T00:00:00Z", 0).await.len(), 0);
    for query in ["?limit=0", "?limit=1001", "?since=today", "?before=x", "?who=me"] {
        assert_eq!(
            gateway.short("", &format!("GET /api/v1/audit{query}"), "", "").await,
            "400 bad_request",
            "{query}"
        );
    }
}

#[tokio::test]
async fn pages() {
    let gateway = KeyedGateway::start("").await;
    for _ in 0..5 {
        call(&gateway, "search", "{}").await;
    }
    records(&gateway, "", 5).await;
    let (mut seen, mut query) = (0, "?limit=2".to_owned());
    loop {
        let page = gateway.ask("", &format!("GET /api/v1/audit{query}"), "").await;
        let page: Value = serde_json::from_str(&page.body).unwrap();
        seen += page["records"].as_array().unwrap().len();
        let Some(next) = page["next"].as_u64() else { break };
        query = format!("?limit=2&before={next}");
    }
    assert_eq!(seen, 5);
}

#[tokio::test]
async fn operator_actions_are_audited() {
    let gateway = KeyedGateway::start("allowUnauthenticated: true").await;
    let admin = gateway.key_for("admin").await;
    let made = gateway.ask(&admin, "POST /api/v1/keys", r#"{"name":"x","scopes":["rest"]}"#).await.body;
    let made: Value = serde_json::from_str(&made).unwrap();
    gateway.ask(&admin, &format!("DELETE /api/v1/keys/{}", made["id"].as_str().unwrap()), "").await;
    gateway.ask(&admin, "POST /api/v1/handlers/web/refresh", "").await;
    let lines = records(&gateway, "", 3).await.join("\n");
    let lines = lines.replace(made["id"].as_str().unwrap(), "(made)");
    assert_snapshot!(lines.replace(admin.split('_').nth(1).unwrap(), "(admin)"), @r#"
    {"action":"key_created","principal":"(admin)","keyName":"a key","name":"(made)"}
    {"action":"key_revoked","principal":"(admin)","keyName":"a key","name":"(made)"}
    {"action":"handler_refreshed","principal":"(admin)","keyName":"a key","name":"web"}
    "#);
}

#[tokio::test]
async fn audited_arguments_are_redacted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let process = format!("audit: {{arguments: redacted, redact: [PIN, token], file: '{}'}}", file.display());
    let gateway = KeyedGateway::start(&process).await;
    call(&gateway, "search", r#"{"pin":1234,"a":[{"Token":"x","b":1}],"token":{"c":2}}"#).await;
    call(&gateway, "search", &format!(r#"{{"a":"{}"}}"#, "x".repeat(20_000))).await;
    let lines = records(&gateway, "", 2).await;
    assert_snapshot!(lines.join("\n"), @r#"
    {"action":"call","requestId":"mine","kind":"tool","name":"search","handler":"web","argumentsBytes":54,"arguments":{"pin":"[REDACTED]","a":[{"Token":"[REDACTED]","b":1}],"token":"[REDACTED]"},"outcome":"ok"}
    {"action":"call","requestId":"mine","kind":"tool","name":"search","handler":"web","argumentsDigest":"sha256:9218cfbc3eebaeafcbf122799c4d9b759c403074d040d624ecafe1ba075dc769","argumentsBytes":20008,"outcome":"ok"}
    "#);
    gateway.running.stop().await;
    let file_records = std::fs::read_to_string(file).unwrap();
    let file_records: Vec<Value> =
        file_records.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(file_records.iter().map(stable_text).collect::<Vec<_>>(), lines);
}

#[tokio::test]
async fn pending_audit_records_are_written_on_shutdown() {
    let gateway = KeyedGateway::start("").await;
    for _ in 0..20 {
        call(&gateway, "search", "{}").await;
    }
    let store = gateway.store.clone();
    gateway.running.stop().await;
    let all_records = toolyard_server::audit::query::AuditQuery::default();
    let page = toolyard_server::audit::query::read(&*store, all_records).await.unwrap();
    assert_eq!(page.records.len(), 20);
}

/// Records the creation of `keys` keys (`k0` and so on), more than the queue holds, and stops the audit service.
/// Returns the records in the trail, and the number of lost records.
async fn missing(store: Arc<dyn Store>, keys: usize) -> (Vec<String>, u64) {
    let audit = AuditQueue::new(AuditQueueOptions { records: 2, bytes: 1 << 20, arguments: false }, None);
    let process = ProcessSettings::default();
    let trail = AuditService::start(audit.clone(), &process, &store);
    for number in 0..keys {
        audit.record_event(AuditEvent {
            actor: AuditActor::default(),
            action: AuditAction::KeyCreated,
            object: format!("k{number}"),
        });
    }
    trail.stop(process.timeouts.drain).await;
    let page = query::read(&*store, AuditQuery::default()).await;
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
async fn lost_audit_records_are_counted_and_recorded() {
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
    let no_folder = StoreOptions::at(DatabaseLocation::File(file.path().join("store.db")));
    let away = Arc::new(ReopeningStore::new(no_folder));
    // Records that wait at the end count as lost, and so does the note of the loss itself.
    check(away, 5, &["the store cannot be reached"], 6).await;
}
