//! What is left of a gateway that was killed.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::machine::{Who, process, python, run, unique};

/// Waits for what has to come.
#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn runs(word: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|process| fs::read_to_string(process.path().join("cmdline")).ok());
    lines.any(|line| line.starts_with(word))
}

/// The groups that a gateway made.
fn groups(of: u32) -> usize {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    let line = own.lines().find(|line| line.split(':').nth(1) == Some("memory")).unwrap();
    let path = line.splitn(3, ':').nth(2).unwrap().trim_start_matches('/');
    let entries = fs::read_dir(Path::new("/sys/fs/cgroup/memory").join(path)).unwrap().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(&format!("toolyard-{of}-"))).count()
}

#[test]
fn nothing_outlives_a_gateway_that_is_killed() {
    let token = format!("orphan-{}", unique());
    let script = format!("import os; os.execv('/usr/bin/sleep', ['{token}', '1000'])");
    let request = json!({"program": python(&script, &[]), "deadline_ms": 100_000});
    let mut gateway = process(env!("CARGO_BIN_EXE_toolyard-cell"));
    let mut gateway = gateway.arg(request.to_string()).stdout(Stdio::null()).spawn().unwrap();
    until("it runs", || runs(&token));
    let id = gateway.id();
    assert_eq!(groups(id), 1);
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    until("it ends", || !runs(&token));
    // The next gateway removes what is left of this one. (One of another test may have done so already.)
    run(Who::Root, json!({}));
    assert_eq!(groups(id), 0);
}
