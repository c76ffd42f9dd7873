//! `toolyard service`: the gateway as a service of systemd for this user.

mod unit;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::json;
use toolyard_manifest::ListenAddress;

use self::unit::{ServiceUnit, UNIT_NAME};
use crate::output::{OutputFormat, note, print};
use crate::{BadInput, atomic_file, default_manifest};

/// Run the gateway as a service of systemd for this user
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard service install                    serve ./toolyard.yaml, or that of the configuration folder
  toolyard service install --print            show the unit without writing it
  toolyard service status
  toolyard service logs --follow
  toolyard service uninstall

Requires systemd. The unit is ~/.config/systemd/user/toolyard.service; `systemctl --user edit toolyard` changes its
settings. Variables of the gateway, such as tokens, go into ~/.config/toolyard/environment, one NAME=VALUE a line.
A service of a user ends when the user logs out, unless `loginctl enable-linger` is set.")]
pub(crate) struct ServiceArgs {
    #[command(subcommand)]
    command: ServiceCommand,
}

#[derive(clap::Subcommand)]
enum ServiceCommand {
    Install(ServiceInstallArgs),
    /// Show whether the service is running
    #[command(after_help = "\
Examples:
  toolyard service status

The exit status is that of `systemctl --user status`: 0 if the service is running, 3 if it is not.")]
    Status,
    /// Show the log of the service
    #[command(after_help = "\
Examples:
  toolyard service logs
  toolyard service logs --follow --lines 20")]
    Logs {
        /// Show new lines as they are written, until interrupted
        #[arg(long)]
        follow: bool,

        /// Number of earlier lines
        #[arg(long, value_name = "COUNT", default_value_t = 100)]
        lines: u32,
    },
    /// Stop the service and remove its unit
    ///
    /// Manifests, the store and the environment file stay.
    #[command(after_help = "\
Examples:
  toolyard service uninstall")]
    Uninstall,
}

/// Install the service and start it
///
/// Installing it again updates the unit and restarts the service.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard service install
  toolyard service install -f ~/tools.yaml --listen 127.0.0.1:9000
  toolyard service install --grpc 127.0.0.1:50051
  toolyard service install --print")]
struct ServiceInstallArgs {
    /// Manifest or directory of manifests; repeatable (default: `toolyard.yaml` here or in ~/.config/toolyard)
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Address or Unix socket to listen on, instead of those in the manifest; repeatable
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<ListenAddress>,

    /// Address or Unix socket to serve the tools on as a gRPC service, instead of those in the manifest; repeatable
    #[arg(long, value_name = "ADDRESS")]
    grpc: Vec<ListenAddress>,

    /// Print the unit and the commands without writing or running anything
    #[arg(long)]
    print: bool,

    /// Replace a unit that another program wrote
    #[arg(long, conflicts_with = "print")]
    force: bool,
}

pub(crate) fn run(args: ServiceArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    if cfg!(not(target_os = "linux")) {
        bail!(
            "services of systemd exist on Linux only; use the service manager of this system with `toolyard serve`"
        );
    }
    match args.command {
        ServiceCommand::Install(args) => install(&args, format),
        ServiceCommand::Status => foreground("systemctl", &["--user", "status", "--no-pager", UNIT_NAME]),
        ServiceCommand::Logs { follow, lines } => {
            let lines = format!("--lines={lines}");
            let mut args = vec!["--user", "--unit", UNIT_NAME, "--no-pager", &lines];
            if follow {
                args.push("--follow");
            }
            foreground("journalctl", &args)
        }
        ServiceCommand::Uninstall => uninstall(format),
    }
}

/// Commands of `systemctl --user` that start a new or changed unit.
const START: [&[&str]; 3] = [&["daemon-reload"], &["enable", UNIT_NAME], &["restart", UNIT_NAME]];

