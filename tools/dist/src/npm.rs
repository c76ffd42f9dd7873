//! The npm package, which is the binary: `npx toolyard`.

use std::path::PathBuf;

use serde_json::json;

use crate::file_tree::{FILE, FileTree, PROGRAM, gzip};
use crate::release::{LICENSE, REPOSITORY, Release, SUMMARY, VERSION};

/// Makes `toolyard-VERSION-npm-linux-CPU.tgz`, as `npm pack` would.
pub(crate) fn make(release: &Release) -> anyhow::Result<PathBuf> {
    let cpu = release.target.node_cpu();
    let manifest = json!({
        "name": "toolyard",
        "version": VERSION,
        "description": SUMMARY,
        "license": LICENSE,
        "repository": {"type": "git", "url": format!("git+{REPOSITORY}.git")},
        // npm refuses to install the package elsewhere.
        "os": ["linux"],
        "cpu": [cpu],
        "libc": ["glibc"],
        "bin": {"toolyard": "bin/toolyard"},
    });
    let tree = FileTree::new()?;
    tree.write("package/package.json", FILE, serde_json::to_string_pretty(&manifest)? + "\n")?;
    tree.copy("package/bin/toolyard", PROGRAM, &release.binary())?;
    tree.copy_of("package/LICENSE", "LICENSE")?;
    tree.copy_of("package/README.md", "README.md")?;
    let name = format!("toolyard-{VERSION}-npm-linux-{cpu}");
    let archive = release.file(&name);
    tree.pack(&archive, 0, release.epoch)?;
    let compressed = gzip(&archive, release.compression)?;
    let package = release.file(&format!("{name}.tgz"));
    std::fs::rename(compressed, &package)?;
    Ok(package)
}
