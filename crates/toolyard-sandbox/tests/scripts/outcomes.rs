//! Environment and results of scripts.

use serde_json::{Value, json};

use crate::machine::{ALL, TestUser, run, run_script, run_source};

/// Source, standard output, standard error and exit code.
type Case = (&'static str, &'static str, &'static str, i32);

const CASES: [Case; 18] = [
    ("print('hello')", "hello\n", "", 0),
    ("", "", "", 0),
    ("print('ü 🙂', end='')", "ü 🙂", "", 0),
    ("import sys; sys.stdout.buffer.write(b'a\\xffb')", "a\u{fffd}b", "", 0),
    ("import sys; print('out'); print('log', file=sys.stderr)", "out\n", "log\n", 0),
    ("import sys; print(repr(sys.stdin.read()), input)", "'' <built-in function input>\n", "", 0),
    ("print(__name__, sorted(name for name in globals() if name[0] != '_'))", "__main__ []\n", "", 0),
    ("import sys; print(sys.argv, sys.flags.utf8_mode)", "['script.py'] 1\n", "", 0),
    ("exit(0)", "", "", 0),
    ("import sys; sys.exit(3)", "", "", 3),
    ("exit(125)", "", "", 125),
    ("import sys; sys.exit('no luck')", "", "no luck\n", 1),
    ("import os; os.kill(os.getpid(), 9)", "", "", 137),
    ("import os; os.kill(os.getpid(), 15)", "", "", 143),
    ("import signal; signal.raise_signal(signal.SIGSEGV)", "", "", 139),
    (
        "def f():\n    raise ValueError('é')\n\nf()",
        "",
        "Traceback (most recent call last):\n  File \"script.py\", line 4, in <module>\n    f()\n  \
         File \"script.py\", line 2, in f\n    raise ValueError('é')\nValueError: é\n",
        1,
    ),
    (
        "x = 1\ny = (",
        "",
        "  File \"script.py\", line 2\n    y = (\n        ^\nSyntaxError: '(' was never closed\n",
        1,
    ),
    ("import six", "", "ModuleNotFoundError: No module named 'six'\n", 1),
];

#[test]
fn output_and_exit_code_are_reported() {
    let scripts: Vec<_> = CASES.iter().map(|case| json!({"source": case.0})).collect();
    for user in ALL {
        let result = run(user, json!({"scripts": scripts}));
        for ((source, output, stderr, code), result) in CASES.iter().zip(result) {
            let actual_stderr = result["stderr"].as_str().unwrap_or_default();
            let is_expected = result["output"] == *output && result["exit_code"] == *code;
            // Of longer tracebacks only the last line is checked.
            let has_stderr =
                if stderr.is_empty() { actual_stderr.is_empty() } else { actual_stderr.ends_with(stderr) };
            assert!(is_expected && has_stderr, "{user:?} {source:?}: {result}");
        }
    }
}

#[test]
fn script_cannot_forge_a_refusal() {
    let text = "
import os, sys
sys.stderr.write('toolyard: cannot set up the sandbox: no luck\\n')
os._exit(125)";
    for user in ALL {
        let result = run_source(user, text);
        assert_eq!(result["exit_code"], 125, "{user:?} {result}");
    }
}

#[test]
fn input_is_in_two_variables() {
    let source = "
import hashlib, os
one, two = os.environ['TOOLYARD_INPUT'], os.environ['ROCKBOT_INPUT']
print(one == two, len(one), hashlib.sha256(one.encode()).hexdigest()[:16], one[:8])";
    let long = "0123456789ü🙂".repeat(1 << 16);
    assert_eq!(long.len(), 1 << 20);
    let inputs = [
        (Value::Null, "True 0 e3b0c44298fc1c14 \n"),
        (json!(""), "True 0 e3b0c44298fc1c14 \n"),
        (json!("{\"a\": 1}"), "True 8 f9d86028c6e0d64e {\"a\": 1}\n"),
        (json!("ü 🙂\n"), "True 4 974920fc8f292564 ü 🙂\n\n"),
        (json!(long), "True 786432 d4f0d86fe0a391e3 01234567\n"),
    ];
    let scripts: Vec<_> = inputs.iter().map(|(input, _)| json!({"source": source, "input": input})).collect();
    for user in ALL {
        let result = run(user, json!({"scripts": scripts}));
        for ((_, output), result) in inputs.iter().zip(result) {
            assert_eq!(result["output"], *output, "{user:?} {result}");
        }
    }
}

#[test]
fn script_with_a_long_input_can_start_programs() {
    let text = "
import os, subprocess, sys
own = os.environ['TOOLYARD_INPUT']
there = os.getenv('ROCKBOT_INPUT') == os.environb[b'TOOLYARD_INPUT'].decode() == own
count = 'import os; print(len(os.environ.get(\"TOOLYARD_INPUT\", \"\")))'
heirs = [
    subprocess.run([sys.executable, '-c', count], capture_output=True, text=True).stdout.strip(),
    os.popen('printf ${#ROCKBOT_INPUT}').read(),
]
print(len(own), there, *heirs)
del os.environ['TOOLYARD_INPUT']
print('TOOLYARD_INPUT' in os.environ)";
    let inputs = [
        (120 << 10, "122880 True 122880 122880"),
        ((120 << 10) + 1, "122881 True 0 0"),
        (1 << 20, "1048576 True 0 0"),
    ];
    let scripts: Vec<_> =
        inputs.iter().map(|(bytes, _)| json!({"source": text, "input": "x".repeat(*bytes)})).collect();
    for user in ALL {
        let result = run(user, json!({"scripts": scripts}));
        for ((_, output), result) in inputs.iter().zip(result) {
            assert_eq!(result["output"], format!("{output}\nFalse\n"), "{user:?} {result}");
        }
    }
}

#[test]
fn script_and_input_are_hidden_from_other_users() {
    let source = "
import glob
shown = ''
for path in glob.glob('/proc/[0-9]*/cmdline') + glob.glob('/proc/[0-9]*/environ'):
    try: shown += open(path, errors='replace').read()
    except OSError: pass
print('xyzzy-' + 'source' in shown, 'xyzzy-' + 'input' in shown, 'python3' in shown)
# xyzzy-source";
    let script = json!({"source": source, "input": "xyzzy-input"});
    let result = run_script(TestUser::Unprotected, script, json!({}));
    assert_eq!(result["output"], "False False True\n", "{result}");
}

#[test]
fn invalid_input_is_refused() {
    let script = json!({"source": "print(1)", "input": "a\u{0}b"});
    let refused = run_script(TestUser::Root, script, json!({}));
    assert_eq!(refused["code"], "invalid_arguments", "{refused}");
    let script = json!({"source": "print(1)", "input": "x".repeat(5 << 20)});
    let refused = run_script(TestUser::Root, script, json!({"memory_mib": 32}));
    assert_eq!(
        refused,
        json!({
            "code": "invalid_arguments",
            "message": "The script and its input have 5242888 bytes; the maximum is 4 MiB",
        })
    );
}

#[test]
fn script_can_have_several_processes() {
    let text = "
import multiprocessing, subprocess, sys
def square(x): return x * x
if __name__ == '__main__':
    for how in ('fork', 'spawn'):
        with multiprocessing.get_context(how).Pool(2) as pool: print(pool.map(square, [1, 2, 3]))
    print(subprocess.run(['cat'], capture_output=True).stdout, subprocess.check_output(['echo', 'x']))";
    for user in ALL {
        let result = run_source(user, text);
        assert_eq!(result["output"], "[1, 4, 9]\n[1, 4, 9]\nb'' b'x\\n'\n", "{user:?} {result}");
    }
}

#[test]
fn scripts_share_no_state() {
    let text = "
import os
print(sorted(os.listdir('.')), os.environ['HOME'] == os.getcwd(), 'MINE' in os.environ)
open('mine', 'w').write('x'); os.makedirs('a/b'); os.environ['MINE'] = '1'";
    for user in ALL {
        let result = run(user, json!({"scripts": [{"source": text}, {"source": text}, {"source": text}]}));
        for result in result {
            assert_eq!(result["output"], "['script.py'] True False\n", "{user:?} {result}");
        }
    }
}

#[test]
fn missing_python_is_reported() {
    for python in ["/no/such/python", "no-such-python"] {
        for user in ALL {
            let refused = run_script(user, json!({"source": "print(1)"}), json!({"python": python}));
            assert_eq!(
                refused,
                json!({
                    "code": "unavailable",
                    "message": "The script was not run: start the program: No such file or directory (os error 2)",
                }),
                "{user:?}"
            );
        }
    }
}
