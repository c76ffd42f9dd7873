//! `toolyard connect`: puts the gateway into the file in which an MCP client keeps its servers.

mod clients;
mod edit;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use http::Uri;
use serde_json::{Value, json};

use self::clients::{Client, Way};
use crate::output::{Format, agreed, print};
use crate::remote::url;
use crate::{BadInput, diff, write};

/// Write the configuration of an MCP client, so that it uses the gateway
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard connect cursor                               the gateway on 127.0.0.1:8080
  toolyard connect vscode --url https://tools.example.com/mcp --key-env TOOLYARD_KEY
  toolyard connect claude --stdio -f tools.yaml         started by Claude Desktop
  toolyard connect claude-code --dry-run                only show what would change

What would change is shown first, and then asked for; without a terminal it takes `--yes`. Everything else in
the file stays as it is: its order, its comments, its other servers. Where another entry of the same name is
replaced, the file as it was is kept beside, as FILE.bak.

Claude Desktop starts its servers and connects to none, so it takes `--stdio`.")]
pub(crate) struct Args {
    /// The client
    #[arg(value_enum)]
    client: Client,

    /// The MCP endpoint of a gateway that runs [default: http://127.0.0.1:8080/mcp]
    #[arg(long, value_name = "URL", value_parser = url)]
    url: Option<Uri>,

    /// Have the client start a gateway of its own: `toolyard stdio`
    #[arg(long, requires = "files", conflicts_with_all = ["url", "key_env"])]
    stdio: bool,

    /// A manifest of that gateway, or a folder of them
    #[arg(short, long = "file", value_name = "FILE", requires = "stdio")]
    files: Vec<PathBuf>,

    /// The environment variable of the client that holds the key for the gateway; the key itself is not written
    #[arg(long, value_name = "NAME")]
    key_env: Option<String>,

    /// What the client calls the gateway
    #[arg(long, default_value = "toolyard")]
    name: String,

    /// The client's file, where it is not where the client has it by default
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Do not ask
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,

    /// Show the change, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// What is to happen to a file.
struct Change {
    path: PathBuf,
    before: Option<String>,
    after: String,
    entry: Value,
    /// Whether there is another entry of this name, which somebody else may have written.
    replaces: bool,
}

pub(crate) fn run(args: &Args, format: Format) -> anyhow::Result<ExitCode> {
    let change = Change::of(args)?;
    if change.before.as_deref() == Some(&change.after) {
        report(&change, format, false, "has it already; nothing is changed");
        return Ok(ExitCode::SUCCESS);
    }
    if format == Format::Text {
        print(&format!("{}\n{}", change.path.display(), change.diff()));
    }
    if args.dry_run {
        report(&change, format, false, "would be changed");
    } else if args.yes || agreed(format)? {
        let kept = change.write()?;
        let what = match &kept {
            Some(kept) => format!("is written; what it was is kept in {}", kept.display()),
            None => "is written".to_owned(),
        };
        report(&change, format, true, &what);
    } else {
        report(&change, format, false, "stays as it is");
    }
    Ok(ExitCode::SUCCESS)
}

impl Change {
    fn of(args: &Args) -> anyhow::Result<Self> {
        let path = match &args.config {
            Some(path) => path.clone(),
            None => {
                args.client.path().context("cannot tell where the client has its file: use `--config`")?
            }
        };
        let entry = args.client.entry(&way(args)?)?;
        let before = write::read(&path)?;
        let section = args.client.section();
        let replaces = before.as_deref().is_some_and(|before| edit::has_server(before, section, &args.name));
        let after = edit::with_server(before.as_deref().unwrap_or_default(), section, &args.name, &entry);
        let after = after.map_err(|why| {
            let snippet = json!({args.client.section(): {args.name.as_str(): entry}});
            let path = path.display();
            BadInput(format!("{path} cannot be changed: {why}. Paste this into it:\n\n{snippet:#}"))
        })?;
        Ok(Self { path, before, after, entry, replaces })
    }

    /// Writes it. Where an entry is replaced, the file is kept under another name as it was: what stood in the entry, such
    /// as an `env`, may be nowhere else.
    fn write(&self) -> anyhow::Result<Option<PathBuf>> {
        let kept = match &self.before {
            Some(before) if self.replaces => Some(write::keep(&self.path, before)?),
            _ => None,
        };
        write::replace(&self.path, self.before.as_deref(), &self.after)?;
        Ok(kept)
    }

    fn diff(&self) -> String {
        diff::lines(self.before.as_deref().unwrap_or_default(), &self.after)
    }
}

/// How the client is to reach the gateway.
fn way(args: &Args) -> anyhow::Result<Way> {
    if !args.stdio {
        let url = args.url.clone().unwrap_or_else(|| Uri::from_static("http://127.0.0.1:8080/mcp"));
        return Ok(Way::Url { url, key_env: args.key_env.clone() });
    }
    let program = std::env::current_exe().context("cannot find our own program")?;
    // The client starts it wherever it likes.
    let absolute = |path: &PathBuf| {
        let found = path.canonicalize();
        found.map_err(|error| BadInput(format!("{} cannot be read: {error}", path.display())))
    };
    let files = args.files.iter().map(absolute).collect::<Result<_, _>>()?;
    Ok(Way::Stdio { program, files })
}

fn report(change: &Change, format: Format, written: bool, what: &str) {
    let path = change.path.display().to_string();
    print(&match format {
        Format::Text => format!("{path} {what}"),
        Format::Json => {
            let changes = change.before.as_deref() != Some(&change.after);
            json!({"file": path, "server": change.entry, "changes": changes, "written": written}).to_string()
        }
    });
}
