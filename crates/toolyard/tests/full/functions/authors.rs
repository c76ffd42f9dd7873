//! The local commands for authors of functions.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::process::{RunningProgram, run};
use toolyard_testing::users;
use toolyard_testing::wait::eventually;

use super::FunctionWorkspace;
use crate::support::gateway::toolyard;

#[test]
fn every_template_passes_its_tests() {
    let workspace = FunctionWorkspace::start(&[], json!({}));
    for kind in ["mcp", "function"] {
        for language in ["py", "js", "lua"] {
            let name = format!("{kind}-{language}");
            let made = workspace.succeed(&["new", "--lang", language, "--kind", kind, &name]);
            assert!(made.contains(&format!("{name}/cortexone_function.{language}")), "{made}");
            let tested = workspace.succeed(&["test", &name, "--isolation", "best-effort"]);
            assert!(tested.contains("test cases passed"), "{tested}");
            let published = workspace.succeed(&["publish", &name]);
            assert!(published.contains(&format!("published {name} 1.0.0\n")), "{published}");
            let tested = workspace.succeed(&["test", &name, "latest"]);
            assert!(tested.contains("test cases passed"), "{tested}");
        }
    }
    let again = workspace.function(&["new", "--lang", "py", "mcp-py"]);
    assert!(again.code == 1 && again.stderr.contains("already exists"), "{again}");
    let functions: Value = serde_json::from_str(&workspace.succeed(&["list", "--output", "json"])).unwrap();
    assert_eq!(functions["functions"].as_array().map(Vec::len), Some(6), "{functions}");
}

#[test]
fn missing_isolation_is_named() {
    users::assert_root();
    let home = TempDir::new().unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o777)).unwrap();
    let function = |args: &[&str]| {
        let program = [env!("CARGO_BIN_EXE_toolyard"), "function"];
        let mut command = users::as_user(users::ORDINARY_USER, &program);
        run(command.args(args).current_dir(&home).env("HOME", home.path()))
    };
    let made = function(&["new", "--lang", "lua", "greet"]);
    assert_eq!(made.code, 0, "{made}");
    let tested = function(&["test", "greet"]);
    assert_eq!(tested.code, 1, "{tested}");
    for part in ["note: this machine lacks the required isolation: ", "`--isolation best-effort` is enough"] {
        assert!(tested.stderr.contains(part), "{tested}");
    }
}

#[test]
fn function_with_failing_tests_is_not_published() {
    let workspace = FunctionWorkspace::start(&[], json!({}));
    let source = "function cortexone_handler() print('\\27[2J') return {statusCode = 200, body = {text = '\\27]'}} end";
    let folder = workspace.write("wrong", "cortexone_function.lua", source, json!({"kind": "function"}));
    let expected = json!({"event": {}, "expect": {"statusCode": 201}}).to_string();
    fs::write(folder.join("tests/created.json"), &expected).unwrap();
    for args in [&["publish", "wrong"][..], &["test", "./wrong", "--isolation", "best-effort"]] {
        let failed = workspace.function(args);
        assert_eq!(failed.code, 1, "{failed}");
        assert!(failed.stdout.contains("FAILED: created after "), "{failed}");
        assert!(failed.stdout.contains("ok: any after "), "{failed}");
        assert!(failed.stdout.contains("1 of 2 test cases failed"), "{failed}");
        assert!(
            failed.stdout.contains("printed  \\u{1b}[2J") && !failed.stdout.contains('\u{1b}'),
            "{failed}"
        );
    }
    let text = workspace.succeed(&["show", "wrong"]);
    assert!(text.contains("not published, draft saved"), "{text}");
    let text: Value =
        serde_json::from_str(&workspace.succeed(&["show", "wrong", "draft", "--output", "json"])).unwrap();
    assert_eq!(text["tests"], json!(["any", "created"]));
    fs::remove_dir_all(folder.join("tests")).unwrap();
    let untested = workspace.function(&["publish", "wrong"]);
    assert!(untested.code == 1 && untested.stderr.contains("at least one test case"), "{untested}");
    workspace.succeed(&["delete", "wrong", "draft"]);
    let gone = workspace.function(&["show", "wrong", "draft"]);
    assert!(gone.code == 1 && gone.stderr.contains("has no version draft"), "{gone}");
}

