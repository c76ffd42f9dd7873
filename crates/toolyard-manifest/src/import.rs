//! Converts the configuration files of MCP clients to `ToolRegistry` documents.
//!
//! Supported are Claude Desktop, Claude Code, Cursor, VS Code, Zed and others, Codex (TOML), and agents on .NET; the
//! content of a file reveals its format. A converted document is a tree whose values keep their positions, so that
//! problems point into the original file.

mod clients;
mod comments;
mod entry;
mod models;
mod name;
mod reference;
mod rewrite;
mod secrets;
mod server;
mod toml;
mod unresolved;
mod web;

use std::{fmt, path::Path};

use serde_json::{Value, json};

use self::server::ServerHandlers;
pub use self::{
    clients::{ClientFile, ClientServer, ClientServers, SecretPlacement, import_servers},
    secrets::ExtractedSecret,
};
pub(crate) use self::{name::NameAllocator, unresolved::leave_out_unresolved};
use crate::{
    builder,
    cursor::ValueCursor,
    manifest,
    problem::{FieldPath, ManifestProblem, ManifestProblems, SourceLocation, SourcePosition, quoted},
    process,
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
    /// A `Toolyard` document with the settings of the file.
    settings: Option<Value>,
    notes: Vec<ImportNote>,
}

/// A remark on an import for its author. It never quotes a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportNote {
    /// The location in the client's file.
    pub location: SourceLocation,
    /// The remark.
    pub message: String,
    /// True if a server is missing that the author expects.
    pub is_warning: bool,
}

/// An imported document on its way into a manifest.
pub(crate) struct ImportedDocument {
    /// The document, made from the servers of the file.
    pub(crate) document: TreeNode,
    /// Number of its handlers.
    handlers: usize,
    /// Lengths above which results are large, by model.
    pub(crate) models: Vec<(String, usize)>,
    /// Settings of the tools for the web, as `builtins.web`.
    pub(crate) web: Option<TreeNode>,
    pub(crate) notes: Vec<ImportNote>,
}

/// Converts a client's file and checks the result. The variables that it refers to need not be set yet.
pub fn import(path: &Path) -> Result<ImportedManifest, ManifestProblems> {
    let report = ProblemReport::lenient(&|name| std::env::var(name).ok());
    let import = source::read_file(path, &report).and_then(|source| import_checked(&source, &report));
    Ok(report.finish(import)?.expect("where there is no import, a problem says why"))
}

/// [`import()`] of a text, which reads neither a variable nor another file.
pub fn import_text(source: &ManifestSource) -> Result<ImportedManifest, ManifestProblems> {
    let report = ProblemReport::lenient(&|_| None);
    let import = source::is_within_size_limit(&source.name, source.text.len(), &report)
        .then(|| import_checked(source, &report))
        .flatten();
    Ok(report.finish(import)?.expect("where there is no import, a problem says why"))
}

pub(crate) fn import_checked(
    source: &ManifestSource,
    report: &ProblemReport<'_>,
) -> Option<ImportedManifest> {
    let imported = import_document(source, &mut NameAllocator::default(), EmptyFile::Refused, report)?;
    let document = ValueCursor::document(&source.name, &imported.document, report);
    manifest::check(document.clone());
    let document = value::object(document, StringMode::Literal)?;
    let web = match &imported.web {
        Some(web) => {
            let cursor = ValueCursor::document(&source.name, web, report);
            process::web_settings(cursor.clone());
            Some(value::object(cursor, StringMode::Literal)?)
        }
        None => None,
    };
    let settings = models::settings_document(&imported.models, web);
    Some(ImportedManifest { document: document.into(), settings, notes: imported.notes })
}

/// The treatment of a file without a server to serve.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum EmptyFile {
    /// A problem: there is nothing to convert.
    Refused,
    /// A note: a gateway follows the file, whose last server was removed or whose first one is still to come.
    Noted,
}

/// Converts a client's file. `names` holds the names that several files share.
pub(crate) fn import_document(
    source: &ManifestSource,
    names: &mut NameAllocator,
    empty: EmptyFile,
    report: &ProblemReport<'_>,
) -> Option<ImportedDocument> {
    let root = parse(source, report)?;
    let root = ValueCursor::document(&source.name, &root, report);
    let servers = if models::has_section(&root) { find_servers(&root) } else { Some(servers(&root)?) };
    let imported = import_servers_of(&source.name, &root, servers.as_ref(), names, empty, report)?;
    let is_empty = imported.handlers == 0 && imported.models.is_empty() && imported.web.is_none();
    match empty {
        EmptyFile::Refused if is_empty => {
            report.add(root.problem(NO_SERVER).expected(EXPECTED));
            None
        }
        EmptyFile::Noted if is_empty => {
            let note = ImportNote { is_warning: true, ..ImportNote::at(&root, NO_SERVER) };
            Some(ImportedDocument { notes: [vec![note], imported.notes].concat(), ..imported })
        }
        _ => Some(imported),
    }
}

const NO_SERVER: &str = "this file has no enabled server with a supported transport";

/// Parses a client's file: TOML by its name, or else JSON.
fn parse(source: &ManifestSource, report: &ProblemReport<'_>) -> Option<TreeNode> {
    if toml::is_toml(&source.name) {
        return toml::parse(source, report);
    }
    let before = report.count();
    let text = comments::blank_comments(&source.text);
    let mut documents = builder::documents(&ManifestSource { name: source.name.clone(), text }, report);
    if documents.len() == 1 {
        return documents.pop();
    }
    if report.count() == before {
        let problem =
            ManifestProblem::new(SourceLocation::file(&source.name), "this is not a single JSON document");
        report.add(problem.expected(EXPECTED));
    }
    None
}

