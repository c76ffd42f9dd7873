//! The parts of the API of OpenAI that its endpoints have in common.

use std::io;

use http::uri::InvalidUri;
use http::{HeaderValue, Uri, header};
use toolyard_manifest::{EndpointUrl, SecretString};
use toolyard_net::client::HttpClient;

/// Returns a client for a base URL.
pub(crate) fn client(base: &EndpointUrl) -> io::Result<HttpClient> {
    if base.is_tls() { HttpClient::with_system_roots() } else { HttpClient::without_roots() }
}

/// Returns the URL of an endpoint: its path is appended to the base URL, whose query is kept.
pub(crate) fn url(base: &Uri, endpoint: &str) -> Result<Uri, InvalidUri> {
    let text = base.to_string();
    let (path, query) = text.split_once('?').map_or((&*text, None), |(path, query)| (path, Some(query)));
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    format!("{}/{endpoint}{query}", path.trim_end_matches('/')).parse()
}

/// Returns the header of a key, which is not shown by `Debug`.
pub(crate) fn bearer(key: &SecretString) -> Result<HeaderValue, header::InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose()))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_of_an_endpoint() {
        let check = |base: &str, endpoint: &str, expected: &str| {
            let url = url(&base.parse().expect("a URL"), endpoint).expect("a URL");
            assert_eq!(url.to_string(), expected);
        };
        check("http://a", "chat/completions", "http://a/chat/completions");
        check(
            "https://api.example.com/v1",
            "chat/completions",
            "https://api.example.com/v1/chat/completions",
        );
        check("https://api.example.com/v1/", "embeddings", "https://api.example.com/v1/embeddings");
        check("https://a/x?api-version=1", "embeddings", "https://a/x/embeddings?api-version=1");
    }
}
