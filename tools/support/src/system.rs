//! System packages of a Debian-like machine.

use std::process::Command;

use crate::process;

/// A shell command that succeeds if the package is installed, and the Debian packages to install otherwise.
pub type SystemPackage = (&'static str, &'static [&'static str]);

/// The competitor of the gateway in the bench, installed outside of an ordinary user's PATH.
pub const NGINX: SystemPackage = ("PATH=$PATH:/usr/sbin command -v nginx", &["nginx-light"]);

/// Installs those of the packages that are missing.
pub fn install_packages(packages: &[SystemPackage]) -> anyhow::Result<()> {
    let missing: Vec<_> = packages.iter().filter(|(probe, _)| !shell_succeeds(probe)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.into_iter().flat_map(|(_, packages)| *packages);
    process::run(apt_get().arg("update"))?;
    process::run(apt_get().args(["install", "--yes", "--no-install-recommends"]).args(missing))
}

/// Runs `apt-get` without starting the services of packages: the tests start servers of their own, and a service that
/// cannot start, as in a container without an init system, fails the installation of its package.
const APT_GET: &str = r#"
policy=/usr/sbin/policy-rc.d
if ! [ -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
DEBIAN_FRONTEND=noninteractive apt-get --quiet "$@"
"#;

fn apt_get() -> Command {
    let script = ["sh", "-ec", APT_GET, "apt-get"];
    if shell_succeeds("test \"$(id -u)\" = 0") {
        let mut env = Command::new("env");
        env.args(script);
        return env;
    }
    let mut sudo = Command::new("sudo");
    sudo.args(script);
    sudo
}

fn shell_succeeds(script: &str) -> bool {
    process::is_successful("sh", &["-c", script])
}
