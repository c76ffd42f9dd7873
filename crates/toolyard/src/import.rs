//! `toolyard import`: converts the configuration of an MCP client to a manifest.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use toolyard_manifest::ImportedManifest;

use crate::BadInput;
use crate::output::{OutputFormat, print};

/// Convert the configuration of an MCP client to a manifest and print it
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard import .mcp.json > tools.yaml
  toolyard import ~/.cursor/mcp.json --output json
  toolyard serve --import .mcp.json           serve the servers without a manifest

${env:NAME} and ${input:name} become ${NAME}. Secrets in the file are copied to the manifest. Notes on standard
error list what the manifest states differently.")]
pub(crate) struct ImportArgs {
    /// File with `mcpServers` (Claude, Cursor and others), `servers` (VS Code) or `Mcp.Servers` (.NET), or `-` for
    /// standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(args: &ImportArgs, format: OutputFormat) -> Result<ExitCode, BadInput> {
    let import = toolyard_manifest::import(&args.file)
        .map_err(|problems| BadInput(format!("invalid client configuration\n\n{problems}")))?;
    print(
        match format {
            OutputFormat::Text => import.to_yaml(),
            OutputFormat::Json => import.to_json(),
        }
        .trim_end(),
    );
    print_notes(&import);
    Ok(ExitCode::SUCCESS)
}

fn print_notes(import: &ImportedManifest) {
    let mut stderr = std::io::stderr().lock();
    for note in import.notes() {
        let _closed = writeln!(stderr, "note: {note}");
    }
}
