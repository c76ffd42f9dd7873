//! Third-party clients connect by TLS with certificate renewal, by a Unix socket and through a proxy.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustix::process::Signal;
use serde_json::{Value, json};
use toolyard_testing::peers::{command, peer};
use toolyard_testing::process::run;
use toolyard_testing::scripted_server::{ScriptedServer, script};
use toolyard_testing::wait::eventually;

use crate::support::gateway::{TestGateway, toolyard};

/// Longer than any test.
const LONG_INTERVAL: &str = "1h";

/// A gateway with TLS and this interval between checks of the certificate. `ca.crt` in its directory is the authority
/// to trust.
pub(crate) struct TlsGateway {
    pub(crate) gateway: TestGateway,
    pub(crate) authority: CertifiedIssuer<'static, KeyPair>,
    _server: ScriptedServer,
}

impl TlsGateway {
    #[track_caller]
    pub(crate) fn start(check: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // The name distinguishes the authority from the certificates that it signs.
        params.distinguished_name.push(DnType::CommonName, "authority");
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let server = ScriptedServer::new("there");
        let spec = json!({
            "tls": {"certFile": "server.crt", "keyFile": "server.key"},
            "timeouts": {"manifestCheck": check},
            "allowedHosts": ["tools.localhost"],
        });
        let (folder, mut command) = TestGateway::command(&[server.handler()], spec);
        fs::write(folder.path().join("ca.crt"), authority.pem()).unwrap();
        issue(&authority, folder.path(), "127.0.0.1");
        let gateway = TestGateway::start(folder, command.env("TOOLYARD_LOG", "trace"));
        Self { gateway, authority, _server: server }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.gateway.address)
    }

    /// Runs curl with the health check of this host and returns its status and output.
    pub(crate) fn curl(&self, host: &str) -> (i32, String) {
        let folder = self.gateway.folder.path();
        let port = self.gateway.address.port();
        let ended = run(command("curl", folder)
            .args(["--silent", "--show-error", "--max-time", "20", "--cacert"])
            .arg(folder.join("ca.crt"))
            .args([
                "--resolve",
                &format!("{host}:{port}:127.0.0.1"),
                &format!("https://{host}:{port}/health"),
            ]));
        (ended.code, ended.stdout)
    }

    fn last_edit(&self) -> Value {
        let folder = self.gateway.folder.path();
        let status = format!("{}/api/v1/status", self.url());
        let ended = run(command("curl", folder).args(["--silent", "--insecure", &status]));
        serde_json::from_str::<Value>(&ended.stdout).unwrap()["lastEdit"].clone()
    }
}

/// Writes a new certificate and key for a host.
pub(crate) fn issue(authority: &CertifiedIssuer<'static, KeyPair>, folder: &Path, host: &str) {
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec![host.to_owned()]).unwrap().signed_by(&key, authority).unwrap();
    fs::write(folder.join("server.crt"), certificate.pem()).unwrap();
    fs::write(folder.join("server.key"), key.serialize_pem()).unwrap();
}

