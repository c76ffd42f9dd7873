use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpListener;

use super::*;

const SECRET: &str = "Basic c2VjcmV0";

struct Peer {
    folder: tempfile::TempDir,
    listener: TcpListener,
}

impl Peer {
    async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        Self { folder: tempfile::tempdir().unwrap(), listener }
    }

    fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    fn proxy(&self, upstream: Option<UpstreamProxy>, max_bytes: u64) -> PackageProxy {
        let allowed = [("127.0.0.1".to_owned(), self.address().port()), ("index.example".to_owned(), 443)];
        let policy = ProxyPolicy { allowed: allowed.into(), upstream, max_bytes };
        PackageProxy::start(self.folder.path().join("proxy"), SECRET.to_owned(), policy).unwrap()
    }

    /// Accepts a connection, reads the head, responds and closes. Returns the received text.
    async fn answer(&self, text: &str) -> String {
        let (mut stream, _) = self.listener.accept().await.unwrap();
        let (head, rest) = read_head(&mut stream).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        String::from_utf8([head, rest].concat()).unwrap()
    }
}

async fn ask(proxy: &PackageProxy, text: &str) -> String {
    let mut stream = UnixStream::connect(proxy.socket()).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A connection that is reset has delivered its response.
    let _ended = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

fn request(line: &str, headers: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: other\r\nProxy-Authorization: {SECRET}\r\n{headers}\r\n")
}

#[tokio::test]
async fn forbidden_requests_are_refused() {
    let peer = Peer::start().await;
    let proxy = peer.proxy(None, 1000);
    let port = peer.address().port();
    let check = async |text: String, status: &str| {
        let answer = ask(&proxy, &text).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{text:?}: {answer:?}");
    };
    check(request("CONNECT evil.example:443", ""), "403").await;
    check(request("CONNECT index.example:80", ""), "403").await;
    check(request("CONNECT 169.254.169.254:80", ""), "403").await;
    check(request("GET http://evil.example/", ""), "403").await;
    check(request("GET http://index.example:443@evil.example/", ""), "400").await;
    check(request("GET https://index.example/", ""), "400").await;
    check(request("GET file:///etc/passwd", ""), "400").await;
    check(request("GET /", ""), "400").await;
    check(request("CONNECT index.example", ""), "400").await;
    check(request(&format!("POST http://127.0.0.1:{port}/"), ""), "405").await;
    check(request(&format!("GET http://127.0.0.1:{port}/"), "Content-Length: 3\r\n"), "405").await;
    check(request(&format!("GET http://127.0.0.1:{port}/"), "Transfer-Encoding: chunked\r\n"), "405").await;
    check(format!("GET http://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n"), "407").await;
    check(format!("GET http://127.0.0.1:{port}/ HTTP/1.1\r\nProxy-Authorization: x\r\n\r\n"), "407").await;
    check(format!("GET {} HTTP/1.1\r\n\r\n", "x".repeat(20_000)), "400").await;
    check("\0\r\n\r\n".to_owned(), "400").await;
    let refused = ["169.254.169.254:80", "evil.example:443", "evil.example:80", "index.example:80"];
    assert_eq!(proxy.refused_hosts(), refused);
}

#[tokio::test]
async fn requests_without_tls_are_forwarded_one_by_one() {
    let peer = Peer::start().await;
    let proxy = peer.proxy(None, 1000);
    let address = peer.address();
    let more = "Accept: text/html\r\nConnection: keep-alive\r\n";
    let head = request(&format!("GET http://{address}/simple/x/?a=b"), more);
    let second = request("GET http://evil.example/", "");
    let text = format!("{head}{second}");
    let (answer, received) =
        tokio::join!(ask(&proxy, &text), peer.answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"));
    assert!(answer.ends_with("\r\n\r\nhi"), "{answer}");
    let expected = format!(
        "GET /simple/x/?a=b HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\naccept: text/html\r\n\r\n"
    );
    assert_eq!(received, expected);
}

#[tokio::test]
async fn tunnel_copies_both_ways_until_the_server_closes() {
    let peer = Peer::start().await;
    let proxy = peer.proxy(None, 1000);
    let head = format!("{}hello\r\n\r\n", request(&format!("CONNECT {}", peer.address()), ""));
    let (answer, received) = tokio::join!(ask(&proxy, &head), peer.answer("goodbye"));
    assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\ngoodbye");
    assert_eq!(received, "hello\r\n\r\n");
}

#[tokio::test]
async fn received_bytes_are_limited() {
    let peer = Peer::start().await;
    let proxy = peer.proxy(None, 100);
    let head = request(&format!("GET http://{}/", peer.address()), "");
    let text = "x".repeat(60);
    for (expected, is_exhausted) in [(60, false), (0, true)] {
        let (answer, _) = tokio::join!(ask(&proxy, &head), peer.answer(&text));
        assert_eq!((answer.len(), proxy.is_exhausted()), (expected, is_exhausted));
    }
}

#[tokio::test]
async fn upstream_proxy_gets_all_requests() {
    let peer = Peer::start().await;
    let (host, port) = (peer.address().ip().to_string(), peer.address().port());
    let upstream = UpstreamProxy { target: (host, port), authorization: Some("Basic dXA=".to_owned()) };
    let proxy = peer.proxy(Some(upstream), 1000);
    let head = request("CONNECT index.example:443", "");
    let granted = "HTTP/1.1 200 OK\r\n\r\nwelcome";
    let (answer, received) = tokio::join!(ask(&proxy, &head), peer.answer(granted));
    assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\n");
    let expected = "CONNECT index.example:443 HTTP/1.1\r\nHost: index.example:443\r\nProxy-Authorization: Basic dXA=\r\n\r\n";
    assert_eq!(received, expected);
    let refused = "HTTP/1.1 407 No\r\n\r\n";
    let (answer, _) = tokio::join!(ask(&proxy, &head), peer.answer(refused));
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    let head = request(&format!("GET http://{}/x", peer.address()), "");
    let (_, received) = tokio::join!(ask(&proxy, &head), peer.answer("HTTP/1.1 204 No\r\n\r\n"));
    assert!(received.starts_with(&format!("GET http://{}/x HTTP/1.1\r\n", peer.address())), "{received}");
}
