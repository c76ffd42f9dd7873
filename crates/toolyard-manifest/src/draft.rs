//! A manifest with one handler more, in which everything else stays as it was written.
//!
//! The handler is put in as text. That it came where it belongs, and that nothing else is different, is seen by reading
//! the whole again.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::{
    builder,
    cursor::Cursor,
    import::Names,
    manifest::{self, REGISTRY_API, process_environment},
    problem::Problems,
    report::Report,
    source::{self, Source},
    tree::{Content, Node},
    value::{self, Strings},
    yaml,
};

/// The text of a manifest, to which handlers can be added.
pub struct Draft {
    source: Source,
    documents: Vec<Node>,
}

/// Why a handler is not added.
#[derive(Debug, thiserror::Error)]
pub enum NotAdded {
    /// With it, the manifest has problems.
    #[error("{0}")]
    Problems(Problems),
    /// It is written in a way that no line can be added to.
    #[error("the handlers are not written one below the other")]
    NoPlace,
}

/// Where the next handler goes.
struct Place {
    document: usize,
    /// How many lines stand before it.
    lines: usize,
    indent: usize,
}

impl Draft {
    /// A manifest, which may be empty.
    ///
    /// # Errors
    /// When it has problems. Variables and files that it refers to need not be there.
    pub fn new(source: Source) -> Result<Self, Problems> {
        Ok(Self { documents: documents(&source)?, source })
    }

    /// A name like `wanted` that a handler can have, and none here has.
    #[must_use]
    pub fn free_name(&self, wanted: &str) -> String {
        self.names().handlers(&[wanted]).remove(0)
    }

    /// A handler as it is written.
    #[must_use]
    pub fn written(handler: &Value) -> String {
        yaml::written(&json!([handler]))
    }

    /// The text with this handler behind those of the first registry that has them one below the other; where there is
    /// none, in a registry of its own behind everything.
    ///
    /// # Errors
    /// When it has problems with it, or no place for it.
    pub fn with_handler(&self, handler: &Value) -> Result<String, NotAdded> {
        let mut expected: Vec<_> = self.documents.iter().map(value).collect();
        let text = match self.place() {
            Some(place) => {
                expected[place.document]["spec"]["handlers"]
                    .as_array_mut()
                    .ok_or(NotAdded::NoPlace)?
                    .push(handler.clone());
                self.with_item(&place, &Self::written(handler))
            }
            // Programs read it that know one document in a file.
            None if self.source.text.trim_start().starts_with(['{', '[']) => return Err(NotAdded::NoPlace),
            None => {
                let registry = json!({
                    "apiVersion": REGISTRY_API,
                    "kind": "ToolRegistry",
                    "metadata": {"name": self.names().registry(&self.source.name)},
                    "spec": {"handlers": [handler]},
                });
                let text = self.with_document(&yaml::written(&registry));
                expected.push(registry);
                text
            }
        };
        let added = Source { name: self.source.name.clone(), text };
        let documents = documents(&added).map_err(NotAdded::Problems)?;
        let is_as_expected = documents.iter().map(value).eq(expected);
        if is_as_expected { Ok(added.text) } else { Err(NotAdded::NoPlace) }
    }

    /// The names that are taken.
    fn names(&self) -> Names {
        let text = |node: &Node| match &node.content {
            Content::Text(text) => Some(text.clone()),
            _ => None,
        };
        let registries =
            self.documents.iter().filter_map(|document| text(at(document, &["metadata", "name"])?));
        let handlers = self.documents.iter().flat_map(handlers);
        let handlers = handlers.filter_map(|handler| text(at(handler, &["name"])?));
        Names::taken(registries.collect::<HashSet<_>>(), handlers.collect())
    }

    /// Below the last handler of the first registry whose handlers stand one below the other.
    fn place(&self) -> Option<Place> {
        let lines: Vec<_> = self.source.text.lines().collect();
        self.documents.iter().enumerate().find_map(|(document, root)| {
            let last = handlers(root).last()?.position;
            let before = lines.get(last.line - 1)?.get(..last.column - 1)?;
            let indent = before.trim_end().strip_suffix('-').filter(|indent| indent.trim().is_empty())?.len();
            Some(Place { document, lines: end(&lines, last.line, indent), indent })
        })
    }

    fn with_item(&self, place: &Place, item: &str) -> String {
        let line_end = self.line_end();
        let lines: Vec<_> = self.source.text.split_inclusive('\n').collect();
        let (before, behind) = lines.split_at(place.lines);
        let mut text = before.concat();
        if !text.ends_with('\n') {
            text.push_str(line_end);
        }
        for line in item.lines() {
            text.extend([&" ".repeat(place.indent), line, line_end]);
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

/// How many lines there are up to the end of an item that goes on at line `begin`, whose dash stands at `indent`.
/// Comments that are further to the right are its own.
fn end(lines: &[&str], begin: usize, indent: usize) -> usize {
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

/// The documents of a manifest, where nothing is wrong with them.
fn documents(source: &Source) -> Result<Vec<Node>, Problems> {
    let report = Report::forgiving(&process_environment);
    let mut documents = Vec::new();
    if source::is_bounded(&source.name, source.text.len(), &report) {
        documents = builder::documents(source, &report);
    }
    for document in &documents {
        manifest::check(Cursor::document(&source.name, document, &report));
    }
    report.finish(documents)
}

/// What a document says. One that has no value is equal to none.
fn value(document: &Node) -> Value {
    let report = Report::forgiving(&process_environment);
    value::any(Cursor::document("", document, &report), Strings::Literal).unwrap_or_default()
}

/// The handlers of a registry.
fn handlers(document: &Node) -> &[Node] {
    match at(document, &["spec", "handlers"]).map(|handlers| &handlers.content) {
        Some(Content::List(handlers)) => handlers,
        _ => &[],
    }
}

fn at<'a>(node: &'a Node, path: &[&str]) -> Option<&'a Node> {
    path.iter().try_fold(node, |node, name| match &node.content {
        Content::Object(members) => {
            members.iter().find(|member| member.name == *name).map(|member| &member.value)
        }
        _ => None,
    })
}
