//! Functions in a folder, for development.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep, timeout};
use toolyard_core::{BackendPhase, ErrorCode, FunctionStatus, Json, MessageExchange, ToolError};

use super::{call_function, with_deadline};
use crate::host::{FunctionHost, HostOptions, load_project};
use crate::loaded_version::LoadedVersion;
use crate::project::folder::{FolderFingerprint, default_id, read};
use crate::run::{CodeRunner, RunError};

/// Time without changes after which an edit counts as finished: few editors write in one step.
const SETTLE_TIME: Duration = Duration::from_millis(50);

/// Time limit of loading a function.
const LOAD_TIMEOUT: Duration = Duration::from_secs(30);

/// State of a folder: the loaded version or the error; `None` before the first read.
type FolderState = Option<Result<Arc<LoadedVersion>, String>>;

/// A function in a folder or file, which is reloaded when it changes. If a change cannot be loaded, the error is logged
/// and the previous version remains.
///
/// The files are polled: file system notifications are not available on network file systems, get lost with the folder,
/// and do not follow chains of links.
pub struct FolderExchange {
    host: FunctionHost,
    now: watch::Receiver<FolderState>,
    problem: watch::Receiver<Option<String>>,
    generation: watch::Receiver<u64>,
    standing: watch::Receiver<FunctionStatus>,
    _following: JoinSet<()>,
}

impl FolderExchange {
    /// Creates an exchange for this path, with this polling interval.
    #[must_use]
    pub fn new(host: FunctionHost, path: PathBuf, every: Duration) -> Self {
        let (sender, now) = watch::channel(None);
        let (problems, problem) = watch::channel(None);
        let (generations, generation) = watch::channel(0);
        let (run, options) = (host.runner().clone(), host.options().clone());
        let (standings, standing) = watch::channel(FunctionStatus::default());
        let watched = FolderWatcher { run, options, path, now: sender, problems, generations, standings };
        let mut following = JoinSet::new();
        following.spawn(watched.follow(every));
        Self { host, now, problem, generation, standing, _following: following }
    }

    /// Error of the current content of the folder, even if the previous version remains.
    #[must_use]
    pub fn problem(&self) -> watch::Receiver<Option<String>> {
        self.problem.clone()
    }

    /// Returns the loaded version. Waits for the first read of the folder.
    ///
    /// # Errors
    /// If no version is loaded.
    pub async fn loaded_version(&self) -> Result<Arc<LoadedVersion>, ToolError> {
        let mut now = self.now.clone();
        let now = now.wait_for(Option::is_some).await.map(|now| now.clone());
        match now {
            Ok(Some(Ok(loaded))) => Ok(loaded),
            Ok(Some(Err(why))) => Err(unreadable(why)),
            Ok(None) | Err(_) => Err(unreadable("the folder is not observed".to_owned())),
        }
    }
}

impl MessageExchange for FolderExchange {
    fn exchange(&self, request: Json, deadline: Option<Instant>) -> BoxFuture<'_, Result<Json, ToolError>> {
        Box::pin(async move {
            let loaded = with_deadline(deadline, self.loaded_version()).await??;
            call_function(&self.host, &loaded, &request, deadline).await
        })
    }

    fn generation(&self) -> watch::Receiver<u64> {
        self.generation.clone()
    }

    fn status(&self) -> watch::Receiver<FunctionStatus> {
        self.standing.clone()
    }
}

struct FolderWatcher {
    run: Arc<dyn CodeRunner>,
    options: HostOptions,
    path: PathBuf,
    now: watch::Sender<FolderState>,
    problems: watch::Sender<Option<String>>,
    generations: watch::Sender<u64>,
    standings: watch::Sender<FunctionStatus>,
}

impl FolderWatcher {
    async fn follow(self, every: Duration) {
        let mut seen = stamp(&self.path).await;
        loop {
            let loaded = self.load().await;
            self.replace(loaded);
            seen = self.wait_for_change(seen, every).await;
        }
    }

    /// Waits until the files have changed and have been left alone for a moment.
    async fn wait_for_change(&self, mut seen: FolderFingerprint, every: Duration) -> FolderFingerprint {
        loop {
            sleep(every).await;
            let mut now = stamp(&self.path).await;
            if now == seen {
                continue;
            }
            while now != seen {
                seen = now;
                sleep(SETTLE_TIME).await;
                now = stamp(&self.path).await;
            }
            return seen;
        }
    }

    fn replace(&self, loaded: Result<Arc<LoadedVersion>, String>) {
        let before = self.now.borrow().clone();
        let path = self.path.display();
        let problem = loaded.as_ref().err().cloned();
        match (loaded, before) {
            (Ok(loaded), Some(Ok(before))) if loaded.code.key == before.code.key => {}
            (Ok(loaded), before) => {
                tracing::info!(%path, function = %loaded.id, "loaded the function");
                let price = Some(loaded.price);
                self.standings.send_replace(FunctionStatus { phase: BackendPhase::Ready, price });
                self.now.send_replace(Some(Ok(loaded)));
                if before.is_some() {
                    self.generations.send_modify(|number| *number += 1);
                }
            }
            (Err(why), Some(Ok(_))) => {
                tracing::error!(%path, reason = why, "cannot load the function: the previous version remains");
            }
            (Err(why), _) => {
                tracing::error!(%path, reason = why, "the function cannot be read");
                let why = format!("{path}: {why}");
                let reason = format!("the function cannot be read: {why}");
                self.standings.send_replace(FunctionStatus {
                    phase: BackendPhase::Unavailable { reason: reason.into() },
                    price: None,
                });
                self.now.send_replace(Some(Err(why)));
            }
        }
        self.problems.send_replace(problem);
    }

    async fn load(&self) -> Result<Arc<LoadedVersion>, String> {
        let path = self.path.clone();
        let folder = spawn_blocking(move || read(&path)).await.map_err(|_| "the task broke".to_owned())?;
        let folder = folder.map_err(|error| error.to_string())?;
        let id = folder.id.unwrap_or_else(|| default_id(&self.path));
        let loaded =
            load_project(&self.options, &id, &folder.project).await.map_err(|error| error.to_string())?;
        self.check_code(&loaded).await?;
        Ok(Arc::new(loaded))
    }

    /// Checks that the code can be loaded. The handler is not called.
    async fn check_code(&self, loaded: &LoadedVersion) -> Result<(), String> {
        let time_limit = loaded.code.limits.time_limit;
        match timeout(LOAD_TIMEOUT, self.run.load(&loaded.code)).await {
            Ok(Err(error @ RunError::NotLoaded { .. })) => Err(error.redacted(&loaded.secrets).to_string()),
            Ok(Err(RunError::TimedOut)) | Err(_) => Err(format!(
                "the function was not loaded within {} s",
                LOAD_TIMEOUT.min(time_limit).as_secs()
            )),
            // Other errors do not concern the code, and calls report them.
            Ok(_) => Ok(()),
        }
    }
}

/// Error without a loaded version. The path on this machine appears only in the log and the status.
fn unreadable(why: String) -> ToolError {
    ToolError::new(ErrorCode::Unavailable, "the function cannot be read").caused_by(why).unsent()
}

/// Computes the fingerprint in a blocking task, because a file system may be slow.
async fn stamp(path: &Path) -> FolderFingerprint {
    let path = path.to_owned();
    spawn_blocking(move || FolderFingerprint::of(&path)).await.unwrap_or_default()
}
