//! Reads files into a manifest: the whole of it, or all its problems.

use std::{collections::BTreeMap, path::PathBuf};

use crate::{
    builder,
    cursor::{KeywordChoice, ValueCursor},
    digest::digest_of,
    document::ManifestDocument,
    handler::HandlerConfig,
    import::{self, EmptyFile, ImportNote, NameAllocator},
    problem::ManifestProblems,
    process::{self, BuiltinSettings, ProcessSettings, WebSettings},
    registry::{self, ToolGuide},
    report::{EnvironmentLookup, ProblemReport},
    source::{self, ManifestSource},
};

/// The content of all documents of a gateway.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    /// Settings of the process.
    pub process: ProcessSettings,
    /// The handlers of all registries, in document order: if tool names clash, the first wins.
    pub handlers: Vec<HandlerConfig>,
    /// `guides` of all registries, in document order. They are only read with `builtins`.
    pub guides: Vec<ToolGuide>,
    /// Number of handlers per source with a `ToolRegistry` document, by the name of the source.
    pub registry_sizes: BTreeMap<String, usize>,
    /// All documents for display, without secrets.
    pub documents: Vec<ManifestDocument>,
    /// [`digest`](crate::digest()) of the texts. Variables and files that they refer to have no part in it.
    pub digest: String,
}

/// Reads files, and the `*.yaml`, `*.yml` and `*.json` files of folders, in the given order and then by name. The path
/// `-` is standard input.
///
/// In strings of a `spec`, `${NAME}` stands for an environment variable of the process, and `${file:PATH}` for the
/// content of a file. In JSON schemas and JMESPath expressions both are literal.
pub fn load(paths: &[PathBuf]) -> Result<Manifest, ManifestProblems> {
    load_with(paths, &process_environment)
}

/// [`load`] with a custom environment.
pub fn load_with(
    paths: &[PathBuf],
    environment: &EnvironmentLookup<'_>,
) -> Result<Manifest, ManifestProblems> {
    let report = ProblemReport::new(environment);
    let sources = source::read_all(paths, &report);
    let manifest = read(&sources, &report);
    report.finish(manifest)
}

/// [`load`] for manifests, followed by the servers in clients' files, which [`import`](crate::import()) describes. The
/// notes are about these files.
pub fn load_and_import(
    paths: &[PathBuf],
    imports: &[PathBuf],
) -> Result<(Manifest, Vec<ImportNote>), ManifestProblems> {
    let report = ProblemReport::new(&process_environment);
    let sources = source::read_all(paths, &report);
    let mut manifest = read_documents(&sources, &report);
    let mut names = NameAllocator::default();
    let mut notes = Vec::new();
    let imports: Vec<_> = imports.iter().filter_map(|path| source::read_file(path, &report)).collect();
    manifest.digest = digest_of(sources.iter().chain(&imports));
    for source in &imports {
        let imported = import::import_document(source, &mut names, EmptyFile::Noted, &report);
        let Some(mut imported) = imported else { continue };
        import::leave_out_unresolved(&source.name, &mut imported.document, &mut imported.notes);
        let cursor = ValueCursor::document(&source.name, &imported.document, &report);
        add_document(&source.name, cursor, &mut manifest);
        add_models(imported.models, &mut manifest.process.builtins);
        if let Some(web) = &imported.web {
            let web = process::web_settings(ValueCursor::document(&source.name, web, &report));
            add_web(web, &mut manifest.process.builtins);
        }
        notes.extend(imported.notes);
    }
    add_builtins(&mut manifest);
    report.finish((manifest, notes))
}

