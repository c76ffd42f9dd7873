//! `toolyard worker`: runs calls that arrive on a message bus.

use std::process::ExitCode;

use toolyard_manifest::BusSettings;
use toolyard_server::BusRole;

use crate::bus_process::{BusProcess, BusProcessArgs};
use crate::log::LogHandle;
use crate::output::OutputFormat;

/// Run calls that arrive on a message bus with the handlers of manifests
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard worker -f tools.yaml --bus amqp://broker.example.com:5672
  TOOLYARD_BUS=nats://me:secret@broker.example.com:4222 toolyard worker -f tools.yaml
  toolyard worker -f tools.yaml --listen 127.0.0.1:8081    with /health and /metrics

The worker takes calls from the topic `tool.invoke` and from that of its group, which it shares with the other workers of
the group, and answers on the topic that each call names. Gateways with a handler of the type `bus` publish its tools,
which it announces. Calls run as the caller that `bus.worker` of the Toolyard document sets: no message has
other rights. docs/bus.md describes the messages.

SIGTERM and SIGINT drain: the worker takes no new calls, waits for running calls and exits with status 0. A second signal
exits immediately.")]
pub(crate) struct WorkerArgs {
    #[command(flatten)]
    pub(crate) process: BusProcessArgs,
}

pub(crate) async fn run(args: WorkerArgs, format: OutputFormat, log: &LogHandle) -> anyhow::Result<ExitCode> {
    let process = BusProcess { role: BusRole::Worker, change: |_| {}, group, taking: "taking calls" };
    process.run(args.process, format, log).await
}

fn group(bus: &BusSettings) -> &str {
    &bus.worker.group
}
