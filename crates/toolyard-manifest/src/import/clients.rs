//! The servers in the files of several clients, for a new manifest.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{
    EXPECTED, EmptyFile, ExtractedSecret, ImportNote, ImportedDocument, NO_SERVER, NameAllocator,
    import_servers_of, member, parse,
    rewrite::COPIED_SECRET,
    secrets::SecretExtractor,
    server::without_renames,
    servers,
    unresolved::{handlers_mut, name_of, unresolved},
};
use crate::{
    cursor::ValueCursor,
    manifest::{self, process_environment},
    problem::{SourceLocation, quoted},
    report::ProblemReport,
    source,
    tree::TreeNode,
    value::{self, StringMode},
};

/// A file of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFile {
    /// Path of the file.
    pub path: PathBuf,
    /// The project whose servers are meant, in a file with the servers of several projects (`projects` in the file of
    /// Claude Code). `None`: the servers of the user.
    pub project: Option<String>,
}

/// A server of a client. It may contain secrets, so there is no `Debug`.
#[derive(Clone, PartialEq)]
pub struct ClientServer {
    /// Name of the handler.
    pub name: String,
    /// The handler as in a manifest.
    pub handler: Value,
    /// Variables that it refers to and that are not set, as a message.
    pub unresolved: Option<String>,
}

/// The servers of several files.
#[derive(Clone, Default, PartialEq)]
pub struct ClientServers {
    /// The servers, in the order of the files. Of equal ones the first.
    pub servers: Vec<ClientServer>,
    /// The secrets that the servers refer to; empty if they contain them.
    pub secrets: Vec<ExtractedSecret>,
    /// Lengths above which results are large, by model.
    pub models: Vec<(String, usize)>,
    /// Remarks, in the order of the files.
    pub notes: Vec<ImportNote>,
    /// Problems of files that cannot be read or are invalid, which are among the remarks too.
    pub broken: Vec<ImportNote>,
}

/// The place of the secrets in clients' files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretPlacement<'a> {
    /// The manifest itself.
    Manifest,
    /// Files in this folder, which is relative to that of the manifest.
    Files(&'a str),
    /// Environment variables.
    Variables,
}

/// Returns the servers of these files. A file that cannot be read, or is invalid, is left out with notes.
#[must_use]
pub fn import_servers(files: &[ClientFile], secrets_in: SecretPlacement<'_>) -> ClientServers {
    let (mut names, mut secrets) = (NameAllocator::default(), SecretExtractor::default());
    let mut servers = ServerCollector::default();
    let mut known_files = HashSet::new();
    for file in files {
        // In the home directory, the files of the user are those of the project as well.
        let path = file.path.canonicalize().unwrap_or_else(|_| file.path.clone());
        if !known_files.insert((path, &file.project)) {
            continue;
        }
        let report = ProblemReport::lenient(&process_environment);
        let imported = import_file(&file.path, file.project.as_deref(), &mut names, &report);
        let source = file.path.display().to_string();
        if let Some(imported) = &imported {
            manifest::check(ValueCursor::document(&source, &imported.document, &report));
        }
        match (report.finish(imported), secrets_in) {
            (Ok(None), _) => {}
            (Ok(Some(imported)), SecretPlacement::Manifest) => servers.add_document(&source, imported, None),
            (Ok(Some(imported)), _) => {
                servers.add_document(&source, imported, Some((&mut secrets, secrets_in)))
            }
            (Err(problems), _) => {
                servers.found.notes.extend(problems.iter().map(ImportNote::of_problem));
                servers.found.broken.extend(problems.iter().map(ImportNote::of_problem));
            }
        }
    }
    ClientServers { secrets: secrets.finish(), ..servers.found }
}

/// Reads a file. A file without servers is no problem here.
fn import_file(
    path: &Path,
    project: Option<&str>,
    names: &mut NameAllocator,
    report: &ProblemReport<'_>,
) -> Option<ImportedDocument> {
    let source = source::read_file(path, report)?;
    let root = parse(&source, report)?;
    let root = ValueCursor::document(&source.name, &root, report);
    let servers = match project {
        Some(project) => member(&member(&member(&root, "projects")?, project)?, "mcpServers")?,
        None if super::is_client_file(&root) => servers(&root)?,
        None => return None,
    };
    if servers.is_empty_collection() {
        return None;
    }
    let imported = import_servers_of(&source.name, &root, Some(&servers), names, EmptyFile::Refused, report)?;
    if imported.handlers == 0 {
        report.add(root.problem(NO_SERVER).expected(EXPECTED));
        return None;
    }
    Some(imported)
}

impl SecretPlacement<'_> {
    fn reference(self, name: &str) -> String {
        match self {
            Self::Files(folder) => format!("${{file:{folder}/{name}}}"),
            Self::Manifest | Self::Variables => format!("${{{name}}}"),
        }
    }
}

/// The servers of the files so far.
#[derive(Default)]
struct ServerCollector {
    found: ClientServers,
    /// The places in `found.servers`, by the settings of the server as JSON.
    by_settings: HashMap<String, usize>,
}

impl ServerCollector {
    fn add_document(
        &mut self,
        source: &str,
        mut imported: ImportedDocument,
        extraction: Option<(&mut SecretExtractor, SecretPlacement<'_>)>,
    ) {
        let missing = |document: &mut TreeNode| {
            let handlers = handlers_mut(document).map(|handlers| &**handlers).unwrap_or_default();
            handlers.iter().map(|handler| unresolved(source, handler)).collect::<Vec<_>>()
        };
        // The files with secrets do not exist yet.
        let mut unresolved = missing(&mut imported.document);
        if let Some((secrets, placement)) = extraction {
            secrets.extract(&mut imported.document, &|name| placement.reference(name));
            imported.notes.retain(|note| note.message != COPIED_SECRET);
            if placement == SecretPlacement::Variables {
                unresolved = missing(&mut imported.document);
            }
        }
        self.found.models.extend(imported.models);
        let handlers = handlers_mut(&mut imported.document).map(std::mem::take).unwrap_or_default();
        let mut same_names = Vec::new();
        let mut notes = imported.notes;
        for (handler, unresolved) in handlers.iter().zip(unresolved) {
            let name = name_of(handler).unwrap_or_default();
            if let Some(same) = self.add(source, handler, &name, unresolved) {
                let message = format!("this server is the same as {}, and imported once", quoted(&same));
                let location = SourceLocation::at(source, handler.position);
                notes.push(ImportNote { location, message, is_warning: false });
                same_names.push(name);
            }
        }
        // They need no names of their own.
        without_renames(&mut notes, &same_names);
        self.found.notes.extend(notes);
    }

    /// Adds a handler unless there is one that differs only in its name, which is returned.
    fn add(
        &mut self,
        source: &str,
        node: &TreeNode,
        name: &str,
        unresolved: Option<String>,
    ) -> Option<String> {
        let report = ProblemReport::lenient(&process_environment);
        let cursor = ValueCursor::document(source, node, &report);
        let handler = value::object(cursor, StringMode::Literal).map(Value::Object)?;
        let mut settings = handler["mcpConfig"].clone();
        settings.sort_all_objects();
        let servers = &mut self.found.servers;
        let index = *self.by_settings.entry(settings.to_string()).or_insert(servers.len());
        if let Some(same) = servers.get(index) {
            return Some(same.name.clone());
        }
        servers.push(ClientServer { name: name.to_owned(), handler, unresolved });
        None
    }
}
