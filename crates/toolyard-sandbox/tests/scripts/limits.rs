//! What scripts are that want more than they may have.

use serde_json::{Value, json};

use crate::machine::{ALL, WALLED, Who, once};

fn limited(who: Who, source: &str, timeout_ms: u64, more: Value) -> Value {
    once(who, json!({"source": source, "timeout_ms": timeout_ms}), more)
}

#[test]
fn a_script_that_takes_too_long_is_killed_and_what_it_wrote_is_kept() {
    let scripts = [
        ("print('begun', end='')\nwhile True: pass", "begun"),
        ("print('line')\nimport time; time.sleep(100)", "line\n"),
        ("import re; print(1); re.match('(a+)+$', 'a' * 60 + 'b')", "1\n"),
        (
            "import signal\nfor s in (1, 2, 15): signal.signal(s, signal.SIG_IGN)\nprint('deaf')\nwhile True: pass",
            "deaf\n",
        ),
    ];
    let check = |who: Who, source: &str, output: &str| {
        let ended = limited(who, source, 1000, json!({}));
        assert_eq!((&ended["output"], &ended["exit_code"]), (&json!(output), &json!(-1)), "{who:?} {ended}");
        let elapsed = ended["elapsed_ms"].as_f64().unwrap();
        assert!((1000.0..4000.0).contains(&elapsed), "{who:?} {ended}");
    };
    std::thread::scope(|scope| {
        for who in ALL {
            scope.spawn(move || scripts.map(|(source, output)| check(who, source, output)));
        }
    });
}

#[test]
fn endless_output_is_cut_and_is_no_harm() {
    let script = "
import sys
while True:
    sys.stdout.write('é' * 1000); sys.stderr.write('ü' * 1000)";
    for who in ALL {
        let ended = limited(who, script, 1000, json!({"output_bytes": 4096}));
        let (output, stderr) = (ended["output"].as_str().unwrap(), ended["stderr"].as_str().unwrap());
        assert!(output.starts_with("éé") && output.ends_with(" bytes more are not kept]\n"), "{output}");
        assert!(stderr.starts_with("[cut here: ") && stderr.ends_with("üü"), "{stderr}");
        assert!(output.len() < 4200 && stderr.len() < 4200);
        assert_eq!(ended["exit_code"], -1);
    }
}

#[test]
fn the_end_of_a_long_traceback_is_kept() {
    let script = "import sys\nprint('x' * 10000, file=sys.stderr)\nraise ValueError('last words')";
    let ended = limited(Who::Root, script, 10_000, json!({"output_bytes": 4096}));
    assert!(ended["stderr"].as_str().unwrap().ends_with("ValueError: last words\n"), "{ended}");
}

#[test]
fn a_script_that_needs_too_much_memory_is_told_so() {
    let line = "The script needed more memory than it may have (64 MiB).\n";
    for who in ALL {
        let ended = limited(who, "print(1)\nb'x' * (1 << 30)", 10_000, json!({"memory_mib": 64}));
        assert!(ended["stderr"].as_str().unwrap().ends_with(line), "{who:?} {ended}");
        assert_eq!((&ended["output"], &ended["exit_code"]), (&json!("1\n"), &json!(1)));
    }
}

/// Eight processes that need more together than they may, and their parent, which waits for those that are left.
fn eight(seconds: u32) -> String {
    format!(
        "
import os, time
for _ in range(8):
    if os.fork() == 0:
        kept = bytearray(b'x') * (40 << 20)
        time.sleep({seconds})
        os._exit(0)
for _ in range(8): os.wait()"
    )
}

#[test]
fn processes_that_need_too_much_memory_together_are_killed() {
    let line = "Killed: the script needed more memory than it may have (128 MiB).\n";
    for who in WALLED {
        let ended = limited(who, &eight(2), 20_000, json!({"memory_mib": 128}));
        assert_eq!((&ended["stderr"], &ended["exit_code"]), (&json!(line), &json!(137)), "{who:?} {ended}");
    }
    // The system may kill some and leave others, for which the script waits; or all at once.
    let ended = limited(Who::Root, &eight(1000), 3000, json!({"memory_mib": 128}));
    let code = ended["exit_code"].as_i64().unwrap();
    assert!(ended["stderr"] == line && (code == -1 || code == 137), "{ended}");
}

#[test]
fn a_script_has_so_many_processes_and_no_more() {
    let script = "
import os, time
children = 0
try:
    while True:
        if os.fork() == 0: time.sleep(100)
        children += 1
except OSError as error:
    print(children, error.strerror)";
    for who in WALLED {
        let ended = limited(who, script, 10_000, json!({"processes": 16}));
        let output = ended["output"].as_str().unwrap();
        let children: u32 = output.split(' ').next().unwrap().parse().unwrap_or(99);
        assert!(output.ends_with(" Resource temporarily unavailable\n"), "{who:?} {ended}");
        assert!((10..=16).contains(&children), "{who:?} {ended}");
    }
}

#[test]
fn a_script_that_fills_the_disk_is_told_so() {
    let script = "
with open('large', 'wb') as file:
    for _ in range(100): file.write(b'x' * (1 << 20))";
    for who in ALL {
        let ended = limited(who, script, 10_000, json!({"disk_kib": 8192}));
        let stderr = ended["stderr"].as_str().unwrap();
        let why = if who == Who::Unprotected { "File too large" } else { "No space left on device" };
        assert!(stderr.contains(why), "{who:?} {ended}");
        assert!(stderr.ends_with("\nThe script may write at most 8 MiB to files.\n"), "{who:?} {ended}");
        assert_eq!(ended["exit_code"], 1);
    }
}

#[test]
fn a_script_that_is_longer_than_its_disk_runs() {
    let source = format!("print(1)\n#{}\nraise ValueError", "x".repeat(80 << 10));
    let ended = limited(Who::Root, &source, 10_000, json!({"disk_kib": 64}));
    let stderr =
        "Traceback (most recent call last):\n  File \"script.py\", line 3, in <module>\nValueError\n";
    assert_eq!((&ended["output"], &ended["stderr"]), (&json!("1\n"), &json!(stderr)), "{ended}");
}
