//! Traces of one caller in a reused Python worker: the next caller must find none.

use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_functions::code::{FunctionCode, SourceLanguage::Python};
use toolyard_functions::run::{RunError, RunOutput};
use toolyard_functions::runtime::FunctionRuntime;
use toolyard_sandbox::IsolationRequirement;
use toolyard_testing::users::{self, ORDINARY_USER};

use super::LONG;
use crate::setup::{answer, code, run, runtimes_within};

/// Runs the code of its event and returns the number of calls of its worker and the observed state.
const OBSERVER: &str = r#"
import ctypes, fcntl, gc, os, resource, signal, sys, threading, time
LIBC = ctypes.CDLL(None)
with open("made.txt", "w") as file:
    file.write("when it was loaded")
calls = 0

def is_open(descriptor):
    try:
        return fcntl.fcntl(descriptor, fcntl.F_GETFD) >= 0
    except OSError:
        return False

def content(path):
    if os.path.islink(path) or not os.path.isfile(path):
        return oct(os.lstat(path).st_mode)
    with open(path, errors="replace") as file:
        return file.read(100)

def found(home):
    files = {}
    for folder, folders, names in os.walk(home):
        for name in folders + names:
            path = os.path.join(folder, name)
            files[ascii(os.path.relpath(path, home))] = content(path)
    return {
        "cwd": os.path.relpath(os.getcwd(), home),
        "umask": os.umask(0o22),
        "environ": {name: value.replace(home, "HOME") for name, value in os.environ.items()},
        "descriptors": [descriptor for descriptor in range(256) if is_open(descriptor)],
        "standard": [os.readlink(f"/proc/self/fd/{n}").split(":")[0] for n in range(3)] if os.path.exists("/proc/self/fd/0") else [],
        "limits": [resource.getrlimit(number) for number in range(16)],
        "priority": [os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0)],
        "processors": len(os.sched_getaffinity(0)),
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "input": sys.stdin.read(),
        "files": files,
        "attributes": attributes(home),
        "interpreter": interpreter(),
    }

def attributes(home):
    try:
        extended = os.listxattr(home)
    except OSError:
        extended = []
    flags = "none"
    try:
        folder = os.open(home, os.O_RDONLY)
        flags = fcntl.ioctl(folder, 0x80086601, bytes(8)).hex()
        os.close(folder)
    except OSError:
        os.close(folder)
    number = ctypes.c_int()
    process = []
    for read in (2, 37):
        LIBC.prctl(read, ctypes.byref(number), 0, 0, 0)
        process.append(number.value)
    name = ctypes.create_string_buffer(16)
    LIBC.prctl(16, name, 0, 0, 0)
    process += [LIBC.prctl(3, 0, 0, 0, 0), LIBC.prctl(30, 0, 0, 0, 0), name.value.decode(), LIBC.syscall(252, 1, 0)]
    try:
        os.mkdir("made")
        os.rmdir("made")
        can_make = True
    except OSError:
        can_make = False
    streams = [(fcntl.fcntl(n, fcntl.F_GETFL), pipe_size(n)) for n in range(3)]
    return {"extended": extended, "flags": flags, "process": process, "can make": can_make, "streams": streams}

def pipe_size(descriptor):
    try:
        return fcntl.fcntl(descriptor, 1032)
    except OSError:
        return 0

def interpreter():
    return {
        "recursion": sys.getrecursionlimit(),
        "traced": [str(hook) for hook in (sys.gettrace(), sys.getprofile(), threading._trace_hook, threading._profile_hook)],
        "zone": [time.tzname, time.localtime(0)],
        "collector": [gc.isenabled(), gc.get_threshold()],
        "switch": sys.getswitchinterval(),
        "hooks": [sys.excepthook.__name__, threading.excepthook.__name__],
    }

HOME = os.getcwd()

def cortexone_handler(event, context):
    global calls
    calls += 1
    if event["attack"]:
        exec(event["attack"], {})
    return [calls, None if event["attack"] else found(HOME)]
"#;

/// Expected reuse of the worker after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkerReuse {
    /// The worker handles the next call.
    Stays,
    /// Another worker handles the next call.
    IsReplaced,
}
use WorkerReuse::{IsReplaced, Stays};

