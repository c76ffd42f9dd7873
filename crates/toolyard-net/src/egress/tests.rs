use std::collections::VecDeque;
use std::sync::Mutex;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::client::{HttpClient, RequestError};

#[track_caller]
fn check(expected: bool, addresses: &[&str]) {
    for text in addresses {
        let address = text.parse().unwrap_or_else(|_| panic!("{text} is no address"));
        assert_eq!(is_public(address), expected, "{text}");
    }
}

#[test]
fn public_addresses_are_public() {
    check(true, &["1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0"]);
    check(true, &["126.255.255.255", "128.0.0.1", "169.253.255.255", "169.255.0.0", "172.15.255.255"]);
    check(true, &["172.32.0.0", "192.0.1.1", "192.167.255.255", "192.169.0.0", "198.17.255.255"]);
    check(true, &["198.20.0.0", "223.255.255.255", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"]);
    check(true, &["2606:4700:4700::1111", "2001:200::1", "2001:4860:4860::8888", "2a00::1", "3ffe::1"]);
}

#[test]
fn special_addresses_are_not_public() {
    check(false, &["0.0.0.0", "0.1.2.3", "10.0.0.1", "127.0.0.1", "127.255.255.255"]);
    check(false, &["100.64.0.1", "100.100.100.200", "100.127.255.255", "169.254.169.254", "169.254.0.0"]);
    check(false, &["172.16.0.1", "172.31.255.255", "192.168.0.1", "192.0.0.1", "192.0.2.1", "192.88.99.1"]);
    check(false, &["198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1"]);
    check(false, &["224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"]);
    check(false, &["::", "::1", "::127.0.0.1", "fe80::1", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1"]);
    check(false, &["::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe"]);
    check(false, &["64:ff9b::10.0.0.1", "64:ff9b:1::8.8.8.8", "100::1", "2001::1", "2001:db8::1"]);
    check(false, &["2002:7f00:1::1", "2001:10::1", "2001:20::1", "3fff::1", "4000::1", "5f00::1"]);
}

async fn get(client: &HttpClient, url: &str) -> Result<u16, RequestError> {
    let request = Request::get(url).body(Full::<Bytes>::default()).unwrap();
    client.send(request).await.map(|response| response.status().as_u16())
}

#[tokio::test]
async fn non_public_hosts_are_refused_in_any_notation() {
    let client = HttpClient::without_roots().unwrap().public_only();
    // The last ones are no addresses to a URL parser, but to a system's resolver.
    let hosts =
        ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254", "localhost", "127.1", "2130706433"];
    for host in hosts {
        let refused = get(&client, &format!("http://{host}:9/")).await;
        assert!(matches!(refused, Err(RequestError::NotPublic)), "{host}: {refused:?}");
    }
}

/// Answers every request to an address with a status.
async fn serve(address: SocketAddr, status: u16) -> SocketAddr {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _read = stream.read(&mut [0; 4096]).await;
            let response = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            let _written = stream.write_all(response.as_bytes()).await;
        }
    });
    address
}

/// The answers that have not been used.
type RemainingAnswers = Arc<Mutex<VecDeque<Vec<SocketAddr>>>>;

/// A resolver with a script of answers.
fn scripted_lookup(answers: &[&[IpAddr]]) -> (Arc<NameLookup>, RemainingAnswers) {
    let answer = |ips: &&[IpAddr]| ips.iter().map(|ip| SocketAddr::new(*ip, 0)).collect();
    let remaining = RemainingAnswers::new(Mutex::new(answers.iter().map(answer).collect()));
    let queue = remaining.clone();
    let lookup = move |_: Name| -> BoxFuture<'static, _> {
        let answer = queue.lock().unwrap().pop_front();
        Box::pin(async move { answer.ok_or_else(|| io::Error::other("unexpected resolution")) })
    };
    (Arc::new(lookup), remaining)
}

#[tokio::test]
async fn rebound_name_is_refused() {
    let [public, private] = ["127.0.0.2", "127.0.0.1"].map(|ip| ip.parse::<IpAddr>().unwrap());
    let port = serve(SocketAddr::new(public, 0), 200).await.port();
    serve(SocketAddr::new(private, port), 500).await;
    let url = format!("http://rebound.example:{port}/");
    let client =
        |lookup| HttpClient::with_resolver(PolicyResolver::with_lookup(EgressPolicy::Only(public), lookup));

    // Resolved once: the second answer is not used.
    let (lookup, left) = scripted_lookup(&[&[public], &[private]]);
    assert_eq!(get(&client(lookup), &url).await.unwrap(), 200);
    assert_eq!(left.lock().unwrap().len(), 1);

    // Of several addresses, only the allowed one is used.
    let (lookup, _) = scripted_lookup(&[&[private, public, private]]);
    assert_eq!(get(&client(lookup), &url).await.unwrap(), 200);

    let (lookup, left) = scripted_lookup(&[&[private], &[public]]);
    assert!(matches!(get(&client(lookup), &url).await, Err(RequestError::NotPublic)));
    assert_eq!(left.lock().unwrap().len(), 1);

    let (lookup, _) = scripted_lookup(&[]);
    assert!(matches!(get(&client(lookup), &url).await, Err(RequestError::Connect(_))));
}

#[tokio::test]
async fn unknown_name_has_a_reason() {
    let lookup = |text: &'static str| -> Arc<NameLookup> {
        Arc::new(move |_: Name| -> BoxFuture<'static, _> {
            Box::pin(async move { Err(io::Error::other(text)) })
        })
    };
    for (text, expected) in [
        ("failed to lookup address information: Name or service not known", "DNS: no such host"),
        (
            "failed to lookup address information: Temporary failure in name resolution",
            "DNS: temporary failure",
        ),
    ] {
        let resolver = PolicyResolver::with_lookup(EgressPolicy::Anywhere, lookup(text));
        let error = get(&HttpClient::with_resolver(resolver), "http://secret.example/").await.unwrap_err();
        assert_eq!(error.reason(), expected);
    }
}
