//! `toolyard check`: checks manifests.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};
use toolyard_manifest::{
    HandlerConfig, HandlerKind, Manifest, ManifestProblem, ManifestProblems, OpenApiSpec,
};
use toolyard_openapi::{DescriptionSources, ReadOptions, ServiceDescription};

use crate::output::{OutputFormat, count, note, print};
use crate::{BadInput, default_manifest};

/// Check manifests and report all problems
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard check                      check ./toolyard.yaml
  toolyard check tools.yaml more/
  toolyard check --output json tools.yaml
  cat tools.yaml | toolyard check -

Starts no servers and opens no connections. The variables and secret files that the manifests refer to must exist;
certificates and descriptions are read by the gateway. The exit status is 2 if there are problems.")]
pub(crate) struct CheckArgs {
    /// Manifest, directory of manifests, or `-` for standard input (default: `toolyard.yaml` here or in
    /// ~/.config/toolyard)
    #[arg(value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
}

pub(crate) fn run(args: &CheckArgs, format: OutputFormat) -> Result<ExitCode, BadInput> {
    let paths = if args.files.is_empty() { default_manifest::find_all() } else { args.files.clone() };
    if paths.is_empty() {
        let advice = "no toolyard.yaml here or in the configuration folder: name a manifest, or write one with `toolyard init`";
        return Err(BadInput(advice.to_owned()));
    }
    let checked = toolyard_manifest::load(&paths);
    let files = toolyard_manifest::files(&paths);
    print(&match (&checked, format) {
        (Ok(manifest), OutputFormat::Text) => summary(manifest, files.len()),
        (Ok(manifest), OutputFormat::Json) => {
            json!({"files": files, "handlers": by_type(manifest), "problems": []}).to_string()
        }
        (Err(problems), OutputFormat::Text) => format!("{problems}\n\n{}", count(problems.len(), "problem")),
        (Err(problems), OutputFormat::Json) => {
            json!({"files": files, "problems": problem_list(problems)}).to_string()
        }
    });
    if let Ok(manifest) = &checked {
        handlers_without_server(manifest).iter().for_each(|warning| note(warning));
    }
    Ok(match checked {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(2),
    })
}

fn summary(manifest: &Manifest, files: usize) -> String {
    let types = by_type(manifest);
    let types: Vec<_> = types.iter().map(|(name, number)| format!("{number} {name}")).collect();
    let handlers = count(manifest.handlers.len(), "handler");
    let types = if types.is_empty() { String::new() } else { format!(" ({})", types.join(", ")) };
    format!("no problems in {}: {handlers}{types}", count(files, "file"))
}

/// Returns a warning for each handler whose description is at hand and has no server URL.
fn handlers_without_server(manifest: &Manifest) -> Vec<String> {
    let warning = |handler: &HandlerConfig| {
        let HandlerKind::OpenApi(openapi) = &handler.kind else { return None };
        let sources = match &openapi.spec {
            OpenApiSpec::File(path) => {
                DescriptionSources::new(path.display().to_string(), std::fs::read_to_string(path).ok()?)
            }
            OpenApiSpec::Inline(Value::String(text)) => DescriptionSources::new("", text.clone()),
            OpenApiSpec::Inline(value) => DescriptionSources::new("", value.to_string()),
            OpenApiSpec::Url(_) => return None,
        };
        let description = toolyard_openapi::read(&sources, &ReadOptions::default()).ok()?;
        let lacks_server = openapi.base_url.is_none() && description.lacks_server();
        lacks_server.then(|| format!("{}: {}", handler.name, ServiceDescription::NO_SERVER))
    };
    manifest.handlers.iter().filter_map(warning).collect()
}

fn by_type(manifest: &Manifest) -> BTreeMap<&'static str, usize> {
    let mut types = BTreeMap::new();
    for handler in &manifest.handlers {
        *types.entry(handler.kind.name()).or_default() += 1;
    }
    types
}

fn problem_list(problems: &ManifestProblems) -> Vec<Value> {
    problems.iter().map(ManifestProblem::to_json).collect()
}