#[test]
fn published_version_is_immutable() {
    let workspace = FunctionWorkspace::start(&[], json!({}));
    let settings = json!({"kind": "function", "notes": "the first"});
    let source = |number: u32| {
        format!("function cortexone_handler() return {{statusCode = 200, body = '{number}'}} end")
    };
    workspace.publish("fixed", &source(1), settings.clone());
    workspace.write("fixed", "cortexone_function.lua", &source(2), settings);
    workspace.succeed(&["publish", "fixed", "--minor", "--note", "the second"]);
    let invoke = |version: &str| workspace.succeed(&["invoke", &format!("fixed@{version}")]);
    assert_eq!(invoke("1.0.0"), "{\"statusCode\":200,\"body\":\"1\"}\n");
    assert_eq!(invoke("latest"), "{\"statusCode\":200,\"body\":\"2\"}\n");
    let details = workspace.succeed(&["show", "fixed"]);
    assert!(details.contains("bytes  the second\n") && details.contains("bytes  the first\n"), "{details}");
    workspace.succeed(&["delete", "fixed"]);
    let gone = workspace.function(&["invoke", "fixed"]);
    assert!(gone.code == 1 && gone.stderr.contains("refused the request"), "{gone}");
}

/// `dev` tests the function on every save and serves it.
#[test]
fn dev_tests_and_serves_every_save() {
    let home = TempDir::new().unwrap();
    let command = || {
        let mut command = toolyard(home.path());
        command.current_dir(home.path());
        command
    };
    let made = run(command().args(["function", "new", "--lang", "lua", "--kind", "function", "greet"]));
    assert_eq!(made.code, 0, "{made}");
    let mut dev = command();
    dev.args(["function", "dev", "greet", "--listen", "127.0.0.1:0", "--isolation", "best-effort"]);
    let mut dev = RunningProgram::start(&mut dev);
    let url = dev.stdout.wait_for("the URL", |text| {
        let (_, rest) = text.split_once(" as MCP on ")?;
        rest.split_once('\n').map(|(url, _)| url.to_owned())
    });
    let shows = |text: &str| dev.stdout.wait_for(text, |text| text.contains(text).then_some(()));
    shows("all 2 test cases passed");
    let call = || run(command().args(["call", "call", "name=Ada", "--url", &url])).stdout;
    assert_eq!(call(), "{\"greeting\":\"Hello, Ada!\"}\n");
    shows("  ok, ");
    let path = home.path().join("greet/cortexone_function.lua");
    let source = fs::read_to_string(&path).unwrap();
    fs::write(&path, source.replace("Hello", "Moin, moin")).unwrap();
    shows("1 of 2 test cases failed");
    // The gateway detects the change by itself.
    eventually("the saved function", || (call() == "{\"greeting\":\"Moin, moin, Ada!\"}\n").then_some(()));
    fs::write(&path, "this is no Lua").unwrap();
    shows("invalid function: the function cannot be loaded");
    assert_eq!(call(), "{\"greeting\":\"Moin, moin, Ada!\"}\n");
    dev.signal(rustix::process::Signal::INT);
    assert_eq!(dev.wait().code(), Some(0));
}

#[test]
fn invalid_function_is_refused() {
    let workspace = FunctionWorkspace::start(&[], json!({}));
    fs::create_dir(workspace.folder().join("empty")).unwrap();
    let check = |args: &[&str], expected: &str| {
        let ended = workspace.function(args);
        assert_eq!(ended.code, 2, "{ended}");
        assert!(ended.stderr.contains(expected), "{expected}: {ended}");
    };
    check(&["publish", "empty"], "must have exactly one of");
    check(&["publish", "nowhere"], "cannot read nowhere");
    check(&["test", "./nowhere"], "cannot read ./nowhere");
    check(&["dev", "empty", "--listen", "127.0.0.1:0"], "must have exactly one of");
    check(&["new", "--lang", "py", "../x"], "letters, digits");
    check(&["new", "--lang", "cobol", "x"], "possible values: py, js, lua");
    check(&["invoke", "x@newest"], "a version is");
    check(&["invoke", "x", "{"], "the event is not valid JSON");
    check(&["delete", "x", "latest"], "expected an exact version");
    check(&["show", "../keys"], "letters, digits");
    workspace.write("-anonymous", "cortexone_function.lua", "", json!({}));
    fs::write(workspace.folder().join("-anonymous/function.json"), "{}").unwrap();
    check(&["publish", "./-anonymous"], "\"-anonymous\" cannot be an id; set `id` in function.json");
}

