//! One installation and its limits: a sandbox with pip or uv, its proxy, and the stream of files.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::OFlags;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use toolyard_core::random::{hex, random_bytes};
use toolyard_process::ChildPipes;

use super::archive::{self, ArchiveError};
use super::cache::EnvironmentDraft;
use super::command::{InstallRequest, InstallerProgram};
use super::config::PipConfig;
use super::inspect;
use super::pip::{self, read_tail};
use super::proxy::{PackageProxy, ProxyPolicy};
use super::requirements::{PackageRequirement, RequirementList};
use super::{INSTALLER, PackageError, PackageOptions};
use crate::script::PythonInterpreter;
use crate::{
    IsolationRequirement, ReadOnlyMount, SandboxOutcome, SandboxProgram, SandboxSpec, SandboxedProcess,
};

/// Path of the proxy's socket in the sandbox.
const PROXY_SOCKET: &str = "/proxy";

/// Certificates of authorities, for TLS in the sandbox.
const CERTIFICATES: [&str; 3] = ["/etc/ssl", "/etc/pki", "/etc/ca-certificates"];

/// Memory of the sandbox in addition to its files, in bytes.
const BASE_MEMORY_BYTES: u64 = 512 << 20;

/// Disk space of the sandbox for archives and intermediate files, in bytes.
const SPARE_DISK_BYTES: u64 = 64 << 20;

/// Installs a list into the folder of a draft.
pub(super) async fn install(
    options: &PackageOptions,
    installer: &InstallerProgram,
    requirements: &RequirementList,
    draft: EnvironmentDraft,
) -> Result<EnvironmentDraft, PackageError> {
    let config = pip::read_config(options).await?;
    let user = format!("toolyard:{}", random_token()?);
    let proxy = start_proxy(options, &config, &user, draft.path())?;
    let python = PythonInterpreter::find(Path::new(&options.python));
    let is_alone = options.sandbox.isolation() == IsolationRequirement::None;
    let request = InstallRequest {
        installer: installer.clone(),
        python: python.command.clone(),
        list: requirements.text().to_owned(),
        has_digests: requirements.packages().iter().any(PackageRequirement::has_digests),
        build_from_source: options.build_from_source,
        has_no_index: config.has_no_index(),
        env: config.env(installer),
        files: config.files(installer)?,
        socket: if is_alone { proxy.socket().to_owned() } else { PROXY_SOCKET.into() },
        user,
    };
    let spec = sandbox_spec(options, &config, &readable(&python, installer), proxy.socket());
    run(options, &spec, &request, &proxy, draft).await
}

fn start_proxy(
    options: &PackageOptions,
    config: &PipConfig,
    user: &str,
    folder: &Path,
) -> Result<PackageProxy, PackageError> {
    let policy = ProxyPolicy {
        allowed: config.hosts(&options.hosts),
        upstream: config.upstream(),
        // Archives are smaller than their contents; build dependencies count, too.
        max_bytes: options.max_bytes.saturating_mul(2),
    };
    let authorization = format!("Basic {}", STANDARD.encode(user));
    let socket = folder.join("proxy");
    PackageProxy::start(socket, authorization, policy).map_err(|error| {
        let why = format!("cannot create a socket in {}: {error}", folder.display());
        PackageError::Cache(why)
    })
}

/// Returns a random token that no other program knows.
fn random_token() -> Result<String, PackageError> {
    let token = random_bytes::<16>().map_err(|error| PackageError::Cache(error.to_string()))?;
    Ok(hex(&token))
}

/// Returns the paths of the interpreter and the installer that sandboxes do not see by default.
fn readable(python: &PythonInterpreter, installer: &InstallerProgram) -> Vec<PathBuf> {
    let program = match installer {
        InstallerProgram::Pip { folder } => Path::new(folder).join("pip"),
        InstallerProgram::Uv { program } => program.clone(),
    };
    let is_seen = program.starts_with("/usr")
        || python.folder.as_ref().is_some_and(|folder| program.starts_with(folder));
    python.folder.iter().cloned().chain((!is_seen).then_some(program)).collect()
}

fn sandbox_spec(
    options: &PackageOptions,
    config: &PipConfig,
    readable: &[PathBuf],
    socket: &Path,
) -> SandboxSpec {
    let certificates = CERTIFICATES.iter().map(PathBuf::from).filter(|path| path.exists());
    let folders = readable.iter().cloned().chain(certificates).chain(config.folders());
    let socket = ReadOnlyMount { host: socket.to_owned(), inside: PROXY_SOCKET.into() };
    let disk_bytes = options.max_bytes.saturating_add(options.max_bytes / 2).saturating_add(SPARE_DISK_BYTES);
    SandboxSpec {
        loopback: true,
        memory_bytes: disk_bytes.saturating_add(BASE_MEMORY_BYTES),
        cpu_millis: 2000,
        processes: 256,
        files: 1024,
        disk_bytes,
        readable: folders.map(ReadOnlyMount::same).chain([socket]).collect(),
        ..SandboxSpec::default()
    }
}

/// Result of the sandbox of an installation.
struct InstallOutcome {
    log: String,
    outcome: SandboxOutcome,
    received: Result<EnvironmentDraft, ReceiveFailure>,
}

/// Reason to reject the files.
enum ReceiveFailure {
    Stream(ArchiveError),
    Content(inspect::InspectionError),
}

