//! Requests of the bench to the REST API and the metrics of the gateway.

use std::net::SocketAddr;

use anyhow::Context;
use hyper::header::AUTHORIZATION;
use hyper::{Method, Request};
use serde_json::{Value, json};
use xtask_client::exchange;

/// Scopes of the key that the bench creates first: it also creates the others.
pub(super) const FIRST_SCOPES: [&str; 3] = ["tools:echo/*", "metrics", "admin"];

/// Creates a key. Works without a key only while there is none.
pub(super) async fn create_key(
    gateway: SocketAddr,
    key: Option<&str>,
    scopes: &[&str],
) -> anyhow::Result<String> {
    let body = json!({"name": "bench", "scopes": scopes});
    let mut request = Request::builder().method(Method::POST).uri("/api/v1/keys");
    if let Some(key) = key {
        request = request.header(AUTHORIZATION, format!("Bearer {key}"));
    }
    let created = exchange(gateway, request, body.to_string()).await.context("create a key")?;
    let created: Value = serde_json::from_str(&created)?;
    Ok(created["key"].as_str().context("the response has no key")?.to_owned())
}

/// Counters of a gateway since its start.
pub(super) struct GatewayCounters {
    pub calls: f64,
    pub lost_records: f64,
    pub lost_spans: f64,
}

/// Reads the metrics of a gateway.
pub(super) async fn read_counters(gateway: SocketAddr, key: Option<&str>) -> anyhow::Result<GatewayCounters> {
    let mut request = Request::builder().uri("/metrics");
    if let Some(key) = key {
        request = request.header(AUTHORIZATION, format!("Bearer {key}"));
    }
    let page = exchange(gateway, request, String::new()).await.context("read the metrics")?;
    Ok(GatewayCounters {
        calls: sum(&page, "toolyard_tool_invocations_total", ""),
        lost_records: sum(&page, "toolyard_audit_lost_total", ""),
        lost_spans: sum(&page, "toolyard_telemetry_lost_total", "traces"),
    })
}

/// The sum of all series of a metric that have `word` among their labels.
fn sum(page: &str, metric: &str, word: &str) -> f64 {
    let of_metric = page.lines().filter_map(|line| line.strip_prefix(metric));
    let of_metric = of_metric.filter(|rest| rest.starts_with(['{', ' ']) && rest.contains(word));
    of_metric.filter_map(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_of_a_metric_are_summed() {
        let page = "# TYPE lost counter\nlost{signal=\"traces\"} 3\nlost{signal=\"metrics\"} 4\nlost_all 9\nfree 1.5\n";
        let cases = [("lost", "", 7.0), ("lost", "traces", 3.0), ("free", "", 1.5), ("none", "", 0.0)];
        for (metric, word, expected) in cases {
            assert_eq!(sum(page, metric, word), expected, "{metric} {word}");
        }
    }
}
