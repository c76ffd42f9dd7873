//! `toolyard stdio`: the gateway for clients that start their servers.

use std::process::ExitCode;

use anyhow::Context;
use toolyard_manifest::Manifest;
use toolyard_mcp::server::duplex::{self, DuplexLimits};
use toolyard_process::Spawner;
use toolyard_server::{Options, Running};

use crate::BadInput;
use crate::log::{self, Log};
use crate::sources::{self, Sources};

/// Serve the handlers of manifests on standard input and output, to the one client that starts this
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard stdio -f tools.yaml
  toolyard stdio --import .mcp.json           the servers of Claude, Cursor, VS Code and others
  toolyard connect claude --stdio -f tools.yaml    have a client start it

Nothing is listened on. What is logged goes to standard error, and edits of the files are applied as by
`toolyard serve`. It ends with its input, after the calls that run, which it gives the time that
`timeouts.drain` says; SIGTERM and SIGINT end it at once. No process of a handler stays.")]
pub(crate) struct Args {
    #[command(flatten)]
    sources: Sources,

    /// How the log looks, instead of what the manifest says
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) log_format: Option<log::Format>,
}

pub(crate) async fn run(args: Args, log: &Log) -> anyhow::Result<ExitCode> {
    if args.sources.read_stdin() {
        return Err(BadInput("standard input is the client's, and no manifest".to_owned()).into());
    }
    let spawner = Spawner::supervised_by_ourselves();
    let options = Options { spawner, log: log.control(), ..Options::default() };
    sources::run(args.sources, listen_nowhere, options, log, converse).await
}

fn listen_nowhere(manifest: &mut Manifest) {
    manifest.process.listen.clear();
    manifest.process.tls = None;
}

/// Serves the client until its stream ends.
async fn converse(running: &Running, manifest: &Manifest) -> anyhow::Result<()> {
    let (limits, drain) = (&manifest.process.limits, manifest.process.timeouts.drain);
    let (line_bytes, requests) = (limits.request_body_bytes, limits.concurrent_calls);
    let limits = DuplexLimits { line_bytes, requests, drain };
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    duplex::serve(running.frontend().clone(), input, output, limits).await.context("the client is lost")
}
