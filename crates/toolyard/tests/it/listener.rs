//! How clients of other people reach the gateway: by TLS, whose certificate is renewed while it serves, through a Unix
//! socket, and through a proxy.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::eventually;
use crate::support::gateway::{Gateway, toolyard};
use crate::support::peers::{command, peer};
use crate::support::process::run;
use crate::support::scripted::{Scripted, script};

/// Longer than any test takes.
const NEVER: &str = "1h";

/// A gateway with TLS, whose certificate is looked at this often; in its folder is `ca.crt`, whom to trust.
struct Encrypted {
    gateway: Gateway,
    authority: CertifiedIssuer<'static, KeyPair>,
    _server: Scripted,
}

impl Encrypted {
    #[track_caller]
    fn start(check: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // By its name an authority is told from those whom it vouches for.
        params.distinguished_name.push(DnType::CommonName, "authority");
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let server = Scripted::new("there");
        let spec = json!({
            "tls": {"certFile": "server.crt", "keyFile": "server.key"},
            "timeouts": {"manifestCheck": check},
        });
        let (folder, mut command) = Gateway::command(&[server.handler()], spec);
        fs::write(folder.path().join("ca.crt"), authority.pem()).unwrap();
        issue(&authority, folder.path(), "127.0.0.1");
        let gateway = Gateway::start(folder, command.env("TOOLYARD_LOG", "trace"));
        Self { gateway, authority, _server: server }
    }

    fn url(&self) -> String {
        format!("https://{}", self.gateway.address)
    }

    /// What curl says of the health check, by this name.
    fn curl(&self, host: &str) -> (i32, String) {
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

/// Writes a new certificate for a host, and its key.
fn issue(authority: &CertifiedIssuer<'static, KeyPair>, folder: &Path, host: &str) {
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec![host.to_owned()]).unwrap().signed_by(&key, authority).unwrap();
    fs::write(folder.join("server.crt"), certificate.pem()).unwrap();
    fs::write(folder.join("server.key"), key.serialize_pem()).unwrap();
}

#[test]
fn clients_over_tls() {
    let site = Encrypted::start(NEVER);
    let folder = site.gateway.folder.path();
    let greeting = site.gateway.process.stdout.text();
    assert!(greeting.contains(&format!("serves MCP on {}/mcp\n", site.url())), "{greeting}");
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
    // Nobody's authority.
    let ended = run(toolyard(folder).args(["tools", "--url", &url]));
    assert_eq!(ended.code, 1, "{ended}");
    let plain = site.gateway.health().unwrap();
    assert_eq!((plain.status, plain.body.as_str()), (400, "this port speaks TLS: use https:\n"));
    let key = fs::read_to_string(folder.join("server.key")).unwrap();
    let log = site.gateway.process.stderr.text();
    assert!(!log.contains(key.lines().nth(1).unwrap()), "{log}");
}

#[test]
fn a_certificate_is_renewed_while_the_gateway_serves() {
    let site = Encrypted::start("10ms");
    let folder = site.gateway.folder.path();
    issue(&site.authority, folder, "tools.localhost");
    eventually("the new certificate", || (site.curl("tools.localhost").0 == 0).then_some(()));
    // 60: the certificate is another host's.
    assert_eq!(site.curl("127.0.0.1").0, 60);
    eventually("the note of it", || (site.last_edit()["applied"] == true).then_some(()));
    let key = fs::read_to_string(folder.join("server.key")).unwrap();
    fs::write(folder.join("server.key"), KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let refused =
        eventually("the refusal", || Some(site.last_edit()).filter(|edit| edit["applied"] == false));
    let folder = folder.display();
    let expected = format!("{folder}/server.crt and {folder}/server.key cannot be used together");
    assert!(refused["message"].as_str().unwrap().starts_with(&expected), "{refused}");
    assert_eq!(site.curl("tools.localhost").0, 0);
    fs::write(site.gateway.folder.path().join("server.key"), key).unwrap();
    eventually("the end of the trouble", || (site.last_edit()["applied"] == true).then_some(()));
}

#[test]
fn a_hangup_has_the_certificate_read_at_once() {
    let site = Encrypted::start(NEVER);
    issue(&site.authority, site.gateway.folder.path(), "tools.localhost");
    site.gateway.process.signal(Signal::HUP);
    eventually("the new certificate", || (site.curl("tools.localhost").0 == 0).then_some(()));
}

#[test]
fn a_certificate_that_is_of_no_use() {
    let spec = json!({"tls": {"certFile": "missing.crt", "keyFile": "missing.key"}});
    let server = Scripted::new("there");
    let (folder, mut command) = Gateway::command(&[server.handler()], spec);
    let ended = run(command.args(["--listen", "127.0.0.1:0"]));
    let said = ended.to_string().replace(&folder.path().display().to_string(), "DIR");
    insta::assert_snapshot!(said, @"
    --- stderr
    error: cannot listen with TLS: DIR/missing.crt cannot be read as certificates: I/O error: No such file or directory (os error 2)
    --- exit status 1
    ");
}

/// Whatever the URL says, and its file goes with the gateway.
#[test]
fn through_a_unix_socket() {
    let server = Scripted::new("there");
    let (folder, mut serve) = Gateway::command(&[server.handler()], json!({}));
    let path = folder.path().join("toolyard.sock");
    let mut gateway = Gateway::start(folder, serve.arg("--listen").arg(format!("unix:{}", path.display())));
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
    let expected =
        format!("error: cannot listen on unix:{}: somebody listens there already\n", path.display());
    assert_eq!((ended.code, ended.stderr), (1, expected));
    gateway.process.signal(Signal::TERM);
    assert_eq!(gateway.process.wait().code(), Some(0));
    assert!(!path.exists());
}

/// Alone it is enough, also where nobody has a key: no other machine reaches it.
#[test]
fn a_unix_socket_alone() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("toolyard.sock");
    let mut serve = toolyard(folder.path());
    serve.args(["serve", "--listen"]).arg(format!("unix:{}", path.display()));
    let gateway = crate::support::process::Process::start(&mut serve);
    let greeting = format!("serves MCP on unix:{}\n", path.display());
    gateway.stdout.wait_for("the greeting", |text| text.contains(&greeting).then_some(()));
}

/// The proxy says whom it speaks for, and is served like that client; nobody gets by without saying.
#[test]
fn behind_a_proxy() {
    let server = Scripted::new("there");
    let gateway = Gateway::with(&[server.handler()], json!({"proxyProtocol": {"from": ["127.0.0.1"]}}));
    let ask = |header: &str| {
        let mut stream = TcpStream::connect(gateway.address).unwrap();
        let request = format!("{header}GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).ok();
        said
    };
    let answer = ask("PROXY TCP4 192.0.2.1 198.51.100.1 40000 443\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(ask(""), "");
    let log = "a proxy did not say whom it speaks for";
    gateway.process.stderr.wait_for("the reason", |text| text.contains(log).then_some(()));
    let curl = run(command("curl", gateway.folder.path()).args([
        "--silent",
        "--haproxy-protocol",
        &format!("http://{}/health", gateway.address),
    ]));
    assert_eq!(curl.stdout, r#"{"status":"ok"}"#);
}
