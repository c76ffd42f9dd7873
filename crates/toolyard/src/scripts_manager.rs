//! `toolyard scripts-manager`: runs scripts that arrive on a message bus.

use std::process::ExitCode;

use toolyard_manifest::{BusSettings, Manifest};
use toolyard_server::BusRole;

use crate::bus_process::{BusProcess, BusProcessArgs};
use crate::log::LogHandle;
use crate::output::OutputFormat;

/// Run Python scripts that arrive on a message bus
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard scripts-manager -f scripts.yaml --bus amqp://broker.example.com:5672
  TOOLYARD_BUS=nats://me:secret@broker.example.com:4222 toolyard scripts-manager

The manager takes scripts from the topic `script.invoke`, which it shares with the other managers of its group, runs them
as `builtins.scripts` of the Toolyard document sets, in the sandbox of this machine or in pods of a cluster, and answers
on the topic that each names, such as `script.result.my-agent`. Gateways send their scripts with
`builtins.scripts.runner: bus`, and need no right to run any themselves. Handlers of the manifest are not started.
docs/bus.md describes the messages.

SIGTERM and SIGINT drain: the manager takes no new scripts, waits for running ones and exits with status 0. A second
signal exits immediately.")]
pub(crate) struct ScriptsManagerArgs {
    #[command(flatten)]
    pub(crate) process: BusProcessArgs,
}

pub(crate) async fn run(
    args: ScriptsManagerArgs,
    format: OutputFormat,
    log: &LogHandle,
) -> anyhow::Result<ExitCode> {
    let process = BusProcess {
        role: BusRole::ScriptsManager,
        change: without_handlers,
        group,
        taking: "taking scripts",
    };
    process.run(args.process, format, log).await
}

/// A manager has the right to run scripts, which the handlers do not get.
fn without_handlers(manifest: &mut Manifest) {
    manifest.handlers.clear();
    // The servers that agents have added are handlers too.
    if let Some(builtins) = &mut manifest.process.builtins {
        builtins.mcp = None;
    }
}

fn group(bus: &BusSettings) -> &str {
    &bus.scripts.group
}