const ATTACKS: [(&str, WorkerReuse, &str); 38] = [
    ("nothing", Stays, "pass"),
    ("a file", Stays, "open('secret.txt', 'w').write('SECRET')"),
    ("a folder of files", Stays, "import os\nos.makedirs('a/b')\nopen('a/b/c', 'w').write('SECRET')"),
    ("links", Stays, "import os\nos.symlink('/etc/passwd', 'link')\nos.symlink('.', 'loop')"),
    ("a socket", Stays, "import socket\nwith socket.socket(socket.AF_UNIX) as s: s.bind('sock')"),
    ("a name that is no text", Stays, "open(b'\\xff\\xfe', 'w').write('SECRET')"),
    (
        "a full folder",
        Stays,
        "try:\n  with open('full', 'wb') as file:\n    while True: file.write(bytes(1 << 20))\nexcept OSError: pass",
    ),
    ("many files", IsReplaced, "for n in range(5000): open(f'f{n}', 'w').close()"),
    ("rights of the folder", IsReplaced, "import os\nos.chmod('.', 0o777)"),
    (
        "a deep folder",
        IsReplaced,
        "import os\nfor _ in range(40):\n  os.mkdir('d' * 200)\n  os.chdir('d' * 200)\nopen('x', 'w').close()",
    ),
    ("a changed file", IsReplaced, "open('made.txt', 'w').write('SECRET to be seen')"),
    ("a file that grew", IsReplaced, "open('cortexone_function.py', 'a').write('# SECRET')"),
    ("a removed file", IsReplaced, "import os\nos.unlink('made.txt')"),
    (
        "a file in another's place",
        IsReplaced,
        "import os\nopen('n', 'w').write('SECRET')\nos.rename('n', 'made.txt')",
    ),
    ("rights of a file", IsReplaced, "import os\nos.chmod('made.txt', 0)"),
    ("a working folder", Stays, "import os\nos.chdir('/')"),
    (
        "a working folder that is gone",
        Stays,
        "import os\nos.mkdir('gone')\nos.chdir('gone')\nos.rmdir('../gone')",
    ),
    ("an umask", Stays, "import os\nos.umask(0o777)"),
    ("a variable", Stays, "import os\nos.environ['SECRET'] = 'SECRET'\nos.environ['HOME'] = '/'"),
    ("no variables", Stays, "import os\nos.environ.clear()"),
    ("an open file", IsReplaced, "import os\nos.open('cortexone_function.py', os.O_RDONLY)"),
    ("an open pipe far above", IsReplaced, "import os\nos.dup2(1, 90)"),
    (
        "an open file in a cycle",
        Stays,
        "import gc\ngc.disable()\nclass C: pass\nc = C()\nc.self, c.file = c, open('cortexone_function.py')",
    ),
    (
        "standard streams that lead elsewhere",
        Stays,
        "import os\nfile = os.open('kept', os.O_RDWR | os.O_CREAT)\nfor n in range(3): os.dup2(file, n)\nos.close(file)",
    ),
    ("closed standard streams", Stays, "import os\nos.closerange(0, 3)"),
    (
        "a lower limit",
        Stays,
        "import resource as r\nr.setrlimit(r.RLIMIT_CPU, (100, r.getrlimit(r.RLIMIT_CPU)[1]))",
    ),
    (
        "a lower limit for good",
        IsReplaced,
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))",
    ),
    (
        "another scheduler",
        IsReplaced,
        "import os\nos.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))",
    ),
    (
        "blocked signals, and input",
        Stays,
        "import io, signal, sys\nsignal.pthread_sigmask(signal.SIG_BLOCK, [10, 12])\nsys.stdin = io.StringIO('SECRET')",
    ),
    (
        "an extended attribute of the folder",
        Stays,
        "import os\ntry: os.setxattr('.', 'user.secret', b'SECRET')\nexcept OSError: pass",
    ),
    (
        "flags of the folder",
        Stays,
        "import fcntl, os\nf = os.open('.', 0)\ntry: fcntl.ioctl(f, 0x40086602, (0xc0).to_bytes(8, 'little'))\nexcept OSError: pass\nos.close(f)",
    ),
    (
        "streams that do not block",
        Stays,
        "import fcntl, os\nfor n in range(3):\n  os.set_blocking(n, False)\n  try: fcntl.fcntl(n, 1031, 4096)\n  except OSError: pass",
    ),
    (
        "attributes of the process",
        Stays,
        "import ctypes\nl = ctypes.CDLL(None)\nfor option, value in (15, b'SECRET'), (1, 10), (36, 1), (4, 0), (29, 77777): l.prctl(option, value, 0, 0, 0)\nl.syscall(251, 1, 0, (3 << 13))",
    ),
    ("another time zone", Stays, "import os, time\nos.environ['TZ'] = 'SEC-5:30'\ntime.tzset()"),
    (
        "a time zone that is hidden",
        Stays,
        "import os, time\nos.environ['TZ'] = 'SEC-5:30'\ntime.tzset()\ndel os.environ['TZ']",
    ),
    (
        "limits of the interpreter",
        Stays,
        "import gc, sys\nsys.setrecursionlimit(4321)\nsys.setswitchinterval(1)\ngc.disable()\ngc.set_threshold(1, 2, 3)",
    ),
    (
        "hooks of the interpreter",
        Stays,
        "import sys, threading\nhook = lambda *_: None\nthreading.settrace(hook)\nthreading.setprofile(hook)\nsys.excepthook = threading.excepthook = hook\nsys.settrace(hook)\nsys.setprofile(hook)",
    ),
    (FILTER, IsReplaced, FILTER_MKDIR),
];

