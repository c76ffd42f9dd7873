//! `toolyard serve`: the gateway.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::spawn_blocking;
use toolyard_core::registry::Kind;
use toolyard_core::{Phase, Registry};
use toolyard_manifest::{Listen, Manifest, Problems, Source};
use toolyard_process::Spawner;
use toolyard_server::edits::Edits;
use toolyard_server::{Options, Running};

use crate::log::{self, Log};
use crate::output::{Format, count, print};
use crate::{BadInput, store};

/// Serve the handlers of manifests as one MCP endpoint
#[derive(Clone, clap::Args)]
#[command(after_help = "\
Examples:
  toolyard serve                              the embedded demo, on 127.0.0.1:8080
  toolyard serve -f tools.yaml -f more/       files, and all manifests of a folder
  toolyard serve --import .mcp.json           the servers of Claude, Cursor, VS Code and others
  toolyard serve -f tools.yaml --listen 127.0.0.1:0    on a port that the system chooses
  toolyard serve -f tools.yaml --listen unix:/run/toolyard.sock --listen 127.0.0.1:8080

An edit of the files is applied while the gateway serves: only what it changes is touched, and one with
problems is refused as a whole. SIGHUP has the files read at once, those of the certificate as well. Standard
input is read once.

SIGTERM and SIGINT drain: no new calls are taken, those that run are let end, exit status 0.
A second one ends at once.")]
pub(crate) struct Args {
    /// A manifest, a folder of them, or `-` for standard input; without any, an embedded demo is served
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The file of an MCP client, whose servers are served as well: see `toolyard import`
    #[arg(long = "import", value_name = "FILE")]
    imports: Vec<PathBuf>,

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

/// What is served where no manifest is named.
const QUICKSTART: &str = include_str!("quickstart.yaml");

pub(crate) async fn run(args: Args, format: Format, log: &Log) -> anyhow::Result<ExitCode> {
    // First, so that neither a signal nor an edit during the start is lost.
    let mut stops = Stops::listen()?;
    let hangups = signal(SignalKind::hangup())?;
    let edits = Edits::of([args.files.clone(), args.imports.clone()].concat()).await;
    let manifest = manifest(&args)?;
    log.follow(&manifest.process.logs)?;
    toolyard_process::raise_file_limit();
    let spawner = Spawner::supervised_by_ourselves();
    let store = Some(store::of_gateway(&manifest.process).await?);
    let without_layers = args.without_layer.clone();
    let options = Options { spawner, store, without_layers, log: log.control() };
    let running = toolyard_server::start(&manifest, &options).await?;
    tokio::select! {
        () = async {
            greet(&running, format).await;
            std::future::pending().await
        } => {}
        () = follow(&args, edits, hangups, &running, manifest.process.timeouts.manifest_check) => {}
        () = stops.next() => {}
    }
    tokio::select! {
        code = stop(running) => Ok(code),
        // Whoever says it twice does not want to wait.
        () = stops.next() => Ok(ExitCode::FAILURE),
    }
}

/// What tells the gateway to stop.
struct Stops {
    terminate: Signal,
    interrupt: Signal,
}

impl Stops {
    fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Applies each edit of the manifest, when its files change or somebody says so by SIGHUP. One with problems is
/// refused as a whole.
async fn follow(args: &Args, mut edits: Edits, mut hangups: Signal, running: &Running, every: Duration) {
    // It cannot be read a second time.
    let reads_stdin = args.files.iter().chain(&args.imports).any(|path| path.as_os_str() == "-");
    loop {
        tokio::select! {
            () = edits.next(every) => {}
            _ = hangups.recv() => running.reload_certificate().await,
        }
        if reads_stdin {
            continue;
        }
        let args = args.clone();
        let edited = spawn_blocking(move || manifest(&args)).await;
        match edited.map_err(anyhow::Error::from).and_then(|manifest| manifest) {
            Ok(manifest) => apply(&manifest, running).await,
            Err(problems) => {
                let problems = format!("{problems:#}");
                tracing::error!("an edit is refused, and nothing changes: {problems}");
                running.refuse(problems);
            }
        }
    }
}

async fn apply(manifest: &Manifest, running: &Running) {
    match running.apply(manifest).await {
        Ok(applied) if applied.needs_restart => tracing::warn!("an edit is applied: {applied}"),
        Ok(applied) => tracing::info!("an edit is applied: {applied}"),
        Err(error) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "an edit is refused, and nothing changes"
            );
            running.refuse(error.to_string());
        }
    }
}

fn manifest(args: &Args) -> anyhow::Result<Manifest> {
    let read = if args.files.is_empty() && args.imports.is_empty() {
        demo()?
    } else {
        toolyard_manifest::load_and_import(&args.files, &args.imports).map(|(manifest, notes)| {
            notes.iter().for_each(|note| tracing::info!("{note}"));
            manifest
        })
    };
    let problems = |problems| BadInput(format!("the manifest has problems\n\n{problems}"));
    let mut manifest = read.map_err(problems)?;
    if !args.listen.is_empty() {
        manifest.process.listen.clone_from(&args.listen);
    }
    Ok(manifest)
}

fn demo() -> anyhow::Result<Result<Manifest, Problems>> {
    let us = std::env::current_exe().context("cannot find our own program")?;
    let us = us.to_str().context("the path of our own program is not UTF-8")?.to_owned();
    let source = Source { name: "quickstart.yaml".to_owned(), text: QUICKSTART.to_owned() };
    Ok(toolyard_manifest::parse_with(&[source], &|name| (name == "TOOLYARD_EXE").then(|| us.clone())))
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

async fn stop(running: Running) -> ExitCode {
    tracing::info!("draining");
    let counts = running.stop().await;
    tracing::info!(?counts, "stopped");
    ExitCode::SUCCESS
}
