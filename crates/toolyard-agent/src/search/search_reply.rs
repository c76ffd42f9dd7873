//! The result of `search_tools`.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use toolyard_core::{Json, RegistryEntry};

/// Maximum length of a description in characters: of a tool with its schema, and of one without. Longer ones are cut.
const MAX_DESCRIPTION_LENGTH: usize = 500;
const MAX_BRIEF_LENGTH: usize = 120;

/// Bytes of a result that schemas may fill. The first schema is always included; without the others, each tool takes
/// about the bytes of a brief one.
const MAX_BYTES: usize = 3_000;
const BRIEF_BYTES: usize = 230;

/// Number of tools up to which all schemas are included, and the maximum bytes of these.
const FEW_TOOLS: usize = 3;
const MAX_SCHEMA_BYTES: usize = 24_000;

/// Maximum length of a list of parameters in characters.
const MAX_PARAMETERS_LENGTH: usize = 120;

const NOTHING: &str = "No tool matches. Describe it in English, in other words: the usual name of the thing, or what is \
                       done to it.";

const DOUBTFUL: &str =
    "The query may not be in English. If no tool fits, describe it in English, in other words.";

const SHORTENED: &str =
    "To see the inputSchema of a tool that has only parameters (`?`: optional), search for its name.";

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
    /// Names of its parameters, if the schema is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<String>,
}

impl ToolSearchReply {
    /// Returns the result for these tools, the best first. `limit` is the number of tools that were asked for;
    /// `is_doubtful` is true if they may have been found by accident, `is_named` if the query is the first one's name.
    pub(super) fn of(
        entries: &[Arc<RegistryEntry>],
        limit: usize,
        is_doubtful: bool,
        is_named: bool,
    ) -> Self {
        let (mut bytes, mut note) = (0, entries.is_empty().then_some(NOTHING));
        let mut tools: Vec<ToolSearchHit> = Vec::with_capacity(entries.len());
        for (entry, later) in entries.iter().zip((0..entries.len()).rev()) {
            let length = ToolSearchHit::whole_length(entry);
            let fits = match limit <= FEW_TOOLS {
                true => bytes + length <= MAX_SCHEMA_BYTES,
                false => bytes + length + later * BRIEF_BYTES <= MAX_BYTES,
            };
            if fits || tools.is_empty() {
                bytes += length;
                tools.push(ToolSearchHit::whole(entry));
            } else {
                note = Some(SHORTENED);
                bytes += BRIEF_BYTES;
                tools.push(ToolSearchHit::brief(entry));
            }
        }
        if let (Some(named), Some(first)) = (entries.first().filter(|_| is_named), tools.first_mut()) {
            *first = ToolSearchHit::described(named);
        }
        if is_doubtful && !tools.is_empty() {
            note = Some(DOUBTFUL);
        }
        Self { tools, note }
    }
}

impl ToolSearchHit {
    fn new(entry: &RegistryEntry) -> Self {
        let (name, server) = (entry.name.clone(), entry.handler.name.clone());
        Self { name, server, description: None, input_schema: None, parameters: None }
    }

    /// Has the whole texts as well: the query is the name of the tool.
    fn described(entry: &RegistryEntry) -> Self {
        let manual = entry.tool.as_ref().and_then(|tool| tool.manual().map(str::to_owned));
        let description = manual.or_else(|| description(entry).map(Cow::into_owned));
        Self { description, ..Self::whole(entry) }
    }

    fn whole(entry: &RegistryEntry) -> Self {
        let description = description(entry).map(|text| shortened(&text, MAX_DESCRIPTION_LENGTH));
        Self { description, input_schema: schema(entry).map(Json::to_value), ..Self::new(entry) }
    }

    /// Leaves out the schema, and all but the beginning of the description.
    fn brief(entry: &RegistryEntry) -> Self {
        let description = description(entry).map(|text| brief(&text));
        Self { description, parameters: schema(entry).and_then(parameters), ..Self::new(entry) }
    }

    /// Returns the approximate length in bytes of a tool with its schema.
    fn whole_length(entry: &RegistryEntry) -> usize {
        let description = description(entry).map_or(0, |text| shortened(&text, MAX_DESCRIPTION_LENGTH).len());
        let schema = schema(entry).map_or(0, |schema| schema.as_bytes().len());
        description + schema + entry.name.len() + entry.handler.name.len()
    }
}

fn description(entry: &RegistryEntry) -> Option<Cow<'_, str>> {
    entry.tool.as_ref()?.definition.get_str("description")
}

fn schema(entry: &RegistryEntry) -> Option<&Json> {
    entry.tool.as_ref()?.definition.get("inputSchema")
}

/// Returns the names of the parameters, of which the optional ones end with `?`; `None` if there are none.
fn parameters(schema: &Json) -> Option<String> {
    let schema = schema.to_object().ok()?;
    let required =
        schema.get("required").and_then(|names| serde_json::from_str::<Vec<String>>(names.as_text()).ok());
    let required = required.unwrap_or_default();
    let properties = schema.get("properties")?.to_object().ok()?;
    let name = |name: &str| {
        let is_required = required.iter().any(|required| required == name);
        if is_required { name.to_owned() } else { format!("{name}?") }
    };
    let mut names: Vec<_> = properties.iter().map(|(member, _)| name(&member)).collect();
    names.sort_by_key(|name| name.ends_with('?'));
    (!names.is_empty()).then(|| shortened(&names.join(", "), MAX_PARAMETERS_LENGTH))
}

/// Returns the first sentence of a description, or its beginning.
fn brief(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let sentence = line.split_once(". ").map_or(line, |(sentence, _)| sentence);
    shortened(sentence, MAX_BRIEF_LENGTH)
}

fn shortened(text: &str, most: usize) -> String {
    let text = text.trim();
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}
