//! A folder of files for an archive that is the same on every machine.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use tempfile::TempDir;
use xtask_support::process;

/// Permissions of programs and folders.
pub(crate) const PROGRAM: u32 = 0o755;

/// Permissions of other files.
pub(crate) const FILE: u32 = 0o644;

/// A folder that is removed when this is dropped. The paths in it are relative.
pub(crate) struct FileTree {
    folder: TempDir,
}

impl FileTree {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let folder = TempDir::new().context("create a folder for an archive")?;
        set_mode(folder.path(), PROGRAM)?;
        Ok(Self { folder })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file with these permissions.
    pub(crate) fn write(&self, path: &str, mode: u32, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
        let file = self.prepare(path)?;
        fs::write(&file, content).with_context(|| format!("write {}", file.display()))?;
        set_mode(&file, mode)
    }

    /// Copies a file with these permissions.
    pub(crate) fn copy(&self, path: &str, mode: u32, from: &Path) -> anyhow::Result<()> {
        let file = self.prepare(path)?;
        fs::copy(from, &file).with_context(|| format!("copy {}", from.display()))?;
        set_mode(&file, mode)
    }

    /// Copies a file of the repository.
    pub(crate) fn copy_of(&self, path: &str, from: &str) -> anyhow::Result<()> {
        self.copy(path, FILE, &xtask_support::root().join(from))
    }

    /// Creates a folder and those above it.
    pub(crate) fn folder(&self, path: &str, mode: u32) -> anyhow::Result<()> {
        let folder = self.prepare(path)?;
        create_folders(self.path(), &folder)?;
        set_mode(&folder, mode)
    }

    fn prepare(&self, path: &str) -> anyhow::Result<PathBuf> {
        let full = self.path().join(path);
        create_folders(self.path(), full.parent().unwrap_or(self.path()))?;
        Ok(full)
    }

    /// Packs the tree into a tar archive, as [`FileTree::pack_names`] does. The folder itself is left out: its
    /// permissions belong to what it is unpacked into.
    pub(crate) fn pack(&self, to: &Path, owner: u32, epoch: u64) -> anyhow::Result<()> {
        let entries = fs::read_dir(self.path()).context("list the files of an archive")?;
        let mut names =
            entries.map(|entry| Ok(entry?.file_name())).collect::<anyhow::Result<Vec<OsString>>>()?;
        names.sort();
        self.pack_names(to, &names, owner, epoch)
    }

    /// Packs some files into a tar archive, whose bytes depend on nothing but names, permissions, contents, owner and
    /// `epoch`.
    pub(crate) fn pack_names(
        &self,
        to: &Path,
        names: &[OsString],
        owner: u32,
        epoch: u64,
    ) -> anyhow::Result<()> {
        let mut tar = Command::new("tar");
        tar.args(["--create", "--format=gnu", "--sort=name", "--numeric-owner"]);
        tar.args([format!("--owner={owner}"), format!("--group={owner}"), format!("--mtime=@{epoch}")]);
        tar.arg("--file").arg(to).arg("--directory").arg(self.path());
        process::run(tar.arg("--").args(names))
    }
}

/// Creates folders below `root`, whatever the umask.
fn create_folders(root: &Path, folder: &Path) -> anyhow::Result<()> {
    let missing: Vec<_> = folder.ancestors().take_while(|path| *path != root && !path.exists()).collect();
    for path in missing.into_iter().rev() {
        fs::create_dir(path).with_context(|| format!("create {}", path.display()))?;
        set_mode(path, PROGRAM)?;
    }
    Ok(())
}

fn set_mode(path: &Path, mode: u32) -> anyhow::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .with_context(|| format!("set the permissions of {}", path.display()))
}

/// Size or time.
#[derive(Clone, Copy)]
pub(crate) enum Compression {
    Best,
    Fast,
}

impl Compression {
    /// The level of deflate.
    pub(crate) fn level(self) -> &'static str {
        match self {
            Compression::Best => "9",
            Compression::Fast => "1",
        }
    }

    /// The method as an option of `dpkg-deb`.
    pub(crate) fn deb(self) -> &'static str {
        match self {
            Compression::Best => "-Zxz",
            Compression::Fast => "-Znone",
        }
    }
}

/// Compresses a file in place, and returns the path with `.gz`.
pub(crate) fn gzip(file: &Path, compression: Compression) -> anyhow::Result<PathBuf> {
    process::run(
        Command::new("gzip")
            .args(["--no-name", "--force"])
            .arg(format!("-{}", compression.level()))
            .arg(file),
    )?;
    let mut path = file.as_os_str().to_owned();
    path.push(".gz");
    Ok(path.into())
}
