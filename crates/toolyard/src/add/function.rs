//! `toolyard add function`: adds a hosted function.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::{Value, json};
use toolyard_functions::FunctionKind;
use toolyard_functions::project::folder;
use toolyard_functions::version::VersionSelector;
use toolyard_manifest::HandlerName;

use super::{AddTarget, add_handler};
use crate::BadInput;
use crate::function::parse_id;
use crate::output::{OutputFormat, note};
use crate::remote::RemoteGateway;

/// Add a hosted function: a published one, or one in a directory
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard add function weather                     the latest version of a published function
  toolyard add function weather --version 1.2
  toolyard add function weather --path ./weather    a directory, which needs no publishing

Asks the gateway for the kind of a published function; if it cannot be reached, the function is taken for an MCP server
unless `--kind` says otherwise. A function of kind `function` is one tool, whose arguments are the event. Shows the change
and asks for confirmation.")]
pub(super) struct AddFunctionArgs {
    /// Id of the function
    #[arg(value_parser = parse_id)]
    id: String,

    /// Version: 1.2.0, 1.2, 1, latest or draft (default: latest)
    #[arg(long, conflicts_with = "path")]
    version: Option<VersionSelector>,

    /// Directory of the function, or a single file with a handler
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,

    /// Kind of the function (default: that in the gateway or in the directory)
    #[arg(long, value_enum)]
    kind: Option<KindArg>,

    /// Name of the handler (default: the id)
    #[arg(long, value_parser = HandlerName::parse)]
    name: Option<HandlerName>,

    #[command(flatten)]
    target: AddTarget,

    #[command(flatten)]
    remote: RemoteGateway,
}

#[derive(Clone, Copy, ValueEnum)]
enum KindArg {
    /// MCP server with its own tools
    Mcp,
    /// Handler that takes an event and returns a status and a body
    Function,
}

pub(super) async fn run(args: AddFunctionArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let kind = match (args.kind, &args.path) {
        (Some(KindArg::Mcp), _) => FunctionKind::Mcp,
        (Some(KindArg::Function), _) => FunctionKind::Function,
        (None, Some(path)) => folder::read(path).map_err(|error| BadInput(error.to_string()))?.project.kind,
        (None, None) => published_kind(&args).await,
    };
    let source = match &args.path {
        Some(path) => json!({"path": path_from_manifest(path, &args.target.path())?}),
        None => match &args.version {
            Some(version) => json!({"id": args.id, "version": version.to_string()}),
            None => json!({"id": args.id}),
        },
    };
    add_handler(&args.target, args.name.as_ref(), &args.id, format, |name| {
        function_handler(name, &source, kind)
    })
}

/// Returns the handler of a function.
pub(crate) fn function_handler(name: &str, source: &Value, kind: FunctionKind) -> Value {
    let mut handler = json!({"name": name, "type": "function", "functionConfig": source});
    if kind == FunctionKind::Function {
        let legal = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
        handler["tool"] = json!({
            "name": name.chars().map(legal).collect::<String>(),
            "description": format!("Calls the function {name} with these arguments as its event."),
            "inputSchema": {"type": "object"},
        });
    }
    handler
}

/// Asks the gateway for the kind of a function.
async fn published_kind(args: &AddFunctionArgs) -> FunctionKind {
    match args.remote.get(&format!("/api/v1/functions/{}", args.id)).await {
        Ok(text) => match serde_json::from_slice::<Value>(&text).unwrap_or_default()["kind"].as_str() {
            Some("function") => FunctionKind::Function,
            _ => FunctionKind::Mcp,
        },
        Err(error) => {
            note(&format!("the kind of the function is not checked: {error:#}"));
            FunctionKind::Mcp
        }
    }
}

/// Returns a path in the form of a manifest: relative to its directory if it is below.
fn path_from_manifest(path: &Path, manifest: &Path) -> anyhow::Result<String> {
    let (path, manifest) = (std::path::absolute(path)?, std::path::absolute(manifest)?);
    let below = manifest.parent().and_then(|folder| path.strip_prefix(folder).ok());
    let text = below.unwrap_or(&path).to_str();
    Ok(text.ok_or_else(|| BadInput("the path of the function is not UTF-8".to_owned()))?.to_owned())
}
