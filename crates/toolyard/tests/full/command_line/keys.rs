//! `toolyard key`, `test` and `audit`, and other commands that require a key.

use std::path::Path;
use std::process::Command;

use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::manifest::process_document;
use toolyard_testing::process::{ProgramResult, run};
use toolyard_testing::wait::eventually;

use crate::support::gateway::{TestGateway, toolyard};

/// A gateway with a store file that its manifest names.
struct KeyGateway {
    folder: TempDir,
    gateway: TestGateway,
}

impl KeyGateway {
    fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let store = json!({"path": folder.path().join("yard.db")});
        process_document(folder.path(), json!({"store": store}));
        let demo = json!({
            "name": "demo",
            "type": "mcp",
            "mcpConfig": {"transport": "stdio", "command": env!("CARGO_BIN_EXE_toolyard"), "args": ["demo-server"]},
        });
        let gateway =
            TestGateway::with_settings(&[demo], json!({"store": store, "timeouts": {"keyCheck": "10ms"}}));
        Self { folder, gateway }
    }

    /// Returns a command that reads the store.
    fn store_command(&self, args: &[&str]) -> Command {
        let mut command = toolyard(self.folder.path());
        command.args(args).arg("-f").arg(self.folder.path().join("process.json"));
        command
    }

    /// Runs a command against the gateway, with a key unless it is empty.
    fn run_with_key(&self, key: &str, args: &[&str]) -> ProgramResult {
        let mut command = toolyard(self.folder.path());
        run(command.env("TOOLYARD_KEY", key).args(args).args(["--url", &self.gateway.url()]))
    }
}

