//! What the gateway tells those who run it, and what is made of that: the dashboard, the alarms, and the documentation, held
//! against the metrics of a gateway and judged by Prometheus' own `promtool`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::gateway::{Gateway, process_document};
use crate::support::peers::{command, free_port, peer, root};
use crate::support::process::{Ended, run, run_with};
use crate::support::scripted::Scripted;

/// A context of W3C, and its trace.
const CONTEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// The metrics of a gateway on which calls have ended well and badly.
#[track_caller]
fn page() -> String {
    let server = Scripted::new("server");
    let gone = json!({
        "name": "gone",
        "type": "http",
        "endpoint": {"url": format!("http://127.0.0.1:{}/", free_port())},
        "tool": {"name": "gone", "description": "Is never there", "inputSchema": {"type": "object"}},
    });
    let gateway = Gateway::of(&[server.handler(), gone]);
    gateway.text("pid", json!({}));
    gateway.call("gone", json!({}));
    gateway.call("nobody", json!({}));
    gateway.get("/metrics").body
}

#[track_caller]
fn promtool(arguments: &[&str], file: &Path) -> Ended {
    let mut command = command(peer("debian/usr/bin/promtool"), &root());
    match arguments {
        ["check", "metrics"] => run_with(command.args(arguments), std::fs::File::open(file).unwrap()),
        _ => run(command.args(arguments).arg(file)),
    }
}

/// The contract measures in milliseconds, which Prometheus advises against. There is nothing else that it does not like.
#[test]
fn promtool_takes_the_metrics() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("page");
    std::fs::write(&file, page()).unwrap();
    let judged = promtool(&["check", "metrics"], &file);
    assert_eq!(
        judged.stderr,
        "toolyard_tool_invoke_duration_milliseconds use base unit \"seconds\" instead of \"milliseconds\"\n"
    );
}

/// The expressions of the alarms.
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

/// The expressions of the dashboard, as Prometheus gets them from Grafana.
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
fn promtool_takes_the_alarms_and_the_dashboard() {
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

/// The labels of each time series on a page.
fn series(page: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut series: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (name, labels) = line.split_once('{').unwrap_or((line.split(' ').next().unwrap(), ""));
        let labels = labels.split("\",").filter_map(|label| label.split_once("=\"")).map(|(name, _)| name);
        series.entry(name).or_default().extend(labels.filter(|name| !name.contains('}')));
    }
    series
}

/// The names in an expression, each with what comes behind it. What stands in quotes is none.
fn words(expression: &str) -> Vec<(String, String)> {
    let outside: String = expression.split('"').step_by(2).collect::<Vec<_>>().join("\"\"");
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut words = Vec::new();
    let mut rest = &*outside;
    while let Some(start) = rest.find(is_inner) {
        let word = &rest[start..];
        let end = word.find(|c| !is_inner(c)).unwrap_or(word.len());
        rest = &word[end..];
        words.push((word[..end].to_owned(), rest.trim_start().to_owned()));
    }
    words
}

/// What Prometheus adds to the labels of what it reads.
const ADDED: [&str; 2] = ["instance", "job"];

#[test]
fn every_name_in_alarms_and_dashboard_is_emitted() {
    let page = page();
    let series = series(&page);
    let (mut metrics, mut labels) = (0, 0);
    for expression in
        alarms().into_iter().chain(queries()).filter(|expression| !expression.starts_with("up{"))
    {
        let words = words(&expression);
        let named: Vec<_> = words
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
        let matched = words.iter().filter(|(_, next)| next.starts_with(['=', '!'])).map(|(word, _)| &**word);
        // A comparison of a whole is none of a label.
        let matched = matched.filter(|word| !word.starts_with("toolyard_"));
        for label in grouped.chain(matched).filter(|label| !ADDED.contains(label)) {
            let is_known = named.iter().any(|(metric, _)| series[&**metric].contains(label));
            assert!(is_known, "no metric in {expression} has the label {label}");
            labels += 1;
        }
    }
    assert!(metrics > 20 && labels > 20, "{metrics} metrics, {labels} labels");
}

