//! The life of a gateway in its process: edits of its files, signals and drain.

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use toolyard_manifest::Manifest;

use crate::file_watcher::FileWatcher;
use crate::running_gateway::RunningGateway;

/// The signals to the process and the edits of its files. They are recorded from its creation, so that those during the
/// start of the gateway are not lost.
pub struct GatewayLifecycle {
    terminations: TerminationSignals,
    hangups: Signal,
    files: FileWatcher,
}

/// The end of a gateway's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifecycleEnd {
    /// Running calls have finished, or their time was up.
    Drained,
    /// A second signal has ended the drain.
    Interrupted,
}

impl GatewayLifecycle {
    /// Starts recording signals and edits of these files and folders.
    ///
    /// # Errors
    /// If the signal handlers cannot be registered.
    pub async fn watch(paths: Vec<PathBuf>) -> io::Result<Self> {
        let terminations = TerminationSignals::listen()?;
        let hangups = signal(SignalKind::hangup())?;
        Ok(Self { terminations, hangups, files: FileWatcher::of(paths).await })
    }

    /// Runs a gateway until `serve` returns or a termination signal arrives, then drains it and awaits `close`. A second
    /// signal skips the drain.
    ///
    /// `reload` reads the manifest after an edit of its files and on SIGHUP, or returns the reason for a refusal. `None`:
    /// the manifest cannot be read again. An invalid edit is rejected as a whole.
    ///
    /// # Errors
    /// The error of `serve`.
    pub async fn run<E>(
        self,
        running: RunningGateway,
        manifest: &Manifest,
        reload: Option<impl Fn() -> Result<Manifest, String> + Clone + Send + 'static>,
        serve: impl AsyncFnOnce(&RunningGateway, &Manifest) -> Result<(), E>,
        close: impl Future<Output = ()>,
    ) -> Result<LifecycleEnd, E> {
        let Self { mut terminations, hangups, files } = self;
        let follower = EditFollower { files, hangups, every: manifest.process.timeouts.manifest_check };
        let served = tokio::select! {
            served = serve(&running, manifest) => served,
            never = follower.follow(reload, &running, manifest.clone()) => match never {},
            () = terminations.next() => Ok(()),
        };
        let stopped = async {
            drain(running).await;
            close.await;
        };
        tokio::select! {
            () = stopped => served.map(|()| LifecycleEnd::Drained),
            () = terminations.next() => Ok(LifecycleEnd::Interrupted),
        }
    }
}

/// The signals that stop a gateway: SIGTERM and SIGINT.
pub struct TerminationSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl TerminationSignals {
    /// Registers the signal handlers.
    ///
    /// # Errors
    /// If the system does not allow it.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Follows the occasions to read the manifest again.
struct EditFollower {
    files: FileWatcher,
    hangups: Signal,
    /// Interval of checks of the files.
    every: Duration,
}

impl EditFollower {
    /// Applies edits of the manifest when its files change or on SIGHUP.
    async fn follow(
        mut self,
        reload: Option<impl Fn() -> Result<Manifest, String> + Clone + Send + 'static>,
        running: &RunningGateway,
        mut current: Manifest,
    ) -> Infallible {
        loop {
            tokio::select! {
                () = self.files.next(self.every) => {}
                _ = self.hangups.recv() => running.reload_certificate().await,
            }
            let Some(reload) = &reload else { continue };
            let edited = self.files.read(reload.clone()).await.and_then(|manifest| {
                let check = manifest.check_edit_of(&current);
                check.map_err(|problems| format!("invalid manifest\n\n{problems}")).map(|()| manifest)
            });
            match edited {
                Ok(manifest) => {
                    if apply(&manifest, running).await {
                        current = manifest;
                    }
                }
                Err(problems) => {
                    tracing::error!("manifest edit rejected, nothing changed: {problems}");
                    running.refuse(problems);
                }
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
