//! A site for tests.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use toolyard_manifest::WebSettings;
use toolyard_net::budget::ByteBudget;
use toolyard_net::client::HttpClient;

use crate::fetch::PageFetcher;
use crate::shared_client::SharedClient;

/// A site on a loopback address that answers each path with fixed bytes, or else with 404.
pub(crate) struct StaticSite {
    /// Host and port.
    pub(crate) address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl StaticSite {
    /// Starts a site of these paths and responses.
    pub(crate) async fn start(pages: Vec<(&'static str, Vec<u8>)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let seen = requests.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    match stream.read_u8().await {
                        Ok(byte) => head.push(byte),
                        Err(_) => break,
                    }
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                seen.lock().expect("no panic").push(head);
                let page = pages.iter().find(|(known, _)| *known == path);
                let response =
                    page.map_or_else(|| response("404 Not Found", "", b""), |(_, bytes)| bytes.clone());
                // The client may be gone.
                let _ = stream.write_all(&response).await;
            }
        });
        Self { address, requests }
    }

    /// Returns the URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the heads of the requests, in their order.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no panic").clone()
    }

    /// Returns the first lines of the requests without the version, in their order.
    pub(crate) fn visited(&self) -> Vec<String> {
        let line = |head: &String| head.split(" HTTP/").next().unwrap_or_default().to_owned();
        self.requests().iter().map(line).collect()
    }

    /// Returns settings with which this site may be visited.
    pub(crate) fn settings(&self) -> WebSettings {
        WebSettings { private_hosts: vec![self.address.clone()], robots: false, ..WebSettings::default() }
    }
}

/// Returns a response with these header lines, each with its end.
pub(crate) fn response(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n");
    [head.as_bytes(), body].concat()
}

/// Returns a page of HTML.
pub(crate) fn html(body: &str) -> Vec<u8> {
    response("200 OK", "content-type: text/html; charset=utf-8\r\n", body.as_bytes())
}

/// Returns a client of sites without TLS.
pub(crate) fn client() -> SharedClient {
    SharedClient::new(HttpClient::without_roots)
}

/// Returns a fetcher with these settings.
pub(crate) fn fetcher(settings: WebSettings) -> PageFetcher {
    PageFetcher::new(Arc::new(settings), client(), ByteBudget::default())
}
