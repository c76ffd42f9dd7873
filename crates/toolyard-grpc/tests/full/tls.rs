//! Encrypted connections.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;
use toolyard_grpc::client::GrpcBackend;
use toolyard_net::http2::{ClientTls, ServerTrust};
use toolyard_testing::wait::LIMIT;

use crate::support::{ShopServer, call, defined_tool, omnia_option, options};

/// A certificate authority with a certificate for a server on this machine and one for a client.
struct TestAuthority {
    folder: TempDir,
}

impl TestAuthority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        for (host, certificate, key) in
            [("127.0.0.1", "cert.pem", "key.pem"), ("gateway", "client.pem", "client-key.pem")]
        {
            let pair = KeyPair::generate().unwrap();
            let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
            fs::write(folder.path().join(certificate), params.signed_by(&pair, &issuer).unwrap().pem())
                .unwrap();
            fs::write(folder.path().join(key), pair.serialize_pem()).unwrap();
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

async fn check(server: &ShopServer, tls: Option<ClientTls<'_>>, expected: Result<(), &str>) {
    let mut options = options(&server.address, tls);
    options.tools = defined_tool(r#"{"name":"nothing","inputSchema":{"type":"object"}}"#);
    let backend = GrpcBackend::start(options);
    let result = call(&backend, "nothing", "{}").await.map(drop);
    assert_eq!(result, expected.map_err(|reason| format!("unavailable: {reason}")), "{tls:?}");
}

const UNREACHABLE: &str = "The tool's server cannot be reached";

fn trusting(trust: ServerTrust<'_>) -> Option<ClientTls<'_>> {
    Some(ClientTls { trust, identity: None })
}

#[tokio::test]
async fn certificates_of_servers_are_verified() {
    let (authority, other) = (TestAuthority::new(), TestAuthority::new());
    let folder = format!("tls={}", authority.folder.path().display());
    let server = ShopServer::start(&[&omnia_option(), &folder]);
    let [ours, others] = [&authority, &other].map(|authority| authority.path("ca.pem"));
    check(&server, trusting(ServerTrust::Authorities(&ours)), Ok(())).await;
    check(&server, trusting(ServerTrust::AnyCertificate), Ok(())).await;
    let unknown = format!("{UNREACHABLE} [TLS: certificate of an unknown issuer]");
    check(&server, trusting(ServerTrust::System), Err(&unknown)).await;
    let refused = trusting(ServerTrust::Authorities(&others));
    let invalid = GrpcBackend::start({
        let mut options = options(&server.address, refused);
        options.tools = defined_tool(r#"{"name":"nothing","inputSchema":{"type":"object"}}"#);
        options
    });
    let error = call(&invalid, "nothing", "{}").await.unwrap_err();
    assert!(error.starts_with(&format!("unavailable: {UNREACHABLE} [TLS: ")), "{error}");
    // A server that encrypts does not answer plain text.
    let mut plain = options(&server.address, None);
    plain.tools = defined_tool(r#"{"name":"nothing","inputSchema":{"type":"object"}}"#);
    let error = call(&GrpcBackend::start(plain), "nothing", "{}").await.unwrap_err();
    assert!(error.starts_with("unavailable: The connection to the tool's server broke ["), "{error}");
}

#[tokio::test]
async fn server_may_want_the_certificate_of_the_gateway() {
    let authority = TestAuthority::new();
    let folder = format!("tls={}", authority.folder.path().display());
    let server = ShopServer::start(&[&omnia_option(), &folder, "mutual"]);
    let [ca, chain, key] = ["ca.pem", "client.pem", "client-key.pem"].map(|name| authority.path(name));
    let trust = ServerTrust::Authorities(&ca);
    check(&server, Some(ClientTls { trust, identity: Some((&chain, &key)) }), Ok(())).await;
    let mut options = options(&server.address, Some(ClientTls { trust, identity: None }));
    options.tools = defined_tool(r#"{"name":"nothing","inputSchema":{"type":"object"}}"#);
    let error = call(&GrpcBackend::start(options), "nothing", "{}").await.unwrap_err();
    assert!(error.starts_with("unavailable: The connection to the tool's server broke ["), "{error}");
}

/// Certificates in a cluster live for some hours, and their files change before they expire.
#[tokio::test]
async fn files_that_have_changed_are_used_by_new_connections() {
    let (authority, other) = (TestAuthority::new(), TestAuthority::new());
    let omnia = omnia_option();
    let folder = format!("tls={}", authority.folder.path().display());
    let server = ShopServer::start(&[&omnia, &folder, "mutual"]);
    let [ca, chain, key] = ["ca.pem", "client.pem", "client-key.pem"].map(|name| other.path(name));
    let renew = |names: &[&str]| {
        for name in names {
            fs::copy(authority.path(name), other.path(name)).unwrap();
        }
    };
    let tls = ClientTls { trust: ServerTrust::Authorities(&ca), identity: Some((&chain, &key)) };
    let mut options = options(&server.address, Some(tls));
    options.tools = defined_tool(r#"{"name":"nothing","inputSchema":{"type":"object"}}"#);
    let backend = GrpcBackend::start(options);
    let call = async || call(&backend, "nothing", "{}").await.map(drop);
    let untrusted = call().await.unwrap_err();
    assert!(untrusted.starts_with(&format!("unavailable: {UNREACHABLE} [TLS: ")), "{untrusted}");
    renew(&["ca.pem"]);
    let refused = call().await.unwrap_err();
    assert!(refused.starts_with("unavailable: The connection to the tool's server broke ["), "{refused}");
    renew(&["client.pem", "client-key.pem"]);
    assert_eq!(call().await, Ok(()));
    // A file that is being written is no reason to lose the certificate.
    fs::write(&chain, "").unwrap();
    let port = format!("port={}", server.port());
    drop(server);
    let _server = ShopServer::start(&[&omnia, &folder, "mutual", &port]);
    // The end of the old connection may be noticed by a call.
    let start = Instant::now();
    while let Err(error) = call().await {
        assert!(start.elapsed() < LIMIT, "{error}");
    }
}

#[test]
fn unusable_files_are_named() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let problem = |tls: ClientTls<'_>| {
        let error = toolyard_grpc::client::GrpcHttpClient::new(Some(tls), None).err().unwrap();
        error.to_string().replace(&folder.path().display().to_string(), "")
    };
    let empty = path("empty.pem", "");
    let missing = Path::new("/missing.pem");
    let trusting = |trust| ClientTls { trust, identity: None };
    assert_eq!(
        problem(trusting(ServerTrust::Authorities(&empty))),
        "tlsCAPath: cannot use /empty.pem: the file has no certificate"
    );
    let unread = problem(trusting(ServerTrust::Authorities(missing)));
    assert!(unread.starts_with("tlsCAPath: cannot use /missing.pem: "), "{unread}");
    let authority = TestAuthority::new();
    let (chain, key) = (authority.path("client.pem"), authority.path("key.pem"));
    let mismatch = ClientTls { trust: ServerTrust::AnyCertificate, identity: Some((&chain, &key)) };
    let mismatched = problem(mismatch);
    assert!(mismatched.contains("tlsKeyPath: cannot use "), "{mismatched}");
}
