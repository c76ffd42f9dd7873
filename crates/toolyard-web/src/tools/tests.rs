use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use toolyard_core::{Backend, Call, Json, Outcome};
use toolyard_manifest::WebSettings;

use super::*;
use crate::browse::BrowserParts;
use crate::github::GithubApi;
use crate::search::{SearchError, SearchHit};
use crate::testing::{StaticSite, client, fetcher, html, response};

/// Finds as many pages as it is asked for, or none.
struct NumberedHits;

impl SearchProvider for NumberedHits {
    fn search<'a>(
        &'a self,
        query: &'a str,
        count: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, SearchError>> {
        let hit = |number| SearchHit {
            title: format!("{query} {number}"),
            url: format!("https://example.com/{number}"),
            snippet: "Snippet text".to_owned(),
        };
        let found = match query {
            "nothing" => Ok(Vec::new()),
            "quota" => Err(SearchError::Quota),
            _ => Ok((1..=count).map(hit).collect()),
        };
        Box::pin(async move { found })
    }
}

fn backend(
    settings: &WebSettings,
    github: &str,
    search: Option<Arc<dyn SearchProvider>>,
) -> Arc<dyn Backend> {
    let limits = WebCallLimits::new(settings);
    let tools = WebTools {
        browser: PageBrowser::new(BrowserParts {
            fetcher: fetcher(settings.clone()),
            renderer: None,
            github: GithubApi::new(client(), github, None),
            memory: None,
            limits: limits.clone(),
        }),
        search,
        limits,
        max_results: settings.max_search_results,
        reads_memory: Arc::new(|_| true),
    };
    add(Server::new("web", "1.0.0"), tools).expect("tools").into_backend()
}

async fn read(backend: &Arc<dyn Backend>, tool: &str, arguments: Value) -> String {
    match backend.call(Call::tool(tool, Json::from_value(&arguments))).await {
        Ok(Outcome::Done(output)) => {
            let body = output.body.to_json().to_value();
            let text = body["content"][0]["text"].as_str().unwrap_or_default();
            if output.is_error { format!("error: {text}") } else { text.to_owned() }
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn tool_definitions() {
    let catalog =
        backend(&WebSettings::default(), "", Some(Arc::new(NumberedHits))).catalog().borrow().clone();
    let definitions: Vec<_> = catalog.tools.iter().map(|tool| tool.definition.to_json().to_value()).collect();
    insta::assert_snapshot!(serde_json::to_string_pretty(&definitions).expect("JSON"));
}

#[test]
fn search_is_listed_only_with_a_service() {
    let names = |search| {
        let catalog = backend(&WebSettings::default(), "", search).catalog().borrow().clone();
        catalog.tools.iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(None), [BROWSE]);
    assert_eq!(names(Some(Arc::new(NumberedHits))), NAMES);
}

#[tokio::test]
async fn search_results() {
    let backend = backend(&WebSettings::default(), "", Some(Arc::new(NumberedHits)));
    let mut seen = Vec::new();
    for arguments in [
        json!({"query": " pump "}),
        json!({"query": "pump", "count": 2}),
        json!({"query": "pump", "count": 0}),
        json!({"query": "pump", "count": -3}),
        json!({"query": "nothing"}),
        json!({"query": "quota"}),
        json!({"query": " "}),
    ] {
        seen.push(format!("> {arguments}\n{}", read(&backend, SEARCH, arguments.clone()).await));
    }
    insta::assert_snapshot!(seen.join("\n"), @r#"
    > {"query":" pump "}
    1. [pump 1](https://example.com/1) — Snippet text
    2. [pump 2](https://example.com/2) — Snippet text
    3. [pump 3](https://example.com/3) — Snippet text
    4. [pump 4](https://example.com/4) — Snippet text
    5. [pump 5](https://example.com/5) — Snippet text
    > {"query":"pump","count":2}
    1. [pump 1](https://example.com/1) — Snippet text
    2. [pump 2](https://example.com/2) — Snippet text
    > {"query":"pump","count":0}
    1. [pump 1](https://example.com/1) — Snippet text
    > {"query":"pump","count":-3}
    1. [pump 1](https://example.com/1) — Snippet text
    > {"query":"nothing"}
    No results found.
    > {"query":"quota"}
    error: The search service accepts no more requests now. Try again later.
    > {"query":" "}
    error: query: is empty; expected search terms
    "#);
    let many = read(&backend, SEARCH, json!({"query": "pump", "count": 1e9})).await;
    assert_eq!(many.lines().count(), MAX_RESULTS);
}

#[tokio::test]
async fn long_page_without_memory_is_cut_with_a_notice() {
    let long = format!("<title>Long</title><p>{}</p>", "word ".repeat(100));
    let site = StaticSite::start(vec![("/", html(&long)), ("/short", html("<p>short"))]).await;
    let settings = WebSettings { chunking_threshold: 20, ..site.settings() };
    let backend = backend(&settings, "", None);
    insta::assert_snapshot!(read(&backend, BROWSE, json!({"url": site.url("/")})).await, @"
    # Long

    word word wo
    [result truncated — 487 chars omitted]
    The rest was not put into working memory. This caller does not have the tools of working memory.
    ");
    assert_eq!(read(&backend, BROWSE, json!({"url": site.url("/short")})).await, "short");
}

#[tokio::test]
async fn invalid_urls_are_explained() {
    let backend = backend(&WebSettings::default(), "", None);
    let mut seen = Vec::new();
    for url in [
        "",
        "ftp://example.com/x",
        "https://user:secret@example.com/",
        "http://127.0.0.1/",
        "https://münchen.example/",
    ] {
        seen.push(format!("> {url}\n{}", read(&backend, BROWSE, json!({"url": url})).await));
    }
    insta::assert_snapshot!(seen.join("\n"), @"
    > 
    error: The URL cannot be visited: it is not an absolute URL: expected one such as https://example.com/page.
    > ftp://example.com/x
    error: The URL cannot be visited: its scheme is `ftp`: only http and https can be visited.
    > https://user:secret@example.com/
    error: The URL cannot be visited: it has a user name or a password: leave out what stands before `@`.
    > http://127.0.0.1/
    error: The host 127.0.0.1 cannot be visited: it has no public address.
    > https://münchen.example/
    error: The URL cannot be visited: its host is not a plain name or address: write international names in Punycode (`xn--…`), and nothing percent-encoded.
    ");
}

#[tokio::test]
async fn page_is_visited_if_the_api_of_github_fails() {
    let api = StaticSite::start(vec![("/repos/o/r/issues/1", response("403 Forbidden", "", b"{}"))]).await;
    let settings = WebSettings {
        hosts: Some(vec!["github.com".to_owned()]),
        host_requests: 1,
        ..WebSettings::default()
    };
    let backend = backend(&settings, &api.url(""), None);
    // Nothing answers for the page itself in this test.
    let read = read(&backend, BROWSE, json!({"url": "http://github.com:9999/o/r/issues/1"})).await;
    assert!(read.starts_with("error: The host github.com"), "{read}");
    assert_eq!(api.visited(), ["GET /repos/o/r/issues/1"]);
}
