//! Definitions that real servers have published, from the folder `TOOLYARD_CORPORA`.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolyard_core::gate::{CallGate, GateSize};
use toolyard_core::names::NameRegistry;
use toolyard_core::registry::{CallLimits, EntryKind, HandlerEntry, NoticeReason};
use toolyard_core::schema::{CompiledSchema, ValidationBudget};
use toolyard_core::{Backend, BackendPhase, Call, Catalog, Json, Object, Outcome, Registry, Tool, ToolError};
use toolyard_testing::corpora::corpus;

/// A backend that is never called.
struct Silent;

impl Backend for Silent {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        watch::channel(Arc::default()).1
    }

    fn call(&self, _: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        unreachable!("nothing is called")
    }
}

/// Returns the schema of valid tools: the definition `Tool` of its schema, up to the revision 2025-11-25 or since then.
fn tool_schema(is_legacy: bool) -> CompiledSchema {
    let root = |is_object: bool| match (is_legacy, is_object) {
        (true, _) => json!({
            "type": "object",
            "required": ["type"],
            "properties": {
                "$schema": {"type": "string"},
                "type": {"const": "object"},
                "properties": {"type": "object", "additionalProperties": {"type": "object"}},
                "required": {"type": "array", "items": {"type": "string"}},
            },
        }),
        (false, true) => json!({
            "type": "object",
            "required": ["type"],
            "properties": {"$schema": {"type": "string"}, "type": {"const": "object"}},
        }),
        (false, false) => json!({"type": "object", "properties": {"$schema": {"type": "string"}}}),
    };
    let (text, flag) = (json!({"type": "string"}), json!({"type": "boolean"}));
    let schema = json!({
        "type": "object",
        "required": ["name", "inputSchema"],
        "properties": {
            "name": text,
            "title": text,
            "description": text,
            "inputSchema": root(true),
            "outputSchema": root(false),
            "_meta": {"type": "object"},
            "annotations": {"type": "object", "properties": {
                "title": text, "readOnlyHint": flag, "destructiveHint": flag, "idempotentHint": flag, "openWorldHint": flag,
            }},
            "execution": {"type": "object", "properties": {
                "taskSupport": {"enum": ["forbidden", "optional", "required"]},
            }},
            "icons": {"type": "array", "items": {"type": "object", "required": ["src"], "properties": {
                "src": text, "mimeType": text, "sizes": {"type": "array", "items": text}, "theme": {"enum": ["dark", "light"]},
            }}},
        },
    });
    CompiledSchema::compile(&schema).unwrap()
}

/// Returns the recorded lists of tools by server.
#[expect(clippy::disallowed_methods, reason = "the test unpacks a file")]
fn recorded() -> Option<BTreeMap<String, Vec<Json>>> {
    let file = corpus("mcp/servers.jsonl.gz", "recorded definitions")?;
    let unpacked = Command::new("gzip").arg("-dc").arg(file).output().unwrap();
    assert!(unpacked.status.success(), "the recorded definitions can be read");
    let lists = unpacked.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(|line| {
        let server = Object::parse(line.to_vec()).unwrap();
        (server.get_str("id").unwrap().into_owned(), server.get("tools").unwrap().to_items().unwrap())
    });
    Some(lists.collect())
}

/// Each published list is valid in each revision, and a definition that is valid already is published byte for byte.
#[test]
fn recorded_definitions_are_published_as_mcp_permits() {
    let Some(servers) = recorded() else { return };
    let (modern, legacy) = (tool_schema(false), tool_schema(true));
    let is_valid = |schema: &CompiledSchema, definition: &Json| {
        let value: Value = definition.to_value();
        schema.check(&value, &ValidationBudget::of(definition.as_bytes().len()))
    };
    let (mut repairs, mut offered, mut published, mut unchanged) =
        (BTreeMap::<String, usize>::new(), 0, 0, 0);
    for (server, definitions) in servers {
        let gate = CallGate::new(GateSize { running: 1, waiting: 1 });
        let limits = CallLimits { timeout: Duration::from_secs(1), gate };
        let handler = HandlerEntry::new(&*server, Arc::new(Silent), limits);
        let tools: Vec<_> = definitions.iter().filter_map(|tool| Tool::from_definition(tool).ok()).collect();
        // Of two tools with one name the first counts.
        let original: BTreeMap<_, _> =
            tools.iter().rev().map(|tool| (tool.name.clone(), tool.definition.to_json())).collect();
        offered += definitions.len();
        let tools = tools.into_iter().map(Arc::new).collect();
        let catalog = Arc::new(Catalog { phase: BackendPhase::Ready, tools, ..Catalog::default() });
        let registry = Registry::assemble(&[(handler, catalog)], &mut NameRegistry::default());
        let mut repaired = Vec::new();
        for notice in registry.notices() {
            match &notice.what {
                NoticeReason::Repaired(report) => {
                    repaired.push(notice.own.clone());
                    report.split("; ").for_each(|repair| *repairs.entry(repair.to_owned()).or_default() += 1);
                }
                what => println!("{server}: {}: {what}", notice.own),
            }
        }
        for (entry, definition) in registry.advertised(EntryKind::Tools).iter() {
            published += 1;
            assert_eq!(is_valid(&modern, definition), Ok(()), "{server}: {}", entry.name);
            let is_renamed = entry.name != entry.own;
            if !is_renamed && !repaired.contains(&entry.own) {
                unchanged += 1;
                assert_eq!(definition, &original[&entry.own], "{server}: {}", entry.name);
            }
            if is_valid(&modern, &original[&entry.own]).is_err() {
                assert!(repaired.contains(&entry.own), "{server}: {}", entry.name);
            }
        }
        for (entry, definition) in registry.advertised_objects(EntryKind::Tools).iter() {
            assert_eq!(is_valid(&legacy, definition), Ok(()), "{server}: {}", entry.name);
        }
    }
    for (repair, count) in repairs {
        println!("{count} {repair}");
    }
    println!(
        "{offered} recorded, {published} published, {unchanged} of them byte for byte and without another name"
    );
}
