//! Proxies, certificate authorities, the environment of programs, and launchers with an empty cache.

use std::path::Path;

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::manifest::{http_handler, stdio_handler};
use toolyard_testing::peers::{command, free_port, peer};
use toolyard_testing::process::RunningProgram;
use toolyard_testing::wait::{eventually, until};

use crate::listener::{TlsGateway, issue};
use crate::support::gateway::{TestGateway, toolyard};

/// PyPI's `proxy.py`.
pub(crate) struct ForeignProxy {
    process: RunningProgram,
    pub(crate) url: String,
}

impl ForeignProxy {
    pub(crate) fn start(home: &Path, more: &[&str]) -> Self {
        let port = free_port();
        let mut proxy = command(peer("python/bin/python"), home);
        proxy.env("PYTHONPATH", home).args([
            "-m",
            "proxy",
            "--hostname",
            "127.0.0.1",
            "--num-workers",
            "1",
            "--port",
            &port.to_string(),
        ]);
        let process = RunningProgram::start(proxy.args(more));
        until("a proxy", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { process, url: format!("http://127.0.0.1:{port}") }
    }

    fn log(&self) -> String {
        self.process.stdout.text() + &self.process.stderr.text()
    }
}

/// The last failure of the only handler.
fn failure(gateway: &TestGateway) -> String {
    let error = eventually("a failure", || {
        let status: Value = gateway.get("/api/v1/status").body.parse().ok()?;
        Some(status["handlers"][0]["lastError"].clone()).filter(Value::is_object)
    });
    let output =
        error["output"].as_array().into_iter().flatten().map(|line| format!(" | {}", line.as_str().unwrap()));
    format!(
        "{}: {}{}",
        error["code"].as_str().unwrap(),
        error["message"].as_str().unwrap(),
        output.collect::<String>()
    )
}

/// A handler with these fields in its configuration.
pub(crate) fn with_fields(mut handler: Value, fields: &Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        handler["mcpConfig"][name] = value.clone();
    }
    handler
}

#[test]
fn connect_proxy_reaches_a_server_with_a_private_authority() {
    let home = TempDir::new().unwrap();
    let site = TlsGateway::start("1h");
    let proxy = ForeignProxy::start(home.path(), &[]);
    let there = http_handler("there", &format!("{}/mcp", site.url()));
    let authority = site.gateway.folder.path().join("ca.crt");
    let fields = json!({"proxy": proxy.url, "tlsCAPath": authority});
    let gateway = TestGateway::with_handlers(&[with_fields(there.clone(), &fields)]);
    assert_eq!(gateway.tools(), ["pid", "wait"]);
    until("a tunnel in the log of the proxy", || proxy.log().contains("CONNECT 127.0.0.1"));
    let unknown = TestGateway::with_handlers(&[with_fields(there.clone(), &json!({"proxy": proxy.url}))]);
    assert_snapshot!(failure(&unknown), @"certificate: the server cannot be reached: TLS: certificate of an unknown issuer");
    let any = json!({"tlsInsecureSkipVerify": true});
    assert_eq!(TestGateway::with_handlers(&[with_fields(there.clone(), &any)]).tools(), ["pid", "wait"]);
    let closed = json!({"proxy": format!("http://127.0.0.1:{}", free_port())});
    let unreachable = TestGateway::with_handlers(&[with_fields(there, &closed)]);
    assert_snapshot!(failure(&unreachable), @"proxy: the server cannot be reached: the proxy cannot be reached");
}

/// Resolves the names of all hosts to this machine.
const RESOLVER: &str = "from proxy.http.proxy import HttpProxyBasePlugin\n\
                        class Resolver(HttpProxyBasePlugin):\n    \
                        def resolve_dns(self, host, port): return '127.0.0.1', None\n";