/// Replaces values that differ between runs.
fn normalized(ended: &ProgramResult, gateway: &TestGateway, id: &str) -> String {
    let text = ended.to_string().replace(&gateway.address.to_string(), "ADDRESS").replace(id, "ID");
    let words = text.split_inclusive([' ', '\n', ',']);
    let is_time = |word: &str| word.len() > 20 && word.starts_with("20") && word.contains("Z");
    let mut words: Vec<_> = words
        .map(|word| if is_time(word) { word.replace(word.trim_end(), "TIME") } else { word.to_owned() })
        .collect();
    for at in 1..words.len() {
        if words[at].starts_with("ms") {
            words[at - 1] = "... ".to_owned();
        }
    }
    words.concat()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one story, of which each line follows from the one before")]
fn keys_from_creation_to_audit_record() {
    let setup = KeyGateway::start();
    let made = run(&mut setup.store_command(&[
        "key", "create", "ops", "--scope", "tools:*", "--scope", "rest", "--scope", "admin",
    ]));
    let key = made.stdout.trim().to_owned();
    let id = key.split('_').nth(1).unwrap_or_else(|| panic!("{made}"));
    let small = run(&mut setup.store_command(&[
        "key",
        "create",
        "small",
        "--scope",
        "tools:demo/e*",
        "--calls",
        "1/week",
        "--rate",
        "9/s",
        "--expires",
        "4w",
    ]));
    let (said, small) = (small.stderr.clone(), small.stdout.trim().to_owned());
    let small_id = small.split('_').nth(1).unwrap();
    let store = setup.folder.path().join("yard.db");
    assert_eq!(said.trim_end(), format!("note: created key {small_id} in the store {}", store.display()));
    eventually("a key is asked for", || (setup.run_with_key("", &["tools"]).code != 0).then_some(()));
    let say = |ended: &ProgramResult| normalized(ended, &setup.gateway, id).replace(small_id, "SMALL");

    assert_snapshot!(say(&setup.run_with_key("", &["tools"])), @"
    --- stderr
    error: http://ADDRESS/mcp refused the request: missing key: send `Authorization: Bearer KEY`; for commands of toolyard, set TOOLYARD_KEY or use `--key-file`
    --- exit status 1
    ");
    assert_snapshot!(say(&setup.run_with_key("", &["doctor"])), @"
    --- stderr
    error: http://ADDRESS/mcp refused the request: missing key: send `Authorization: Bearer KEY`; for commands of toolyard, set TOOLYARD_KEY or use `--key-file`
    --- exit status 1
    ");
    assert_snapshot!(say(&setup.run_with_key("ty_wrong", &["doctor"])), @"
    --- stderr
    error: http://ADDRESS/mcp refused the request: wrong key: the gateway has no such key; commands of toolyard send TOOLYARD_KEY or that of `--key-file`
    --- exit status 1
    ");
    assert_snapshot!(say(&setup.run_with_key(&small, &["doctor"])), @"
    --- stderr
    error: http://ADDRESS/mcp refused the request: the key lacks the required scope
    --- exit status 1
    ");
    assert_snapshot!(say(&setup.run_with_key(&small, &["tools"])), @"
    echo                             Returns the text that it is given.
    --- exit status 0
    ");
    assert_snapshot!(say(&setup.run_with_key(&small, &["call", "echo", "text=hello"])), @"
    hello
    --- exit status 0
    ");
    assert_snapshot!(say(&setup.run_with_key(&small, &["call", "echo", "text=again"])), @"
    --- stderr
    error: quota of 1/week exhausted
    --- exit status 1
    ");
    assert_snapshot!(say(&setup.run_with_key(&key, &["test", "demo", "add", "a=1", "b=2"])), @r#"
    ok: add after ... ms
      arguments  valid
      note       the tool has no output schema: the result was not validated
    {"content":[{"type":"text","text":"3"}],"resultType":"complete"}
    --- exit status 0
    "#);
    assert_snapshot!(say(&setup.run_with_key(&key, &["test", "demo", "add", "a=x"])), @r#"
    FAILED: add after ... ms
      arguments  Invalid arguments: "b" is a required property; /a: value is not of type "number"
      error      Invalid arguments: "b" is a required property; /a: value is not of type "number"
    --- exit status 1
    "#);
    assert_snapshot!(say(&setup.run_with_key(&key, &["test", "demo"])), @"
    --- stderr
    error: http://ADDRESS/mcp refused the request: the handler has several tools, name one: add, echo, reverse_string
    --- exit status 1
    ");
    assert_snapshot!(say(&setup.run_with_key(&small, &["test", "demo", "add"])), @"
    --- stderr
    error: http://ADDRESS/mcp refused the request: the key lacks the required scope
    --- exit status 1
    ");
    let audit = || run(&mut setup.store_command(&["audit"]));
    eventually("all calls are written", || (audit().stdout.lines().count() == 6).then_some(()));
    assert_snapshot!(say(&run(&mut setup.store_command(&["key", "list"]))), @"
    ID  ops  tools:* rest admin, since TIME
    SMALL  small  tools:demo/e*, rate 9/s, calls 1/week, until TIME
    --- exit status 0
    ");
    assert_snapshot!(say(&run(&mut setup.store_command(&["key", "revoke", small_id]))), @"
    revoked key SMALL
    --- exit status 0
    ");
    assert_snapshot!(say(&run(&mut setup.store_command(&["key", "revoke", "nobody"]))), @r#"
    --- stderr
    error: no key with id "nobody" among 2 keys
    --- exit status 1
    "#);
    eventually("the key opens nothing", || (setup.run_with_key(&small, &["tools"]).code != 0).then_some(()));
    assert_snapshot!(say(&audit()), @"
    TIME  command line  key_revoked SMALL: done
    TIME  ID (ops)  call add of demo: invalid_arguments, ... ms
    TIME  ID (ops)  call add of demo: ok, ... ms
    TIME  SMALL (small)  call echo of demo: quota_exhausted, ... ms
    TIME  SMALL (small)  call echo of demo: ok, ... ms
    TIME  command line  key_created SMALL: done
    TIME  command line  key_created ID: done
    --- exit status 0
    ");
    assert_snapshot!(say(&run(&mut setup.store_command(&["audit", "--key", small_id, "--outcome", "ok"]))), @"
    TIME  SMALL (small)  call echo of demo: ok, ... ms
    --- exit status 0
    ");
    assert_snapshot!(say(&run(&mut setup.store_command(&["audit", "--name", "nothing"]))), @"
    no records
    --- exit status 0
    ");
}

#[test]
fn for_programs() {
    let folder = TempDir::new().unwrap();
    let json = |args: &[&str]| -> Value {
        let mut command = toolyard(folder.path());
        command.env("TOOLYARD_STATE_DIR", folder.path());
        let ended = run(command.args(args).args(["--output", "json"]));
        assert_eq!(ended.code, 0, "{ended}");
        serde_json::from_str(&ended.stdout).unwrap()
    };
    let made = json(&["key", "create", "x", "--scope", "metrics", "--cost", "2.5"]);
    assert!(made["key"].as_str().unwrap().starts_with("ty_"));
    let keys = json(&["key", "list"]);
    assert_eq!((&keys["keys"][0]["id"], &keys["keys"][0]["cost"]), (&made["id"], &json!("2.5")));
    assert!(keys["keys"][0].get("key").is_none() && keys["keys"][0].get("hash").is_none());
    let revoked = json(&["key", "revoke", made["id"].as_str().unwrap()]);
    assert_eq!(revoked["valid"], json!(false));
    let trail = json(&["audit"]);
    let actions: Vec<_> =
        trail["records"].as_array().unwrap().iter().map(|record| &record["action"]).collect();
    assert_eq!(actions, ["key_revoked", "key_created"]);
    let last = json(&["audit", "--limit", "1"]);
    let next = last["next"].to_string();
    let first = json(&["audit", "--before", &next]);
    assert_eq!((&first["records"][0]["action"], first.get("next")), (&json!("key_created"), None));
    let mut for_people = toolyard(folder.path());
    let for_people = run(for_people.env("TOOLYARD_STATE_DIR", folder.path()).args(["audit", "--limit", "1"]));
    assert_eq!(
        for_people.stderr.trim_end(),
        format!("note: there may be more records; continue with `--before {next}`")
    );
    assert_eq!(for_people.stdout.lines().count(), 1, "{for_people}");
}

/// Callers choose names, which appear on the terminal of an operator.
#[test]
fn untrusted_names_are_escaped() {
    let setup = KeyGateway::start();
    let name = "\u{1b}[2J\u{9b}1A\n2020-01-01T00:00:00Z  forged";
    setup.gateway.request("tools/call", json!({"name": name}));
    let audit = || run(&mut setup.store_command(&["audit"]));
    let result =
        eventually("the call is written", || Some(audit()).filter(|result| result.stdout.contains("forged")));
    let line = r"\u{1b}[2J\u{9b}1A\n2020-01-01T00:00:00Z  forged: tool_not_found";
    assert!(result.stdout.contains(line) && result.stdout.lines().count() == 1, "{result}");
    assert!(!result.stdout.trim_end().contains(char::is_control), "{result}");
}

#[test]
fn commands_that_read_create_no_store() {
    let folder = TempDir::new().unwrap();
    let home = folder.path().to_str().unwrap();
    let manifest = process_document(folder.path(), json!({}));
    for args in [&["key", "list"][..], &["key", "revoke", "x"], &["audit"]] {
        let of_demo = run(toolyard(folder.path()).args(args)).to_string();
        assert!(of_demo.contains("error: the demo keeps no state"), "{of_demo}");
        let output = run(toolyard(folder.path()).args(args).arg("-f").arg(&manifest)).to_string();
        let expected = format!("error: no store at {home}/.local/state/toolyard/stores/");
        assert!(output.contains(&expected) && output.contains("exit status 1"), "{args:?}: {output}");
    }
    assert!(!folder.path().join(".local").exists());
}

#[test]
fn invalid_key_arguments_are_refused() {
    let folder = TempDir::new().unwrap();
    let memory = process_document(folder.path(), json!({"store": {"memory": true}}));
    let say = |args: &[&str]| {
        run(toolyard(folder.path()).env("TOOLYARD_STATE_DIR", folder.path()).args(args)).to_string()
    };
    assert_snapshot!(say(&["key", "create", "x", "--scope", "root"]), @"
    --- stderr
    error: invalid value 'root' for '--scope <SCOPE>': a scope is `tools:PATTERN` (such as `tools:*` or `tools:github/get_*`), `rest`, `admin`, `functions`, `metrics`, `memory:PATTERN` (such as `memory:session/*`) or `publish:PATTERN` (such as `publish:geo-*`)

    For more information, try '--help'.
    --- exit status 2
    ");
    assert_snapshot!(say(&["key", "create", "x"]), @"
    --- stderr
    error: the following required arguments were not provided:
      --scope <SCOPE>

    Usage: toolyard key create --scope <SCOPE> <NAME>

    For more information, try '--help'.
    --- exit status 2
    ");
    assert_snapshot!(say(&["key", "create", "", "--scope", "rest"]), @"
    --- stderr
    error: a key needs a name of at most 100 characters without control characters
    --- exit status 2
    ");
    assert_snapshot!(say(&["key", "create", "x", "--scope", "rest", "--rate", "10"]), @"
    --- stderr
    error: a rate needs a period: `10/s`
    --- exit status 2
    ");
    assert_snapshot!(say(&["key", "create", "x", "--scope", "rest", "--expires", "soon"]), @"
    --- stderr
    error: invalid value 'soon' for '--expires <TIME>': expected a number and a unit, such as 30s, 10min, 12h, 90d or 4w

    For more information, try '--help'.
    --- exit status 2
    ");
    assert_snapshot!(say(&["audit", "--limit", "0"]), @"
    --- stderr
    error: invalid value '0' for '--limit <COUNT>': 0 is not in 1..=1000

    For more information, try '--help'.
    --- exit status 2
    ");
    let in_memory = run(toolyard(folder.path()).args(["key", "list", "-f"]).arg(&memory));
    assert_snapshot!(in_memory.to_string(), @"
    --- stderr
    error: the gateway's store is in its memory: use its REST API (/api/v1)
    --- exit status 1
    ");
    let file = Path::new("/nothing/here");
    let unread = run(toolyard(folder.path()).args(["doctor", "--key-file"]).arg(file));
    assert_snapshot!(unread.to_string(), @"
    --- stderr
    error: cannot use the API key in /nothing/here: cannot read the credentials: No such file or directory (os error 2)
    --- exit status 1
    ");
}

/// The gateway looks for keys every second, and `key create` returns once it has.
#[test]
fn first_key_closes_the_gateway_before_it_is_created() {
    let folder = TempDir::new().unwrap();
    let store = json!({"path": folder.path().join("yard.db")});
    let process = process_document(folder.path(), json!({"store": store, "timeouts": {"keyCheck": "1s"}}));
    let demo = json!({
        "name": "demo",
        "type": "mcp",
        "mcpConfig": {"transport": "stdio", "command": env!("CARGO_BIN_EXE_toolyard"), "args": ["demo-server"]},
    });
    let gateway =
        TestGateway::with_settings(&[demo], json!({"store": store, "timeouts": {"keyCheck": "1s"}}));
    assert_eq!(gateway.get("/api/v1/status").status, 200);
    let made =
        run(toolyard(folder.path()).args(["key", "create", "ops", "--scope", "admin", "-f"]).arg(process));
    assert_eq!(gateway.get("/api/v1/status").status, 401, "{made}");
    assert_eq!(made.stderr.lines().count(), 1, "{made}");
    // A key with no scope but `admin` tests any tool.
    let test = |key: &str| {
        let mut test = toolyard(folder.path());
        run(test.env("TOOLYARD_KEY", key).args([
            "test",
            "demo",
            "add",
            "a=1",
            "b=2",
            "--url",
            &gateway.url(),
        ]))
    };
    assert_eq!(test(made.stdout.trim()).code, 0, "{}", test(made.stdout.trim()));
}

#[test]
fn refused_keys_are_told_apart() {
    let setup = KeyGateway::start();
    let create = |args: &[&str]| {
        let made =
            run(&mut setup.store_command(&[&["key", "create", "x", "--scope", "rest"], args].concat()));
        made.stdout.trim().to_owned()
    };
    let (expired, revoked) = (create(&["--expires", "1s"]), create(&[]));
    let id = |key: &str| key.split('_').nth(1).unwrap().to_owned();
    run(&mut setup.store_command(&["key", "revoke", &id(&revoked)]));
    let reason = |key: &str| {
        let ended = setup.run_with_key(key, &["tools"]);
        let reason = ended.stderr.split_once("refused the request: ");
        reason.map(|(_, reason)| reason.trim_end().to_owned()).unwrap_or_default()
    };
    let expired_is_said = || Some(reason(&expired)).filter(|reason| reason.contains("expired"));
    assert_snapshot!(eventually("the key expires", expired_is_said), @"the key has expired: create another one with `toolyard key create`");
    let revoked_is_said = || Some(reason(&revoked)).filter(|reason| reason.contains("revoked"));
    assert_snapshot!(eventually("the key is revoked", revoked_is_said), @"the key was revoked: create another one with `toolyard key create`");
    assert_snapshot!(reason(""), @"missing key: send `Authorization: Bearer KEY`; for commands of toolyard, set TOOLYARD_KEY or use `--key-file`");
    assert_snapshot!(reason("ty_wrong"), @"wrong key: the gateway has no such key; commands of toolyard send TOOLYARD_KEY or that of `--key-file`");
    // Another secret of an expired key is no way to learn that it has expired.
    let last = if expired.ends_with('A') { 'B' } else { 'A' };
    let forged = format!("{}{last}", &expired[..expired.len() - 1]);
    assert_eq!(reason(&forged).split(':').next(), Some("wrong key"), "{forged}");
}
