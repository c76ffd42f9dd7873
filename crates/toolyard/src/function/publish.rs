//! `toolyard function publish`: publishes a directory as the next version of a function.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use bytes::Bytes;
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;
use toolyard_functions::FunctionKind;
use toolyard_functions::project::{ProjectUpload, folder};
use toolyard_manifest::ManifestEditor;

use super::parse_id;
use super::report::TestReports;
use crate::BadInput;
use crate::add::function_handler;
use crate::output::{OutputFormat, escape_line, print};
use crate::remote::RemoteGateway;

/// Publish the next version of a function
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard function publish weather                          the next patch version: 1.0.0, then 1.0.1
  toolyard function publish weather --minor --note 'says how much it rains'
  toolyard function publish . --id weather-of-tomorrow --major

Uploads the files as the draft of the function. The gateway runs the test cases and publishes the draft if there is at
least one and all pass; otherwise the exit status is 1. Published versions never change, and a function that is the same as
the latest version gets no further one.")]
pub(super) struct PublishArgs {
    /// Directory of the function, or a single file with a handler
    #[arg(value_name = "DIR")]
    path: PathBuf,

    /// Id of the function (default: the `id` in `function.json`, or else the name of the directory)
    #[arg(long, value_parser = parse_id)]
    id: Option<String>,

    /// Publish a patch version without changes for callers: 1.2.3 becomes 1.2.4 (default)
    #[arg(long, conflicts_with_all = ["minor", "major"])]
    patch: bool,

    /// Publish a minor version with additions for callers: 1.2.3 becomes 1.3.0
    #[arg(long, conflicts_with = "major")]
    minor: bool,

    /// Publish a major version with breaking changes: 1.2.3 becomes 2.0.0
    #[arg(long)]
    major: bool,

    /// Release note, instead of that in `function.json`
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,

    #[command(flatten)]
    remote: RemoteGateway,
}

/// The response to an uploaded draft.
#[derive(Deserialize)]
struct SavedDraft {
    draft: DraftDigest,
}

#[derive(Deserialize)]
struct DraftDigest {
    digest: String,
}

/// The response to a published version.
#[derive(Deserialize)]
struct PublishedVersion {
    version: String,
    #[serde(default)]
    unchanged: bool,
    #[serde(default)]
    handlers: Vec<String>,
}

/// Returns the handler that serves a function, and the command that adds it.
fn handler_offer(id: &str, kind: FunctionKind) -> String {
    let handler = function_handler(id, &json!({"id": id}), kind);
    let yaml = ManifestEditor::handler_yaml(&handler);
    format!(
        "To serve it as tools, run `toolyard add function {id}`, or add this handler to the gateway's manifest:\n\n{}",
        yaml.trim_end()
    )
}

pub(super) async fn run(args: PublishArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let source_folder = folder::read(&args.path).map_err(|error| BadInput(error.to_string()))?;
    let mut project = source_folder.project;
    let kind = project.kind;
    if let Some(note) = &args.note {
        project.notes.clone_from(note);
    }
    let id = match args.id.as_ref().or(source_folder.id.as_ref()) {
        Some(wanted) => {
            parse_id(wanted).map_err(|advice| BadInput(format!("invalid id {wanted:?}: {advice}")))?
        }
        None => {
            let id = folder::default_id(&args.path);
            parse_id(&id).map_err(|_| {
                BadInput(format!("{id:?} cannot be an id; set `id` in function.json, or use `--id`"))
            })?
        }
    };
    let draft = serde_json::to_string(&ProjectUpload::new(&project))?;
    let path = format!("/api/v1/functions/{id}");
    // No time limit: the upload may be large, and the gateway may install packages.
    let (status, text) = args.remote.request(Method::PUT, &format!("{path}/draft"), draft, None).await?;
    let saved: SavedDraft = parse_response(&args.remote, status.is_success(), status, &text)?;
    // The digest ensures that the gateway publishes this draft, even if another one is uploaded meanwhile.
    let request = json!({"bump": args.bump(), "digest": saved.draft.digest}).to_string();
    let (status, text) = args.remote.request(Method::POST, &format!("{path}/publish"), request, None).await?;
    let is_expected = status.is_success() || status == StatusCode::UNPROCESSABLE_ENTITY;
    let reports: TestReports = parse_response(&args.remote, is_expected, status, &text)?;
    print(&match format {
        OutputFormat::Json => String::from_utf8_lossy(&text).into_owned(),
        OutputFormat::Text if status.is_success() => {
            let PublishedVersion { version, unchanged, handlers } =
                parse_response(&args.remote, true, status, &text)?;
            let version = escape_line(&version);
            let outcome = match (unchanged, &*handlers) {
                (true, _) => format!("{id} {version} is this function already; nothing is published"),
                (false, []) => format!("published {id} {version}\n\n{}", handler_offer(&id, kind)),
                (false, serving) => {
                    format!("published {id} {version}, served by {}", escape_line(&serving.join(", ")))
                }
            };
            format!("{}\n{outcome}", reports.text())
        }
        OutputFormat::Text => format!("{}; nothing is published", reports.text()),
    });
    Ok(if status.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl PublishArgs {
    const fn bump(&self) -> &'static str {
        match (self.major, self.minor) {
            (true, _) => "major",
            (false, true) => "minor",
            (false, false) => "patch",
        }
    }
}

/// Parses a response if its status is expected, or else returns it as an error.
pub(super) fn parse_response<'a, T: Deserialize<'a>>(
    remote: &RemoteGateway,
    is_expected: bool,
    status: StatusCode,
    text: &'a Bytes,
) -> anyhow::Result<T> {
    if !is_expected {
        return Err(remote.response_error(status, text));
    }
    serde_json::from_slice(text).with_context(|| format!("unexpected response from {remote}"))
}
