//! The root of the larger image: a minimal Debian with Python and Node.js, npm from its own package, and uv.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use tempfile::TempDir;
use xtask_support::process;

use super::layout::Layer;
use super::{STATE, USER};
use crate::release::{Release, output_of};

/// The release of Debian: the first whose Node.js runs the servers on npm.
const SUITE: &str = "trixie";

/// Beside the essential packages.
const PACKAGES: &str = "ca-certificates,nodejs,python3";

/// The package of npm. Debian's own brings several hundred packages.
const NPM: &str = "npm@11.19.1";

/// The wheel of uv.
const UV: &str = "uv==0.13.9";

/// Makes the layer. `mmdebstrap` writes the archive with the owners of Debian, also as an ordinary user.
pub(super) fn layer(release: &Release) -> anyhow::Result<Layer> {
    let additions = TempDir::new().context("create a folder for npm and uv")?;
    add_npm(additions.path())?;
    add_uv(additions.path(), release)?;
    Layer::written_by("Debian with Python, Node.js, npm and uv", release, |archive| {
        let mut build = Command::new("mmdebstrap");
        build.args(["--quiet", "--variant=essential", "--format=tar"]);
        build.arg(format!("--architectures={}", release.target.architecture()));
        build.arg(format!("--include={PACKAGES}"));
        build.args(["--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*"]);
        let copy = |from: &str, to: &str| {
            format!("--customize-hook=copy-in '{}' {to}", additions.path().join(from).display())
        };
        build.args([copy("lib", "/usr/local"), copy("bin", "/usr/local")]);
        build.arg(format!(
            "--customize-hook=echo 'toolyard:x:{USER}:{USER}::/{STATE}:/usr/sbin/nologin' >> \"$1/etc/passwd\""
        ));
        build.arg(format!("--customize-hook=echo 'toolyard:x:{USER}:' >> \"$1/etc/group\""));
        build.arg(SUITE).arg(archive).env("SOURCE_DATE_EPOCH", release.epoch.to_string());
        process::run(&mut build)
    })
}

/// Unpacks npm below `lib/node_modules`, and links its programs.
fn add_npm(folder: &Path) -> anyhow::Result<()> {
    let pack = ["pack", "--silent", "--pack-destination", "."];
    let name = output_of(Command::new("npm").current_dir(folder).args(pack).arg(NPM))?;
    let modules = folder.join("lib/node_modules");
    std::fs::create_dir_all(modules.join("npm")).context("create the folder of npm")?;
    std::fs::create_dir_all(folder.join("bin")).context("create the folder of programs")?;
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--gzip", "--no-same-owner", "--strip-components=1", "--file"])
        .arg(folder.join(name.trim()));
    process::run(tar.arg("--directory").arg(modules.join("npm")))?;
    for program in ["npm", "npx"] {
        let target = format!("../lib/node_modules/npm/bin/{program}-cli.js");
        std::os::unix::fs::symlink(target, folder.join("bin").join(program)).context("link npm")?;
    }
    Ok(())
}

/// Takes `uv` and `uvx` out of the wheel.
fn add_uv(folder: &Path, release: &Release) -> anyhow::Result<()> {
    let wheels = folder.join("wheels");
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary=:all:",
    ]);
    pip.arg(format!("--platform=manylinux_2_28_{}", release.target.python_machine()));
    pip.arg(format!("--platform=manylinux_2_17_{}", release.target.python_machine()));
    process::run(pip.arg("--dest").arg(&wheels).arg(UV))?;
    let wheel =
        std::fs::read_dir(&wheels).context("list the wheels")?.next().context("no wheel of uv")??.path();
    let unpacked = folder.join("unpacked");
    process::run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&wheel).arg(&unpacked))?;
    let scripts = std::fs::read_dir(&unpacked)
        .context("list the files of uv")?
        .filter_map(|entry| Some(entry.ok()?.path().join("scripts")))
        .find(|path| path.is_dir());
    let scripts = scripts.context("the wheel of uv has no programs")?;
    for program in ["uv", "uvx"] {
        let to = folder.join("bin").join(program);
        let mut install = Command::new("install");
        process::run(install.arg("--mode=755").arg(scripts.join(program)).arg(&to))?;
        ensure!(to.exists(), "the wheel of uv has no {program}");
    }
    Ok(())
}
