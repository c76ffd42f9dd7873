//! Scripts that exceed their limits.

use serde_json::{Value, json};

use crate::machine::{ALL, ISOLATED, TestUser, run_script};

fn limited(user: TestUser, source: &str, timeout_ms: u64, more: Value) -> Value {
    run_script(user, json!({"source": source, "timeout_ms": timeout_ms}), more)
}

#[test]
fn timed_out_script_is_killed_and_its_output_kept() {
    let scripts = [
        ("print('begun', end='')\nwhile True: pass", "begun"),
        ("print('line')\nimport time; time.sleep(100)", "line\n"),
        ("import re; print(1); re.match('(a+)+$', 'a' * 60 + 'b')", "1\n"),
        (
            "import signal\nfor s in (1, 2, 15): signal.signal(s, signal.SIG_IGN)\nprint('deaf')\nwhile True: pass",
            "deaf\n",
        ),
    ];
    let check = |user: TestUser, source: &str, output: &str| {
        let result = limited(user, source, 1000, json!({}));
        assert_eq!(
            (&result["output"], &result["exit_code"]),
            (&json!(output), &json!(-1)),
            "{user:?} {result}"
        );
        let elapsed = result["elapsed_ms"].as_f64().unwrap();
        assert!((1000.0..4000.0).contains(&elapsed), "{user:?} {result}");
    };
    std::thread::scope(|scope| {
        for user in ALL {
            scope.spawn(move || scripts.map(|(source, output)| check(user, source, output)));
        }
    });
}

#[test]
fn endless_output_is_truncated() {
    let script = "
import sys
while True:
    sys.stdout.write('é' * 1000); sys.stderr.write('ü' * 1000)";
    for user in ALL {
        let result = limited(user, script, 1000, json!({"output_bytes": 4096}));
        let (output, stderr) = (result["output"].as_str().unwrap(), result["stderr"].as_str().unwrap());
        assert!(output.starts_with("éé") && output.ends_with(" more bytes]\n"), "{output}");
        assert!(stderr.starts_with("[truncated: ") && stderr.ends_with("üü"), "{stderr}");
        assert!(output.len() < 4200 && stderr.len() < 4200);
        assert_eq!(result["exit_code"], -1);
    }
}

#[test]
fn end_of_a_long_traceback_is_kept() {
    let script = "import sys\nprint('x' * 10000, file=sys.stderr)\nraise ValueError('last words')";
    let result = limited(TestUser::Root, script, 10_000, json!({"output_bytes": 4096}));
    assert!(result["stderr"].as_str().unwrap().ends_with("ValueError: last words\n"), "{result}");
}

#[test]
fn script_above_its_memory_limit_gets_a_message() {
    let line = "The script exceeded its memory limit (64 MiB).\n";
    for user in ALL {
        let result = limited(user, "print(1)\nb'x' * (1 << 30)", 10_000, json!({"memory_mib": 64}));
        assert!(result["stderr"].as_str().unwrap().ends_with(line), "{user:?} {result}");
        assert_eq!((&result["output"], &result["exit_code"]), (&json!("1\n"), &json!(1)));
    }
}

/// Eight processes that exceed the memory limit together, and their parent, which waits for the remaining ones.
fn eight(seconds: u32) -> String {
    format!(
        "
import os, time
for _ in range(8):
    if os.fork() == 0:
        block = bytearray(b'x') * (40 << 20)
        time.sleep({seconds})
        os._exit(0)
for _ in range(8): os.wait()"
    )
}

#[test]
fn script_processes_above_the_memory_limit_are_killed() {
    let line = "Killed: the script exceeded its memory limit (128 MiB).\n";
    for user in ISOLATED {
        let result = limited(user, &eight(2), 20_000, json!({"memory_mib": 128}));
        assert_eq!(
            (&result["stderr"], &result["exit_code"]),
            (&json!(line), &json!(137)),
            "{user:?} {result}"
        );
    }
    // The system may kill some processes, for which the script waits, or all at once.
    let result = limited(TestUser::Root, &eight(1000), 3000, json!({"memory_mib": 128}));
    let code = result["exit_code"].as_i64().unwrap();
    assert!(result["stderr"] == line && (code == -1 || code == 137), "{result}");
}

#[test]
fn number_of_script_processes_is_limited() {
    let script = "
import os, time
children = 0
try:
    while True:
        if os.fork() == 0: time.sleep(100)
        children += 1
except OSError as error:
    print(children, error.strerror)";
    for user in ISOLATED {
        let result = limited(user, script, 10_000, json!({"processes": 16}));
        let output = result["output"].as_str().unwrap();
        let children: u32 = output.split(' ').next().unwrap().parse().unwrap_or(99);
        assert!(output.ends_with(" Resource temporarily unavailable\n"), "{user:?} {result}");
        assert!((10..=16).contains(&children), "{user:?} {result}");
    }
}

#[test]
fn script_above_its_disk_limit_gets_a_message() {
    let script = "
with open('large', 'wb') as file:
    for _ in range(100): file.write(b'x' * (1 << 20))";
    for user in ALL {
        let result = limited(user, script, 10_000, json!({"disk_kib": 8192}));
        let stderr = result["stderr"].as_str().unwrap();
        let why = if user == TestUser::Unprotected { "File too large" } else { "No space left on device" };
        assert!(stderr.contains(why), "{user:?} {result}");
        assert!(stderr.ends_with("\nThe script exceeded its disk limit (8 MiB).\n"), "{user:?} {result}");
        assert_eq!(result["exit_code"], 1);
    }
}

#[test]
fn script_longer_than_its_disk_limit_runs() {
    let source = format!("print(1)\n#{}\nraise ValueError", "x".repeat(80 << 10));
    let result = limited(TestUser::Root, &source, 10_000, json!({"disk_kib": 64}));
    let stderr =
        "Traceback (most recent call last):\n  File \"script.py\", line 3, in <module>\nValueError\n";
    assert_eq!((&result["output"], &result["stderr"]), (&json!("1\n"), &json!(stderr)), "{result}");
}
