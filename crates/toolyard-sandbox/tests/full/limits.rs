//! Limits, and the end of programs that exceed them.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolyard_testing::process::unique_word;

use crate::machine::{TestUser, python, run};

/// Time for a supervisor to kill descendants.
const SOON: Duration = Duration::from_secs(10);

const ISOLATED: [TestUser; 4] =
    [TestUser::Root, TestUser::Delegated, TestUser::Ordinary, TestUser::Subordinate];

#[track_caller]
fn result(user: TestUser, script: &str, more: Value) -> Value {
    let mut request = json!({"program": python(script, &[])});
    for (name, value) in more.as_object().unwrap() {
        request[name] = value.clone();
    }
    run(user, request)
}

/// Checks output and outcome for all users whose limits are enforced or watched.
#[track_caller]
fn check(script: &str, more: &Value, out: &str, outcome: &str) {
    for user in ISOLATED {
        let result = result(user, script, more.clone());
        assert_eq!(
            (result["out"].as_str(), result["outcome"].as_str()),
            (Some(out), Some(outcome)),
            "{user:?} {result}"
        );
    }
}

#[test]
fn single_process_cannot_exceed_the_memory_limit() {
    let script = "
try:
    b'x' * (1 << 30)
    print('ESCAPED')
except MemoryError:
    print('MemoryError')";
    check(script, &json!({}), "MemoryError\n", "Exited(0)");
}

#[test]
fn processes_that_exceed_the_memory_limit_together_are_killed() {
    let script = "
import os, sys, time
for _ in range(8):
    if os.fork() == 0:
        blocks = bytearray(b'x') * (150 << 20)
        time.sleep(1)
        os._exit(0)
statuses = [os.wait()[1] for _ in range(8)]
# With a cgroup of version 1 the system kills as many as it has to.
print('ESCAPED' if not any(statuses) else 'killed')";
    for user in ISOLATED.into_iter().chain([TestUser::WithoutNamespaces]) {
        let result = result(user, script, json!({}));
        assert_eq!(result["outcome"], "OutOfMemory", "{user:?} {result}");
        assert_ne!(result["out"], "ESCAPED\n", "{user:?} {result}");
    }
}

#[test]
fn memfd_memory_is_limited() {
    let script = "
import os
blocks = []
try:
    for _ in range(20):
        blocks.append(os.memfd_create('x'))
        for _ in range(30):
            os.write(blocks[-1], bytes(1 << 20))
    print('ESCAPED')
except OSError as error:
    print(error.errno)";
    for user in [TestUser::Root, TestUser::Delegated] {
        let result = result(user, script, json!({}));
        assert_eq!(result["outcome"], "OutOfMemory", "{user:?} {result}");
    }
    assert_eq!(result(TestUser::Ordinary, script, json!({}))["out"], "1\n");
}

/// Eight processes that allocate kernel memory until they have 400 MiB together, or allocation fails.
const UNCOUNTED: &str = "
import mmap, os, socket, sys, time
def sockets():
    blocks = []
    allocated = 0
    while allocated < 50 << 20:
        pair = socket.socketpair()
        for end in pair:
            for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                try: end.setsockopt(socket.SOL_SOCKET, option, 1 << 22)
                except OSError: pass
            end.setblocking(False)
        blocks.append(pair)
        try:
            while allocated < 50 << 20: allocated += pair[0].send(bytes(1 << 16))
        except BlockingIOError: pass
    return blocks
def shared():
    # Pages that no process has mapped any more stay, for those that map them again.
    allocated, blocks = 0, []
    while allocated < 50 << 20:
        blocks.append(mmap.mmap(-1, 10 << 20) if where == '-1' else mmap.mmap(os.open(where, os.O_RDWR), 10 << 20))
        for place in range(0, 10 << 20, 1 << 20):
            blocks[-1][place:place + (1 << 20)] = bytes(1 << 20)
            blocks[-1].madvise(mmap.MADV_DONTNEED, place, 1 << 20)
        allocated += 10 << 20
    return blocks
how, where = HOW, WHERE
reader, writer = os.pipe()
for _ in range(8):
    if os.fork() == 0:
        resource = None
        try: resource = globals()[how]()
        except (OSError, ValueError): pass
        os.write(writer, b'y' if resource else b'n')
        time.sleep(100)
        os._exit(0)
answers = b''
while len(answers) < 8: answers += os.read(reader, 8)
# Until one of them is killed, or all are, by a look from outside.
end = time.monotonic() + 5
while answers == b'yyyyyyyy' and time.monotonic() < end:
    if os.waitpid(-1, os.WNOHANG)[0]: answers = b'killed'
    time.sleep(0.01)
print('ESCAPED' if answers == b'yyyyyyyy' else 'refused')";

