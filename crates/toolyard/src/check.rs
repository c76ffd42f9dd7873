//! `toolyard check`: whether manifests are right.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};
use toolyard_manifest::{Manifest, Problem, Problems};

use crate::output::{Format, count, print};

/// Check manifests, and show everything that is wrong with them
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard check tools.yaml more/
  toolyard check --output json tools.yaml
  cat tools.yaml | toolyard check -

Nothing is started and nothing connected to. The variables and the files that the manifests refer to have to
be there. The exit status is 2 when there are problems.")]
pub(crate) struct Args {
    /// A manifest, a folder of them, or `-` for standard input
    #[arg(required = true, value_name = "FILE|FOLDER")]
    files: Vec<PathBuf>,
}

pub(crate) fn run(args: &Args, format: Format) -> ExitCode {
    let checked = toolyard_manifest::load(&args.files);
    let files = toolyard_manifest::files(&args.files);
    print(&match (&checked, format) {
        (Ok(manifest), Format::Text) => summary(manifest, files.len()),
        (Ok(manifest), Format::Json) => {
            json!({"files": files, "handlers": by_type(manifest), "problems": []}).to_string()
        }
        (Err(problems), Format::Text) => format!("{problems}\n\n{}", count(problems.len(), "problem")),
        (Err(problems), Format::Json) => json!({"files": files, "problems": list(problems)}).to_string(),
    });
    match checked {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(2),
    }
}

fn summary(manifest: &Manifest, files: usize) -> String {
    let types = by_type(manifest);
    let types: Vec<_> = types.iter().map(|(name, number)| format!("{number} {name}")).collect();
    let handlers = count(manifest.handlers.len(), "handler");
    let types = if types.is_empty() { String::new() } else { format!(" ({})", types.join(", ")) };
    format!("no problems in {}: {handlers}{types}", count(files, "file"))
}

fn by_type(manifest: &Manifest) -> BTreeMap<&'static str, usize> {
    let mut types = BTreeMap::new();
    for handler in &manifest.handlers {
        *types.entry(handler.kind.name()).or_default() += 1;
    }
    types
}

fn list(problems: &Problems) -> Vec<Value> {
    problems.iter().map(one).collect()
}

/// What is not known is left out.
fn one(problem: &Problem) -> Value {
    let place = &problem.place;
    let path = place.path.to_string();
    let mut shown = json!({"file": place.source});
    let parts = [
        ("line", place.position.map(|position| json!(position.line))),
        ("column", place.position.map(|position| json!(position.column))),
        ("path", (!path.is_empty()).then(|| json!(path))),
        ("message", Some(json!(problem.message))),
        ("expected", problem.expected.as_ref().map(|expected| json!(expected))),
        ("hint", problem.hint.as_ref().map(|hint| json!(hint))),
    ];
    for (name, value) in parts {
        if let Some(value) = value {
            shown[name] = value;
        }
    }
    shown
}
