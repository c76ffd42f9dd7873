//! Users of the tests, and the test binary that they run.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// An ordinary user, other than that of root's sandboxes.
const USER: u32 = 65533;

/// Value in the environment of the gateway only.
pub(crate) const CANARY: &str = "canary-91d4e0";

/// Test binary in the role of the gateway.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_toolyard-script");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestUser {
    /// Root, with all layers.
    Root,
    /// A user without a cgroup, with the available layers.
    Ordinary,
    /// An ordinary user with a range in `/etc/subuid` and `/etc/subgid`.
    Subordinate,
    /// Root without isolation.
    Unprotected,
}

/// Installer of packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstallerKind {
    Pip,
    Uv,
}

impl InstallerKind {
    pub(crate) const BOTH: [Self; 2] = [Self::Pip, Self::Uv];

    /// Path of uv, if this is uv.
    pub(crate) fn uv(self) -> Option<PathBuf> {
        (self == Self::Uv).then(uv)
    }
}

/// Returns the path of uv, which is one of the peers.
fn uv() -> PathBuf {
    let peers = std::env::var_os("TOOLYARD_PEERS").unwrap_or_else(|| "target/peers".into());
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = root.join(peers).join("python/bin/uv");
    program.canonicalize().expect("uv is not installed: run `cargo xtask peer-software`")
}

pub(crate) const ALL: [TestUser; 3] = [TestUser::Root, TestUser::Ordinary, TestUser::Unprotected];

pub(crate) const ISOLATED: [TestUser; 2] = [TestUser::Root, TestUser::Ordinary];

/// Switches to an ordinary user with a name and a range, in a mount namespace.
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

/// Runs a request as a user with suitable isolation, and returns the results of its scripts.
pub(crate) fn run(user: TestUser, mut request: Value) -> Vec<Value> {
    assert!(rustix::process::geteuid().is_root(), "these tests become another user: run them as root");
    request["isolation"] = json!(match user {
        TestUser::Root => "required",
        TestUser::Ordinary | TestUser::Subordinate => "best-effort",
        TestUser::Unprotected => "none",
    });
    run_unmodified(user, &request)
}

/// Runs an unmodified request as a user.
pub(crate) fn run_unmodified(user: TestUser, request: &Value) -> Vec<Value> {
    let mut command = match user {
        TestUser::Root | TestUser::Unprotected => process(BINARY),
        TestUser::Ordinary => {
            let mut command = process("setpriv");
            command.arg(format!("--reuid={USER}")).arg(format!("--regid={USER}"));
            command.args(["--clear-groups", BINARY]);
            command
        }
        TestUser::Subordinate => {
            let mut command = process("unshare");
            command.args(["--mount", "sh", "-c", SUBORDINATE, "sh", BINARY]);
            command
        }
    };
    command.env("GATEWAY_SECRET", CANARY).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
    // Installations must ignore proxies of the environment; this one does not exist.
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env(name, "http://127.0.0.1:9");
    }
    let mut gateway = command.stderr(Stdio::inherit()).spawn().unwrap();
    gateway.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
    let output = gateway.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
}

/// Runs one script with further options.
pub(crate) fn run_script(user: TestUser, script: Value, more: Value) -> Value {
    let mut request = more;
    request["scripts"] = json!([script]);
    run(user, request).remove(0)
}

/// Runs a source.
pub(crate) fn run_source(user: TestUser, source: &str) -> Value {
    run_script(user, json!({"source": source}), json!({}))
}

#[expect(clippy::disallowed_methods, reason = "a test's own program, which it waits for")]
pub(crate) fn process(program: &str) -> Command {
    Command::new(program)
}

/// Returns a random text.
pub(crate) fn unique() -> String {
    let mut random = [0; 8];
    std::io::Read::read_exact(&mut fs::File::open("/dev/urandom").unwrap(), &mut random).unwrap();
    format!("{:016x}", u64::from_ne_bytes(random))
}

/// True if a process of this name runs on the machine.
pub(crate) fn runs(name: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|process| fs::read_to_string(process.path().join("cmdline")).ok());
    lines.any(|line| line.starts_with(name))
}

/// True if a process with these two arguments runs on the machine.
pub(crate) fn runs_with(one: &str, other: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|process| fs::read_to_string(process.path().join("cmdline")).ok());
    lines.any(|line| line.split('\0').any(|arg| arg == one) && line.split('\0').any(|arg| arg == other))
}

/// Waits for a condition.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
