//! `/manifest`: the served manifest, and checks and conversions of texts, which change nothing.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use toolyard_manifest::{
    ManifestDifference, ManifestDocument, ManifestProblem, ManifestProblems, ManifestSource,
};

use super::body::JsonBody;
use super::query::NoQuery;
use super::{ProblemDetails, Rest, RestResult, json_value};

/// `GET /manifest`: the documents that the gateway serves, without secrets.
pub(super) async fn show(State(rest): Rest, _: NoQuery) -> RestResult {
    let served = rest.reporter.manifest.borrow().clone();
    let documents = document_list(&served.documents);
    json_value(StatusCode::OK, &json!({"digest": served.digest, "documents": documents}))
}

/// A manifest to check.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EditedManifest {
    text: String,
    /// Source whose documents the text would replace. Default: those of all sources.
    replaces: Option<String>,
}

/// A text to read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ManifestText {
    text: String,
}

/// Reads a text on a blocking thread: a long one takes a while.
async fn read(text: String, read: impl FnOnce(&ManifestSource) -> Value + Send + 'static) -> RestResult {
    let source = ManifestSource { name: "text".to_owned(), text };
    let report = spawn_blocking(move || read(&source)).await.map_err(|_| ProblemDetails::fault())?;
    json_value(StatusCode::OK, &report)
}

/// `POST /manifest/check`: the problems of a manifest, or else its difference from the served one. Variables and redacted
/// values may have any value, and no file is read, so that the caller learns nothing about those of the gateway.
pub(super) async fn check(
    State(rest): Rest,
    _: NoQuery,
    JsonBody(edited): JsonBody<EditedManifest>,
) -> RestResult {
    let EditedManifest { text, replaces } = edited;
    let served = rest.reporter.manifest.borrow().documents.clone();
    if let Some(name) = &replaces
        && served.iter().all(|document| document.source != *name)
    {
        return Err(ProblemDetails::not_found("the served manifest has no source of the name in `replaces`"));
    }
    read(text, move |source| match toolyard_manifest::parse_copy(std::slice::from_ref(source)) {
        Ok(manifest) => {
            let handlers: Vec<_> = manifest.handlers.iter().map(|handler| handler.name.as_str()).collect();
            let served = of_source(&served, replaces.as_deref());
            json!({
                "handlers": handlers,
                "problems": [],
                "documents": document_list(&manifest.documents),
                "difference": difference(&ManifestDifference::between(&served, &manifest.documents)),
            })
        }
        Err(problems) => json!({"problems": problem_list(&problems)}),
    })
    .await
}

/// `POST /manifest/import`: the configuration of an MCP client as a manifest.
pub(super) async fn import(_: NoQuery, JsonBody(text): JsonBody<ManifestText>) -> RestResult {
    read(text.text, |source| match toolyard_manifest::import_text(source) {
        Ok(import) => {
            let notes: Vec<_> = import.notes().iter().map(|note| &note.message).collect();
            json!({"manifest": import.to_yaml(), "notes": notes, "problems": []})
        }
        Err(problems) => json!({"problems": problem_list(&problems)}),
    })
    .await
}

/// Returns the documents of a source, or all documents.
fn of_source(documents: &Arc<[ManifestDocument]>, source: Option<&str>) -> Vec<ManifestDocument> {
    let is_of_source = |document: &&ManifestDocument| source.is_none_or(|source| document.source == source);
    documents.iter().filter(is_of_source).cloned().collect()
}

fn document_list(documents: &[ManifestDocument]) -> Vec<Value> {
    let shown = |document: &ManifestDocument| json!({"source": document.source, "text": document.to_yaml()});
    documents.iter().map(shown).collect()
}

fn difference(difference: &ManifestDifference) -> Value {
    let ManifestDifference { added, changed, removed, unchanged, changes_settings } = difference;
    json!({
        "added": added,
        "changed": changed,
        "removed": removed,
        "unchanged": unchanged,
        "changesSettings": changes_settings,
    })
}

fn problem_list(problems: &ManifestProblems) -> Vec<Value> {
    problems.iter().map(ManifestProblem::to_json).collect()
}
