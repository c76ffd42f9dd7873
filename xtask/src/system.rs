//! System packages that a Debian-like machine lacks when it has only a Rust toolchain.

use std::process::Command;

use crate::process;

/// A shell command that succeeds if the package is installed, and the Debian packages to install otherwise.
type SystemPackage = (&'static str, &'static [&'static str]);

const PACKAGES: [SystemPackage; 9] = [
    ("command -v node", &["nodejs"]),
    ("command -v npm", &["npm"]),
    // Debian packages the dependencies of `python3 -m venv` separately.
    ("python3 -c 'import ensurepip'", &["python3", "python3-venv"]),
    // Unpacks the documents of the OpenAPI corpus.
    ("command -v xz", &["xz-utils"]),
    // Unpack and build the API server of Kubernetes.
    ("command -v dpkg-source && command -v make && command -v patch", &["dpkg-dev", "make", "patch"]),
    ("command -v rsync", &["rsync"]),
    // Gives sandboxes of an ordinary user user IDs of their own.
    ("command -v newuidmap", &["uidmap"]),
    // Installed outside of the search path. The tests start servers of their own.
    ("ls /usr/lib/postgresql/*/bin/postgres", &["postgresql"]),
    // Reads templates from a system folder, so that it cannot be unpacked elsewhere.
    ("command -v prometheus-alertmanager", &["prometheus-alertmanager"]),
];

/// The competitor of the gateway in the bench, installed outside of an ordinary user's PATH.
const NGINX: SystemPackage = ("PATH=$PATH:/usr/sbin command -v nginx", &["nginx-light"]);

/// Counts instructions.
const VALGRIND: SystemPackage = ("command -v valgrind", &["valgrind"]);

const NEXTEST: [&str; 5] = ["install", "--locked", "cargo-nextest", "--version", "0.9.143"];

/// Installs missing packages.
pub(crate) fn install() -> anyhow::Result<()> {
    install_packages(&PACKAGES)?;
    install_nginx()?;
    // `cargo nextest` works wherever cargo installs it.
    if !process::is_successful("cargo", &["nextest", "--version"]) {
        process::run(process::cargo().args(NEXTEST))?;
    }
    Ok(())
}

/// Installs the packages of the bench.
pub(crate) fn install_nginx() -> anyhow::Result<()> {
    install_packages(&[NGINX])
}

/// Installs valgrind, which one measurement of the bench needs.
pub(crate) fn install_valgrind() -> anyhow::Result<()> {
    install_packages(&[VALGRIND])
}

fn install_packages(packages: &[SystemPackage]) -> anyhow::Result<()> {
    let missing: Vec<_> = packages.iter().filter(|(probe, _)| !shell_succeeds(probe)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.into_iter().flat_map(|(_, packages)| *packages);
    process::run(apt_get().arg("update"))?;
    process::run(apt_get().args(["install", "--yes", "--no-install-recommends"]).args(missing))
}

fn apt_get() -> Command {
    let quiet = ["DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet"];
    if shell_succeeds("test \"$(id -u)\" = 0") {
        let mut env = Command::new("env");
        env.args(quiet);
        return env;
    }
    let mut sudo = Command::new("sudo");
    sudo.arg("env").args(quiet);
    sudo
}

fn shell_succeeds(script: &str) -> bool {
    process::is_successful("sh", &["-c", script])
}
