//! The machine's own pip, which reports its version and configuration outside sandboxes; this runs no code of packages.
//! Also chooses the program that installs in the sandbox.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;
use toolyard_process::ProgramSpec;

use super::command::InstallerProgram;
use super::config::PipConfig;
use super::{PackageError, PackageOptions, uv};
use crate::script::interpreter;

/// Time limit of an answer of the interpreter.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum size of a program's output that is kept, in bytes: the end.
const MAX_OUTPUT_BYTES: usize = 64 << 10;

/// Prints the properties of the interpreter that determine compatible packages, and the folder of pip.
const IDENTIFY_SCRIPT: &str = "import json, os, pip, sys, sysconfig
print(json.dumps([sys.version + ' ' + sysconfig.get_platform(), os.path.dirname(os.path.dirname(pip.__file__))]))";

/// Exit status and outputs of a program.
struct CommandOutput {
    is_success: bool,
    out: String,
    log: String,
}

/// An interpreter with pip.
#[derive(Debug)]
pub(super) struct PythonWithPip {
    /// Version and platform of the interpreter.
    pub(super) version: String,
    /// Installer of packages in sandboxes: uv if available, otherwise this pip.
    pub(super) installer: InstallerProgram,
}

impl PythonWithPip {
    /// Runs the interpreter to identify it and its pip.
    pub(super) async fn find(options: &PackageOptions) -> Result<Self, PackageError> {
        let out = run_python(options, &["-c", IDENTIFY_SCRIPT]).await?;
        let (version, folder) = serde_json::from_str(out.trim())
            .map_err(|error| PackageError::NoInterpreter(format!("its answer is malformed: {error}")))?;
        let uv = options.uv.as_deref().and_then(|program| uv::find(program, std::env::var_os("PATH")));
        let installer = match &uv {
            Some(program) => uv_installer(options, program).await,
            None => None,
        };
        let installer = installer.unwrap_or_else(|| {
            tracing::info!(folder, "Python packages are installed with pip");
            InstallerProgram::Pip { folder }
        });
        Ok(Self { version, installer })
    }
}

/// Returns uv if it reports its version.
async fn uv_installer(options: &PackageOptions, program: &Path) -> Option<InstallerProgram> {
    match uv::version(options, program).await {
        Ok(version) => {
            tracing::info!(version, program = %program.display(), "Python packages are installed with uv");
            Some(InstallerProgram::Uv { program: program.to_owned() })
        }
        Err(error) => {
            tracing::warn!(program = %program.display(), %error, "uv is not usable, falling back to pip");
            None
        }
    }
}

/// Reads the configuration of pip from its files and the environment.
pub(super) async fn read_config(options: &PackageOptions) -> Result<PipConfig, PackageError> {
    let args = ["-m", "pip", "--disable-pip-version-check", "config", "list"];
    let output = run_python(options, &args).await?;
    Ok(PipConfig::parse(&output))
}

/// Runs the interpreter, as [`run_program`] does.
async fn run_python(options: &PackageOptions, args: &[&str]) -> Result<String, PackageError> {
    let args: Vec<_> = args.iter().map(OsStr::new).collect();
    run_program(options, interpreter(Path::new(&options.python)).as_os_str(), &args).await
}

/// Runs a program of the machine, such as the interpreter, in a folder from which it loads nothing.
pub(super) async fn run_program(
    options: &PackageOptions,
    program: &OsStr,
    args: &[&OsStr],
) -> Result<String, PackageError> {
    match timeout(ANSWER_TIMEOUT, start_and_wait(options, program, args)).await {
        Ok(Ok(ended)) if ended.is_success => Ok(ended.out),
        Ok(Ok(ended)) => Err(PackageError::NoInterpreter(last_line(&ended.log))),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(PackageError::NoInterpreter("no answer in time".into())),
    }
}

async fn start_and_wait(
    options: &PackageOptions,
    command: &OsStr,
    args: &[&OsStr],
) -> Result<CommandOutput, PackageError> {
    let program = ProgramSpec {
        command: command.to_owned(),
        args: args.iter().map(|arg| OsString::from(*arg)).collect(),
        work_dir: Some(PathBuf::from("/")),
        env: options.env.clone(),
        ..ProgramSpec::default()
    };
    let name: Arc<str> = "packages".into();
    let started = options.sandbox.processes().start(&name, &program).await;
    let (child, pipes) = started.map_err(|error| PackageError::NoInterpreter(with_causes(&error)))?;
    drop(pipes.stdin);
    let (out, log) = tokio::join!(read_tail(pipes.stdout), read_tail(pipes.stderr));
    let status = child.exit_handle().wait().await;
    Ok(CommandOutput { is_success: status.is_some_and(|status| status.success()), out, log })
}

fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Reads a pipe to its end and returns the last part.
pub(super) async fn read_tail(mut pipe: impl AsyncRead + Unpin) -> String {
    let mut output = Vec::new();
    let mut buffer = [0; 4096];
    // A broken pipe has ended.
    while let Ok(length @ 1..) = pipe.read(&mut buffer).await {
        output.extend_from_slice(&buffer[..length]);
        let beyond = output.len().saturating_sub(MAX_OUTPUT_BYTES);
        output.drain(..beyond);
    }
    String::from_utf8_lossy(&output).into_owned()
}

/// Returns the errors of a log of pip, without credentials.
pub(super) fn pip_reason(log: &str) -> String {
    let errors: Vec<_> = log.lines().filter_map(|line| line.strip_prefix("ERROR: ")).collect();
    let text = if errors.is_empty() { last_line(log) } else { errors.join("; ") };
    without_credentials(&text).chars().take(1000).collect()
}

/// Returns a log of uv on one line, without credentials. uv prints causes on separate lines.
pub(super) fn uv_reason(log: &str) -> String {
    let text = log.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() { last_line(log) } else { without_credentials(&text).chars().take(1000).collect() }
}

fn last_line(log: &str) -> String {
    let line = log.lines().rfind(|line| !line.trim().is_empty());
    let line = line.map_or("no reason given", str::trim);
    without_credentials(line).chars().take(1000).collect()
}

/// Removes user information from URLs: pip may name its index.
fn without_credentials(text: &str) -> String {
    let mut parts = text.split("://");
    let mut redacted = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let host = part.find(|c: char| c == '/' || c.is_whitespace()).unwrap_or(part.len());
        let begins = part[..host].rfind('@').unwrap_or_default();
        redacted.push_str("://");
        redacted.push_str(&part[begins..]);
    }
    redacted
}

#[cfg(test)]
mod tests {
    use super::{pip_reason, uv_reason};

    #[test]
    fn causes_on_separate_lines_are_kept() {
        let check = |log: &str, expected: &str| assert_eq!(uv_reason(log), expected, "{log:?}");
        check(
            "error: no\n  cause: http://u:s3cret@index/x\n\nhint: z\n",
            "error: no cause: http://@index/x hint: z",
        );
        check(" \n", "no reason given");
    }

    #[test]
    fn credentials_of_an_index_are_redacted() {
        let check = |log: &str, expected: &str| assert_eq!(pip_reason(log), expected, "{log:?}");
        check(
            "http://user:s3cret@index/simple/ and https://a@b c://d/e@f",
            "http://@index/simple/ and https://@b c://d/e@f",
        );
        check(
            "Looking in https://user:s3cret@index\nERROR: No matching distribution",
            "No matching distribution",
        );
        check("ERROR: no https://user:s3cret@index/x\nbye", "no https://@index/x");
        check("", "no reason given");
    }
}
