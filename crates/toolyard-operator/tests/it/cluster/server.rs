//! etcd and an API server of Kubernetes, which end with the test that started them. No kubelet runs: the test says what
//! becomes of pods.

#![expect(clippy::disallowed_methods, reason = "what tests start are not the gateway's programs")]

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kube::{Client, Config};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    SanType,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_operator::Cluster;

pub(crate) struct Server {
    // In the order in which they end.
    _api: Program,
    _etcd: Program,
    folder: TempDir,
    port: u16,
    authority: CertifiedIssuer<'static, KeyPair>,
}

struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// How long it may take to start on a busy machine.
const STARTING: Duration = Duration::from_secs(90);

impl Server {
    /// One that answers. Whoever else takes a port that was free a moment ago is given way to.
    pub(crate) async fn start() -> Self {
        for _ in 0..3 {
            if let Some(server) = Self::try_to_start().await {
                return server;
            }
        }
        panic!("the API server does not start");
    }

    async fn try_to_start() -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let authority = authority();
        write_keys(folder.path(), &authority);
        let (etcd_port, port) = (free_port(), free_port());
        let etcd = etcd(folder.path(), etcd_port);
        let api = api_server(folder.path(), etcd_port, port);
        let mut server = Self { _api: api, _etcd: etcd, folder, port, authority };
        server.answers().await.then_some(server)
    }

    async fn answers(&mut self) -> bool {
        let client = self.admin().await;
        let started = tokio::time::Instant::now();
        while started.elapsed() < STARTING {
            let ready = client.request_text(http::Request::get("/readyz").body(Vec::new()).unwrap());
            if ready.await.is_ok() {
                return true;
            }
            if self._api.0.try_wait().unwrap().is_some() || self._etcd.0.try_wait().unwrap().is_some() {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!(
            "the API server is not ready: {}",
            std::fs::read_to_string(self.folder.path().join("api.log")).unwrap()
        )
    }

    /// Who may do everything.
    pub(crate) async fn admin(&self) -> Client {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::OrganizationName, "system:masters");
        params.distinguished_name.push(DnType::CommonName, "admin");
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        let user = json!({
            "client-certificate-data": base64(certificate.pem().as_bytes()),
            "client-key-data": base64(key.serialize_pem().as_bytes()),
        });
        self.client(&user).await
    }

    /// Whoever has a token.
    pub(crate) async fn with_token(&self, token: &str) -> Client {
        self.client(&json!({ "token": token })).await
    }

    async fn client(&self, user: &Value) -> Client {
        let path = self.folder.path().join("kubeconfig");
        let server = format!("https://127.0.0.1:{}", self.port);
        let authority = self.folder.path().join("ca.crt");
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority": authority}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "users": [{"name": "test", "user": user}],
        });
        std::fs::write(&path, config.to_string()).unwrap();
        Cluster::Kubeconfig { path, context: None }.client().await.unwrap()
    }
}

/// Somebody who shows nothing.
pub(crate) fn nobody(server: &Server) -> Client {
    let mut config = Config::new(format!("https://127.0.0.1:{}", server.port).parse().unwrap());
    config.accept_invalid_certs = true;
    Client::try_from(config).unwrap()
}

fn etcd(folder: &Path, port: u16) -> Program {
    let client = format!("http://127.0.0.1:{port}");
    let mut etcd = program(&peer("debian/usr/bin/etcd"));
    etcd.args(["--data-dir", "etcd", "--logger", "zap", "--listen-peer-urls", "http://127.0.0.1:0"]);
    etcd.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
    start(etcd, folder, "etcd.log")
}

fn api_server(folder: &Path, etcd_port: u16, port: u16) -> Program {
    let mut server = program(&peer("kubernetes/kube-apiserver"));
    server.arg(format!("--etcd-servers=http://127.0.0.1:{etcd_port}"));
    server.args([
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
    ]);
    server.arg(format!("--secure-port={port}"));
    server.args([
        "--tls-cert-file=server.crt",
        "--tls-private-key-file=server.key",
        "--client-ca-file=ca.crt",
    ]);
    server.args(["--service-account-issuer=https://kubernetes.default.svc", "--cert-dir=certificates"]);
    server.args(["--service-account-key-file=account.pub", "--service-account-signing-key-file=account.key"]);
    server.args(["--service-cluster-ip-range=10.0.0.0/24", "--authorization-mode=RBAC"]);
    // It would wait for tokens that the controller manager makes, which does not run.
    server.arg("--disable-admission-plugins=ServiceAccount");
    start(server, folder, "api.log")
}

/// The kernel ends it with the thread of the test, however that ends.
fn program(path: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(path);
    command
}

fn start(mut command: Command, folder: &Path, log: &str) -> Program {
    let log = File::create(folder.join(log)).unwrap();
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    Program(command.spawn().unwrap())
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "test");
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn write_keys(folder: &Path, authority: &CertifiedIssuer<'static, KeyPair>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.subject_alt_names.push(SanType::IpAddress(Ipv4Addr::LOCALHOST.into()));
    params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
    let certificate = params.signed_by(&key, authority).unwrap();
    let account = KeyPair::generate().unwrap();
    for (name, text) in [
        ("ca.crt", authority.pem()),
        ("server.crt", certificate.pem()),
        ("server.key", key.serialize_pem()),
        ("account.key", account.serialize_pem()),
        ("account.pub", account.public_key_pem()),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

/// A peer, by its path among them.
#[track_caller]
fn peer(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let folder = std::env::var_os("TOOLYARD_PEERS").unwrap_or_else(|| "target/peers".into());
    let peer = root.join(folder).join(path);
    assert!(peer.exists(), "the peer {} is not there: run `cargo xtask peers`", peer.display());
    peer
}

/// A port on which nobody listened a moment ago.
fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::prelude::BASE64_STANDARD.encode(bytes)
}
