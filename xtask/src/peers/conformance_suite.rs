//! The official conformance suite of MCP alone, for the gate.

use std::path::Path;

use anyhow::Context;
use xtask_support::builds::sibling_program;
use xtask_support::peers::PeerSoftware;
use xtask_support::process;

/// Number of attempts to download the suite.
const ATTEMPTS: usize = 3;

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
    for _ in 0..ATTEMPTS {
        match super::install_packages_of_npm(folder) {
            Ok(()) => {
                std::fs::write(&stamp, &lock).with_context(|| format!("write {}", stamp.display()))?;
                return Ok(Some(peers));
            }
            Err(error) => println!("{error:#}"),
        }
    }
    Ok(None)
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))
}
