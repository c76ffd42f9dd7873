use std::fs;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use toolyard_net::listener::{Tls, TlsFiles};

use crate::certificates::{Authority, Client};
use crate::site::{LONG, Site, ask, rest};

/// A site with the certificate of these files, which can be exchanged.
async fn site(files: &TlsFiles, head_time: Duration) -> (Site, watch::Sender<Tls>) {
    let tls = watch::Sender::new(Tls::read(files).unwrap());
    let current = tls.subscribe();
    let site = Site::open(head_time, |listener| vec![listener.with_tls(current)]).await;
    (site, tls)
}

#[tokio::test]
async fn clients_of_both_versions() {
    let authority = Authority::new();
    let (site, _tls) = site(&authority.issue("a", "a.example"), LONG).await;
    for is_old in [true, false] {
        for protocol in [None, Some("http/1.1")] {
            let client = Client { is_old, protocol, ..Client::default() };
            let stream = site.connect().await;
            let from = stream.local_addr().unwrap().to_string();
            let mut stream = authority.connect(stream, "a.example", &client).await.unwrap();
            assert_eq!(ask(&mut stream).await, from);
            let agreed = stream.get_ref().1.alpn_protocol().map(|name| str::from_utf8(name).unwrap());
            assert_eq!(agreed, protocol);
        }
    }
    let other = Client { protocol: Some("h2"), ..Client::default() };
    assert!(authority.connect(site.connect().await, "a.example", &other).await.is_err());
}

/// The open connection goes on, the next one is shown the new certificate.
#[tokio::test]
async fn a_certificate_that_is_exchanged() {
    let authority = Authority::new();
    let (site, tls) = site(&authority.issue("a", "old.example"), LONG).await;
    let client = Client::default();
    let mut open = authority.connect(site.connect().await, "old.example", &client).await.unwrap();
    ask(&mut open).await;
    tls.send_replace(Tls::read(&authority.issue("a", "new.example")).unwrap());
    ask(&mut open).await;
    let mut next = authority.connect(site.connect().await, "new.example", &client).await.unwrap();
    ask(&mut next).await;
    assert!(authority.connect(site.connect().await, "old.example", &client).await.is_err());
    site.stop().await;
    assert_eq!(rest(&mut open).await, b"");
}

/// Who speaks HTTP is told, who speaks neither is dropped, and who says nothing is dropped in time.
#[tokio::test]
async fn clients_that_do_not_speak_tls() {
    let authority = Authority::new();
    let (plain, _tls) = site(&authority.issue("a", "a.example"), LONG).await;
    let mut http = plain.connect().await;
    http.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    let answer = String::from_utf8(rest(&mut http).await).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 400 ") && answer.ends_with("\r\n\r\nthis port speaks TLS: use https:\n")
    );
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
    for garbage in [&[0; 100][..], b"\x16\x03\x01\xff\xff", b"\x16\x03\x01\x00\x05hello", &[0x80; 2000]] {
        let mut stream = plain.connect().await;
        stream.write_all(garbage).await.unwrap();
        stream.shutdown().await.unwrap();
        assert!(!rest(&mut stream).await.starts_with(b"HTTP"), "{garbage:?}");
    }
    let (impatient, _tls) = site(&authority.issue("b", "a.example"), Duration::from_millis(50)).await;
    for start in [&b""[..], b"\x16\x03"] {
        let mut stream = impatient.connect().await;
        stream.write_all(start).await.unwrap();
        assert_eq!(rest(&mut stream).await, b"");
    }
}

/// One that has said nothing yet has asked for nothing.
#[tokio::test]
async fn a_silent_client_does_not_hold_up_the_end() {
    let authority = Authority::new();
    let (site, _tls) = site(&authority.issue("a", "a.example"), LONG).await;
    let mut silent = site.connect().await;
    // The one behind it in the queue was accepted, so it was as well.
    authority.connect(site.connect().await, "a.example", &Client::default()).await.unwrap();
    site.stop().await;
    assert_eq!(rest(&mut silent).await, b"");
}

#[tokio::test]
async fn clients_that_need_a_certificate() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    authority.issue("client", "client.example");
    stranger.issue("client", "client.example");
    fs::copy(stranger.path("client.crt"), authority.path("stranger.crt")).unwrap();
    fs::copy(stranger.path("client.key"), authority.path("stranger.key")).unwrap();
    let mut files = authority.issue("a", "a.example");
    files.client_authority = Some(authority.path("ca.crt"));
    let (site, _tls) = site(&files, LONG).await;
    for (certificate, is_let_in) in [(Some("client"), true), (Some("stranger"), false), (None, false)] {
        let client = Client { certificate, ..Client::default() };
        // In TLS 1.3 a client hears of its refusal when it reads.
        let mut stream = authority.connect(site.connect().await, "a.example", &client).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.ok();
        let mut said = Vec::new();
        let ended = stream.read_to_end(&mut said).await;
        assert_eq!(
            (ended.is_ok(), said.starts_with(b"HTTP/1.1 200")),
            (is_let_in, is_let_in),
            "{certificate:?}"
        );
    }
}

#[test]
fn files_that_are_of_no_use() {
    let authority = Authority::new();
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
        (with("missing", "a.key", None), "DIR/missing cannot be read as certificates"),
        (with("garbage", "a.key", None), "DIR/garbage cannot be read as certificates"),
        (with("a.key", "a.key", None), "DIR/a.key cannot be read as certificates"),
        (with("a.crt", "a.crt", None), "DIR/a.crt cannot be read as a private key"),
        (with("a.crt", "b.key", None), "DIR/a.crt and DIR/b.key cannot be used together"),
        (with("broken", "b.key", None), "DIR/broken and DIR/b.key cannot be used together"),
        (with("a.crt", "a.key", Some("garbage")), "DIR/garbage cannot be read as certificates"),
        (
            with("a.crt", "a.key", Some("broken")),
            "DIR/broken has a certificate that cannot be used as an authority's",
        ),
    ];
    let folder = path("").display().to_string();
    for (files, expected) in cases {
        let error = Tls::read(&files).unwrap_err().to_string();
        assert_eq!(error.replace(folder.trim_end_matches('/'), "DIR"), expected);
    }
    let [a, b] = [a, b].map(|files| format!("{:?}", Tls::read(&files).unwrap()));
    assert_eq!([a, b], ["Tls", "Tls"]);
}
