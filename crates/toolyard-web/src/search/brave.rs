//! The Brave Search API: `GET https://api.search.brave.com/res/v1/web/search`.

use futures_util::future::BoxFuture;
use http::{HeaderValue, Request, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use toolyard_manifest::SecretString;

use super::{SearchError, SearchHit, SearchProvider, TextForm, hits, parse, send, with_query};
use crate::shared_client::SharedClient;

/// URL of the API.
pub const ENDPOINT: &str = "https://api.search.brave.com/res/v1/web/search";

/// Header of the key.
const KEY_HEADER: &str = "X-Subscription-Token";

/// Maximum length of a query in characters, and in words.
const MAX_QUERY: (usize, usize) = (400, 50);

/// A client of the API.
#[derive(Debug)]
pub struct BraveSearch {
    client: SharedClient,
    endpoint: String,
    key: HeaderValue,
}

/// The members of a response that are used.
#[derive(Deserialize)]
struct BraveResponse {
    #[serde(default)]
    web: Option<BraveWebResults>,
}

#[derive(Deserialize)]
struct BraveWebResults {
    #[serde(default)]
    results: Vec<Value>,
}

impl BraveSearch {
    /// Returns a client with a key. `None`: the key cannot be sent.
    #[must_use]
    pub fn new(client: SharedClient, endpoint: String, key: &SecretString) -> Option<Self> {
        let mut key = HeaderValue::from_str(key.expose()).ok()?;
        key.set_sensitive(true);
        Some(Self { client, endpoint, key })
    }

    async fn results(&self, query: &str, count: usize) -> Result<Vec<SearchHit>, SearchError> {
        let query = shortened(query);
        let count_text = count.to_string();
        let parameters = [("q", &*query), ("count", &*count_text), ("text_decorations", "false")];
        let request = Request::get(with_query(&self.endpoint, &parameters)).header(KEY_HEADER, &self.key);
        let (status, body) = send(&self.client, request).await?;
        match status {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(SearchError::Key),
            StatusCode::TOO_MANY_REQUESTS => return Err(SearchError::Quota),
            // The API answers so to a key in a wrong form, too.
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY if is_about_key(&body) => {
                return Err(SearchError::Key);
            }
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => return Err(SearchError::Query),
            other => return Err(SearchError::Status(other)),
        }
        let response: BraveResponse = parse(&body)?;
        let results = response.web.map(|web| web.results).unwrap_or_default();
        Ok(hits(&results, "description", TextForm::Html, count))
    }
}

impl SearchProvider for BraveSearch {
    fn search<'a>(
        &'a self,
        query: &'a str,
        count: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, SearchError>> {
        Box::pin(self.results(query, count))
    }
}

/// Returns a query within the limits of the API.
fn shortened(query: &str) -> String {
    let words = query.split_whitespace().take(MAX_QUERY.1).collect::<Vec<_>>().join(" ");
    words.chars().take(MAX_QUERY.0).collect()
}

fn is_about_key(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body).to_ascii_lowercase();
    text.contains("subscription_token") || text.contains("x-subscription-token")
}
