//! etcd, an API server and a controller manager of Kubernetes, which end with the test that started them. No kubelet runs;
//! the test sets the status of pods.

use std::fs::File;
use std::net::Ipv4Addr;
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
use toolyard_operator::ClusterConfig;
use toolyard_testing::peers::{free_port, peer};
use toolyard_testing::process::bound_to_thread;

pub(crate) struct Server {
    // Dropped in this order.
    _controllers: Option<Program>,
    api: Program,
    etcd: Program,
    folder: TempDir,
    etcd_port: u16,
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

/// Time limit of the start on a busy machine.
const STARTING: Duration = Duration::from_secs(90);

impl Server {
    /// Starts a server and waits until it responds. Retries if another process has taken a port.
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
        let mut server = Self { _controllers: None, api, etcd, folder, etcd_port, port, authority };
        server.is_ready().await.then_some(server)
    }

    /// Starts a server with the controller manager, which computes the status of Deployments and collects garbage.
    pub(crate) async fn start_with_controllers() -> Self {
        let mut server = Self::start().await;
        let user = server.user("system:kube-controller-manager", None);
        let kubeconfig = server.kubeconfig("controllers", &user);
        server._controllers = Some(controller_manager(server.folder.path(), &kubeconfig));
        server
    }

    /// Kills the API server and starts it again, on the same port and with the same data.
    pub(crate) async fn restart_api(&mut self) {
        self.api.0.kill().unwrap();
        self.api.0.wait().unwrap();
        self.api = api_server(self.folder.path(), self.etcd_port, self.port);
        assert!(self.is_ready().await, "the API server does not start again");
    }

    /// Returns the completed requests of a user: verb, resource with subresource, and name.
    pub(crate) fn requests_of(&self, user: &str) -> Vec<AuditedRequest> {
        let log = std::fs::read_to_string(self.folder.path().join("audit.log")).unwrap();
        let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let of_user = events.filter(|event| event["user"]["username"] == user);
        of_user
            .filter(|event| event["stage"] == "ResponseComplete")
            .map(|event| AuditedRequest::of(&event))
            .collect()
    }

    async fn is_ready(&mut self) -> bool {
        let client = self.admin().await;
        let started = tokio::time::Instant::now();
        while started.elapsed() < STARTING {
            let ready = client.request_text(http::Request::get("/readyz").body(Vec::new()).unwrap());
            if ready.await.is_ok() {
                return true;
            }
            if self.api.0.try_wait().unwrap().is_some() || self.etcd.0.try_wait().unwrap().is_some() {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!(
            "the API server is not ready: {}",
            std::fs::read_to_string(self.folder.path().join("api.log")).unwrap()
        )
    }

    /// Returns a client with all permissions.
    pub(crate) async fn admin(&self) -> Client {
        self.master("admin").await
    }

    /// Returns a client of this name with all permissions, whose requests can be told apart.
    pub(crate) async fn master(&self, name: &str) -> Client {
        let user = self.user(name, Some("system:masters"));
        self.client(name, &user).await
    }

    /// Returns a client with a token.
    pub(crate) async fn with_token(&self, token: &str) -> Client {
        self.client("token", &json!({ "token": token })).await
    }

    /// Returns the certificate of a user.
    fn user(&self, name: &str, group: Option<&str>) -> Value {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        json!({
            "client-certificate-data": base64(certificate.pem().as_bytes()),
            "client-key-data": base64(key.serialize_pem().as_bytes()),
        })
    }

    /// Writes a kubeconfig file.
    pub(crate) fn kubeconfig(&self, name: &str, user: &Value) -> PathBuf {
        let path = self.folder.path().join(format!("{name}.kubeconfig"));
        let server = format!("https://127.0.0.1:{}", self.port);
        let authority = self.folder.path().join("ca.crt");
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority": authority}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "users": [{"name": "test", "user": user}],
        });
        std::fs::write(&path, config.to_string()).unwrap();
        path
    }

    async fn client(&self, name: &str, user: &Value) -> Client {
        let path = self.kubeconfig(name, user);
        ClusterConfig::Kubeconfig { path, context: None }.client().await.unwrap()
    }
}

/// A request in the audit log of the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuditedRequest {
    pub(crate) verb: String,
    /// Such as `deployments` or `languagetools/status`.
    pub(crate) resource: String,
    pub(crate) name: String,
}

impl AuditedRequest {
    fn of(event: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let object = &event["objectRef"];
        let resource = match object["subresource"].as_str() {
            Some(subresource) => format!("{}/{subresource}", text(&object["resource"])),
            None => text(&object["resource"]),
        };
        Self { verb: text(&event["verb"]), resource, name: text(&object["name"]) }
    }
}

/// Returns a client without credentials.
pub(crate) fn anonymous_client(server: &Server) -> Client {
    let mut config = Config::new(format!("https://127.0.0.1:{}", server.port).parse().unwrap());
    config.accept_invalid_certs = true;
    Client::try_from(config).unwrap()
}

fn etcd(folder: &Path, port: u16) -> Program {
    let client = format!("http://127.0.0.1:{port}");
    let mut etcd = bound_to_thread(peer("debian/usr/bin/etcd"));
    etcd.args(["--data-dir", "etcd", "--logger", "zap", "--listen-peer-urls", "http://127.0.0.1:0"]);
    etcd.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
    start(etcd, folder, "etcd.log")
}

fn api_server(folder: &Path, etcd_port: u16, port: u16) -> Program {
    let mut server = bound_to_thread(peer("kubernetes/kube-apiserver"));
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
    server.args(["--service-cluster-ip-range=10.0.0.0/20", "--authorization-mode=RBAC"]);
    server.args(["--audit-policy-file=audit.json", "--audit-log-path=audit.log"]);
    // It would wait for tokens of the controller manager, which does not run.
    server.arg("--disable-admission-plugins=ServiceAccount");
    start(server, folder, "api.log")
}

fn controller_manager(folder: &Path, kubeconfig: &Path) -> Program {
    let mut manager = bound_to_thread(peer("kubernetes/kube-controller-manager"));
    for option in ["--kubeconfig", "--authentication-kubeconfig", "--authorization-kubeconfig"] {
        manager.arg(option).arg(kubeconfig);
    }
    manager.args(["--service-account-private-key-file=account.key", "--root-ca-file=ca.crt"]);
    manager.args([
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        "--cert-dir=certificates",
    ]);
    manager.args(["--bind-address=127.0.0.1", "--secure-port", &free_port().to_string()]);
    start(manager, folder, "controllers.log")
}

fn start(mut command: Command, folder: &Path, log: &str) -> Program {
    let log = File::options().create(true).append(true).open(folder.join(log)).unwrap();
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
    let policy = json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata"}],
    });
    for (name, text) in [
        ("audit.json", policy.to_string()),
        ("ca.crt", authority.pem()),
        ("server.crt", certificate.pem()),
        ("server.key", key.serialize_pem()),
        ("account.key", account.serialize_pem()),
        ("account.pub", account.public_key_pem()),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::prelude::BASE64_STANDARD.encode(bytes)
}

impl Server {
    /// Folder of the files of the server, such as the kubeconfig of the administrator.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}
