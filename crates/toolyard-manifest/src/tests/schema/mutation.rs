//! Documents with a single change.

use std::fmt;

use serde_json::json;

use super::document::JsonDocument;

pub(super) struct DocumentMutation {
    pub(super) document: JsonDocument,
    /// Path of the change, with `*` for the index of an item.
    pub(super) path: String,
    /// Description of the change.
    pub(super) change: String,
}

/// The document with each field absent or with another value, and each object with an additional field.
pub(super) fn mutations(document: &JsonDocument) -> Vec<DocumentMutation> {
    let mut mutations = Vec::new();
    document.walk(&mut |path, value| {
        // At the root it would be another document.
        if path.is_empty() || path == ["kind"] {
            return;
        }
        let pattern: Vec<_> =
            path.iter().map(|step| if step.parse::<usize>().is_ok() { "*" } else { step }).collect();
        let mut add = |what: String, document: JsonDocument| {
            mutations.push(DocumentMutation { document, path: pattern.join("."), change: what });
        };
        if let Some(without) = document.without(path) {
            add("(absent)".to_owned(), without);
        }
        if value.is_object() {
            add("{zzz}".to_owned(), document.with(&[path, &["zzz".to_owned()]].concat(), json!(1)));
        }
        for other in
            [json!(true), json!(0), json!(-1), json!(1.5), json!(""), json!("~~"), json!([]), json!({})]
        {
            add(other.to_string(), document.with(path, other));
        }
    });
    mutations
}

impl fmt::Display for DocumentMutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n{:#}", self.path, self.change, self.document.0)
    }
}
