//! Command lines of the two programs that install packages in a sandbox. The sandbox, its network and the handling of
//! the files are the same for both.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::config::SettingFile;
use super::pip;

/// Python script that runs pip.
const PIP_SCRIPT: &str = include_str!("pip.py");

/// Lock file that uv creates in the target folder.
const UV_LOCK_FILE: &str = ".lock";

/// Program that installs packages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum InstallerProgram {
    /// The interpreter's pip, in this folder.
    Pip { folder: String },
    /// The program uv at this path.
    Uv { program: PathBuf },
}

/// Parameters of an installation, sent to the sandbox.
#[derive(Serialize, Deserialize)]
pub(super) struct InstallRequest {
    pub(super) installer: InstallerProgram,
    /// Python interpreter of the packages.
    pub(super) python: PathBuf,
    /// One requirement per line.
    pub(super) list: String,
    /// True if every file must match a digest of the list. pip detects this itself.
    pub(super) has_digests: bool,
    /// True if packages may be built from source.
    pub(super) build_from_source: bool,
    /// True if no index is used.
    pub(super) has_no_index: bool,
    /// Environment of the installer.
    pub(super) env: Vec<(String, String)>,
    pub(super) files: Vec<SettingFile>,
    /// Socket of the gateway's proxy.
    pub(super) socket: PathBuf,
    pub(super) user: String,
}

/// Paths and port of an installation in the sandbox.
pub(super) struct InstallPaths<'a> {
    /// Writable folder of the sandbox.
    pub(super) home: &'a Path,
    /// Folder with the list and the setting files.
    pub(super) settings: &'a Path,
    pub(super) list: &'a Path,
    /// Target folder, relative to the folder of the sandbox.
    pub(super) target: &'a str,
    /// Loopback port that leads to the gateway's proxy.
    pub(super) port: u16,
}

impl InstallerProgram {
    /// Name in logs and errors.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Pip { .. } => "pip",
            Self::Uv { .. } => "uv",
        }
    }

    /// Returns the errors of a log, without credentials.
    pub(super) fn failure_reason(&self, log: &str) -> String {
        match self {
            Self::Pip { .. } => pip::pip_reason(log),
            Self::Uv { .. } => pip::uv_reason(log),
        }
    }

    /// Removes the lock file that uv leaves in the target folder.
    pub(super) fn remove_lock_file(&self, target: &Path) -> io::Result<()> {
        match self {
            Self::Pip { .. } => Ok(()),
            Self::Uv { .. } => match fs::remove_file(target.join(UV_LOCK_FILE)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        }
    }
}

impl InstallRequest {
    /// Returns the command with its arguments and a complete environment.
    pub(super) fn command(&self, place: &InstallPaths<'_>) -> Command {
        let mut command = match &self.installer {
            InstallerProgram::Pip { folder } => self.pip(folder),
            InstallerProgram::Uv { program } => self.uv(program),
        };
        if !self.build_from_source {
            command.args(["--only-binary", ":all:"]);
        }
        command.args(["--target", place.target, "--requirement"]).arg(place.list);
        let proxy = format!("http://{}@127.0.0.1:{}", self.user, place.port);
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LANG", "C.UTF-8");
        command.env("HOME", place.home).env("TMPDIR", place.home);
        command.env("http_proxy", &proxy).env("https_proxy", &proxy);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.envs(self.files.iter().map(|file| (&file.variable, place.settings.join(&file.name))));
        // Standard output carries the installed files.
        command.current_dir(place.home).stdin(Stdio::null()).stdout(io::stderr());
        command
    }

    fn pip(&self, folder: &str) -> Command {
        let mode = if self.build_from_source { "build" } else { "wheels" };
        let mut command = program(&self.python);
        command.args(["-I", "-X", "utf8", "-c", PIP_SCRIPT, mode, folder]);
        command.args(["install", "--quiet", "--no-input", "--no-cache-dir", "--disable-pip-version-check"]);
        command
    }

    /// uv itself refuses dependencies by URL.
    fn uv(&self, path: &Path) -> Command {
        let mut command = program(path);
        command.args(["--color", "never", "pip", "install", "--quiet", "--no-progress"]);
        command.args([
            "--no-config",
            "--no-cache",
            "--no-python-downloads",
            "--keyring-provider",
            "disabled",
        ]);
        command.args(["--link-mode", "hardlink", "--compile-bytecode", "--python"]).arg(&self.python);
        command.args(self.has_digests.then_some("--require-hashes"));
        command.args(self.has_no_index.then_some("--no-index"));
        command
    }
}

fn program(path: &Path) -> Command {
    #[expect(clippy::disallowed_methods, reason = "it runs in the sandbox, and ends with it")]
    Command::new(path)
}

#[cfg(test)]
mod tests;
