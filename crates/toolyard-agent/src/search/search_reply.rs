//! The result of `search_tools`.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use toolyard_core::RegistryEntry;

/// Maximum length of a description in characters. Longer ones are cut.
const MAX_DESCRIPTION_LENGTH: usize = 500;

/// Maximum bytes of the schemas in one result. The first schema is always included.
const MAX_SCHEMA_BYTES: usize = 24_000;

const NOTHING: &str = "No tool matches. Describe it in English, in other words: the usual name of the thing, or what is \
                       done to it.";

const SHORTENED: &str = "Some have no inputSchema here, because all schemas together are too long. Search for such a tool by \
                         its name to see what it takes.";

/// Result of a search.
#[derive(Debug, Serialize)]
pub(super) struct ToolSearchReply {
    /// Matching tools, the best first.
    tools: Vec<ToolSearchHit>,
    /// Note for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

/// A matching tool.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolSearchHit {
    /// Published name.
    name: Arc<str>,
    server: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_schema: Option<Value>,
}

impl ToolSearchReply {
    pub(super) fn of(entries: &[Arc<RegistryEntry>]) -> Self {
        let (mut bytes, mut note) = (0, entries.is_empty().then_some(NOTHING));
        let mut tools = Vec::with_capacity(entries.len());
        for entry in entries {
            let definition = entry.tool.as_ref().map(|tool| &tool.definition);
            let schema = definition.and_then(|definition| definition.get("inputSchema"));
            bytes += schema.map_or(0, |schema| schema.as_bytes().len());
            let fits = tools.is_empty() || bytes <= MAX_SCHEMA_BYTES;
            if !fits {
                note = Some(SHORTENED);
            }
            let description = definition.and_then(|definition| definition.get_str("description"));
            tools.push(ToolSearchHit {
                name: entry.name.clone(),
                server: entry.handler.name.clone(),
                description: description.map(|text| shortened(&text)),
                input_schema: schema.filter(|_| fits).map(|schema| schema.to_value()),
            });
        }
        Self { tools, note }
    }
}

fn shortened(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(MAX_DESCRIPTION_LENGTH) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}
