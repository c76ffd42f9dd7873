//! The lists of the last run, which are served until a server has answered.
//!
//! A record belongs to one declaration of a server: if its command, its URL or one of its secrets has changed, the lists
//! are dropped. The store has no secret, only a salted digest of the declaration.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use toolyard_core::store::Store;
use toolyard_core::{BackendPhase, Catalog, Json, Object, Prompt, PublishedTemplate, Resource, Tool};
use toolyard_manifest::{HandlerConfig, HandlerKind};

use super::FleetMember;
use super::handler_records::{HandlerRecordStore, key};
use crate::keys::key::hex;

/// Maximum bytes of the stored lists of a handler. Longer ones are not stored.
const MAX_LIST_BYTES: usize = 4 << 20;

/// Number of random bytes in the digest of a declaration.
const SALT_BYTES: usize = 16;

/// The lists of a handler as stored.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredLists {
    salt: String,
    digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    protocol: Option<Arc<str>>,
    tools: Vec<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    prompts: Vec<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    resources: Vec<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    templates: Vec<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unlisted: bool,
}

/// The lists of a handler from the last run, and their record.
#[derive(Clone, Default)]
pub(crate) struct LastLists {
    /// The lists, of a handler that is connecting.
    pub(super) catalog: Arc<Catalog>,
    /// The record in the store; `None` if there is none, or if it belongs to another declaration.
    pub(super) record: Option<Bytes>,
}

/// The lists of all handlers from the last run, by key.
pub(crate) type RecalledLists = HashMap<String, LastLists>;

/// True if a server elsewhere lists what the handler offers, so that its lists are remembered. Functions run here, and
/// workers announce their tools.
pub(super) fn has_lists(handler: &HandlerConfig) -> bool {
    let is_elsewhere = !matches!(handler.kind, HandlerKind::Function(_) | HandlerKind::Bus(_));
    handler.kind.has_server_definitions() && is_elsewhere
}

impl HandlerRecordStore {
    /// Reads the lists of these handlers. Without the store there are none, and none are written.
    pub(crate) async fn recall_lists(
        store: Arc<dyn Store>,
        handlers: &[HandlerConfig],
    ) -> (Option<Self>, RecalledLists) {
        let (record_store, records) = Self::recall_last_lists(store, handlers).await;
        let Some(records) = records else { return (None, HashMap::new()) };
        let lists = |handler: &HandlerConfig| {
            let record = records.get(&key(handler))?;
            let catalog = decode(handler, record)?;
            Some((key(handler), LastLists { catalog: Arc::new(catalog), record: Some(record.clone()) }))
        };
        (Some(record_store), handlers.iter().filter(|handler| has_lists(handler)).filter_map(lists).collect())
    }
}

/// The lists of a member as they are stored.
#[derive(Default)]
pub(super) struct HeldLists {
    /// The catalog that was encoded last.
    catalog: Option<Arc<Catalog>>,
    pub(super) record: Option<Bytes>,
}

impl FleetMember {
    /// Adds the lists of the last run. They are only stored further if they must not be served.
    pub(super) fn with_last_lists(self, last: LastLists, is_served: bool) -> Self {
        let last_catalog = if is_served { last.catalog } else { Arc::default() };
        Self { last_catalog, stored_lists: HeldLists { catalog: None, record: last.record }, ..self }
    }

    /// Encodes the lists that the server has just published; returns true if they have changed.
    pub(super) fn store_lists(&mut self) -> bool {
        let catalog = self.serving.catalog.borrow().clone();
        let is_stored =
            self.stored_lists.catalog.as_ref().is_some_and(|stored| Arc::ptr_eq(stored, &catalog));
        let declared = &self.status.declared;
        // The declaration belongs to the successor, if there is one.
        if is_stored
            || catalog.phase != BackendPhase::Ready
            || self.successor.is_some()
            || !has_lists(declared)
        {
            return false;
        }
        let record = encode(declared, &catalog);
        self.stored_lists = HeldLists { catalog: Some(catalog), record };
        true
    }
}

