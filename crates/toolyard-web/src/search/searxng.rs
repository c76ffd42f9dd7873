//! Instances of SearXNG, whose settings have the format `json`: `GET /search?q=…&format=json`.

use futures_util::future::BoxFuture;
use http::{Request, StatusCode};
use serde::Deserialize;
use serde_json::Value;

use super::{SearchError, SearchHit, SearchProvider, TextForm, hits, parse, send, with_query};
use crate::shared_client::SharedClient;

/// A client of an instance.
#[derive(Debug)]
pub struct SearxngSearch {
    client: SharedClient,
    url: String,
}

/// The members of a response that are used.
#[derive(Deserialize)]
struct SearxngResponse {
    #[serde(default)]
    results: Vec<Value>,
}

impl SearxngSearch {
    /// Returns a client of the instance with this base URL.
    #[must_use]
    pub fn new(client: SharedClient, base: &str) -> Self {
        let base = base.trim_end_matches('/');
        let url = if base.ends_with("/search") { base.to_owned() } else { format!("{base}/search") };
        Self { client, url }
    }

    async fn results(&self, query: &str, count: usize) -> Result<Vec<SearchHit>, SearchError> {
        let request = Request::get(with_query(&self.url, &[("q", query), ("format", "json")]));
        let (status, body) = send(&self.client, request).await?;
        match status {
            StatusCode::OK => {}
            StatusCode::FORBIDDEN => return Err(SearchError::NoJson),
            StatusCode::TOO_MANY_REQUESTS => return Err(SearchError::Quota),
            StatusCode::BAD_REQUEST => return Err(SearchError::Query),
            other => return Err(SearchError::Status(other)),
        }
        let response: SearxngResponse = parse(&body)?;
        Ok(hits(&response.results, "content", TextForm::Plain, count))
    }
}

impl SearchProvider for SearxngSearch {
    fn search<'a>(
        &'a self,
        query: &'a str,
        count: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, SearchError>> {
        Box::pin(self.results(query, count))
    }
}
