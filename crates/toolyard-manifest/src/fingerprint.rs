//! Detects changes of files without reading them.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::source;

/// The metadata of a manifest's files. Equal fingerprints mean equal texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManifestFingerprint(Vec<(PathBuf, Option<FileState>)>);

/// The metadata that changes when a file is written, replaced, or moved behind a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    length: u64,
    /// Modification time in seconds and nanoseconds.
    modified: (i64, i64),
}

impl ManifestFingerprint {
    /// Returns the fingerprint of the files that [`load`](crate::load) would read at these paths now. Links are
    /// followed; unreadable files have a fingerprint as well.
    #[must_use]
    pub fn of(paths: &[PathBuf]) -> Self {
        let in_folder = |path: &PathBuf| source::manifests_in(path).unwrap_or_default();
        let files = paths.iter().flat_map(|path| [vec![path.clone()], in_folder(path)].concat());
        Self(files.map(|path| (path.clone(), file_state(&path))).collect())
    }
}

fn file_state(path: &Path) -> Option<FileState> {
    let metadata = fs::metadata(path).ok()?;
    // A folder changes with each lock file of an editor. Its manifests have entries of their own.
    let metadata = metadata.is_file().then_some(metadata)?;
    Some(FileState {
        device: metadata.dev(),
        inode: metadata.ino(),
        length: metadata.len(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn changes_of_the_fingerprint() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, text: &str| fs::write(path(name), text).unwrap();
        fs::create_dir(path("more")).unwrap();
        let watched = [path("a.yaml"), path("more"), path("link.yaml")];
        let mut last = ManifestFingerprint::of(&watched);
        let mut step = |what: &str, is_change: bool| {
            let now = ManifestFingerprint::of(&watched);
            assert_eq!(now != last, is_change, "{what}");
            last = now;
        };
        step("nothing", false);
        write("a.yaml", "1");
        step("a file that was missing", true);
        write("a.yaml", "12");
        step("another text", true);
        write("b.yaml", "34");
        step("a file that is none of ours", false);
        fs::rename(path("b.yaml"), path("a.yaml")).unwrap();
        step("a file in the place of another, of the same length", true);
        write("more/c.json", "{}");
        step("a manifest that comes into a folder", true);
        write("more/.c.swp", "");
        step("an editor's lock", false);
        fs::remove_file(path("more/c.json")).unwrap();
        step("a manifest that leaves", true);
        write("one", "x");
        write("two", "x");
        symlink(path("one"), path("link.yaml")).unwrap();
        step("a link", true);
        write("one", "xy");
        step("what is behind a link", true);
        fs::remove_file(path("link.yaml")).unwrap();
        symlink(path("two"), path("link.yaml")).unwrap();
        step("a link to another file", true);
    }
}
