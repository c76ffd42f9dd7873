//! What programs in cells have, and who may not start any.

use serde_json::{Value, json};

use crate::machine::{Who, python, run, said};

const ALL: [Who; 4] = [Who::Root, Who::Delegated, Who::Ordinary, Who::Unprotected];

#[test]
fn a_function_of_our_own_binary_runs_in_a_cell() {
    for who in ALL {
        let request =
            json!({"program": {"Inner": {"name": "echo", "args": ["a"]}}, "stdin": "hello\n", "times": 3});
        let ended = run(who, request);
        assert_eq!(ended["out"], "[\"a\"] hello\n", "{who:?} {ended}");
        assert_eq!(ended["verdict"], "Exited(0)");
    }
}

#[test]
fn a_program_has_the_environment_that_it_was_given() {
    let script = "import os; print(sorted(os.environ.items()), os.getcwd(), os.getuid())";
    let request = json!({"program": python(script, &[]), "env": [["GIVEN", "given"]]});
    let expected = "[('GIVEN', 'given'), ('HOME', '/tmp'), ('LANG', 'C.UTF-8'), \
                    ('PATH', '/usr/local/bin:/usr/bin:/bin'), ('TMPDIR', '/tmp')] /tmp 65534\n";
    for who in [Who::Root, Who::Delegated, Who::Ordinary] {
        assert_eq!(run(who, request.clone())["out"], expected, "{who:?}");
    }
}

#[test]
fn the_environment_of_a_program_says_nothing_to_the_gateway() {
    // The loader complains of a library that is not there, once in each process that it loads.
    let script = "import os; print(os.environ['LD_PRELOAD'])";
    let request = json!({"program": python(script, &[]), "env": [["LD_PRELOAD", "/no/such/library"]]});
    for who in [Who::Root, Who::Delegated, Who::Ordinary] {
        let ended = run(who, request.clone());
        assert_eq!(ended["out"], "/no/such/library\n", "{who:?} {ended}");
        let log = ended["log"].as_str().unwrap();
        assert_eq!(log.matches("cannot be preloaded").count(), 1, "{who:?} {log}");
    }
}

#[test]
fn what_is_readable_is_there_and_read_only() {
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
    for who in [Who::Root, Who::Delegated, Who::Ordinary] {
        let ended = run(who, json!({"program": python(script, &[]), "readable": mounts}));
        assert!(
            ["given given\n30\n", "given given\n13\n"].map(Some).contains(&ended["out"].as_str()),
            "{who:?} {ended}"
        );
    }
}

#[test]
fn a_cell_with_a_network_reaches_it() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let script = "
import socket, sys
socket.create_connection(('127.0.0.1', int(sys.argv[1])))
print('connected')";
    let port = listener.local_addr().unwrap().port().to_string();
    for who in [Who::Root, Who::Delegated, Who::Ordinary] {
        let request = json!({"program": python(script, std::slice::from_ref(&port)), "network": true});
        assert_eq!(run(who, request)["out"], "connected\n", "{who:?}");
    }
}

#[test]
fn how_a_program_ended_is_told() {
    let ends = [
        ("import sys; sys.exit(3)", "Exited(3)"),
        ("import os; os.kill(os.getpid(), 11)", "Signalled(11)"),
        ("import os; os.kill(os.getpid(), 9)", "Signalled(9)"),
    ];
    for (script, verdict) in ends {
        for who in ALL {
            assert_eq!(
                run(who, json!({"program": python(script, &[])}))["verdict"],
                verdict,
                "{who:?} {script}"
            );
        }
    }
}

#[test]
fn a_program_that_is_not_there_is_refused() {
    for who in ALL {
        let program = json!({"Exec": {"command": "/no/such/program", "args": []}});
        let ended = run(who, json!({"program": program}));
        assert_eq!(ended["verdict"], "Refused", "{who:?}");
        let log = "toolyard: cannot put up the walls of a cell: start the program: No such file or directory (os error 2)\n";
        assert_eq!(ended["log"], log, "{who:?}");
    }
}

#[test]
fn a_program_cannot_say_that_it_was_refused() {
    let script = "
import os, sys
sys.stderr.write('toolyard: cannot put up the walls of a cell: start the program: No\\n')
os._exit(125)";
    let inner = json!({"Inner": {"name": "forge", "args": []}});
    for who in ALL {
        for program in [python(script, &[]), inner.clone()] {
            let ended = run(who, json!({"program": program}));
            assert_eq!(ended["verdict"], "Exited(125)", "{who:?} {ended}");
            assert!(ended["log"].as_str().unwrap().contains("cannot put up"), "{who:?} {ended}");
        }
    }
}

#[test]
fn a_program_finds_no_file_open_but_its_own() {
    let script = "
import os
print(sorted(os.listdir('/proc/self/fd')))";
    for who in [Who::Root, Who::Delegated, Who::Ordinary, Who::Unprotected] {
        let ended = run(who, json!({"program": python(script, &[])}));
        // The last one is the list itself.
        assert_eq!(ended["out"], "['0', '1', '2', '3']\n", "{who:?} {ended}");
    }
    let inner = json!({"Inner": {"name": "files", "args": []}});
    for who in ALL {
        assert_eq!(run(who, json!({"program": inner}))["out"], "[0, 1, 2]\n", "{who:?}");
    }
}

#[test]
fn impossible_cells_are_refused() {
    let cells: [(Value, &str); 3] = [
        (json!({"memory_mib": 1}), "1048576 bytes of memory are less than 4 MiB"),
        (
            json!({"readable": [{"host": "/usr", "inside": "/a/../b"}]}),
            "\"/a/../b\" is not an absolute path without `..`",
        ),
        (json!({"env": [["A=B", ""]]}), "\"A=B\" cannot be set in an environment"),
    ];
    for (mut request, why) in cells {
        request["program"] = python("", &[]);
        let error = run(Who::Root, request)["error"].clone();
        assert_eq!(error, format!("no program can run in such a cell: {why}"));
    }
}

#[test]
fn a_user_without_cgroups_may_start_nothing_where_isolation_is_required() {
    let error = said(Who::Ordinary, &json!({"program": python("print(1)", &[])}))["error"].clone();
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
fn what_is_not_enforced_is_reported() {
    let report = run(Who::Ordinary, json!({}))["report"].clone();
    let missing: Vec<_> = report.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let missing: Vec<_> = missing.iter().filter(|line| !line.ends_with(": enforced")).collect();
    let names: Vec<_> = missing.iter().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(names, ["cgroup memory", "cgroup cpu", "cgroup pids"]);
    let all = run(Who::Delegated, json!({}))["report"].clone();
    assert!(
        all.as_array().unwrap().iter().all(|line| line.as_str().unwrap().ends_with(": enforced")),
        "{all}"
    );
}