#[test]
fn equal_function_is_published_once() {
    let workspace = FunctionWorkspace::start(&[], json!({}));
    let made = workspace.function(&["new", "--lang", "lua", "rain"]);
    assert_eq!(made.code, 0, "{made}");
    // Without `id` in `function.json`, the directory names the function.
    std::fs::remove_file(workspace.folder().join("rain/function.json")).unwrap();
    let first = workspace.succeed(&["publish", "rain"]);
    assert_snapshot!(first.split_once("passed\n").unwrap().1, @"
    published rain 1.0.0

    To serve it as tools, run `toolyard add function rain`, or add this handler to the gateway's manifest:

    - name: rain
      type: function
      functionConfig:
        id: rain
    ");
    let again = workspace.succeed(&["publish", "rain", "--major"]);
    assert_snapshot!(again.split_once("passed\n").unwrap().1, @"rain 1.0.0 is this function already; nothing is published");
    let handler = workspace.folder().join("rain").join("cortexone_function.lua");
    let source = std::fs::read_to_string(&handler).unwrap();
    std::fs::write(&handler, source + "\n-- changed\n").unwrap();
    let changed = workspace.succeed(&["publish", "rain"]);
    assert!(changed.contains("published rain 1.0.1\n"), "{changed}");
    let list = workspace.succeed(&["show", "rain"]);
    assert!(list.contains("latest of 2 versions"), "{list}");
}

#[test]
fn calls_are_followed() {
    let workspace = FunctionWorkspace::start(&[], json!({}));
    workspace.publish("echo", "function cortexone_handler(event) print('said ' .. event.word) return {statusCode = 200, body = event} end", json!({"kind": "function"}));
    let call =
        |word: &str| assert_eq!(workspace.invoke("", "echo/latest", &json!({"word": word})).status, 200);
    call("one");
    eventually("the call is logged", || {
        workspace.succeed(&["logs", "echo"]).contains("said one").then_some(())
    });
    let mut follow = toolyard(workspace.folder());
    follow.args(["function", "logs", "echo", "--follow", "--url", &workspace.gateway.url()]);
    let follow = RunningProgram::start(&mut follow);
    follow.stdout.wait_for("the earlier call", |text| text.contains("said one\n").then_some(()));
    call("two");
    call("three");
    let text = follow
        .stdout
        .wait_for("the new calls", |text| text.contains("said three\n").then(|| text.to_owned()));
    let words: Vec<_> = text.lines().filter_map(|line| line.trim().strip_prefix("printed  said ")).collect();
    assert_eq!(words, ["one", "two", "three"]);
}

#[test]
fn dev_chooses_a_free_port() {
    let workspace = FunctionWorkspace::start(&[], json!({}));
    workspace.write(
        "greet",
        "cortexone_function.lua",
        "function cortexone_handler(event) return event end",
        json!({}),
    );
    // It fails if another program of this machine has the port, as intended.
    let _taken = std::net::TcpListener::bind("127.0.0.1:8080");
    let mut dev = toolyard(workspace.folder());
    dev.current_dir(workspace.folder()).args(["function", "dev", "greet", "--isolation", "best-effort"]);
    let dev = RunningProgram::start(&mut dev);
    let line = dev.stdout.wait_for("the URL", |text| text.lines().next().map(str::to_owned));
    assert!(
        line.starts_with("serving greet as MCP on http://127.0.0.1:") && !line.contains(":8080/"),
        "{line}"
    );
    let note = dev.stderr.wait_for("the note", |text| text.lines().next().map(str::to_owned));
    assert!(note.starts_with("note: 127.0.0.1:8080 is in use, so the function is served on port "), "{note}");
    let url = line.strip_prefix("serving greet as MCP on ").unwrap();
    assert!(note.ends_with(&format!(": call it with `toolyard call --url {url}`")), "{note}");
}
