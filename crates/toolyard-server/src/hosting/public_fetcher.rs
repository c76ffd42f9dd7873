//! Network access of functions in JavaScript and Lua: their workers have none and ask the gateway.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, Request, Uri};
use http_body_util::Full;
use tokio::sync::OnceCell;
use toolyard_functions::runtime::{FetchRequest, FetchResponse, HttpFetcher};
use toolyard_net::body;
use toolyard_net::client::HttpClient;

/// Makes requests to public addresses only, because authors of functions must not reach the gateway's own machine or
/// network.
pub(super) struct PublicFetcher {
    client: OnceCell<HttpClient>,
    response_bytes: usize,
}

impl PublicFetcher {
    /// Creates a fetcher with this limit on response bodies.
    pub(super) fn new(response_bytes: usize) -> Self {
        Self { client: OnceCell::new(), response_bytes }
    }

    async fn fetch(&self, fetch_request: FetchRequest) -> Result<FetchResponse, String> {
        let request = request(fetch_request)?;
        let client = self.client.get_or_try_init(client).await?;
        let response = client.send(request).await.map_err(|error| error.to_string())?;
        let (parts, body) = response.into_parts();
        let body = body::read(body, self.response_bytes).await.map_err(|error| error.to_string())?;
        let headers = parts.headers.iter().map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        Ok(FetchResponse {
            status: parts.status.as_u16(),
            status_text: parts.status.canonical_reason().unwrap_or_default().to_owned(),
            headers: headers.collect(),
            body: String::from_utf8_lossy(&body).into_owned(),
        })
    }
}

/// Creates the client, reading the system's certificates when a function first fetches.
async fn client() -> Result<HttpClient, String> {
    let client = tokio::task::spawn_blocking(HttpClient::with_system_roots).await;
    let client = client.map_err(|_| "cannot read the system's certificates".to_owned())?;
    client.map(|client| client.public_only()).map_err(|error| error.to_string())
}

fn request(fetch_request: FetchRequest) -> Result<Request<Full<Bytes>>, String> {
    let uri: Uri = fetch_request.url.parse().map_err(|_| "invalid URL".to_owned())?;
    let is_http = matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some();
    if !is_http {
        return Err("the URL must begin with http:// or https://".to_owned());
    }
    let method: Method =
        fetch_request.method.to_ascii_uppercase().parse().map_err(|_| "invalid method".to_owned())?;
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in fetch_request.headers {
        request = request.header(name, value);
    }
    let body = fetch_request.body.map_or_else(Bytes::new, Bytes::from);
    request.body(Full::new(body)).map_err(|error| error.to_string())
}

impl HttpFetcher for PublicFetcher {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, String>> {
        Box::pin(Self::fetch(self, request))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn fetch_request(url: &str, method: &str) -> FetchRequest {
        FetchRequest { url: url.to_owned(), method: method.to_owned(), headers: Vec::new(), body: None }
    }

    #[tokio::test]
    async fn non_public_addresses_are_not_fetched() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let port = listener.local_addr().expect("an address").port();
        let fetcher = PublicFetcher::new(1 << 20);
        for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254"] {
            let outcome = fetcher.fetch(fetch_request(&format!("http://{host}:{port}/"), "GET")).await;
            let why = outcome.expect_err(host);
            assert!(why.contains("no public address"), "{host}: {why}");
        }
        assert!(listener.accept().is_err(), "a connection arrived");
    }

    #[test]
    fn invalid_requests_are_not_sent() {
        let check = |url: &str, method: &str, expected: Result<(), &str>| {
            let outcome = request(fetch_request(url, method)).map(drop);
            assert_eq!(
                outcome.as_ref().map_err(String::as_str),
                expected.as_ref().map_err(|why| *why),
                "{url}"
            );
        };
        const NO_HTTP: &str = "the URL must begin with http:// or https://";
        check("https://example.com/a?b=c", "post", Ok(()));
        check("ftp://example.com", "GET", Err(NO_HTTP));
        check("file:///etc/passwd", "GET", Err("invalid URL"));
        check("/etc/passwd", "GET", Err(NO_HTTP));
        check("http://a b", "GET", Err("invalid URL"));
        check("http://example.com", "GE T", Err("invalid method"));
    }
}
