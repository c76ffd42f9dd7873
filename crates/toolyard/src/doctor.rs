//! `toolyard doctor`: how a running gateway is, for people.

mod tokens;

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Context;
use serde::Deserialize;

use crate::output::{self, Format, count, print};
use crate::remote::Remote;

/// Say how a running gateway and its handlers are
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard doctor
  toolyard doctor --sandbox                   which walls functions and scripts run behind
  toolyard doctor --tokens                    how much of a model's context the lists of tools take
  toolyard doctor --output json               the status as `GET /api/v1/status` has it

Exit status 1 when a handler is down, or the gateway itself, or nothing can run in its sandbox.")]
pub(crate) struct Args {
    #[command(flatten)]
    remote: Remote,

    /// Say which walls the machine of the gateway has, behind which functions and scripts run
    #[arg(long)]
    sandbox: bool,

    /// Say how many tokens of a model's context the list of tools takes, as clients may be given it
    #[arg(long, conflicts_with = "sandbox")]
    tokens: bool,
}

/// What is read of the sandbox.
#[derive(Deserialize)]
struct Sandbox {
    isolation: String,
    ready: bool,
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
struct Layer {
    name: String,
    missing: Option<String>,
    hint: Option<String>,
}

/// What is read of a status.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    phase: String,
    discovered_tools_count: usize,
    available_tools_count: usize,
    discovered_tools: Vec<Tool>,
    handlers: Vec<Handler>,
    list: List,
    last_edit: Option<LastEdit>,
    version: String,
}

#[derive(Deserialize)]
struct Tool {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Handler {
    name: String,
    r#type: String,
    endpoint: String,
    phase: String,
    since: String,
    tools: usize,
    protocol: Option<String>,
    last_error: Option<LastError>,
    #[serde(default)]
    processes: Vec<Process>,
}

#[derive(Deserialize)]
struct LastError {
    time: String,
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Process {
    restarts: u64,
    processes: usize,
    memory_bytes: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct List {
    tools: usize,
    characters: usize,
    estimated_tokens: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LastEdit {
    time: String,
    applied: bool,
    message: String,
}

pub(crate) async fn run(args: Args, format: Format) -> anyhow::Result<ExitCode> {
    if args.sandbox {
        return sandbox(&args.remote, format).await;
    }
    if args.tokens {
        return tokens::run(&args.remote, format).await;
    }
    let text = args.remote.get("/api/v1/status").await?;
    let status: Status =
        serde_json::from_slice(&text).with_context(|| format!("{} gives no status", args.remote))?;
    print(&match format {
        Format::Text => output::lines(&diagnosis(&status)),
        Format::Json => String::from_utf8_lossy(&text).into_owned(),
    });
    let down = status.handlers.iter().filter(|handler| handler.is_down()).count();
    Ok(if down == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn sandbox(remote: &Remote, format: Format) -> anyhow::Result<ExitCode> {
    let text = remote.get("/api/v1/sandbox").await?;
    let sandbox: Sandbox =
        serde_json::from_slice(&text).with_context(|| format!("{remote} says nothing of its sandbox"))?;
    print(&match format {
        Format::Text => output::lines(&sandbox.text()),
        Format::Json => String::from_utf8_lossy(&text).into_owned(),
    });
    Ok(if sandbox.ready { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Sandbox {
    fn text(&self) -> String {
        let can = if self.ready { "can" } else { "cannot" };
        let mut text = format!("Isolation is `{}`: functions and scripts {can} run.\n", self.isolation);
        for Layer { name, missing, hint } in &self.layers {
            let _ = match missing {
                None => write!(text, "\n{name:<15} enforced"),
                Some(why) => write!(text, "\n{name:<15} not enforced: {why}"),
            };
            let _ = hint.iter().try_for_each(|hint| write!(text, "\n{:<15} {hint}", ""));
        }
        text
    }
}

/// What some clients put before the name of a tool, and how long a name may be for the APIs of models.
const IN_FRONT: &str = "mcp__toolyard__";
const LONGEST: usize = 64;

fn diagnosis(status: &Status) -> String {
    let ready = status.handlers.iter().filter(|handler| handler.phase == "Ready").count();
    let mut text = format!(
        "Toolyard {}: {}. {ready} of {} handlers are ready, {} of {} tools are available.\n",
        status.version,
        status.phase,
        status.handlers.len(),
        status.available_tools_count,
        status.discovered_tools_count,
    );
    let width = status.handlers.iter().map(|handler| handler.name.len()).max().unwrap_or_default();
    for handler in &status.handlers {
        text.push('\n');
        text.push_str(&handler.line(width));
    }
    let List { tools, characters, estimated_tokens } = &status.list;
    let _ = write!(
        text,
        "\n\nThe list of {} has {characters} characters, about {estimated_tokens} tokens of a model's context.",
        count(*tools, "tool")
    );
    let long: Vec<_> = status.discovered_tools.iter().map(|tool| &*tool.name).filter(is_long).collect();
    if !long.is_empty() {
        let _ = write!(
            text,
            "\nClients that put `{IN_FRONT}` in front make these names longer than {LONGEST} characters, which models \
             refuse: {}.\nShorter ones can be given in `overrides`.",
            long.join(", ")
        );
    }
    text.push_str(&processes(status));
    if let Some(edit) = &status.last_edit {
        let word = if edit.applied { "applied" } else { "refused, and nothing has changed" };
        let _ =
            write!(text, "\nThe last edit of the manifest, at {}, was {word}: {}", edit.time, edit.message);
    }
    text
}

fn is_long(name: &&str) -> bool {
    IN_FRONT.len() + name.len() > LONGEST
}

fn processes(status: &Status) -> String {
    let all = || status.handlers.iter().flat_map(|handler| &handler.processes);
    let alive: usize = all().map(|process| process.processes).sum();
    let memory: u64 = all().filter_map(|process| process.memory_bytes).sum();
    let restarts: u64 = all().map(|process| process.restarts).sum();
    match alive {
        0 => String::new(),
        _ => format!(
            "\nProcesses alive: {alive}, with {} MiB of their own; started again: {restarts}.",
            memory >> 20
        ),
    }
}

impl Handler {
    fn is_down(&self) -> bool {
        self.phase == "Unavailable"
    }

    /// One line, and another one where something is or was wrong.
    fn line(&self, width: usize) -> String {
        let word = match &*self.phase {
            "Ready" => "ok",
            "Pending" => "wait",
            _ => "DOWN",
        };
        let Self { name, r#type, endpoint, tools, since, .. } = self;
        let protocol = self.protocol.as_deref().unwrap_or(r#type);
        let line = output::line(&format!(
            "  {word:<4}  {name:<width$}  {}, {protocol}, {endpoint}, since {since}",
            count(*tools, "tool")
        ));
        match &self.last_error {
            Some(error) if self.is_down() => line + &format!("\n        {}", output::line(&error.message)),
            Some(error) => {
                line + &format!("\n        was down at {}: {}", error.time, output::line(&error.message))
            }
            None => line,
        }
    }
}
