//! `toolyard function list`, `show` and `delete`: what a gateway has.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Context;
use bytes::Bytes;
use http::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolyard_functions::version::Wanted;

use super::{id, one_version};
use crate::output::{Format, count, line, print};
use crate::remote::Remote;

/// List the functions of a gateway
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard function list
  toolyard function list --output json")]
pub(super) struct List {
    #[command(flatten)]
    remote: Remote,
}

/// Show a function with its versions, or all of one version
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard function show weather             its versions, latest first
  toolyard function show weather 1.2         its files, limits and test cases, of the latest 1.2
  toolyard function show weather draft

Of the variables of its environment only the names are shown.")]
pub(super) struct Show {
    /// The function
    #[arg(value_parser = id)]
    id: String,

    /// A version: 1.2.0, 1.2, 1, latest or draft
    version: Option<Wanted>,

    #[command(flatten)]
    remote: Remote,
}

/// Delete a function, or one of its versions
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard function delete weather 1.2.0     this version only; its number is not given again
  toolyard function delete weather draft
  toolyard function delete weather           the function, with all its versions

Calls that run go on to their end. Who wants the latest version gets the one before.")]
pub(super) struct Delete {
    /// The function
    #[arg(value_parser = id)]
    id: String,

    /// One version, such as 1.2.0, or `draft`; without it all of them
    #[arg(value_parser = one_version)]
    version: Option<String>,

    #[command(flatten)]
    remote: Remote,
}

#[derive(Deserialize)]
struct Functions {
    functions: Vec<Function>,
}

#[derive(Deserialize)]
struct Function {
    id: String,
    kind: Option<String>,
    language: Option<String>,
    latest: Option<String>,
    versions: usize,
    draft: Option<Draft>,
    problem: Option<String>,
    #[serde(default)]
    published: Vec<Version>,
}

#[derive(Deserialize)]
struct Draft {
    saved: String,
    #[serde(default)]
    notes: String,
}

#[derive(Deserialize)]
struct Version {
    version: String,
    published: String,
    bytes: u64,
    #[serde(default)]
    notes: String,
}

pub(super) async fn list(args: &List, format: Format) -> anyhow::Result<ExitCode> {
    let text = args.remote.get("/api/v1/functions").await?;
    show_as(format, &text, |Functions { functions }| match functions.len() {
        0 => "there are no functions".to_owned(),
        _ => functions.iter().map(Function::line).collect::<Vec<_>>().join("\n"),
    })
}

pub(super) async fn show(args: &Show, format: Format) -> anyhow::Result<ExitCode> {
    let id = &args.id;
    match args.version {
        None => {
            let text = args.remote.get(&format!("/api/v1/functions/{id}")).await?;
            show_as(format, &text, |function: Function| function.text())
        }
        Some(version) => {
            let text = args.remote.get(&format!("/api/v1/functions/{id}/{version}")).await?;
            show_as(format, &text, |details: Value| of_version(&details))
        }
    }
}

pub(super) async fn delete(args: &Delete, format: Format) -> anyhow::Result<ExitCode> {
    let (id, version) = (&args.id, args.version.as_deref());
    let below = version.map(|version| format!("/{version}")).unwrap_or_default();
    let path = format!("/api/v1/functions/{id}{below}");
    let (status, text) = args.remote.ask(Method::DELETE, &path, String::new(), None).await?;
    if !status.is_success() {
        return Err(args.remote.refused(status, &text));
    }
    show_as(format, &text, |_: Value| match version {
        Some(version) => format!("{id} {version} is deleted"),
        None => format!("{id} is deleted, with all its versions"),
    })
}

/// Prints what a gateway said: as it came, or as `text` has it for people.
fn show_as<T: DeserializeOwned>(
    format: Format,
    said: &Bytes,
    text: impl FnOnce(T) -> String,
) -> anyhow::Result<ExitCode> {
    print(&match format {
        Format::Json => String::from_utf8_lossy(said).into_owned(),
        Format::Text => {
            text(serde_json::from_slice(said).context("the gateway answers with something else")?)
        }
    });
    Ok(ExitCode::SUCCESS)
}

impl Function {
    fn line(&self) -> String {
        let word = |word: &Option<String>| word.clone().unwrap_or_else(|| "?".to_owned());
        let mut state = match &self.latest {
            Some(latest) => format!("{latest} is the latest of {}", count(self.versions, "version")),
            None => "not published".to_owned(),
        };
        if let Some(draft) = &self.draft {
            let _ = write!(state, ", a draft of {}", draft.saved);
        }
        if let Some(problem) = &self.problem {
            state = format!("cannot be used: {problem}");
        }
        line(&format!("{:<24} {:<8} {:<10} {state}", self.id, word(&self.kind), word(&self.language)))
    }

    fn text(&self) -> String {
        let version = |version: &Version| {
            let Version { version, published, bytes, notes } = version;
            line(format!("  {version:<10} {published}  {bytes} bytes  {notes}").trim_end())
        };
        let draft = self
            .draft
            .iter()
            .map(|Draft { saved, notes }| line(format!("  {:<10} {saved}  {notes}", "draft").trim_end()));
        let below: Vec<_> = draft.chain(self.published.iter().map(version)).collect();
        format!("{}\n{}", self.line(), below.join("\n")).trim_end().to_owned()
    }
}

/// All of a version, a member a line: what others wrote is shown as JSON.
fn of_version(details: &Value) -> String {
    let mut text = String::new();
    for (name, value) in details.as_object().into_iter().flatten() {
        match value {
            Value::String(value) => {
                let _ = writeln!(text, "{name:<12} {}", line(value));
            }
            Value::Array(values) if name == "files" => {
                for file in values {
                    let path = line(file["path"].as_str().unwrap_or_default());
                    let _ = writeln!(text, "{:<12} {path}, {} bytes", "file", file["bytes"]);
                }
            }
            value => {
                let _ = writeln!(text, "{name:<12} {}", line(&value.to_string()));
            }
        }
    }
    text.trim_end().to_owned()
}