/// A filter of system calls, which the sandbox refuses. Without one the worker is replaced.
const FILTER: &str = "a filter of system calls";

/// Makes the kernel deny `mkdir`, number 83 on x86-64.
const FILTER_MKDIR: &str = "
import ctypes, struct
class Program(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('filter', ctypes.c_void_p)]
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 83), (6, 0, 0, 0x5000d), (6, 0, 0, 0x7fff0000)]
text = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in steps))
program = Program(4, ctypes.addressof(text))
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
libc.prctl(22, 2, ctypes.byref(program), 0, 0)
";

/// Attacks that the sandbox denies without namespaces.
const REFUSED_WITHOUT_NAMESPACES: [&str; 3] = ["a socket", "rights of the folder", "rights of a file"];

fn is_refused<T>(attacked: &Result<T, RunError>) -> bool {
    matches!(attacked, Err(RunError::Thrown { kind, .. }) if kind == "PermissionError")
}

async fn look(
    runtimes: &FunctionRuntime,
    code: &Arc<FunctionCode>,
    attack: &str,
) -> Result<(u64, Value), RunError> {
    let event = json!({"attack": attack}).to_string();
    let ran = run(runtimes, code, &event).await?;
    let answered: Value = serde_json::from_str(ran.answer.as_text()).unwrap();
    Ok((answered[0].as_u64().unwrap(), answered[1].clone()))
}

