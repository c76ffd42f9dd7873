//! The texts of the documents, and how they are found in files and folders.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use crate::{
    problem::{Place, Position, Problem},
    report::Report,
};

/// The largest file that is read. A manifest of a thousand handlers takes one MiB.
const LONGEST: usize = 16 << 20;

const EXTENSIONS: &[&str] = &["yaml", "yml", "json"];

/// A text with documents in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// What problems call it, usually the path of a file.
    pub name: String,
    /// One or more documents, as YAML or JSON.
    pub text: String,
}

/// What stands for standard input, in the place of a path.
const STDIN: &str = "-";

/// The files that [`load`](crate::load) reads for these paths: they themselves, and the manifests in folders.
#[must_use]
pub fn files(paths: &[PathBuf]) -> Vec<PathBuf> {
    let files = |path: &PathBuf| match path.is_dir() {
        true => manifests_in(path).unwrap_or_default(),
        false => vec![path.clone()],
    };
    paths.iter().flat_map(files).collect()
}

/// The texts of files and of the manifests in folders, in the given order. What cannot be read is reported.
pub(crate) fn read_all(paths: &[PathBuf], report: &Report<'_>) -> Vec<Source> {
    let files = paths.iter().filter_map(|path| files_at(path, report)).flatten();
    files.filter_map(|file| read_file(&file, report)).collect()
}

/// Whether a text of this many bytes is short enough to be parsed, whoever read it.
pub(crate) fn is_bounded(name: &str, length: usize, report: &Report<'_>) -> bool {
    let bounded = length <= LONGEST;
    if !bounded {
        let message = format!("this file is longer than {} MiB", LONGEST >> 20);
        report.add(Problem::new(Place::file(name), message));
    }
    bounded
}

/// A file itself, or the manifests of a folder in the order of their names.
fn files_at(path: &Path, report: &Report<'_>) -> Option<Vec<PathBuf>> {
    if !path.is_dir() {
        return Some(vec![path.to_owned()]);
    }
    let files = manifests_in(path).map_err(|error| report.add(unreadable(path, &error))).ok()?;
    if files.is_empty() {
        let problem = Problem::new(Place::file(name(path)), "this folder holds no manifest");
        report.add(problem.expected("a file whose name ends in .yaml, .yml or .json"));
    }
    Some(files)
}

/// The manifests of a folder in the order of their names.
pub(crate) fn manifests_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // Hidden files are an editor's locks and backups. Links are followed: a mounted ConfigMap consists of
        // them.
        if is_manifest(&path) && !is_hidden(&path) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known))
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

pub(crate) fn read_file(path: &Path, report: &Report<'_>) -> Option<Source> {
    let name = name(path);
    let bytes = bytes_of(path).map_err(|error| report.add(unreadable(path, &error))).ok()?;
    if !is_bounded(&name, bytes.len(), report) {
        return None;
    }
    match String::from_utf8(bytes) {
        Ok(text) => Some(Source { name, text }),
        Err(error) => {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let place = Place::at(name, position_after(&String::from_utf8_lossy(valid)));
            report.add(Problem::new(place, "this is not text").expected("UTF-8"));
            None
        }
    }
}

/// At most one byte more than is allowed. A pipe does not tell its length, so the reader is bounded, not the
/// file.
fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let reader: Box<dyn Read> =
        if path == Path::new(STDIN) { Box::new(io::stdin()) } else { Box::new(File::open(path)?) };
    reader.take(LONGEST as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn position_after(text: &str) -> Position {
    let last_line = text.rsplit('\n').next().unwrap_or_default();
    Position { line: text.matches('\n').count() + 1, column: last_line.chars().count() + 1 }
}

fn unreadable(path: &Path, error: &io::Error) -> Problem {
    Problem::new(Place::file(name(path)), format!("this cannot be read: {error}"))
}

fn name(path: &Path) -> String {
    if path == Path::new(STDIN) { "<stdin>".to_owned() } else { path.display().to_string() }
}