#[test]
fn clients_connect_by_tls() {
    let site = TlsGateway::start(LONG_INTERVAL);
    let folder = site.gateway.folder.path();
    let greeting = site.gateway.process.stdout.text();
    assert!(greeting.contains(&format!("is serving MCP on {}/mcp\n", site.url())), "{greeting}");
    assert_eq!(site.curl("127.0.0.1"), (0, r#"{"status":"ok"}"#.to_owned()));
    let url = format!("{}/mcp", site.url());
    let mut python = command(peer("python/bin/python"), folder);
    python.env("SSL_CERT_FILE", folder.join("ca.crt")).arg(script("client.py"));
    let ended = run(python.args([&url, "2026-07-28", r#"[["pid", {}]]"#]));
    assert_eq!(ended.code, 0, "{ended}");
    let seen: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(seen["tools"], json!(["pid", "wait"]));
    let mut ours = toolyard(folder);
    let ended = run(ours.env("SSL_CERT_FILE", folder.join("ca.crt")).args(["tools", "--url", &url]));
    assert!(ended.code == 0 && ended.stdout.starts_with("pid"), "{ended}");
    // An unknown authority.
    let ended = run(toolyard(folder).args(["tools", "--url", &url]));
    assert_eq!(ended.code, 1, "{ended}");
    let plain = site.gateway.health().unwrap();
    assert_eq!((plain.status, plain.body.as_str()), (400, "this port speaks TLS: use https:\n"));
    let key = fs::read_to_string(folder.join("server.key")).unwrap();
    let log = site.gateway.process.stderr.text();
    assert!(!log.contains(key.lines().nth(1).unwrap()), "{log}");
}

#[test]
fn certificate_is_renewed_at_run_time() {
    let site = TlsGateway::start("10ms");
    let folder = site.gateway.folder.path();
    issue(&site.authority, folder, "tools.localhost");
    eventually("the new certificate", || (site.curl("tools.localhost").0 == 0).then_some(()));
    // 60: the certificate is for another host.
    assert_eq!(site.curl("127.0.0.1").0, 60);
    eventually("the note of it", || (site.last_edit()["applied"] == true).then_some(()));
    let key = fs::read_to_string(folder.join("server.key")).unwrap();
    fs::write(folder.join("server.key"), KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let refused =
        eventually("the refusal", || Some(site.last_edit()).filter(|edit| edit["applied"] == false));
    let folder = folder.display();
    let expected =
        format!("{folder}/server.crt and {folder}/server.key are not a usable pair of certificate and key");
    assert!(refused["message"].as_str().unwrap().starts_with(&expected), "{refused}");
    assert_eq!(site.curl("tools.localhost").0, 0);
    fs::write(site.gateway.folder.path().join("server.key"), key).unwrap();
    eventually("the end of the trouble", || (site.last_edit()["applied"] == true).then_some(()));
}

#[test]
fn sighup_reloads_certificate() {
    let site = TlsGateway::start(LONG_INTERVAL);
    issue(&site.authority, site.gateway.folder.path(), "tools.localhost");
    site.gateway.process.signal(Signal::HUP);
    eventually("the new certificate", || (site.curl("tools.localhost").0 == 0).then_some(()));
}

#[test]
fn unusable_certificate_is_rejected() {
    let spec = json!({"tls": {"certFile": "missing.crt", "keyFile": "missing.key"}});
    let server = ScriptedServer::new("there");
    let (folder, mut command) = TestGateway::command(&[server.handler()], spec);
    let ended = run(command.args(["--listen", "127.0.0.1:0"]));
    let output = ended.to_string().replace(&folder.path().display().to_string(), "DIR");
    insta::assert_snapshot!(output, @"
    --- stderr
    error: cannot listen with TLS: cannot read certificates from DIR/missing.crt: I/O error: No such file or directory (os error 2)
    --- exit status 1
    ");
}

/// The host of the URL does not matter, and the socket file is removed with the gateway.
#[test]
fn unix_socket_beside_tcp() {
    let server = ScriptedServer::new("there");
    let (folder, mut serve) = TestGateway::command(&[server.handler()], json!({}));
    let path = folder.path().join("toolyard.sock");
    let mut gateway =
        TestGateway::start(folder, serve.arg("--listen").arg(format!("unix:{}", path.display())));
    let folder = gateway.folder.path();
    let greeting =
        gateway.process.stdout.wait_for("the socket", |text| text.contains(".sock").then(|| text.to_owned()));
    assert!(greeting.contains(&format!("\n  and on unix:{}\n", path.display())), "{greeting}");
    for host in ["localhost", "toolyard"] {
        let mut curl = command("curl", folder);
        curl.args(["--silent", "--unix-socket"]).arg(&path).arg(format!("http://{host}/api/v1/status"));
        let ended = run(&mut curl);
        assert!(ended.stdout.starts_with(r#"{"phase":"#), "{ended}");
    }
    let mut second = toolyard(folder);
    let ended = run(second.args(["serve", "--listen"]).arg(format!("unix:{}", path.display())));
    let expected = format!(
        "error: cannot listen on unix:{}: another program does, such as a gateway; choose another address with \
         `--listen`\n",
        path.display()
    );
    assert_eq!((ended.code, ended.stderr), (1, expected));
    gateway.process.signal(Signal::TERM);
    assert_eq!(gateway.process.wait().code(), Some(0));
    assert!(!path.exists());
}

/// A Unix socket may be the only listener and needs no keys: no other machine can connect.
#[test]
fn unix_socket_alone_needs_no_keys() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("toolyard.sock");
    let mut serve = toolyard(folder.path());
    serve.args(["serve", "--listen"]).arg(format!("unix:{}", path.display()));
    let gateway = toolyard_testing::process::RunningProgram::start(&mut serve);
    let greeting = format!("is serving MCP on unix:{}\n", path.display());
    gateway.stdout.wait_for("the greeting", |text| text.contains(&greeting).then_some(()));
}

/// The gateway uses the client address from the proxy, and rejects connections without one.
#[test]
fn proxy_protocol_sets_client_address() {
    let server = ScriptedServer::new("there");
    let gateway =
        TestGateway::with_settings(&[server.handler()], json!({"proxyProtocol": {"from": ["127.0.0.1"]}}));
    let ask = |header: &str| {
        let mut stream = TcpStream::connect(gateway.address).unwrap();
        let request = format!("{header}GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).ok();
        text
    };
    let answer = ask("PROXY TCP4 192.0.2.1 198.51.100.1 40000 443\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(ask(""), "");
    let log = "invalid PROXY protocol header from a proxy";
    gateway.process.stderr.wait_for("the reason", |text| text.contains(log).then_some(()));
    let curl = run(command("curl", gateway.folder.path()).args([
        "--silent",
        "--haproxy-protocol",
        &format!("http://{}/health", gateway.address),
    ]));
    assert_eq!(curl.stdout, r#"{"status":"ok"}"#);
}
