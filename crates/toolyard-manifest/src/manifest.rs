//! From files to a manifest: the whole of it, or everything that is wrong with it.

use std::path::PathBuf;

use crate::{
    builder,
    cursor::{Choice, Cursor},
    handler::Handler,
    import::{self, Names, Note},
    problem::Problems,
    process::{self, Builtins, Process},
    registry::{self, Guide},
    report::{Environment, Report},
    source::{self, Source},
};

/// What the documents of a gateway say together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    /// How the gateway runs.
    pub process: Process,
    /// The handlers of all registries, in the order in which they are written: on a clash of tool names the
    /// first wins.
    pub handlers: Vec<Handler>,
    /// `guides` of all registries, in the order in which they are written. They are read where there are `builtins`.
    pub guides: Vec<Guide>,
}

/// Reads files, and the `*.yaml`, `*.yml` and `*.json` files of folders, in the given order and then by name. The
/// path `-` is standard input.
///
/// In a string of a specification `${NAME}` stands for a variable of the process's environment, and
/// `${file:PATH}` for what is in a file; in JSON schemas and JMESPath expressions both stand for themselves.
pub fn load(paths: &[PathBuf]) -> Result<Manifest, Problems> {
    load_with(paths, &process_environment)
}

/// [`load`] with an environment of the caller's own.
pub fn load_with(paths: &[PathBuf], environment: &Environment<'_>) -> Result<Manifest, Problems> {
    let report = Report::new(environment);
    let sources = source::read_all(paths, &report);
    let manifest = read(&sources, &report);
    report.finish(manifest)
}

/// [`load`] for manifests and, behind them, the servers in other software's files, which [`import`](crate::import())
/// describes. The notes are about these.
pub fn load_and_import(paths: &[PathBuf], imports: &[PathBuf]) -> Result<(Manifest, Vec<Note>), Problems> {
    let report = Report::new(&process_environment);
    let mut manifest = read(&source::read_all(paths, &report), &report);
    let mut names = Names::default();
    let mut notes = Vec::new();
    for path in imports {
        let Some(source) = source::read_file(path, &report) else { continue };
        let Some(imported) = import::imported(&source, &mut names, &report) else { continue };
        document(Cursor::document(&source.name, &imported.document, &report), &mut manifest);
        notes.extend(imported.notes);
    }
    report.finish((manifest, notes))
}

/// Reads texts that the caller already has.
///
/// What [`load`] says of references holds here, too: a path in one begins at the folder of its source's name.
pub fn parse(sources: &[Source]) -> Result<Manifest, Problems> {
    parse_with(sources, &process_environment)
}

/// [`parse`] with an environment of the caller's own.
pub fn parse_with(sources: &[Source], environment: &Environment<'_>) -> Result<Manifest, Problems> {
    let report = Report::new(environment);
    let manifest = read(sources, &report);
    report.finish(manifest)
}

/// A variable that is not text is as good as none.
pub(crate) fn process_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn read(sources: &[Source], report: &Report<'_>) -> Manifest {
    let mut manifest = Manifest::default();
    let bounded = |source: &&Source| source::is_bounded(&source.name, source.text.len(), report);
    for source in sources.iter().filter(bounded) {
        for node in builder::documents(source, report) {
            document(Cursor::document(&source.name, &node, report), &mut manifest);
        }
    }
    if manifest.process.secrets_dir.is_none() {
        report.refuse_keys();
    }
    // First, so that its tools have the names that their descriptions and results say.
    let builtins = manifest.process.builtins.clone().map(|builtins| Builtins {
        registry_guides: manifest.guides.clone(),
        llm: manifest.process.llm.clone(),
        ..builtins
    });
    let builtins = builtins.and_then(Handler::of_builtins);
    manifest.handlers.splice(0..0, builtins);
    manifest
}

#[derive(Clone, Copy)]
enum Kind {
    ToolRegistry,
    Toolyard,
}

const KIND: Choice<Kind> = Choice {
    noun: "kind of document",
    words: &[("ToolRegistry", Kind::ToolRegistry), ("Toolyard", Kind::Toolyard)],
    not_yet: &["LanguageTool", "ToolPolicy"],
};

/// The `apiVersion` of a `ToolRegistry`.
pub(crate) const REGISTRY_API: &str = "omnia.altairalabs.ai/v1alpha1";

const REGISTRY_VERSION: Choice<()> =
    Choice { noun: "version of ToolRegistry", words: &[(REGISTRY_API, ())], not_yet: &[] };

const TOOLYARD_VERSION: Choice<()> =
    Choice { noun: "version of Toolyard", words: &[("toolyard.dev/v1alpha1", ())], not_yet: &[] };

/// Reports what is wrong with a document.
pub(crate) fn check(cursor: Cursor<'_>) {
    document(cursor, &mut Manifest::default());
}

/// Adds what a document says. One of an unknown kind is a single problem, not one for each of its fields.
fn document(cursor: Cursor<'_>, manifest: &mut Manifest) {
    let Some(mut fields) = cursor.clone().fields() else { return };
    match fields.required("kind", |cursor| cursor.choice(&KIND)) {
        Some(Kind::ToolRegistry) => {
            fields.required("apiVersion", |cursor| cursor.choice(&REGISTRY_VERSION));
            let declared = registry::declared(fields).unwrap_or_default();
            manifest.handlers.extend(declared.handlers);
            manifest.guides.extend(declared.guides);
        }
        Some(Kind::Toolyard) => {
            fields.required("apiVersion", |cursor| cursor.choice(&TOOLYARD_VERSION));
            cursor.declare("document of the kind `Toolyard`", "");
            manifest.process = process::process(fields);
        }
        None => fields.abandon(),
    }
}
