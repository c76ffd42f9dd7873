//! A function in a folder: its files, `function.json` beside them, and its test cases in `tests`.
//!
//! What is hidden, what Python has compiled, and folders of dependencies are no files of a function. Nor is anything outside
//! of the folder, whatever links lead there.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::settings::{BadSettings, SETTINGS, Settings, TESTS, test_case};
use super::{MOST_BYTES, MOST_FILES, MOST_TESTS, Project, ProjectError, TestCase, most};
use crate::code::Language;

/// Folders that are no part of a function.
const NOT_OURS: [&str; 5] = ["__pycache__", "node_modules", "venv", "env", "target"];

/// How deep folders may be in each other.
const DEEPEST: usize = 8;

/// The longest `function.json`, or test case, in bytes.
const LONGEST_JSON: usize = 1 << 20;

/// A function, as it was found.
#[derive(Debug)]
pub struct Found {
    /// What it is to be called by, if it says so.
    pub id: Option<String>,
    /// The function.
    pub project: Project,
}

/// Why a folder is no function.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file or folder cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// `function.json`, or a test case, says something that it may not.
    #[error("{}: {problem}", .path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and where.
        problem: BadSettings,
    },
    /// A link leads out of the folder.
    #[error("{} leads out of the folder of the function: put the file itself there", .0.display())]
    Outside(PathBuf),
    /// Something is neither a file nor a folder.
    #[error("{} is neither a file nor a folder", .0.display())]
    Strange(PathBuf),
    /// Folders are in each other deeper than they may.
    #[error("{} is in more than {DEEPEST} folders", .0.display())]
    TooDeep(PathBuf),
    /// There is no handler, or several.
    #[error(
        "{} has no single handler: there is to be one of cortexone_function.py, cortexone_function.js and \
         cortexone_function.lua, or `language` in function.json says which", .0.display()
    )]
    NoLanguage(PathBuf),
    /// `function.yaml` is not read.
    #[error("{} is not read: what is said of a function stands in function.json", .0.display())]
    Yaml(PathBuf),
    /// It is no function.
    #[error("{}: {problem}", .path.display())]
    Bad {
        /// The folder.
        path: PathBuf,
        /// Why not.
        problem: ProjectError,
    },
}

/// Reads what is at a path: a folder, or one file with a handler, of which nothing more is known.
///
/// # Errors
/// When it cannot be read, or is no function.
pub fn read(path: &Path) -> Result<Found, FolderError> {
    let found = match fs::metadata(path).map_err(at(path))?.is_dir() {
        true => read_folder(path)?,
        false => read_file(path)?,
    };
    let bad = |problem| FolderError::Bad { path: path.to_owned(), problem };
    found.project.check().map_err(bad)?;
    Ok(found)
}

/// What a function is called whose folder does not say.
#[must_use]
pub fn name_of(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    path.file_stem().map_or_else(|| "function".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn read_file(path: &Path) -> Result<Found, FolderError> {
    let extension = path.extension().unwrap_or_default();
    let language = Language::ALL.into_iter().find(|language| extension == language.extension());
    let language = language.ok_or_else(|| FolderError::NoLanguage(path.to_owned()))?;
    let project = Project::of_source(super::Kind::Mcp, language, bytes_of(path, MOST_BYTES + 1)?);
    Ok(Found { id: None, project })
}

fn read_folder(folder: &Path) -> Result<Found, FolderError> {
    for name in ["function.yaml", "function.yml"] {
        if folder.join(name).exists() {
            return Err(FolderError::Yaml(folder.join(name)));
        }
    }
    let settings = settings(&folder.join(SETTINGS))?;
    let files = files(folder)?;
    let is_there = |language: &Language| files.iter().any(|(path, _)| path == language.entry_file());
    let mut languages = Language::ALL.into_iter().filter(is_there);
    let only = languages.next().filter(|_| languages.next().is_none());
    let language = settings.language.or(only).ok_or_else(|| FolderError::NoLanguage(folder.to_owned()))?;
    let tests = tests(&folder.join(TESTS))?;
    let Settings { id, kind, limits, environment, network, price, notes, .. } = settings;
    let project =
        Project { kind, language, files, limits: limits.into(), environment, network, price, tests, notes };
    Ok(Found { id, project })
}

fn settings(path: &Path) -> Result<Settings, FolderError> {
    if !path.exists() {
        return Ok(Settings::default());
    }
    let bad = |problem| FolderError::Settings { path: path.to_owned(), problem };
    Settings::parse(&bytes_of(path, LONGEST_JSON)?).map_err(bad)
}

/// The test cases of a folder, in the order of their names.
fn tests(folder: &Path) -> Result<Vec<TestCase>, FolderError> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut paths = entries(folder)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    // One more than may be, so that it is seen.
    paths.truncate(MOST_TESTS + 1);
    let test = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let bad = |problem| FolderError::Settings { path: path.clone(), problem };
        test_case(&name, &bytes_of(path, LONGEST_JSON)?).map_err(bad)
    };
    paths.iter().map(test).collect()
}

