//! Properties of sandboxes, and refusals to start programs.

use serde_json::{Value, json};

use crate::machine::{TestUser, python, run, run_unmodified, run_without_calls};

const ALL: [TestUser; 5] =
    [TestUser::Root, TestUser::Delegated, TestUser::Ordinary, TestUser::Subordinate, TestUser::Unprotected];

const ISOLATED: [TestUser; 4] =
    [TestUser::Root, TestUser::Delegated, TestUser::Ordinary, TestUser::Subordinate];

#[test]
fn function_of_the_own_binary_runs_in_a_sandbox() {
    for user in ALL {
        let request =
            json!({"program": {"Inner": {"name": "echo", "args": ["a"]}}, "stdin": "hello\n", "times": 3});
        let result = run(user, request);
        assert_eq!(result["out"], "[\"a\"] hello\n", "{user:?} {result}");
        assert_eq!(result["outcome"], "Exited(0)");
    }
}

#[test]
fn program_has_exactly_the_specified_environment() {
    let script = "import os; print(sorted(os.environ.items()), os.getcwd(), os.getuid())";
    let request = json!({"program": python(script, &[]), "env": [["GIVEN", "given"]]});
    let expected = "[('GIVEN', 'given'), ('HOME', '/tmp'), ('LANG', 'C.UTF-8'), \
                    ('PATH', '/usr/local/bin:/usr/bin:/bin'), ('TMPDIR', '/tmp')] /tmp 65534\n";
    for user in ISOLATED {
        assert_eq!(run(user, request.clone())["out"], expected, "{user:?}");
    }
}

#[test]
fn environment_of_a_program_does_not_affect_the_helper() {
    // The loader reports a missing library once in each process that it loads.
    let script = "import os; print(os.environ['LD_PRELOAD'])";
    let request = json!({"program": python(script, &[]), "env": [["LD_PRELOAD", "/no/such/library"]]});
    for user in ISOLATED {
        let result = run(user, request.clone());
        assert_eq!(result["out"], "/no/such/library\n", "{user:?} {result}");
        let log = result["log"].as_str().unwrap();
        assert_eq!(log.matches("cannot be preloaded").count(), 1, "{user:?} {log}");
    }
}

#[test]
fn separate_loopback_reaches_only_the_sandbox() {
    let machine = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::fs::set_permissions(&socket, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    let script = "
import errno, socket, sys
def attempt(address):
    try: socket.create_connection(address, 2)
    except OSError as error: return errno.errorcode[error.errno]
    return 'reached'
own = socket.create_server(('127.0.0.1', 0))
given = socket.socket(socket.AF_UNIX)
given.connect('/given')
print(attempt(own.getsockname()), attempt(('127.0.0.1', int(sys.argv[1]))), attempt(('192.0.2.1', 80)))";
    let port = machine.local_addr().unwrap().port().to_string();
    let mounts = json!([{"host": socket, "inside": "/given"}]);
    let request = json!({"loopback": true, "readable": mounts, "program": python(script, &[port])});
    for user in ISOLATED {
        let result = run(user, request.clone());
        assert_eq!(result["out"], "reached ECONNREFUSED ENETUNREACH\n", "{user:?} {result}");
    }
    let result = run(TestUser::WithoutNamespaces, request);
    let error = result["error"].as_str().unwrap_or_default();
    assert!(error.contains("a separate loopback interface requires namespaces"), "{result}");
}

#[test]
fn readable_mounts_are_read_only() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(folder.path(), Some(65534), Some(65534)).unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    std::fs::write(folder.path().join("x"), "given").unwrap();
    let script = "
print(open('/given/x').read(), open('/tmp/same/x').read())
try: open('/given/x', 'a'); print('ESCAPED')
except OSError as error: print(error.errno)";
    let mounts = json!([
        {"host": folder.path(), "inside": "/given"},
        {"host": folder.path(), "inside": "/tmp/same"},
    ]);
    for user in ISOLATED {
        let result = run(user, json!({"program": python(script, &[]), "readable": mounts}));
        assert!(
            ["given given\n30\n", "given given\n13\n"].map(Some).contains(&result["out"].as_str()),
            "{user:?} {result}"
        );
    }
}

#[test]
fn sandbox_with_network_reaches_the_machine() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let script = "
import socket, sys
socket.create_connection(('127.0.0.1', int(sys.argv[1])))
print('connected')";
    let port = listener.local_addr().unwrap().port().to_string();
    for user in ISOLATED {
        let request = json!({"program": python(script, std::slice::from_ref(&port)), "network": true});
        assert_eq!(run(user, request)["out"], "connected\n", "{user:?}");
    }
}

#[test]
fn outcome_has_the_status_or_signal() {
    let ends = [
        ("import sys; sys.exit(3)", "Exited(3)"),
        ("import os; os.kill(os.getpid(), 11)", "Signalled(11)"),
        ("import os; os.kill(os.getpid(), 9)", "Signalled(9)"),
    ];
    for (script, outcome) in ends {
        for user in ALL {
            assert_eq!(
                run(user, json!({"program": python(script, &[])}))["outcome"],
                outcome,
                "{user:?} {script}"
            );
        }
    }
}

#[test]
fn missing_program_is_refused() {
    for user in ALL {
        let program = json!({"Exec": {"command": "/no/such/program", "args": []}});
        let result = run(user, json!({"program": program}));
        assert_eq!(result["outcome"], "Refused", "{user:?}");
        let log = "toolyard: cannot set up the sandbox: start the program: No such file or directory (os error 2)\n";
        assert_eq!(result["log"], log, "{user:?}");
    }
}

