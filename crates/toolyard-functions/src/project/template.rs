//! Files of a new function: working code with tests.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::FunctionKind;
use crate::code::SourceLanguage;

/// Returns the files of a new function, by path relative to its folder.
#[must_use]
pub fn files(kind: FunctionKind, language: SourceLanguage, name: &str) -> Vec<(&'static str, String)> {
    let source = match (kind, language) {
        (FunctionKind::Mcp, SourceLanguage::Python) => include_str!("template/mcp.py"),
        (FunctionKind::Mcp, SourceLanguage::JavaScript) => include_str!("template/mcp.js"),
        (FunctionKind::Mcp, SourceLanguage::Lua) => include_str!("template/mcp.lua"),
        (FunctionKind::Function, SourceLanguage::Python) => include_str!("template/function.py"),
        (FunctionKind::Function, SourceLanguage::JavaScript) => include_str!("template/function.js"),
        (FunctionKind::Function, SourceLanguage::Lua) => include_str!("template/function.lua"),
    };
    let settings = match kind {
        FunctionKind::Mcp => include_str!("template/mcp.json"),
        FunctionKind::Function => include_str!("template/function.json"),
    };
    let named = |text: &str| text.replace("NAME", name);
    let mut files =
        vec![(language.entry_file(), named(source)), (super::settings::SETTINGS_FILE, named(settings))];
    match kind {
        FunctionKind::Mcp => files.extend([
            ("tests/initialize.json", named(include_str!("template/tests/initialize.json"))),
            ("tests/list.json", named(include_str!("template/tests/list.json"))),
            ("tests/call.json", named(include_str!("template/tests/call.json"))),
        ]),
        FunctionKind::Function => {
            files.push(("tests/greeting.json", include_str!("template/tests/greeting.json").to_owned()));
            files.push(("tests/no-name.json", include_str!("template/tests/no-name.json").to_owned()));
        }
    }
    files
}

/// Writes the files of a new function into a folder, creates the folder, and returns the paths. Existing files are
/// kept.
///
/// # Errors
/// If the name is not a valid id, or one of the files exists or cannot be written.
pub fn write(
    folder: &Path,
    kind: FunctionKind,
    language: SourceLanguage,
    name: &str,
) -> io::Result<Vec<PathBuf>> {
    if !super::is_id(name) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{name:?} is not a valid function id"),
        ));
    }
    let files: Vec<_> =
        files(kind, language, name).into_iter().map(|(path, text)| (folder.join(path), text)).collect();
    if let Some((path, _)) = files.iter().find(|(path, _)| path.exists()) {
        let exists = format!("{} already exists", path.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, exists));
    }
    for (path, text) in &files {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}
