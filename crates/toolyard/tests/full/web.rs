//! The tools for the web, called by the Python SDK in both eras, with valid and invalid input. Stand-ins answer for the
//! search services and for GitHub as their vendors document it.

mod github;
mod render;

use std::collections::HashMap;

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolyard_testing::upstream::{BackgroundUpstream, ReceivedRequest, ScriptedReply};

use crate::agent_tools::{gateway, printer, walk, walk_both_eras};
use crate::support::gateway::TestGateway;

const MODERN: &str = "2026-07-28";

/// The response in Brave's documentation of the endpoint, as far as it is about pages.
const BRAVE_EXAMPLE: &str = include_str!("web/brave_example.json");

/// Maximum number of tokens of all built-in tools but [`ORCHESTRATION`].
const MAX_TOKENS: u64 = 3_500;

/// Groups with which an agent lets others work, or scripts.
const ORCHESTRATION: [&str; 4] = ["agents", "subagents", "wisps", "code"];

/// Starts a stand-in of the Brave Search API that accepts one key.
fn brave() -> BackgroundUpstream {
    BackgroundUpstream::start(|request: &ReceivedRequest| match request.head.header("x-subscription-token") {
        Some("good-key") if request.head.start.contains("q=nothing&") => {
            ScriptedReply::json(r#"{"type": "search", "query": {"original": "nothing"}}"#)
        }
        Some("good-key") if request.head.start.contains("q=busy&") => ScriptedReply::http(429, "", "{}"),
        Some("good-key") => ScriptedReply::json(BRAVE_EXAMPLE),
        _ => ScriptedReply::http(422, "", r#"{"error": {"code": "SUBSCRIPTION_TOKEN_INVALID"}}"#),
    })
}

/// Starts a site of a few pages.
fn site() -> BackgroundUpstream {
    BackgroundUpstream::start(|request: &ReceivedRequest| {
        let html = "content-type: text/html; charset=utf-8\r\n";
        match request.head.start.split(' ').nth(1).unwrap_or_default() {
            "/notes" => ScriptedReply::http(200, html, include_str!("web/notes.html")),
            "/moved" => ScriptedReply::http(302, "location: /notes\r\n", ""),
            "/metadata" => ScriptedReply::http(302, "location: http://169.254.169.254/latest/\r\n", ""),
            "/data.json" => ScriptedReply::json(r#"{"a": [1, 2]}"#),
            "/picture.png" => ScriptedReply::http(200, "content-type: image/png\r\n", "\u{89}PNG"),
            "/app" => ScriptedReply::http(200, html, "<div id=app></div><script src=/app.js></script>"),
            "/robots.txt" => ScriptedReply::http(200, "", "User-agent: *\nDisallow: /private"),
            "/private" => ScriptedReply::http(200, html, "<p>private"),
            "/guide" => {
                let section =
                    |number| format!("<h2>Step {number}</h2><p>{}</p>", "Do this carefully. ".repeat(20));
                let sections: String = (1..=4).map(section).collect();
                ScriptedReply::http(200, html, &format!("<title>Guide</title><p>All steps.</p>{sections}"))
            }
            _ => ScriptedReply::http(404, html, "<p>nothing here"),
        }
    })
}

/// Replaces the address of a server.
fn without_address(seen: &str, server: &BackgroundUpstream) -> String {
    let address = server.server.address.to_string();
    seen.replace(&address, "SITE").replace(&address.replace(':', "_"), "SITE")
}

#[test]
fn web_search_calls_brave() {
    let brave = brave();
    let web = json!({"apiKey": "good-key", "endpoint": brave.url("/res/v1/web/search")});
    let gateway = gateway(&[printer()], json!({"web": web}));
    assert_snapshot!(walk_both_eras(&gateway, &[
        ("web_search", json!({"query": "python frameworks"})),
        ("web_search", json!({"query": "python frameworks", "count": 50})),
        ("web_search", json!({"query": "nothing"})),
        ("web_search", json!({"query": "busy"})),
        ("web_search", json!({"query": " "})),
        ("web_search", json!({"query": 7})),
        ("web_search", json!({})),
    ]), @r#"
    call web_search {"query": "python frameworks"}
      => 1. [Top Python Web Frameworks](https://example.com/python-frameworks) — A comprehensive guide to Python web frameworks...
    call web_search {"query": "python frameworks", "count": 50}
      => 1. [Top Python Web Frameworks](https://example.com/python-frameworks) — A comprehensive guide to Python web frameworks...
    call web_search {"query": "nothing"}
      => No results found.
    call web_search {"query": "busy"}
      => failed The search service accepts no more requests now. Try again later.
    call web_search {"query": " "}
      => failed query: is empty; expected search terms
    call web_search {"query": 7}
      => failed Invalid arguments: /query: value is not of type "string"
    call web_search {}
      => failed Invalid arguments: "query" is a required property
    "#);
    let lines: Vec<_> = brave.requests().iter().map(|text| text.lines().next().unwrap().to_owned()).collect();
    assert_snapshot!(lines[..2].join("\n"), @"
    GET /res/v1/web/search?q=python+frameworks&count=5&text_decorations=false HTTP/1.1
    GET /res/v1/web/search?q=python+frameworks&count=20&text_decorations=false HTTP/1.1
    ");
    assert!(!gateway.get("/api/v1/status").body.contains("good-key"));
}

#[test]
fn refused_key_is_explained_without_it() {
    let brave = brave();
    let web = json!({"apiKey": "bad-key", "endpoint": brave.url("/")});
    let gateway = gateway(&[printer()], json!({"web": web}));
    let seen = walk(&gateway, MODERN, &json!([["call", "web_search", {"query": "x"}]]));
    assert_snapshot!(seen, @r#"
    call web_search {"query": "x"}
      => failed The search service refuses the gateway's key. Tell the user that the operator has to check it.
    "#);
    assert!(!gateway.process.stderr.text().contains("bad-key"));
}

#[test]
fn web_search_calls_an_instance_of_searxng() {
    let searxng = BackgroundUpstream::start(|request: &ReceivedRequest| match &*request.head.start {
        line if line.contains("/search?q=python+frameworks&format=json ") => ScriptedReply::json(
            r#"{"query": "python frameworks", "results": [{"url": "https://example.com/a", "title": "A", "content": "Text", "engine": "x"}]}"#,
        ),
        _ => ScriptedReply::http(403, "", ""),
    });
    let web = json!({"provider": "searxng", "endpoint": searxng.url("/")});
    let gateway = gateway(&[printer()], json!({"web": web}));
    let calls = json!([["call", "web_search", {"query": "python frameworks"}], ["call", "web_search", {"query": "x"}]]);
    assert_snapshot!(walk(&gateway, MODERN, &calls), @r#"
    call web_search {"query": "python frameworks"}
      => 1. [A](https://example.com/a) — Text
    call web_search {"query": "x"}
      => failed The search service does not serve JSON. Tell the user that the operator has to add `json` to `search.formats` of SearXNG.
    "#);
}

#[test]
fn web_browse_reads_pages() {
    let site = site();
    let address = site.server.address.to_string();
    let gateway = gateway(&[printer()], json!({"web": {"privateHosts": [address]}}));
    let call = |path: &str| ("web_browse", json!({"url": site.url(path)}));
    let seen = walk_both_eras(
        &gateway,
        &[
            call("/notes"),
            call("/moved"),
            call("/data.json"),
            call("/picture.png"),
            call("/app"),
            call("/private"),
            call("/missing"),
            call("/metadata"),
            ("web_browse", json!({"url": "http://127.0.0.1:9/"})),
            ("web_browse", json!({"url": "file:///etc/passwd"})),
            ("web_browse", json!({"url": ""})),
            ("web_browse", json!({})),
        ],
    );
    assert_snapshot!(without_address(&seen, &site), @r#"
    call web_browse {"url": "http://SITE/notes"}
      => # Release notes - Pump

    Version 2 is **faster**, see the [guide](http://SITE/guide).

    | Version | Pressure |
    | ------- | -------- |
    | 1 | 2 bar |
    | 2 | 3 bar |

    ```sh
    pump --version
    ```

    - quieter
    - smaller
    call web_browse {"url": "http://SITE/moved"}
      => # Release notes - Pump

    Version 2 is **faster**, see the [guide](http://SITE/guide).

    | Version | Pressure |
    | ------- | -------- |
    | 1 | 2 bar |
    | 2 | 3 bar |

    ```sh
    pump --version
    ```

    - quieter
    - smaller
    call web_browse {"url": "http://SITE/data.json"}
      => {"a": [1, 2]}
    call web_browse {"url": "http://SITE/picture.png"}
      => failed The content type `image/png` cannot be read here: only HTML and other texts. Look for an HTML version.
    call web_browse {"url": "http://SITE/app"}
      => failed The page has no text. It may need scripts, which are not run here: use another source.
    call web_browse {"url": "http://SITE/private"}
      => failed The site 127.0.0.1 does not permit automatic visits of this page (robots.txt). Use another source.
    call web_browse {"url": "http://SITE/missing"}
      => failed 127.0.0.1 answered with status 404 Not Found.
    call web_browse {"url": "http://SITE/metadata"}
      => failed The host 169.254.169.254 cannot be visited: it has no public address.
    call web_browse {"url": "http://127.0.0.1:9/"}
      => failed The URL cannot be visited: its port is 9: only 80, 443 and ports from 1024 can be visited.
    call web_browse {"url": "file:///etc/passwd"}
      => failed The URL cannot be visited: its scheme is `file`: only http and https can be visited.
    call web_browse {"url": ""}
      => failed The URL cannot be visited: it is not an absolute URL: expected one such as https://example.com/page.
    call web_browse {}
      => failed Invalid arguments: "url" is a required property
    "#);
}

#[test]
fn long_page_is_read_in_chunks() {
    let site = site();
    let address = site.server.address.to_string();
    let web = json!({"privateHosts": [address], "chunkingThreshold": 500, "chunkMaxLength": 300});
    let gateway = gateway(&[printer()], json!({"web": web}));
    let page = json!(["call", "web_browse", {"url": site.url("/guide")}]);
    let seen = walk(&gateway, "legacy", &json!([page]));
    let base = seen.split('`').nth(1).and_then(|key| key.strip_suffix("-index")).unwrap().to_owned();
    assert!(base.starts_with("session/") && base.matches("session/").count() == 1, "{base}");
    let session = base.split('/').nth(1).unwrap().to_owned();
    let masked = without_address(&seen, &site).replace(&session, "ID");
    assert_snapshot!(masked, @r#"
    call web_browse {"url": "http://SITE/guide"}
      => # Guide

    The page http://SITE/guide is large (1 587 chars) and has been split into 9 chunk(s)
    stored in working memory.
    A document outline is stored at key `session/ID/web-SITE_guide-index` — retrieve
    it with get_from_working_memory to navigate the content by section heading.
    Call get_from_working_memory(key) for each relevant chunk BEFORE drawing conclusions.

    | # | Heading | Key |
    |---|---------|--------------------------------------------------|
    | 0 | Guide | `session/ID/web-SITE_guide-chunk0` |
    | 1 | Step 1 | `session/ID/web-SITE_guide-chunk1` |
    | 2 | Step 1 (continued 1) | `session/ID/web-SITE_guide-chunk2` |
    | 3 | Step 2 | `session/ID/web-SITE_guide-chunk3` |
    | 4 | Step 2 (continued 1) | `session/ID/web-SITE_guide-chunk4` |
    | 5 | Step 3 | `session/ID/web-SITE_guide-chunk5` |
    | 6 | Step 3 (continued 1) | `session/ID/web-SITE_guide-chunk6` |
    | 7 | Step 4 | `session/ID/web-SITE_guide-chunk7` |
    | 8 | Step 4 (continued 1) | `session/ID/web-SITE_guide-chunk8` |

    The text has 19 lines. With the key of the outline, get_from_working_memory also finds lines in all chunks:
    grep: "PATTERN" (with context: 3), or lines: "120-180".
    "#);
}

/// A client without a session and without a key reads the chunks by keys that only the gateway can make.
#[test]
fn stateless_client_reads_chunks() {
    let site = site();
    let address = site.server.address.to_string();
    let web = json!({"privateHosts": [address], "chunkingThreshold": 500, "chunkMaxLength": 300});
    let gateway = gateway(&[printer()], json!({"web": web}));
    let seen = walk(&gateway, MODERN, &json!([["call", "web_browse", {"url": site.url("/guide")}]]));
    let index = seen.split('`').nth(1).unwrap();
    let chunk = index.replace("-index", "-chunk1");
    let read = walk(&gateway, MODERN, &json!([["call", "get_from_working_memory", {"key": chunk}]]));
    assert!(read.contains("Do this carefully."), "{read}");
    let lines = json!([["call", "get_from_working_memory", {"key": index, "grep": "^## Step"}]]);
    assert!(walk(&gateway, MODERN, &lines).contains("4 matches"), "{seen}");
}

#[test]
fn page_is_cut_without_working_memory() {
    let site = site();
    let address = site.server.address.to_string();
    let web = json!({"privateHosts": [address], "chunkingThreshold": 60});
    let gateway = gateway(&[printer()], json!({"web": web, "memory": {"enabled": false}}));
    let seen = walk(&gateway, MODERN, &json!([["call", "web_browse", {"url": site.url("/guide")}]]));
    assert_snapshot!(without_address(&seen, &site), @r#"
    call web_browse {"url": "http://SITE/guide"}
      => # Guide

    All steps.

    ## Step 1

    Do this carefully. Do this c
    [result truncated — 1527 chars omitted]
    The rest was not put into working memory. This caller does not have the tools of working memory.
    "#);
}

fn tool_names(builtins: Value) -> Vec<String> {
    let gateway = gateway(&[printer()], builtins);
    let definitions = gateway.definitions();
    let names = definitions.iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned);
    names.filter(|name| name.starts_with("web_")).collect()
}

#[test]
fn tools_are_listed_only_with_their_settings() {
    let check =
        |builtins: Value, expected: &[&str]| assert_eq!(tool_names(builtins.clone()), expected, "{builtins}");
    check(json!({}), &[]);
    check(json!({"web": {"enabled": false, "apiKey": "k"}}), &[]);
    check(json!({"web": {}}), &["web_browse"]);
    check(json!({"web": {"apiKeyEnvVar": "TOOLYARD_TEST_UNSET_KEY"}}), &["web_browse"]);
    check(json!({"web": {"apiKey": "k"}}), &["web_search", "web_browse"]);
    // A variable of every process.
    check(json!({"web": {"apiKeyEnvVar": "HOME"}}), &["web_search", "web_browse"]);
    check(
        json!({"web": {"provider": "searxng", "endpoint": "http://127.0.0.1:9"}}),
        &["web_search", "web_browse"],
    );
}

#[test]
fn guide_is_found_by_its_alias() {
    let gateway = gateway(&[printer()], json!({"web": {}}));
    let seen = walk(&gateway, MODERN, &json!([["call", "get_tool_guide", {"name": "web"}]]));
    assert!(seen.contains("# Web tools") && seen.contains("web_browse(url)"), "{seen}");
}

/// Returns the tokens of the complete list of tools, and the groups that have a share of it.
fn tokens(builtins: Value) -> (u64, Vec<String>) {
    // Subagents need a model, which is never asked here.
    let llm = json!({"baseURL": "http://127.0.0.1:9/v1", "model": "small"});
    let process = json!({"builtins": builtins, "sandbox": {"isolation": "best-effort"}, "llm": llm});
    let gateway = TestGateway::with_settings(&[], process);
    let tokens: Value = serde_json::from_str(&gateway.get("/api/v1/tokens").body).unwrap();
    let all = tokens["lists"][0]["tokens"].as_u64().unwrap_or_else(|| panic!("{tokens}"));
    let of_handlers = tokens["handlers"].as_array().unwrap();
    let groups: Vec<_> =
        of_handlers.iter().flat_map(|handler| handler["groups"].as_array().unwrap()).collect();
    let number_of_tools =
        |counts: &[&Value]| counts.iter().map(|one| one["tools"].as_u64().unwrap()).sum::<u64>();
    let of_handlers: Vec<_> = of_handlers.iter().collect();
    assert_eq!(number_of_tools(&groups), number_of_tools(&of_handlers), "a tool without a group: {tokens}");
    (all, groups.iter().map(|group| group["name"].as_str().unwrap().to_owned()).collect())
}

/// Groups that are enabled by default, and those that are not, with settings that list all their tools.
fn token_groups() -> [(&'static str, Value); 14] {
    let allow = json!({"hosts": ["example.com"]});
    [
        ("scripts", json!({})),
        ("memory", json!({})),
        ("results", json!({})),
        ("guides", json!({})),
        ("skills", json!({})),
        ("search", json!({"disclosure": "all"})),
        ("mcp", json!({"allow": allow})),
        ("web", json!({"apiKey": "k"})),
        ("schedules", json!({})),
        ("agents", json!({})),
        ("subagents", json!({})),
        ("wisps", json!({})),
        ("openRouter", json!({"apiKey": "k"})),
        ("code", json!({})),
    ]
}

/// The group that another one needs.
fn needed_by(group: &str) -> Option<&'static str> {
    (group == "wisps").then_some("memory")
}

/// The table of `docs/agent-tools.md` has the numbers of this test.
#[test]
fn groups_of_tools_print_their_tokens() {
    let optional = ["web", "schedules", "agents", "subagents", "wisps", "openRouter", "code"];
    let mut rows = Vec::new();
    let mut added_by = HashMap::<_, u64>::new();
    for (group, settings) in token_groups() {
        let needed = needed_by(group);
        let off = token_groups()
            .into_iter()
            .map(|(other, _)| other)
            .filter(|other| !optional.contains(other) && Some(*other) != needed);
        let mut only: serde_json::Map<_, _> =
            off.map(|other| (other.to_owned(), json!({"enabled": false}))).collect();
        only.insert(group.to_owned(), settings);
        let (all_tokens, groups) = tokens(only.into());
        let expected = if group == "results" { vec![] } else { needed.into_iter().chain([group]).collect() };
        assert_eq!(groups, expected, "{group}");
        let added = all_tokens - needed.and_then(|needed| added_by.get(needed)).copied().unwrap_or_default();
        added_by.insert(group, added);
        rows.push(format!("| `{group}` | {added} |"));
    }
    let (all, _) =
        tokens(token_groups().map(|(group, settings)| (group.to_owned(), settings)).into_iter().collect());
    rows.push(format!("| all | {all} |"));
    println!("{}", rows.join("\n"));
    let orchestration: u64 = ORCHESTRATION.iter().map(|group| added_by[group]).sum();
    assert!(all - orchestration <= MAX_TOKENS, "{all} {orchestration}");
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/agent-tools.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    for row in rows {
        assert!(docs.lines().any(|line| line == row), "docs/agent-tools.md lacks {row}");
    }
}
