//! `toolyard tools`: the tools of a running gateway.

use std::process::ExitCode;

use toolyard_core::{Catalog, Json, Tool};

use crate::handler_health::note_unready;
use crate::output::{self, OutputFormat, print};
use crate::remote::RemoteGateway;

/// List the tools of a running gateway
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard tools
  toolyard tools --url http://127.0.0.1:9000/mcp --output json")]
pub(crate) struct ToolsArgs {
    #[command(flatten)]
    remote: RemoteGateway,
}

pub(crate) async fn run(args: ToolsArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let (_server, catalog) = args.remote.connect().await?;
    print(&match format {
        OutputFormat::Text => catalog.tools.iter().map(|tool| tool_line(tool)).collect::<Vec<_>>().join("\n"),
        OutputFormat::Json => definitions_json(&catalog),
    });
    note_unready(&args.remote).await;
    Ok(ExitCode::SUCCESS)
}

/// Formats a tool as its name and the first line of its description.
fn tool_line(tool: &Tool) -> String {
    let description = tool.definition.get_str("description").unwrap_or_default();
    let first = description.lines().next().unwrap_or_default();
    output::escape_line(format!("{:<32} {first}", tool.name).trim_end())
}

fn definitions_json(catalog: &Catalog) -> String {
    let definitions: Vec<_> = catalog.tools.iter().map(|tool| tool.definition.to_json()).collect();
    Json::array(&definitions).as_text().to_owned()
}
