//! `docs/troubleshooting.md`: each row of its table is provoked, and the snapshot has what `toolyard doctor` shows. Rows
//! that no machine provokes at will are shown by the tests that they name.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::manifest::{http_handler, stdio_handler};
use toolyard_testing::peers::{command, free_port, peer, root};
use toolyard_testing::process::{RunningProgram, run};
use toolyard_testing::upstream::{BackgroundUpstream, ReceivedRequest, ScriptedReply};
use toolyard_testing::wait::eventually;

use crate::outbound::{ForeignProxy, with_fields};
use crate::support::gateway::{TestGateway, toolyard};

/// Rows that other tests show: a part of the message, the test's file, and the text there.
const SHOWN_ELSEWHERE: &[(&str, &str, &str)] = &[
    (
        "too many running programs",
        "crates/toolyard/tests/full/processes.rs",
        "(too many running programs (at most 1))",
    ),
    (
        "cannot enter the working directory",
        "crates/toolyard-server/tests/it/causes.rs",
        r#"cannot enter the working directory "/no/such/folder": there is no such folder"#,
    ),
    (
        "is for gateways that the operator runs in a cluster",
        "crates/toolyard-server/tests/it/selectors.rs",
        "is for gateways that the operator runs in a cluster",
    ),
    ("DNS: no such host", "crates/toolyard-net/src/failure.rs", r#"Some("DNS: no such host")"#),
    ("DNS: temporary failure", "crates/toolyard-net/src/failure.rs", r#"Some("DNS: temporary failure")"#),
    ("host unreachable", "crates/toolyard-net/src/failure.rs", r#"Some("host unreachable")"#),
    (
        "no worker announces itself",
        "crates/toolyard-bus/tests/full/remote.rs",
        r#""no worker announces itself on the message bus""#,
    ),
    (
        "message broker cannot be used",
        "crates/toolyard-bus/tests/full/faults.rs",
        r#""the message broker cannot be used: ""#,
    ),
    ("connecting timed out", "crates/toolyard-net/src/failure.rs", r#"Some("connecting timed out")"#),
];

/// The messages of the table, without code marks. A row may have two, of which one is a phase.
fn messages() -> Vec<String> {
    let page = fs::read_to_string(root().join("docs/troubleshooting.md")).unwrap();
    let table = page.split_once("| message | code |").unwrap().1;
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let message = |row: &str| {
        let cell = row.split(" | ").next().unwrap().trim_start_matches("| ").trim();
        let cell = cell.strip_suffix(", phase `Installing`").unwrap_or(cell);
        let marks = if cell.starts_with("``") { "``" } else { "`" };
        cell.strip_prefix(marks).and_then(|cell| cell.strip_suffix(marks)).unwrap_or(cell).to_owned()
    };
    rows.map(message).collect()
}

/// A server of the Python standard library, which speaks TLS with each of these certificates on a port of its own, and no
/// TLS on another one.
const TLS_SERVERS: &str = "\
import http.server, ssl, sys, threading
for name in sys.argv[1:]:
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.BaseHTTPRequestHandler)
    if name != 'plain':
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f'{name}.crt', f'{name}.key')
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever).start()
    print(name, server.server_port, flush=True)
";

/// A server that knows no revision since the last century.
const OLD_SERVER: &str = "\
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    answer = {'jsonrpc': '2.0', 'id': message.get('id')}
    if message['method'] == 'initialize':
        answer['result'] = {'protocolVersion': '1999-01-01', 'capabilities': {}, 'serverInfo': {'name': 'a', 'version': '1'}}
    else:
        answer['error'] = {'code': -32601, 'message': 'unknown method'}
    print(json.dumps(answer), flush=True)
";

/// TLS servers, by the name of the fault of their certificate.
struct TlsServers {
    _process: RunningProgram,
    ports: BTreeMap<String, String>,
}

impl TlsServers {
    fn start(folder: &Path) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority");
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        fs::write(folder.join("ca.pem"), authority.pem()).unwrap();
        let params = |host: &str| CertificateParams::new(vec![host.to_owned()]).unwrap();
        let mut expired = params("127.0.0.1");
        expired.not_after = date_time_ymd(2020, 1, 1);
        let cases = [
            ("self-signed", params("127.0.0.1")),
            ("unknown", params("127.0.0.1")),
            ("other", params("other.example")),
            ("expired", expired),
        ];
        let names = cases.each_ref().map(|(name, _)| *name);
        for (name, params) in cases {
            let key = KeyPair::generate().unwrap();
            let certificate = match name {
                "self-signed" => params.self_signed(&key),
                _ => params.signed_by(&key, &authority),
            };
            fs::write(folder.join(format!("{name}.crt")), certificate.unwrap().pem()).unwrap();
            fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
        }
        let mut server = command(peer("python/bin/python"), folder);
        server.current_dir(folder).args(["-c", TLS_SERVERS]).args(names).arg("plain");
        let process = RunningProgram::start(&mut server);
        let ports = process.stdout.wait_for("the ports", |text| {
            let ports: BTreeMap<_, _> = text.lines().filter_map(|line| line.split_once(' ')).collect();
            (ports.len() == names.len() + 1)
                .then(|| ports.into_iter().map(|(name, port)| (name.to_owned(), port.to_owned())).collect())
        });
        Self { _process: process, ports }
    }

    fn handler(&self, name: &str) -> Value {
        http_handler(&format!("tls-{name}"), &format!("https://127.0.0.1:{}/mcp", self.ports[name]))
    }
}

