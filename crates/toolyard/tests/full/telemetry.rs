//! Telemetry: the dashboard, the alerts and the documentation match the metrics of a gateway, and `promtool` accepts
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::manifest::process_document;
use toolyard_testing::peers::{command, free_port, peer, root};
use toolyard_testing::process::{ProgramResult, run, run_with};
use toolyard_testing::scripted_server::ScriptedServer;

use crate::support::gateway::TestGateway;

/// A W3C trace context and its trace id.
const TRACE_PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Returns the metrics of a gateway after successful and failed calls.
#[track_caller]
fn page() -> String {
    let server = ScriptedServer::new("server");
    let gone = json!({
        "name": "gone",
        "type": "http",
        "endpoint": {"url": format!("http://127.0.0.1:{}/", free_port())},
        "tool": {"name": "gone", "description": "Is never there", "inputSchema": {"type": "object"}},
    });
    let gateway = TestGateway::with_handlers(&[server.handler(), gone]);
    gateway.text("pid", json!({}));
    gateway.call("gone", json!({}));
    gateway.call("nobody", json!({}));
    gateway.get("/metrics").body
}

#[track_caller]
fn promtool(arguments: &[&str], file: &Path) -> ProgramResult {
    let mut command = command(peer("debian/usr/bin/promtool"), &root());
    match arguments {
        ["check", "metrics"] => run_with(command.args(arguments), std::fs::File::open(file).unwrap()),
        _ => run(command.args(arguments).arg(file)),
    }
}

/// The contract requires milliseconds, against the advice of Prometheus. There are no other warnings.
#[test]
fn promtool_accepts_the_metrics() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("page");
    std::fs::write(&file, page()).unwrap();
    let judged = promtool(&["check", "metrics"], &file);
    assert_eq!(
        judged.stderr,
        "toolyard_tool_invoke_duration_milliseconds use base unit \"seconds\" instead of \"milliseconds\"\n"
    );
}

/// Returns the expressions of the alerts.
fn alarms() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("deploy/prometheus/alerts.yaml")).unwrap();
    let mut expressions = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(first) = line.trim().strip_prefix("expr: ") else { continue };
        let mut expression = first.trim_start_matches('|').to_owned();
        while first == "|" && lines.peek().is_some_and(|line| line.starts_with("          ")) {
            expression += lines.next().unwrap();
        }
        expressions.push(expression);
    }
    assert!(expressions.len() > 4, "{expressions:?}");
    expressions
}

/// Returns the expressions of the dashboard in the form that Grafana sends to Prometheus.
fn queries() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("deploy/grafana/toolyard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let queries: Vec<_> = targets
        .map(|target| target["expr"].as_str().unwrap().replace("$__rate_interval", "5m"))
        .map(|query| query.replace("$instance", ".*").replace("$tool", ".*"))
        .collect();
    assert!(queries.len() > 10 && queries.iter().all(|query| !query.contains('$')), "{queries:?}");
    queries
}

#[test]
fn promtool_accepts_alerts_and_dashboard() {
    let judged = promtool(&["check", "rules"], &root().join("deploy/prometheus/alerts.yaml"));
    assert!(judged.stdout.contains("SUCCESS: 7 rules found"), "{judged:?}");
    let rule = |(number, query): (usize, String)| json!({"record": format!("panel:{number}"), "expr": query});
    let rules: Vec<_> = queries().into_iter().enumerate().map(rule).collect();
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("rules.json");
    let count = rules.len();
    std::fs::write(&file, json!({"groups": [{"name": "dashboard", "rules": rules}]}).to_string()).unwrap();
    let judged = promtool(&["check", "rules"], &file);
    assert!(judged.stdout.contains(&format!("SUCCESS: {count} rules found")), "{judged:?}");
}

/// Returns the labels of each time series on a page.
fn series(page: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut series: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (name, labels) = line.split_once('{').unwrap_or((line.split(' ').next().unwrap(), ""));
        let labels = labels.split("\",").filter_map(|label| label.split_once("=\"")).map(|(name, _)| name);
        series.entry(name).or_default().extend(labels.filter(|name| !name.contains('}')));
    }
    series
}

/// Returns the names in an expression with the text after each, without quoted strings.
fn label_matchers(expression: &str) -> Vec<(String, String)> {
    let outside: String = expression.split('"').step_by(2).collect::<Vec<_>>().join("\"\"");
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut label_matchers = Vec::new();
    let mut rest = &*outside;
    while let Some(start) = rest.find(is_inner) {
        let word = &rest[start..];
        let end = word.find(|c| !is_inner(c)).unwrap_or(word.len());
        rest = &word[end..];
        label_matchers.push((word[..end].to_owned(), rest.trim_start().to_owned()));
    }
    label_matchers
}

/// Labels that Prometheus adds to scraped series.
const PROMETHEUS_LABELS: [&str; 2] = ["instance", "job"];

