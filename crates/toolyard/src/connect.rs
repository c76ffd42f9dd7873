//! `toolyard connect`: adds the gateway to the configuration of an MCP client.

mod clients;
mod edit;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use http::Uri;
use serde_json::{Value, json};
use toolyard_manifest::{HandlerKind, ManifestSource, McpTransport};

use self::clients::{ConnectMethod, McpClient};
use crate::output::{OutputFormat, confirm, escape_lines, note, print};
use crate::remote::{default_url, parse_url};
use crate::{BadInput, atomic_file, default_manifest, diff};

/// Add the gateway to the configuration of an MCP client
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard connect cursor                               use the gateway on 127.0.0.1:8080
  toolyard connect vscode --url https://tools.example.com/mcp --key-env TOOLYARD_KEY
  toolyard connect claude --stdio -f tools.yaml         let Claude Desktop start a gateway
  toolyard connect claude-code --dry-run                only show the change
  toolyard connect cursor --replace                     also take out the servers that the gateway serves

Shows the change and asks for confirmation. Everything else in the file is preserved: order, comments and other
servers. If an entry is replaced or taken out, the previous file is saved as FILE.bak.

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

    /// Take out the servers that the gateway serves, whose tools would come twice
    #[arg(long)]
    replace: bool,

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
    /// Names of other servers in the file that the gateway serves too.
    served: Vec<String>,
    /// True if the change replaces or removes an existing entry, which may be the work of another program.
    loses_entry: bool,
}

pub(crate) fn run(args: &ConnectArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let change = ConfigChange::plan(args)?;
    if !change.served.is_empty() && !args.replace {
        let names = change.served.join(", ");
        note(&format!(
            "the gateway serves {names} too, so that their tools come twice: `--replace` takes them out"
        ));
    }
    let has_key = std::env::var_os("TOOLYARD_KEY").is_some_and(|key| !key.is_empty());
    if has_key && !args.stdio && args.key_env.is_none() {
        note("no key is configured: if the gateway requires one, add `--key-env TOOLYARD_KEY`");
    }
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
        let text = before.as_deref().unwrap_or_default();
        let served = served_servers(text, args);
        let loses_entry = edit::has_server(text, section, &args.name) || args.replace && !served.is_empty();
        let after = edit::with_server(text, section, &args.name, &entry);
        let without = |after: String| match args.replace {
            true => served.iter().try_fold(after, |after, name| edit::without_server(&after, section, name)),
            false => Ok(after),
        };
        let after = after.and_then(without).map_err(|why| {
            let snippet = json!({args.client.section(): {args.name.as_str(): entry}});
            let path = path.display();
            BadInput(format!("cannot edit {path}: {why}; add this to it:\n\n{snippet:#}"))
        })?;
        Ok(Self { path, before, after, entry, served, loses_entry })
    }

    /// Writes the change and returns the path of the backup, if any. A lost entry is backed up because it may hold
    /// the only copy of its content, such as an `env`.
    fn write(&self) -> anyhow::Result<Option<PathBuf>> {
        let backup = match &self.before {
            Some(before) if self.loses_entry => Some(atomic_file::back_up(&self.path, before)?),
            _ => None,
        };
        atomic_file::replace(&self.path, self.before.as_deref(), &self.after)?;
        Ok(backup)
    }

    fn diff(&self) -> String {
        diff::render(self.before.as_deref().unwrap_or_default(), &self.after)
    }
}

/// Returns the names of the other servers in a client's file that are handlers of the gateway's manifest.
fn served_servers(text: &str, args: &ConnectArgs) -> Vec<String> {
    let files = if args.files.is_empty() { default_manifest::find_all() } else { args.files.clone() };
    // References are compared by their names.
    let environment = |name: &str| Some(name.to_owned());
    let Ok(manifest) = toolyard_manifest::load_with(&files, &environment) else { return Vec::new() };
    let is_served = |(name, entry): &(String, Value)| {
        let text = json!({"mcpServers": {name.as_str(): entry}}).to_string();
        let source = ManifestSource { name: name.clone(), text };
        let imported = toolyard_manifest::import_text(&source).ok()?;
        let source = ManifestSource { name: name.clone(), text: imported.to_yaml() };
        let imported = toolyard_manifest::parse_with(&[source], &environment).ok()?;
        let server = imported.handlers.first()?;
        manifest.handlers.iter().any(|handler| is_same_server(&handler.kind, &server.kind)).then_some(())
    };
    let servers = edit::servers(text, args.client.section()).into_iter();
    let others = servers.filter(|(name, _)| *name != args.name);
    others.filter(|server| is_served(server).is_some()).map(|(name, _)| name).collect()
}

/// True if both are the same program with the same arguments, or the same URL.
fn is_same_server(one: &HandlerKind, other: &HandlerKind) -> bool {
    let (HandlerKind::Mcp(one), HandlerKind::Mcp(other)) = (one, other) else { return false };
    match (&one.transport, &other.transport) {
        (McpTransport::Http(one), McpTransport::Http(other)) => one.endpoint == other.endpoint,
        (
            McpTransport::Stdio { command, args, .. },
            McpTransport::Stdio { command: other_command, args: other_args, .. },
        ) => command == other_command && args == other_args,
        _ => false,
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
            json!({
                "file": path, "server": change.entry, "served": change.served, "changes": changes, "written": written,
            })
            .to_string()
        }
    });
}
