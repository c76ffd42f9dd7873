//! `toolyard function publish`: a folder becomes a version.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use bytes::Bytes;
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;
use toolyard_functions::project::{SentProject, folder};

use super::id;
use super::report::Reports;
use crate::BadInput;
use crate::output::{Format, line, print};
use crate::remote::Remote;

/// Publish what is in a folder, as the next version of a function
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard function publish weather                          the next patch: 1.0.0 first, then 1.0.1
  toolyard function publish weather --minor --note 'says how much it rains'
  toolyard function publish . --id weather-of-tomorrow --major

It becomes the draft of the function, whose test cases the gateway runs. Unless all pass, and there is one, nothing is
published, and the exit status is 1. A version that is published stays as it is.")]
pub(super) struct Args {
    /// The folder of the function, or a single file with a handler
    #[arg(value_name = "DIR")]
    path: PathBuf,

    /// What it is called there, instead of what `function.json` says
    #[arg(long, value_parser = id)]
    id: Option<String>,

    /// Callers see no difference: 1.2.3 becomes 1.2.4 (unless said otherwise)
    #[arg(long, conflicts_with_all = ["minor", "major"])]
    patch: bool,

    /// There is more for callers: 1.2.3 becomes 1.3.0
    #[arg(long, conflicts_with = "major")]
    minor: bool,

    /// Callers have to change: 1.2.3 becomes 2.0.0
    #[arg(long)]
    major: bool,

    /// What is new, instead of what `function.json` says
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,

    #[command(flatten)]
    remote: Remote,
}

/// What the gateway says of the draft.
#[derive(Deserialize)]
struct Saved {
    draft: Draft,
}

#[derive(Deserialize)]
struct Draft {
    digest: String,
}

/// What it says of the version.
#[derive(Deserialize)]
struct Published {
    version: String,
}

pub(super) async fn run(args: Args, format: Format) -> anyhow::Result<ExitCode> {
    let found = folder::read(&args.path).map_err(|error| BadInput(error.to_string()))?;
    let mut project = found.project;
    if let Some(note) = &args.note {
        project.notes.clone_from(note);
    }
    let id = match args.id.as_ref().or(found.id.as_ref()) {
        Some(wanted) => id(wanted).map_err(|advice| BadInput(format!("the id {wanted:?}: {advice}")))?,
        None => return Err(BadInput("function.json has no `id`: use `--id`".to_owned()).into()),
    };
    let draft = serde_json::to_string(&SentProject::new(&project))?;
    let path = format!("/api/v1/functions/{id}");
    // It may be large, and packages be installed for it.
    let (status, text) = args.remote.ask(Method::PUT, &format!("{path}/draft"), draft, None).await?;
    let saved: Saved = understood(&args.remote, status.is_success(), status, &text)?;
    // Nothing but what was sent here is published, whoever else sends something.
    let wish = json!({"bump": args.bump(), "digest": saved.draft.digest}).to_string();
    let (status, text) = args.remote.ask(Method::POST, &format!("{path}/publish"), wish, None).await?;
    let is_told = status.is_success() || status == StatusCode::UNPROCESSABLE_ENTITY;
    let reports: Reports = understood(&args.remote, is_told, status, &text)?;
    print(&match format {
        Format::Json => String::from_utf8_lossy(&text).into_owned(),
        Format::Text if status.is_success() => {
            let Published { version } = understood(&args.remote, true, status, &text)?;
            format!("{}\n{id} {} is published", reports.text(), line(&version))
        }
        Format::Text => format!("{}: nothing is published", reports.text()),
    });
    Ok(if status.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Args {
    const fn bump(&self) -> &'static str {
        match (self.major, self.minor) {
            (true, _) => "major",
            (false, true) => "minor",
            (false, false) => "patch",
        }
    }
}

/// What the gateway says, where it does what it is asked.
pub(super) fn understood<'a, T: Deserialize<'a>>(
    remote: &Remote,
    is_told: bool,
    status: StatusCode,
    text: &'a Bytes,
) -> anyhow::Result<T> {
    if !is_told {
        return Err(remote.refused(status, text));
    }
    serde_json::from_slice(text).with_context(|| format!("{remote} answers with something else"))
}
