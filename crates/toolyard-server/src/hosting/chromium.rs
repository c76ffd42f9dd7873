//! Chromium in the sandbox, which renders pages for `web_browse`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;
use tokio::task::JoinSet;
use toolyard_manifest::ChromiumSettings;
use toolyard_process::ChildPipes;
use toolyard_sandbox::{
    IsolationRequirement, ReadOnlyMount, Sandbox, SandboxProgram, SandboxSpec, SandboxedProcess, script,
};
use toolyard_web::render::launcher::{BrowserLauncher, BrowserProcess, LaunchError};

use super::CodeHosting;

/// Names of the program, the smallest first.
const NAMES: [&str; 4] = ["chromium-headless-shell", "chromium", "chrome-headless-shell", "google-chrome"];

/// A script of Debian that checks the machine and starts [`PROGRAM`]. The sandbox hides what it checks.
const SCRIPT: &str = "/usr/bin/chromium";

/// The program of Debian's package `chromium`.
const PROGRAM: &str = "/usr/lib/chromium/chromium";

/// Settings of the system that the program reads.
const SETTINGS: [&str; 4] = ["/etc/alternatives", "/etc/chromium", "/etc/chromium.d", "/etc/fonts"];

/// Maximum number of open files of each process.
const FILES: u32 = 1024;

/// Passes the pipes on as the files that Chromium expects.
const PIPES: &str = "exec \"$0\" \"$@\" --user-data-dir=\"$HOME/profile\" 3<&0 4>&1 </dev/null >/dev/null";

/// Options of the program.
///
/// Its own sandbox consists of namespaces and filters, which our sandbox forbids; ours takes its place. All frames stay
/// in one process, so that requests of each are paused.
const OPTIONS: [&str; 23] = [
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--no-zygote",
    "--disable-site-isolation-trials",
    "--disable-features=IsolateOrigins,site-per-process,Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider",
    "--disable-gpu",
    "--disable-software-rasterizer",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--no-first-run",
    "--no-pings",
    "--no-default-browser-check",
    "--password-store=basic",
    "--mute-audio",
    "--hide-scrollbars",
];

/// Maximum length of a line of the program in the log, in bytes.
const MAX_LINE: usize = 500;

/// Starts Chromium in the sandbox.
pub(crate) struct ChromiumLauncher {
    sandbox: Sandbox,
    command: PathBuf,
    spec: SandboxSpec,
    /// Name in the list of processes.
    name: Arc<str>,
}

/// No browser can start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChromiumError {
    /// The program is missing.
    #[error(
        "`render: chromium` needs Chromium, and {0}. Install it (Debian: apt-get install chromium), or name another program \
         in `builtins.web.chromium.command`"
    )]
    Missing(String),
    /// The program would have the network of the machine.
    #[error(
        "`render: chromium` needs the sandbox, which `sandbox.isolation: none` switches off: set `required` or \
         `best-effort`"
    )]
    NoSandbox,
}

impl CodeHosting {
    /// Returns a launcher of Chromium with these settings.
    ///
    /// # Errors
    /// If the program is missing, or the sandbox is switched off.
    pub(crate) fn chromium(&self, settings: &ChromiumSettings) -> Result<ChromiumLauncher, ChromiumError> {
        if self.sandbox.isolation() == IsolationRequirement::None {
            return Err(ChromiumError::NoSandbox);
        }
        let command = find(settings.command.as_deref())?;
        let spec = spec(settings, &command);
        Ok(ChromiumLauncher { sandbox: self.sandbox.clone(), command, spec, name: "chromium".into() })
    }
}

/// Returns the path of the program.
fn find(configured: Option<&Path>) -> Result<PathBuf, ChromiumError> {
    let known = NAMES.map(Path::new);
    let candidates = configured.as_ref().map_or(&known[..], std::slice::from_ref);
    let found = candidates.iter().map(|name| script::interpreter(name)).find(|path| path.is_file());
    let has_program = || Path::new(PROGRAM).is_file();
    let found =
        found.map(|path| if path == Path::new(SCRIPT) && has_program() { PROGRAM.into() } else { path });
    found.ok_or_else(|| {
        ChromiumError::Missing(match configured {
            Some(command) => format!("there is no {}", command.display()),
            None => format!("none of {} is installed", NAMES.join(", ")),
        })
    })
}

