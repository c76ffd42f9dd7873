//! `toolyard init`: writes a first manifest.

mod clients;
mod text;

use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::ValueEnum;
use serde_json::{Value, json};
use toolyard_manifest::{
    ClientFile, ClientServer, ClientServers, ExtractedSecret, ManifestSource, SecretPlacement,
};

use self::clients::ImportClient;
use crate::output::{OutputFormat, ask, count, escape_line, escape_lines, is_interactive, note, print};
use crate::{BadInput, atomic_file, default_manifest};

/// Write a commented manifest, with the servers that MCP clients on this machine have
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard init                               write ./toolyard.yaml; offers the servers of clients on a terminal
  toolyard init --from claude-code --from cursor --yes
  toolyard init --yes                         import the servers of all clients
  toolyard init --path ~/.config/toolyard     for `toolyard serve` in any directory

Clients are Claude Desktop, Claude Code (user and project), Cursor, VS Code (user and workspace), Codex and Zed. Equal
servers are written once, and the gateway itself is left out. Their files are not changed.

Secrets in the files of clients (values of variables and headers, options, URLs) are written to files in a directory
beside the manifest that only you can read, and the manifest refers to them. `--secrets variables` writes
references to environment variables of the gateway instead, and `--secrets copy` the secrets themselves; then only you
can read the manifest. A server that refers to an unset variable is written as a comment.")]
pub(crate) struct InitArgs {
    /// File to write, or the directory of toolyard.yaml
    #[arg(long, value_name = "FILE|DIR", default_value = default_manifest::FILE_NAME)]
    path: PathBuf,

    /// Import the servers of this client; repeatable
    #[arg(long, value_enum, value_name = "CLIENT")]
    from: Vec<ImportClient>,

    /// Import the servers of this configuration file of a client; repeatable
    #[arg(long = "import", value_name = "FILE")]
    imports: Vec<PathBuf>,

    /// Place of the secrets in the files of clients
    #[arg(long, value_enum, default_value_t = SecretsArg::Files)]
    secrets: SecretsArg,

    /// Skip the questions: import the servers of all clients, or of those of `--from` and `--import`
    #[arg(long)]
    yes: bool,

    /// Replace an existing file, which is saved as FILE.bak
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SecretsArg {
    /// Files in a directory beside the manifest
    Files,
    /// Environment variables of the gateway
    Variables,
    /// The manifest
    Copy,
}

/// Mode of files that contain secrets, and of other files before the process's mask.
const SECRET_MODE: u32 = 0o600;
const PLAIN_MODE: u32 = 0o666;

pub(crate) fn run(args: &InitArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let path = manifest_path(&args.path)?;
    let before = atomic_file::read_optional(&path)?;
    if before.is_some() && !args.force {
        let path = path.display();
        return Err(
            BadInput(format!("{path} exists; `--force` replaces it, and `toolyard add` adds to it")).into()
        );
    }
    let files = chosen_files(args, format)?;
    let folder = secrets_folder(&path);
    let placement = match args.secrets {
        SecretsArg::Files => SecretPlacement::Files(&folder),
        SecretsArg::Variables => SecretPlacement::Variables,
        SecretsArg::Copy => SecretPlacement::Manifest,
    };
    let mut found = toolyard_manifest::import_servers(&files, placement);
    found.servers.retain(|server| !is_this_gateway(server));
    for remark in &found.notes {
        note(&remark.to_string());
    }
    if found.servers.is_empty() && !found.broken.is_empty() {
        bail!("no servers to import: mend the file that is named above");
    }
    let text = text::manifest(&found, &std::env::current_exe().unwrap_or_else(|_| "toolyard".into()));
    let backup = before.as_ref().map(|before| atomic_file::back_up(&path, before)).transpose()?;
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    }
    let written_secrets: &[_] = if args.secrets == SecretsArg::Files { &found.secrets } else { &[] };
    write_secrets(&path.with_file_name(&folder), written_secrets)?;
    check(&path, &text)?;
    let has_secrets = args.secrets == SecretsArg::Copy && !found.servers.is_empty();
    write_file(&path, text.as_bytes(), if has_secrets { SECRET_MODE } else { PLAIN_MODE })
        .with_context(|| format!("cannot write {}", path.display()))?;
    print(&match format {
        OutputFormat::Json => report(&path, &found, backup.as_deref()).to_string(),
        OutputFormat::Text => escape_lines(&summary(&path, &found, written_secrets, backup.as_deref())),
    });
    Ok(ExitCode::SUCCESS)
}

/// Returns the file for a path that may be a directory.
fn manifest_path(path: &Path) -> Result<PathBuf, BadInput> {
    let is_folder = path.is_dir() || path.extension().is_none();
    let file = if is_folder { path.join(default_manifest::FILE_NAME) } else { path.to_owned() };
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("yaml" | "yml") => Ok(file),
        _ => Err(BadInput(format!("{}: the name of a manifest ends in .yaml", file.display()))),
    }
}

/// Returns the name of the directory with the secrets of a manifest.
fn secrets_folder(manifest: &Path) -> String {
    let stem = manifest.file_stem().unwrap_or_default().to_string_lossy();
    format!("{stem}.secrets")
}