fn install(args: &ServiceInstallArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let unit = ServiceUnit::of(&manifests(args)?, &args.listen, &args.grpc)?;
    let (path, text) = (unit_path()?, unit.to_string());
    if args.print {
        let commands: String =
            START.iter().map(|command| format!("# systemctl --user {}\n", command.join(" "))).collect();
        print(
            match format {
                OutputFormat::Text => format!("# {}\n{text}\n{}", path.display(), commands.trim_end()),
                OutputFormat::Json => json!({"file": path, "unit": text}).to_string(),
            }
            .trim_end(),
        );
        return Ok(ExitCode::SUCCESS);
    }
    let before = atomic_file::read_optional(&path)?;
    if before.as_deref().is_some_and(|before| !ServiceUnit::is_ours(before)) && !args.force {
        let path = path.display();
        return Err(BadInput(format!("another program wrote {path}; `--force` replaces it")).into());
    }
    atomic_file::replace(&path, before.as_deref(), &text)?;
    let started = START.iter().try_fold(true, |_, command| systemctl(command))?;
    print(&match (format, started) {
        (OutputFormat::Json, _) => json!({"file": path, "started": started}).to_string(),
        (OutputFormat::Text, true) => format!(
            "wrote {} and started the service\n\n`toolyard service status` shows its state, and `toolyard service logs` its log",
            path.display()
        ),
        (OutputFormat::Text, false) => format!("wrote {}", path.display()),
    });
    Ok(ExitCode::SUCCESS)
}

/// Returns the absolute paths of the manifests, whose problems are only noted: the service has another environment.
fn manifests(args: &ServiceInstallArgs) -> anyhow::Result<Vec<PathBuf>> {
    let files = if args.files.is_empty() { default_manifest::find_all() } else { args.files.clone() };
    if files.is_empty() {
        let advice = "no manifest to serve: write one with `toolyard init`, or name one with `-f`";
        return Err(BadInput(advice.to_owned()).into());
    }
    if let Err(problems) = toolyard_manifest::load(&files) {
        note(&format!(
            "`toolyard check` reports {} in the manifests",
            crate::output::count(problems.len(), "problem")
        ));
    }
    let absolute = |file: &PathBuf| {
        file.canonicalize()
            .map_err(|error| BadInput(format!("cannot read {}: {error}", file.display())).into())
    };
    files.iter().map(absolute).collect()
}

fn uninstall(format: OutputFormat) -> anyhow::Result<ExitCode> {
    let path = unit_path()?;
    match atomic_file::read_optional(&path)? {
        None => return Err(BadInput(format!("the service is not installed: no {}", path.display())).into()),
        Some(text) if !ServiceUnit::is_ours(&text) => {
            return Err(
                BadInput(format!("another program wrote {}; it is not removed", path.display())).into()
            );
        }
        Some(_) => {}
    }
    systemctl(&["disable", "--now", UNIT_NAME])?;
    fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    systemctl(&["daemon-reload"])?;
    print(&match format {
        OutputFormat::Text => format!("removed {}", path.display()),
        OutputFormat::Json => json!({"removed": path}).to_string(),
    });
    Ok(ExitCode::SUCCESS)
}

fn unit_path() -> anyhow::Result<PathBuf> {
    let manifest = default_manifest::of_user(&|name| std::env::var_os(name).map(PathBuf::from));
    let config = manifest.as_deref().and_then(Path::parent).and_then(Path::parent);
    let config = config.context("no home directory for the unit; set HOME")?;
    Ok(config.join("systemd/user").join(UNIT_NAME))
}

/// Runs `systemctl --user`. Returns false, with a note, if there is no systemd.
fn systemctl(command: &[&str]) -> anyhow::Result<bool> {
    let args = [&["--user"], command].concat();
    let shown = format!("systemctl {}", args.join(" "));
    let output = match toolyard_process::capture("systemctl", &args) {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            note(&format!("there is no systemctl here; run `{shown}` where systemd is"));
            return Ok(false);
        }
        Err(error) => return Err(error).with_context(|| format!("cannot run `{shown}`")),
    };
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        bail!("`{shown}` failed ({}): {}", output.status, reason.trim());
    }
    Ok(true)
}

/// Runs a program with the streams of this process and returns its exit status.
fn foreground(program: &str, args: &[&str]) -> anyhow::Result<ExitCode> {
    let ended = match toolyard_process::run_in_foreground(program, args) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("there is no {program} here: services require systemd")
        }
        ended => ended.with_context(|| format!("cannot run {program}"))?,
    };
    Ok(ended.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