fn upstream(status: u16, headers: &'static str) -> BackgroundUpstream {
    BackgroundUpstream::start(move |_: &ReceivedRequest| ScriptedReply::http(status, headers, "{}"))
}

/// Servers and files that the handlers need.
struct Faults {
    tls: TlsServers,
    proxies: [ForeignProxy; 2],
    unauthorized: [BackgroundUpstream; 2],
    forbidden: BackgroundUpstream,
    missing: BackgroundUpstream,
    failing: BackgroundUpstream,
    empty: BackgroundUpstream,
}

impl Faults {
    fn start(folder: &Path) -> Self {
        let script = |name: &str, text: &str, mode: u32| {
            fs::write(folder.join(name), text).unwrap();
            fs::set_permissions(folder.join(name), Permissions::from_mode(mode)).unwrap();
        };
        script("x", "", 0o644);
        script("token", "hunter2hunter2", 0o644);
        script("npx", "#!/bin/sh\nexec sleep 1000\n", 0o755);
        script("old.py", OLD_SERVER, 0o644);
        let challenge = "www-authenticate: Bearer realm=\"x\"\r\n";
        Self {
            tls: TlsServers::start(folder),
            proxies: [&[][..], &["--basic-auth", "me:s3cret-word"]]
                .map(|more| ForeignProxy::start(folder, more)),
            unauthorized: [(); 2].map(|()| upstream(401, challenge)),
            forbidden: upstream(403, ""),
            missing: upstream(404, ""),
            failing: upstream(500, ""),
            empty: upstream(200, "content-type: application/json\r\n"),
        }
    }

    /// The handlers, each with one fault.
    fn handlers(&self, folder: &Path) -> Vec<Value> {
        let shell = |name: &str, script: &str| stdio_handler(name, "sh", &["-c", script]);
        let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let url = |server: &BackgroundUpstream| server.url("/mcp");
        let closed = format!("127.0.0.1:{}", free_port());
        let site = format!("https://{closed}/mcp");
        let by_proxy =
            |name: &str, proxy: &str| with_fields(http_handler(name, &site), &json!({"proxy": proxy}));
        let authority = json!({"tlsCAPath": file("ca.pem")});
        let openapi = |name: &str, url: String| json!({"name": name, "type": "openapi", "openAPIConfig": {"specURL": url, "baseURL": "http://127.0.0.1:1"}});
        vec![
            shell("exit", "echo one >&2; echo no key >&2; exit 1"),
            shell("launcher", "no-such-program"),
            shell("killed", "kill -9 $$"),
            shell("closed-output", "exec >&-; exec sleep 1000"),
            stdio_handler("missing", "no-npx", &["x"]),
            stdio_handler("not-executable", &file("x"), &[]),
            shell("silent", "echo waiting for a login >&2; exec sleep 1000"),
            stdio_handler("npx-1", &file("npx"), &["one"]),
            stdio_handler("npx-2", &file("npx"), &["two"]),
            stdio_handler("old", peer("python/bin/python").to_str().unwrap(), &[&file("old.py")]),
            http_handler("refused", &format!("http://{closed}/mcp")),
            self.tls.handler("self-signed"),
            self.tls.handler("unknown"),
            with_fields(self.tls.handler("other"), &authority),
            with_fields(self.tls.handler("expired"), &authority),
            self.tls.handler("plain"),
            by_proxy("no-proxy", &format!("http://{closed}")),
            by_proxy("proxy-credentials", &self.proxies[1].url),
            by_proxy("proxy-refusal", &self.proxies[0].url),
            http_handler("no-header", &url(&self.unauthorized[0])),
            with_fields(
                http_handler("wrong-header", &url(&self.unauthorized[1])),
                &json!({"headers": {"Authorization": "Bearer hunter2hunter2"}}),
            ),
            http_handler("forbidden", &url(&self.forbidden)),
            http_handler("not-there", &url(&self.missing)),
            json!({
                "name": "failing",
                "type": "http",
                "endpoint": {"url": self.failing.url("/")},
                "tool": {"name": "fail", "description": "Fails.", "inputSchema": {"type": "object"}},
            }),
            openapi("unreadable", format!("http://{closed}/openapi.json")),
            openapi("unusable", self.empty.url("/openapi.json")),
            with_fields(
                http_handler("no-credentials", &url(&self.missing)),
                &json!({"authType": "bearer", "authToken": format!("file:{}", file("token"))}),
            ),
            with_fields(http_handler("no-authority", &site), &json!({"tlsCAPath": file("no-ca.pem")})),
        ]
    }
}

