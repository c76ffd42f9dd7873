//! The manifest of a gateway, from the files that the command line names.

use std::path::PathBuf;

use anyhow::Context;
use toolyard_manifest::{Manifest, ManifestProblems, ManifestSource};

use crate::{BadInput, default_manifest};

/// The files that define the handlers of a gateway.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ManifestSources {
    /// Manifest or directory of manifests; repeatable (default: `toolyard.yaml` here or in ~/.config/toolyard, or else an
    /// embedded demo)
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Configuration file of an MCP client whose servers to serve; see `toolyard import`
    #[arg(long = "import", value_name = "FILE")]
    imports: Vec<PathBuf>,

    /// True if the command line names no file.
    #[arg(skip)]
    is_default: bool,
}

/// The manifest of the embedded demo.
const QUICKSTART: &str = include_str!("quickstart.yaml");

impl ManifestSources {
    /// Chooses the default manifest if the command line names no file. A file that appears later is not read.
    pub(crate) fn or_default(self) -> Self {
        if !self.files.is_empty() || !self.imports.is_empty() {
            return self;
        }
        Self { files: default_manifest::find_all(), is_default: true, ..self }
    }

    /// The origin of the handlers for the banner, unless the command line names it.
    pub(crate) fn default_origin(&self) -> Option<String> {
        self.is_default.then(|| match self.files.first() {
            Some(file) => default_manifest::displayed(file),
            None => "the embedded demo; `toolyard init` writes a toolyard.yaml".to_owned(),
        })
    }

    /// All files and folders, in the order of the command line's options.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        [self.files.clone(), self.imports.clone()].concat()
    }

    /// True if standard input is one of the files.
    pub(crate) fn reads_stdin(&self) -> bool {
        self.files.iter().chain(&self.imports).any(|path| path.as_os_str() == "-")
    }

    /// Reads and validates the manifest.
    ///
    /// # Errors
    /// Fails if the manifest is invalid.
    pub(crate) fn read(&self) -> anyhow::Result<Manifest> {
        let manifest = if self.files.is_empty() && self.imports.is_empty() {
            quickstart()?
        } else {
            toolyard_manifest::load_and_import(&self.files, &self.imports).map(|(manifest, notes)| {
                for note in notes {
                    match note.is_warning {
                        true => tracing::warn!("{note}"),
                        false => tracing::info!("{note}"),
                    }
                }
                manifest
            })
        };
        Ok(manifest.map_err(|problems| BadInput(format!("invalid manifest\n\n{problems}")))?)
    }
}

fn quickstart() -> anyhow::Result<Result<Manifest, ManifestProblems>> {
    let program = std::env::current_exe().context("cannot find the path of the toolyard program")?;
    let program = program.to_str().context("the path of the toolyard program is not UTF-8")?.to_owned();
    let source = ManifestSource { name: "quickstart.yaml".to_owned(), text: QUICKSTART.to_owned() };
    Ok(toolyard_manifest::parse_with(&[source], &|name| (name == "TOOLYARD_EXE").then(|| program.clone())))
}
