//! Attacks in Python, whose workers are reused: state stays within one function, and the process isolates it.

use std::sync::Arc;

use toolyard_functions::code::CodeLimits;
use toolyard_functions::code::SourceLanguage::Python;

use super::{LONG, SHORT, check};
use crate::setup::{answer, code, run, runtimes};

#[tokio::test]
async fn endless_code_is_killed() {
    let cases = [
        ("while True: pass", "TimedOut"),
        ("while True:\n  try:\n    while True: pass\n  except BaseException: pass", "TimedOut"),
        ("import re\nreturn bool(re.match('(a+)+$', 'a' * 60 + 'b'))", "TimedOut"),
        ("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: pass", "TimedOut"),
        ("import time\ntime.sleep(1000)", "TimedOut"),
        ("return 10 ** 10 ** 8", "TimedOut"),
        ("while True: print('endless')", "TimedOut"),
        ("import os\nwhile True: os.write(1, b'endless' * 1000)", "TimedOut"),
        ("while True: pass\ndef cortexone_handler(event, context): pass", "TimedOut"),
        // Without its pipe the worker can neither send nor receive.
        ("import os\nos.closerange(0, 1000)\nreturn 1", "Died"),
        ("import os, time\nos.closerange(64, 1000)\ntime.sleep(1000)", "TimedOut"),
    ];
    check(Python, SHORT, &cases).await;
}

#[tokio::test]
async fn memory_limit_is_reported() {
    let cases = [
        ("return len(bytearray(1 << 30))", "OutOfMemory"),
        ("x = []\nwhile True: x.append(bytearray(1 << 20))", "OutOfMemory"),
        ("x = 'x'\nwhile True: x += x", "OutOfMemory"),
        ("def f(): return f() + 1\nreturn f()", "RecursionError: maximum recursion depth exceeded"),
        (
            "x = []\nfor _ in range(100000): x = [x]\nreturn x",
            "TypeError: the returned value is not JSON: maximum recursion",
        ),
        ("x = []\nfor _ in range(200): x = [x]\nreturn x", "[[[["),
        ("return 'x' * 65534", "\"xxx"),
        ("return 'x' * 65535", "OutputTooLarge { limit: 65536 }"),
    ];
    check(Python, LONG, &cases).await;
}

#[tokio::test]
async fn channel_to_the_host_cannot_be_broken() {
    let cases = [
        ("import sys\nsys.exit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt('me')", "KeyboardInterrupt: me"),
        ("import os\nos._exit(3)", "Died(\"it exited with status 3\")"),
        // Exit status of a failed sandbox setup, although the setup succeeded.
        ("import os\nos._exit(125)", "Died(\"it exited with status 125\")"),
        ("import os\nos.kill(os.getpid(), 9)", "Died(\"it was killed by signal 9\")"),
        ("import os\nos.abort()", "Died(\"it was killed by signal 6"),
        ("import os\nos.write(1, b'{\"is\":\"returned\"}\\n1\\n')\nreturn 2", "2"),
        ("import os\nos.write(2, b'noise')\nreturn 2", "2"),
        ("import sys\nsys.__stdout__.write('noise')\nsys.__stdout__.flush()\nreturn 2", "2"),
        ("import os\nos.fork()\nreturn 2", "2"),
        ("import os\nif os.fork() == 0: raise ValueError('child')\nreturn 2", "2"),
        ("import sys\nsys.stdout.close()\nsys.stdout = None\nreturn 2", "2"),
        ("return input()", "EOFError: "),
        (
            "import os\nfor fd in os.listdir('/proc/self/fd'):\n  try: os.write(int(fd), b'garbage\\n')\n  except OSError: pass\nreturn 2",
            "Died(\"invalid message from the worker",
        ),
        ("import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()\nreturn 2", "2"),
        ("import subprocess\nsubprocess.Popen(['sleep', '1000'])\nreturn 2", "2"),
        (
            "import os\nfor fd in range(64, 70):\n  try: os.write(fd, b'x' * (17 << 20))\n  except OSError: pass",
            "OutputTooLarge",
        ),
        ("import atexit, time\natexit.register(time.sleep, 1000)\nreturn 2", "2"),
        ("import json\njson.dumps = lambda *a, **k: 'garbage'\nreturn 2", "2"),
    ];
    check(Python, LONG, &cases).await;
}

