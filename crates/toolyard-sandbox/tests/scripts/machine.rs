//! Users of the tests, and the test binary that they run.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use toolyard_testing::peers::peer;
use toolyard_testing::process::command_lines;
use toolyard_testing::users::{self, ORDINARY_USER};

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
        (self == Self::Uv).then(|| peer("python/bin/uv"))
    }
}

pub(crate) const ALL: [TestUser; 3] = [TestUser::Root, TestUser::Ordinary, TestUser::Unprotected];

pub(crate) const ISOLATED: [TestUser; 2] = [TestUser::Root, TestUser::Ordinary];

/// Runs a request as a user with suitable isolation, and returns the results of its scripts.
pub(crate) fn run(user: TestUser, mut request: Value) -> Vec<Value> {
    users::assert_root();
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
        TestUser::Ordinary => users::as_user(ORDINARY_USER, &[BINARY]),
        TestUser::Subordinate => users::as_subordinate(&[BINARY]),
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

/// True if a process with these two arguments runs on the machine.
pub(crate) fn runs_with(one: &str, other: &str) -> bool {
    command_lines()
        .iter()
        .any(|line| line.split('\0').any(|arg| arg == one) && line.split('\0').any(|arg| arg == other))
}
