//! What is limited, and how programs end that want more.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::machine::{Who, python, run, unique};

/// How long a supervisor has for the end of what it looks after.
const SOON: Duration = Duration::from_secs(10);

const WALLED: [Who; 3] = [Who::Root, Who::Delegated, Who::Ordinary];

#[track_caller]
fn ended(who: Who, script: &str, more: Value) -> Value {
    let mut request = json!({"program": python(script, &[])});
    for (name, value) in more.as_object().unwrap() {
        request[name] = value.clone();
    }
    run(who, request)
}

/// What it wrote and how it ended, in each of the ways that have all limits or watch them.
#[track_caller]
fn check(script: &str, more: &Value, out: &str, verdict: &str) {
    for who in WALLED {
        let ended = ended(who, script, more.clone());
        assert_eq!(
            (ended["out"].as_str(), ended["verdict"].as_str()),
            (Some(out), Some(verdict)),
            "{who:?} {ended}"
        );
    }
}

#[test]
fn a_process_that_wants_a_gibibyte_has_none() {
    let script = "
try:
    b'x' * (1 << 30)
    print('ESCAPED')
except MemoryError:
    print('MemoryError')";
    check(script, &json!({}), "MemoryError\n", "Exited(0)");
}

#[test]
fn processes_that_want_too_much_together_are_killed() {
    let script = "
import os, sys, time
for _ in range(8):
    if os.fork() == 0:
        kept = bytearray(b'x') * (150 << 20)
        time.sleep(1)
        os._exit(0)
statuses = [os.wait()[1] for _ in range(8)]
# With a cgroup of version 1 the system kills as many as it has to.
print('ESCAPED' if not any(statuses) else 'killed')";
    for who in WALLED.into_iter().chain([Who::WithoutNamespaces]) {
        let ended = ended(who, script, json!({}));
        assert_eq!(ended["verdict"], "OutOfMemory", "{who:?} {ended}");
        assert_ne!(ended["out"], "ESCAPED\n", "{who:?} {ended}");
    }
}

#[test]
fn memory_without_a_process_is_limited_too() {
    let script = "
import os
kept = []
try:
    for _ in range(20):
        kept.append(os.memfd_create('x'))
        for _ in range(30):
            os.write(kept[-1], bytes(1 << 20))
    print('ESCAPED')
except OSError as error:
    print(error.errno)";
    for who in [Who::Root, Who::Delegated] {
        let ended = ended(who, script, json!({}));
        assert_eq!(ended["verdict"], "OutOfMemory", "{who:?} {ended}");
    }
    assert_eq!(ended(Who::Ordinary, script, json!({}))["out"], "1\n");
}

#[test]
fn a_fork_bomb_stops_at_the_limit() {
    let script = "
import errno, os, time
count = 0
try:
    while count < 300:
        if os.fork() == 0:
            time.sleep(100)
        count += 1
    print('ESCAPED')
except OSError as error:
    print(errno.errorcode[error.errno], count, flush=True)
os._exit(0)";
    check(script, &json!({"processes": 20}), "EAGAIN 19\n", "Exited(0)");
}

#[test]
fn who_has_too_many_processes_is_found_from_outside() {
    let script = "
import os, time
for _ in range(300):
    if os.fork() == 0:
        time.sleep(100)
time.sleep(100)";
    let ended = ended(Who::WithoutNamespaces, script, json!({"processes": 20}));
    assert_eq!(ended["verdict"], "TooManyProcesses", "{ended}");
}

#[test]
fn its_folder_has_the_room_that_it_was_given() {
    let script = "
import errno
written = 0
try:
    for number in range(200):
        with open(f'/tmp/{number}', 'wb') as file:
            file.write(bytes(1 << 20))
        written += 1
    print('ESCAPED')
except OSError as error:
    print(errno.errorcode[error.errno], 20 < written <= 32)";
    check(script, &json!({"disk_mib": 32}), "ENOSPC True\n", "Exited(0)");
}

#[test]
fn one_file_is_no_larger_than_all() {
    let script = "
import errno
try:
    with open('/tmp/x', 'wb') as file:
        file.seek(1 << 30)
        file.write(b'x')
    print('ESCAPED')
except OSError as error:
    print(errno.errorcode[error.errno])";
    check(script, &json!({}), "EFBIG\n", "Exited(0)");
}

#[test]
fn who_ignores_all_signals_is_killed() {
    let script = "
import signal, time
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
print('ready', flush=True)
while True: time.sleep(100)";
    check(script, &json!({"deadline_ms": 700}), "ready\n", "Killed");
}

#[test]
fn a_loop_ends_with_its_time() {
    for who in WALLED {
        let ended = ended(who, "while True: pass", json!({"deadline_ms": 500}));
        assert_eq!(ended["verdict"], "Killed", "{who:?}");
        assert!(ended["kill_ms"].as_f64().unwrap() < 1000.0, "{who:?} {ended}");
    }
}

#[test]
fn endless_output_is_read_to_its_bound() {
    let script = "
import os
while True: os.write(1, b'x' * 65536)";
    for who in WALLED {
        let ended = ended(who, script, json!({"deadline_ms": 500}));
        assert_eq!(ended["verdict"], "Killed", "{who:?}");
        assert_eq!(ended["out"].as_str().unwrap().len(), 64 << 10);
        assert!(ended["out_bytes"].as_u64().unwrap() > 64 << 10);
    }
}

#[test]
fn a_daemon_ends_with_its_cell() {
    for who in WALLED.into_iter().chain([Who::WithoutNamespaces]) {
        let token = format!("daemon-{}", unique());
        let script = format!(
            "
import os, time
told, tells = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(3): os.close(number)
        os.write(tells, b'x')
        os.execv('/usr/bin/sleep', ['{token}', '1000'])
    os._exit(0)
os.read(told, 1)
# It has become another program when the pipe, which it does not take along, is closed.
os.close(tells)
os.read(told, 1)
print('left')"
        );
        let ended = ended(who, &script, json!({}));
        assert_eq!(
            (&ended["out"], &ended["verdict"]),
            (&json!("left\n"), &json!("Exited(0)")),
            "{who:?} {ended}"
        );
        // Where there is no process 1 that takes it along, a supervisor ends it, which is asked to and not waited for.
        let soon = Instant::now() + SOON;
        while !on_this_machine(&token).is_empty() && Instant::now() < soon {
            std::thread::yield_now();
        }
        assert_eq!(on_this_machine(&token), Vec::<String>::new(), "{who:?}");
    }
}

/// The command lines of this machine's processes that have a word in them.
fn on_this_machine(word: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read_to_string(process.path().join("cmdline")).ok());
    lines.filter(|line| line.starts_with(word)).collect()
}

#[test]
fn two_processes_have_half_a_processor() {
    let script = "
import os, time
end = time.monotonic() + 2
if os.fork() == 0:
    while time.monotonic() < end: pass
    os._exit(0)
while time.monotonic() < end: pass
os.wait()
print(sum(os.times()[:4]))";
    for who in [Who::Root, Who::Delegated] {
        let ended = ended(who, script, json!({}));
        let seconds: f64 = ended["out"].as_str().unwrap().trim().parse().unwrap();
        assert!((0.2..1.3).contains(&seconds), "{who:?}: {seconds} s of processors in 2 s");
    }
}
