//! Converts the configuration files of MCP clients to `ToolRegistry` documents.
//!
//! Supported are Claude Desktop, Claude Code, Cursor, VS Code and others, and agents on .NET; the content of a file
//! reveals its format. A converted document is a tree whose values keep their positions, so that problems point into
//! the original file.

mod comments;
mod entry;
mod name;
mod reference;
mod rewrite;
mod server;

use std::{fmt, path::Path};

use serde_json::Value;

pub(crate) use self::name::NameAllocator;
use crate::{
    builder,
    cursor::ValueCursor,
    manifest,
    problem::{ManifestProblem, ManifestProblems, SourceLocation, SourcePosition},
    report::ProblemReport,
    source::{self, ManifestSource},
    tree::{NodeContent, ObjectMember, TreeNode},
    value::{self, StringMode},
    yaml,
};

/// A `ToolRegistry` document made from a client's file.
///
/// It contains everything that the file contains, including secrets.
pub struct ImportedManifest {
    document: Value,
    notes: Vec<ImportNote>,
}

/// A remark on an import for its author. It never quotes a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportNote {
    /// The location in the client's file.
    pub location: SourceLocation,
    /// The remark.
    pub message: String,
}

/// An imported document on its way into a manifest.
pub(crate) struct ImportedDocument {
    /// The document, made from the servers of the file.
    pub(crate) document: TreeNode,
    pub(crate) notes: Vec<ImportNote>,
}

/// Converts a client's file and checks the result. The variables that it refers to need not be set yet.
pub fn import(path: &Path) -> Result<ImportedManifest, ManifestProblems> {
    let report = ProblemReport::lenient(&|name| std::env::var(name).ok());
    let import = source::read_file(path, &report).and_then(|source| import_checked(&source, &report));
    Ok(report.finish(import)?.expect("where there is no import, a problem says why"))
}

pub(crate) fn import_checked(
    source: &ManifestSource,
    report: &ProblemReport<'_>,
) -> Option<ImportedManifest> {
    let imported = import_document(source, &mut NameAllocator::default(), report)?;
    let document = ValueCursor::document(&source.name, &imported.document, report);
    manifest::check(document.clone());
    let document = value::object(document, StringMode::Literal)?;
    Some(ImportedManifest { document: document.into(), notes: imported.notes })
}

/// Converts a client's file. `names` holds the names that several files share.
pub(crate) fn import_document(
    source: &ManifestSource,
    names: &mut NameAllocator,
    report: &ProblemReport<'_>,
) -> Option<ImportedDocument> {
    let before = report.count();
    let text = comments::blank_comments(&source.text);
    let documents = builder::documents(&ManifestSource { name: source.name.clone(), text }, report);
    let [root] = documents.as_slice() else {
        if report.count() == before {
            let problem = ManifestProblem::new(
                SourceLocation::file(&source.name),
                "this is not a single JSON document",
            );
            report.add(problem.expected(EXPECTED));
        }
        return None;
    };
    let root = ValueCursor::document(&source.name, root, report);
    let mut notes: Vec<ImportNote> = Vec::new();
    let handlers = server::handlers(&servers(&root)?, names, &mut notes);
    notes.sort_by(|a, b| a.location.reading_order(&b.location));
    notes.dedup();
    if handlers.is_empty() {
        if report.count() == before {
            report.add(
                root.problem("this file has no enabled server with a supported transport").expected(EXPECTED),
            );
        }
        return None;
    }
    Some(ImportedDocument { document: document(names.registry_name(&source.name), handlers), notes })
}

const EXPECTED: &str = "`mcpServers`, or `servers` (VS Code), with at least one server";

/// The position of generated values.
const GENERATED_POSITION: SourcePosition = SourcePosition { line: 1, column: 1 };

/// Paths to the servers in the files of clients.
const SERVER_PATHS: &[&[&str]] =
    &[&["mcpServers"], &["servers"], &["mcp", "servers"], &["mcp.servers"], &["Mcp", "Servers"]];

/// Finds the servers of a file: an object with their names, or a list.
fn servers<'a>(root: &ValueCursor<'a>) -> Option<ValueCursor<'a>> {
    let at = |path: &&[&str]| path.iter().try_fold(root.clone(), |cursor, name| member(&cursor, name));
    let servers = SERVER_PATHS.iter().find_map(at);
    if servers.is_none() {
        root.report(root.problem("no MCP servers found").expected(EXPECTED));
    }
    servers
}

fn member<'a>(object: &ValueCursor<'a>, name: &str) -> Option<ValueCursor<'a>> {
    let NodeContent::Object(members) = object.content() else { return None };
    members.iter().find(|member| member.name == name).map(|member| object.member(member))
}

fn document(name: String, handlers: Vec<TreeNode>) -> TreeNode {
    let text = |text: &str| TreeNode::text(text, GENERATED_POSITION);
    let object = |members: Vec<(&str, TreeNode)>| TreeNode::object(members, GENERATED_POSITION);
    object(vec![
        ("apiVersion", text(manifest::REGISTRY_API)),
        ("kind", text("ToolRegistry")),
        ("metadata", object(vec![("name", text(&name))])),
        (
            "spec",
            object(vec![(
                "handlers",
                TreeNode { content: NodeContent::List(handlers), position: GENERATED_POSITION },
            )]),
        ),
    ])
}

// === impl Import ===

impl ImportedManifest {
    /// The remarks, in the order of the file.
    #[must_use]
    pub fn notes(&self) -> &[ImportNote] {
        &self.notes
    }

    /// The document as YAML.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        yaml::to_yaml(&self.document)
    }

    /// The document as JSON, which is a valid manifest as well.
    #[must_use]
    pub fn to_json(&self) -> String {
        format!("{:#}", self.document)
    }
}

// === impl Note ===

impl ImportNote {
    fn at(value: &ValueCursor<'_>, message: impl Into<String>) -> Self {
        Self { location: value.location(), message: message.into() }
    }
}

impl fmt::Display for ImportNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.message)
    }
}

// === trees ===

impl TreeNode {
    fn text(text: &str, position: SourcePosition) -> Self {
        Self { content: NodeContent::Text(text.to_owned()), position }
    }

    fn object(members: Vec<(&str, Self)>, position: SourcePosition) -> Self {
        let member = |(name, value): (&str, Self)| ObjectMember {
            name: name.to_owned(),
            position: value.position,
            value,
        };
        Self { content: NodeContent::Object(members.into_iter().map(member).collect()), position }
    }
}
