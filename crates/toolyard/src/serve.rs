//! `toolyard serve`: runs the gateway.

use std::process::ExitCode;

use toolyard_core::registry::EntryKind;
use toolyard_core::{BackendPhase, Registry};
use toolyard_manifest::{ListenAddress, Manifest};
use toolyard_process::ProcessSpawner;
use toolyard_server::{GatewayOptions, RunningGateway};

use crate::gateway::{self, StartReport};
use crate::log::{self, LogHandle};
use crate::manifest_sources::ManifestSources;
use crate::output::{OutputFormat, count, escape_lines, print};

/// Serve the handlers of manifests as one MCP endpoint
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard serve                              toolyard.yaml, or an embedded demo, on 127.0.0.1:8080
  toolyard serve -f tools.yaml -f more/       a file, and all manifests in a directory
  toolyard serve --import .mcp.json           the servers of Claude, Cursor, VS Code and others
  toolyard serve -f tools.yaml --listen 127.0.0.1:0    on a free port
  toolyard serve -f tools.yaml --listen unix:/run/toolyard.sock --listen 127.0.0.1:8080
  toolyard serve -f tools.yaml --grpc 127.0.0.1:50051    for callers with gRPC, too

The gateway applies edits of the files while it runs. An edit affects only what it changes; an invalid edit is
rejected as a whole. SIGHUP reloads the files and the TLS certificate immediately. `-f -` reads standard input once.

SIGTERM and SIGINT drain: the gateway accepts no new calls, waits for running calls and exits with status 0.
A second signal exits immediately.")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    sources: ManifestSources,

    /// Address (127.0.0.1:8080) or Unix socket (unix:/run/toolyard.sock) to listen on, instead of those in the
    /// manifest; repeatable
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<ListenAddress>,

    /// Address or Unix socket to serve the tools on as a gRPC service (omnia.tools.v1.ToolService), instead of those in
    /// the manifest; repeatable
    #[arg(long, value_name = "ADDRESS")]
    grpc: Vec<ListenAddress>,

    /// Log format (default: that of the manifest)
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) log_format: Option<log::LogFormatArg>,

    /// Disable a layer, to measure its cost
    #[arg(long, value_name = "NAME", hide = true)]
    without_layer: Vec<String>,
}

pub(crate) async fn run(args: ServeArgs, format: OutputFormat, log: &LogHandle) -> anyhow::Result<ExitCode> {
    let spawner = ProcessSpawner::supervised_by_this_program();
    let without_layers = args.without_layer;
    let options = GatewayOptions { spawner, without_layers, log: log.control(), ..GatewayOptions::default() };
    let listen = move |manifest: &mut Manifest| {
        if !args.listen.is_empty() {
            manifest.process.listen.clone_from(&args.listen);
        }
        if !args.grpc.is_empty() {
            manifest.process.grpc.listen.clone_from(&args.grpc);
        }
    };
    gateway::run(args.sources, listen, options, log, async |running, _, report| {
        print_banner(running, report, format).await;
        std::future::pending().await
    })
    .await
}

/// Prints the URL of the gateway, and its tools once they are discovered.
async fn print_banner(running: &RunningGateway, report: &StartReport, format: OutputFormat) {
    let url = running.url();
    if let (Some(problem), OutputFormat::Text) = (&report.store_problem, format) {
        let effect = "requests that need it fail until it can be opened";
        print(&escape_lines(&format!("The store cannot be used: {problem}\n{effect}\n")));
    }
    if format == OutputFormat::Json {
        let listening: Vec<_> = running.listening().iter().map(ToString::to_string).collect();
        let mut addresses = serde_json::json!({"url": url, "listening": listening});
        if !running.grpc_listening().is_empty() {
            addresses["grpc"] = running.grpc_listening().iter().map(ToString::to_string).collect();
        }
        print(&addresses.to_string());
        return;
    }
    print(&format!("Toolyard {} is serving MCP on {url}", env!("CARGO_PKG_VERSION")));
    for place in running.listening().iter().map(ToString::to_string).filter(|place| !url.contains(place)) {
        print(&format!("  and on {place}"));
    }
    for place in running.grpc_listening() {
        print(&format!("  and gRPC on {place}"));
    }
    for page in running.console_urls() {
        print(&format!("  console: {page}"));
    }
    if let Some(origin) = &report.origin {
        print(&escape_lines(&format!("  manifest: {origin}")));
    }
    if let Some(keys) = &report.keys {
        print(&escape_lines(&format!("  API keys are required: {keys}")));
    }
    let registry = running.gateway().settled().await;
    print(&escape_lines(&discovered_tools(&registry)));
    print(&format!(
        "\nAdd this to the configuration of your MCP client:\n\n{}\n",
        client_config(&url, report.keys.is_some())
    ));
}

/// Maximum number of tools that are named per handler; the rest are counted.
const MAX_TOOLS_NAMED: usize = 12;

fn discovered_tools(registry: &Registry) -> String {
    let mut each = Vec::new();
    for (handler, phase) in registry.phases() {
        let tools: Vec<_> = registry
            .entries(EntryKind::Tools)
            .iter()
            .filter(|entry| entry.handler.name == *handler)
            .map(|entry| &*entry.name)
            .collect();
        each.push(match phase {
            BackendPhase::Ready if tools.len() > MAX_TOOLS_NAMED => {
                format!(
                    "  {handler}: {} and {} more",
                    tools[..MAX_TOOLS_NAMED].join(", "),
                    tools.len() - MAX_TOOLS_NAMED
                )
            }
            BackendPhase::Ready if tools.is_empty() => format!("  {handler}: no tools"),
            BackendPhase::Ready => format!("  {handler}: {}", tools.join(", ")),
            BackendPhase::Connecting => format!("  {handler}: still connecting"),
            BackendPhase::Unavailable { reason } => format!("  {handler}: unavailable ({reason})"),
        });
    }
    let is_connecting = |(_, phase): &&(_, BackendPhase)| matches!(phase, BackendPhase::Connecting);
    let connecting = registry.phases().iter().filter(is_connecting).count();
    if connecting > 0 {
        each.push(
            "\n`toolyard doctor --wait` waits for handlers that are connecting or being installed".to_owned(),
        );
    }
    let (tools, handlers) = (registry.entries(EntryKind::Tools).len(), registry.phases().len());
    let (tools, handlers) = (count(tools, "tool"), count(handlers, "handler"));
    let total = match connecting {
        0 => format!("{tools} of {handlers}"),
        _ => format!("{tools} so far: {connecting} of {handlers} are still connecting"),
    };
    format!("\n{total}\n{}", each.join("\n"))
}

/// Returns a configuration entry in the form that Claude, Cursor and others read.
fn client_config(url: &str, requires_key: bool) -> String {
    let headers = if requires_key { ", \"headers\": { \"Authorization\": \"Bearer KEY\" }" } else { "" };
    format!(
        "{{\n  \"mcpServers\": {{\n    \"toolyard\": {{ \"type\": \"http\", \"url\": \"{url}\"{headers} }}\n  }}\n}}"
    )
}