#[test]
fn variables_of_the_environment_select_the_proxy_and_the_authorities() {
    let home = TempDir::new().unwrap();
    let site = TlsGateway::start("1h");
    let folder = site.gateway.folder.path();
    issue(&site.authority, folder, "tools.localhost");
    site.gateway.process.signal(Signal::HUP);
    eventually("the new certificate", || (site.curl("tools.localhost").0 == 0).then_some(()));
    std::fs::write(home.path().join("resolver.py"), RESOLVER).unwrap();
    let check = |more: &[(&str, &str)]| {
        let proxy = ForeignProxy::start(home.path(), &["--plugins", "resolver.Resolver"]);
        let url = format!("https://tools.localhost:{}/mcp", site.gateway.address.port());
        let (folder, mut command) = TestGateway::command(&[http_handler("there", &url)], json!({}));
        command
            .env("HTTPS_PROXY", &proxy.url)
            .env("SSL_CERT_FILE", site.gateway.folder.path().join("ca.crt"));
        let gateway = TestGateway::start(folder, command.envs(more.iter().copied()));
        let is_ready = eventually("an answer or a failure", || {
            let status: Value = gateway.get("/api/v1/status").body.parse().ok()?;
            let handler = &status["handlers"][0];
            match (handler["phase"] == "Ready", handler["lastError"].is_object()) {
                (false, false) => None,
                (is_ready, _) => Some(is_ready),
            }
        });
        drop(gateway);
        (is_ready, proxy)
    };
    let (is_ready, proxy) = check(&[]);
    assert!(is_ready);
    until("a tunnel in the log of the proxy", || proxy.log().contains("CONNECT tools.localhost"));
    // Whether the machine resolves the name does not matter.
    let (_, proxy) = check(&[("NO_PROXY", "other.example, localhost")]);
    assert!(!proxy.log().contains("CONNECT"), "{}", proxy.log());
    let (is_ready, proxy) = check(&[("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt")]);
    assert!(!is_ready);
    until("a tunnel in the log of the proxy", || proxy.log().contains("CONNECT tools.localhost"));
}

#[test]
fn proxy_that_wants_credentials_gets_them() {
    let home = TempDir::new().unwrap();
    let site = TlsGateway::start("1h");
    let proxy = ForeignProxy::start(home.path(), &["--basic-auth", "me:s3cret-word"]);
    let there = http_handler("there", &format!("{}/mcp", site.url()));
    let any = json!({"tlsInsecureSkipVerify": true});
    let there = with_fields(there, &any);
    let refused = TestGateway::with_handlers(&[with_fields(there.clone(), &json!({"proxy": proxy.url}))]);
    assert_snapshot!(failure(&refused), @"proxy: the server cannot be reached: the proxy wants credentials");
    let url = proxy.url.replace("://", "://me:s3cret-word@");
    assert_eq!(
        TestGateway::with_handlers(&[with_fields(there, &json!({"proxy": url}))]).tools(),
        ["pid", "wait"]
    );
}

/// Starts a gateway whose only program runs this command in a shell, with these settings for programs and this
/// environment, and returns what the program has written.
fn output_of_program(script: &str, programs: &Value, environment: &[(&str, &str)]) -> String {
    let handler = stdio_handler("there", "sh", &["-c", &format!("({script}) >&2; exit 1")]);
    let (folder, mut command) = TestGateway::command(&[handler], json!({"programs": programs}));
    command.envs(environment.iter().copied());
    failure(&TestGateway::start(folder, &mut command))
}

