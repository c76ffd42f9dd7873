//! Files of a release in a root of Debian, which is made from its packages in a minute: `cargo xtask test --full` runs
//! these.

mod newcomer;

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use tempfile::TempDir;

use crate::release_files::{file, make, printed};
use crate::tool_list;

/// Runs within a new root, `$1`: installs the package, lists its tools as an ordinary user, and removes it.
const SESSION: &str = r#"#!/bin/sh
set -ex
root=$1 work=$2
cp "$work/toolyard.deb" "$root/toolyard.deb"
chroot "$root" dpkg --install /toolyard.deb
chroot "$root" dpkg --verify toolyard
chroot "$root" /usr/bin/toolyard --version >"$work/version"
chroot "$root" /usr/bin/toolyard check /etc/toolyard/toolyard.yaml
chroot --userspec=65534:65534 "$root" /usr/bin/env TOOLYARD_STATE_DIR=/tmp/state \
    /usr/bin/toolyard stdio -f /etc/toolyard <"$work/requests" >"$work/responses"
chroot "$root" dpkg --install /toolyard.deb
chroot "$root" dpkg --purge toolyard
find "$root/etc" "$root/usr" "$root/var/lib" -path "*toolyard*" >"$work/left"
"#;

#[test]
fn package_is_installed_upgraded_and_purged() {
    let release = make("deb");
    let work = TempDir::new().unwrap();
    let path = |name: &str| work.path().join(name);
    std::fs::set_permissions(&work, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::copy(file(&release, ".deb"), path("toolyard.deb")).unwrap();
    std::fs::write(path("requests"), tool_list::REQUESTS).unwrap();
    std::fs::write(path("session"), SESSION).unwrap();
    let mut debian = Command::new("mmdebstrap");
    debian.args(["--quiet", "--variant=essential", "--format=null", "--include=ca-certificates,libgcc-s1"]);
    debian.arg(format!(
        "--customize-hook=sh '{}' \"$1\" '{}'",
        path("session").display(),
        work.path().display()
    ));
    printed(debian.args(["trixie", "/dev/null"]));
    let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    assert_eq!(read("version"), format!("toolyard {}\n", env!("CARGO_PKG_VERSION")));
    tool_list::assert_demo(&tool_list::in_responses(&read("responses")));
    assert_eq!(read("left"), "");
}
