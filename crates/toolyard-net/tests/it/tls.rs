use std::fs;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use toolyard_net::listener::{TlsFiles, TlsSettings};

use crate::certificates::{TestAuthority, TestClient};
use crate::test_listener::{LONG, TestListener, get_client_address, read_to_end};

/// A listener with the certificate of these files, which can be replaced.
async fn site(files: &TlsFiles, head_time: Duration) -> (TestListener, watch::Sender<TlsSettings>) {
    let tls = watch::Sender::new(TlsSettings::read(files).unwrap());
    let current = tls.subscribe();
    let site = TestListener::open(head_time, |listener| vec![listener.with_tls(current)]).await;
    (site, tls)
}

#[tokio::test]
async fn clients_of_tls_1_2_and_1_3_are_served() {
    let authority = TestAuthority::new();
    let (site, _tls) = site(&authority.issue("a", "a.example"), LONG).await;
    for is_old in [true, false] {
        for protocol in [None, Some("http/1.1")] {
            let client = TestClient { is_old, protocol, ..TestClient::default() };
            let stream = site.connect().await;
            let from = stream.local_addr().unwrap().to_string();
            let mut stream = authority.connect(stream, "a.example", &client).await.unwrap();
            assert_eq!(get_client_address(&mut stream).await, from);
            let negotiated = stream.get_ref().1.alpn_protocol().map(|name| str::from_utf8(name).unwrap());
            assert_eq!(negotiated, protocol);
        }
    }
    let other = TestClient { protocol: Some("h2"), ..TestClient::default() };
    assert!(authority.connect(site.connect().await, "a.example", &other).await.is_err());
}

/// The open connection goes on, and the next one gets the new certificate.
#[tokio::test]
async fn replaced_certificate_applies_to_new_connections() {
    let authority = TestAuthority::new();
    let (site, tls) = site(&authority.issue("a", "old.example"), LONG).await;
    let client = TestClient::default();
    let mut open = authority.connect(site.connect().await, "old.example", &client).await.unwrap();
    get_client_address(&mut open).await;
    tls.send_replace(TlsSettings::read(&authority.issue("a", "new.example")).unwrap());
    get_client_address(&mut open).await;
    let mut next = authority.connect(site.connect().await, "new.example", &client).await.unwrap();
    get_client_address(&mut next).await;
    assert!(authority.connect(site.connect().await, "old.example", &client).await.is_err());
    site.stop().await;
    assert_eq!(read_to_end(&mut open).await, b"");
}

/// A plain HTTP client gets an error, other garbage ends the connection, and silence ends it after the time limit.
#[tokio::test]
async fn clients_without_tls_are_refused() {
    let authority = TestAuthority::new();
    let (plain, _tls) = site(&authority.issue("a", "a.example"), LONG).await;
    let mut http = plain.connect().await;
    http.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    let answer = String::from_utf8(read_to_end(&mut http).await).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 400 ") && answer.ends_with("\r\n\r\nthis port speaks TLS: use https:\n")
    );
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
    for garbage in [&[0; 100][..], b"\x16\x03\x01\xff\xff", b"\x16\x03\x01\x00\x05hello", &[0x80; 2000]] {
        let mut stream = plain.connect().await;
        stream.write_all(garbage).await.unwrap();
        stream.shutdown().await.unwrap();
        assert!(!read_to_end(&mut stream).await.starts_with(b"HTTP"), "{garbage:?}");
    }
    let (impatient, _tls) = site(&authority.issue("b", "a.example"), Duration::from_millis(50)).await;
    for start in [&b""[..], b"\x16\x03"] {
        let mut stream = impatient.connect().await;
        stream.write_all(start).await.unwrap();
        assert_eq!(read_to_end(&mut stream).await, b"");
    }
}

/// A silent client has no open request.
#[tokio::test]
async fn silent_tls_client_does_not_delay_draining() {
    let authority = TestAuthority::new();
    let (site, _tls) = site(&authority.issue("a", "a.example"), LONG).await;
    let mut silent = site.connect().await;
    // The connection behind it in the queue was accepted, so it was accepted, too.
    authority.connect(site.connect().await, "a.example", &TestClient::default()).await.unwrap();
    site.stop().await;
    assert_eq!(read_to_end(&mut silent).await, b"");
}

#[tokio::test]
async fn only_clients_with_a_trusted_certificate_are_served() {
    let (authority, stranger) = (TestAuthority::new(), TestAuthority::new());
    authority.issue("client", "client.example");
    stranger.issue("client", "client.example");
    fs::copy(stranger.path("client.crt"), authority.path("stranger.crt")).unwrap();
    fs::copy(stranger.path("client.key"), authority.path("stranger.key")).unwrap();
    let mut files = authority.issue("a", "a.example");
    files.client_authority = Some(authority.path("ca.crt"));
    let (site, _tls) = site(&files, LONG).await;
    for (certificate, is_let_in) in [(Some("client"), true), (Some("stranger"), false), (None, false)] {
        let client = TestClient { certificate, ..TestClient::default() };
        // In TLS 1.3 a client learns of its refusal when it reads.
        let mut stream = authority.connect(site.connect().await, "a.example", &client).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.ok();
        let mut bytes = Vec::new();
        let ended = stream.read_to_end(&mut bytes).await;
        assert_eq!(
            (ended.is_ok(), bytes.starts_with(b"HTTP/1.1 200")),
            (is_let_in, is_let_in),
            "{certificate:?}"
        );
    }
}

#[test]
fn unusable_files_are_named_in_errors() {
    let authority = TestAuthority::new();
    let [a, b] = ["a", "b"].map(|name| authority.issue(name, "a.example"));
    fs::write(authority.path("garbage"), "no PEM").unwrap();
    fs::write(authority.path("broken"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        .unwrap();
    let path = |name: &str| authority.path(name);
    let with = |certificate: &str, key: &str, client_authority: Option<&str>| TlsFiles {
        certificate: path(certificate),
        key: path(key),
        client_authority: client_authority.map(path),
    };
    let cases = [
        (with("missing", "a.key", None), "cannot read certificates from DIR/missing"),
        (with("garbage", "a.key", None), "cannot read certificates from DIR/garbage"),
        (with("a.key", "a.key", None), "cannot read certificates from DIR/a.key"),
        (with("a.crt", "a.crt", None), "cannot read a private key from DIR/a.crt"),
        (
            with("a.crt", "b.key", None),
            "DIR/a.crt and DIR/b.key are not a usable pair of certificate and key",
        ),
        (
            with("broken", "b.key", None),
            "DIR/broken and DIR/b.key are not a usable pair of certificate and key",
        ),
        (with("a.crt", "a.key", Some("garbage")), "cannot read certificates from DIR/garbage"),
        (
            with("a.crt", "a.key", Some("broken")),
            "DIR/broken has a certificate that is unusable as an authority",
        ),
    ];
    let folder = path("").display().to_string();
    for (files, expected) in cases {
        let error = TlsSettings::read(&files).unwrap_err().to_string();
        assert_eq!(error.replace(folder.trim_end_matches('/'), "DIR"), expected);
    }
    let [a, b] = [a, b].map(|files| format!("{:?}", TlsSettings::read(&files).unwrap()));
    assert_eq!([a, b], ["Tls", "Tls"]);
}
