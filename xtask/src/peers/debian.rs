//! Peers from Debian, unpacked into a folder, so that neither root nor a service is needed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use tempfile::TempDir;
use xtask_support::process;

/// The packages. Their programs are below `debian/usr` of the peers' folder.
pub(super) const PACKAGES: [&str; 6] = [
    // `promtool`, which validates metrics and rules.
    "prometheus",
    // A real service as an upstream, and the storage of the API server of Kubernetes.
    "etcd-server",
    // The OpenAPI document of Alertmanager, which `system` installs.
    "golang-github-prometheus-alertmanager-dev",
    // The descriptors of etcd, which has no reflection, and those that they import.
    "golang-etcd-server-dev",
    "golang-github-gogo-protobuf-dev",
    "golang-github-grpc-ecosystem-grpc-gateway-dev",
];

/// Downloads and unpacks the peers, in the versions of the system's package sources.
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

/// The only file in a folder with this extension.
pub(super) fn find_by_extension(folder: &Path, end: &str) -> anyhow::Result<PathBuf> {
    let mut files = files(folder)?.into_iter();
    let file = files.find(|file| file.extension().is_some_and(|extension| extension == end));
    file.with_context(|| format!("no .{end} in {}", folder.display()))
}

fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let files = std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    files.map(|file| Ok(file?.path())).collect()
}
