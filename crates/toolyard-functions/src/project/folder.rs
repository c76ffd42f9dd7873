//! A function in a folder: its files, `function.json`, and test cases in `tests`.
//!
//! Hidden files, bytecode of Python and folders of dependencies are ignored. Links that lead out of the folder are
//! refused.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::settings::{FunctionSettings, InvalidSettings, SETTINGS_FILE, TESTS_FOLDER, test_case};
use super::{FunctionProject, MAX_BYTES, MAX_FILES, MAX_TESTS, ProjectError, TestCase, check_maximum};
use crate::code::SourceLanguage;

/// Ignored folders.
const IGNORED_FOLDERS: [&str; 5] = ["__pycache__", "node_modules", "venv", "env", "target"];

/// Maximum depth of folders.
const MAX_DEPTH: usize = 8;

/// Maximum length of `function.json` and of a test case, in bytes.
const MAX_JSON_BYTES: usize = 1 << 20;

/// A function read from a folder.
#[derive(Debug)]
pub struct FolderProject {
    /// Id, if the settings have one.
    pub id: Option<String>,
    /// The function.
    pub project: FunctionProject,
}

/// Error of reading a function from a folder.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file or folder cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable {
        /// Path of the file or folder.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// `function.json` or a test case is invalid.
    #[error("{}: {problem}", .path.display())]
    Settings {
        /// Path of the file.
        path: PathBuf,
        /// Fault and its position.
        problem: InvalidSettings,
    },
    /// A link leads out of the folder.
    #[error("{} links out of the folder of the function: copy the file into it", .0.display())]
    Outside(PathBuf),
    /// A path is neither a file nor a folder.
    #[error("{} is neither a file nor a folder", .0.display())]
    NotAFile(PathBuf),
    /// Folders are nested too deeply.
    #[error("{} is in more than {MAX_DEPTH} folders", .0.display())]
    TooDeep(PathBuf),
    /// There is no handler, or more than one.
    #[error(
        "{} must have exactly one of cortexone_function.py, cortexone_function.js and \
         cortexone_function.lua, or `language` in function.json", .0.display()
    )]
    NoLanguage(PathBuf),
    /// `function.yaml` is not supported.
    #[error("{} is not supported: use function.json", .0.display())]
    Yaml(PathBuf),
    /// The function is invalid.
    #[error("{}: {problem}", .path.display())]
    Bad {
        /// Path of the folder.
        path: PathBuf,
        /// Fault.
        problem: ProjectError,
    },
}

/// Reads a folder, or a single file with a handler and default settings.
///
/// # Errors
/// If it cannot be read, or is not a valid function.
pub fn read(path: &Path) -> Result<FolderProject, FolderError> {
    let folder = match fs::metadata(path).map_err(at(path))?.is_dir() {
        true => read_folder(path)?,
        false => read_file(path)?,
    };
    let bad = |problem| FolderError::Bad { path: path.to_owned(), problem };
    folder.project.check().map_err(bad)?;
    Ok(folder)
}

/// Returns the default name of a function in this folder.
#[must_use]
pub fn default_id(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    path.file_stem().map_or_else(|| "function".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn read_file(path: &Path) -> Result<FolderProject, FolderError> {
    let extension = path.extension().unwrap_or_default();
    let language = SourceLanguage::ALL.into_iter().find(|language| extension == language.extension());
    let language = language.ok_or_else(|| FolderError::NoLanguage(path.to_owned()))?;
    let project =
        FunctionProject::from_source(super::FunctionKind::Mcp, language, read_bytes(path, MAX_BYTES + 1)?);
    Ok(FolderProject { id: None, project })
}

fn read_folder(folder: &Path) -> Result<FolderProject, FolderError> {
    for name in ["function.yaml", "function.yml"] {
        if folder.join(name).exists() {
            return Err(FolderError::Yaml(folder.join(name)));
        }
    }
    let settings = settings(&folder.join(SETTINGS_FILE))?;
    let files = files(folder)?;
    let is_there = |language: &SourceLanguage| files.iter().any(|(path, _)| path == language.entry_file());
    let mut languages = SourceLanguage::ALL.into_iter().filter(is_there);
    let only = languages.next().filter(|_| languages.next().is_none());
    let language = settings.language.or(only).ok_or_else(|| FolderError::NoLanguage(folder.to_owned()))?;
    let tests = tests(&folder.join(TESTS_FOLDER))?;
    let FunctionSettings { id, kind, limits, environment, network, price, notes, .. } = settings;
    let project = FunctionProject {
        kind,
        language,
        files,
        limits: limits.into(),
        environment,
        network,
        price,
        tests,
        notes,
    };
    Ok(FolderProject { id, project })
}

fn settings(path: &Path) -> Result<FunctionSettings, FolderError> {
    if !path.exists() {
        return Ok(FunctionSettings::default());
    }
    let bad = |problem| FolderError::Settings { path: path.to_owned(), problem };
    FunctionSettings::parse(&read_bytes(path, MAX_JSON_BYTES)?).map_err(bad)
}

/// Reads the test cases of a folder, in the order of their names.
fn tests(folder: &Path) -> Result<Vec<TestCase>, FolderError> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut paths = entries(folder)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    // One more than permitted, so that the check finds the excess.
    paths.truncate(MAX_TESTS + 1);
    let test = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let bad = |problem| FolderError::Settings { path: path.clone(), problem };
        test_case(&name, &read_bytes(path, MAX_JSON_BYTES)?).map_err(bad)
    };
    paths.iter().map(test).collect()
}

