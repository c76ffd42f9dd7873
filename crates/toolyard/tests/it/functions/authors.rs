//! What authors do on their own machine, and what they are shown.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::Yard;
use crate::support::gateway::toolyard;
use crate::support::process::{Process, run};

#[test]
fn every_template_works_as_it_is() {
    let yard = Yard::start(&[], json!({}));
    for kind in ["mcp", "function"] {
        for language in ["py", "js", "lua"] {
            let name = format!("{kind}-{language}");
            let made = yard.done(&["new", "--lang", language, "--kind", kind, &name]);
            assert!(made.contains(&format!("{name}/cortexone_function.{language}")), "{made}");
            let tested = yard.done(&["test", &name, "--isolation", "best-effort"]);
            assert!(tested.contains("test cases passed"), "{tested}");
            let published = yard.done(&["publish", &name]);
            assert!(published.ends_with(&format!("{name} 1.0.0 is published\n")), "{published}");
            let tested = yard.done(&["test", &name, "latest"]);
            assert!(tested.contains("test cases passed"), "{tested}");
        }
    }
    let again = yard.function(&["new", "--lang", "py", "mcp-py"]);
    assert!(again.code == 1 && again.stderr.contains("is there already"), "{again}");
    let listed: Value = serde_json::from_str(&yard.done(&["list", "--output", "json"])).unwrap();
    assert_eq!(listed["functions"].as_array().map(Vec::len), Some(6), "{listed}");
}

#[test]
fn nothing_is_published_whose_tests_fail() {
    let yard = Yard::start(&[], json!({}));
    let source = "function cortexone_handler() print('\\27[2J') return {statusCode = 200, body = {text = '\\27]'}} end";
    let folder = yard.write("wrong", "cortexone_function.lua", source, json!({"kind": "function"}));
    let expected = json!({"event": {}, "expect": {"statusCode": 201}}).to_string();
    fs::write(folder.join("tests/created.json"), &expected).unwrap();
    for args in [&["publish", "wrong"][..], &["test", "./wrong", "--isolation", "best-effort"]] {
        let failed = yard.function(args);
        assert_eq!(failed.code, 1, "{failed}");
        assert!(failed.stdout.contains("FAILED: created after "), "{failed}");
        assert!(failed.stdout.contains("ok: any after "), "{failed}");
        assert!(failed.stdout.contains("1 of 2 test cases failed"), "{failed}");
        assert!(
            failed.stdout.contains("printed  \\u{1b}[2J") && !failed.stdout.contains('\u{1b}'),
            "{failed}"
        );
    }
    let shown = yard.done(&["show", "wrong"]);
    assert!(shown.contains("not published, a draft of"), "{shown}");
    let shown: Value =
        serde_json::from_str(&yard.done(&["show", "wrong", "draft", "--output", "json"])).unwrap();
    assert_eq!(shown["tests"], json!(["any", "created"]));
    fs::remove_dir_all(folder.join("tests")).unwrap();
    let untested = yard.function(&["publish", "wrong"]);
    assert!(untested.code == 1 && untested.stderr.contains("at least one test case"), "{untested}");
    yard.done(&["delete", "wrong", "draft"]);
    let gone = yard.function(&["show", "wrong", "draft"]);
    assert!(gone.code == 1 && gone.stderr.contains("has no version draft"), "{gone}");
}

#[test]
fn what_was_published_stays_as_it_is() {
    let yard = Yard::start(&[], json!({}));
    let settings = json!({"kind": "function", "notes": "the first"});
    let source = |number: u32| {
        format!("function cortexone_handler() return {{statusCode = 200, body = '{number}'}} end")
    };
    yard.publish("fixed", &source(1), settings.clone());
    yard.write("fixed", "cortexone_function.lua", &source(2), settings);
    yard.done(&["publish", "fixed", "--minor", "--note", "the second"]);
    let said = |version: &str| yard.done(&["invoke", &format!("fixed@{version}")]);
    assert_eq!(said("1.0.0"), "{\"statusCode\":200,\"body\":\"1\"}\n");
    assert_eq!(said("latest"), "{\"statusCode\":200,\"body\":\"2\"}\n");
    let shown = yard.done(&["show", "fixed"]);
    assert!(shown.contains("bytes  the second\n") && shown.contains("bytes  the first\n"), "{shown}");
    yard.done(&["delete", "fixed"]);
    let gone = yard.function(&["invoke", "fixed"]);
    assert!(gone.code == 1 && gone.stderr.contains("refuses"), "{gone}");
}

/// Whoever writes a function sees what each save does, and can call it meanwhile.
#[test]
fn a_function_is_tested_and_served_while_it_is_written() {
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
    let mut dev = Process::start(&mut dev);
    let url = dev.stdout.wait_for("the URL", |text| {
        let (_, rest) = text.split_once("is served as MCP on ")?;
        rest.split_once('\n').map(|(url, _)| url.to_owned())
    });
    let shows = |text: &str| dev.stdout.wait_for(text, |shown| shown.contains(text).then_some(()));
    shows("all 2 test cases passed");
    let call = || run(command().args(["call", "call", "name=Ada", "--url", &url])).stdout;
    assert_eq!(call(), "{\"greeting\":\"Hello, Ada!\"}\n");
    shows("  ok, ");
    let path = home.path().join("greet/cortexone_function.lua");
    let source = fs::read_to_string(&path).unwrap();
    fs::write(&path, source.replace("Hello", "Moin, moin")).unwrap();
    shows("1 of 2 test cases failed");
    assert_eq!(call(), "{\"greeting\":\"Moin, moin, Ada!\"}\n");
    fs::write(&path, "this is no Lua").unwrap();
    shows("cannot be used: the function cannot be loaded");
    assert_eq!(call(), "{\"greeting\":\"Moin, moin, Ada!\"}\n");
    dev.signal(rustix::process::Signal::INT);
    assert_eq!(dev.wait().code(), Some(0));
}

#[test]
fn what_is_no_function_is_wrong_input() {
    let yard = Yard::start(&[], json!({}));
    fs::create_dir(yard.folder().join("empty")).unwrap();
    let check = |args: &[&str], expected: &str| {
        let ended = yard.function(args);
        assert_eq!(ended.code, 2, "{ended}");
        assert!(ended.stderr.contains(expected), "{expected}: {ended}");
    };
    check(&["publish", "empty"], "has no single handler");
    check(&["publish", "nowhere"], "cannot read nowhere");
    check(&["test", "./nowhere"], "cannot read ./nowhere");
    check(&["dev", "empty", "--listen", "127.0.0.1:0"], "has no single handler");
    check(&["new", "--lang", "py", "../x"], "letters, digits");
    check(&["new", "--lang", "cobol", "x"], "possible values: py, js, lua");
    check(&["invoke", "x@newest"], "a version is");
    check(&["invoke", "x", "{"], "the event is no JSON");
    check(&["delete", "x", "latest"], "one version is meant");
    check(&["show", "../keys"], "letters, digits");
    yard.write("anonymous", "cortexone_function.lua", "", json!({}));
    fs::write(yard.folder().join("anonymous/function.json"), "{}").unwrap();
    check(&["publish", "anonymous"], "function.json has no `id`");
}
