//! `toolyard function list`, `show` and `delete`: the functions in a gateway.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Context;
use bytes::Bytes;
use http::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolyard_functions::version::VersionSelector;

use super::{parse_exact_version, parse_id};
use crate::output::{OutputFormat, count, escape_line, print};
use crate::remote::RemoteGateway;

/// List the functions of a gateway
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard function list
  toolyard function list --output json")]
pub(super) struct FunctionListArgs {
    #[command(flatten)]
    remote: RemoteGateway,
}

/// Show the versions of a function, or the details of one version
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard function show weather             the versions, latest first
  toolyard function show weather 1.2         files, limits and test cases of the latest 1.2
  toolyard function show weather draft

Environment variables are shown without their values.")]
pub(super) struct FunctionShowArgs {
    /// Id of the function
    #[arg(value_parser = parse_id)]
    id: String,

    /// Version: 1.2.0, 1.2, 1, latest or draft
    version: Option<VersionSelector>,

    #[command(flatten)]
    remote: RemoteGateway,
}

/// Delete a function or one of its versions
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard function delete weather 1.2.0     delete one version; its number is not reused
  toolyard function delete weather draft
  toolyard function delete weather           delete the function with all its versions

Running calls finish. If the latest version is deleted, `latest` refers to the previous one.")]
pub(super) struct FunctionDeleteArgs {
    /// Id of the function
    #[arg(value_parser = parse_id)]
    id: String,

    /// Version to delete, such as 1.2.0 or `draft` (default: all versions)
    #[arg(value_parser = parse_exact_version)]
    version: Option<String>,

    #[command(flatten)]
    remote: RemoteGateway,
}

#[derive(Deserialize)]
struct FunctionList {
    functions: Vec<FunctionEntry>,
}

#[derive(Deserialize)]
struct FunctionEntry {
    id: String,
    kind: Option<String>,
    language: Option<String>,
    latest: Option<String>,
    versions: usize,
    draft: Option<DraftEntry>,
    problem: Option<String>,
    #[serde(default)]
    published: Vec<VersionEntry>,
}

#[derive(Deserialize)]
struct DraftEntry {
    saved: String,
    #[serde(default)]
    notes: String,
}

#[derive(Deserialize)]
struct VersionEntry {
    version: String,
    published: String,
    bytes: u64,
    #[serde(default)]
    notes: String,
}

pub(super) async fn list(args: &FunctionListArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let text = args.remote.get("/api/v1/functions").await?;
    print_response(format, &text, |FunctionList { functions }| match functions.len() {
        0 => "no functions".to_owned(),
        _ => functions.iter().map(FunctionEntry::line).collect::<Vec<_>>().join("\n"),
    })
}

pub(super) async fn show(args: &FunctionShowArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let id = &args.id;
    match args.version {
        None => {
            let text = args.remote.get(&format!("/api/v1/functions/{id}")).await?;
            print_response(format, &text, |function: FunctionEntry| function.text())
        }
        Some(version) => {
            let text = args.remote.get(&format!("/api/v1/functions/{id}/{version}")).await?;
            print_response(format, &text, |details: Value| version_details(&details))
        }
    }
}

pub(super) async fn delete(args: &FunctionDeleteArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let (id, version) = (&args.id, args.version.as_deref());
    let below = version.map(|version| format!("/{version}")).unwrap_or_default();
    let path = format!("/api/v1/functions/{id}{below}");
    let (status, text) = args.remote.request(Method::DELETE, &path, String::new(), None).await?;
    if !status.is_success() {
        return Err(args.remote.response_error(status, &text));
    }
    print_response(format, &text, |_: Value| match version {
        Some(version) => format!("deleted {id} {version}"),
        None => format!("deleted {id} with all its versions"),
    })
}

/// Prints a response: unchanged as JSON, or formatted by `text`.
fn print_response<T: DeserializeOwned>(
    format: OutputFormat,
    response: &Bytes,
    text: impl FnOnce(T) -> String,
) -> anyhow::Result<ExitCode> {
    print(&match format {
        OutputFormat::Json => String::from_utf8_lossy(response).into_owned(),
        OutputFormat::Text => {
            text(serde_json::from_slice(response).context("unexpected response from the gateway")?)
        }
    });
    Ok(ExitCode::SUCCESS)
}

impl FunctionEntry {
    fn line(&self) -> String {
        let word = |word: &Option<String>| word.clone().unwrap_or_else(|| "?".to_owned());
        let mut state = match &self.latest {
            Some(latest) => format!("{latest}, latest of {}", count(self.versions, "version")),
            None => "not published".to_owned(),
        };
        if let Some(draft) = &self.draft {
            let _ = write!(state, ", draft saved {}", draft.saved);
        }
        if let Some(problem) = &self.problem {
            state = format!("invalid: {problem}");
        }
        escape_line(&format!("{:<24} {:<8} {:<10} {state}", self.id, word(&self.kind), word(&self.language)))
    }

    fn text(&self) -> String {
        let version = |version: &VersionEntry| {
            let VersionEntry { version, published, bytes, notes } = version;
            escape_line(format!("  {version:<10} {published}  {bytes} bytes  {notes}").trim_end())
        };
        let draft = self.draft.iter().map(|DraftEntry { saved, notes }| {
            escape_line(format!("  {:<10} {saved}  {notes}", "draft").trim_end())
        });
        let below: Vec<_> = draft.chain(self.published.iter().map(version)).collect();
        format!("{}\n{}", self.line(), below.join("\n")).trim_end().to_owned()
    }
}

/// Formats the details of a version, one member per line. Nested values are shown as JSON.
fn version_details(details: &Value) -> String {
    let mut text = String::new();
    for (name, value) in details.as_object().into_iter().flatten() {
        match value {
            Value::String(value) => {
                let _ = writeln!(text, "{name:<12} {}", escape_line(value));
            }
            Value::Array(values) if name == "files" => {
                for file in values {
                    let path = escape_line(file["path"].as_str().unwrap_or_default());
                    let _ = writeln!(text, "{:<12} {path}, {} bytes", "file", file["bytes"]);
                }
            }
            value => {
                let _ = writeln!(text, "{name:<12} {}", escape_line(&value.to_string()));
            }
        }
    }
    text.trim_end().to_owned()
}