/// The files of a function, in the order of their names.
fn files(root: &Path) -> Result<Vec<(String, Bytes)>, FolderError> {
    let inside = root.canonicalize().map_err(at(root))?;
    let mut files = Vec::new();
    let mut room = MOST_BYTES + 1;
    for path in walk(root, &inside)? {
        // What is cut off makes the sum too large.
        let bytes = bytes_of(&path, room)?;
        room = room.saturating_sub(bytes.len());
        files.push((relative(root, &path), bytes));
        if room == 0 {
            break;
        }
    }
    // Before anything else is said: the handler may be among those that were not looked at.
    let found = files.iter().map(|(_, bytes)| bytes.len()).sum();
    let few =
        most("files", files.len(), MOST_FILES).and_then(|()| most("bytes in its files", found, MOST_BYTES));
    few.map_err(|problem| FolderError::Bad { path: root.to_owned(), problem })?;
    Ok(files)
}

/// The paths of a function's files, one more than there may be at most.
fn walk(root: &Path, inside: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let mut found = Vec::new();
    let mut folders = vec![(root.to_owned(), 1)];
    while let Some((folder, depth)) = folders.pop() {
        for path in entries(&folder)? {
            if !is_ours(root, &path) {
                continue;
            }
            let entry = fs::symlink_metadata(&path).map_err(at(&path))?;
            if entry.is_dir() {
                if depth == DEEPEST {
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
                return Err(FolderError::Strange(path));
            }
            found.push(path);
            if found.len() > MOST_FILES {
                return Ok(found);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn is_ours(root: &Path, path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_said_of_it = path.parent() == Some(root) && (name == SETTINGS || name == TESTS);
    !name.starts_with('.') && !name.ends_with(".pyc") && !NOT_OURS.contains(&&*name) && !is_said_of_it
}

fn relative(root: &Path, path: &Path) -> String {
    let path = path.strip_prefix(root).unwrap_or(path);
    path.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// What is in a folder, in the order of its names.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let entries = fs::read_dir(folder).map_err(at(folder))?;
    let paths: io::Result<Vec<_>> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(at(folder))?;
    paths.sort();
    Ok(paths)
}

/// A file, of which at most so many bytes are read.
fn bytes_of(path: &Path, most: usize) -> Result<Bytes, FolderError> {
    let file = File::open(path).map_err(at(path))?;
    let mut bytes = Vec::new();
    file.take(most as u64).read_to_end(&mut bytes).map_err(at(path))?;
    Ok(bytes.into())
}

fn at(path: &Path) -> impl Fn(io::Error) -> FolderError {
    move |source| FolderError::Unreadable { path: path.to_owned(), source }
}

/// How the files of a function are, as the system knows it. Two that are equal stand for the same function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stamp(Vec<(PathBuf, Option<Mark>)>);

/// What changes when a file is written, replaced, or put elsewhere with a link left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    device: u64,
    inode: u64,
    length: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
}

impl Stamp {
    /// The stamp of what [`read`] would read at this path now.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let mut paths = vec![path.to_owned()];
        if path.is_dir() {
            // What cannot be looked through now can be later, and is another stamp then.
            let inside = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            paths.extend(walk(path, &inside).unwrap_or_default());
            paths.push(path.join(SETTINGS));
            paths.extend(entries(&path.join(TESTS)).unwrap_or_default());
        }
        Self(
            paths
                .into_iter()
                .map(|path| (fs::metadata(&path).ok().as_ref().and_then(mark), path))
                .map(swap)
                .collect(),
        )
    }
}

fn swap<A, B>((a, b): (A, B)) -> (B, A) {
    (b, a)
}

/// A folder changes with each lock that an editor puts there.
fn mark(found: &Metadata) -> Option<Mark> {
    found.is_file().then(|| Mark {
        device: found.dev(),
        inode: found.ino(),
        length: found.len(),
        modified: (found.mtime(), found.mtime_nsec()),
    })
}

#[cfg(test)]
mod tests;
