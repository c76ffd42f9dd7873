//! Search services.
//!
//! - [`brave`]: the Brave Search API;
//! - [`searxng`]: instances of SearXNG;
//! - `listing`: hits as a numbered list in Markdown.

pub mod brave;
mod listing;
pub mod searxng;

use bytes::Bytes;
use dom_query::Document;
use futures_util::future::BoxFuture;
use http::{Request, StatusCode, header};
use http_body_util::Full;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolyard_net::body::{self, BodyReadError};
use toolyard_net::client::RequestError;

pub use self::brave::BraveSearch;
pub use self::listing::listing;
pub use self::searxng::SearxngSearch;
use crate::shared_client::{NoClient, SharedClient};
use crate::web_url::WebUrl;

/// Maximum size of a response in bytes. Twenty results have a tenth.
const MAX_RESPONSE_BYTES: usize = 2 << 20;

/// Maximum number of results.
pub const MAX_RESULTS: usize = 20;

/// A service that searches the web.
pub trait SearchProvider: Send + Sync {
    /// Returns at most `count` results, the best first.
    fn search<'a>(
        &'a self,
        query: &'a str,
        count: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, SearchError>>;
}

/// A result of a search, in plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// Title of the page.
    pub title: String,
    /// URL of the page.
    pub url: String,
    /// Some of its text.
    pub snippet: String,
}

/// The reason why there are no results, as models read it. It contains nothing of the response.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The service cannot be reached.
    #[error("The search service cannot be reached: {}.", .0.reason())]
    Request(#[from] RequestError),
    /// The service refuses the key.
    #[error("The search service refuses the gateway's key. Tell the user that the operator has to check it.")]
    Key,
    /// The service has no more requests for the key.
    #[error("The search service accepts no more requests now. Try again later.")]
    Quota,
    /// The service refuses the query.
    #[error("The search service refuses the query: make it shorter or simpler.")]
    Query,
    /// The instance does not serve JSON.
    #[error(
        "The search service does not serve JSON. Tell the user that the operator has to add `json` to `search.formats` of SearXNG."
    )]
    NoJson,
    /// The service answers with another status.
    #[error("The search service answered with status {0}.")]
    Status(StatusCode),
    /// The response ended early or is too long.
    #[error("The response of the search service cannot be read: {0}.")]
    Body(#[from] BodyReadError),
    /// The response is not what the service documents.
    #[error("The response of the search service is not in the documented form.")]
    Response(#[source] serde_json::Error),
    /// The client could not be made.
    #[error(transparent)]
    Client(#[from] NoClient),
    /// The request cannot be built.
    #[error("The query cannot be sent.")]
    Unsendable(#[from] http::Error),
}

/// Sends a request and returns the status and the body.
async fn send(
    client: &SharedClient,
    request: http::request::Builder,
) -> Result<(StatusCode, Bytes), SearchError> {
    let request: Request<Full<Bytes>> =
        request.header(header::ACCEPT, "application/json").body(Full::default())?;
    let response = client.get().await?.any.send(request).await?;
    let status = response.status();
    Ok((status, body::read(response.into_body(), MAX_RESPONSE_BYTES).await?))
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, SearchError> {
    serde_json::from_slice(body).map_err(SearchError::Response)
}

/// The form of the texts of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextForm {
    Plain,
    /// HTML, in which words are highlighted.
    Html,
}

/// Returns at most `count` hits of these results, with the snippet in this member. A result that `web_browse` cannot visit,
/// such as one with a `javascript:` URL, is left out.
fn hits(results: &[Value], snippet: &str, form: TextForm, count: usize) -> Vec<SearchHit> {
    let hit = |result: &Value| {
        let member = |name: &str| result[name].as_str().unwrap_or_default();
        let text = |name: &str| match member(name) {
            html if form == TextForm::Html && html.contains(['<', '&']) => {
                Document::fragment(html).text().to_string()
            }
            text => text.to_owned(),
        };
        let url = member("url").to_owned();
        WebUrl::parse(&url).ok()?;
        Some(SearchHit { title: text("title"), url, snippet: text(snippet) })
    };
    results.iter().filter_map(hit).take(count).collect()
}

/// Returns a URL with these parameters added to its query.
fn with_query(url: &str, parameters: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(parameters);
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}{}", query.finish())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn incomplete_results_do_not_hide_others() {
        let check = |result: Value, expected: &[&str]| {
            let results = [result, json!({"title": "B", "url": "https://b.example/", "content": "text"})];
            let lines = listing(&hits(&results, "content", TextForm::Plain, 5));
            let expected = [expected, &["[B](https://b.example/) — text"]].concat();
            let numbered = expected.iter().enumerate().map(|(at, line)| format!("{}. {line}", at + 1));
            assert_eq!(lines, numbered.collect::<Vec<_>>().join("\n"), "{}", results[0]);
        };
        let url = "https://a.example/";
        check(json!({"title": null, "url": url}), &["[https://a.example/](https://a.example/)"]);
        check(json!({"title": 7, "url": url, "content": []}), &["[https://a.example/](https://a.example/)"]);
        check(json!({"title": "A", "url": null}), &[]);
        check(json!({"title": "A", "url": "javascript:alert(1)"}), &[]);
        check(json!({"title": "A", "url": "data:text/html,x"}), &[]);
        check(json!({"title": "A"}), &[]);
        check(json!("A"), &[]);
        check(json!(null), &[]);
    }

    #[test]
    fn html_is_removed_only_from_html() {
        let result = json!({"title": "<b>Option</b> &amp; &lt;T&gt;", "url": "https://a.example/", "content": "a Vec<T>"});
        let check = |form: TextForm, expected: [&str; 2]| {
            let hits = hits(std::slice::from_ref(&result), "content", form, 1);
            assert_eq!([&*hits[0].title, &*hits[0].snippet], expected, "{form:?}");
        };
        check(TextForm::Html, ["Option & <T>", "a Vec"]);
        check(TextForm::Plain, ["<b>Option</b> &amp; &lt;T&gt;", "a Vec<T>"]);
    }
}