#[test]
fn variables_about_the_network_reach_programs() {
    let check = |programs: Value| {
        let environment = [
            ("HTTPS_PROXY", "http://me:hunter2hunter2@proxy:1"),
            ("NO_PROXY", "a.example"),
            ("MORE", "more"),
            ("OTHER", "other"),
        ];
        output_of_program("echo \"$HTTPS_PROXY $NO_PROXY $MORE $OTHER\"", &programs, &environment)
    };
    let lines = [
        check(json!({})),
        check(json!({"moreEnvironment": ["MORE"]})),
        check(json!({"environment": [], "moreEnvironment": ["MORE"]})),
    ];
    assert_snapshot!(lines.join("\n"), @"
    process_exited: process exited with status 1 | http://[REDACTED]@proxy:1 a.example
    process_exited: process exited with status 1 | http://[REDACTED]@proxy:1 a.example more
    process_exited: process exited with status 1 | more
    ");
}

/// Node.js, npm and pip read their own variables, by default and not with an empty list.
#[test]
fn programs_use_variables_of_the_gateway() {
    let site = TlsGateway::start("1h");
    let fetch = format!(
        "node -e 'fetch(process.argv[1]).then(r => console.log(r.status), e => console.log(e.cause.code))' {}/health",
        site.url()
    );
    let authority = site.gateway.folder.path().join("ca.crt");
    let environment = [
        ("NODE_EXTRA_CA_CERTS", authority.to_str().unwrap()),
        ("npm_config_registry", "https://npm.example/"),
        ("PIP_INDEX_URL", "https://pip.example/simple"),
    ];
    let pip = "python -m pip config get :env:.index-url";
    let mut lines = Vec::new();
    for script in [&*fetch, "npm config get registry | grep -c npm.example || true", pip] {
        for programs in [json!({}), json!({"environment": []})] {
            lines.push(output_of_program(script, &programs, &environment));
        }
    }
    assert_snapshot!(lines.join("\n"), @"
    process_exited: process exited with status 1 | 200
    process_exited: process exited with status 1 | UNABLE_TO_VERIFY_LEAF_SIGNATURE
    process_exited: process exited with status 1 | 1
    process_exited: process exited with status 1 | 0
    process_exited: process exited with status 1 | https://pip.example/simple
    process_exited: process exited with status 1 | ERROR: No such key - :env:.index-url
    ");
}

/// True for a variable by which launchers reach their registries on the machine of the tests.
fn is_about_network(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_cache = name.ends_with("_CACHE") || name.ends_with("_CACHE_DIR");
    let prefixes = [
        "NPM_CONFIG_",
        "PIP_",
        "UV_",
        "SSL_CERT_",
        "NODE_EXTRA_CA_CERTS",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
    ];
    !is_cache && prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// The state of a handler: its phase, and what its launcher does.
fn install_state(handler: &Value) -> String {
    let phase = handler["phase"].as_str().unwrap();
    match &handler["installation"] {
        Value::Null => phase.to_owned(),
        of => format!("{phase} {} waiting={} line={}", of["launcher"], of["waiting"], of["line"].is_string()),
    }
}

/// The caches of both launchers are in the home of the gateway, which is empty. The servers are those of the peers. The
/// time limit of connecting is much shorter than an installation.
#[test]
fn launchers_with_empty_caches_install_their_servers() {
    let package = |name: &str| {
        let name = format!("@modelcontextprotocol/{name}");
        let text = std::fs::read_to_string(peer(&format!("node_modules/{name}/package.json"))).unwrap();
        let version = text.parse::<Value>().unwrap()["version"].as_str().unwrap().to_owned();
        format!("{name}@{version}")
    };
    let handlers = [
        stdio_handler("everything", "npx", &["-y", &package("server-everything")]),
        stdio_handler("memory", "npx", &["-y", &package("server-memory")]),
        stdio_handler("time", "uvx", &["mcp-server-time"]),
    ];
    let settings = json!({"timeouts": {"firstList": "0s", "connect": "1s", "eraProbe": "500ms"}});
    let (folder, mut command) = TestGateway::command(&handlers, settings);
    command.envs(std::env::vars_os().filter(|(name, _)| is_about_network(&name.to_string_lossy())));
    for (name, cache) in [("npm_config_cache", "npm"), ("UV_CACHE_DIR", "uv")] {
        std::fs::create_dir(folder.path().join(cache)).unwrap();
        command.env(name, folder.path().join(cache));
    }
    let gateway = TestGateway::start(folder, &mut command);
    let (url, home) = (gateway.url(), TempDir::new().unwrap());
    // A test of a tool waits for the installation.
    let test = ["test", "memory", "read_graph", "--url", &url];
    let mut tester = RunningProgram::start(toolyard(home.path()).args(test));
    let start = std::time::Instant::now();
    let mut states = std::collections::BTreeSet::new();
    loop {
        let status: Value = gateway.get("/api/v1/status").body.parse().unwrap();
        let now: Vec<_> = status["handlers"].as_array().unwrap().iter().map(install_state).collect();
        let npx = now.iter().filter(|state| state.contains("\"npx\" waiting=false")).count();
        assert!(npx <= 1, "two installations with one cache: {now:?}");
        assert!(start.elapsed().as_secs() < 560, "{now:?} {}", gateway.process.stderr.text());
        let is_complete = now.iter().all(|state| state == "Ready");
        states.extend(now);
        if is_complete {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let outcome = tester.wait();
    assert!(outcome.success(), "{}{}", tester.stdout.text(), tester.stderr.text());
    // No start was ended: each server has started once, and the lines of both launchers were shown.
    assert!(
        !gateway.process.stderr.text().contains("failed to connect"),
        "{}",
        gateway.process.stderr.text()
    );
    let expected = [
        r#"Installing "npx" waiting=false line=true"#,
        r#"Installing "npx" waiting=true line=false"#,
        r#"Installing "uvx" waiting=false line=true"#,
    ];
    assert!(expected.iter().all(|state| states.contains(*state)), "{states:?}");
    assert!(!states.contains("Unavailable"), "{states:?}");
}
