//! Peers from Debian: unpacked into a folder, so that neither root nor a service is needed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::process;

/// The packages, whose programs are found below `debian/usr` of the peers' folder.
pub(super) const PACKAGES: [&str; 3] = [
    // `promtool`, which judges metrics and rules.
    "prometheus",
    // A service that is called for real.
    "etcd-server",
    // The description of another one, which `system` installs.
    "golang-github-prometheus-alertmanager-dev",
];

/// Downloads and unpacks the packages, as the system's sources have them now.
pub(super) fn install(peers: &Path) -> anyhow::Result<()> {
    let downloads = peers.join("debian-packages");
    // What an earlier run has left would be unpacked a second time.
    if downloads.exists() {
        std::fs::remove_dir_all(&downloads).with_context(|| format!("remove {}", downloads.display()))?;
    }
    std::fs::create_dir_all(&downloads).with_context(|| format!("create {}", downloads.display()))?;
    process::run(
        Command::new("apt-get").current_dir(&downloads).args(["download", "--quiet"]).args(PACKAGES),
    )?;
    for package in packages(&downloads)? {
        process::run(Command::new("dpkg-deb").arg("--extract").arg(package).arg(peers.join("debian")))?;
    }
    Ok(())
}

fn packages(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let files = std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    files.map(|file| Ok(file?.path())).collect()
}
