use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::sync::watch;
use toolyard_net::listener::TlsSettings;

use crate::certificates::{TestAuthority, TestClient};
use crate::test_listener::{LONG, TestListener, get_client_address, read_to_end};

const LINE: &[u8] = b"PROXY TCP4 192.0.2.1 198.51.100.1 40000 443\r\n";

/// The same in version 2.
const BINARY: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x01\xc6\x33\x64\x01\x9c\x40\x01\xbb";

/// A listener behind trusted proxies of a network.
async fn site(network: &str, head_time: Duration) -> TestListener {
    let network = network.parse().unwrap();
    TestListener::open(head_time, |listener| vec![listener.with_proxies(&[network])]).await
}

#[tokio::test]
async fn client_address_comes_from_the_proxy_header() {
    let site = site("127.0.0.0/8", LONG).await;
    for header in [LINE, BINARY] {
        let mut stream = site.connect().await;
        stream.write_all(header).await.unwrap();
        assert_eq!(get_client_address(&mut stream).await, "192.0.2.1:40000");
        assert_eq!(get_client_address(&mut stream).await, "192.0.2.1:40000");
    }
    for header in [&b"PROXY UNKNOWN\r\n"[..], b"\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00"] {
        let mut stream = site.connect().await;
        stream.write_all(header).await.unwrap();
        assert_eq!(get_client_address(&mut stream).await, stream.local_addr().unwrap().to_string());
    }
}

/// Each byte is a packet of its own, and the first byte of the request arrives with the last one of the header.
#[tokio::test]
async fn header_is_read_in_pieces() {
    let site = site("127.0.0.1/32", LONG).await;
    for header in [LINE, BINARY] {
        let mut stream = site.connect().await;
        stream.set_nodelay(true).unwrap();
        let (last, begin) = header.split_last().unwrap();
        for byte in begin {
            stream.write_all(&[*byte]).await.unwrap();
            tokio::task::yield_now().await;
        }
        let request = [&[*last], &b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"[..]].concat();
        stream.write_all(&request).await.unwrap();
        let answer = String::from_utf8(read_to_end(&mut stream).await).unwrap();
        assert!(answer.ends_with("\r\n\r\n192.0.2.1:40000"), "{answer}");
    }
}

/// A malformed or overlong header ends the connection, and so does a missing one.
#[tokio::test]
async fn missing_or_malformed_header_ends_the_connection() {
    let too_long = [b"PROXY UNKNOWN ".as_slice(), &[b'x'; 200]].concat();
    let patient = site("127.0.0.1/32", LONG).await;
    for bytes in
        [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".as_slice(), b"PROXY TCP4 me you\r\n", &too_long, &[0x16, 3, 1]]
    {
        let mut stream = patient.connect().await;
        stream.write_all(bytes).await.unwrap();
        assert_eq!(read_to_end(&mut stream).await, b"", "{bytes:?}");
    }
    let impatient = site("127.0.0.1/32", Duration::from_millis(50)).await;
    for bytes in [b"".as_slice(), b"PROXY TCP4 192.0.2.1", &BINARY[..20]] {
        let mut stream = impatient.connect().await;
        stream.write_all(bytes).await.unwrap();
        assert_eq!(read_to_end(&mut stream).await, b"", "{bytes:?}");
    }
}

/// Other peers could claim any address.
#[tokio::test]
async fn header_of_an_untrusted_peer_is_refused() {
    let site = site("192.0.2.0/24", LONG).await;
    let mut stream = site.connect().await;
    assert_eq!(get_client_address(&mut stream).await, stream.local_addr().unwrap().to_string());
    for header in [LINE, BINARY] {
        let mut stream = site.connect().await;
        stream.write_all(header).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        assert!(read_to_end(&mut stream).await.starts_with(b"HTTP/1.1 400 "));
    }
}

#[tokio::test]
async fn header_is_read_before_tls() {
    let authority = TestAuthority::new();
    let tls = watch::Sender::new(TlsSettings::read(&authority.issue("a", "a.example")).unwrap());
    let (current, network) = (tls.subscribe(), "127.0.0.1/32".parse().unwrap());
    let site =
        TestListener::open(LONG, |listener| vec![listener.with_proxies(&[network]).with_tls(current)]).await;
    for header in [LINE, BINARY] {
        let mut stream = site.connect().await;
        stream.write_all(header).await.unwrap();
        let mut stream = authority.connect(stream, "a.example", &TestClient::default()).await.unwrap();
        assert_eq!(get_client_address(&mut stream).await, "192.0.2.1:40000");
    }
}
