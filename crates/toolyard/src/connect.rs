//! `toolyard connect`: adds the gateway to the configuration of an MCP client.

mod clients;
mod edit;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use http::Uri;
use serde_json::{Value, json};

use self::clients::{ConnectMethod, McpClient};
use crate::output::{OutputFormat, confirm, escape_lines, print};
use crate::remote::{default_url, parse_url};
use crate::{BadInput, atomic_file, diff};

/// Add the gateway to the configuration of an MCP client
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard connect cursor                               use the gateway on 127.0.0.1:8080
  toolyard connect vscode --url https://tools.example.com/mcp --key-env TOOLYARD_KEY
  toolyard connect claude --stdio -f tools.yaml         let Claude Desktop start a gateway
  toolyard connect claude-code --dry-run                only show the change

Shows the change and asks for confirmation. Everything else in the file is preserved: order, comments and other
servers. If an entry with the same name is replaced, the previous file is saved as FILE.bak.

Claude Desktop only starts local servers, so it requires `--stdio`.")]
pub(crate) struct ConnectArgs {
    /// MCP client to configure
    #[arg(value_enum)]
    client: McpClient,

    /// MCP endpoint of a running gateway (default: $TOOLYARD_URL, or that of `toolyard.yaml` here or in
    /// ~/.config/toolyard, or http://127.0.0.1:8080/mcp)
    #[arg(long, value_name = "URL", value_parser = parse_url)]
    url: Option<Uri>,

    /// Let the client start its own gateway with `toolyard stdio`
    #[arg(long, requires = "files", conflicts_with_all = ["url", "key_env"])]
    stdio: bool,

    /// Manifest or directory of manifests for that gateway; repeatable
    #[arg(short, long = "file", value_name = "FILE", requires = "stdio")]
    files: Vec<PathBuf>,

    /// Environment variable of the client that holds the API key; the key itself is not written
    #[arg(long, value_name = "NAME")]
    key_env: Option<String>,

    /// Name of the gateway in the configuration
    #[arg(long, default_value = "toolyard")]
    name: String,

    /// Configuration file of the client, if not in the default location
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Skip the confirmation (required without a terminal)
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,

    /// Show the change without writing it
    #[arg(long)]
    dry_run: bool,
}

/// A planned change of a configuration file.
struct ConfigChange {
    path: PathBuf,
    before: Option<String>,
    after: String,
    entry: Value,
    /// True if the change replaces an existing entry, which may be the work of another program.
    replaces_entry: bool,
}

pub(crate) fn run(args: &ConnectArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let change = ConfigChange::plan(args)?;
    if change.before.as_deref() == Some(&change.after) {
        report(&change, format, false, "is already up to date");
        return Ok(ExitCode::SUCCESS);
    }
    if format == OutputFormat::Text {
        print(&escape_lines(&format!("{}\n{}", change.path.display(), change.diff())));
    }
    if args.dry_run {
        report(&change, format, false, "would be updated (dry run)");
    } else if args.yes || confirm(format)? {
        let backup = change.write()?;
        let outcome = match &backup {
            Some(backup) => format!("updated; the previous version is in {}", backup.display()),
            None => "updated".to_owned(),
        };
        report(&change, format, true, &outcome);
    } else {
        report(&change, format, false, "is unchanged");
    }
    Ok(ExitCode::SUCCESS)
}

impl ConfigChange {
    fn plan(args: &ConnectArgs) -> anyhow::Result<Self> {
        let path = match &args.config {
            Some(path) => path.clone(),
            None => args
                .client
                .path()
                .context("no home directory to find the configuration in; use `--config`")?,
        };
        let entry = args.client.entry(&connect_method(args)?)?;
        let before = atomic_file::read_optional(&path)?;
        let section = args.client.section();
        let replaces_entry =
            before.as_deref().is_some_and(|before| edit::has_server(before, section, &args.name));
        let after = edit::with_server(before.as_deref().unwrap_or_default(), section, &args.name, &entry);
        let after = after.map_err(|why| {
            let snippet = json!({args.client.section(): {args.name.as_str(): entry}});
            let path = path.display();
            BadInput(format!("cannot edit {path}: {why}; add this to it:\n\n{snippet:#}"))
        })?;
        Ok(Self { path, before, after, entry, replaces_entry })
    }

    /// Writes the change and returns the path of the backup, if any. A replaced entry is backed up because it may hold
    /// the only copy of its content, such as an `env`.
    fn write(&self) -> anyhow::Result<Option<PathBuf>> {
        let backup = match &self.before {
            Some(before) if self.replaces_entry => Some(atomic_file::back_up(&self.path, before)?),
            _ => None,
        };
        atomic_file::replace(&self.path, self.before.as_deref(), &self.after)?;
        Ok(backup)
    }

    fn diff(&self) -> String {
        diff::render(self.before.as_deref().unwrap_or_default(), &self.after)
    }
}

/// Determines from the arguments how the client connects to the gateway.
fn connect_method(args: &ConnectArgs) -> anyhow::Result<ConnectMethod> {
    if !args.stdio {
        let url = match (&args.url, std::env::var("TOOLYARD_URL")) {
            (Some(url), _) => url.clone(),
            (None, Ok(text)) if !text.is_empty() => {
                parse_url(&text).map_err(|error| BadInput(format!("TOOLYARD_URL: {error}")))?
            }
            (None, _) => default_url(),
        };
        return Ok(ConnectMethod::Url { url, key_env: args.key_env.clone() });
    }
    let program = std::env::current_exe().context("cannot find the path of the toolyard program")?;
    // The working directory of the client is unknown.
    let absolute = |path: &PathBuf| {
        let resolved = path.canonicalize();
        resolved.map_err(|error| BadInput(format!("cannot read {}: {error}", path.display())))
    };
    let files = args.files.iter().map(absolute).collect::<Result<_, _>>()?;
    Ok(ConnectMethod::Stdio { program, files })
}

fn report(change: &ConfigChange, format: OutputFormat, written: bool, what: &str) {
    let path = change.path.display().to_string();
    print(&match format {
        OutputFormat::Text => format!("{path} {what}"),
        OutputFormat::Json => {
            let changes = change.before.as_deref() != Some(&change.after);
            json!({"file": path, "server": change.entry, "changes": changes, "written": written}).to_string()
        }
    });
}
