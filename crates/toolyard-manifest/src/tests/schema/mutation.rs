//! Documents with a single change.

use std::fmt;

use serde_json::{Map, Value, json};

use super::document::JsonDocument;

pub(super) struct DocumentMutation {
    pub(super) document: JsonDocument,
    /// Path of the change, with `*` for the index of an item.
    pub(super) path: String,
    /// Description of the change.
    pub(super) change: String,
}

/// The document with each field absent or with another value, and each object with an additional field.
///
/// A change within a part of the document is made in that part alone if it is valid without the others: to read a long
/// document thousands of times takes a minute.
pub(super) fn mutations(
    document: &JsonDocument,
    is_valid: impl Fn(&JsonDocument) -> bool,
) -> Vec<DocumentMutation> {
    let parts: Vec<_> = parts(document).into_iter().filter(|(_, part)| is_valid(part)).collect();
    let mut mutations = Vec::new();
    document.walk(&mut |path, value| {
        // At the root it would be another document.
        if path.is_empty() || path == ["kind"] {
            return;
        }
        let is_within = |root: &[String]| path.len() > root.len() && path.starts_with(root);
        let document = parts.iter().find(|(root, _)| is_within(root)).map_or(document, |(_, part)| part);
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

/// Settings that others refer to.
const REFERRED: [&str; 4] = ["bus", "llm", "secretsDir", "store"];

/// The document with a single setting each, and with those that it may refer to.
fn parts(document: &JsonDocument) -> Vec<(Vec<String>, JsonDocument)> {
    let Some(spec) = document.0["spec"].as_object() else { return Vec::new() };
    let referred: Map<_, _> =
        spec.clone().into_iter().filter(|(name, _)| REFERRED.contains(&&**name)).collect();
    let mut parts = Vec::new();
    let mut add = |root: &[&str], spec: Map<String, Value>| {
        let root = root.iter().map(|&step| step.to_owned()).collect();
        parts.push((root, document.with(&["spec".to_owned()], spec.into())));
    };
    for (name, value) in spec.iter().filter(|(name, _)| !referred.contains_key(*name)) {
        let with = |value: Value| {
            let mut spec = referred.clone();
            spec.insert(name.clone(), value);
            spec
        };
        match value.as_object().filter(|_| name == "builtins") {
            Some(builtins) => builtins
                .iter()
                .for_each(|(builtin, value)| add(&["spec", name, builtin], with(json!({builtin: value})))),
            None => add(&["spec", name], with(value.clone())),
        }
    }
    parts
}

impl fmt::Display for DocumentMutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n{:#}", self.path, self.change, self.document.0)
    }
}
