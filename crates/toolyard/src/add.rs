//! `toolyard add`: adds a handler to a manifest.

mod openapi;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;
use toolyard_manifest::{AddHandlerError, HandlerName, ManifestEditor, ManifestSource};

use crate::output::{OutputFormat, confirm, escape_lines, print};
use crate::{BadInput, atomic_file, diff};

/// Add a handler to a manifest
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard add openapi https://petstore3.swagger.io/api/v3/openapi.json
  toolyard add openapi api/openapi.yaml --name shop --tag orders -f tools.yaml")]
pub(crate) struct AddHandlerArgs {
    #[command(subcommand)]
    command: AddCommand,
}

#[derive(clap::Subcommand)]
enum AddCommand {
    Openapi(openapi::AddOpenapiArgs),
}

/// The manifest to change, and whether to ask for confirmation.
#[derive(clap::Args)]
struct AddTarget {
    /// Manifest to change; created if it does not exist
    #[arg(short, long, value_name = "FILE", default_value = "tools.yaml")]
    file: PathBuf,

    /// Skip the confirmation (required without a terminal)
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,

    /// Show the change without writing it
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(args: AddHandlerArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    match args.command {
        AddCommand::Openapi(args) => openapi::run(args, format).await,
    }
}

/// A manifest file and its editor.
struct ManifestFile<'a> {
    path: &'a Path,
    before: Option<String>,
    draft: ManifestEditor,
}

impl<'a> ManifestFile<'a> {
    /// Opens a manifest file, which need not exist.
    fn open(path: &'a Path) -> anyhow::Result<Self> {
        if path.as_os_str() == "-" || path.is_dir() {
            let path = path.display();
            return Err(BadInput(format!("cannot add a handler to `{path}`: not a manifest file")).into());
        }
        let before = atomic_file::read_optional(path)?;
        let source =
            ManifestSource { name: path.display().to_string(), text: before.clone().unwrap_or_default() };
        let draft = ManifestEditor::new(source)
            .map_err(|problems| BadInput(format!("invalid manifest\n\n{problems}")))?;
        Ok(Self { path, before, draft })
    }

    /// Returns the name of the new handler: `wanted` if it is free, or a free name derived from `otherwise`.
    fn handler_name(&self, wanted: Option<&HandlerName>, otherwise: &str) -> Result<String, BadInput> {
        let Some(wanted) = wanted else { return Ok(self.draft.free_name(otherwise)) };
        if self.draft.free_name(wanted.as_str()) != wanted.as_str() {
            let path = self.path.display();
            return Err(BadInput(format!(
                "handler `{wanted}` already exists in {path}; choose another `--name`"
            )));
        }
        Ok(wanted.to_string())
    }

    /// Returns the text of the manifest with the handler added.
    fn with_handler(&self, handler: &Value) -> Result<String, BadInput> {
        let path = self.path.display();
        self.draft.with_handler(handler).map_err(|error| match error {
            AddHandlerError::Problems(problems) => {
                BadInput(format!("the manifest would be invalid with the new handler\n\n{problems}"))
            }
            AddHandlerError::UnsupportedLayout => {
                let snippet = ManifestEditor::handler_yaml(handler);
                BadInput(format!("cannot edit {path}: {error}; add this handler to it:\n\n{snippet}"))
            }
        })
    }

    /// Shows the change, asks for confirmation and writes it. Returns true if it was written.
    fn write_change(&self, after: &str, target: &AddTarget, format: OutputFormat) -> anyhow::Result<bool> {
        let path = self.path.display();
        if format == OutputFormat::Text {
            let difference = diff::render(self.before.as_deref().unwrap_or_default(), after);
            print(&escape_lines(&format!("{path}\n{difference}")));
        }
        let writes = !target.dry_run && (target.yes || confirm(format)?);
        if writes {
            atomic_file::replace(self.path, self.before.as_deref(), after)?;
        }
        if format == OutputFormat::Text {
            print(&match (writes, target.dry_run) {
                (true, _) => format!("updated {path}"),
                (false, true) => format!("would update {path} (dry run)"),
                (false, false) => format!("{path} is unchanged"),
            });
        }
        Ok(writes)
    }
}
