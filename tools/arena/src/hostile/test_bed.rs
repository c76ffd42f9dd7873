//! The gateway under attack, with the upstream of the good client and that of the hostile clients.

use std::ffi::OsStr;
use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use hyper::Request;
use hyper::header::AUTHORIZATION;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;
use xtask_client::{McpEra, exchange};
use xtask_support::builds::log_tail;
use xtask_support::process::{LaunchedProcess, START_LIMIT};

use super::{AttackStrength, HostileAttack};
use crate::fault_test_bed;
use crate::load::{LoadClient, await_answer_to};
use crate::peer::PeerTransport;
use crate::status::await_ready;

/// The tool of the good client, and the name of its handler.
pub(super) const TOOL: &str = "echo";

/// The handler with the tools that hostile clients call.
const HOSTILE: &str = "hostile";

/// Maximum time until a gateway has ended. It waits 10 s for running calls.
const END_LIMIT: Duration = Duration::from_secs(30);

/// A gateway and two upstreams.
pub(super) struct AttackTestBed {
    pub gateway: SocketAddr,
    /// API key of the good client.
    pub good_key: Arc<str>,
    /// API key of the hostile clients.
    pub hostile_key: Arc<str>,
    process: LaunchedProcess,
    _servers: [LaunchedProcess; 2],
    _folder: TempDir,
}

impl AttackTestBed {
    /// Starts everything, and waits until the tools of both upstreams are available.
    pub(super) async fn start(
        attack: HostileAttack,
        strength: AttackStrength,
        binary: &Path,
    ) -> anyhow::Result<AttackTestBed> {
        let folder = TempDir::new()?;
        let (good, good_server) = fault_test_bed::launch_server(&fault_test_bed::peer_args(
            PeerTransport::Http,
            McpEra::Modern,
            TOOL,
        ))?;
        let (hostile, hostile_server) = fault_test_bed::launch_server(&["hostile-server".to_owned()])?;
        let handlers =
            [fault_test_bed::http_handler(TOOL, good), fault_test_bed::http_handler(HOSTILE, hostile)];
        let (file, log) = (folder.path().join("registry.yaml"), folder.path().join("gateway.log"));
        std::fs::write(&file, fault_test_bed::manifest(&attack.spec(strength), &handlers))?;
        let args = ["serve", "--listen", "127.0.0.1:0", "-f"].map(OsStr::new);
        let args = [&args[..], &[file.as_os_str()]].concat();
        let mut process = LaunchedProcess::launch(binary, &args, File::create(&log)?.into())?;
        let gateway =
            process.printed_address().with_context(|| format!("the gateway: {}", log_tail(&log)))?;
        // The first key can be created without a key.
        let operator = create_key(gateway, None, &["admin", "rest", "tools:*"]).await?;
        let good_key = create_key(gateway, Some(&operator), &["tools:*"]).await?;
        let hostile_key = create_key(gateway, Some(&operator), &["tools:*"]).await?;
        let caller = LoadClient::new(gateway, McpEra::Modern, TOOL).with_key(&good_key);
        await_answer_to(caller, START_LIMIT).await?;
        timeout(START_LIMIT, await_ready(gateway, HOSTILE, Some(&operator))).await??;
        let _servers = [good_server, hostile_server];
        Ok(AttackTestBed { gateway, good_key, hostile_key, process, _servers, _folder: folder })
    }

    /// Process ID of the gateway.
    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Terminates the gateway; `true` if it ended successfully and in time.
    pub(super) fn terminate(mut self) -> bool {
        self.process.terminate_with(Signal::TERM, END_LIMIT).is_some_and(|status| status.success())
    }
}

async fn create_key(
    gateway: SocketAddr,
    operator: Option<&str>,
    scopes: &[&str],
) -> anyhow::Result<Arc<str>> {
    let mut request = Request::post("/api/v1/keys");
    if let Some(key) = operator {
        request = request.header(AUTHORIZATION, format!("Bearer {key}"));
    }
    let body = json!({"name": "arena", "scopes": scopes}).to_string();
    let created: Value =
        serde_json::from_str(&exchange(gateway, request, body).await.context("create a key")?)?;
    Ok(created["key"].as_str().context("the response has no key")?.into())
}