async fn run(
    options: &PackageOptions,
    spec: &SandboxSpec,
    request: &InstallRequest,
    proxy: &PackageProxy,
    draft: EnvironmentDraft,
) -> Result<EnvironmentDraft, PackageError> {
    let name: Arc<str> = "packages".into();
    let program = SandboxProgram::Inner { name: INSTALLER.to_owned(), args: Vec::new() };
    let started = options.sandbox.start(&name, spec, &program).await;
    let (process, pipes) = started.map_err(|error| PackageError::Sandbox(error.to_string()))?;
    let text = serde_json::to_vec(request).map_err(|error| PackageError::Cache(error.to_string()))?;
    let mut communication = pin!(communicate(&process, pipes, &text, draft, options.max_bytes));
    let outcome = match timeout(options.timeout, &mut communication).await {
        Ok(outcome) => outcome?,
        Err(_) => {
            process.kill();
            // Wait until the draft is removed.
            let _late = communication.await;
            return Err(PackageError::TimedOut(options.timeout));
        }
    };
    interpret_outcome(options, outcome, &process, proxy, &request.installer)
}

async fn communicate(
    process: &SandboxedProcess,
    pipes: ChildPipes,
    request: &[u8],
    draft: EnvironmentDraft,
    max_bytes: u64,
) -> Result<InstallOutcome, PackageError> {
    let ChildPipes { stdin, stdout, stderr, .. } = pipes;
    let stream = blocking_file(stdout).map_err(|error| PackageError::Cache(error.to_string()))?;
    let receiving = spawn_blocking(move || receive(stream, draft, max_bytes));
    let (received, log, ()) = tokio::join!(receiving, read_tail(stderr), send_request(stdin, request));
    let received = received.map_err(|_| PackageError::Cache("the task that writes files failed".into()))?;
    Ok(InstallOutcome { log, outcome: process.outcome().await, received })
}

async fn send_request(mut stdin: ChildStdin, request: &[u8]) {
    // A process that has ended reports that itself.
    let _ended = stdin.write_all(request).await;
}

/// Converts the pipe for a thread that may block.
fn blocking_file(pipe: ChildStdout) -> io::Result<File> {
    let pipe = pipe.into_owned_fd()?;
    let flags = rustix::fs::fcntl_getfl(&pipe)?;
    rustix::fs::fcntl_setfl(&pipe, flags - OFlags::NONBLOCK)?;
    Ok(pipe.into())
}

/// Receives and checks the files. After an error the draft is removed when this thread no longer writes to it.
fn receive(
    stream: File,
    draft: EnvironmentDraft,
    max_bytes: u64,
) -> Result<EnvironmentDraft, ReceiveFailure> {
    let mut stream = BufReader::with_capacity(64 << 10, stream);
    let folder = draft.packages();
    let files = archive::receive(&mut stream, folder, max_bytes).map_err(ReceiveFailure::Stream)?;
    let read = |path: &str| fs::read_to_string(folder.join(path));
    let to_remove = inspect::check(&files, read).map_err(ReceiveFailure::Content)?;
    for path in to_remove {
        fs::remove_file(folder.join(path))
            .map_err(|error| ReceiveFailure::Stream(ArchiveError::Broken(error)))?;
    }
    Ok(draft)
}

/// Interprets the outcome: an exceeded limit, an error of the installer, or invalid files.
fn interpret_outcome(
    options: &PackageOptions,
    outcome: InstallOutcome,
    process: &SandboxedProcess,
    proxy: &PackageProxy,
    installer: &InstallerProgram,
) -> Result<EnvironmentDraft, PackageError> {
    let too_large = PackageError::TooLarge(options.max_bytes);
    let failed = |why: String| Err(PackageError::Failed { installer: installer.name(), reason: why });
    match (outcome.outcome, outcome.received) {
        (_, Err(ReceiveFailure::Stream(ArchiveError::TooLarge))) => Err(too_large),
        (_, Err(ReceiveFailure::Content(fault))) => Err(PackageError::Refused(fault.to_string())),
        (_, Err(ReceiveFailure::Stream(ArchiveError::Malformed(what)))) => {
            Err(PackageError::Refused(format!("the sandbox sent {what}")))
        }
        (SandboxOutcome::Exited(0), Ok(draft)) => Ok(draft),
        (SandboxOutcome::Exited(0), Err(ReceiveFailure::Stream(ArchiveError::Broken(error)))) => {
            Err(PackageError::Cache(error.to_string()))
        }
        (SandboxOutcome::OutOfMemory | SandboxOutcome::TooManyProcesses, _) => {
            failed("it exceeded the limit of memory or processes".to_owned())
        }
        (SandboxOutcome::Refused, _) => {
            Err(PackageError::Sandbox(process.refusal_reason().unwrap_or("its setup failed").to_owned()))
        }
        _ if proxy.is_exhausted() || outcome.log.contains("No space left on device") => Err(too_large),
        _ => failed(with_refused_hosts(installer.failure_reason(&outcome.log), &proxy.refused_hosts())),
    }
}

/// Adds the refused hosts to an error of the installer.
fn with_refused_hosts(why: String, hosts: &[String]) -> String {
    match hosts {
        [] => why,
        hosts => format!(
            "{why} (not reached: {}; an installation can reach the configured index, and the hosts of \
             `sandbox.packageHosts`)",
            hosts.join(", ")
        ),
    }
}
