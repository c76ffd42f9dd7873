//! Encrypted connections: the certificate must match, and unencrypted ones are refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use toolyard_store::{DatabaseLocation, PostgresUrl, StoreOptions, open};

use crate::child;
use crate::opening::error_chain;
use toolyard_testing::peers;
use toolyard_testing::postgres::{PostgresServer, give_to_server};

/// A server that refuses unencrypted connections, and its URL.
fn tls_server() -> (PostgresServer, String) {
    let server = PostgresServer::prepare();
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let files = [
        ("server.crt", certified.cert.pem()),
        ("server.key", certified.signing_key.serialize_pem()),
        ("data/pg_hba.conf", "hostssl all all 127.0.0.1/32 trust\n".to_owned()),
    ];
    for (name, text) in files {
        let path = server.folder().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        give_to_server(&path);
    }
    let port = peers::free_port();
    let file = |name: &str| server.folder().join(name).to_str().unwrap().to_owned();
    let (certificate, key, number) = (file("server.crt"), file("server.key"), port.to_string());
    let settings = [
        ("ssl", "on"),
        ("ssl_cert_file", &*certificate),
        ("ssl_key_file", &*key),
        ("listen_addresses", "127.0.0.1"),
        ("port", &*number),
    ];
    (server.running(&settings), format!("postgres://toolyard@localhost:{port}/postgres"))
}

async fn open_error(url: &str) -> String {
    let url = PostgresUrl::parse(url).unwrap();
    error_chain(&open(&StoreOptions::at(DatabaseLocation::Postgres(url))).await.err().unwrap())
}

#[tokio::test]
async fn certificates_are_checked() {
    let (server, plain) = tls_server();
    let require = format!("{plain}?sslmode=require");

    let unencrypted = open_error(&plain).await;
    assert!(unencrypted.contains("no encryption"), "{unencrypted}");
    let unknown = open_error(&require).await;
    assert!(unknown.contains("invalid peer certificate: UnknownIssuer"), "{unknown}");
    let other_name = open_error(&require.replace("localhost", "127.0.0.1")).await;
    assert!(other_name.contains("invalid peer certificate"), "{other_name}");

    let mut trusting = child::command("open", &require);
    let done = trusting.env("SSL_CERT_FILE", server.folder().join("server.crt")).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}
