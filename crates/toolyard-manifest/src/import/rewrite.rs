//! Converts the values of a client's file to those of a manifest.

use super::{ImportNote, reference};
use crate::{
    cursor::ValueCursor,
    problem::quoted,
    tree::{NodeContent, ObjectMember, TreeNode},
};

/// Parts of names whose values are likely to be secret.
const SECRET_WORDS: &[&str] = &["auth", "cookie", "cred", "key", "pass", "secret", "token"];

/// The note about a value that is likely to be secret.
pub(super) const COPIED_SECRET: &str = "this value is copied into the manifest; use `${NAME}` to keep it out";

/// Converts the references in a value, and numbers to strings, which clients accept as well. The reader of the
/// resulting document reports invalid values.
pub(super) fn rewrite_value(value: &ValueCursor<'_>, notes: &mut Vec<ImportNote>) -> TreeNode {
    let content = match value.content() {
        NodeContent::Text(text) => NodeContent::Text(text_of(value, text, notes)),
        NodeContent::Integer(number) => NodeContent::Text(number.to_string()),
        NodeContent::Bool(flag) => NodeContent::Text(flag.to_string()),
        NodeContent::List(_) => {
            let items = value.clone().list(Some).unwrap_or_default();
            NodeContent::List(items.iter().map(|item| rewrite_value(item, notes)).collect())
        }
        NodeContent::Object(members) => {
            // A variable without a value is an unset variable.
            let present = members.iter().filter(|member| !matches!(member.value.content, NodeContent::Null));
            NodeContent::Object(present.map(|member| rewrite_member(value, member, notes)).collect())
        }
        other => other.clone(),
    };
    TreeNode { content, position: value.node().position }
}

/// Converts a variable or a header.
fn rewrite_member<'a>(
    object: &ValueCursor<'a>,
    member: &'a ObjectMember,
    notes: &mut Vec<ImportNote>,
) -> ObjectMember {
    let value = object.member(member);
    if may_be_secret(&member.name) && matches!(value.content(), NodeContent::Text(text) if is_literal(text)) {
        notes.push(ImportNote::at(&value, COPIED_SECRET));
    }
    ObjectMember { name: member.name.clone(), position: member.position, value: rewrite_value(&value, notes) }
}

pub(super) fn may_be_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

pub(super) fn is_literal(text: &str) -> bool {
    !text.is_empty() && !text.contains("${")
}

fn text_of(value: &ValueCursor<'_>, text: &str, notes: &mut Vec<ImportNote>) -> String {
    let rewritten = reference::rewrite_references(text);
    for (reference, variable) in rewritten.new_variables {
        let reference = quoted(&format!("${{{reference}}}"));
        let message = format!("{reference} becomes the variable {}: set it", quoted(&variable));
        notes.push(ImportNote::at(value, message));
    }
    rewritten.text
}
