//! What a model reads of the tools that fit.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use toolyard_core::Entry;

/// How long a description may be, in characters: longer ones are cut.
const LONGEST_DESCRIPTION: usize = 500;

/// How many bytes the schemas of one answer may have. The first one is there in any case.
const MOST_SCHEMA_BYTES: usize = 24_000;

const NOTHING: &str =
    "Nothing fits. Say it in other words: what the thing is called in its own world, or what is done to it.";

const SHORTENED: &str = "Some have no inputSchema here, because all of them together are too long. Search for one of these by \
                         its name to see what it takes.";

/// The answer of a search.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    /// The best first.
    tools: Vec<Found>,
    /// What the model should know of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

/// A tool that fits.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    /// What to call it by.
    name: Arc<str>,
    server: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_schema: Option<Value>,
}

impl Answer {
    pub(super) fn of(entries: &[Arc<Entry>]) -> Self {
        let (mut bytes, mut note) = (0, entries.is_empty().then_some(NOTHING));
        let mut tools = Vec::with_capacity(entries.len());
        for entry in entries {
            let definition = entry.tool.as_ref().map(|tool| &tool.definition);
            let schema = definition.and_then(|definition| definition.get("inputSchema"));
            bytes += schema.map_or(0, |schema| schema.as_bytes().len());
            let fits = tools.is_empty() || bytes <= MOST_SCHEMA_BYTES;
            if !fits {
                note = Some(SHORTENED);
            }
            let description = definition.and_then(|definition| definition.get_str("description"));
            tools.push(Found {
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
    match text.char_indices().nth(LONGEST_DESCRIPTION) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}
