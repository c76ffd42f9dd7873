//! Users of the tests, and the test binary that they run.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use toolyard_testing::process::unique_word;
use toolyard_testing::users::{self, ORDINARY_USER};

/// Value in the environment of the gateway only.
pub(crate) const CANARY: &str = "canary-7f3a1c";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestUser {
    /// Root, with all layers.
    Root,
    /// A user with a delegated cgroup, with all layers.
    Delegated,
    /// A user without a cgroup, with the available layers.
    Ordinary,
    /// An ordinary user with a range in `/etc/subuid` and `/etc/subgid`.
    Subordinate,
    /// A user without permission to create namespaces: only Landlock and seccomp are available.
    WithoutNamespaces,
    /// Root without isolation, to check that an attempt would succeed.
    Unprotected,
    /// A user without isolation, for limits that do not apply to root.
    UnprotectedUser,
}

/// Cgroups of a user, one in each hierarchy, below those of this process.
pub(crate) struct Delegation {
    pub(crate) name: String,
    folders: Vec<PathBuf>,
}

impl Delegation {
    pub(crate) fn make(tag: &str) -> Self {
        let name = format!("toolyard-test-{}-{tag}", std::process::id());
        let own = fs::read_to_string("/proc/self/cgroup").unwrap();
        let folder = |controller: &str| {
            let line = own.lines().find(|line| line.split(':').nth(1) == Some(controller));
            let path = line.unwrap().splitn(3, ':').nth(2).unwrap();
            Path::new("/sys/fs/cgroup").join(controller).join(path.trim_start_matches('/')).join(&name)
        };
        let folders: Vec<_> = ["memory", "cpu", "pids"].into_iter().map(folder).collect();
        for folder in &folders {
            fs::create_dir(folder).unwrap();
            chown(folder, Some(ORDINARY_USER), Some(ORDINARY_USER)).unwrap();
        }
        Self { name, folders }
    }
}

impl Drop for Delegation {
    fn drop(&mut self) {
        for folder in &self.folders {
            for child in fs::read_dir(folder).into_iter().flatten().flatten() {
                let _a_file = fs::remove_dir(child.path());
            }
            let _in_use = fs::remove_dir(folder);
        }
    }
}

/// Runs a request as a user with suitable isolation, and returns the output of the binary.
pub(crate) fn run(user: TestUser, mut request: Value) -> Value {
    users::assert_root();
    let delegation = (user == TestUser::Delegated).then(|| Delegation::make(&unique_word()));
    if let Some(Delegation { name, .. }) = &delegation {
        request["cgroup_root"] = json!(name);
    }
    match user {
        TestUser::Root | TestUser::Delegated => {}
        TestUser::Ordinary | TestUser::Subordinate | TestUser::WithoutNamespaces => {
            request["isolation"] = json!("best-effort")
        }
        TestUser::Unprotected | TestUser::UnprotectedUser => request["isolation"] = json!("none"),
    }
    run_unmodified(user, &request)
}

/// Runs an unmodified request as a user.
pub(crate) fn run_unmodified(user: TestUser, request: &Value) -> Value {
    output(&mut gateway(user, &[env!("CARGO_BIN_EXE_toolyard-sandbox-run")], request))
}

/// Runs a request on a simulated kernel without some system calls.
pub(crate) fn run_without_calls(user: TestUser, calls: &[i64], request: &Value) -> Value {
    let calls = calls.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let command = ["/usr/bin/python3", "-c", HIDE_CALLS, &calls, env!("CARGO_BIN_EXE_toolyard-sandbox-run")];
    output(&mut gateway(user, &command, request))
}

/// Installs a filter that answers `ENOSYS` to calls, including `prctl(PR_SET_SECCOMP)` with `seccomp`.
const HIDE_CALLS: &str = r"
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
calls = [int(call) for call in sys.argv[1].split()]
step = lambda code, yes, no, value: struct.pack('=HBBI', code, yes, no, value)
load, equal, end = 0x20, 0x15, 0x06
refuse, allow = 0x50000 | 38, 0x7fff0000
program = step(load, 0, 0, 0)
for call in calls: program += step(equal, 0, 1, call) + step(end, 0, 0, refuse)
program += step(end, 0, 0, allow)
buffer = ctypes.create_string_buffer(program, len(program))
filter = struct.pack('HxxxxxxP', len(program) // 8, ctypes.addressof(buffer))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, filter, 0, 0) == 0
os.execv(sys.argv[2], sys.argv[2:])
";

/// Returns a command that runs the binary as a user with a request.
pub(crate) fn gateway(user: TestUser, binary: &[&str], request: &Value) -> Command {
    let mut command = match user {
        TestUser::Root | TestUser::Unprotected => {
            let mut command = process(binary[0]);
            command.args(&binary[1..]);
            command
        }
        TestUser::Delegated | TestUser::Ordinary => users::as_user(ORDINARY_USER, binary),
        // A separate uid, because its processes are counted.
        TestUser::UnprotectedUser => users::as_user(65532, binary),
        TestUser::Subordinate => users::as_subordinate(binary),
        TestUser::WithoutNamespaces => users::as_user_without_namespaces(binary),
    };
    command.arg(request.to_string()).env("GATEWAY_SECRET", CANARY).current_dir("/").stdin(Stdio::null());
    command
}

fn output(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let log = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?} {log:?}"))
}

#[expect(clippy::disallowed_methods, reason = "a test's own program, which it waits for")]
pub(crate) fn process(program: &str) -> Command {
    Command::new(program)
}

/// Returns a Python program.
pub(crate) fn python(script: &str, args: &[String]) -> Value {
    let mut all = vec!["-I".to_owned(), "-c".to_owned(), script.to_owned()];
    all.extend_from_slice(args);
    json!({"Exec": {"command": "/usr/bin/python3", "args": all}})
}