/// Replaces what differs between runs: folders, ports and times.
fn normalized(text: &str, folders: &[(&str, &str)]) -> String {
    let text = folders.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    let mut parts = text.split("127.0.0.1:");
    let mut normal = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        normal += "127.0.0.1:PORT";
        normal += part.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    let without_time = |line: &str| match line.split_once(", since ") {
        Some((head, _)) => format!("{head}, since ...\n"),
        None => format!("{line}\n"),
    };
    let kept = |line: &&str| !line.starts_with("Running processes:");
    normal.lines().filter(kept).map(without_time).collect()
}

#[test]
fn every_row_of_the_table_is_shown() {
    let folder = TempDir::new().unwrap();
    let faults = Faults::start(folder.path());
    let handlers = faults.handlers(folder.path());
    let settings = json!({"timeouts": {"firstList": "0s", "connect": "8s"}});
    let gateway = TestGateway::with_settings(&handlers, settings);
    // The manifest is refused without the file, which is read again at each request.
    fs::remove_file(folder.path().join("token")).unwrap();
    let until = |what: &str, is_known: &dyn Fn(&Value) -> bool| {
        eventually(what, || {
            let status: Value = gateway.get("/api/v1/status").body.parse().ok()?;
            status["handlers"].as_array()?.iter().all(is_known).then_some(status)
        })
    };
    until("the failures", &|handler| match handler["name"].as_str() {
        Some("no-credentials") => handler["lastError"]["code"] == "credentials",
        Some("npx-1" | "npx-2") => handler["installation"].is_object(),
        Some("failing") => true,
        _ => handler["lastError"].is_object(),
    });
    for _ in 0..5 {
        gateway.call("fail", json!({}));
    }
    until("the open breaker", &|handler| {
        handler["name"] != "failing"
            || (handler["lastError"]["code"] == "breaker_open" && handler["phase"] != "Ready")
    });
    let doctor = run(toolyard(folder.path()).args(["doctor", "--url", &gateway.url()])).to_string();
    let python = peer("python/bin/python");
    let folders = [(folder.path().to_str().unwrap(), "FOLDER"), (python.to_str().unwrap(), "PYTHON")];
    let shown = normalized(&doctor, &folders);
    // Either of the two is installed first.
    let (installs, waits) =
        ("npx installs it, without output so far", "waits for other installations by npx");
    let shown = match shown.find(installs) < shown.find(waits) {
        true => shown,
        false => shown.replace(installs, "-").replace(waits, installs).replacen(
            "        -\n",
            &format!("        {waits}\n"),
            1,
        ),
    };
    insta::assert_snapshot!("shown", shown);
    // The table has the time of the default configuration, and no folders.
    let shown = shown
        .replace("timed out after 8 s", "timed out after 30 s")
        .replace("FOLDER/", "")
        .replace("no-npx", "npx");
    let missing = messages().into_iter().filter(|message| !shown.contains(message)).filter(|message| {
        let test = SHOWN_ELSEWHERE.iter().find(|(part, ..)| message.contains(part));
        !test.is_some_and(|(_, file, text)| fs::read_to_string(root().join(file)).unwrap().contains(text))
    });
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0]);
    assert!(messages().len() >= 30);
}