/// Allocates memory that no process owns.
#[track_caller]
fn check_uncounted(how: &str, place: &str) {
    let script = UNCOUNTED.replace("HOW", &format!("'{how}'")).replace("WHERE", &format!("'{place}'"));
    let mut wrong = Vec::new();
    for user in ISOLATED.into_iter().chain([TestUser::WithoutNamespaces, TestUser::UnprotectedUser]) {
        let result = result(user, &script, json!({}));
        let is_limited = result["outcome"] == "OutOfMemory" || result["out"] == "refused\n";
        if is_limited != (user != TestUser::UnprotectedUser) {
            wrong.push(format!("{user:?}: {result}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn socket_memory_is_limited() {
    check_uncounted("sockets", "-1");
}

#[test]
fn unmapped_shared_memory_is_limited() {
    check_uncounted("shared", "-1");
}

#[test]
fn shared_memory_of_a_device_is_limited() {
    check_uncounted("shared", "/dev/zero");
}

#[test]
fn many_processes_with_few_sockets_are_permitted() {
    let script = "
import os, socket, time
for _ in range(40):
    pair = socket.socketpair()
    if os.fork() == 0:
        for end in pair: end.send(b'x')
        time.sleep(100)
time.sleep(1)
print('many', flush=True)
os._exit(0)";
    for user in ISOLATED.into_iter().chain([TestUser::WithoutNamespaces]) {
        let result = result(user, script, json!({"memory_mib": 384}));
        assert_eq!(
            (&result["out"], &result["outcome"]),
            (&json!("many\n"), &json!("Exited(0)")),
            "{user:?} {result}"
        );
    }
}

#[test]
fn sandbox_is_killed_when_the_machine_is_low_on_memory() {
    let request = json!({"least_available_mib": u64::from(u32::MAX)});
    for user in [TestUser::Ordinary, TestUser::WithoutNamespaces] {
        let result = result(user, "import time; time.sleep(1000)", request.clone());
        assert_eq!(result["outcome"], "OutOfMemory", "{user:?} {result}");
    }
}

#[test]
fn fork_bomb_stops_at_the_process_limit() {
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
fn watchdog_finds_too_many_processes() {
    let script = "
import os, time
for _ in range(300):
    if os.fork() == 0:
        time.sleep(100)
time.sleep(100)";
    let result = result(TestUser::WithoutNamespaces, script, json!({"processes": 20}));
    assert_eq!(result["outcome"], "TooManyProcesses", "{result}");
}

#[test]
fn folder_has_the_specified_size() {
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
fn single_file_cannot_exceed_the_folder_size() {
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
fn process_that_ignores_signals_is_killed() {
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
fn endless_loop_is_killed_at_the_deadline() {
    for user in ISOLATED {
        let result = result(user, "while True: pass", json!({"deadline_ms": 500}));
        assert_eq!(result["outcome"], "Killed", "{user:?}");
        assert!(result["kill_ms"].as_f64().unwrap() < 1000.0, "{user:?} {result}");
    }
}

#[test]
fn endless_output_is_read_up_to_the_limit() {
    let script = "
import os
while True: os.write(1, b'x' * 65536)";
    for user in ISOLATED {
        let result = result(user, script, json!({"deadline_ms": 500}));
        assert_eq!(result["outcome"], "Killed", "{user:?}");
        assert_eq!(result["out"].as_str().unwrap().len(), 64 << 10);
        assert!(result["out_bytes"].as_u64().unwrap() > 64 << 10);
    }
}

#[test]
fn daemon_ends_with_its_sandbox() {
    for user in ISOLATED.into_iter().chain([TestUser::WithoutNamespaces]) {
        let token = format!("daemon-{}", unique_word());
        let script = format!(
            "
import os, time
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(3): os.close(number)
        os.write(writer, b'x')
        os.execv('/usr/bin/sleep', ['{token}', '1000'])
    os._exit(0)
os.read(reader, 1)
# It has become another program when the pipe, which it does not take along, is closed.
os.close(writer)
os.read(reader, 1)
print('left')"
        );
        let result = result(user, &script, json!({}));
        assert_eq!(
            (&result["out"], &result["outcome"]),
            (&json!("left\n"), &json!("Exited(0)")),
            "{user:?} {result}"
        );
        // Without process 1 the supervisor kills it asynchronously.
        let soon = Instant::now() + SOON;
        while !on_this_machine(&token).is_empty() && Instant::now() < soon {
            std::thread::yield_now();
        }
        assert_eq!(on_this_machine(&token), Vec::<String>::new(), "{user:?}");
    }
}

/// Returns the command lines of this machine's processes that start with a word.
fn on_this_machine(word: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read_to_string(process.path().join("cmdline")).ok());
    lines.filter(|line| line.starts_with(word)).collect()
}

#[test]
fn two_processes_share_the_processor_limit() {
    let script = "
import os, time
end = time.monotonic() + 2
if os.fork() == 0:
    while time.monotonic() < end: pass
    os._exit(0)
while time.monotonic() < end: pass
os.wait()
print(sum(os.times()[:4]))";
    for user in [TestUser::Root, TestUser::Delegated] {
        let result = result(user, script, json!({}));
        let seconds: f64 = result["out"].as_str().unwrap().trim().parse().unwrap();
        assert!((0.2..1.3).contains(&seconds), "{user:?}: {seconds} s of processors in 2 s");
    }
}
