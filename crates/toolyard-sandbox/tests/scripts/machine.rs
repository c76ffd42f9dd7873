//! Who runs scripts on which terms, and the binary that does.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// An ordinary user. Not the one that root's cells run as.
const USER: u32 = 65533;

/// In the environment of the gateway, and nowhere else.
pub(crate) const CANARY: &str = "canary-91d4e0";

/// The binary of the tests: it stands for the gateway's.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_toolyard-script");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Root, with all walls.
    Root,
    /// A user to whom no cgroup was given, with the walls that there are.
    Ordinary,
    /// Root without walls.
    Unprotected,
}

pub(crate) const ALL: [Who; 3] = [Who::Root, Who::Ordinary, Who::Unprotected];

pub(crate) const WALLED: [Who; 2] = [Who::Root, Who::Ordinary];

/// Runs a request as somebody; gives what came of each of its scripts.
pub(crate) fn run(who: Who, mut request: Value) -> Vec<Value> {
    assert!(rustix::process::geteuid().is_root(), "these tests become another user: run them as root");
    request["isolation"] = json!(match who {
        Who::Root => "required",
        Who::Ordinary => "best-effort",
        Who::Unprotected => "none",
    });
    said(who, &request)
}

/// What the binary says to a request as it is.
pub(crate) fn said(who: Who, request: &Value) -> Vec<Value> {
    let mut command = match who {
        Who::Root | Who::Unprotected => process(BINARY),
        Who::Ordinary => {
            let mut command = process("setpriv");
            command.arg(format!("--reuid={USER}")).arg(format!("--regid={USER}"));
            command.args(["--clear-groups", BINARY]);
            command
        }
    };
    command.env("GATEWAY_SECRET", CANARY).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut gateway = command.stderr(Stdio::inherit()).spawn().unwrap();
    gateway.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
    let output = gateway.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
}

/// What came of one script.
pub(crate) fn once(who: Who, script: Value, more: Value) -> Value {
    let mut request = more;
    request["scripts"] = json!([script]);
    run(who, request).remove(0)
}

/// What came of a source.
pub(crate) fn source(who: Who, source: &str) -> Value {
    once(who, json!({"source": source}), json!({}))
}

#[expect(clippy::disallowed_methods, reason = "a test's own program, which it waits for")]
pub(crate) fn process(program: &str) -> Command {
    Command::new(program)
}

/// Of this process and this moment.
pub(crate) fn unique() -> String {
    let mut random = [0; 8];
    std::io::Read::read_exact(&mut fs::File::open("/dev/urandom").unwrap(), &mut random).unwrap();
    format!("{:016x}", u64::from_ne_bytes(random))
}

/// Whether a process of this name runs anywhere on the machine.
pub(crate) fn runs(name: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|process| fs::read_to_string(process.path().join("cmdline")).ok());
    lines.any(|line| line.starts_with(name))
}

/// Waits for what has to come.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
