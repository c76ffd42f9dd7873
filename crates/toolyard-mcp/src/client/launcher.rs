//! Launchers that install the program of a server before they start it, such as `npx` and `uvx`.
//!
//! An installation takes minutes on a cold machine, and breaks the launcher's cache when it is killed. Therefore a first
//! start has a time limit of its own, and first starts by launchers of one kind, which share a cache, wait for each
//! other.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use toolyard_core::backend::Installation;

use super::ErrorLines;

/// A kind of launchers, which share a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LauncherKind {
    /// `npx`, `npm exec`, and those of other package managers for Node.js.
    Node,
    /// `uvx` and `uv tool run`.
    Uv,
    /// `pipx run`.
    Pipx,
    /// `docker run` and `podman run`.
    Container,
    /// `go run`.
    Go,
}

impl LauncherKind {
    /// Returns the kind of a command, by its name and its first arguments; `None` for a program that starts at once.
    pub fn of<'a>(command: &str, args: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let name = Path::new(command).file_name()?.to_str()?;
        let mut words = args.into_iter().filter(|arg| !arg.starts_with('-'));
        let first = words.next().unwrap_or_default();
        match (name, first) {
            ("npx" | "bunx" | "pnpx", _) | ("npm" | "bun", "exec" | "x") | ("pnpm" | "yarn", "dlx") => {
                Some(Self::Node)
            }
            ("uvx", _) | ("uv", "run") => Some(Self::Uv),
            ("uv", "tool") => (words.next() == Some("run")).then_some(Self::Uv),
            ("pipx", "run") => Some(Self::Pipx),
            ("docker" | "podman" | "nerdctl", "run") => Some(Self::Container),
            ("go", "run") => Some(Self::Go),
            _ => None,
        }
    }
}

/// Returns the software that a launcher or interpreter belongs to, which users know by another name.
pub(super) fn package_of(command: &OsStr) -> Option<&'static str> {
    Some(match Path::new(command).file_name()?.to_str()? {
        "node" => "Node.js (package `nodejs` of Debian and Ubuntu)",
        "npx" | "npm" => "Node.js (packages `nodejs` and `npm` of Debian and Ubuntu)",
        "bunx" | "bun" => "Bun",
        "uvx" | "uv" => "uv (package `uv` of PyPI: `pipx install uv`)",
        "pipx" => "pipx (package `pipx` of Debian and Ubuntu)",
        "python" | "python3" => "Python (package `python3` of Debian and Ubuntu)",
        "docker" => "Docker (package `docker.io` of Debian and Ubuntu)",
        "podman" => "Podman (package `podman` of Debian and Ubuntu)",
        "go" => "Go (package `golang-go` of Debian and Ubuntu)",
        _ => return None,
    })
}

/// The queues of first starts, one for each kind of launchers. Clones share them.
#[derive(Debug, Clone)]
pub struct InstallQueues {
    queues: Arc<Mutex<HashMap<LauncherKind, Arc<Semaphore>>>>,
    max_wait: Duration,
}

impl InstallQueues {
    /// Creates queues in which a start waits for this time at most.
    #[must_use]
    pub fn new(max_wait: Duration) -> Self {
        Self { queues: Arc::default(), max_wait }
    }

    fn of(&self, kind: LauncherKind) -> Arc<Semaphore> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.entry(kind).or_insert_with(|| Arc::new(Semaphore::new(1))).clone()
    }
}