/// Returns the catalog, with the last lists if the current ones were never listed.
pub(super) fn with_last_tools(catalog: Arc<Catalog>, last_catalog: &Arc<Catalog>) -> Arc<Catalog> {
    if catalog.phase == BackendPhase::Ready || !catalog.tools.is_empty() {
        return catalog;
    }
    if catalog.phase == last_catalog.phase {
        return last_catalog.clone();
    }
    let Catalog { tools, prompts, resources, templates, unlisted, .. } = Catalog::clone(last_catalog);
    Arc::new(Catalog {
        phase: catalog.phase.clone(),
        tools,
        prompts,
        resources,
        templates,
        unlisted,
        ..Catalog::default()
    })
}

/// Encodes the lists of a handler; `None` if they are too long.
pub(super) fn encode(handler: &HandlerConfig, catalog: &Catalog) -> Option<Bytes> {
    let mut salt = [0; SALT_BYTES];
    getrandom::fill(&mut salt).ok()?;
    let salt = hex(&salt);
    let mut room = MAX_LIST_BYTES;
    let mut raw = |definition: &Object| {
        let text = definition.to_json().as_text().to_owned();
        room = room.checked_sub(text.len())?;
        RawValue::from_string(text).ok()
    };
    let stored = StoredLists {
        digest: digest(handler, &salt),
        salt,
        protocol: catalog.protocol.clone(),
        tools: catalog.tools.iter().map(|tool| raw(&tool.definition)).collect::<Option<_>>()?,
        prompts: catalog.prompts.iter().map(|prompt| raw(&prompt.definition)).collect::<Option<_>>()?,
        resources: catalog.resources.iter().map(|item| raw(&item.definition)).collect::<Option<_>>()?,
        templates: catalog.templates.iter().map(|item| raw(&item.definition)).collect::<Option<_>>()?,
        unlisted: catalog.unlisted,
    };
    serde_json::to_vec(&stored).ok().map(Bytes::from)
}

/// Decodes the lists of a handler; `None` for those of another declaration, and for a damaged record.
fn decode(handler: &HandlerConfig, record: &[u8]) -> Option<Catalog> {
    let stored: StoredLists = serde_json::from_slice(record).ok()?;
    if digest(handler, &stored.salt) != stored.digest {
        return None;
    }
    let json = |raw: &RawValue| Json::parse(raw.get().to_owned()).ok();
    Some(Catalog {
        phase: BackendPhase::Connecting,
        protocol: stored.protocol,
        tools: items(&stored.tools, |raw| Tool::from_definition(&json(raw)?).ok()),
        prompts: items(&stored.prompts, |raw| Prompt::from_definition(&json(raw)?).ok()),
        resources: items(&stored.resources, |raw| Resource::from_definition(&json(raw)?).ok()),
        templates: items(&stored.templates, |raw| PublishedTemplate::from_definition(&json(raw)?).ok()),
        unlisted: stored.unlisted,
        ..Catalog::default()
    })
}

fn items<T>(stored: &[Box<RawValue>], parse: impl Fn(&RawValue) -> Option<T>) -> Vec<Arc<T>> {
    stored.iter().filter_map(|raw| parse(raw)).map(Arc::new).collect()
}