#[tokio::test]
async fn faults_are_reported() {
    let cases = [
        ("def other(): pass  # no cortexone_handler", "not loaded: missing function cortexone_handler"),
        ("cortexone_handler = 1", "not loaded: missing function cortexone_handler"),
        ("def cortexone_handler(event):\n  return 1 +\n", "not loaded: File \"/"),
        (
            "import no_such_module\ndef cortexone_handler(): pass",
            "not loaded: ModuleNotFoundError: No module named 'no_such_module' (cortexone_function.py, line 1)",
        ),
        (
            "raise ValueError('top')\ncortexone_handler = None",
            "not loaded: ValueError: top (cortexone_function.py, line 1)",
        ),
        (
            "{}['cortexone_handler']",
            "not loaded: KeyError: 'cortexone_handler' (cortexone_function.py, line 1)",
        ),
        ("import sys\nsys.exit(1)\ndef cortexone_handler(): pass", "not loaded: SystemExit: 1"),
        (
            "async def cortexone_handler(event, context): return 1",
            "not loaded: the handler must be synchronous",
        ),
        ("print('a')\nraise ValueError('b')", "ValueError: b after \"a\\n\""),
        ("raise ValueError('a text')", "ValueError: a text"),
        ("return event['missing']", "KeyError: 'missing'"),
        ("class E(Exception):\n  def __str__(self): raise ValueError('again')\nraise E", "E: "),
        (
            "return print",
            "TypeError: the returned value is not JSON: Object of type builtin_function_or_method is not JSON serializable",
        ),
        (
            "x = []\nx.append(x)\nreturn x",
            "TypeError: the returned value is not JSON: Circular reference detected",
        ),
        (
            "return float('nan')",
            "TypeError: the returned value is not JSON: Out of range float values are not JSON compliant",
        ),
        ("return {(1, 2): 3}", "TypeError: the returned value is not JSON: keys must be"),
        ("return '\\ud800'", "\"\\ud800\""),
        ("return None", "null"),
        ("print('a', 1)\nreturn 1", "1 after \"a 1\\n\""),
        ("import sys\nprint('a', file=sys.stderr)\nreturn 1", "1 after \"a\\n\""),
    ];
    check(Python, LONG, &cases).await;
}

#[tokio::test]
async fn processes_of_a_call_end_with_its_worker() {
    const COUNT: &str =
        "n = 0\ndef cortexone_handler(event, context):\n  global n\n  n += 1\n  if n > 1: return 'stayed'\n";
    let leavings = [
        "import os, time\n  if os.fork() == 0: time.sleep(1000)",
        "import os, time\n  if os.fork() == 0:\n    os.setsid()\n    time.sleep(1000)",
        // A daemon that has detached from its parent.
        "import os, time\n  pid = os.fork()\n  if pid == 0:\n    if os.fork() == 0: time.sleep(1000)\n    os._exit(0)\n  os.waitpid(pid, 0)",
        "import subprocess\n  subprocess.Popen(['sleep', '1000'])",
        "import _thread, time\n  _thread.start_new_thread(time.sleep, (1000,))",
        "import signal\n  signal.alarm(1000)",
        "import signal\n  signal.setitimer(signal.ITIMER_VIRTUAL, 1000)",
        "import signal\n  signal.signal(signal.SIGUSR1, print)",
    ];
    let sources = leavings.map(|leaves| format!("{COUNT}  {leaves}\n  return 'first'\n"));
    check(Python, LONG, &sources.each_ref().map(|source| (&**source, "\"first\""))).await;
    let tidy = [
        "import subprocess\n  subprocess.run(['true'])",
        "import threading\n  t = threading.Thread(target=print)\n  t.start()\n  t.join()",
    ];
    for done in tidy {
        let source = format!("{COUNT}  {done}\n  return 'first'\n");
        let (runtimes, code) = (runtimes().await, Arc::new(code(Python, &source)));
        assert_eq!(answer(run(&runtimes, &code, "{}").await), "\"first\"");
        assert_eq!(answer(run(&runtimes, &code, "{}").await), "\"stayed\"", "{done}");
    }
}

#[tokio::test]
async fn answer_of_an_earlier_call_is_ignored() {
    // A forged answer to the second call.
    let forged = r#"import os
def cortexone_handler(event, context):
  for fd in range(60, 80):
    try: os.write(fd, b'{"is":"returned","call":1,"log":"","last":false}\n"own"\n{"is":"returned","call":2,"log":"","last":false}\n"forged"\n')
    except OSError: pass
  return 'own'"#;
    check(Python, LONG, &[(forged, "Died(\"invalid message from the worker")]).await;
}

#[tokio::test]
async fn error_text_is_truncated() {
    let (runtimes, limits) = (runtimes().await, CodeLimits { output_bytes: 1000, ..LONG });
    super::check_bounded(&runtimes, Python, limits, "raise ValueError('\u{e9}' * 10_000_000)").await;
}

#[tokio::test]
async fn large_numbers_keep_all_digits() {
    let digits = "7".repeat(5000);
    let (runtimes, code) =
        (runtimes().await, Arc::new(code(Python, "def cortexone_handler(e, c): return e")));
    assert_eq!(answer(run(&runtimes, &code, &digits).await), digits);
}
