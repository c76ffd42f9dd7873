//! `toolyard doctor`.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::toolyard_with;
use crate::support::gateway::{Gateway, over_http};
use crate::support::peers;
use crate::support::scripted::Scripted;

/// What it says of a gateway, without what differs from run to run.
#[track_caller]
fn doctor(gateway: &Gateway, names: &[(&str, String)]) -> String {
    let said = toolyard_with(&["doctor", "--url", &gateway.url()]).to_string();
    let said = names.iter().fold(said, |said, (word, random)| said.replace(random, word));
    // Times, and the memory that a server takes.
    let words = said.split_inclusive([' ', '\n']).scan("", |last, word| {
        let is_random = matches!(last.trim(), "since" | "at" | "with");
        *last = word;
        let end = word.trim_start_matches(|c: char| !c.is_whitespace());
        Some(if is_random { format!("...{end}") } else { word.to_owned() })
    });
    words.collect()
}

#[test]
fn of_a_gateway_with_a_handler_that_is_down() {
    let there = Scripted::new("there");
    let nobody = format!("127.0.0.1:{}", peers::free_port());
    let handlers = [there.handler(), over_http("gone", &format!("http://{nobody}/mcp?key=SECRET"))];
    let gateway = Gateway::of(&handlers);
    assert_eq!(gateway.tools(), ["pid", "wait"]);
    let python = peers::peer("python/bin/python").to_str().unwrap().to_owned();
    let random = [("PYTHON", python), ("NOBODY", nobody)];
    assert_snapshot!(doctor(&gateway, &random), @"
    Toolyard 0.1.0: Degraded. 1 of 2 handlers are ready, 2 of 2 tools are available.

      ok    there  2 tools, MCP 2025-11-25, stdio://PYTHON, since ...
      DOWN  gone   0 tools, mcp, http://NOBODY/mcp, since ...
            the server cannot be reached: cannot connect: client error (Connect): tcp connect error: Connection refused (os error 111)

    The list of 2 tools has 172 characters, about 40 tokens of a model's context.
    Processes alive: 1, with ... MiB of their own; started again: 0.
    --- exit status 1
    ");
}

/// A name that is legal here may still be too long for some.
#[test]
fn of_a_long_name() {
    let there = Scripted::new("a-handler-whose-name-is-about-as-long-as-names-can-be");
    let other = Scripted::new("there");
    let gateway = Gateway::of(&[other.handler(), there.handler()]);
    let tools = gateway.tools();
    let said = toolyard_with(&["doctor", "--url", &gateway.url()]).to_string();
    let long = said.lines().find(|line| line.contains("`mcp__toolyard__`")).unwrap();
    assert_eq!(long.matches(&tools[2]).count(), 1, "{long}");
    assert!(!long.contains(" wait"), "{long}");
}

#[test]
fn for_programs() {
    let there = Scripted::new("there");
    let gateway = Gateway::of(&[there.handler()]);
    gateway.tools();
    let said = toolyard_with(&["doctor", "--output", "json", "--url", &gateway.url()]);
    let status: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((said.code, &status["phase"]), (0, &json!("Ready")));
    assert_eq!(status["handlers"][0]["processes"][0]["processes"], 1);
}

/// Which walls a machine has differs; that there are to be none does not.
#[test]
fn of_its_sandbox() {
    let there = Scripted::new("there");
    let gateway = Gateway::with(&[there.handler()], json!({"sandbox": {"isolation": "none"}}));
    let said = toolyard_with(&["doctor", "--sandbox", "--url", &gateway.url()]).to_string();
    assert_snapshot!(said, @"
    Isolation is `none`: functions and scripts can run.

    supervisor      enforced
    cgroup memory   not enforced: there is no isolation
    cgroup cpu      not enforced: there is no isolation
    cgroup pids     not enforced: there is no isolation
    namespaces      not enforced: there is no isolation
    landlock        not enforced: there is no isolation
    seccomp         not enforced: there is no isolation
    --- exit status 0
    ");
}

/// The tools of search alone, with and without something that they find.
#[test]
fn of_its_tokens() {
    let off = json!({"enabled": false});
    let say = |search: Value| {
        let there = Scripted::new("there");
        let builtins = json!({"scripts": off, "memory": off, "guides": off, "skills": off, "mcp": off, "search": search});
        let gateway = Gateway::with(&[there.handler()], json!({"builtins": builtins}));
        gateway.tools();
        toolyard_with(&["doctor", "--tokens", "--url", &gateway.url()]).to_string()
    };
    assert_snapshot!(say(json!({"budget": 300})), @"
    The list of tools, as MCP clients are given it, in tokens of a model (estimator: bytes/4.4):

      all          5 tools       378 tokens
      search       3 tools       339 tokens
    * auto         3 tools       339 tokens

    * is what is given. `auto` is `all` up to 300 tokens (`builtins.search`).

    With all tools, by handler:

      builtins       3 tools       339 tokens
      there          2 tools        39 tokens
    --- exit status 0
    ");
    assert_snapshot!(say(json!({"enabled": false})), @"
    The list of tools, as MCP clients are given it, in tokens of a model (estimator: bytes/4.4):

    * all          2 tools        40 tokens

    All are given: there is no tool that finds others (`builtins.search`).

    With all tools, by handler:

      there       2 tools        39 tokens
    --- exit status 0
    ");
}

#[test]
fn of_its_tokens_for_programs() {
    let there = Scripted::new("there");
    let gateway = Gateway::of(&[there.handler()]);
    gateway.tools();
    let said = toolyard_with(&["doctor", "--tokens", "--output", "json", "--url", &gateway.url()]);
    assert_snapshot!(said.to_string(), @r#"
    {"estimator":"bytes/4.4","disclosure":"all","lists":[{"disclosure":"all","tools":2,"tokens":40}],"handlers":[{"name":"there","tools":2,"tokens":39}]}
    --- exit status 0
    "#);
}

#[test]
fn of_no_gateway() {
    let url = format!("http://127.0.0.1:{}/mcp", peers::free_port());
    let said = toolyard_with(&["doctor", "--url", &url]).to_string().replace(&url, "URL");
    assert_snapshot!(said, @"
    --- stderr
    error: cannot ask URL: cannot connect: client error (Connect): tcp connect error: Connection refused (os error 111)
    --- exit status 1
    ");
}
