//! Documents with one thing changed.

use std::fmt;

use serde_json::json;

use super::document::Document;

pub(super) struct Mutation {
    pub(super) document: Document,
    /// The place, with `*` for the index of an item.
    pub(super) path: String,
    /// What was done there.
    pub(super) what: String,
}

/// The document with each of its fields left out or of another value, and each of its objects with a field more.
pub(super) fn mutations(document: &Document) -> Vec<Mutation> {
    let mut mutations = Vec::new();
    document.walk(&mut |path, value| {
        // At the root it would be another document.
        if path.is_empty() || path == ["kind"] {
            return;
        }
        let shown: Vec<_> =
            path.iter().map(|step| if step.parse::<usize>().is_ok() { "*" } else { step }).collect();
        let mut add = |what: String, document: Document| {
            mutations.push(Mutation { document, path: shown.join("."), what });
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

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n{:#}", self.path, self.what, self.document.0)
    }
}
