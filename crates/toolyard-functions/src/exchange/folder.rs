//! What is in a folder now.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep, timeout};
use toolyard_core::{Code, Exchange, Json, Phase, Standing, ToolError};

use super::{answer, within};
use crate::edition::Edition;
use crate::host::{Host, HostOptions, edition_of};
use crate::project::folder::{Stamp, name_of, read};
use crate::run::{Run, RunError};

/// How long files have to be left alone before an edit counts as finished: few editors write in one go.
const CALM: Duration = Duration::from_millis(50);

/// How long a function may take to be loaded.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a folder has come to: what runs, or why nothing does.
type Now = Option<Result<Arc<Edition>, String>>;

/// A function in a folder, or in a file, which is read again when it is changed. A change that cannot be loaded is logged,
/// and what was there before goes on.
///
/// The files are looked at again and again. Notices of the system do not come from network file systems, are lost with the
/// folder, and say little where a file is a link to a link.
pub struct FolderExchange {
    host: Host,
    now: watch::Receiver<Now>,
    problem: watch::Receiver<Option<String>>,
    generation: watch::Receiver<u64>,
    standing: watch::Receiver<Standing>,
    _following: JoinSet<()>,
}

impl FolderExchange {
    /// What is at this path, which is looked at every so often.
    #[must_use]
    pub fn new(host: Host, path: PathBuf, every: Duration) -> Self {
        let (sender, now) = watch::channel(None);
        let (problems, problem) = watch::channel(None);
        let (generations, generation) = watch::channel(0);
        let (run, options) = (host.run().clone(), host.options().clone());
        let (standings, standing) = watch::channel(Standing::default());
        let watched = Watched { run, options, path, now: sender, problems, generations, standings };
        let mut following = JoinSet::new();
        following.spawn(watched.follow(every));
        Self { host, now, problem, generation, standing, _following: following }
    }

    /// Why what is in the folder now cannot be used, whether or not something that was read before goes on.
    #[must_use]
    pub fn problem(&self) -> watch::Receiver<Option<String>> {
        self.problem.clone()
    }

    /// What runs now. Waits for the first reading of the folder.
    ///
    /// # Errors
    /// Why nothing does.
    pub async fn edition(&self) -> Result<Arc<Edition>, ToolError> {
        let mut now = self.now.clone();
        let now = now.wait_for(Option::is_some).await.map(|now| now.clone());
        match now {
            Ok(Some(Ok(edition))) => Ok(edition),
            Ok(Some(Err(why))) => Err(unreadable(why)),
            Ok(None) | Err(_) => Err(unreadable("nobody reads the folder".to_owned())),
        }
    }
}

impl Exchange for FolderExchange {
    fn exchange(&self, request: Json, deadline: Option<Instant>) -> BoxFuture<'_, Result<Json, ToolError>> {
        Box::pin(async move {
            let edition = within(deadline, self.edition()).await??;
            answer(&self.host, &edition, &request, deadline).await
        })
    }

    fn generation(&self) -> watch::Receiver<u64> {
        self.generation.clone()
    }

    fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.clone()
    }
}

struct Watched {
    run: Arc<dyn Run>,
    options: HostOptions,
    path: PathBuf,
    now: watch::Sender<Now>,
    problems: watch::Sender<Option<String>>,
    generations: watch::Sender<u64>,
    standings: watch::Sender<Standing>,
}

impl Watched {
    async fn follow(self, every: Duration) {
        let mut seen = stamp(&self.path).await;
        loop {
            let loaded = self.load().await;
            self.replace(loaded);
            seen = self.next(seen, every).await;
        }
    }

    /// Waits until the files are others than before, and have been left alone for a moment.
    async fn next(&self, mut seen: Stamp, every: Duration) -> Stamp {
        loop {
            sleep(every).await;
            let mut now = stamp(&self.path).await;
            if now == seen {
                continue;
            }
            while now != seen {
                seen = now;
                sleep(CALM).await;
                now = stamp(&self.path).await;
            }
            return seen;
        }
    }

    fn replace(&self, loaded: Result<Arc<Edition>, String>) {
        let before = self.now.borrow().clone();
        let path = self.path.display();
        let problem = loaded.as_ref().err().cloned();
        match (loaded, before) {
            (Ok(edition), Some(Ok(before))) if edition.code.key == before.code.key => {}
            (Ok(edition), before) => {
                tracing::info!(%path, function = %edition.id, "the function was read");
                let price = Some(edition.price);
                self.standings.send_replace(Standing { phase: Phase::Ready, price });
                self.now.send_replace(Some(Ok(edition)));
                if before.is_some() {
                    self.generations.send_modify(|number| *number += 1);
                }
            }
            (Err(why), Some(Ok(_))) => {
                tracing::error!(%path, why, "the function cannot be read: the one that was read before goes on");
            }
            (Err(why), _) => {
                tracing::error!(%path, why, "the function cannot be read");
                let why = format!("{path}: {why}");
                let reason = format!("the function cannot be read: {why}");
                self.standings.send_replace(Standing { phase: Phase::Unavailable { reason }, price: None });
                self.now.send_replace(Some(Err(why)));
            }
        }
        self.problems.send_replace(problem);
    }

    async fn load(&self) -> Result<Arc<Edition>, String> {
        let path = self.path.clone();
        let found = spawn_blocking(move || read(&path)).await.map_err(|_| "the task broke".to_owned())?;
        let found = found.map_err(|error| error.to_string())?;
        let id = found.id.unwrap_or_else(|| name_of(&self.path));
        let edition =
            edition_of(&self.options, &id, &found.project).await.map_err(|error| error.to_string())?;
        self.try_out(&edition).await?;
        Ok(Arc::new(edition))
    }

    /// Whether its code can be loaded. What its handler would answer is its callers' affair.
    async fn try_out(&self, edition: &Edition) -> Result<(), String> {
        let wall = edition.code.limits.wall;
        match timeout(PATIENCE, self.run.load(&edition.code)).await {
            Ok(Err(error @ RunError::NotLoaded { .. })) => Err(error.hiding(&edition.secrets).to_string()),
            Ok(Err(RunError::TimedOut)) | Err(_) => {
                Err(format!("the function is not loaded within {} s", PATIENCE.min(wall).as_secs()))
            }
            // What has nothing to do with the code is found out by calls.
            Ok(_) => Ok(()),
        }
    }
}

/// Why there is nothing to call. Where that is on this machine is for the log and the status.
fn unreadable(why: String) -> ToolError {
    ToolError::new(Code::Unavailable, "the function cannot be read").caused_by(why).unsent()
}

/// A file system may take its time.
async fn stamp(path: &Path) -> Stamp {
    let path = path.to_owned();
    spawn_blocking(move || Stamp::of(&path)).await.unwrap_or_default()
}