/// The launcher of a server, and the state of its installation. Clones share the state.
#[derive(Debug, Clone)]
pub struct ServerLauncher {
    /// Name of the command, for display.
    command: Arc<str>,
    queue: Arc<Semaphore>,
    /// Maximum time in the queue.
    max_wait: Duration,
    first_start: Duration,
    state: Arc<Mutex<InstallState>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InstallState {
    /// The program may have to be installed; the next start waits for others.
    Unknown,
    /// It has not answered within the time of a first start. Others do not wait for it again.
    Slow,
    /// It waits for other installations.
    Waiting,
    /// It is being installed, or started for the first time.
    Installing,
    /// It is installed.
    Installed,
}

impl ServerLauncher {
    /// Creates the launcher of a server. `is_installed` is true if the same command has started the server before.
    #[must_use]
    pub fn new(
        command: &str,
        kind: LauncherKind,
        queues: &InstallQueues,
        first_start: Duration,
        is_installed: bool,
    ) -> Self {
        let command = Path::new(command).file_name().map_or(command.into(), |name| name.to_string_lossy());
        let state = if is_installed { InstallState::Installed } else { InstallState::Unknown };
        Self {
            command: (&*command).into(),
            queue: queues.of(kind),
            max_wait: queues.max_wait,
            first_start,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Returns the time limit of the next start, if it may be a first one.
    pub(super) fn first_start(&self) -> Option<Duration> {
        (self.state() != InstallState::Installed).then_some(self.first_start)
    }

    /// Runs a start of the server: at once if it is installed, else after the installations before it, or beside them once
    /// it has waited for long enough. Others wait for at most half of the time of a first start, because a server may hang.
    pub(super) async fn start<T>(&self, connect: impl Future<Output = T>) -> T {
        let _reset = ResetState(self);
        let place = match self.state() {
            InstallState::Installed => return connect.await,
            InstallState::Slow => None,
            InstallState::Unknown | InstallState::Waiting | InstallState::Installing => {
                self.set(InstallState::Waiting);
                // The queue is never closed.
                timeout(self.max_wait, self.queue.clone().acquire_owned()).await.ok().and_then(Result::ok)
            }
        };
        self.set(InstallState::Installing);
        let release = async {
            sleep(self.first_start / 2).await;
            drop::<Option<OwnedSemaphorePermit>>(place);
            std::future::pending().await
        };
        tokio::select! {
            done = connect => done,
            never = release => match never {},
        }
    }

    /// Records the end of a start.
    pub(super) fn finish(&self, end: StartEnd) {
        self.set(match end {
            StartEnd::Connected => InstallState::Installed,
            StartEnd::Late => InstallState::Slow,
            StartEnd::Failed => InstallState::Unknown,
        });
    }

    /// Returns the state of the installation, if there is one; `lines` are the output of the launcher.
    pub(super) fn installation(&self, lines: &ErrorLines) -> Option<Installation> {
        let is_waiting = match self.state() {
            InstallState::Waiting => true,
            InstallState::Installing => false,
            InstallState::Unknown | InstallState::Slow | InstallState::Installed => return None,
        };
        Some(Installation { launcher: self.command.clone(), is_waiting, line: lines.last() })
    }

    fn state(&self) -> InstallState {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: InstallState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

/// The end of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartEnd {
    /// The server has answered.
    Connected,
    /// It has not answered in time.
    Late,
    /// It has failed.
    Failed,
}

/// Ends the display of an installation when the start ends or is dropped.
struct ResetState<'a>(&'a ServerLauncher);

impl Drop for ResetState<'_> {
    fn drop(&mut self) {
        if matches!(self.0.state(), InstallState::Waiting | InstallState::Installing) {
            self.0.set(InstallState::Unknown);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn commands_of_launchers() {
        let check = |line: &str, expected: Option<LauncherKind>| {
            let mut words = line.split(' ');
            assert_eq!(LauncherKind::of(words.next().unwrap(), words), expected, "{line}");
        };
        check("npx -y @modelcontextprotocol/server-everything", Some(LauncherKind::Node));
        check("/usr/local/bin/npx x", Some(LauncherKind::Node));
        check("npm exec -- x", Some(LauncherKind::Node));
        check("pnpm dlx x", Some(LauncherKind::Node));
        check("npm start", None);
        check("uvx mcp-server-fetch", Some(LauncherKind::Uv));
        check("uv tool run x", Some(LauncherKind::Uv));
        check("uv --quiet run x.py", Some(LauncherKind::Uv));
        check("uv tool list", None);
        check("pipx run x", Some(LauncherKind::Pipx));
        check("docker run -i --rm mcp/fetch", Some(LauncherKind::Container));
        check("docker compose up", None);
        check("go run ./cmd/server", Some(LauncherKind::Go));
        check("node server.js", None);
        check("", None);
    }

    fn launcher(queues: &InstallQueues, is_installed: bool) -> ServerLauncher {
        ServerLauncher::new("/bin/npx", LauncherKind::Node, queues, Duration::from_secs(300), is_installed)
    }

    #[tokio::test(start_paused = true)]
    async fn first_starts_of_one_kind_wait_for_each_other() {
        let queues = InstallQueues::new(Duration::from_secs(600));
        let [one, two] = [launcher(&queues, false), launcher(&queues, false)];
        let state = |launcher: &ServerLauncher| {
            launcher.installation(&ErrorLines::default()).map(|installation| installation.is_waiting)
        };
        let mut first = Box::pin(one.start(std::future::pending::<()>()));
        let mut second = Box::pin(two.start(std::future::ready(())));
        assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
        assert_eq!((state(&one), state(&two)), (Some(false), Some(true)));
        // A known server waits for none.
        assert!(launcher(&queues, true).start(std::future::ready(())).now_or_never().is_some());
        drop(first);
        assert_eq!(state(&one), None);
        second.await;
    }

    #[tokio::test(start_paused = true)]
    async fn hanging_server_delays_the_others_once() {
        let queues = InstallQueues::new(Duration::from_secs(600));
        let [one, two] = [launcher(&queues, false), launcher(&queues, false)];
        let hanging = async {
            let late =
                tokio::time::timeout(Duration::from_secs(300), one.start(std::future::pending::<()>())).await;
            assert!(late.is_err());
            one.finish(StartEnd::Late);
        };
        tokio::join!(hanging, two.start(std::future::ready(())));
        two.finish(StartEnd::Connected);
        assert_eq!((one.first_start().is_some(), two.first_start()), (true, None));
        let mut again = Box::pin(one.start(std::future::pending::<()>()));
        assert!(again.as_mut().now_or_never().is_none());
        let other = launcher(&queues, false);
        assert!(other.start(std::future::ready(())).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn wait_for_other_installations_is_bounded() {
        let queues = InstallQueues::new(Duration::from_secs(60));
        let launchers = [(); 3].map(|()| launcher(&queues, false));
        let start = tokio::time::Instant::now();
        let mut hanging = Box::pin(launchers[0].start(std::future::pending::<()>()));
        assert!(hanging.as_mut().now_or_never().is_none());
        launchers[1].start(std::future::ready(())).await;
        assert_eq!(start.elapsed(), Duration::from_secs(60));
        // The end of the first one lets the others start before that.
        drop(hanging);
        launchers[2].start(std::future::ready(())).await;
        assert_eq!(start.elapsed(), Duration::from_secs(60));
    }
}
