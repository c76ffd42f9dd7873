//! The official conformance suite of MCP alone, for the gate.

use std::path::Path;
use std::process::Command;

use anyhow::Context;
use xtask_support::builds::sibling_program;
use xtask_support::peers::PeerSoftware;
use xtask_support::process;

/// Seconds in which the suite is downloaded. npm repeats requests itself, for longer than the gate may take.
const DOWNLOAD_LIMIT: &str = "180";

/// Returns the suite, which is installed with npm at first; `None` if there is no npm, or its registry is out of reach.
pub(crate) fn conformance_suite() -> anyhow::Result<Option<PeerSoftware>> {
    // Beside the folder of the profile, so that it stays with the build.
    let peers = PeerSoftware::in_folder(sibling_program("../conformance-suite")?);
    let pins = xtask_support::root().join("fixtures/conformance");
    let lock = read(&pins.join("package-lock.json"))?;
    let stamp = peers.folder().join("stamp");
    if std::fs::read_to_string(&stamp).ok().as_deref() == Some(&lock) {
        return Ok(Some(peers));
    }
    if !process::is_successful("npm", &["--version"]) {
        println!("there is no npm");
        return Ok(None);
    }
    let folder = peers.folder();
    std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    for pin in ["package.json", "package-lock.json"] {
        std::fs::copy(pins.join(pin), folder.join(pin)).with_context(|| format!("copy {pin}"))?;
    }
    let mut npm = Command::new("timeout");
    npm.args(["--kill-after=5", DOWNLOAD_LIMIT, "npm"]).args(super::NPM_CI);
    if let Err(error) = process::run(npm.current_dir(folder)) {
        println!("{error:#}");
        return Ok(None);
    }
    std::fs::write(&stamp, &lock).with_context(|| format!("write {}", stamp.display()))?;
    Ok(Some(peers))
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))
}
