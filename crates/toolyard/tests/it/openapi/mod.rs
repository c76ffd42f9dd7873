//! Handlers of the type `openapi`, with documents and services of other people.

mod arguments;
mod prism;
mod services;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::peers::command;
use crate::support::process::run;

/// A document among the recorded ones, unpacked into a folder. Without these, a line says that the test did not run.
#[track_caller]
fn document(name: &str, folder: &Path) -> Option<PathBuf> {
    let Some(corpora) = std::env::var_os("TOOLYARD_CORPORA") else {
        println!("TOOLYARD_CORPORA is not set: {name} is not called");
        return None;
    };
    let archive = PathBuf::from(corpora).join("openapi/specs.tar.xz");
    let member = format!("specs/{name}");
    let mut tar = command("tar", folder);
    tar.arg("--extract").arg("--file").arg(archive).arg("--directory").arg(folder).arg(&member);
    let ended = run(&mut tar);
    assert_eq!(ended.code, 0, "{ended}");
    Some(folder.join(member))
}

/// The handler of a service whose description is there, and which is itself at `base`.
fn handler(spec: &str, base: &str) -> Value {
    json!({"name": "service", "type": "openapi", "openAPIConfig": {"specURL": spec, "baseURL": base}})
}
