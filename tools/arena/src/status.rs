//! The status of a handler, as the gateway reports it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use hyper::Request;
use hyper::header::AUTHORIZATION;
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use xtask_client::exchange;
use xtask_support::process::pid_of;

use super::fault_test_bed::FAULTY;
use super::peer::record_occurrence;

/// Time between two kills of the same server.
const KILL_INTERVAL: Duration = Duration::from_millis(500);

/// Time between two polls of the status.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Waits until this handler is ready. The key needs access to the status.
pub(super) async fn await_ready(gateway: SocketAddr, handler: &str, key: Option<&str>) -> anyhow::Result<()> {
    while status_of(gateway, handler, key).await?["phase"] != "Ready" {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

/// Kills the process of the handler repeatedly, and records each time.
pub(super) async fn kill_repeatedly(gateway: SocketAddr, switch: PathBuf) -> anyhow::Result<()> {
    loop {
        let handler = status_of(gateway, FAULTY, None).await?;
        let number = handler["processes"][0]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        // The handler may have no process at the moment.
        if number.and_then(pid_of).is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok()) {
            record_occurrence(&switch)?;
        }
        tokio::time::sleep(KILL_INTERVAL).await;
    }
}

async fn status_of(gateway: SocketAddr, handler: &str, key: Option<&str>) -> anyhow::Result<Value> {
    let mut request = Request::get("/api/v1/status");
    if let Some(key) = key {
        request = request.header(AUTHORIZATION, format!("Bearer {key}"));
    }
    let status = exchange(gateway, request, "").await?;
    let status: Value = serde_json::from_str(&status)?;
    let handlers = status["handlers"].as_array().context("a status without handlers")?;
    let entry = handlers.iter().find(|entry| entry["name"] == handler);
    entry.cloned().with_context(|| format!("no handler {handler} in the status"))
}
