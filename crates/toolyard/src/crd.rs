//! `toolyard crd`: the definitions of the operator's resources.

use std::process::ExitCode;

use anyhow::Context;

use crate::output::print;

/// Print the definitions of the operator's Kubernetes resources
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard crd | kubectl apply -f -
  toolyard crd > crds.yaml")]
pub(crate) struct CrdArgs {}

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let missing =
        "this build has no operator: use the program of a release, or build it with `--features full`";
    let definitions = toolyard_server::resource_definitions().context(missing)?;
    print(definitions.trim_end());
    Ok(ExitCode::SUCCESS)
}