/// Reads the files of a function, in the order of their names.
fn files(root: &Path) -> Result<Vec<(String, Bytes)>, FolderError> {
    let inside = root.canonicalize().map_err(at(root))?;
    let mut files = Vec::new();
    let mut room = MAX_BYTES + 1;
    for path in function_files(root, &inside)? {
        // A truncated file makes the sum exceed the limit.
        let bytes = read_bytes(&path, room)?;
        room = room.saturating_sub(bytes.len());
        files.push((relative(root, &path), bytes));
        if room == 0 {
            break;
        }
    }
    // Checked before anything else, because the handler may be among the unread files.
    let bytes = files.iter().map(|(_, bytes)| bytes.len()).sum();
    let few = check_maximum("files", files.len(), MAX_FILES)
        .and_then(|()| check_maximum("bytes in its files", bytes, MAX_BYTES));
    few.map_err(|problem| FolderError::Bad { path: root.to_owned(), problem })?;
    Ok(files)
}

/// Returns the paths of a function's files, at most one more than permitted.
fn function_files(root: &Path, inside: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let mut files = Vec::new();
    let mut folders = vec![(root.to_owned(), 1)];
    while let Some((folder, depth)) = folders.pop() {
        for path in entries(&folder)? {
            if !is_function_file(root, &path) {
                continue;
            }
            let entry = fs::symlink_metadata(&path).map_err(at(&path))?;
            if entry.is_dir() {
                if depth == MAX_DEPTH {
                    return Err(FolderError::TooDeep(path));
                }
                folders.push((path, depth + 1));
                continue;
            }
            let target = path.canonicalize().map_err(at(&path))?;
            if !target.starts_with(inside) {
                return Err(FolderError::Outside(path));
            }
            if !fs::metadata(&target).map_err(at(&path))?.is_file() {
                return Err(FolderError::NotAFile(path));
            }
            files.push(path);
            if files.len() > MAX_FILES {
                return Ok(files);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn is_function_file(root: &Path, path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_said_of_it = path.parent() == Some(root) && (name == SETTINGS_FILE || name == TESTS_FOLDER);
    !name.starts_with('.') && !name.ends_with(".pyc") && !IGNORED_FOLDERS.contains(&&*name) && !is_said_of_it
}

fn relative(root: &Path, path: &Path) -> String {
    let path = path.strip_prefix(root).unwrap_or(path);
    path.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// Returns the entries of a folder in the order of their names.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let entries = fs::read_dir(folder).map_err(at(folder))?;
    let paths: io::Result<Vec<_>> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(at(folder))?;
    paths.sort();
    Ok(paths)
}

/// Reads at most so many bytes of a file.
fn read_bytes(path: &Path, most: usize) -> Result<Bytes, FolderError> {
    let file = File::open(path).map_err(at(path))?;
    let mut bytes = Vec::new();
    file.take(most as u64).read_to_end(&mut bytes).map_err(at(path))?;
    Ok(bytes.into())
}

fn at(path: &Path) -> impl Fn(io::Error) -> FolderError {
    move |source| FolderError::Unreadable { path: path.to_owned(), source }
}

/// Fingerprint of the files of a function. Equal fingerprints mean equal functions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FolderFingerprint(Vec<(PathBuf, Option<FileMetadata>)>);

/// Properties that change when a file is written, replaced, or moved with a link left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileMetadata {
    device: u64,
    inode: u64,
    length: u64,
    /// Modification time: seconds and nanoseconds.
    modified: (i64, i64),
}

impl FolderFingerprint {
    /// Returns the fingerprint of the files that [`read`] would read at this path.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let mut paths = vec![path.to_owned()];
        if path.is_dir() {
            // An unreadable folder has a different fingerprint once it is readable.
            let inside = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            paths.extend(function_files(path, &inside).unwrap_or_default());
            paths.push(path.join(SETTINGS_FILE));
            paths.extend(entries(&path.join(TESTS_FOLDER)).unwrap_or_default());
        }
        Self(
            paths
                .into_iter()
                .map(|path| (fs::metadata(&path).ok().as_ref().and_then(file_metadata), path))
                .map(swap)
                .collect(),
        )
    }
}

fn swap<A, B>((a, b): (A, B)) -> (B, A) {
    (b, a)
}

/// Returns the properties of a file. Folders are ignored, because editors create lock files in them.
fn file_metadata(found: &Metadata) -> Option<FileMetadata> {
    found.is_file().then(|| FileMetadata {
        device: found.dev(),
        inode: found.ino(),
        length: found.len(),
        modified: (found.mtime(), found.mtime_nsec()),
    })
}

#[cfg(test)]
mod tests;
