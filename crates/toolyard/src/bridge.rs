//! `toolyard bridge`: runs MCP servers for the agents on a message bus.

use std::process::ExitCode;

use toolyard_manifest::BusSettings;
use toolyard_server::BusRole;

use crate::bus_process::{BusProcess, BusProcessArgs};
use crate::log::LogHandle;
use crate::output::OutputFormat;

/// Run MCP servers for the agents on a message bus
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard bridge -f servers.yaml --bus amqp://broker.example.com:5672
  toolyard bridge --import mcp.json --bus nats://broker.example.com:4222

The bridge starts the servers of manifests, of MCP clients' files, or of the file that `builtins.mcp.file` of the Toolyard
document names, and announces them to the agents of `bus.bridge.agents`. It takes calls from the topic `tool.invoke.mcp` and
management requests from `mcp.manage`, as the caller that `bus.worker` sets: no message has other rights. Gateways list
and call the servers with `builtins.mcp.bridge: true`. docs/bus.md describes the messages.

SIGTERM and SIGINT drain: the bridge takes no new calls, waits for running calls and exits with status 0. A second signal
exits immediately.")]
pub(crate) struct BridgeArgs {
    #[command(flatten)]
    pub(crate) process: BusProcessArgs,
}

pub(crate) async fn run(args: BridgeArgs, format: OutputFormat, log: &LogHandle) -> anyhow::Result<ExitCode> {
    let process =
        BusProcess { role: BusRole::Bridge, change: |_| {}, group, taking: "taking calls of MCP servers" };
    process.run(args.process, format, log).await
}

fn group(bus: &BusSettings) -> &str {
    &bus.bridge.group
}
