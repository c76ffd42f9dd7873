//! Commands that run as other users than that of the test, which is root.

use std::process::Command;

/// User and group id of an ordinary user, other than that of root's sandboxes.
pub const ORDINARY_USER: u32 = 65533;

/// Switches to the ordinary user with a name and a range of subordinate ids.
const SUBORDINATE: &str = r#"
set -e
mount -t tmpfs none /mnt
echo toolyard-test:x:65533:65533::/:/bin/sh > /mnt/passwd
echo toolyard-test:1500000000:1000 > /mnt/subuid
echo 65533:1600000000:1000 > /mnt/subgid
for file in passwd subuid subgid; do mount --bind /mnt/$file /etc/$file; done
umount -l /mnt
exec setpriv --reuid=65533 --regid=65533 --clear-groups "$@"
"#;

/// First uid, first gid, and length of the range of [`as_subordinate`].
pub const SUBORDINATE_RANGE: [u32; 3] = [1_500_000_000, 1_600_000_000, 1000];

/// Forbids namespaces for the rest of a shell's life, and runs its arguments.
const FORBID_NAMESPACES: &str = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";

/// Fails a test that is not run by root.
#[track_caller]
pub fn assert_root() {
    assert!(rustix::process::geteuid().is_root(), "this test becomes other users: run it as root");
}

/// Returns a command that runs as a user without groups.
pub fn as_user(id: u32, program: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.arg(format!("--reuid={id}")).arg(format!("--regid={id}")).arg("--clear-groups").args(program);
    command
}

/// Returns a command that runs as the ordinary user with a range in `/etc/subuid` and `/etc/subgid`, which are replaced
/// for this command alone.
pub fn as_subordinate(program: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", SUBORDINATE, "sh"]).args(program);
    command
}

/// Returns a command that runs in a user namespace that permits no further ones. Its only user is named root but has no
/// privileges.
pub fn as_user_without_namespaces(program: &[&str]) -> Command {
    let mut command = as_user(ORDINARY_USER, &["unshare", "--user", "--map-root-user", "sh", "-c"]);
    command.args([FORBID_NAMESPACES, "sh"]).args(program);
    command
}
