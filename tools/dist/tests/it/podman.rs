//! The images, run by podman and crun with a storage of their own.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::release_files::{file, make, printed};
use crate::tool_list;

/// Unmounts the second hierarchy of cgroups, which crun refuses beside the first, in a mount namespace of its own. Only
/// root can, and only root needs to: containers of ordinary users have no cgroups on such a machine.
const PODMAN: &str =
    "mountpoint -q /sys/fs/cgroup/unified && umount /sys/fs/cgroup/unified; exec podman \"$@\"";

/// Images and containers, removed with this value.
pub(crate) struct Podman {
    storage: TempDir,
}

impl Podman {
    /// Loads an image.
    pub(crate) fn with_image(image: &Path) -> Self {
        let podman = Self { storage: TempDir::new().unwrap() };
        printed(podman.command().args(["load", "--quiet", "--input"]).arg(image));
        podman
    }

    fn command(&self) -> Command {
        let mut podman = Command::new("unshare");
        podman.args(["--mount", "sh", "-c", PODMAN, "podman"]);
        podman.arg("--root").arg(self.storage.path().join("root"));
        podman.arg("--runroot").arg(self.storage.path().join("run"));
        podman.args(["--storage-driver=overlay", "--cgroup-manager=cgroupfs"]);
        podman
    }

    /// Returns a command that runs a container with its standard input.
    pub(crate) fn run(&self, options: &[&str], image: &str) -> Command {
        let mut podman = self.command();
        podman.args(["run", "--rm", "--interactive", "--network=host"]);
        // The defaults are above the limits of a container in which the tests may run.
        podman.args(["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]);
        podman.args(options).arg(image);
        podman
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        // Files of containers belong to their users.
        self.command().args(["system", "reset", "--force"]).output().ok();
    }
}

#[test]
fn image_serves_as_an_ordinary_user() {
    let release = make("image");
    let podman = Podman::with_image(&file(&release, "-image-amd64.tar"));
    let image = concat!("localhost/toolyard:", env!("CARGO_PKG_VERSION"));
    let version = printed(podman.run(&[], image).arg("--version"));
    assert_eq!(version, format!("toolyard {}\n", env!("CARGO_PKG_VERSION")));
    tool_list::assert_demo(&tool_list::of(podman.run(&[], image).args(["stdio", "-f", "/etc/toolyard"])));
    // Beyond loopback there is no gateway without a key.
    let refusal = podman.run(&[], image).output().unwrap();
    let stderr = String::from_utf8_lossy(&refusal.stderr).into_owned();
    assert!(!refusal.status.success() && stderr.contains("key"), "{stderr}");
}
