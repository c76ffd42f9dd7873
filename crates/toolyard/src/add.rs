//! `toolyard add`: one handler more in a manifest.

mod openapi;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;
use toolyard_manifest::{Draft, HandlerName, NotAdded, Source};

use crate::output::{Format, agreed, print};
use crate::{BadInput, diff, write};

/// Add a handler to a manifest
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard add openapi https://petstore3.swagger.io/api/v3/openapi.json
  toolyard add openapi api/openapi.yaml --name shop --tag orders -f tools.yaml")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Openapi(openapi::Args),
}

/// Where a handler goes, and who is asked.
#[derive(clap::Args)]
struct Target {
    /// The manifest; it is made where there is none
    #[arg(short, long, value_name = "FILE", default_value = "tools.yaml")]
    file: PathBuf,

    /// Do not ask
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,

    /// Show the change, and write nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(args: Args, format: Format) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Openapi(args) => openapi::run(args, format).await,
    }
}

/// A manifest that is about to be changed.
struct Manifest<'a> {
    path: &'a Path,
    before: Option<String>,
    draft: Draft,
}

impl<'a> Manifest<'a> {
    /// The manifest in a file, which need not be there.
    fn open(path: &'a Path) -> anyhow::Result<Self> {
        if path.as_os_str() == "-" || path.is_dir() {
            let path = path.display();
            return Err(BadInput(format!("`{path}` is no file that a handler could be added to")).into());
        }
        let before = write::read(path)?;
        let source = Source { name: path.display().to_string(), text: before.clone().unwrap_or_default() };
        let draft = Draft::new(source)
            .map_err(|problems| BadInput(format!("the manifest has problems\n\n{problems}")))?;
        Ok(Self { path, before, draft })
    }

    /// The name that a new handler has: this one, or one like `otherwise` that is free.
    fn name(&self, wanted: Option<&HandlerName>, otherwise: &str) -> Result<String, BadInput> {
        let Some(wanted) = wanted else { return Ok(self.draft.free_name(otherwise)) };
        if self.draft.free_name(wanted.as_str()) != wanted.as_str() {
            let path = self.path.display();
            return Err(BadInput(format!(
                "{path} has a handler `{wanted}` already: choose another `--name`"
            )));
        }
        Ok(wanted.to_string())
    }

    /// The manifest with a handler more.
    fn with(&self, handler: &Value) -> Result<String, BadInput> {
        let path = self.path.display();
        self.draft.with_handler(handler).map_err(|error| match error {
            NotAdded::Problems(problems) => {
                BadInput(format!("with the handler the manifest has problems\n\n{problems}"))
            }
            NotAdded::NoPlace => {
                let snippet = Draft::written(handler);
                BadInput(format!("{path} cannot be changed: {error}. Put this among them:\n\n{snippet}"))
            }
        })
    }

    /// Shows the change, asks, and writes it. Says whether it did.
    fn change(&self, after: &str, target: &Target, format: Format) -> anyhow::Result<bool> {
        let path = self.path.display();
        if format == Format::Text {
            print(&format!("{path}\n{}", diff::lines(self.before.as_deref().unwrap_or_default(), after)));
        }
        let writes = !target.dry_run && (target.yes || agreed(format)?);
        if writes {
            write::replace(self.path, self.before.as_deref(), after)?;
        }
        if format == Format::Text {
            print(&match (writes, target.dry_run) {
                (true, _) => format!("{path} is written"),
                (false, true) => format!("{path} would be changed"),
                (false, false) => format!("{path} stays as it is"),
            });
        }
        Ok(writes)
    }
}