/// Reads the servers of a client's file that is already in memory, as [`load_and_import`] does. Other settings of the file
/// are ignored.
pub fn parse_servers(
    source: &ManifestSource,
) -> Result<(Vec<HandlerConfig>, Vec<ImportNote>), ManifestProblems> {
    let report = ProblemReport::new(&process_environment);
    let mut manifest = Manifest::default();
    let mut notes = Vec::new();
    if source::is_within_size_limit(&source.name, source.text.len(), &report)
        && let Some(mut imported) =
            import::import_document(source, &mut NameAllocator::default(), EmptyFile::Noted, &report)
    {
        import::leave_out_unresolved(&source.name, &mut imported.document, &mut imported.notes);
        let cursor = ValueCursor::document(&source.name, &imported.document, &report);
        add_document(&source.name, cursor, &mut manifest);
        notes = imported.notes;
    }
    report.finish((manifest.handlers, notes))
}

/// Adds the thresholds of models that have none yet. Without built-in tools, only those that large results need are
/// enabled; if large results are disabled, they stay so.
fn add_models(models: Vec<(String, usize)>, builtins: &mut Option<BuiltinSettings>) {
    if models.is_empty() {
        return;
    }
    let Some(results) = &mut builtins.get_or_insert_with(groups_of_agents).results else { return };
    for (model, threshold) in models {
        if results.models.iter().all(|(known, _)| *known != model) {
            results.models.push((model, threshold));
        }
    }
}

/// Adds the tools for the web, unless the manifest has the section `builtins.web`.
fn add_web(web: Option<WebSettings>, builtins: &mut Option<BuiltinSettings>) {
    let builtins = builtins.get_or_insert_with(groups_of_agents);
    if !builtins.has_web_section && builtins.web.is_none() {
        builtins.web = web;
    }
}

/// Returns the groups of built-in tools that the settings of an agent need, without other ones.
fn groups_of_agents() -> BuiltinSettings {
    BuiltinSettings {
        scripts: None,
        guides: false,
        skills: None,
        search: None,
        mcp: None,
        ..BuiltinSettings::default()
    }
}

/// Parses texts that are already in memory.
///
/// References work as in [`load`]; a relative path starts at the folder of its source's name.
pub fn parse(sources: &[ManifestSource]) -> Result<Manifest, ManifestProblems> {
    parse_with(sources, &process_environment)
}

/// [`parse`] with a custom environment.
pub fn parse_with(
    sources: &[ManifestSource],
    environment: &EnvironmentLookup<'_>,
) -> Result<Manifest, ManifestProblems> {
    let report = ProblemReport::new(environment);
    let manifest = read(sources, &report);
    report.finish(manifest)
}

/// Parses texts for a gateway elsewhere, such as in a pod: its environment is unknown, so references to variables are only
/// checked for their form, and what has one is left out of the result. No file is read, and references to files are
/// problems.
pub fn parse_elsewhere(sources: &[ManifestSource]) -> Result<Manifest, ManifestProblems> {
    let report = ProblemReport::elsewhere();
    let manifest = read(sources, &report);
    report.finish(manifest)
}

/// [`parse_elsewhere`] for a copy of documents for display, in which `[REDACTED]` stands for any value.
pub fn parse_copy(sources: &[ManifestSource]) -> Result<Manifest, ManifestProblems> {
    let report = ProblemReport::of_copy();
    let manifest = read(sources, &report);
    report.finish(manifest)
}

/// Looks up a variable of the process. A value that is not UTF-8 counts as unset.
pub(crate) fn process_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn read(sources: &[ManifestSource], report: &ProblemReport<'_>) -> Manifest {
    let mut manifest = read_documents(sources, report);
    add_builtins(&mut manifest);
    manifest
}

fn read_documents(sources: &[ManifestSource], report: &ProblemReport<'_>) -> Manifest {
    let mut manifest = Manifest { digest: digest_of(sources), ..Manifest::default() };
    let bounded =
        |source: &&ManifestSource| source::is_within_size_limit(&source.name, source.text.len(), report);
    for source in sources.iter().filter(bounded) {
        for node in builder::documents(source, report) {
            add_documents(&source.name, ValueCursor::document(&source.name, &node, report), &mut manifest);
        }
    }
    if manifest.process.secrets_dir.is_none() {
        report.report_missing_secrets_dir();
    }
    if manifest.process.bus.url.is_none() {
        report.report_missing_bus();
    }
    if manifest.process.llm.is_none() {
        report.report_missing_llm();
    }
    manifest
}

