//! Handlers of the type `openapi` with third-party documents and services.

mod argument_generator;
pub(crate) mod prism;
mod services;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolyard_testing::corpora::corpus;
use toolyard_testing::peers::command;
use toolyard_testing::process::run;

/// Unpacks a recorded document into a directory. Without the recordings, prints that the test is skipped.
#[track_caller]
pub(crate) fn document(name: &str, folder: &Path) -> Option<PathBuf> {
    let archive = corpus("openapi/specs.tar.xz", &format!("operations of {name}"))?;
    let member = format!("specs/{name}");
    let mut tar = command("tar", folder);
    tar.arg("--extract").arg("--file").arg(archive).arg("--directory").arg(folder).arg(&member);
    let ended = run(&mut tar);
    assert_eq!(ended.code, 0, "{ended}");
    Some(folder.join(member))
}

/// Returns the handler of a service at `base` with this description.
fn handler(spec: &str, base: &str) -> Value {
    json!({"name": "service", "type": "openapi", "openAPIConfig": {"specURL": spec, "baseURL": base}})
}
