//! Where an author begins: a function that works, with a test.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Kind;
use crate::code::Language;

/// The files of a new function, by their names relative to its folder.
#[must_use]
pub fn files(kind: Kind, language: Language, name: &str) -> Vec<(&'static str, String)> {
    let source = match (kind, language) {
        (Kind::Mcp, Language::Python) => include_str!("template/mcp.py"),
        (Kind::Mcp, Language::JavaScript) => include_str!("template/mcp.js"),
        (Kind::Mcp, Language::Lua) => include_str!("template/mcp.lua"),
        (Kind::Function, Language::Python) => include_str!("template/function.py"),
        (Kind::Function, Language::JavaScript) => include_str!("template/function.js"),
        (Kind::Function, Language::Lua) => include_str!("template/function.lua"),
    };
    let settings = match kind {
        Kind::Mcp => include_str!("template/mcp.json"),
        Kind::Function => include_str!("template/function.json"),
    };
    let named = |text: &str| text.replace("NAME", name);
    let mut files =
        vec![(language.entry_file(), named(source)), (super::settings::SETTINGS, named(settings))];
    match kind {
        Kind::Mcp => files.extend([
            ("tests/initialize.json", named(include_str!("template/tests/initialize.json"))),
            ("tests/list.json", include_str!("template/tests/list.json").to_owned()),
            ("tests/echo.json", include_str!("template/tests/echo.json").to_owned()),
        ]),
        Kind::Function => {
            files.push(("tests/greeting.json", include_str!("template/tests/greeting.json").to_owned()));
            files.push(("tests/no-name.json", include_str!("template/tests/no-name.json").to_owned()));
        }
    }
    files
}

/// Writes the files of a new function into a folder, which is made; gives their paths. Nothing that is there is replaced.
///
/// # Errors
/// When the name is no id, or one of the files is there already or cannot be written.
pub fn write(folder: &Path, kind: Kind, language: Language, name: &str) -> io::Result<Vec<PathBuf>> {
    if !super::is_id(name) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{name:?} cannot be the id of a function"),
        ));
    }
    let files: Vec<_> =
        files(kind, language, name).into_iter().map(|(path, text)| (folder.join(path), text)).collect();
    if let Some((path, _)) = files.iter().find(|(path, _)| path.exists()) {
        let exists = format!("{} is there already", path.display());
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
