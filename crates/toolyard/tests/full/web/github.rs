//! GitHub's own description of its API, mocked by Prism, which answers with the examples in it and refuses requests that
//! violate it.

use std::collections::BTreeSet;

use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::upstream::{BackgroundUpstream, ReceivedRequest, ScriptedReply};

use crate::agent_tools::{gateway, printer, walk};
use crate::openapi::document;
use crate::openapi::prism::PrismMock;
use crate::support::gateway::TestGateway;

use super::MODERN;

const DOCUMENT: &str = "npm-generated-api.github.com.json";

const PATHS: [&str; 2] =
    ["/repos/{owner}/{repo}/issues/{issue_number}", "/repos/{owner}/{repo}/pulls/{pull_number}"];

/// Adds the pointers of all references in a value.
fn add_references(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| add_references(item, references)),
        Value::Object(members) => {
            references.extend(members.get("$ref").and_then(Value::as_str).map(|text| text[1..].to_owned()));
            members.values().for_each(|member| add_references(member, references));
        }
        _ => {}
    }
}

/// Returns the description of reading an issue and a pull request, with what it refers to.
fn excerpt(whole: &Value) -> Value {
    let mut excerpt =
        json!({"openapi": whole["openapi"], "info": whole["info"], "paths": {}, "components": {}});
    for path in PATHS {
        let operation = &whole["paths"][path]["get"];
        assert!(operation.is_object(), "{path} is not described");
        excerpt["paths"][path]["get"] = operation.clone();
        let content = &mut excerpt["paths"][path]["get"]["responses"]["200"]["content"]["application/json"];
        // The value of an example refers to another example, which Prism takes for the value itself.
        let default = content["examples"]["default"].clone();
        let inner =
            |example: &Value| example["value"]["$ref"].as_str().and_then(|to| whole.pointer(&to[1..]));
        let example = inner(&default).cloned().unwrap_or(default);
        content["examples"] = json!({"default": example});
    }
    let (mut open, mut seen) = (Vec::new(), BTreeSet::new());
    add_references(&excerpt["paths"], &mut open);
    while let Some(pointer) = open.pop() {
        if seen.insert(pointer.clone()) {
            let component = whole.pointer(&pointer).unwrap_or_else(|| panic!("{pointer} does not exist"));
            let [kind, name] = [2, 3].map(|at| pointer.split('/').nth(at).unwrap());
            excerpt["components"][kind][name] = component.clone();
            add_references(component, &mut open);
        }
    }
    excerpt
}

#[test]
fn issues_and_pull_requests_are_read_by_the_api() {
    let home = TempDir::new().unwrap();
    let Some(path) = document(DOCUMENT, home.path()) else { return };
    let whole: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    std::fs::write(&path, excerpt(&whole).to_string()).unwrap();
    let mock = PrismMock::start(&path, home.path());
    let api = format!("http://127.0.0.1:{}", mock.port);
    let gateway = gateway(&[printer()], json!({"web": {"githubAPI": api}}));
    let seen = walk(
        &gateway,
        MODERN,
        &json!([
            ["call", "web_browse", {"url": "https://github.com/octocat/Hello-World/issues/1347"}],
            ["call", "web_browse", {"url": "https://github.com/octocat/Hello-World/pull/1347/files"}],
        ]),
    );
    assert_snapshot!(seen, @r#"
    call web_browse {"url": "https://github.com/octocat/Hello-World/issues/1347"}
      => # Issue #1347: Found a bug [octocat/Hello-World]

    **Repository:** octocat/Hello-World  
    **State:** open (completed)  
    **Author:** octocat  
    **Created:** 2011-04-22T13:33:48Z  
    **Updated:** 2011-04-22T13:33:48Z  
    **Labels:** bug  
    **URL:** https://github.com/octocat/Hello-World/issues/1347

    I'm having a problem with this.
    call web_browse {"url": "https://github.com/octocat/Hello-World/pull/1347/files"}
      => # PR #1347: Amazing new feature [octocat/Hello-World]

    **Repository:** octocat/Hello-World  
    **State:** open (merged)  
    **Author:** octocat  
    **Created:** 2011-01-26T19:01:12Z  
    **Updated:** 2011-01-26T19:01:12Z  
    **Labels:** bug  
    **Comments:** 10  
    **URL:** https://github.com/octocat/Hello-World/pull/1347

    Please pull these awesome changes in!
    "#);
}

/// Starts a gateway for which all names of hosts lead to a proxy, and whose API of GitHub answers with this status.
fn behind_proxy(status: u16) -> (TestGateway, BackgroundUpstream, BackgroundUpstream) {
    let api = BackgroundUpstream::start(move |_: &ReceivedRequest| {
        ScriptedReply::http(
            status,
            "content-type: application/json\r\n",
            r#"{"message": "API rate limit exceeded"}"#,
        )
    });
    let proxy = BackgroundUpstream::start(|request: &ReceivedRequest| {
        match request.head.start.split(' ').nth(1).unwrap_or_default() {
            "http://github.com/octocat/Hello-World/issues/7" => ScriptedReply::http(
                200,
                "content-type: text/html\r\n",
                "<title>Valve leaks - Issue #7</title><main><p>The valve leaks at 3 bar.</p></main>",
            ),
            _ => ScriptedReply::http(404, "", ""),
        }
    });
    let web = json!({"githubAPI": api.url("/"), "privateHosts": ["github.com"]});
    let (folder, mut command) = TestGateway::command(&[printer()], json!({"builtins": {"web": web}}));
    command.env("http_proxy", proxy.url("")).env("no_proxy", "127.0.0.1");
    (TestGateway::start(folder, &mut command), api, proxy)
}

#[test]
fn page_is_read_if_the_api_refuses() {
    let url = "http://github.com/octocat/Hello-World/issues/7";
    for status in [403, 404, 429, 500] {
        let (gateway, api, proxy) = behind_proxy(status);
        let read = gateway.text("web_browse", json!({"url": url}));
        assert_eq!(read, "# Valve leaks - Issue #7\n\nThe valve leaks at 3 bar.", "{status}");
        let first_line = |request: &String| request.lines().next().unwrap_or_default().to_owned();
        let of_api: Vec<_> = api.requests().iter().map(first_line).collect();
        assert_eq!(of_api, ["GET /repos/octocat/Hello-World/issues/7 HTTP/1.1"], "{status}");
        let of_page: Vec<_> = proxy.requests().iter().map(first_line).collect();
        assert_eq!(
            of_page,
            ["GET http://github.com/robots.txt HTTP/1.1", &format!("GET {url} HTTP/1.1")],
            "{status}"
        );
    }
}

/// The page may be missing as well: then the model reads why.
#[test]
fn missing_issue_is_an_error_of_the_page() {
    let (gateway, _api, _proxy) = behind_proxy(404);
    let read = gateway.text("web_browse", json!({"url": "http://github.com/octocat/Hello-World/issues/8"}));
    assert_eq!(read, "github.com answered with status 404 Not Found.");
}