fn call_of_a_trace(gateway: &Gateway) {
    let params = json!({"name": "pid", "arguments": {}, "_meta": {"traceparent": CONTEXT}});
    gateway.ask("tools/call", params).result();
}

/// Every line is an object that says when, how urgent, from where and what; and of a call, which trace it belongs to.
#[test]
fn a_log_for_programs() {
    let server = Scripted::new("server");
    let spec = json!({"logs": {"format": "json", "filter": "info,toolyard_server=debug"}});
    let gateway = Gateway::with(&[server.handler()], spec);
    call_of_a_trace(&gateway);
    let log = gateway.process.stderr.wait_for("the call", |text| {
        let whole = &text[..=text.rfind('\n')?];
        whole.contains("a call is over").then(|| whole.to_owned())
    });
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        for member in ["timestamp", "level", "target", "message"] {
            assert!(line[member].is_string(), "{line}");
        }
    }
    let of_call = lines.iter().find(|line| line["message"] == "a call is over").unwrap();
    assert_eq!(of_call["span"]["trace_id"], TRACE);
    assert_eq!(of_call["tool"], "pid");
}

/// The command line counts before the manifest, and the levels are those of the manifest as it is now.
#[test]
fn levels_change_while_the_gateway_runs() {
    let server = Scripted::new("server");
    let spec = |filter: &str| json!({"logs": {"format": "json", "filter": filter}, "timeouts": {"manifestCheck": "10ms", "firstList": "30s", "eraProbe": "30s"}});
    let (folder, mut command) = Gateway::command(&[server.handler()], spec("warn"));
    let gateway = Gateway::start(folder, command.args(["--log-format", "human"]));
    call_of_a_trace(&gateway);
    process_document(gateway.folder.path(), spec("debug"));
    let log = gateway
        .process
        .stderr
        .wait_for("the edit", |text| text.contains("an edit is applied").then(|| text.to_owned()));
    assert!(!log.contains("a call is over") && !log.contains("takes a restart"), "{log}");
    call_of_a_trace(&gateway);
    gateway.process.stderr.wait_for("a line of the call", |text| {
        let line = text.lines().find(|line| line.contains("a call is over"))?;
        (line.contains(TRACE) && !line.starts_with('{')).then_some(())
    });
}

/// A collector that the environment names and that is not there: the log says so once, and the end comes in time.
#[test]
fn a_collector_that_is_not_there() {
    let server = Scripted::new("server");
    let (folder, mut command) =
        Gateway::command(&[server.handler()], json!({"timeouts": {"export": "500ms"}}));
    let nowhere = format!("http://127.0.0.1:{}", free_port());
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", nowhere).env("OTEL_METRIC_EXPORT_INTERVAL", "20");
    let mut gateway = Gateway::start(folder, &mut command);
    for _ in 0..10 {
        call_of_a_trace(&gateway);
    }
    gateway.process.stderr.wait_for("the loss", |text| text.contains("telemetry is lost").then_some(()));
    gateway.process.signal(Signal::TERM);
    assert!(gateway.process.wait().success());
    let log = gateway.process.stderr.text();
    assert_eq!(log.matches("telemetry is lost").count(), 1, "{log}");
    assert!(!log.contains("opentelemetry"), "{log}");
}

#[test]
fn an_environment_that_makes_no_sense() {
    let (_folder, mut command) = Gateway::command(&[Scripted::new("server").handler()], json!({}));
    let ended =
        run(command.args(["--listen", "127.0.0.1:0"]).env("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"));
    assert_eq!(
        ended.stderr.lines().last(),
        Some(
            "error: cannot start telemetry: OTEL_EXPORTER_OTLP_ENDPOINT is not a URL that begins with http:// or https://"
        )
    );
}
