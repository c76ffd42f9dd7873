//! The documents of a manifest for display: without secrets, and with references as they are written.
//!
//! Readers mark what may be secret ([`ValueCursor::mark_secret`]). Of everything else, URLs lose passwords, queries and
//! fragments, programs most of their arguments, and metadata all but the identity.

mod arguments;
mod url;

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
};

use serde_json::{Map, Value};

use self::{arguments::without_secret_arguments, url::UrlParts};
use crate::{
    cursor::ValueCursor,
    problem::FieldPath,
    tree::{NodeContent, TreeNode},
    yaml,
};

/// Text in place of a secret.
pub(crate) const REDACTED: &str = "[REDACTED]";

/// Words that a secret may have around its references, as in `Bearer ${TOKEN}`.
const AUTH_SCHEMES: &[&str] = &["", "bearer", "basic", "token", "apikey"];

/// Members of `metadata` that are shown. Annotations may contain the whole document.
const IDENTITY: &[&str] = &["name", "namespace"];

/// A document of a manifest for display.
#[derive(Clone, PartialEq)]
pub struct ManifestDocument {
    /// Name of the source, usually the path of a file.
    pub source: String,
    content: Value,
}

/// The difference between two manifests. Changes of literal secrets are not part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManifestDifference {
    /// Names of new handlers.
    pub added: Vec<String>,
    /// Names of changed handlers.
    pub changed: Vec<String>,
    /// Names of removed handlers.
    pub removed: Vec<String>,
    /// Number of unchanged handlers.
    pub unchanged: usize,
    /// True if the `Toolyard` documents differ, or the `ToolRegistry` documents outside their handlers.
    pub changes_settings: bool,
}

impl ManifestDocument {
    /// Returns a document that was read, with the paths that were marked as secret.
    pub(crate) fn new(source: &str, document: &ValueCursor<'_>, secret_paths: &HashSet<FieldPath>) -> Self {
        let content = DocumentRedaction { secret_paths }.value(document.node(), document.path(), false);
        Self { source: source.to_owned(), content }
    }

    /// Returns the document as YAML. References such as `${NAME}` are not expanded, and `[REDACTED]` replaces each literal
    /// value that may be secret.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        yaml::to_yaml(&self.content)
    }
}

/// Shows no content: what is for operators is not for logs.
impl fmt::Debug for ManifestDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManifestDocument").field("source", &self.source).finish_non_exhaustive()
    }
}

impl ManifestDifference {
    /// Compares the documents of a manifest with those of an edited one.
    #[must_use]
    pub fn between(before: &[ManifestDocument], edited: &[ManifestDocument]) -> Self {
        let (before, edited) = (DeclaredParts::of(before), DeclaredParts::of(edited));
        let mut difference = Self { changes_settings: before.settings != edited.settings, ..Self::default() };
        for (name, handler) in &edited.handlers {
            match before.handlers.get(name) {
                None => difference.added.push((*name).to_owned()),
                Some(known) if known == handler => difference.unchanged += 1,
                Some(_) => difference.changed.push((*name).to_owned()),
            }
        }
        let is_removed = |name: &&&str| !edited.handlers.contains_key(**name);
        difference.removed =
            before.handlers.keys().filter(is_removed).map(|name| (*name).to_owned()).collect();
        difference
    }
}

/// The handlers of documents by their names, and everything else.
#[derive(Default)]
struct DeclaredParts<'a> {
    handlers: BTreeMap<&'a str, &'a Value>,
    settings: Vec<Value>,
}

impl<'a> DeclaredParts<'a> {
    fn of(documents: &'a [ManifestDocument]) -> Self {
        let mut parts = Self::default();
        for ManifestDocument { content, .. } in documents {
            let handlers = content.pointer("/spec/handlers").and_then(Value::as_array);
            let named = handlers.into_iter().flatten().filter_map(|it| Some((it["name"].as_str()?, it)));
            parts.handlers.extend(named);
            let mut settings = content.clone();
            if let Some(spec) = settings["spec"].as_object_mut() {
                spec.remove("handlers");
            }
            parts.settings.push(settings);
        }
        parts
    }
}

/// Converts a tree to a value without secrets.
struct DocumentRedaction<'a> {
    secret_paths: &'a HashSet<FieldPath>,
}

impl DocumentRedaction<'_> {
    fn value(&self, node: &TreeNode, path: &FieldPath, is_below_secret: bool) -> Value {
        let is_marked = self.secret_paths.contains(path);
        match &node.content {
            NodeContent::Null => Value::Null,
            NodeContent::Text(text) if is_reference(text) => Value::from(&**text),
            NodeContent::Text(text) if !is_below_secret => match UrlParts::of(text) {
                Some(url) => Value::from(url.shown(is_marked)),
                None => Value::from(if is_marked { REDACTED } else { text }),
            },
            NodeContent::Text(_) | NodeContent::Bool(_) | NodeContent::Integer(_) | NodeContent::Float(_)
                if is_below_secret || is_marked =>
            {
                Value::from(REDACTED)
            }
            NodeContent::Text(text) => Value::from(&**text),
            NodeContent::Bool(flag) => Value::from(*flag),
            NodeContent::Integer(number) => Value::from(*number),
            NodeContent::Float(number) => Value::from(*number),
            NodeContent::List(items) => {
                let is_below_secret = is_below_secret || is_marked;
                let item = |(index, item): (usize, _)| self.value(item, &path.item(index), is_below_secret);
                Value::Array(items.iter().enumerate().map(item).collect())
            }
            NodeContent::Object(members) => {
                let is_metadata = path.is("metadata");
                let members = members.iter().map(|member| {
                    let is_hidden = is_metadata && !IDENTITY.contains(&&*member.name);
                    let path = path.field(&member.name);
                    let mut value =
                        self.value(&member.value, &path, is_below_secret || is_marked || is_hidden);
                    if let Value::Array(args) = &mut value
                        && path.ends_with("mcpConfig.args")
                    {
                        without_secret_arguments(args);
                    }
                    (member.name.clone(), value)
                });
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }
}

/// Returns true for a text of references without defaults, and perhaps the name of an authentication scheme.
fn is_reference(text: &str) -> bool {
    let (mut literal, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once("${") {
        let Some((reference, behind)) = behind.split_once('}') else { return false };
        if reference.contains(":-") || before.ends_with('$') {
            return false;
        }
        literal.push_str(before);
        rest = behind;
    }
    literal.push_str(rest);
    text.contains("${") && AUTH_SCHEMES.contains(&&*literal.trim().to_ascii_lowercase())
}
