//! The life of a gateway: start, manifest edits, signals and drain. Shared by `serve` and `stdio`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};
use toolyard_manifest::{Manifest, ManifestProblems, ManifestSource};
use toolyard_server::file_watcher::FileWatcher;
use toolyard_server::{GatewayOptions, RunningGateway, StartError};

use crate::log::LogHandle;
use crate::{BadInput, key_marker, store};

/// The files that define the handlers of a gateway.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ManifestSources {
    /// Manifest or directory of manifests (default: an embedded demo); repeatable
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Configuration file of an MCP client whose servers to serve; see `toolyard import`
    #[arg(long = "import", value_name = "FILE")]
    imports: Vec<PathBuf>,
}

/// The manifest of the embedded demo.
const QUICKSTART: &str = include_str!("quickstart.yaml");

impl ManifestSources {
    /// True if standard input is one of the files.
    pub(crate) fn reads_stdin(&self) -> bool {
        self.files.iter().chain(&self.imports).any(|path| path.as_os_str() == "-")
    }

    fn read(&self) -> anyhow::Result<Manifest> {
        let manifest = if self.files.is_empty() && self.imports.is_empty() {
            quickstart()?
        } else {
            toolyard_manifest::load_and_import(&self.files, &self.imports).map(|(manifest, notes)| {
                notes.iter().for_each(|note| tracing::info!("{note}"));
                manifest
            })
        };
        Ok(manifest.map_err(manifest_error)?)
    }
}

fn manifest_error(problems: ManifestProblems) -> BadInput {
    BadInput(format!("invalid manifest\n\n{problems}"))
}

fn quickstart() -> anyhow::Result<Result<Manifest, ManifestProblems>> {
    let program = std::env::current_exe().context("cannot find the path of the toolyard program")?;
    let program = program.to_str().context("the path of the toolyard program is not UTF-8")?.to_owned();
    let source = ManifestSource { name: "quickstart.yaml".to_owned(), text: QUICKSTART.to_owned() };
    Ok(toolyard_manifest::parse_with(&[source], &|name| (name == "TOOLYARD_EXE").then(|| program.clone())))
}

/// Runs the gateway of these sources, applies edits of the files, and drains it when `serve` returns or a signal arrives.
/// `change` applies the command line to each manifest that is read.
///
/// # Errors
/// Fails if the gateway does not start, or with the error of `serve`.
pub(crate) async fn run(
    sources: ManifestSources,
    change: impl Fn(&mut Manifest) + Clone + Send + 'static,
    mut options: GatewayOptions,
    log: &LogHandle,
    serve: impl AsyncFnOnce(&RunningGateway, &Manifest) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    // Before the start, so that signals and edits during the start are not lost.
    let mut stops = TerminationSignals::listen()?;
    let hangups = signal(SignalKind::hangup())?;
    let edits = FileWatcher::of([sources.files.clone(), sources.imports.clone()].concat()).await;
    let reads_stdin = sources.reads_stdin();
    let markers = key_marker::locate([sources.files.clone(), sources.imports.clone()].concat()).await;
    let read = move || {
        let mut manifest = sources.read()?;
        change(&mut manifest);
        anyhow::Ok(manifest)
    };
    let manifest = read()?;
    log.apply_config(&manifest.process.logs)?;
    toolyard_process::raise_file_limit();
    let store = Arc::new(store::open_for_gateway(&manifest.process).await?);
    options.store = Some(store.clone());
    options.key_marker = Some(markers);
    let running = match toolyard_server::start(&manifest, &options).await {
        Ok(running) => running,
        Err(error) => {
            store.close().await;
            return Err(match error {
                StartError::KeysLost(_) => BadInput(error.to_string()).into(),
                error => error.into(),
            });
        }
    };
    let every = manifest.process.timeouts.manifest_check;
    let attended = tokio::select! {
        attended = serve(&running, &manifest) => attended,
        never = apply_edits(read, reads_stdin, (edits, hangups), &running, (manifest.clone(), every)) => match never {},
        () = stops.next() => Ok(()),
    };
    let stopped = async {
        drain(running).await;
        store.close().await;
    };
    tokio::select! {
        () = stopped => attended.map(|()| ExitCode::SUCCESS),
        // A second signal skips the drain.
        () = stops.next() => Ok(ExitCode::FAILURE),
    }
}

/// The signals that stop a gateway: SIGTERM and SIGINT.
pub(crate) struct TerminationSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl TerminationSignals {
    /// Registers the signal handlers.
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Applies edits of the manifest when its files change or on SIGHUP. An invalid edit is rejected as a whole.
async fn apply_edits(
    read: impl Fn() -> anyhow::Result<Manifest> + Clone + Send + 'static,
    reads_stdin: bool,
    (mut edits, mut hangups): (FileWatcher, Signal),
    running: &RunningGateway,
    (mut current, every): (Manifest, Duration),
) -> std::convert::Infallible {
    loop {
        tokio::select! {
            () = edits.next(every) => {}
            _ = hangups.recv() => running.reload_certificate().await,
        }
        // Standard input cannot be read again.
        if reads_stdin {
            continue;
        }
        let edited = edits.read(read.clone()).await.and_then(|manifest| {
            manifest.check_edit_of(&current).map_err(manifest_error)?;
            Ok(manifest)
        });
        match edited {
            Ok(manifest) => {
                if apply(&manifest, running).await {
                    current = manifest;
                }
            }
            Err(problems) => {
                let problems = format!("{problems:#}");
                tracing::error!("manifest edit rejected, nothing changed: {problems}");
                running.refuse(problems);
            }
        }
    }
}

/// Applies an edit. Returns true on success.
async fn apply(manifest: &Manifest, running: &RunningGateway) -> bool {
    let applied = running.apply(manifest).await;
    match &applied {
        Ok(applied) if applied.needs_restart => tracing::warn!("manifest edit applied: {applied}"),
        Ok(applied) => tracing::info!("manifest edit applied: {applied}"),
        Err(error) => {
            tracing::error!(
                error = error as &dyn std::error::Error,
                "manifest edit rejected, nothing changed"
            );
            running.refuse(error.to_string());
        }
    }
    applied.is_ok()
}

async fn drain(running: RunningGateway) {
    tracing::info!("draining");
    let counts = running.stop().await;
    tracing::info!(?counts, "stopped");
}
