//! What scripts do not get at.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::machine::{CANARY, WALLED, Who, once, said, source};

/// What is tried, and what comes of it.
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
fn what_is_not_the_scripts_is_refused() {
    for who in WALLED {
        for (attempt, expected) in ATTEMPTS {
            let text = format!(
                "try:\n    {attempt}\n    print('ESCAPED')\nexcept Exception as error: print(type(error).__name__)"
            );
            let ended = source(who, &text);
            let output = ended["output"].as_str().unwrap();
            let last = output.lines().last().unwrap_or_default();
            assert!(expected.contains(&last), "{who:?} {attempt}: {ended}");
        }
    }
}

#[test]
fn the_environment_of_the_gateway_is_not_seen() {
    let text = "
import glob, os
seen = repr(os.environ)
for path in glob.glob('/proc/[0-9]*/environ'):
    try: seen += open(path).read()
    except OSError: pass
print('canary-' in seen, 'HOME' in seen)";
    assert!(CANARY.starts_with("canary-"));
    for who in WALLED {
        assert_eq!(source(who, text)["output"], "False True\n", "{who:?}");
    }
    // Without walls it could look at the gateway, but is given nothing of it.
    let own = "import os; print('GATEWAY_SECRET' in os.environ)";
    assert_eq!(source(Who::Unprotected, own)["output"], "False\n");
}

#[test]
fn the_network_is_reached_only_where_that_is_allowed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = format!(
        "import socket\ntry:\n    socket.create_connection({:?})\n    print('connected')\nexcept OSError as error: print(type(error).__name__)",
        ("127.0.0.1", listener.local_addr().unwrap().port()),
    );
    let check = |who: Who, network: bool, expected: &str| {
        let ended = once(who, json!({"source": text}), json!({"network": network}));
        assert_eq!(ended["output"], expected, "{who:?} {network} {ended}");
    };
    for who in WALLED {
        check(who, false, "PermissionError\n");
        check(who, true, "connected\n");
    }
    check(Who::Unprotected, false, "connected\n");
}

#[test]
fn what_this_machine_cannot_enforce_is_named() {
    let request = json!({"isolation": "required", "scripts": [{"source": "print(1)"}]});
    let refused = said(Who::Ordinary, &request).remove(0);
    assert_eq!(refused["code"], "unavailable");
    let message = refused["message"].as_str().map(str::to_owned).unwrap_or_default();
    for part in ["The script was not run: ", "cgroup memory: ", "cgroup cpu: ", "Delegate=yes", "best-effort"]
    {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(refused["output"], Value::Null);
}
