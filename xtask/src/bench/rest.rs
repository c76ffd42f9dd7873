//! What the bench asks the gateway itself, beside calls.

use std::net::SocketAddr;

use anyhow::{Context, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// Makes a key that opens what the bench needs. There must be none yet: only then may everybody make one.
pub(super) async fn make_key(gateway: SocketAddr) -> anyhow::Result<String> {
    let wanted = json!({"name": "bench", "scopes": ["tools:echo/*", "metrics"]});
    let request = Request::builder().method(Method::POST).uri("/api/v1/keys");
    let made = exchange(gateway, request, wanted.to_string()).await.context("make a key")?;
    let made: Value = serde_json::from_str(&made)?;
    Ok(made["key"].as_str().context("what was made has no key")?.to_owned())
}

/// How much a gateway did since it started, and how much of what it should have kept of that is lost.
pub(super) struct Kept {
    pub calls: f64,
    pub lost_records: f64,
    pub lost_spans: f64,
}

/// Reads the metrics of a gateway.
pub(super) async fn kept(gateway: SocketAddr, key: Option<&str>) -> anyhow::Result<Kept> {
    let mut request = Request::builder().uri("/metrics");
    if let Some(key) = key {
        request = request.header(AUTHORIZATION, format!("Bearer {key}"));
    }
    let page = exchange(gateway, request, String::new()).await.context("read the metrics")?;
    Ok(Kept {
        calls: sum(&page, "toolyard_tool_invocations_total", ""),
        lost_records: sum(&page, "toolyard_audit_lost_total", ""),
        lost_spans: sum(&page, "toolyard_telemetry_lost_total", "traces"),
    })
}

/// The values of all series of a metric that have a word among their labels.
fn sum(page: &str, metric: &str, word: &str) -> f64 {
    let of_metric = page.lines().filter_map(|line| line.strip_prefix(metric));
    let of_metric = of_metric.filter(|rest| rest.starts_with(['{', ' ']) && rest.contains(word));
    of_metric.filter_map(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

async fn exchange(
    gateway: SocketAddr,
    request: hyper::http::request::Builder,
    body: String,
) -> anyhow::Result<String> {
    let stream = TcpStream::connect(gateway).await?;
    let (mut sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(driver);
    let request = request.header(HOST, gateway.to_string()).header(CONTENT_TYPE, "application/json");
    let (head, body) = sender.send_request(request.body(Full::new(Bytes::from(body)))?).await?.into_parts();
    let body = String::from_utf8(body.collect().await?.to_bytes().into())?;
    ensure!(head.status.is_success(), "{}: {body}", head.status);
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_of_a_metric_are_summed_up() {
        let page = "# TYPE lost counter\nlost{signal=\"traces\"} 3\nlost{signal=\"metrics\"} 4\nlost_all 9\nfree 1.5\n";
        let cases = [("lost", "", 7.0), ("lost", "traces", 3.0), ("free", "", 1.5), ("none", "", 0.0)];
        for (metric, word, expected) in cases {
            assert_eq!(sum(page, metric, word), expected, "{metric} {word}");
        }
    }
}
