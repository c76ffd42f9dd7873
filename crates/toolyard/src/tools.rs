//! `toolyard tools`: what a running gateway offers.

use std::process::ExitCode;

use toolyard_core::{Catalog, Json, Tool};

use crate::output::{self, Format, print};
use crate::remote::Remote;

/// List the tools of a running gateway
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard tools
  toolyard tools --url http://127.0.0.1:9000/mcp --output json")]
pub(crate) struct Args {
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(args: Args, format: Format) -> anyhow::Result<ExitCode> {
    let (_server, catalog) = args.remote.connect().await?;
    print(&match format {
        Format::Text => catalog.tools.iter().map(|tool| line(tool)).collect::<Vec<_>>().join("\n"),
        Format::Json => json(&catalog),
    });
    Ok(ExitCode::SUCCESS)
}

/// The name, and the first line of what it does.
fn line(tool: &Tool) -> String {
    let description = tool.definition.get_str("description").unwrap_or_default();
    let first = description.lines().next().unwrap_or_default();
    output::line(format!("{:<32} {first}", tool.name).trim_end())
}

fn json(catalog: &Catalog) -> String {
    let definitions: Vec<_> = catalog.tools.iter().map(|tool| tool.definition.to_json()).collect();
    Json::array(&definitions).as_text().to_owned()
}