#[test]
fn every_name_in_alerts_and_dashboard_is_emitted() {
    let page = page();
    let series = series(&page);
    let (mut metrics, mut labels) = (0, 0);
    for expression in
        alarms().into_iter().chain(queries()).filter(|expression| !expression.starts_with("up{"))
    {
        let label_matchers = label_matchers(&expression);
        let named: Vec<_> = label_matchers
            .iter()
            .filter(|(word, _)| word.starts_with("toolyard_") || word.starts_with("mcp_"))
            .collect();
        assert!(!named.is_empty(), "no metric in {expression}");
        for (metric, _) in &named {
            assert!(series.contains_key(&**metric), "nobody emits {metric}, which stands in {expression}");
            metrics += 1;
        }
        let grouped =
            expression.split(" by (").skip(1).flat_map(|rest| rest.split(')').next().unwrap().split(", "));
        let matched =
            label_matchers.iter().filter(|(_, next)| next.starts_with(['=', '!'])).map(|(word, _)| &**word);
        // A comparison of a whole expression has no labels.
        let matched = matched.filter(|word| !word.starts_with("toolyard_"));
        for label in grouped.chain(matched).filter(|label| !PROMETHEUS_LABELS.contains(label)) {
            let is_known = named.iter().any(|(metric, _)| series[&**metric].contains(label));
            assert!(is_known, "no metric in {expression} has the label {label}");
            labels += 1;
        }
    }
    assert!(metrics > 20 && labels > 20, "{metrics} metrics, {labels} labels");
}

fn call_of_a_trace(gateway: &TestGateway) {
    let params = json!({"name": "pid", "arguments": {}, "_meta": {"traceparent": TRACE_PARENT}});
    gateway.request("tools/call", params).result();
}

/// Every line is an object with time, level, target and message; lines about a call have its trace id.
#[test]
fn json_log_lines() {
    let server = ScriptedServer::new("server");
    let spec = json!({"logs": {"format": "json", "filter": "info,toolyard_server=debug"}});
    let gateway = TestGateway::with_settings(&[server.handler()], spec);
    call_of_a_trace(&gateway);
    let log = gateway.process.stderr.wait_for("the call", |text| {
        let whole = &text[..=text.rfind('\n')?];
        whole.contains("call ended").then(|| whole.to_owned())
    });
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        for member in ["timestamp", "level", "target", "message"] {
            assert!(line[member].is_string(), "{line}");
        }
    }
    let of_call = lines.iter().find(|line| line["message"] == "call ended").unwrap();
    assert_eq!(of_call["span"]["trace_id"], TRACE_ID);
    assert_eq!(of_call["tool"], "pid");
}

/// The command line takes precedence over the manifest, and levels follow edits of the manifest.
#[test]
fn levels_change_while_the_gateway_runs() {
    let server = ScriptedServer::new("server");
    let spec = |filter: &str| json!({"logs": {"format": "json", "filter": filter}, "timeouts": {"manifestCheck": "10ms", "firstList": "30s", "eraProbe": "30s"}});
    let (folder, mut command) = TestGateway::command(&[server.handler()], spec("warn"));
    let gateway = TestGateway::start(folder, command.args(["--log-format", "human"]));
    call_of_a_trace(&gateway);
    process_document(gateway.folder.path(), spec("debug"));
    let log = gateway
        .process
        .stderr
        .wait_for("the edit", |text| text.contains("manifest edit applied").then(|| text.to_owned()));
    assert!(!log.contains("call ended") && !log.contains("takes a restart"), "{log}");
    call_of_a_trace(&gateway);
    gateway.process.stderr.wait_for("a line of the call", |text| {
        let line = text.lines().find(|line| line.contains("call ended"))?;
        (line.contains(TRACE_ID) && !line.starts_with('{')).then_some(())
    });
}

/// An unreachable collector is logged once, and the gateway shuts down in time.
#[test]
fn unreachable_collector_is_logged_once() {
    let server = ScriptedServer::new("server");
    let (folder, mut command) =
        TestGateway::command(&[server.handler()], json!({"timeouts": {"export": "500ms"}}));
    let nowhere = format!("http://127.0.0.1:{}", free_port());
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", nowhere).env("OTEL_METRIC_EXPORT_INTERVAL", "20");
    let mut gateway = TestGateway::start(folder, &mut command);
    for _ in 0..10 {
        call_of_a_trace(&gateway);
    }
    gateway.process.stderr.wait_for("the loss", |text| text.contains("dropped telemetry").then_some(()));
    gateway.process.signal(Signal::TERM);
    assert!(gateway.process.wait().success());
    let log = gateway.process.stderr.text();
    assert_eq!(log.matches("dropped telemetry").count(), 1, "{log}");
    assert!(!log.contains("opentelemetry"), "{log}");
}

#[test]
fn invalid_telemetry_environment_is_refused() {
    let (_folder, mut command) = TestGateway::command(&[ScriptedServer::new("server").handler()], json!({}));
    let ended =
        run(command.args(["--listen", "127.0.0.1:0"]).env("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"));
    assert_eq!(
        ended.stderr.lines().last(),
        Some(
            "error: cannot start telemetry: OTEL_EXPORTER_OTLP_ENDPOINT is not a URL that begins with http:// or https://"
        )
    );
}
