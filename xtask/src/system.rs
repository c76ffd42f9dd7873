//! What a Debian-like machine with only a Rust toolchain lacks.

use std::process::Command;

use crate::process;

/// A shell command that succeeds where a thing is there, and the Debian packages that bring it.
type Package = (&'static str, &'static [&'static str]);

const PACKAGES: [Package; 8] = [
    ("command -v node", &["nodejs"]),
    ("command -v npm", &["npm"]),
    // Debian splits what `python3 -m venv` needs into a package of its own.
    ("python3 -c 'import ensurepip'", &["python3", "python3-venv"]),
    // What the documents of the OpenAPI corpus are packed with.
    ("command -v xz", &["xz-utils"]),
    // What the API server of Kubernetes is unpacked and built with.
    ("command -v dpkg-source && command -v make && command -v patch", &["dpkg-dev", "make", "patch"]),
    ("command -v rsync", &["rsync"]),
    // It stands where no search path leads. The tests start servers of their own.
    ("ls /usr/lib/postgresql/*/bin/postgres", &["postgresql"]),
    // It reads templates from a place of the system, so it cannot be unpacked somewhere else.
    ("command -v prometheus-alertmanager", &["prometheus-alertmanager"]),
];

/// What the bench compares with. It stands where an ordinary user's PATH does not look.
const NGINX: Package = ("PATH=$PATH:/usr/sbin command -v nginx", &["nginx-light"]);

/// What counts instructions.
const VALGRIND: Package = ("command -v valgrind", &["valgrind"]);

const NEXTEST: [&str; 5] = ["install", "--locked", "cargo-nextest", "--version", "0.9.143"];

/// Installs what is missing, and touches nothing where nothing is.
pub(crate) fn install() -> anyhow::Result<()> {
    install_packages(&PACKAGES)?;
    install_nginx()?;
    // Its name, `nextest`, is found by cargo wherever cargo installs to.
    if !process::succeeds("cargo", &["nextest", "--version"]) {
        process::run(process::cargo().args(NEXTEST))?;
    }
    Ok(())
}

/// What the bench needs.
pub(crate) fn install_nginx() -> anyhow::Result<()> {
    install_packages(&[NGINX])
}

/// What a part of the bench needs.
pub(crate) fn install_valgrind() -> anyhow::Result<()> {
    install_packages(&[VALGRIND])
}

fn install_packages(packages: &[Package]) -> anyhow::Result<()> {
    let missing: Vec<_> = packages.iter().filter(|(probe, _)| !shell(probe)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.into_iter().flat_map(|(_, packages)| *packages);
    process::run(apt_get().arg("update"))?;
    process::run(apt_get().args(["install", "--yes", "--no-install-recommends"]).args(missing))
}

fn apt_get() -> Command {
    let quiet = ["DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet"];
    if shell("test \"$(id -u)\" = 0") {
        let mut env = Command::new("env");
        env.args(quiet);
        return env;
    }
    let mut sudo = Command::new("sudo");
    sudo.arg("env").args(quiet);
    sudo
}

fn shell(script: &str) -> bool {
    process::succeeds("sh", &["-c", script])
}
