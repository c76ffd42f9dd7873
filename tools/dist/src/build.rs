//! A build of the binary that runs on an older glibc than this machine's: zig links it with the symbols of that version.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use xtask_support::process;

use crate::target::{DistTarget, OLDEST_GLIBC};

/// The build tools from PyPI.
const PINS: &str = include_str!("../requirements.txt");

/// Builds with the profile `dist`, and returns the path of the binary.
pub(crate) fn build(target: DistTarget) -> anyhow::Result<PathBuf> {
    let tools = build_tools()?;
    let target_folder = xtask_support::root().join("target");
    let triple = target.triple();
    let mut zigbuild = Command::new(tools.join("bin/cargo-zigbuild"));
    zigbuild.current_dir(xtask_support::root()).arg("zigbuild").args(["--locked", "--profile", "dist"]);
    zigbuild.args(["--package", "toolyard", "--bin", "toolyard"]);
    zigbuild.arg("--target").arg(format!("{triple}.{OLDEST_GLIBC}")).arg("--target-dir").arg(&target_folder);
    zigbuild.env("CARGO_ZIGBUILD_PYTHON_PATH", tools.join("bin/python"));
    process::run(&mut zigbuild)?;
    Ok(target_folder.join(triple).join("dist/toolyard"))
}

/// Returns the environment with cargo-zigbuild and zig. It is installed once for each set of pins.
fn build_tools() -> anyhow::Result<PathBuf> {
    let folder = xtask_support::root().join("target/dist-tools");
    let stamp = folder.join("stamp");
    if std::fs::read_to_string(&stamp).ok().as_deref() != Some(PINS) {
        process::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        let mut pip = Command::new(folder.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
        process::run(pip.arg(xtask_support::root().join("tools/dist/requirements.txt")))?;
        std::fs::write(&stamp, PINS).with_context(|| format!("write {}", stamp.display()))?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    /// Returns the packages whose level a section of the workspace's manifest sets, with their levels.
    fn levels(section: &str) -> BTreeMap<String, String> {
        let manifest = std::fs::read_to_string(xtask_support::root().join("Cargo.toml")).unwrap();
        let (_, rest) = manifest.split_once(&format!("[{section}]\n")).unwrap();
        let lines = rest.lines().take_while(|line| !line.starts_with('['));
        let level = |line: &str| {
            let (package, level) = line.split_once(" = { opt-level = ")?;
            let level = level.split_once(',').map_or(level, |(level, _)| level);
            Some((package.to_owned(), level.trim_end_matches(" }").to_owned()))
        };
        lines.filter_map(level).collect()
    }

    #[test]
    fn dist_shrinks_the_operator_only() {
        let operator =
            ["k8s-openapi", "kube", "kube-client", "kube-core", "kube-runtime", "toolyard-operator"];
        let expected = operator.map(|package| (package.to_owned(), "\"s\"".to_owned()));
        assert_eq!(levels("profile.dist.package"), BTreeMap::from(expected));
    }
}