#[test]
fn program_cannot_forge_a_refusal() {
    let script = "
import os, sys
sys.stderr.write('toolyard: cannot set up the sandbox: start the program: No\\n')
os._exit(125)";
    let inner = json!({"Inner": {"name": "exit_like_helper", "args": []}});
    for user in ALL {
        for program in [python(script, &[]), inner.clone()] {
            let result = run(user, json!({"program": program}));
            assert_eq!(result["outcome"], "Exited(125)", "{user:?} {result}");
            assert!(result["log"].as_str().unwrap().contains("cannot set up"), "{user:?} {result}");
        }
    }
}

#[test]
fn program_inherits_only_standard_files() {
    let script = "
import os
print(sorted(os.listdir('/proc/self/fd')))";
    for user in ALL {
        let result = run(user, json!({"program": python(script, &[])}));
        // The last one is the listed folder itself.
        assert_eq!(result["out"], "['0', '1', '2', '3']\n", "{user:?} {result}");
    }
    let inner = json!({"Inner": {"name": "list_open_files", "args": []}});
    for user in ALL {
        assert_eq!(run(user, json!({"program": inner}))["out"], "[0, 1, 2]\n", "{user:?}");
    }
}

#[test]
fn invalid_specifications_are_refused() {
    let specs: [(Value, &str); 3] = [
        (json!({"memory_mib": 1}), "memory limit of 1048576 bytes is below 4 MiB"),
        (
            json!({"readable": [{"host": "/usr", "inside": "/a/../b"}]}),
            "\"/a/../b\" is not an absolute path without `..`",
        ),
        (json!({"env": [["A=B", ""]]}), "invalid environment variable \"A=B\""),
    ];
    for (mut request, why) in specs {
        request["program"] = python("", &[]);
        let error = run(TestUser::Root, request)["error"].clone();
        assert_eq!(error, format!("invalid sandbox specification: {why}"));
    }
}

#[test]
fn required_isolation_without_cgroups_is_refused() {
    let error =
        run_unmodified(TestUser::Ordinary, &json!({"program": python("print(1)", &[])}))["error"].clone();
    let error = error.as_str().unwrap();
    for part in [
        "cgroup memory: ",
        "cgroup cpu: ",
        "cgroup pids: ",
        "Permission denied",
        "Delegate=yes",
        "best-effort",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(!error.contains("landlock"), "{error}");
}

#[test]
fn missing_layers_are_reported() {
    let report = run(TestUser::Ordinary, json!({}))["report"].clone();
    let missing: Vec<_> = report.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let missing: Vec<_> = missing.iter().filter(|line| !line.ends_with(": enforced")).collect();
    let names: Vec<_> = missing.iter().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(names, ["cgroup memory", "cgroup cpu", "cgroup pids", "uids"]);
    let all = run(TestUser::Root, json!({}))["report"].clone();
    assert!(
        all.as_array().unwrap().iter().all(|line| line.as_str().unwrap().ends_with(": enforced")),
        "{all}"
    );
}

/// Numbers of `seccomp` and `landlock_create_ruleset`.
const SECCOMP: i64 = if cfg!(target_arch = "x86_64") { 317 } else { 277 };
const LANDLOCK: i64 = 444;

#[test]
fn best_effort_requires_isolation_of_memory_and_files() {
    let request = |isolation: &str| json!({"program": python("print(1)", &[]), "isolation": isolation});
    // Without these calls, the layers of the user do not isolate memory or files.
    let cases: [(TestUser, &[i64], &[&str]); 3] = [
        (TestUser::Ordinary, &[SECCOMP], &["cgroup memory: ", "seccomp: "]),
        (TestUser::WithoutNamespaces, &[LANDLOCK], &["namespaces: ", "landlock: "]),
        (TestUser::WithoutNamespaces, &[SECCOMP], &["cgroup memory: ", "namespaces: ", "seccomp: "]),
    ];
    for (user, calls, missing) in cases {
        let error = run_without_calls(user, calls, &request("best-effort"))["error"].clone();
        let error = error.as_str().unwrap_or_else(|| panic!("{user:?} {calls:?} runs programs"));
        for part in missing.iter().chain(&["isolation: none"]) {
            assert!(error.contains(part), "{user:?} {calls:?}: {part}: {error}");
        }
        let result = run_without_calls(user, calls, &request("none"));
        assert_eq!(
            (&result["out"], &result["level"]),
            (&json!("1\n"), &json!("none")),
            "{user:?} {calls:?} {result}"
        );
    }
    // One of the two layers for files suffices, and so does the watchdog for memory.
    for (user, calls) in
        [(TestUser::Ordinary, LANDLOCK), (TestUser::Root, LANDLOCK), (TestUser::Root, SECCOMP)]
    {
        let result = run_without_calls(user, &[calls], &request("best-effort"));
        assert_eq!(result["out"], "1\n", "{user:?} {calls} {result}");
        assert_eq!(result["level"], "best-effort", "{user:?} {calls} {result}");
    }
}

#[test]
fn level_depends_on_the_user() {
    let level = |user| run(user, json!({}))["level"].clone();
    assert_eq!(level(TestUser::Root), "full");
    assert_eq!(level(TestUser::Delegated), "shared-uids");
    for user in [TestUser::Ordinary, TestUser::Subordinate, TestUser::WithoutNamespaces] {
        assert_eq!(level(user), "best-effort", "{user:?}");
    }
    assert_eq!(level(TestUser::Unprotected), "none");
}
