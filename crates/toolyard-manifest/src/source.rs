//! Finds the texts of documents in files and folders.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

use crate::{
    problem::{ManifestProblem, SourceLocation, SourcePosition},
    report::ProblemReport,
};

/// Maximum size of a file, in bytes. A manifest of a thousand handlers takes one MiB.
const MAX_FILE_BYTES: usize = 16 << 20;

const EXTENSIONS: &[&str] = &["yaml", "yml", "json"];

/// A text with documents in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestSource {
    /// Name of the source in problems, usually the path of a file.
    pub name: String,
    /// One or more documents, as YAML or JSON.
    pub text: String,
}

/// The path that stands for standard input.
const STDIN: &str = "-";

/// Returns the files that [`load`](crate::load) reads for these paths: the paths themselves, and the manifests in
/// folders.
#[must_use]
pub fn files(paths: &[PathBuf]) -> Vec<PathBuf> {
    let files = |path: &PathBuf| match path.is_dir() {
        true => manifests_in(path).unwrap_or_default(),
        false => vec![path.clone()],
    };
    paths.iter().flat_map(files).collect()
}

/// Reads files and the manifests in folders, in the given order. Unreadable files are reported.
pub(crate) fn read_all(paths: &[PathBuf], report: &ProblemReport<'_>) -> Vec<ManifestSource> {
    let files = paths.iter().filter_map(|path| files_at(path, report)).flatten();
    files.filter_map(|file| read_file(&file, report)).collect()
}

/// True if a text of this length may be parsed; otherwise a problem is reported.
pub(crate) fn is_within_size_limit(name: &str, length: usize, report: &ProblemReport<'_>) -> bool {
    let bounded = length <= MAX_FILE_BYTES;
    if !bounded {
        let message = format!("this file is longer than {} MiB", MAX_FILE_BYTES >> 20);
        report.add(ManifestProblem::new(SourceLocation::file(name), message));
    }
    bounded
}

/// Returns a file itself, or the manifests of a folder in the order of their names.
fn files_at(path: &Path, report: &ProblemReport<'_>) -> Option<Vec<PathBuf>> {
    if !path.is_dir() {
        return Some(vec![path.to_owned()]);
    }
    let files = manifests_in(path).map_err(|error| report.add(unreadable(path, &error))).ok()?;
    if files.is_empty() {
        let problem =
            ManifestProblem::new(SourceLocation::file(name(path)), "this folder contains no manifest");
        report.add(problem.expected("a file whose name ends in .yaml, .yml or .json"));
    }
    Some(files)
}

/// Returns the manifests of a folder in the order of their names.
pub(crate) fn manifests_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // Hidden files are locks and backups of editors. Links are followed: a mounted ConfigMap consists of links.
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

pub(crate) fn read_file(path: &Path, report: &ProblemReport<'_>) -> Option<ManifestSource> {
    let name = name(path);
    let bytes = read_bytes(path).map_err(|error| report.add(unreadable(path, &error))).ok()?;
    if !is_within_size_limit(&name, bytes.len(), report) {
        return None;
    }
    match String::from_utf8(bytes) {
        Ok(text) => Some(ManifestSource { name, text }),
        Err(error) => {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let place = SourceLocation::at(name, position_after(&String::from_utf8_lossy(valid)));
            report.add(ManifestProblem::new(place, "this file is not valid text").expected("UTF-8"));
            None
        }
    }
}

/// Reads at most one byte more than the limit. A pipe has no length, so the reader is limited instead of the file.
fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    refuse_named_pipe(path)?;
    let mut bytes = Vec::new();
    let reader: Box<dyn Read> =
        if path == Path::new(STDIN) { Box::new(io::stdin()) } else { Box::new(File::open(path)?) };
    reader.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Refuses a named pipe, which would block until another process writes to it. The pipes of a shell (`<(command)`) are
/// readable.
///
/// # Errors
/// If the file is a named pipe. Other files, and missing ones, are left to their reader.
pub fn refuse_named_pipe(path: &Path) -> io::Result<()> {
    let is_pipe = || fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo());
    match !path.starts_with("/dev/fd") && !path.starts_with("/proc/self/fd") && is_pipe() {
        true => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a named pipe; name a file")),
        false => Ok(()),
    }
}

fn position_after(text: &str) -> SourcePosition {
    let last_line = text.rsplit('\n').next().unwrap_or_default();
    SourcePosition { line: text.matches('\n').count() + 1, column: last_line.chars().count() + 1 }
}

fn unreadable(path: &Path, error: &io::Error) -> ManifestProblem {
    ManifestProblem::new(SourceLocation::file(name(path)), format!("this cannot be read: {error}"))
}

fn name(path: &Path) -> String {
    if path == Path::new(STDIN) { "<stdin>".to_owned() } else { path.display().to_string() }
}