/// Returns the files of clients to import: those of the arguments, or those that the user chooses at a terminal.
fn chosen_files(args: &InitArgs, format: OutputFormat) -> anyhow::Result<Vec<ClientFile>> {
    let imports = args.imports.iter().map(|path| ClientFile { path: path.clone(), project: None });
    let mut chosen: Vec<_> = imports.collect();
    if let Some(missing) = chosen.iter().find(|file| !file.path.is_file()) {
        return Err(BadInput(format!("cannot read {}: no such file", missing.path.display())).into());
    }
    if !args.from.is_empty() || !args.imports.is_empty() {
        for client in &args.from {
            let files = client.files();
            if files.is_empty() {
                note(&format!("{} has no configuration with MCP servers here", client.title()));
            }
            chosen.extend(files);
        }
        return Ok(chosen);
    }
    for client in ImportClient::value_variants() {
        let files = client.files();
        let mut found = toolyard_manifest::import_servers(&files, SecretPlacement::Manifest);
        found.servers.retain(|server| !is_this_gateway(server));
        if let Some(broken) = found.broken.first() {
            if args.yes {
                bail!("{broken}\n\nmend the file, or name the clients to import with `--from`");
            }
            note(&broken.to_string());
        }
        if found.servers.is_empty() {
            continue;
        }
        let names: Vec<_> = found.servers.iter().map(|server| server.name.as_str()).collect();
        let offer = format!("{} of {}: {}", count(names.len(), "server"), client.title(), names.join(", "));
        let offer = escape_line(&offer);
        let imports = if args.yes {
            true
        } else if is_interactive(format) {
            ask(&format!("Import {offer}? [Y/n] "), true)?
        } else {
            let name =
                client.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
            note(&format!(
                "not imported: {offer}; `--from {name}` imports them, and `--yes` those of all clients"
            ));
            false
        };
        if imports {
            chosen.extend(files);
        }
    }
    Ok(chosen)
}

/// True if a server is a gateway on this machine, as `toolyard connect` writes it: it would serve its own tools.
fn is_this_gateway(server: &ClientServer) -> bool {
    let config = &server.handler["mcpConfig"];
    let text = |name: &str| config[name].as_str().unwrap_or_default();
    let is_program = Path::new(text("command")).file_name().is_some_and(|name| name == "toolyard");
    let is_local = ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| {
        text("endpoint").starts_with(&format!("http://{host}:")) && text("endpoint").ends_with("/mcp")
    });
    is_program && config["args"][0] == "stdio" || is_local && server.name == "toolyard"
}

/// Checks the manifest before it is written. Its secrets exist already.
fn check(path: &Path, text: &str) -> anyhow::Result<()> {
    let source = ManifestSource { name: path.display().to_string(), text: text.to_owned() };
    let checked = toolyard_manifest::parse(&[source]);
    checked.map_err(|problems| BadInput(format!("the manifest would be invalid\n\n{problems}")))?;
    Ok(())
}

/// Writes secrets to a directory that only the user can read, and keeps it out of version control.
fn write_secrets(folder: &Path, secrets: &[ExtractedSecret]) -> anyhow::Result<()> {
    if secrets.is_empty() {
        return Ok(());
    }
    let write = || {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
        write_file(&folder.join(".gitignore"), b"*\n", PLAIN_MODE)?;
        secrets.iter().try_for_each(|secret| {
            write_file(&folder.join(&secret.name), secret.value.expose().as_bytes(), SECRET_MODE)
        })
    };
    write().with_context(|| format!("cannot write {}", folder.display()))
}

/// Writes a file. Its mode is set before its content is written.
fn write_file(path: &Path, content: &[u8], mode: u32) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path)?;
    if mode == SECRET_MODE {
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    file.write_all(content)
}

fn summary(path: &Path, found: &ClientServers, secrets: &[ExtractedSecret], backup: Option<&Path>) -> String {
    let mut lines = vec![match backup {
        Some(backup) => format!("wrote {}; the previous version is in {}", path.display(), backup.display()),
        None => format!("wrote {}", path.display()),
    }];
    let (left_out, imported): (Vec<_>, Vec<_>) =
        found.servers.iter().partition(|server| server.unresolved.is_some());
    if !imported.is_empty() {
        let names: Vec<_> = imported.iter().map(|server| server.name.as_str()).collect();
        lines.push(format!("  {}: {}", count(names.len(), "server"), names.join(", ")));
    }
    if found.servers.is_empty() {
        lines.push("  no servers of clients: its only handler is the demo".to_owned());
    }
    for server in left_out {
        let reason = server.unresolved.as_deref().unwrap_or_default();
        lines.push(format!("  {} is a comment: {reason}", server.name));
    }
    if !secrets.is_empty() {
        let folder = path.with_file_name(secrets_folder(path));
        lines.push(format!(
            "  {} in {}, which only you can read",
            count(secrets.len(), "secret"),
            folder.display()
        ));
    }
    let default = Path::new(default_manifest::FILE_NAME);
    let is_default = path == default || default_manifest::find().is_some_and(|found| found == path);
    let file = if is_default { String::new() } else { format!(" -f {}", path.display()) };
    lines.push(format!("\nnext: toolyard serve{file}"));
    lines.join("\n")
}

fn report(path: &Path, found: &ClientServers, backup: Option<&Path>) -> Value {
    let (left_out, servers): (Vec<_>, Vec<_>) =
        found.servers.iter().partition(|server| server.unresolved.is_some());
    let names = |servers: Vec<&ClientServer>| {
        servers.into_iter().map(|server| server.name.clone()).collect::<Vec<_>>()
    };
    let secrets: Vec<_> = found.secrets.iter().map(|secret| secret.name.as_str()).collect();
    json!({
        "file": path,
        "backup": backup,
        "servers": names(servers),
        "leftOut": names(left_out),
        "secrets": secrets,
    })
}
