//! What a script finds, and what its caller reads.

use serde_json::{Value, json};

use crate::machine::{ALL, Who, once, run, source};

/// The source, its standard output, its standard error and its status.
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
fn what_a_script_writes_and_how_it_ends_is_told() {
    let scripts: Vec<_> = CASES.iter().map(|case| json!({"source": case.0})).collect();
    for who in ALL {
        let ended = run(who, json!({"scripts": scripts}));
        for ((source, output, stderr, code), ended) in CASES.iter().zip(ended) {
            let told = ended["stderr"].as_str().unwrap_or_default();
            let is_as_said = ended["output"] == *output && ended["exit_code"] == *code;
            // Of longer tracebacks the last line is what matters.
            let is_told = if stderr.is_empty() { told.is_empty() } else { told.ends_with(stderr) };
            assert!(is_as_said && is_told, "{who:?} {source:?}: {ended}");
        }
    }
}

#[test]
fn a_script_that_claims_that_it_was_not_run_has_run() {
    let text = "
import os, sys
sys.stderr.write('toolyard: cannot put up the walls of a cell: no luck\\n')
os._exit(125)";
    for who in ALL {
        let ended = source(who, text);
        assert_eq!(ended["exit_code"], 125, "{who:?} {ended}");
    }
}

#[test]
fn a_script_has_its_input_in_two_variables() {
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
    for who in ALL {
        let ended = run(who, json!({"scripts": scripts}));
        for ((_, output), ended) in inputs.iter().zip(ended) {
            assert_eq!(ended["output"], *output, "{who:?} {ended}");
        }
    }
}

#[test]
fn a_script_with_a_long_input_starts_programs() {
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
    for who in ALL {
        let ended = run(who, json!({"scripts": scripts}));
        for ((_, output), ended) in inputs.iter().zip(ended) {
            assert_eq!(ended["output"], format!("{output}\nFalse\n"), "{who:?} {ended}");
        }
    }
}

#[test]
fn neither_a_script_nor_its_input_is_shown_to_others_of_the_machine() {
    let source = "
import glob
shown = ''
for path in glob.glob('/proc/[0-9]*/cmdline') + glob.glob('/proc/[0-9]*/environ'):
    try: shown += open(path, errors='replace').read()
    except OSError: pass
print('xyzzy-' + 'source' in shown, 'xyzzy-' + 'input' in shown, 'python3' in shown)
# xyzzy-source";
    let script = json!({"source": source, "input": "xyzzy-input"});
    let ended = once(Who::Unprotected, script, json!({}));
    assert_eq!(ended["output"], "False False True\n", "{ended}");
}

#[test]
fn an_input_that_no_script_can_have_is_refused() {
    let script = json!({"source": "print(1)", "input": "a\u{0}b"});
    let refused = once(Who::Root, script, json!({}));
    assert_eq!(refused["code"], "invalid_arguments", "{refused}");
    let script = json!({"source": "print(1)", "input": "x".repeat(5 << 20)});
    let refused = once(Who::Root, script, json!({"memory_mib": 32}));
    assert_eq!(
        refused,
        json!({
            "code": "invalid_arguments",
            "message": "The script and its input are 5242888 bytes, and may be 4 MiB together",
        })
    );
}

#[test]
fn a_script_can_be_of_several_processes() {
    let text = "
import multiprocessing, subprocess, sys
def square(x): return x * x
if __name__ == '__main__':
    for how in ('fork', 'spawn'):
        with multiprocessing.get_context(how).Pool(2) as pool: print(pool.map(square, [1, 2, 3]))
    print(subprocess.run(['cat'], capture_output=True).stdout, subprocess.check_output(['echo', 'x']))";
    for who in ALL {
        let ended = source(who, text);
        assert_eq!(ended["output"], "[1, 4, 9]\n[1, 4, 9]\nb'' b'x\\n'\n", "{who:?} {ended}");
    }
}

#[test]
fn nothing_is_kept_from_one_script_to_the_next() {
    let text = "
import os
print(sorted(os.listdir('.')), os.environ['HOME'] == os.getcwd(), 'MINE' in os.environ)
open('mine', 'w').write('x'); os.makedirs('a/b'); os.environ['MINE'] = '1'";
    for who in ALL {
        let ended = run(who, json!({"scripts": [{"source": text}, {"source": text}, {"source": text}]}));
        for ended in ended {
            assert_eq!(ended["output"], "['script.py'] True False\n", "{who:?} {ended}");
        }
    }
}

#[test]
fn without_python_nothing_is_run() {
    for python in ["/no/such/python", "no-such-python"] {
        for who in ALL {
            let refused = once(who, json!({"source": "print(1)"}), json!({"python": python}));
            assert_eq!(
                refused,
                json!({
                    "code": "unavailable",
                    "message": "The script was not run: start the program: No such file or directory (os error 2)",
                }),
                "{who:?}"
            );
        }
    }
}
