//! `toolyard serve`: the gateway.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use toolyard_core::registry::Kind;
use toolyard_core::{Phase, Registry};
use toolyard_manifest::{Manifest, Source};
use toolyard_process::Spawner;
use toolyard_server::{Options, Running};

use crate::BadInput;
use crate::output::{Format, print};

/// Serve the handlers of manifests as one MCP endpoint
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard serve                              the embedded demo, on 127.0.0.1:8080
  toolyard serve -f tools.yaml -f more/       files, and all manifests of a folder
  toolyard serve -f tools.yaml --listen 127.0.0.1:0    on a port that the system chooses

SIGTERM and SIGINT drain: no new calls are taken, those that run are let end, exit status 0.
A second one ends at once.")]
pub(crate) struct Args {
    /// A manifest, or a folder of them; without any, an embedded demo is served
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The address to listen on, instead of the manifest's
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,

    /// A layer to leave out, for measuring what it costs
    #[arg(long, value_name = "NAME", hide = true)]
    without_layer: Vec<String>,
}

/// What is served where no manifest is named.
const QUICKSTART: &str = include_str!("quickstart.yaml");

pub(crate) async fn run(args: Args, format: Format) -> anyhow::Result<ExitCode> {
    // First, so that a signal during the start is not lost.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut manifest = manifest(&args)?;
    if let Some(listen) = args.listen {
        manifest.process.listen = listen;
    }
    toolyard_process::raise_file_limit();
    let spawner = Spawner::supervised_by_ourselves();
    let options = Options { spawner, without_layers: args.without_layer };
    let running = toolyard_server::start(&manifest, &options).await?;
    let mut told_to_stop = async || {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    tokio::select! {
        () = async {
            greet(&running, format).await;
            std::future::pending().await
        } => {}
        () = told_to_stop() => {}
    }
    tokio::select! {
        code = stop(running) => Ok(code),
        // Whoever says it twice does not want to wait.
        () = told_to_stop() => Ok(ExitCode::FAILURE),
    }
}

fn manifest(args: &Args) -> anyhow::Result<Manifest> {
    let manifest = if args.files.is_empty() {
        let us = std::env::current_exe().context("cannot find our own program")?;
        let us = us.to_str().context("the path of our own program is not UTF-8")?.to_owned();
        let source = Source { name: "quickstart.yaml".to_owned(), text: QUICKSTART.to_owned() };
        toolyard_manifest::parse_with(&[source], &|name| (name == "TOOLYARD_EXE").then(|| us.clone()))
    } else {
        toolyard_manifest::load(&args.files)
    };
    manifest.map_err(|problems| BadInput(format!("the manifest has problems\n\n{problems}")).into())
}

/// Says where the gateway is at once, and what it found as soon as that is known.
async fn greet(running: &Running, format: Format) {
    let url = running.url();
    if format == Format::Json {
        print(&serde_json::json!({"url": url}).to_string());
        return;
    }
    print(&format!("Toolyard {} serves MCP on {url}", env!("CARGO_PKG_VERSION")));
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

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// What Claude, Cursor and VS Code read alike.
fn snippet(url: &str) -> String {
    format!(
        "{{\n  \"mcpServers\": {{\n    \"toolyard\": {{ \"type\": \"http\", \"url\": \"{url}\" }}\n  }}\n}}"
    )
}

async fn stop(running: Running) -> ExitCode {
    tracing::info!("draining");
    let counts = running.stop().await;
    tracing::info!(?counts, "stopped");
    ExitCode::SUCCESS
}
