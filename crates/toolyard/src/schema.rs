//! `toolyard schema`: the JSON Schemas of manifests, for editors and other tools.

use std::process::ExitCode;

use clap::ValueEnum;
use toolyard_manifest::schema;

use crate::output::print;

/// Print the JSON Schema of a manifest kind
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard schema > toolregistry.schema.json
  toolyard schema toolyard > toolyard.schema.json

Editors with the YAML language server apply the schema that the first line of a manifest names:
  # yaml-language-server: $schema=toolregistry.schema.json")]
pub(crate) struct SchemaArgs {
    /// The kind of document
    #[arg(value_enum, default_value_t = DocumentKind::Toolregistry)]
    kind: DocumentKind,
}

#[derive(Clone, Copy, ValueEnum)]
enum DocumentKind {
    /// Handlers, the sources of tools
    Toolregistry,
    /// Settings of the gateway itself
    Toolyard,
}

pub(crate) fn run(args: &SchemaArgs) -> ExitCode {
    let schema = match args.kind {
        DocumentKind::Toolregistry => schema::TOOL_REGISTRY.to_owned(),
        DocumentKind::Toolyard => schema::toolyard(),
    };
    print(schema.trim_end());
    ExitCode::SUCCESS
}
