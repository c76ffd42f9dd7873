//! Adds a handler to the text of a manifest and leaves everything else as it is.
//!
//! The handler is inserted as text. Parsing the new text proves that the handler is in the right list and that nothing
//! else has changed.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::{
    builder,
    cursor::ValueCursor,
    import::NameAllocator,
    manifest::{self, REGISTRY_API, process_environment},
    problem::ManifestProblems,
    report::ProblemReport,
    source::{self, ManifestSource},
    tree::{NodeContent, TreeNode},
    value::{self, StringMode},
    yaml,
};

/// The text of a manifest, to which handlers can be added.
pub struct ManifestEditor {
    source: ManifestSource,
    documents: Vec<TreeNode>,
}

/// The reason why a handler cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum AddHandlerError {
    /// The manifest has problems with the new handler.
    #[error("{0}")]
    Problems(ManifestProblems),
    /// The layout of the text does not permit a new line.
    #[error("the handlers are not a list with one item per line")]
    UnsupportedLayout,
}

/// The location of the next handler in the text.
struct InsertionPoint {
    document: usize,
    /// Number of lines before it.
    lines: usize,
    indent: usize,
}

impl ManifestEditor {
    /// Parses a manifest, which may be empty.
    ///
    /// # Errors
    /// If the manifest has problems. Variables and files of references may be missing.
    pub fn new(source: ManifestSource) -> Result<Self, ManifestProblems> {
        Ok(Self { documents: documents(&source)?, source })
    }

    /// Returns a valid, unused handler name similar to `preferred`.
    #[must_use]
    pub fn free_name(&self, preferred: &str) -> String {
        self.existing_names().handler_names(&[preferred]).remove(0)
    }

    /// Returns a handler as YAML, in a list of one item.
    #[must_use]
    pub fn handler_yaml(handler: &Value) -> String {
        yaml::to_yaml(&json!([handler]))
    }

    /// Returns the text with this handler after those of the first registry that has a block list of handlers. Without
    /// such a registry, the text gets a registry document at its end.
    ///
    /// # Errors
    /// If the new text has problems, or if its layout does not permit another handler.
    pub fn with_handler(&self, handler: &Value) -> Result<String, AddHandlerError> {
        let mut expected: Vec<_> = self.documents.iter().map(json_value).collect();
        let text = match self.insertion_point() {
            Some(place) => {
                expected[place.document]["spec"]["handlers"]
                    .as_array_mut()
                    .ok_or(AddHandlerError::UnsupportedLayout)?
                    .push(handler.clone());
                self.with_item(&place, &Self::handler_yaml(handler))
            }
            // Programs that expect one document per file read it.
            None if self.source.text.trim_start().starts_with(['{', '[']) => {
                return Err(AddHandlerError::UnsupportedLayout);
            }
            None => {
                let registry = json!({
                    "apiVersion": REGISTRY_API,
                    "kind": "ToolRegistry",
                    "metadata": {"name": self.existing_names().registry_name(&self.source.name)},
                    "spec": {"handlers": [handler]},
                });
                let text = self.with_document(&yaml::to_yaml(&registry));
                expected.push(registry);
                text
            }
        };
        let added = ManifestSource { name: self.source.name.clone(), text };
        let documents = documents(&added).map_err(AddHandlerError::Problems)?;
        let is_as_expected = documents.iter().map(json_value).eq(expected);
        if is_as_expected { Ok(added.text) } else { Err(AddHandlerError::UnsupportedLayout) }
    }

    /// The names that the manifest already uses.
    fn existing_names(&self) -> NameAllocator {
        let text = |node: &TreeNode| match &node.content {
            NodeContent::Text(text) => Some(text.clone()),
            _ => None,
        };
        let registries =
            self.documents.iter().filter_map(|document| text(descendant(document, &["metadata", "name"])?));
        let handlers = self.documents.iter().flat_map(handlers);
        let handlers = handlers.filter_map(|handler| text(descendant(handler, &["name"])?));
        NameAllocator::with_existing(registries.collect::<HashSet<_>>(), handlers.collect())
    }

    /// Finds the line after the last handler of the first registry with a block list of handlers.
    fn insertion_point(&self) -> Option<InsertionPoint> {
        let lines: Vec<_> = self.source.text.lines().collect();
        self.documents.iter().enumerate().find_map(|(document, root)| {
            let last = handlers(root).last()?.position;
            let before = lines.get(last.line - 1)?.get(..last.column - 1)?;
            let indent = before.trim_end().strip_suffix('-').filter(|indent| indent.trim().is_empty())?.len();
            Some(InsertionPoint { document, lines: end_line(&lines, last.line, indent), indent })
        })
    }

    fn with_item(&self, insertion_point: &InsertionPoint, item: &str) -> String {
        let line_end = self.line_end();
        let lines: Vec<_> = self.source.text.split_inclusive('\n').collect();
        let (before, behind) = lines.split_at(insertion_point.lines);
        let mut text = before.concat();
        if !text.ends_with('\n') {
            text.push_str(line_end);
        }
        for line in item.lines() {
            text.extend([&" ".repeat(insertion_point.indent), line, line_end]);
        }
        text + &behind.concat()
    }

    fn with_document(&self, document: &str) -> String {
        let line_end = self.line_end();
        let mut text = self.source.text.clone();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push_str(line_end);
        }
        if !self.documents.is_empty() {
            text.extend(["---", line_end]);
        }
        text + &document.replace('\n', line_end)
    }

    fn line_end(&self) -> &'static str {
        if self.source.text.contains("\r\n") { "\r\n" } else { "\n" }
    }
}

/// Returns the number of lines up to the end of an item that continues at line `begin` and whose dash has the
/// indentation `indent`. Comments with more indentation belong to the item.
fn end_line(lines: &[&str], begin: usize, indent: usize) -> usize {
    let mut end = begin;
    for (at, line) in lines.iter().enumerate().skip(begin) {
        let content = line.trim_start_matches(' ');
        let is_inner = line.len() - content.len() > indent;
        match content.trim() {
            "" => {}
            _ if is_inner => end = at + 1,
            comment if comment.starts_with('#') => {}
            _ => break,
        }
    }
    end
}

/// Parses and checks the documents of a manifest.
fn documents(source: &ManifestSource) -> Result<Vec<TreeNode>, ManifestProblems> {
    let report = ProblemReport::lenient(&process_environment);
    let mut documents = Vec::new();
    if source::is_within_size_limit(&source.name, source.text.len(), &report) {
        documents = builder::documents(source, &report);
    }
    for document in &documents {
        manifest::check(ValueCursor::document(&source.name, document, &report));
    }
    report.finish(documents)
}

/// Returns a document as JSON. An invalid document compares equal to null.
fn json_value(document: &TreeNode) -> Value {
    let report = ProblemReport::lenient(&process_environment);
    value::any(ValueCursor::document("", document, &report), StringMode::Literal).unwrap_or_default()
}

/// The handlers of a registry.
fn handlers(document: &TreeNode) -> &[TreeNode] {
    match descendant(document, &["spec", "handlers"]).map(|handlers| &handlers.content) {
        Some(NodeContent::List(handlers)) => handlers,
        _ => &[],
    }
}

fn descendant<'a>(node: &'a TreeNode, path: &[&str]) -> Option<&'a TreeNode> {
    path.iter().try_fold(node, |node, name| match &node.content {
        NodeContent::Object(members) => {
            members.iter().find(|member| member.name == *name).map(|member| &member.value)
        }
        _ => None,
    })
}
