//! Reasons of failed connections, which the callers of tools see.

use std::fs;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use tokio::sync::watch;
use toolyard_net::client::HttpClient;
use toolyard_net::listener::{TlsFiles, TlsSettings};

use crate::certificates::TestAuthority;
use crate::test_listener::{LONG, TestListener};

/// Writes a certificate that is its own issuer.
fn self_signed(authority: &TestAuthority, is_authority: bool) -> TlsFiles {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    if is_authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let certificate = params.self_signed(&key).unwrap();
    let [certificate_path, key_path] =
        ["crt", "key"].map(|end| authority.path(&format!("own-{is_authority}.{end}")));
    fs::write(&certificate_path, certificate.pem()).unwrap();
    fs::write(&key_path, key.serialize_pem()).unwrap();
    TlsFiles { certificate: certificate_path, key: key_path, client_authority: None }
}

async fn reason(url: &str) -> &'static str {
    let request = Request::get(url).body(Full::new(Bytes::new())).unwrap();
    HttpClient::with_system_roots().unwrap().send(request).await.unwrap_err().reason()
}

#[tokio::test]
async fn refused_certificates_have_reasons() {
    let authority = TestAuthority::new();
    for (files, expected) in [
        (authority.issue("a", "localhost"), "TLS: certificate of an unknown issuer"),
        (self_signed(&authority, false), "TLS: self-signed certificate"),
        (self_signed(&authority, true), "TLS: self-signed certificate"),
    ] {
        let (_tls, current) = watch::channel(TlsSettings::read(&files).unwrap());
        let site = TestListener::open(LONG, |listener| vec![listener.with_tls(current)]).await;
        let port = site.connect().await.peer_addr().unwrap().port();
        assert_eq!(reason(&format!("https://localhost:{port}/")).await, expected);
    }
}

#[tokio::test]
async fn closed_port_is_refused() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(reason(&format!("http://{address}/")).await, "connection refused");
}
