//! The binary in a compressed tar archive, with what belongs beside it.

use std::path::PathBuf;

use crate::debian;
use crate::file_tree::{FileTree, PROGRAM, gzip};
use crate::release::{Release, VERSION};

/// Makes `toolyard-VERSION-TARGET.tar.gz`, which contains one folder.
pub(crate) fn make(release: &Release) -> anyhow::Result<PathBuf> {
    let name = format!("toolyard-{VERSION}-{}", release.target.triple());
    let tree = FileTree::new()?;
    tree.copy(&format!("{name}/toolyard"), PROGRAM, &release.binary())?;
    tree.copy_of(&format!("{name}/LICENSE"), "LICENSE")?;
    tree.copy_of(&format!("{name}/CHANGELOG.md"), "CHANGELOG.md")?;
    tree.copy_of(&format!("{name}/toolyard.service"), debian::UNIT)?;
    let archive = release.file(&format!("{name}.tar"));
    tree.pack(&archive, 0, release.epoch)?;
    gzip(&archive, release.compression)
}
