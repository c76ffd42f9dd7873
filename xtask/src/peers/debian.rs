//! Peers from Debian: unpacked into a folder, so that neither root nor a service is needed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use tempfile::TempDir;

use crate::process;

/// The packages, whose programs are found below `debian/usr` of the peers' folder.
pub(super) const PACKAGES: [&str; 3] = [
    // `promtool`, which judges metrics and rules.
    "prometheus",
    // A service that is called for real, and what the API server of Kubernetes keeps its objects in.
    "etcd-server",
    // The description of another one, which `system` installs.
    "golang-github-prometheus-alertmanager-dev",
];

/// Downloads and unpacks the peers, as the system's sources have them now.
pub(super) fn install(peers: &Path) -> anyhow::Result<()> {
    unpack(&PACKAGES, &peers.join("debian"))
}

/// Downloads packages and unpacks them into a folder.
pub(super) fn unpack(packages: &[&str], to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to).with_context(|| format!("create {}", to.display()))?;
    let downloads = TempDir::new_in(to).context("create a folder for packages")?;
    process::run(
        Command::new("apt-get").current_dir(&downloads).args(["download", "--quiet"]).args(packages),
    )?;
    for package in files(downloads.path())? {
        process::run(Command::new("dpkg-deb").arg("--extract").arg(package).arg(to))?;
    }
    Ok(())
}

/// The one file in a folder with this end.
pub(super) fn find(folder: &Path, end: &str) -> anyhow::Result<PathBuf> {
    let mut files = files(folder)?.into_iter();
    let found = files.find(|file| file.extension().is_some_and(|found| found == end));
    found.with_context(|| format!("no .{end} in {}", folder.display()))
}

fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let files = std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    files.map(|file| Ok(file?.path())).collect()
}
