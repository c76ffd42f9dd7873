//! The files in which MCP clients keep their servers, as `ToolRegistry` documents.
//!
//! They are of Claude Desktop, Claude Code, Cursor, VS Code and others, and of agents on .NET; what is in a file
//! tells which. A document is made as a tree whose values keep their positions, so that a problem with one
//! points to the file in which it is written.

mod comments;
mod entry;
mod name;
mod reference;
mod rewrite;
mod server;

use std::{fmt, path::Path};

use serde_json::Value;

pub(crate) use self::name::Names;
use crate::{
    builder,
    cursor::Cursor,
    manifest,
    problem::{Place, Position, Problem, Problems},
    report::Report,
    source::{self, Source},
    tree::{Content, Member, Node},
    value::{self, Strings},
    yaml,
};

/// A `ToolRegistry` document that was made of a client's file.
///
/// It holds what the file holds, secrets included.
pub struct Import {
    document: Value,
    notes: Vec<Note>,
}

/// What its author should know of an import. It never repeats a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where it is in the client's file.
    pub place: Place,
    /// What happened there.
    pub message: String,
}

/// A document on its way into a manifest.
pub(crate) struct Imported {
    /// Made of the servers in the file.
    pub(crate) document: Node,
    pub(crate) notes: Vec<Note>,
}

/// Makes a document of a client's file and checks it, but for the variables that it wants: they need not be
/// set yet.
pub fn import(path: &Path) -> Result<Import, Problems> {
    let report = Report::forgiving(&|name| std::env::var(name).ok());
    let import = source::read_file(path, &report).and_then(|source| checked(&source, &report));
    Ok(report.finish(import)?.expect("where there is no import, a problem says why"))
}

pub(crate) fn checked(source: &Source, report: &Report<'_>) -> Option<Import> {
    let imported = imported(source, &mut Names::default(), report)?;
    let document = Cursor::document(&source.name, &imported.document, report);
    manifest::check(document.clone());
    let document = value::object(document, Strings::Literal)?;
    Some(Import { document: document.into(), notes: imported.notes })
}

/// The document of a client's file. What the names of several files have in common is in `names`.
pub(crate) fn imported(source: &Source, names: &mut Names, report: &Report<'_>) -> Option<Imported> {
    let before = report.count();
    let text = comments::blanked(&source.text);
    let documents = builder::documents(&Source { name: source.name.clone(), text }, report);
    let [root] = documents.as_slice() else {
        if report.count() == before {
            let problem = Problem::new(Place::file(&source.name), "this is not one JSON text");
            report.add(problem.expected(EXPECTED));
        }
        return None;
    };
    let root = Cursor::document(&source.name, root, report);
    let mut notes: Vec<Note> = Vec::new();
    let handlers = server::handlers(&servers(&root)?, names, &mut notes);
    notes.sort_by(|a, b| a.place.reading_order(&b.place));
    notes.dedup();
    if handlers.is_empty() {
        if report.count() == before {
            report.add(root.problem("this file has no server that is wanted").expected(EXPECTED));
        }
        return None;
    }
    Some(Imported { document: document(names.registry(&source.name), handlers), notes })
}

const EXPECTED: &str = "`mcpServers`, or `servers` as VS Code has it, with at least one server";

/// Where what nobody wrote stands.
const START: Position = Position { line: 1, column: 1 };

/// Where clients keep their servers.
const KEPT_AT: &[&[&str]] =
    &[&["mcpServers"], &["servers"], &["mcp", "servers"], &["mcp.servers"], &["Mcp", "Servers"]];

/// The servers of a file: an object with their names, or a list.
fn servers<'a>(root: &Cursor<'a>) -> Option<Cursor<'a>> {
    let at = |path: &&[&str]| path.iter().try_fold(root.clone(), |cursor, name| member(&cursor, name));
    let found = KEPT_AT.iter().find_map(at);
    if found.is_none() {
        root.report(root.problem("this names no MCP servers").expected(EXPECTED));
    }
    found
}

fn member<'a>(object: &Cursor<'a>, name: &str) -> Option<Cursor<'a>> {
    let Content::Object(members) = object.content() else { return None };
    members.iter().find(|member| member.name == name).map(|member| object.member(member))
}

fn document(name: String, handlers: Vec<Node>) -> Node {
    let text = |text: &str| Node::text(text, START);
    let object = |members: Vec<(&str, Node)>| Node::object(members, START);
    object(vec![
        ("apiVersion", text(manifest::REGISTRY_API)),
        ("kind", text("ToolRegistry")),
        ("metadata", object(vec![("name", text(&name))])),
        ("spec", object(vec![("handlers", Node { content: Content::List(handlers), position: START })])),
    ])
}

// === impl Import ===

impl Import {
    /// What its author should know, in the order of the file.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The document as YAML.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        yaml::written(&self.document)
    }

    /// The document as JSON, which is a manifest as well.
    #[must_use]
    pub fn to_json(&self) -> String {
        format!("{:#}", self.document)
    }
}

// === impl Note ===

impl Note {
    fn at(value: &Cursor<'_>, message: impl Into<String>) -> Self {
        Self { place: value.place(), message: message.into() }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

// === trees ===

impl Node {
    fn text(text: &str, position: Position) -> Self {
        Self { content: Content::Text(text.to_owned()), position }
    }

    fn object(members: Vec<(&str, Self)>, position: Position) -> Self {
        let member =
            |(name, value): (&str, Self)| Member { name: name.to_owned(), position: value.position, value };
        Self { content: Content::Object(members.into_iter().map(member).collect()), position }
    }
}
