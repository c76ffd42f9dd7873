//! Isolation of scripts from the machine.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::machine::{CANARY, ISOLATED, TestUser, run_script, run_source, run_unmodified};

/// Attempts, and the accepted errors.
const ATTEMPTS: [(&str, &[&str]); 7] = [
    ("open('/etc/shadow')", &["FileNotFoundError", "PermissionError"]),
    ("open('/usr/x', 'w')", &["OSError", "PermissionError"]),
    ("open('/x', 'w')", &["OSError", "PermissionError"]),
    ("import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)", &["PermissionError"]),
    ("import os; os.setuid(0)", &["PermissionError", "OSError"]),
    (
        "import os; os.kill(1, 9); os.kill(os.getppid(), 9); print('alive'); raise KeyError",
        &["KeyError", "PermissionError"],
    ),
    ("import os; os.unshare", &["AttributeError"]),
];

#[test]
fn script_cannot_access_the_machine() {
    for user in ISOLATED {
        for (attempt, expected) in ATTEMPTS {
            let text = format!(
                "try:\n    {attempt}\n    print('ESCAPED')\nexcept Exception as error: print(type(error).__name__)"
            );
            let result = run_source(user, &text);
            let output = result["output"].as_str().unwrap();
            let last = output.lines().last().unwrap_or_default();
            assert!(expected.contains(&last), "{user:?} {attempt}: {result}");
        }
    }
}

#[test]
fn environment_of_the_gateway_is_hidden() {
    let text = "
import glob, os
seen = repr(os.environ)
for path in glob.glob('/proc/[0-9]*/environ'):
    try: seen += open(path).read()
    except OSError: pass
print('canary-' in seen, 'HOME' in seen)";
    assert!(CANARY.starts_with("canary-"));
    for user in ISOLATED {
        assert_eq!(run_source(user, text)["output"], "False True\n", "{user:?}");
    }
    // Without isolation a script could inspect the gateway, but its own environment has none of its variables.
    let own = "import os; print('GATEWAY_SECRET' in os.environ)";
    assert_eq!(run_source(TestUser::Unprotected, own)["output"], "False\n");
}

#[test]
fn network_is_reachable_only_if_permitted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = format!(
        "import socket\ntry:\n    socket.create_connection({:?})\n    print('connected')\nexcept OSError as error: print(type(error).__name__)",
        ("127.0.0.1", listener.local_addr().unwrap().port()),
    );
    let check = |user: TestUser, network: bool, expected: &str| {
        let result = run_script(user, json!({"source": text}), json!({"network": network}));
        assert_eq!(result["output"], expected, "{user:?} {network} {result}");
    };
    for user in ISOLATED {
        check(user, false, "PermissionError\n");
        check(user, true, "connected\n");
    }
    check(TestUser::Unprotected, false, "connected\n");
}

#[test]
fn missing_layers_are_named_in_the_error() {
    let request = json!({"isolation": "required", "scripts": [{"source": "print(1)"}]});
    let refused = run_unmodified(TestUser::Ordinary, &request).remove(0);
    assert_eq!(refused["code"], "unavailable");
    let message = refused["message"].as_str().map(str::to_owned).unwrap_or_default();
    for part in ["The script was not run: ", "cgroup memory: ", "cgroup cpu: ", "Delegate=yes", "best-effort"]
    {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(refused["output"], Value::Null);
}
