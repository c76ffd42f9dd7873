//! `WebTools` in the settings of agents on .NET: the tools for the web.

use super::{ImportNote, entry::EntryFields, member, rewrite};
use crate::{
    cursor::ValueCursor,
    tree::{NodeContent, ObjectMember, TreeNode},
};

pub(super) const SECTION: &str = "WebTools";

/// Names of settings here, and in `builtins.web`.
const SETTINGS: [(&str, &str); 6] = [
    ("ApiKey", "apiKey"),
    ("ApiKeyEnvVar", "apiKeyEnvVar"),
    ("MaxSearchResults", "maxSearchResults"),
    ("ChunkingThreshold", "chunkingThreshold"),
    ("ChunkMaxLength", "chunkMaxLength"),
    (CHUNK_TTL, "chunkTtl"),
];

const CHUNK_TTL: &str = "ChunkTtlMinutes";

/// Returns the section as `builtins.web`, whose reader reports invalid values, and adds notes about members that are not
/// imported.
pub(super) fn web(root: &ValueCursor<'_>, notes: &mut Vec<ImportNote>) -> Option<TreeNode> {
    let section = member(root, SECTION).filter(|section| !section.is_null())?;
    let mut fields = EntryFields::of(&section)?;
    let settings = SETTINGS.iter().filter_map(|(theirs, ours)| {
        let value = fields.take(&[theirs])?;
        let node = setting(theirs, &value, notes)?;
        Some(ObjectMember { name: (*ours).to_owned(), position: node.position, value: node })
    });
    let settings = settings.collect();
    fields.finish(notes);
    Some(TreeNode { content: NodeContent::Object(settings), position: section.node().position })
}

fn setting(name: &str, value: &ValueCursor<'_>, notes: &mut Vec<ImportNote>) -> Option<TreeNode> {
    let content = match value.content() {
        // Templates of settings have empty keys.
        NodeContent::Text(text) if text.is_empty() => return None,
        NodeContent::Text(text) => {
            if name == "ApiKey" && rewrite::is_literal(text) {
                notes.push(ImportNote::at(value, rewrite::COPIED_SECRET));
            }
            return Some(rewrite::rewrite_value(value, notes));
        }
        NodeContent::Integer(minutes) if name == CHUNK_TTL => NodeContent::Text(format!("{minutes}m")),
        other => other.clone(),
    };
    Some(TreeNode { content, position: value.node().position })
}
