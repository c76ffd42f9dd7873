//! `toolyard schema`: what may stand in a manifest, for editors and other tools.

use std::process::ExitCode;

use clap::ValueEnum;
use toolyard_manifest::schema;

use crate::output::print;

/// Print the JSON Schema of a kind of document
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard schema > toolregistry.schema.json
  toolyard schema toolyard > toolyard.schema.json

An editor with the YAML language server follows a first line such as
  # yaml-language-server: $schema=toolregistry.schema.json")]
pub(crate) struct Args {
    /// The kind of document
    #[arg(value_enum, default_value_t = Kind::Toolregistry)]
    kind: Kind,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// Handlers: where tools come from
    Toolregistry,
    /// The gateway itself
    Toolyard,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let schema = match args.kind {
        Kind::Toolregistry => schema::TOOL_REGISTRY,
        Kind::Toolyard => schema::TOOLYARD,
    };
    print(schema.trim_end());
    ExitCode::SUCCESS
}
