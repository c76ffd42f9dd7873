//! `toolyard add`: adds a handler to a manifest.

mod function;
mod grpc;
mod http;
mod mcp;
mod openapi;

pub(crate) use function::function_handler;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use toolyard_manifest::{AddHandlerError, HandlerName, ManifestEditor, ManifestSource};

use crate::output::{OutputFormat, confirm, escape_lines, print};
use crate::{BadInput, atomic_file, default_manifest, diff};

/// Add a handler to a manifest
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard add mcp -- npx -y @modelcontextprotocol/server-everything
  toolyard add mcp https://mcp.example.com/mcp
  toolyard add http 'https://api.example.com/orders/{id}' --description 'Returns an order'
  toolyard add function weather
  toolyard add grpc localhost:50051
  toolyard add openapi https://petstore3.swagger.io/api/v3/openapi.json
  toolyard add openapi api/openapi.yaml --name shop --tag orders -f tools.yaml")]
pub(crate) struct AddHandlerArgs {
    #[command(subcommand)]
    command: AddCommand,
}

#[derive(clap::Subcommand)]
enum AddCommand {
    Mcp(mcp::AddMcpArgs),
    Http(http::AddHttpArgs),
    Function(function::AddFunctionArgs),
    Grpc(grpc::AddGrpcArgs),
    Openapi(openapi::AddOpenapiArgs),
}

/// The manifest to change, and whether to ask for confirmation.
#[derive(clap::Args)]
struct AddTarget {
    /// Manifest to change; created if it does not exist (default: `toolyard.yaml` or `tools.yaml` here, or else
    /// `toolyard.yaml` in ~/.config/toolyard, or a new one here)
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Skip the confirmation (required without a terminal)
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,

    /// Show the change without writing it
    #[arg(long)]
    dry_run: bool,
}

impl AddTarget {
    /// Returns the manifest to change.
    fn path(&self) -> PathBuf {
        let earlier = || Some(PathBuf::from(EARLIER_NAME)).filter(|file| file.is_file());
        let here = || Some(PathBuf::from(default_manifest::FILE_NAME));
        let existing =
            || here().filter(|file| file.is_file()).or_else(earlier).or_else(default_manifest::find);
        self.file.clone().or_else(existing).or_else(here).unwrap_or_default()
    }
}

/// Name of the manifest that earlier versions created.
const EARLIER_NAME: &str = "tools.yaml";

pub(crate) async fn run(args: AddHandlerArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    match args.command {
        AddCommand::Openapi(args) => openapi::run(args, format).await,
        AddCommand::Mcp(args) => mcp::run(&args, format),
        AddCommand::Http(args) => http::run(&args, format),
        AddCommand::Function(args) => function::run(args, format).await,
        AddCommand::Grpc(args) => grpc::run(&args, format),
    }
}

/// Adds a handler to the manifest: shows the change, asks for confirmation and writes it.
fn add_handler(
    target: &AddTarget,
    name: Option<&HandlerName>,
    default_name: &str,
    format: OutputFormat,
    handler: impl FnOnce(&str) -> Value,
) -> anyhow::Result<ExitCode> {
    let path = target.path();
    let manifest = ManifestFile::open(&path)?;
    let handler = handler(&manifest.handler_name(name, default_name)?);
    let after = manifest.with_handler(&handler)?;
    let written = manifest.write_change(&after, target, format)?;
    if format == OutputFormat::Json {
        print(&json!({"file": path, "handler": handler, "written": written}).to_string());
    }
    Ok(ExitCode::SUCCESS)
}

/// Parses `NAME=VALUE` or `NAME: VALUE`.
fn parse_pair(text: &str, separator: char) -> Option<(String, String)> {
    let (name, value) = text.split_once(separator)?;
    Some((name.trim().to_owned(), value.trim_start().to_owned())).filter(|(name, _)| !name.is_empty())
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
                (true, _) if self.before.is_none() => format!("created {path}"),
                (true, _) => format!("updated {path}"),
                (false, true) => format!("would update {path} (dry run)"),
                (false, false) => format!("{path} is unchanged"),
            });
        }
        Ok(writes)
    }
}
