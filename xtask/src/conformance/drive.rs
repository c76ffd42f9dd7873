//! The client of the client scenarios: a gateway in front of the scenario's server, and the strict client of the matrix
//! as its user.

use std::process::Command;

use anyhow::Context;
use tempfile::TempDir;
use xtask_support::builds::sibling_program;
use xtask_support::process;

use super::start_gateway;

/// Arguments of `cargo xtask drive`.
#[derive(clap::Args)]
pub(crate) struct DriveArgs {
    /// Use the gateway in a session
    #[arg(long)]
    session: bool,
    /// URL of the scenario's server
    url: String,
}

/// Exercises a server through a gateway. The scenario judges the requests.
pub(crate) fn drive(args: &DriveArgs) -> anyhow::Result<()> {
    let work = TempDir::new().context("create a folder")?;
    let gateway = start_gateway(work.path(), &args.url)?;
    let address = gateway.url.split('/').nth(2).context("no address in the URL")?;
    let mut user = Command::new(sibling_program("xtask-matrix")?);
    user.arg("exercise").args(args.session.then_some("--session")).arg(address);
    process::run(&mut user)
}