/// Converts the servers of a file, if it has a list of servers. Returns `None` if nothing is left of it but problems. An
/// invalid server costs a note, unless it is all that an [`EmptyFile::Refused`] has.
fn import_servers_of(
    source: &str,
    root: &ValueCursor<'_>,
    servers: Option<&ValueCursor<'_>>,
    names: &mut NameAllocator,
    empty: EmptyFile,
    report: &ProblemReport<'_>,
) -> Option<ImportedDocument> {
    let before = report.count();
    let mut notes: Vec<ImportNote> = Vec::new();
    let ServerHandlers { handlers, invalid } = servers
        .map(|servers| server::handlers(source, servers, names, &mut notes, report))
        .unwrap_or_default();
    for (name, problems) in invalid {
        match handlers.is_empty() && empty == EmptyFile::Refused {
            true => problems.into_iter().for_each(|problem| report.add(problem)),
            false => notes.extend(problems.iter().map(|problem| ImportNote::of_server(&name, problem))),
        }
    }
    notes.extend(other_servers(root).map(|other| ImportNote {
        is_warning: true,
        ..ImportNote::at(&other, "these servers are not imported: another list of the file comes first")
    }));
    let models = models::models(root, &mut notes);
    let web = web::web(root, &mut notes);
    notes.sort_by(|a, b| a.location.reading_order(&b.location));
    notes.dedup();
    if handlers.is_empty() && report.count() > before {
        return None;
    }
    let count = handlers.len();
    let document = document(names.registry_name(source), handlers);
    Some(ImportedDocument { document, handlers: count, models, web, notes })
}

const EXPECTED: &str = "`mcpServers`, or `servers` (VS Code), with at least one server";

/// The position of generated values.
const GENERATED_POSITION: SourcePosition = SourcePosition { line: 1, column: 1 };

/// Paths to the servers in the files of clients.
const SERVER_PATHS: &[&[&str]] = &[
    &["mcpServers"],
    &["servers"],
    &["mcp", "servers"],
    &["mcp.servers"],
    &["Mcp", "Servers"],
    // Zed and Codex.
    &["context_servers"],
    &["mcp_servers"],
];

/// True if an object is the configuration of a client rather than a document.
pub(crate) fn is_client_file(root: &ValueCursor<'_>) -> bool {
    member(root, "kind").is_none() && find_servers(root).is_some_and(|servers| !servers.is_null())
}

/// Finds the servers of a file: an object with their names, or a list.
fn servers<'a>(root: &ValueCursor<'a>) -> Option<ValueCursor<'a>> {
    let servers = find_servers(root);
    if servers.is_none() {
        root.report(root.problem("no MCP servers found").expected(EXPECTED));
    }
    servers
}

fn find_servers<'a>(root: &ValueCursor<'a>) -> Option<ValueCursor<'a>> {
    server_lists(root).next()
}

/// Returns the lists of servers that are not imported, without empty ones.
fn other_servers<'a>(root: &ValueCursor<'a>) -> impl Iterator<Item = ValueCursor<'a>> {
    let is_filled = |list: &ValueCursor<'_>| match list.content() {
        NodeContent::Object(members) => !members.is_empty(),
        NodeContent::List(items) => !items.is_empty(),
        _ => false,
    };
    server_lists(root).skip(1).filter(is_filled)
}

fn server_lists<'a>(root: &ValueCursor<'a>) -> impl Iterator<Item = ValueCursor<'a>> {
    let at = |path: &&[&str]| path.iter().try_fold(root.clone(), |cursor, name| member(&cursor, name));
    SERVER_PATHS.iter().filter_map(at)
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

    /// The document as YAML, followed by a `Toolyard` document if the file has settings.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let settings = self.settings.as_ref().map(|settings| format!("---\n{}", yaml::to_yaml(settings)));
        yaml::to_yaml(&self.document) + &settings.unwrap_or_default()
    }

    /// The document as JSON, which is a valid manifest as well. If the file has settings, it is a list with a `Toolyard`
    /// document.
    #[must_use]
    pub fn to_json(&self) -> String {
        match &self.settings {
            Some(settings) => format!("{:#}", json!([self.document, settings])),
            None => format!("{:#}", self.document),
        }
    }
}

// === impl Note ===

impl ImportNote {
    fn at(value: &ValueCursor<'_>, message: impl Into<String>) -> Self {
        Self { location: value.location(), message: message.into(), is_warning: false }
    }

    /// Makes a note of a problem that costs its server only.
    fn of_server(name: &str, problem: &ManifestProblem) -> Self {
        let ManifestProblem { location, message, expected, .. } = problem;
        let mut location = location.clone();
        let field = location.path.behind(server::CONFIG_PATH).map(|field| format!("`{field}`: "));
        if field.is_some() {
            // The file has another path to it.
            location.path = FieldPath::default();
        }
        let expected = expected.iter().map(|expected| format!("; expected {expected}")).collect::<String>();
        let (name, field) = (quoted(name), field.unwrap_or_default());
        Self {
            location,
            message: format!("{name} is not imported: {field}{message}{expected}"),
            is_warning: true,
        }
    }

    /// Makes a note of a problem that costs its file only.
    fn of_problem(problem: &ManifestProblem) -> Self {
        Self { location: problem.location.clone(), message: problem.message.clone(), is_warning: true }
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
