//! System packages that a Debian-like machine lacks when it has only a Rust toolchain.

use xtask_support::process;
use xtask_support::system::{NGINX, SystemPackage, install_packages};

/// Programs that the tests of the gate start.
const GATE_PACKAGES: [SystemPackage; 2] = [
    // Workers of functions, and scripted MCP servers.
    ("command -v python3", &["python3"]),
    // Gives sandboxes of an ordinary user user IDs of their own.
    ("command -v newuidmap", &["uidmap"]),
];

/// Programs that the other tests need in addition.
const PACKAGES: [SystemPackage; 16] = [
    ("command -v node", &["nodejs"]),
    ("command -v npm", &["npm"]),
    // Debian packages the dependencies of `python3 -m venv` separately.
    ("python3 -c 'import ensurepip'", &["python3", "python3-venv"]),
    // Unpacks the documents of the OpenAPI corpus.
    ("command -v xz", &["xz-utils"]),
    // Unpack and build the API server of Kubernetes.
    ("command -v dpkg-source && command -v make && command -v patch", &["dpkg-dev", "make", "patch"]),
    ("command -v rsync", &["rsync"]),
    // Installed outside of the search path. The tests start servers of their own.
    ("ls /usr/lib/postgresql/*/bin/postgres", &["postgresql"]),
    // Message brokers. The tests start servers of their own.
    ("PATH=$PATH:/usr/sbin command -v nats-server", &["nats-server"]),
    ("ls /usr/lib/rabbitmq/lib/*/sbin/rabbitmq-server", &["rabbitmq-server"]),
    // Sets the link of a network down, whose packets are lost then.
    ("ls /usr/sbin/ip", &["iproute2"]),
    // Reads templates from a system folder, so that it cannot be unpacked elsewhere.
    ("command -v prometheus-alertmanager", &["prometheus-alertmanager"]),
    // Renders pages for `web_browse`, and tests the console.
    ("command -v chromium", &["chromium"]),
    // Read and strip the binary of a release.
    ("command -v readelf && command -v strip", &["binutils"]),
    // Checks the unit of the Debian package.
    ("command -v systemd-analyze", &["systemd"]),
    // Run the images of a release.
    ("command -v podman && command -v crun", &["crun", "podman"]),
    // Makes roots of Debian: for an image, and to install the package in.
    ("command -v mmdebstrap", &["mmdebstrap"]),
];

const NEXTEST: [&str; 5] = ["install", "--locked", "cargo-nextest", "--version", "0.9.143"];

/// Installs the missing packages of `cargo xtask test`.
pub(crate) fn install_for_gate() -> anyhow::Result<()> {
    install_packages(&GATE_PACKAGES)?;
    // `cargo nextest` works wherever cargo installs it.
    if !process::is_successful("cargo", &["nextest", "--version"]) {
        process::run(process::cargo().args(NEXTEST))?;
    }
    Ok(())
}

/// Installs the missing packages of `cargo xtask test --full`.
pub(crate) fn install() -> anyhow::Result<()> {
    install_for_gate()?;
    install_packages(&PACKAGES)?;
    install_packages(&[NGINX])
}
