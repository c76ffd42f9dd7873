//! The root of the smaller image: glibc and CA certificates of Debian packages, and the names of the users.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use tempfile::TempDir;
use xtask_support::process;

use super::layout::Layer;
use super::{STATE, USER};
use crate::file_tree::{FILE, FileTree};
use crate::release::Release;

/// Path of the certificates, which every TLS library of Debian reads.
const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";

/// Parts of the packages that no program of the image reads.
const UNUSED: [&str; 5] = [
    "usr/lib/x86_64-linux-gnu/gconv",
    "usr/lib/aarch64-linux-gnu/gconv",
    "usr/share/man",
    "usr/share/lintian",
    "usr/sbin",
];

/// Makes the layer of packages from the sources of this machine's apt.
pub(super) fn layer(release: &Release) -> anyhow::Result<Layer> {
    let tree = FileTree::new()?;
    unpack(&packages(release)?, tree.path())?;
    let certificates = concatenated_certificates(&tree.path().join("usr/share/ca-certificates/mozilla"))?;
    tree.write(CERTIFICATES, FILE, certificates)?;
    let passwd =
        format!("root:x:0:0:root:/root:/sbin/nologin\ntoolyard:x:{USER}:{USER}::/{STATE}:/sbin/nologin\n");
    tree.write("etc/passwd", FILE, passwd)?;
    tree.write("etc/group", FILE, format!("root:x:0:\ntoolyard:x:{USER}:\n"))?;
    tree.write("etc/nsswitch.conf", FILE, "passwd: files\ngroup: files\nhosts: files dns\n")?;
    tree.folder("tmp", 0o1777)?;
    for path in UNUSED {
        let path = tree.path().join(path);
        if path.exists() {
            fs::remove_dir_all(&path).with_context(|| format!("remove {}", path.display()))?;
        }
    }
    Layer::of_tree(&tree, 0, release, "glibc and CA certificates of Debian")
}

/// Returns the packages of the binary's libraries, and the certificates.
fn packages(release: &Release) -> anyhow::Result<Vec<String>> {
    let architecture = release.target.architecture();
    let libraries = release.needs.debian_packages()?.into_iter();
    let named =
        libraries.filter_map(|package| Some(format!("{}:{architecture}", package.split(' ').next()?)));
    Ok(named.chain(["ca-certificates".to_owned()]).collect())
}

/// Downloads Debian packages and unpacks them.
fn unpack(packages: &[String], to: &Path) -> anyhow::Result<()> {
    let downloads = TempDir::new().context("create a folder for packages")?;
    let mut download = Command::new("apt-get");
    // The user that apt downloads as may not write to the folder.
    download.args(["download", "-o", "APT::Sandbox::User=root", "--quiet"]);
    process::run(download.current_dir(&downloads).args(packages))?;
    for entry in fs::read_dir(&downloads).context("list the packages")? {
        process::run(Command::new("dpkg-deb").arg("--extract").arg(entry?.path()).arg(to))?;
    }
    Ok(())
}

/// Returns the certificates of a folder in one text, as `update-ca-certificates` does.
fn concatenated_certificates(folder: &Path) -> anyhow::Result<String> {
    let entries = fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    files.sort();
    let texts = files.iter().map(|file| {
        let text = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
        Ok(text.trim_end().to_owned() + "\n")
    });
    Ok(texts.collect::<anyhow::Result<Vec<_>>>()?.concat())
}
