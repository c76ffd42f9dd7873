//! `ModelBehaviors` in the settings of agents on .NET: the lengths above which results are large.

use serde_json::{Map, Value, json};

use super::{ImportNote, entry::EntryFields, member, web};
use crate::{cursor::ValueCursor, tree::NodeContent};

const SECTION: &str = "ModelBehaviors";

/// Groups of built-in tools that the settings of a client do not ask for.
const OTHER_GROUPS: &[&str] = &["scripts", "guides", "skills", "search", "mcp"];

/// True if a file has settings of an agent that are imported.
pub(super) fn has_section(root: &ValueCursor<'_>) -> bool {
    member(root, SECTION).is_some() || member(root, web::SECTION).is_some()
}

/// Returns the thresholds of models, and adds notes about members that are not imported.
pub(super) fn models(root: &ValueCursor<'_>, notes: &mut Vec<ImportNote>) -> Vec<(String, usize)> {
    let section = member(root, SECTION);
    if !has_section(root) && member(root, "Mcp").is_none() {
        // The files of editors have settings of their own, which are no business of the gateway.
        return Vec::new();
    }
    if let Some(mut fields) = EntryFields::of(root) {
        fields.take(&["Mcp", "mcp", "mcpServers"]);
        fields.take(&[SECTION]);
        fields.take(&[web::SECTION]);
        fields.finish(notes);
    }
    let Some(mut fields) = section.as_ref().and_then(EntryFields::of) else { return Vec::new() };
    let models = fields.take(&["Models"]);
    fields.finish(notes);
    let Some(models) = models else { return Vec::new() };
    let NodeContent::Object(members) = models.content() else {
        models.report_wrong_type("an object", None);
        return Vec::new();
    };
    let thresholds = members
        .iter()
        .filter_map(|model| Some((model.name.clone(), threshold(&models.member(model), notes)?)));
    thresholds.collect()
}

fn threshold(model: &ValueCursor<'_>, notes: &mut Vec<ImportNote>) -> Option<usize> {
    let mut fields = EntryFields::of(model)?;
    let threshold = fields.take(&["ToolResultChunkingThreshold"]);
    fields.finish(notes);
    threshold?.count()
}

/// Returns a `Toolyard` document with these thresholds and this section `builtins.web`, or `None` without any.
pub(super) fn settings_document(
    models: &[(String, usize)],
    web: Option<Map<String, Value>>,
) -> Option<Value> {
    let mut builtins = Map::new();
    if !models.is_empty() {
        let models: Map<_, _> = models
            .iter()
            .map(|(model, threshold)| (model.clone(), json!({"threshold": threshold})))
            .collect();
        builtins.insert("results".to_owned(), json!({"models": models}));
    }
    builtins.extend(web.map(|web| ("web".to_owned(), Value::Object(web))));
    if builtins.is_empty() {
        return None;
    }
    builtins.extend(OTHER_GROUPS.iter().map(|group| ((*group).to_owned(), json!({"enabled": false}))));
    Some(json!({
        "apiVersion": "toolyard.dev/v1alpha1",
        "kind": "Toolyard",
        "spec": {"builtins": builtins},
    }))
}