/// Returns the digest of a declaration, with its secrets.
fn digest(handler: &HandlerConfig, salt: &str) -> String {
    let mut hasher = Sha256::new();
    let mut add = |text: &str| {
        hasher.update((text.len() as u64).to_be_bytes());
        hasher.update(text);
    };
    add(salt);
    handler.identity().iter().for_each(|text| add(text));
    hex(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handler(config: &str) -> HandlerConfig {
        declared(&format!("type: mcp, mcpConfig: {{{config}}}"))
    }

    fn declared(handler: &str) -> HandlerConfig {
        let text = format!(
            "apiVersion: omnia.altairalabs.ai/v1alpha1\nkind: ToolRegistry\nmetadata: {{name: a}}\nspec: {{handlers: [{{name: h, {handler}}}]}}\n"
        );
        let source = toolyard_manifest::ManifestSource { name: "a.yaml".into(), text };
        toolyard_manifest::parse(&[source]).unwrap_or_else(|problems| panic!("{problems}")).handlers.remove(0)
    }

    fn catalog() -> Catalog {
        let definition = Json::parse(r#"{"name":"t","inputSchema":{"type":"object"},"x":1}"#).unwrap();
        let resource = Json::parse(r#"{"uri":"a://b","name":"b"}"#).unwrap();
        Catalog {
            phase: BackendPhase::Ready,
            tools: vec![Arc::new(Tool::from_definition(&definition).unwrap())],
            resources: vec![Arc::new(Resource::from_definition(&resource).unwrap())],
            protocol: Some("MCP 2025-11-25".into()),
            ..Catalog::default()
        }
    }

    #[test]
    fn lists_belong_to_one_declaration() {
        let check = |before: &str, after: &str, is_kept: bool| {
            let record = encode(&handler(before), &catalog()).unwrap();
            assert_eq!(decode(&handler(after), &record).is_some(), is_kept, "{before} -> {after}");
        };
        let stdio = "transport: stdio, command: a, args: [x], env: {K: secret1}";
        check(stdio, stdio, true);
        check(stdio, "transport: stdio, command: b, args: [x], env: {K: secret1}", false);
        check(stdio, "transport: stdio, command: a, args: [y], env: {K: secret1}", false);
        check(stdio, "transport: stdio, command: a, args: [x], env: {K: secret2}", false);
        check(stdio, "transport: stdio, command: a, args: [x], env: {L: secret1}", false);
        let http = "transport: streamable-http, endpoint: 'https://a/b?k=1', headers: {X: s}";
        check(http, http, true);
        check(http, "transport: streamable-http, endpoint: 'https://a/c?k=1', headers: {X: s}", false);
        check(http, "transport: streamable-http, endpoint: 'https://a/b?k=2', headers: {X: s}", false);
        check(http, "transport: streamable-http, endpoint: 'https://a/b?k=1', headers: {X: t}", false);
    }

    #[test]
    fn lists_of_each_kind_belong_to_one_declaration() {
        let check = |before: &str, after: &str, is_kept: bool| {
            let record = encode(&declared(before), &catalog()).unwrap();
            assert_eq!(decode(&declared(after), &record).is_some(), is_kept, "{before} -> {after}");
        };
        let filter = |methods: &str| {
            format!("type: grpc, grpcConfig: {{endpoint: 'a:1', filter: {{methods: [{methods}]}}}}")
        };
        check(&filter("b"), &filter("b"), true);
        check(&filter("b"), &filter("c"), false);
        check(&filter("b"), "type: grpc, grpcConfig: {endpoint: 'a:2', filter: {methods: [b]}}", false);
        let spec = |rest: &str| format!("type: openapi, openAPIConfig: {{specURL: 'https://a/b'{rest}}}");
        check(&spec(""), &spec(""), true);
        check(&spec(""), &spec(", filter: {tags: [x]}"), false);
        check(&spec(", filter: {tags: [/x]}"), &spec(", filter: {paths: [/x]}"), false);
        // Settings of calls do not tell servers apart.
        check(&spec(""), &spec(", refresh: 10m"), true);
    }

    #[test]
    fn kinds_whose_lists_are_remembered() {
        let check =
            |handler: &str, expected: bool| assert_eq!(has_lists(&declared(handler)), expected, "{handler}");
        check("type: mcp, mcpConfig: {transport: stdio, command: a}", true);
        check("type: openapi, openAPIConfig: {specURL: 'https://a/b'}", true);
        check("type: grpc, grpcConfig: {endpoint: 'a:1'}", true);
    }

    #[test]
    fn lists_return_as_those_of_a_connecting_server() {
        let handler = handler("transport: stdio, command: a, env: {K: hunter2hunter2}");
        let record = encode(&handler, &catalog()).unwrap();
        assert!(!String::from_utf8_lossy(&record).contains("hunter2"));
        let expected = Catalog { phase: BackendPhase::Connecting, ..catalog() };
        assert_eq!(decode(&handler, &record), Some(expected));
        assert_eq!(decode(&handler, b"{}"), None);
    }

    #[test]
    fn lists_that_are_too_long_are_not_stored() {
        let text = format!(r#"{{"name":"t","x":"{}"}}"#, "x".repeat(MAX_LIST_BYTES));
        let tool = Tool::from_definition(&Json::parse(text).unwrap()).unwrap();
        let long = Catalog { tools: vec![Arc::new(tool)], ..catalog() };
        assert_eq!(encode(&handler("transport: stdio, command: a"), &long), None);
    }
}
