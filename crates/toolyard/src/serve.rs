//! `toolyard serve`: the gateway.

use std::process::ExitCode;

use toolyard_core::registry::Kind;
use toolyard_core::{Phase, Registry};
use toolyard_manifest::{Listen, Manifest};
use toolyard_process::Spawner;
use toolyard_server::{Options, Running};

use crate::log::{self, Log};
use crate::output::{Format, count, print};
use crate::sources::{self, Sources};

/// Serve the handlers of manifests as one MCP endpoint
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard serve                              the embedded demo, on 127.0.0.1:8080
  toolyard serve -f tools.yaml -f more/       files, and all manifests of a folder
  toolyard serve --import .mcp.json           the servers of Claude, Cursor, VS Code and others
  toolyard serve -f tools.yaml --listen 127.0.0.1:0    on a port that the system chooses
  toolyard serve -f tools.yaml --listen unix:/run/toolyard.sock --listen 127.0.0.1:8080

An edit of the files is applied while the gateway serves: only what it changes is touched, and one with
problems is refused as a whole. SIGHUP has the files read at once, those of the certificate as well.
`-f -` is standard input, which is read once.

SIGTERM and SIGINT drain: no new calls are taken, those that run are let end, exit status 0.
A second one ends at once.")]
pub(crate) struct Args {
    #[command(flatten)]
    sources: Sources,

    /// Where to listen, instead of where the manifest says: an address such as 127.0.0.1:8080, or a socket such as
    /// unix:/run/toolyard.sock
    #[arg(long, value_name = "PLACE")]
    listen: Vec<Listen>,

    /// How the log looks, instead of what the manifest says
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) log_format: Option<log::Format>,

    /// A layer to leave out, for measuring what it costs
    #[arg(long, value_name = "NAME", hide = true)]
    without_layer: Vec<String>,
}

pub(crate) async fn run(args: Args, format: Format, log: &Log) -> anyhow::Result<ExitCode> {
    let spawner = Spawner::supervised_by_ourselves();
    let without_layers = args.without_layer;
    let options = Options { spawner, without_layers, log: log.control(), ..Options::default() };
    let listen = move |manifest: &mut Manifest| {
        if !args.listen.is_empty() {
            manifest.process.listen.clone_from(&args.listen);
        }
    };
    sources::run(args.sources, listen, options, log, async |running, _| {
        greet(running, format).await;
        std::future::pending().await
    })
    .await
}

/// Says where the gateway is at once, and what it found as soon as that is known.
async fn greet(running: &Running, format: Format) {
    let url = running.url();
    if format == Format::Json {
        let listening: Vec<_> = running.listening().iter().map(ToString::to_string).collect();
        print(&serde_json::json!({"url": url, "listening": listening}).to_string());
        return;
    }
    print(&format!("Toolyard {} serves MCP on {url}", env!("CARGO_PKG_VERSION")));
    for place in running.listening().iter().map(ToString::to_string).filter(|place| !url.contains(place)) {
        print(&format!("  and on {place}"));
    }
    let registry = running.gateway().settled().await;
    print(&found(&registry));
    print(&format!("\nPaste this into your MCP client:\n\n{}\n", snippet(&url)));
}

/// How many tools are named before the rest is only counted.
const NAMED: usize = 12;

fn found(registry: &Registry) -> String {
    let mut lines = Vec::new();
    for (handler, phase) in registry.phases() {
        let tools: Vec<_> = registry
            .entries(Kind::Tools)
            .iter()
            .filter(|entry| entry.handler.name == *handler)
            .map(|entry| &*entry.name)
            .collect();
        lines.push(match phase {
            Phase::Ready if tools.len() > NAMED => {
                format!("  {handler}: {} and {} more", tools[..NAMED].join(", "), tools.len() - NAMED)
            }
            Phase::Ready if tools.is_empty() => format!("  {handler}: no tools"),
            Phase::Ready => format!("  {handler}: {}", tools.join(", ")),
            Phase::Connecting => format!("  {handler}: still connecting"),
            Phase::Unavailable { reason } => format!("  {handler}: unavailable ({reason})"),
        });
    }
    let (tools, handlers) = (registry.entries(Kind::Tools).len(), registry.phases().len());
    format!("\n{} of {}\n{}", count(tools, "tool"), count(handlers, "handler"), lines.join("\n"))
}

/// What Claude, Cursor and VS Code read alike.
fn snippet(url: &str) -> String {
    format!(
        "{{\n  \"mcpServers\": {{\n    \"toolyard\": {{ \"type\": \"http\", \"url\": \"{url}\" }}\n  }}\n}}"
    )
}
