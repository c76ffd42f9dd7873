//! `toolyard import`: a manifest out of the file in which an MCP client keeps its servers.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use toolyard_manifest::Import;

use crate::BadInput;
use crate::output::{Format, print};

/// Print a manifest for the servers in the file of an MCP client
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard import .mcp.json > tools.yaml
  toolyard import ~/.cursor/mcp.json --output json
  toolyard serve --import .mcp.json           serve them without a manifest

What a client writes as ${env:NAME} or ${input:name} becomes ${NAME}. Secrets that stand in the file stand in
the manifest, too. What changes on the way is said on standard error.")]
pub(crate) struct Args {
    /// A file with `mcpServers` (Claude, Cursor and others), `servers` (VS Code) or `Mcp.Servers` (.NET); `-` for
    /// standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<ExitCode, BadInput> {
    let import = toolyard_manifest::import(&args.file)
        .map_err(|problems| BadInput(format!("the file has problems\n\n{problems}")))?;
    print(
        match format {
            Format::Text => import.to_yaml(),
            Format::Json => import.to_json(),
        }
        .trim_end(),
    );
    show_notes(&import);
    Ok(ExitCode::SUCCESS)
}

fn show_notes(import: &Import) {
    let mut stderr = std::io::stderr().lock();
    for note in import.notes() {
        let _gone = writeln!(stderr, "note: {note}");
    }
}
