//! Who runs cells on which terms, and the binary that does.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// An ordinary user. Not the one that root's cells run as.
pub(crate) const USER: u32 = 65533;

/// In the environment of the gateway, and nowhere else.
pub(crate) const CANARY: &str = "canary-7f3a1c";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Root, with all walls.
    Root,
    /// A user to whom a cgroup was given, with all walls.
    Delegated,
    /// A user to whom none was given, with the walls that there are.
    Ordinary,
    /// A user on a machine that gives no namespaces: Landlock and seccomp are all there is.
    WithoutNamespaces,
    /// Root without walls, to see that an attempt would succeed.
    Unprotected,
}

/// The groups of a user, one in each hierarchy, below those of this process.
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
            chown(folder, Some(USER), Some(USER)).unwrap();
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

/// Runs a request as somebody; gives what the binary says.
pub(crate) fn run(who: Who, mut request: Value) -> Value {
    assert!(rustix::process::geteuid().is_root(), "these tests become other users: run them as root");
    let delegation = (who == Who::Delegated).then(|| Delegation::make(&unique()));
    if let Some(Delegation { name, .. }) = &delegation {
        request["cgroup_root"] = json!(name);
    }
    match who {
        Who::Root | Who::Delegated => {}
        Who::Ordinary | Who::WithoutNamespaces => request["isolation"] = json!("best-effort"),
        Who::Unprotected => request["isolation"] = json!("none"),
    }
    said(who, &request)
}

/// What the binary says to a request as it is.
pub(crate) fn said(who: Who, request: &Value) -> Value {
    let binary = env!("CARGO_BIN_EXE_toolyard-cell");
    let mut command = match who {
        Who::Root | Who::Unprotected => process(binary),
        Who::Delegated | Who::Ordinary => {
            let mut command = process("setpriv");
            command.arg(format!("--reuid={USER}")).arg(format!("--regid={USER}"));
            command.args(["--clear-groups", binary]);
            command
        }
        Who::WithoutNamespaces => {
            // In a namespace in which no others can be made. There its one user is called root, and is not.
            let mut command = process("setpriv");
            command.arg(format!("--reuid={USER}")).arg(format!("--regid={USER}"));
            command.args(["--clear-groups", "unshare", "--user", "--map-root-user", "sh", "-c"]);
            let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
            command.args([script, "sh", binary]);
            command
        }
    };
    command.arg(request.to_string()).env("GATEWAY_SECRET", CANARY).current_dir("/").stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let log = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?} {log:?}"))
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

/// A Python program.
pub(crate) fn python(script: &str, args: &[String]) -> Value {
    let mut all = vec!["-I".to_owned(), "-c".to_owned(), script.to_owned()];
    all.extend_from_slice(args);
    json!({"Exec": {"command": "/usr/bin/python3", "args": all}})
}
