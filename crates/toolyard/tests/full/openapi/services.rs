//! Third-party services, called by tools from their own descriptions.

use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::peers::{command, free_port, peer};
use toolyard_testing::process::RunningProgram;

use super::{document, handler};
use crate::support::gateway::TestGateway;

/// Starts a service on a free port and waits until it prints `ready` on standard error.
#[track_caller]
fn start(
    home: &Path,
    program: &Path,
    args: impl Fn(u16) -> Vec<String>,
    ready: &str,
) -> (RunningProgram, u16) {
    // Another process may take the free port before the service listens.
    let started = (0..3).find_map(|_| {
        let port = free_port();
        let process = RunningProgram::start(command(program, home).current_dir(home).args(args(port)));
        let serves = process.stderr.wait_for("a service", |text| match text {
            _ if text.contains(ready) => Some(true),
            _ if text.contains("address already in use") => Some(false),
            _ => None,
        });
        serves.then_some((process, port))
    });
    started.expect("a port is free")
}

/// Starts a gateway with this service only.
#[track_caller]
fn gateway(description: &Path, port: u16, base: &str) -> TestGateway {
    let base = format!("http://127.0.0.1:{port}{base}");
    TestGateway::with_handlers(&[handler(&format!("file:{}", description.display()), &base)])
}

/// Calls a tool, which must succeed, and returns its result.
#[track_caller]
fn call_ok(gateway: &TestGateway, tool: &str, arguments: Value) -> Value {
    let result = gateway.call(tool, arguments).result();
    assert_ne!(result["isError"], json!(true), "{tool}: {result}");
    serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
}

#[test]
fn etcd_stores_a_value() {
    let home = TempDir::new().unwrap();
    let name = "etcd-io-Documentation-dev-guide-apispec-swagger-rpc.swagger.json";
    let Some(description) = document(name, home.path()) else { return };
    let args = |port| {
        let client = format!("http://127.0.0.1:{port}");
        // The peer port is chosen by etcd and is not used.
        let args = ["--data-dir", "data", "--logger", "zap", "--listen-peer-urls", "http://127.0.0.1:0"];
        let listens = ["--listen-client-urls", &client, "--advertise-client-urls", &client];
        args.into_iter().chain(listens).map(str::to_owned).collect()
    };
    let etcd = peer("debian/usr/bin/etcd");
    let (_etcd, port) = start(home.path(), &etcd, args, "serving client traffic insecurely");
    let gateway = gateway(&description, port, "");

    let (key, value) = (BASE64_STANDARD.encode("färbe"), BASE64_STANDARD.encode([0, 255, 10]));
    call_ok(&gateway, "KV_Put", json!({"key": key, "value": value}));
    let pairs = call_ok(&gateway, "KV_Range", json!({"key": key}));
    assert_eq!(pairs["count"], "1");
    assert_eq!(pairs["kvs"][0]["key"], key);
    assert_eq!(pairs["kvs"][0]["value"], value);
    let gone = call_ok(&gateway, "KV_DeleteRange", json!({"key": key}));
    assert_eq!(gone["deleted"], "1");
    assert_eq!(call_ok(&gateway, "KV_Range", json!({"key": key}))["kvs"], Value::Null);
}

/// Unpacks the API description, which is in Debian's sources of the program.
#[track_caller]
fn description_of_alertmanager(folder: &Path) -> std::path::PathBuf {
    let go = "debian/usr/share/gocode/src/github.com/prometheus/alertmanager/api/v2/restapi/embedded_spec.go";
    let go = std::fs::read_to_string(peer(go)).unwrap();
    let (_, rest) = go.split_once("SwaggerJSON = json.RawMessage([]byte(`").unwrap();
    let (description, _) = rest.split_once("`))").unwrap();
    let file = folder.join("alertmanager.json");
    std::fs::write(&file, description).unwrap();
    file
}

#[test]
fn alertmanager_creates_a_silence() {
    let home = TempDir::new().unwrap();
    let configuration = "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n";
    std::fs::write(home.path().join("alertmanager.yml"), configuration).unwrap();
    let args = |port| {
        let listens = format!("--web.listen-address=127.0.0.1:{port}");
        let args = ["--config.file=alertmanager.yml", "--storage.path=data", "--cluster.listen-address="];
        args.into_iter().chain([&*listens]).map(str::to_owned).collect()
    };
    let program = Path::new("/usr/bin/prometheus-alertmanager");
    let (_alertmanager, port) = start(home.path(), program, args, "Listening on");
    let gateway = gateway(&description_of_alertmanager(home.path()), port, "/api/v2");
    assert_eq!(call_ok(&gateway, "getSilences", json!({})), json!([]));

    let silence = json!({
        "matchers": [
            {"name": "alertname", "value": "a b&c", "isRegex": false},
            {"name": "place", "value": "là", "isRegex": false},
        ],
        "startsAt": "2026-01-02T03:04:05Z",
        "endsAt": "2099-01-02T03:04:05Z",
        "createdBy": "Ann",
        "comment": "It is known.",
    });
    let made = call_ok(&gateway, "postSilences", silence);
    let id = &made["silenceID"];
    let matching = json!({"filter": ["alertname=\"a b&c\"", "place=\"là\""]});
    let silences = call_ok(&gateway, "getSilences", matching);
    assert_eq!((&silences[0]["id"], &silences[0]["comment"]), (id, &json!("It is known.")));
    assert_eq!(call_ok(&gateway, "getSilences", json!({"filter": ["alertname=\"other\""]})), json!([]));
    assert_eq!(call_ok(&gateway, "getSilence", json!({"silenceID": id}))["status"]["state"], "active");
    let deleted = gateway.call("deleteSilence", json!({"silenceID": id})).result();
    assert_ne!(deleted["isError"], json!(true), "{deleted}");
    assert_eq!(call_ok(&gateway, "getSilence", json!({"silenceID": id}))["status"]["state"], "expired");
}
