//! `toolyard crd`: the definitions of the operator's resources.

use std::process::ExitCode;

use crate::output::print;

/// Print the definitions of the operator's Kubernetes resources
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard crd | kubectl apply -f -
  toolyard crd > crds.yaml")]
pub(crate) struct CrdArgs {}

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    print(toolyard_server::resource_definitions().trim_end());
    Ok(ExitCode::SUCCESS)
}