fn spec(settings: &ChromiumSettings, command: &Path) -> SandboxSpec {
    let real = command.canonicalize().unwrap_or_else(|_| command.to_owned());
    let folder = real.parent().filter(|folder| !folder.starts_with("/usr") && folder.parent().is_some());
    let system = SETTINGS.iter().map(Path::new).filter(|path| path.exists());
    SandboxSpec {
        memory_bytes: settings.memory_bytes as u64,
        cpu_millis: settings.cpu_millis,
        processes: u32::try_from(settings.processes).unwrap_or(u32::MAX),
        files: FILES,
        disk_bytes: settings.disk_bytes as u64,
        reserves_addresses: true,
        readable: folder.into_iter().chain(system).map(ReadOnlyMount::same).collect(),
        ..SandboxSpec::default()
    }
}

impl ChromiumLauncher {
    async fn launch(&self) -> Result<BrowserProcess, LaunchError> {
        let command = self.command.to_string_lossy().into_owned();
        let mut args = vec!["-c".to_owned(), PIPES.to_owned(), command];
        args.extend(OPTIONS.map(str::to_owned));
        let shell = SandboxProgram::Exec { command: "/bin/sh".into(), args };
        let started = self.sandbox.start(&self.name, &self.spec, &shell).await;
        let (process, pipes) = started.map_err(|error| LaunchError(error.into()))?;
        let ChildPipes { stdin, stdout, stderr, .. } = pipes;
        let mut log = JoinSet::new();
        log.spawn(log_lines(stderr));
        let guard = Box::new(RunningChromium { _process: process, _log: log });
        Ok(BrowserProcess { input: Box::new(stdin), output: Box::new(stdout), guard })
    }
}

impl BrowserLauncher for ChromiumLauncher {
    fn start(&self) -> BoxFuture<'_, Result<BrowserProcess, LaunchError>> {
        Box::pin(self.launch())
    }
}

/// The processes of a browser, which end when this is dropped.
struct RunningChromium {
    _process: SandboxedProcess,
    _log: JoinSet<()>,
}

/// Logs what the program writes to standard error, in pieces of limited length.
async fn log_lines(mut stderr: ChildStderr) {
    let mut piece = [0; MAX_LINE];
    while let Ok(length) = read_piece(&mut stderr, &mut piece).await {
        let text = String::from_utf8_lossy(&piece[..length]);
        tracing::debug!(chromium = %text.trim_end().escape_debug(), "output of the browser");
    }
}

async fn read_piece(stderr: &mut ChildStderr, piece: &mut [u8]) -> io::Result<usize> {
    match stderr.read(piece).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        length => Ok(length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_program_is_an_error_with_a_remedy() {
        let error = find(Some(Path::new("/nonexistent/chromium"))).expect_err("no program");
        let remedy = "Install it (Debian: apt-get install chromium), or name another program in \
                      `builtins.web.chromium.command`";
        let expected =
            format!("`render: chromium` needs Chromium, and there is no /nonexistent/chromium. {remedy}");
        assert_eq!(error.to_string(), expected);
        assert_eq!(find(Some(Path::new("sh"))).expect("a program"), Path::new("/usr/bin/sh"));
    }

    #[test]
    fn program_outside_of_the_system_is_readable() {
        let folder = tempfile::tempdir().expect("a folder");
        let command = folder.path().join("chromium");
        std::fs::write(&command, "").expect("a file");
        let readable = spec(&ChromiumSettings::default(), &command).readable;
        let folder = folder.path().canonicalize().expect("a folder");
        assert!(readable.contains(&ReadOnlyMount::same(folder)), "{readable:?}");
        let readable = spec(&ChromiumSettings::default(), Path::new("/usr/bin/sh")).readable;
        assert!(readable.iter().all(|mount| mount.host.starts_with("/etc")), "{readable:?}");
    }
}
