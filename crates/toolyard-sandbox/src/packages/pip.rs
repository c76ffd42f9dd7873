//! One installation, within its bounds.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use toolyard_process::Program;

use super::cache::{self, LIST};
use super::{PackageError, PackageOptions};

/// How long the interpreter may take to say what it is.
const GREETING: Duration = Duration::from_secs(30);

/// How often it is looked how large an installation has become.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What is kept of what pip says, in bytes: the end.
const KEPT: usize = 8 << 10;

/// What of an interpreter decides which packages fit.
const WHO: &str = "import pip, sys, sysconfig; print(sys.version, sysconfig.get_platform())";

/// How a program has ended, and what it said.
struct Ended {
    is_success: bool,
    out: String,
    log: String,
}

/// Which interpreter it is.
pub(super) async fn python(options: &PackageOptions) -> Result<String, PackageError> {
    let asked = timeout(GREETING, run(options, vec!["-c".into(), WHO.into()], None)).await;
    match asked {
        Ok(Ok(ended)) if ended.is_success => Ok(ended.out),
        Ok(Ok(ended)) => Err(PackageError::NoPython(last_line(&ended.log))),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(PackageError::NoPython("it does not answer".into())),
    }
}

/// Installs the list in a folder to a folder beside it.
pub(super) async fn install(options: &PackageOptions, folder: &Path) -> Result<(), PackageError> {
    let mut args: Vec<OsString> =
        ["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--quiet"]
            .map(OsString::from)
            .to_vec();
    if !options.from_source {
        args.extend(["--only-binary", ":all:"].map(OsString::from));
    }
    args.extend(["--target", "packages", "--requirement", LIST].map(OsString::from));
    let installing = async {
        tokio::select! {
            ended = run(options, args, Some(folder)) => ended,
            () = grown(folder, options.most_bytes) => Err(PackageError::TooLarge(options.most_bytes)),
        }
    };
    let ended =
        timeout(options.time, installing).await.map_err(|_| PackageError::TimedOut(options.time))??;
    if !ended.is_success {
        return Err(PackageError::Failed(reason(&ended.log)));
    }
    // It may have grown since it was last looked at.
    match size(folder).await > options.most_bytes {
        true => Err(PackageError::TooLarge(options.most_bytes)),
        false => Ok(()),
    }
}

/// Runs the interpreter. Dropping this ends it.
async fn run(
    options: &PackageOptions,
    args: Vec<OsString>,
    folder: Option<&Path>,
) -> Result<Ended, PackageError> {
    let program = Program {
        command: options.python.clone(),
        args,
        work_dir: folder.map(Path::to_owned),
        env: options.env.clone(),
        ..Program::default()
    };
    let name: Arc<str> = "packages".into();
    let started = options.processes.start(&name, &program).await;
    let (child, pipes) = started.map_err(|error| PackageError::NoPython(said(&error)))?;
    drop(pipes.stdin);
    let (out, log) = tokio::join!(tail(pipes.stdout), tail(pipes.stderr));
    let status = child.ending().wait().await;
    Ok(Ended { is_success: status.is_some_and(|status| status.success()), out, log })
}

fn said(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// The end of what a pipe brings.
async fn tail(mut pipe: impl AsyncRead + Unpin) -> String {
    let mut kept = Vec::new();
    let mut buffer = [0; 4096];
    // A pipe that breaks has ended.
    while let Ok(length @ 1..) = pipe.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..length]);
        let beyond = kept.len().saturating_sub(KEPT);
        kept.drain(..beyond);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// What of a log says why.
fn reason(log: &str) -> String {
    let errors: Vec<_> = log.lines().filter_map(|line| line.strip_prefix("ERROR: ")).collect();
    let text = if errors.is_empty() { last_line(log) } else { errors.join("; ") };
    text.chars().take(1000).collect()
}

fn last_line(log: &str) -> String {
    let line = log.lines().rfind(|line| !line.trim().is_empty());
    line.map_or_else(|| "it does not say why".to_owned(), |line| line.trim().chars().take(1000).collect())
}

/// Waits until a folder takes more than so many bytes.
async fn grown(folder: &Path, most: u64) {
    while size(folder).await <= most {
        sleep(LOOK_EVERY).await;
    }
}

async fn size(folder: &Path) -> u64 {
    let folder = folder.to_owned();
    spawn_blocking(move || cache::size(&folder)).await.unwrap_or_default()
}
