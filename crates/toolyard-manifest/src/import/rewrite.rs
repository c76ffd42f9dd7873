//! The values of a client's file, as a manifest has them.

use super::{Note, reference};
use crate::{
    cursor::Cursor,
    problem::quoted,
    tree::{Content, Member, Node},
};

/// Parts of names whose values are likely to be secret.
const SECRET_WORDS: &[&str] = &["auth", "cookie", "cred", "key", "pass", "secret", "token"];

/// A value with references of ours in its strings, and strings in the place of numbers, as clients allow them.
/// What has no place here is left for the reader of the document to report.
pub(super) fn rewritten(value: &Cursor<'_>, notes: &mut Vec<Note>) -> Node {
    let content = match value.content() {
        Content::Text(text) => Content::Text(text_of(value, text, notes)),
        Content::Integer(number) => Content::Text(number.to_string()),
        Content::Bool(flag) => Content::Text(flag.to_string()),
        Content::List(_) => {
            let items = value.clone().list(Some).unwrap_or_default();
            Content::List(items.iter().map(|item| rewritten(item, notes)).collect())
        }
        Content::Object(members) => {
            // A variable without a value is one that is not set.
            let wanted = members.iter().filter(|member| !matches!(member.value.content, Content::Null));
            Content::Object(wanted.map(|member| rewritten_member(value, member, notes)).collect())
        }
        other => other.clone(),
    };
    Node { content, position: value.node().position }
}

/// A variable or a header.
fn rewritten_member<'a>(object: &Cursor<'a>, member: &'a Member, notes: &mut Vec<Note>) -> Member {
    let value = object.member(member);
    if may_be_secret(&member.name) && matches!(value.content(), Content::Text(text) if is_written_out(text)) {
        notes.push(Note::at(
            &value,
            "this value is in the manifest as it is here; `${NAME}` would keep it out",
        ));
    }
    Member { name: member.name.clone(), position: member.position, value: rewritten(&value, notes) }
}

fn may_be_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

fn is_written_out(text: &str) -> bool {
    !text.is_empty() && !text.contains("${")
}

fn text_of(value: &Cursor<'_>, text: &str, notes: &mut Vec<Note>) -> String {
    let rewritten = reference::rewrite(text);
    for (reference, variable) in rewritten.renamed {
        let reference = quoted(&format!("${{{reference}}}"));
        let message = format!("{reference} is the variable {} now: set it", quoted(&variable));
        notes.push(Note::at(value, message));
    }
    rewritten.text
}
