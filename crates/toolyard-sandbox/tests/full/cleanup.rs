//! Clean-up after a killed gateway.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::json;
use toolyard_testing::process::{is_named_running, unique_word};
use toolyard_testing::wait::until;

use crate::machine::{TestUser, gateway, process, python, run};

/// Number of groups of a gateway.
fn groups(of: u32) -> usize {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    let line = own.lines().find(|line| line.split(':').nth(1) == Some("memory")).unwrap();
    let path = line.splitn(3, ':').nth(2).unwrap().trim_start_matches('/');
    let entries = fs::read_dir(Path::new("/sys/fs/cgroup/memory").join(path)).unwrap().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(&format!("toolyard-{of}-"))).count()
}

#[test]
fn nothing_outlives_a_killed_gateway() {
    let token = format!("orphan-{}", unique_word());
    let script = format!("import os; os.execv('/usr/bin/sleep', ['{token}', '1000'])");
    let request = json!({"program": python(&script, &[]), "deadline_ms": 100_000});
    let mut gateway = process(env!("CARGO_BIN_EXE_toolyard-sandbox-run"));
    let mut gateway = gateway.arg(request.to_string()).stdout(Stdio::null()).spawn().unwrap();
    until("it runs", || is_named_running(&token));
    let id = gateway.id();
    assert_eq!(groups(id), 1);
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    until("it ends", || !is_named_running(&token));
    // The next gateway removes the groups. (That of another test may have done so already.)
    run(TestUser::Root, json!({}));
    assert_eq!(groups(id), 0);
}

#[test]
fn folders_of_a_killed_gateway_are_removed_at_the_next_start() {
    let temporary = tempfile::tempdir().unwrap();
    std::fs::set_permissions(temporary.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let entries =
        || fs::read_dir(temporary.path()).unwrap().flatten().map(|entry| entry.path()).collect::<Vec<_>>();
    let token = format!("left-{}", unique_word());
    let script = format!(
        "import os; open('x', 'w').close(); os.mkdir('y', 0); os.execv('/usr/bin/sleep', ['{token}', '1000'])"
    );
    let binary = [env!("CARGO_BIN_EXE_toolyard-sandbox-run")];
    let request = |script: &str| json!({"isolation": "best-effort", "program": python(script, &[])});
    let start = |script: &str| {
        let mut command = gateway(TestUser::WithoutNamespaces, &binary, &request(script));
        command.env("TMPDIR", temporary.path()).stdout(Stdio::piped());
        command
    };
    let mut killed = start(&script).spawn().unwrap();
    until("it runs", || is_named_running(&token));
    killed.kill().unwrap();
    killed.wait().unwrap();
    until("it ends", || !is_named_running(&token));
    let before = entries();
    assert_eq!(before.len(), 1, "{before:?}");
    let next = start("print(1)").output().unwrap();
    assert!(String::from_utf8_lossy(&next.stdout).contains("1\\n"), "{next:?}");
    assert_eq!(entries(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn uids_of_a_killed_gateway_are_released() {
    let token = format!("uids-{}", unique_word());
    let script = format!("import os; os.execv('/usr/bin/sleep', ['{token}', '1000'])");
    // The range has a single uid, which no other test uses.
    let request = |script: &str| json!({"uids": [1_900_000_000, 1], "program": python(script, &[])});
    let mut first = gateway(TestUser::Root, &[env!("CARGO_BIN_EXE_toolyard-sandbox-run")], &request(&script));
    let mut first = first.stdout(Stdio::null()).spawn().unwrap();
    until("it runs", || is_named_running(&token));
    let error = run(TestUser::Root, request("print(1)"))["error"].clone();
    assert_eq!(error, "cannot allocate a uid");
    first.kill().unwrap();
    first.wait().unwrap();
    until("it ends", || !is_named_running(&token));
    assert_eq!(run(TestUser::Root, request("print(1)"))["out"], "1\n");
}
