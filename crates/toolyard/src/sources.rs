//! A gateway of files, from its start to its end: what `serve` and `stdio` have in common.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::spawn_blocking;
use toolyard_manifest::{Manifest, Problems, Source};
use toolyard_server::edits::Edits;
use toolyard_server::{Options, Running};

use crate::log::Log;
use crate::{BadInput, store};

/// Where the handlers of a gateway are written down.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Sources {
    /// A manifest, or a folder of them; without any, an embedded demo is served
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The file of an MCP client, whose servers are served as well: see `toolyard import`
    #[arg(long = "import", value_name = "FILE")]
    imports: Vec<PathBuf>,
}

/// What is served where no manifest is named.
const QUICKSTART: &str = include_str!("quickstart.yaml");

impl Sources {
    /// Whether standard input is one of them.
    pub(crate) fn read_stdin(&self) -> bool {
        self.files.iter().chain(&self.imports).any(|path| path.as_os_str() == "-")
    }

    fn read(&self) -> anyhow::Result<Manifest> {
        let read = if self.files.is_empty() && self.imports.is_empty() {
            demo()?
        } else {
            toolyard_manifest::load_and_import(&self.files, &self.imports).map(|(manifest, notes)| {
                notes.iter().for_each(|note| tracing::info!("{note}"));
                manifest
            })
        };
        Ok(read.map_err(|problems| BadInput(format!("the manifest has problems\n\n{problems}")))?)
    }
}

fn demo() -> anyhow::Result<Result<Manifest, Problems>> {
    let us = std::env::current_exe().context("cannot find our own program")?;
    let us = us.to_str().context("the path of our own program is not UTF-8")?.to_owned();
    let source = Source { name: "quickstart.yaml".to_owned(), text: QUICKSTART.to_owned() };
    Ok(toolyard_manifest::parse_with(&[source], &|name| (name == "TOOLYARD_EXE").then(|| us.clone())))
}

/// Runs the gateway of these sources, applies their edits, and drains it when `attend` has ended or somebody says that
/// it is to stop. `change` is what the command line changes about each manifest that is read.
///
/// # Errors
/// When the gateway does not start, or `attend` fails.
pub(crate) async fn run(
    sources: Sources,
    change: impl Fn(&mut Manifest) + Clone + Send + 'static,
    mut options: Options,
    log: &Log,
    attend: impl AsyncFnOnce(&Running, &Manifest) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    // First, so that neither a signal nor an edit during the start is lost.
    let mut stops = Stops::listen()?;
    let hangups = signal(SignalKind::hangup())?;
    let edits = Edits::of([sources.files.clone(), sources.imports.clone()].concat()).await;
    let reads_stdin = sources.read_stdin();
    let read = move || {
        let mut manifest = sources.read()?;
        change(&mut manifest);
        anyhow::Ok(manifest)
    };
    let manifest = read()?;
    log.follow(&manifest.process.logs)?;
    toolyard_process::raise_file_limit();
    options.store = Some(store::of_gateway(&manifest.process).await?);
    let running = toolyard_server::start(&manifest, &options).await?;
    let every = manifest.process.timeouts.manifest_check;
    let attended = tokio::select! {
        attended = attend(&running, &manifest) => attended,
        never = follow(read, reads_stdin, edits, hangups, &running, every) => match never {},
        () = stops.next() => Ok(()),
    };
    tokio::select! {
        () = drain(running) => attended.map(|()| ExitCode::SUCCESS),
        // Whoever says it twice does not want to wait.
        () = stops.next() => Ok(ExitCode::FAILURE),
    }
}

/// What tells a gateway to stop.
pub(crate) struct Stops {
    terminate: Signal,
    interrupt: Signal,
}

impl Stops {
    /// Signals from now on.
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Applies each edit of the manifest, when its files change or somebody says so by SIGHUP. One with problems is
/// refused as a whole.
async fn follow(
    read: impl Fn() -> anyhow::Result<Manifest> + Clone + Send + 'static,
    reads_stdin: bool,
    mut edits: Edits,
    mut hangups: Signal,
    running: &Running,
    every: Duration,
) -> std::convert::Infallible {
    loop {
        tokio::select! {
            () = edits.next(every) => {}
            _ = hangups.recv() => running.reload_certificate().await,
        }
        // It cannot be read a second time.
        if reads_stdin {
            continue;
        }
        let edited = spawn_blocking(read.clone()).await;
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

async fn drain(running: Running) {
    tracing::info!("draining");
    let counts = running.stop().await;
    tracing::info!(?counts, "stopped");
}
