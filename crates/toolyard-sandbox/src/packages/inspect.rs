//! Checks of the installed files before any worker reads them: each file must be listed with its digest in the `RECORD`
//! of a package from the index, and none may run code at the start of an interpreter.

use std::collections::{BTreeMap, HashMap};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// An installed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InstalledFile {
    pub(super) sha256: [u8; 32],
    pub(super) bytes: u64,
}

/// Installed files by path, relative to the folder.
pub(super) type InstalledFiles = BTreeMap<String, InstalledFile>;

/// Maximum length of a `RECORD`, in bytes.
const MAX_RECORD_BYTES: u64 = 32 << 20;

/// Path files that setuptools creates for packages. They are removed: Python itself supports namespace packages.
const REMOVED_PATH_FILES: [&str; 2] = ["distutils-precedence.pth", "-nspkg.pth"];

/// A file that is not permitted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}")]
pub(super) struct InspectionError {
    path: String,
    reason: &'static str,
}

/// Checks the installed files; `read` reads a listed file. Returns the paths of the files to remove.
///
/// # Errors
/// For the first file that is not permitted.
pub(super) fn check(
    files: &InstalledFiles,
    mut read: impl FnMut(&str) -> std::io::Result<String>,
) -> Result<Vec<&str>, InspectionError> {
    let mut records = PackageRecords::default();
    for (path, installed) in files.iter().filter(|(path, _)| is_record(path)) {
        let fault = |reason| InspectionError { path: path.clone(), reason };
        if installed.bytes > MAX_RECORD_BYTES {
            return Err(fault("the RECORD is too long"));
        }
        let text = read(path).map_err(|_| fault("the RECORD cannot be read"))?;
        records.add(&text).map_err(fault)?;
    }
    let mut to_remove = Vec::new();
    for (path, installed) in files {
        let is_kept_file = is_kept(path, installed, &records)
            .map_err(|reason| InspectionError { path: path.clone(), reason })?;
        to_remove.extend((!is_kept_file).then_some(path.as_str()));
    }
    Ok(to_remove)
}

/// True if a file is kept.
fn is_kept(path: &str, installed: &InstalledFile, records: &PackageRecords) -> Result<bool, &'static str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    if is_path_file(path) {
        let is_removed = REMOVED_PATH_FILES.iter().any(|end| name.ends_with(end));
        return if is_removed { Ok(false) } else { Err("a path file runs code when an interpreter starts") };
    }
    if name == "direct_url.json" && path.matches('/').count() == 1 && path.contains(".dist-info/") {
        return Err("the package came from a URL, not from the index");
    }
    // A RECORD does not list itself, and pip does not list all modules that it compiles.
    let has_no_digest = is_record(path) || is_signature(path) || is_bytecode(path);
    match records.lookup(path, installed) {
        RecordMatch::Matches => Ok(true),
        RecordMatch::Differs => Err("content differs from the RECORD of its package"),
        RecordMatch::Unlisted | RecordMatch::WithoutDigest if has_no_digest => Ok(true),
        RecordMatch::WithoutDigest => Err("no SHA-256 digest in the RECORD of its package"),
        RecordMatch::Unlisted => Err("not listed in the RECORD of any package"),
    }
}

/// True for `.pth` files in folders in which Python reads them. Elsewhere the suffix has other uses, such as model
/// weights.
fn is_path_file(path: &str) -> bool {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let is_site = folder.is_empty() || folder.ends_with("site-packages") || folder.ends_with("dist-packages");
    is_site && path.to_ascii_lowercase().ends_with(".pth")
}

fn is_record(path: &str) -> bool {
    path.strip_suffix("/RECORD").is_some_and(|folder| folder.ends_with(".dist-info") && !folder.contains('/'))
}

fn is_signature(path: &str) -> bool {
    path.strip_suffix(".jws").or_else(|| path.strip_suffix(".p7s")).is_some_and(is_record)
}

fn is_bytecode(path: &str) -> bool {
    path.ends_with(".pyc") && path.rsplit('/').nth(1) == Some("__pycache__")
}

/// Result of a lookup in the records.
enum RecordMatch {
    Matches,
    Differs,
    WithoutDigest,
    Unlisted,
}

/// Files listed by all packages. A listed file may be missing.
#[derive(Default)]
struct PackageRecords(HashMap<String, Vec<RecordRow>>);

#[derive(PartialEq, Eq)]
struct RecordRow {
    sha256: Option<[u8; 32]>,
    bytes: Option<u64>,
}

impl PackageRecords {
    /// Adds a `RECORD`: CSV of path, digest and size.
    fn add(&mut self, text: &str) -> Result<(), &'static str> {
        for line in text.lines().filter(|line| !line.is_empty()) {
            let [path, digest, bytes] =
                record_fields(line).ok_or("a line of the RECORD does not have three fields")?;
            let sha256 = match digest.split_once('=') {
                None if digest.is_empty() => None,
                Some(("sha256", digits)) => {
                    Some(decode_sha256(digits).ok_or("the RECORD has a malformed digest")?)
                }
                // The format permits stronger digests, but no tool writes them.
                _ => return Err("the RECORD has a digest other than SHA-256"),
            };
            let bytes = bytes.parse().ok();
            // Scripts and data are listed relative to a library folder.
            let path = path.trim_start_matches("../").to_owned();
            let rows = self.0.entry(path).or_default();
            let row = RecordRow { sha256, bytes };
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        Ok(())
    }

    /// Looks up a file. Packages may share a file: the last one remains, so one matching row suffices.
    fn lookup(&self, path: &str, installed: &InstalledFile) -> RecordMatch {
        let rows = self.0.get(path).map(Vec::as_slice).unwrap_or_default();
        let matches = |row: &RecordRow| {
            row.sha256 == Some(installed.sha256) && row.bytes.is_none_or(|bytes| bytes == installed.bytes)
        };
        match rows {
            [] => RecordMatch::Unlisted,
            _ if rows.iter().any(matches) => RecordMatch::Matches,
            _ if rows.iter().any(|row| row.sha256.is_some()) => RecordMatch::Differs,
            _ => RecordMatch::WithoutDigest,
        }
    }
}

fn decode_sha256(digits: &str) -> Option<[u8; 32]> {
    URL_SAFE_NO_PAD.decode(digits.trim_end_matches('=')).ok()?.try_into().ok()
}

/// Splits a line into its three fields. Only the first may be quoted, if it contains commas.
fn record_fields(line: &str) -> Option<[String; 3]> {
    let (path, rest) = match line.strip_prefix('"') {
        None => line.split_once(',').map(|(path, rest)| (path.to_owned(), rest))?,
        Some(quoted) => {
            let end = closing_quote(quoted)?;
            (quoted[..end].replace("\"\"", "\""), quoted[end + 1..].strip_prefix(',')?)
        }
    };
    let (digest, bytes) = rest.split_once(',')?;
    Some([path, digest.to_owned(), bytes.trim().to_owned()])
}

/// Returns the position of the closing quote: the one that no other quote follows.
fn closing_quote(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'"', Some(b'"')) => at += 2,
            (b'"', _) => return Some(at),
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests;
