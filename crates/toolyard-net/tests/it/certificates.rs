//! Certificate files for tests.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use toolyard_net::listener::TlsFiles;

/// A certificate authority, and the folder of its certificates.
pub(crate) struct TestAuthority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

/// The TLS settings of a test client.
#[derive(Default)]
pub(crate) struct TestClient {
    pub(crate) is_old: bool,
    pub(crate) protocol: Option<&'static str>,
    /// Name of its certificate and key files.
    pub(crate) certificate: Option<&'static str>,
}

impl TestAuthority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // The name distinguishes the authority from the certificates that it signs.
        params.distinguished_name.push(DnType::CommonName, "authority");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let authority = Self { issuer, folder: TempDir::new().unwrap() };
        fs::write(authority.path("ca.crt"), authority.issuer.pem()).unwrap();
        authority
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a certificate for a host and its key to files of this name.
    pub(crate) fn issue(&self, name: &str, host: &str) -> TlsFiles {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let [certificate_path, key_path] = ["crt", "key"].map(|end| self.path(&format!("{name}.{end}")));
        fs::write(&certificate_path, certificate.pem()).unwrap();
        fs::write(&key_path, key.serialize_pem()).unwrap();
        TlsFiles { certificate: certificate_path, key: key_path, client_authority: None }
    }

    /// A connector of a client that trusts only this authority.
    pub(crate) fn connector(&self, client: &TestClient) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let versions = if client.is_old { &[&TLS12] } else { &[&TLS13] };
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let config = config.with_protocol_versions(versions).unwrap().with_root_certificates(roots);
        let mut config = match client.certificate {
            None => config.with_no_client_auth(),
            Some(name) => {
                let [certificate, key] = ["crt", "key"].map(|end| self.path(&format!("{name}.{end}")));
                let certificate = CertificateDer::from_pem_file(certificate).unwrap();
                let key = PrivateKeyDer::from_pem_file(key).unwrap();
                config.with_client_auth_cert(vec![certificate], key).unwrap()
            }
        };
        config.alpn_protocols = client.protocol.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config).into()
    }

    /// Performs the handshake with a server that has to be this host.
    pub(crate) async fn connect(
        &self,
        stream: TcpStream,
        host: &'static str,
        client: &TestClient,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        self.connector(client).connect(host.try_into().unwrap(), stream).await
    }
}