/// Adds the handler of the built-in tools.
fn add_builtins(manifest: &mut Manifest) {
    // The built-in tools come first, so that they get the names that their descriptions and results mention.
    let builtins = manifest.process.builtins.clone().map(|builtins| BuiltinSettings {
        registry_guides: manifest.guides.clone(),
        llm: manifest.process.llm.clone(),
        ..builtins
    });
    let builtins = builtins.and_then(HandlerConfig::for_builtins);
    manifest.handlers.splice(0..0, builtins);
}

#[derive(Clone, Copy)]
enum ManifestKind {
    ToolRegistry,
    Toolyard,
}

const KIND: KeywordChoice<ManifestKind> = KeywordChoice {
    noun: "kind of document",
    words: &[("ToolRegistry", ManifestKind::ToolRegistry), ("Toolyard", ManifestKind::Toolyard)],
    unsupported: &["LanguageTool", "ToolPolicy"],
};

/// The `apiVersion` of a `ToolRegistry`.
pub(crate) const REGISTRY_API: &str = "omnia.altairalabs.ai/v1alpha1";

const REGISTRY_VERSION: KeywordChoice<()> =
    KeywordChoice { noun: "version of ToolRegistry", words: &[(REGISTRY_API, ())], unsupported: &[] };

const TOOLYARD_VERSION: KeywordChoice<()> =
    KeywordChoice { noun: "version of Toolyard", words: &[("toolyard.dev/v1alpha1", ())], unsupported: &[] };

/// Reports the problems of a document.
pub(crate) fn check(cursor: ValueCursor<'_>) {
    add_document("", cursor, &mut Manifest::default());
}

/// Adds the content of a document. JSON has no separator of documents: there, a list of them is one.
fn add_documents(source: &str, cursor: ValueCursor<'_>, manifest: &mut Manifest) {
    let documents = match cursor.is_list() {
        true => cursor.non_empty_list(Some).unwrap_or_default(),
        false => vec![cursor],
    };
    documents.into_iter().for_each(|document| add_document(source, document, manifest));
}

/// Adds the content of a document. A document of unknown kind is a single problem, not one for each of its fields.
fn add_document(source: &str, cursor: ValueCursor<'_>, manifest: &mut Manifest) {
    if import::is_client_file(&cursor) {
        let problem = cursor.problem("this is the configuration of an MCP client, not a manifest");
        cursor.report(problem.hint(
            "serve its servers by `toolyard serve --import FILE`, or convert it by `toolyard import FILE`",
        ));
        return;
    }
    let Some(mut fields) = cursor.clone().fields() else { return };
    match fields.required("kind", |cursor| cursor.choice(&KIND)) {
        Some(ManifestKind::ToolRegistry) => {
            fields.required("apiVersion", |cursor| cursor.choice(&REGISTRY_VERSION));
            let declared = registry::registry_document(fields).unwrap_or_default();
            *manifest.registry_sizes.entry(source.to_owned()).or_default() += declared.handlers.len();
            manifest.handlers.extend(declared.handlers);
            manifest.guides.extend(declared.guides);
        }
        Some(ManifestKind::Toolyard) => {
            fields.required("apiVersion", |cursor| cursor.choice(&TOOLYARD_VERSION));
            cursor.declare("`Toolyard` document", "");
            manifest.process = process::process(fields);
        }
        None => fields.finish_unread(),
    }
    let secret_paths = cursor.take_secret_paths();
    manifest.documents.push(ManifestDocument::new(source, &cursor, &secret_paths));
}
