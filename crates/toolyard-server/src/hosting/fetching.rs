//! How functions in JavaScript and Lua reach the network: their workers have none, and ask the gateway.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, Request, Uri};
use http_body_util::Full;
use tokio::sync::OnceCell;
use toolyard_functions::runtime::{Fetch, FetchRequest, FetchResponse};
use toolyard_net::body;
use toolyard_net::client::Client;

/// Makes requests to public addresses: what only this machine or its network reaches is not for those who write functions.
pub(super) struct Fetching {
    client: OnceCell<Client>,
    response_bytes: usize,
}

impl Fetching {
    /// Responses have a body of at most so many bytes.
    pub(super) fn new(response_bytes: usize) -> Self {
        Self { client: OnceCell::new(), response_bytes }
    }

    async fn fetch(&self, wanted: FetchRequest) -> Result<FetchResponse, String> {
        let request = request(wanted)?;
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

/// The certificates of the system are read once, and only where somebody fetches.
async fn client() -> Result<Client, String> {
    let client = tokio::task::spawn_blocking(Client::with_system_roots).await;
    let client = client.map_err(|_| "the certificates of the system cannot be read".to_owned())?;
    client.map(|client| client.public_only()).map_err(|error| error.to_string())
}

fn request(wanted: FetchRequest) -> Result<Request<Full<Bytes>>, String> {
    let uri: Uri = wanted.url.parse().map_err(|_| "the URL is none".to_owned())?;
    let is_http = matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some();
    if !is_http {
        return Err("the URL is to begin with http:// or https://".to_owned());
    }
    let method: Method =
        wanted.method.to_ascii_uppercase().parse().map_err(|_| "the method is none".to_owned())?;
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in wanted.headers {
        request = request.header(name, value);
    }
    let body = wanted.body.map_or_else(Bytes::new, Bytes::from);
    request.body(Full::new(body)).map_err(|error| error.to_string())
}

impl Fetch for Fetching {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, String>> {
        Box::pin(Self::fetch(self, request))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn wanted(url: &str, method: &str) -> FetchRequest {
        FetchRequest { url: url.to_owned(), method: method.to_owned(), headers: Vec::new(), body: None }
    }

    #[tokio::test]
    async fn what_only_this_machine_reaches_is_not_fetched() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let port = listener.local_addr().expect("an address").port();
        let fetching = Fetching::new(1 << 20);
        for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254"] {
            let refused = fetching.fetch(wanted(&format!("http://{host}:{port}/"), "GET")).await;
            let why = refused.expect_err(host);
            assert!(why.contains("no public address"), "{host}: {why}");
        }
        assert!(listener.accept().is_err(), "somebody came");
    }

    #[test]
    fn what_is_no_request_is_not_sent() {
        let check = |url: &str, method: &str, expected: Result<(), &str>| {
            let made = request(wanted(url, method)).map(drop);
            assert_eq!(made.as_ref().map_err(String::as_str), expected.as_ref().map_err(|why| *why), "{url}");
        };
        const NO_HTTP: &str = "the URL is to begin with http:// or https://";
        check("https://example.com/a?b=c", "post", Ok(()));
        check("ftp://example.com", "GET", Err(NO_HTTP));
        check("file:///etc/passwd", "GET", Err("the URL is none"));
        check("/etc/passwd", "GET", Err(NO_HTTP));
        check("http://a b", "GET", Err("the URL is none"));
        check("http://example.com", "GE T", Err("the method is none"));
    }
}
