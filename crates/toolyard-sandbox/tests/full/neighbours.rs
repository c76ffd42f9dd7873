//! Separation of per-user kernel limits between sandboxes.

use std::collections::HashSet;

use serde_json::{Value, json};
use toolyard_testing::users::SUBORDINATE_RANGE;

use crate::machine::{TestUser, python, run};

/// A program that exhausts a resource and stays, and one that needs it.
struct Neighbour {
    name: &'static str,
    uses_up: &'static str,
    /// Needs one unit of the exhausted resource.
    needs: &'static str,
    /// Error if the resource is exhausted.
    used_up: &'static str,
}

const NEIGHBOURS: [Neighbour; 2] = [
    Neighbour {
        name: "inotify instances",
        uses_up: "
try:
    while True: call(libc.inotify_init())
except OSError as error: pass",
        needs: "call(libc.inotify_init())",
        used_up: "EMFILE",
    },
    Neighbour {
        name: "files in flight",
        uses_up: "
a, b = socket.socketpair()
try:
    while True: socket.send_fds(a, [b'x'], [0] * 100)
except OSError as error: pass",
        needs: "a, b = socket.socketpair(); socket.send_fds(a, [b'x'], [0])",
        used_up: "ETOOMANYREFS",
    },
];

fn result(user: TestUser, neighbour: &Neighbour) -> Value {
    let prelude = include_str!("prelude.py");
    let args: Vec<String> = ["0", "0", "", "", "1", "", "", ""].map(str::to_owned).into();
    let uses_up = format!("{prelude}\n{}\nprint('ready', flush=True); time.sleep(1000)", neighbour.uses_up);
    let needs = format!("{prelude}\ndef need():\n    {}\nattempt(need)", neighbour.needs);
    // Both have the maximum number of open files, which is below the other limits.
    run(user, json!({"program": python(&needs, &args), "neighbour": python(&uses_up, &args)}))
}

#[test]
fn sandbox_cannot_exhaust_resources_of_another() {
    let mut wrong = Vec::new();
    for neighbour in &NEIGHBOURS {
        for user in [
            TestUser::Root,
            TestUser::Delegated,
            TestUser::Ordinary,
            TestUser::Subordinate,
            TestUser::UnprotectedUser,
        ] {
            let result = result(user, neighbour);
            assert_eq!(result["neighbour"], "ready\n", "{user:?} {result}");
            let out = result["out"].as_str().unwrap().trim();
            let right = match user {
                // Without isolation they share the limit, which shows that the attempt is effective.
                TestUser::UnprotectedUser => out == neighbour.used_up,
                TestUser::Root => out == "ESCAPED",
                // Each has its own limit, or the call is denied.
                _ => ["ESCAPED", "EPERM"].contains(&out),
            };
            if !right {
                wrong.push(format!("{user:?}: {}: {result}", neighbour.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Uid and gid outside the user namespace.
fn ids(map: &str) -> Vec<u32> {
    let outside = |line: &str| line.split_whitespace().nth(1)?.parse().ok();
    map.lines().filter(|line| line.trim_start().starts_with("65534 ")).filter_map(outside).collect()
}

#[test]
fn each_sandbox_has_a_separate_uid() {
    let script = "print(open('/proc/self/uid_map').read() + open('/proc/self/gid_map').read(), os.getuid())";
    let same_line = format!(
        "import os; print(ascii({}))",
        script.trim_start_matches("print").replace(", os.getuid()", "")
    );
    let request = json!({"program": python(&format!("import os; {script}"), &[]), "neighbour": python(&format!("{same_line}; import sys, time; sys.stdout.flush(); time.sleep(1000)"), &[])});
    let [uid, gid, count] = SUBORDINATE_RANGE;
    for (user, uids, gids) in [
        (TestUser::Root, 2_000_000_000..2_000_065_536, 2_000_000_000..2_000_065_536),
        (TestUser::Subordinate, uid..uid + count, gid..gid + count),
    ] {
        let result = run(user, request.clone());
        let own = ids(result["out"].as_str().unwrap());
        let neighbour = ids(&result["neighbour"].as_str().unwrap().replace("\\n", "\n").replace('\'', ""));
        let different: HashSet<_> = [own[0], neighbour[0]].into();
        assert_eq!((own.len(), neighbour.len(), different.len()), (2, 2, 2), "{user:?} {result}");
        assert!([own[0], neighbour[0]].iter().all(|own| uids.contains(own)), "{user:?} {result}");
        assert!([own[1], neighbour[1]].iter().all(|own| gids.contains(own)), "{user:?} {result}");
    }
}
