//! `toolyard stdio`: the gateway on standard input and output, for clients that start their servers.

use std::process::ExitCode;

use anyhow::Context;
use toolyard_core::CallerPeer;
use toolyard_manifest::Manifest;
use toolyard_mcp::server::duplex::{self, DuplexLimits};
use toolyard_process::ProcessSpawner;
use toolyard_server::{GatewayOptions, RunningGateway};

use crate::BadInput;
use crate::gateway::{self, StartReport};
use crate::log::{self, LogHandle};
use crate::manifest_sources::ManifestSources;

/// Serve the handlers of manifests on standard input and output
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard stdio -f tools.yaml
  toolyard stdio --import .mcp.json           the servers of Claude, Cursor, VS Code and others
  toolyard connect claude --stdio -f tools.yaml    configure a client to start it

The gateway serves the client that starts it and opens no port. Logs go to standard error. Edits of the files are
applied as by `toolyard serve`. At the end of its input, the gateway waits up to `timeouts.drain` for running calls
and exits; SIGTERM and SIGINT exit immediately. All processes of handlers end with it.")]
pub(crate) struct StdioArgs {
    #[command(flatten)]
    sources: ManifestSources,

    /// Log format (default: that of the manifest)
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) log_format: Option<log::LogFormatArg>,
}

pub(crate) async fn run(args: StdioArgs, log: &LogHandle) -> anyhow::Result<ExitCode> {
    if args.sources.reads_stdin() {
        return Err(BadInput(
            "cannot read a manifest from standard input: it carries the protocol".to_owned(),
        )
        .into());
    }
    let spawner = ProcessSpawner::supervised_by_this_program();
    let options = GatewayOptions { spawner, log: log.control(), ..GatewayOptions::default() };
    gateway::run(args.sources, disable_listening, options, log, serve_client).await
}

fn disable_listening(manifest: &mut Manifest) {
    manifest.process.listen.clear();
    manifest.process.grpc.listen.clear();
    manifest.process.tls = None;
}

/// Serves the client until its stream ends.
async fn serve_client(running: &RunningGateway, manifest: &Manifest, _: &StartReport) -> anyhow::Result<()> {
    let (limits, drain) = (&manifest.process.limits, manifest.process.timeouts.drain);
    let (line_bytes, requests) = (limits.request_body_bytes, limits.concurrent_calls);
    let limits = DuplexLimits { max_line_bytes: line_bytes, max_requests: requests, drain_time: drain };
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    let user = CallerPeer::User(rustix::process::getuid().as_raw());
    duplex::serve(running.frontend().clone(), input, output, limits, user)
        .await
        .context("lost the connection to the client")
}
