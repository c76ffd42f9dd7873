//! `toolyard version`: the version of the program, and of what it works with.

use std::process::ExitCode;

use serde_json::{Value, json};
use toolyard_manifest::ManifestProblems;
use toolyard_store::StoreDescription;

use crate::output::{OutputFormat, count, escape_lines, print};
use crate::store::ManifestArgs;

/// Show the version, and whether the store and the manifests fit it
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard version
  toolyard version --check                    before an upgrade, with the new program
  toolyard version --check -f gateway.yaml

`--check` changes nothing. The exit status is 1 if the store cannot be used or was written by a newer program, or a
manifest has problems. A store of an earlier version is migrated at the next start; docs/upgrade.md describes upgrades
and downgrades.")]
pub(crate) struct VersionArgs {
    /// Compare the program with the store and the manifests of a gateway
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    manifests: ManifestArgs,
}

/// Versions of the documents that this program reads.
const DOCUMENT_VERSIONS: [(&str, &str); 2] =
    [("ToolRegistry", "omnia.altairalabs.ai/v1alpha1"), ("Toolyard", "toolyard.dev/v1alpha1")];

pub(crate) async fn run(args: VersionArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let version = env!("CARGO_PKG_VERSION");
    if !args.check {
        print(&match format {
            OutputFormat::Text => format!("toolyard {version}"),
            OutputFormat::Json => json!({"version": version}).to_string(),
        });
        return Ok(ExitCode::SUCCESS);
    }
    let files = args.manifests.files();
    let manifests = toolyard_manifest::load(&files);
    let manifests_fit = manifests.is_ok();
    let manifest_text = match &manifests {
        _ if files.is_empty() => "none".to_owned(),
        Ok(manifest) => format!("{} (up to date)", count(manifest.handlers.len(), "handler")),
        Err(problems) => format!("{}; `toolyard check` shows them", count(problems.len(), "problem")),
    };
    // Without valid manifests the location of the store is unknown.
    let store = match manifests.is_ok() {
        true => Some(args.manifests.describe_store().await),
        false => None,
    };
    let is_newer = |store: &StoreDescription| store.version > Some(store.supported_version);
    let store_fits = !matches!(&store, Some(Err(_))) && !matches!(&store, Some(Ok(store)) if is_newer(store));
    print(&match format {
        OutputFormat::Text => {
            let documents: Vec<_> =
                DOCUMENT_VERSIONS.iter().map(|(kind, version)| format!("{kind} {version}")).collect();
            let store = match &store {
                None => "not checked: the manifests have problems".to_owned(),
                Some(Ok(store)) => crate::store::version_text(store.version, store.supported_version),
                Some(Err(error)) => format!("cannot be used: {error:#}"),
            };
            escape_lines(&format!(
                "program    {version}\ndocuments  {}\nmanifests  {manifest_text}\nstore      {store}",
                documents.join(", ")
            ))
        }
        OutputFormat::Json => json!({
            "version": version,
            "documents": DOCUMENT_VERSIONS.iter().map(|(kind, version)| json!({"kind": kind, "apiVersion": version})).collect::<Vec<_>>(),
            "manifests": {"files": files, "problems": manifests.err().map_or(0, |problems: ManifestProblems| problems.len())},
            "store": store.map(|store| store_json(&store)),
        })
        .to_string(),
    });
    Ok(if manifests_fit && store_fits { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn store_json(store: &anyhow::Result<StoreDescription>) -> Value {
    match store {
        Ok(store) => {
            json!({"location": store.location, "version": store.version, "newest": store.supported_version})
        }
        Err(error) => json!({"error": format!("{error:#}")}),
    }
}