/// Checks that a call after each attack observes the same state as the first call of a new worker.
async fn check(isolation: IsolationRequirement) {
    let mut wrong = Vec::new();
    let observer = || {
        let mut code = code(Python, OBSERVER);
        code.limits = LONG;
        Arc::new(code)
    };
    let (_, fresh) = look(&runtimes_within(isolation).await, &observer(), "").await.unwrap();
    assert!(fresh["files"]["'made.txt'"] == "when it was loaded", "{fresh}");
    let (runtimes, observer) = (runtimes_within(isolation).await, observer());
    for (name, expected, attack) in ATTACKS {
        let attacked = look(&runtimes, &observer, attack).await;
        if REFUSED_WITHOUT_NAMESPACES.contains(&name) && is_refused(&attacked) {
            continue;
        }
        let calls = (attacked, look(&runtimes, &observer, "").await);
        let (Ok((before, _)), Ok((calls, found))) = &calls else {
            wrong.push(format!("{name}: {calls:?}"));
            continue;
        };
        let became = if *calls == before + 1 { Stays } else { IsReplaced };
        let is_refused = name == FILTER && !matches!(isolation, IsolationRequirement::None);
        if became != expected && !is_refused {
            wrong.push(format!("{name}: the worker {became:?}"));
        }
        for (what, value) in found.as_object().unwrap() {
            if *value != fresh[what] {
                wrong.push(format!("{name}: {what} is {value} and not {}", fresh[what]));
            }
        }
    }
    assert!(wrong.is_empty(), "{isolation:?}\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn call_finds_the_state_of_the_first_call() {
    check(IsolationRequirement::BestEffort).await;
}

#[tokio::test]
async fn call_finds_the_state_of_the_first_call_without_isolation() {
    check(IsolationRequirement::None).await;
}

/// Runs a test of this file as another user.
fn check_as_a_user(command: impl FnOnce(&[&str]) -> Command) {
    users::assert_root();
    let own = std::env::current_exe().unwrap();
    let name = "attacks::callers::call_finds_the_state_of_the_first_call";
    let mut command = command(&[own.to_str().unwrap(), "--exact", name, "--nocapture"]);
    let output = command.current_dir("/").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{command:?}\n{text}");
}

#[test]
fn call_finds_the_state_of_the_first_call_for_a_user() {
    check_as_a_user(|program| users::as_user(ORDINARY_USER, program));
}

#[test]
fn call_finds_the_state_of_the_first_call_without_namespaces() {
    check_as_a_user(users::as_user_without_namespaces);
}

/// Writes the text of its event around Python's standard streams, and ends as the event specifies.
const LOUD: &str = r#"
import os, subprocess, sys
os.write(2, b"LOADING")
def cortexone_handler(event, context):
    print("printed " + event["text"])
    text = event["text"]
    if event["by"] == "program":
        subprocess.run(["sh", "-c", "echo $0; echo $0 >&2", text])
    elif event["by"] == "descriptor":
        os.write(1, text.encode())
        os.write(2, text.encode())
    elif event["by"] == "stream":
        sys.__stdout__.write(text)
        sys.__stderr__.write(text)
    elif event["by"] == "library":
        import ctypes
        ctypes.CDLL(None).printf(text.encode())
    elif event["by"] == "flood":
        for _ in range(10_000):
            os.write(1, text.encode() * 100)
    if event["end"] == "throw":
        raise ValueError("thrown")
    if event["end"] == "die":
        os._exit(3)
    return calls()

n = 0
def calls():
    global n
    n += 1
    return n
"#;

/// Returns the log of a call, and the error if the worker has ended.
fn log_and_error(result: Result<RunOutput, RunError>) -> (String, String) {
    match result {
        Ok(ran) => (ran.log, String::new()),
        Err(RunError::Died(why)) => (String::new(), why),
        Err(error) => (error.log().to_owned(), String::new()),
    }
}

#[tokio::test]
async fn raw_output_is_only_in_the_log_of_its_call() {
    for by in ["program", "descriptor", "stream", "library", "flood"] {
        for end in ["return", "throw"] {
            let runtimes = runtimes_within(IsolationRequirement::BestEffort).await;
            let mut loud = code(Python, LOUD);
            loud.limits = LONG;
            let loud = Arc::new(loud);
            let event =
                |text: &str, by: &str, end: &str| json!({"text": text, "by": by, "end": end}).to_string();
            let (log, _) = log_and_error(run(&runtimes, &loud, &event("SECRET", by, end)).await);
            assert!(log.starts_with("printed SECRET\n"), "{by} {end}: {log}");
            assert!(log.matches("SECRET").count() > 1, "{by} {end}: {log}");
            assert!(!log.contains("LOADING") && log.len() < 256 << 10, "{by} {end}: {} bytes", log.len());
            let (log, _) = log_and_error(run(&runtimes, &loud, &event("other", "stream", "return")).await);
            assert_eq!(log, "printed other\notherother", "{by} {end}");
            let (_, error) = log_and_error(run(&runtimes, &loud, &event("last", "descriptor", "die")).await);
            assert_eq!(error, "it exited with status 3: lastlast", "{by} {end}");
        }
    }
}

#[tokio::test]
async fn output_between_calls_is_dropped() {
    let source = r#"
import os, threading
wanted = threading.Event()
def write():
    while wanted.wait():
        wanted.clear()
        os.write(2, b"SECRET")
        os.write(release, b"x")
threading.Thread(target=write, daemon=True).start()
written, release = os.pipe()
def cortexone_handler(event, context):
    if event == "write": wanted.set()
    if event == "wait": os.read(written, 1)
    if event == "die": os._exit(3)
"#;
    let runtimes = runtimes_within(IsolationRequirement::BestEffort).await;
    let code = Arc::new(code(Python, source));
    run(&runtimes, &code, "\"write\"").await.unwrap();
    // The output is written before or during this call.
    run(&runtimes, &code, "\"wait\"").await.unwrap();
    let (_, error) = log_and_error(run(&runtimes, &code, "\"die\"").await);
    assert_eq!(error, "it exited with status 3");
}

#[tokio::test]
async fn source_of_a_worker_is_not_an_argument() {
    let source = "def cortexone_handler(event, context): return open('/proc/self/cmdline').read()";
    let runtimes = runtimes_within(IsolationRequirement::None).await;
    let command_line = answer(run(&runtimes, &Arc::new(code(Python, source)), "{}").await);
    assert!(command_line.len() < 256, "{command_line}");
}
