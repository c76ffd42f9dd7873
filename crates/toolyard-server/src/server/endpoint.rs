//! What the endpoint for clients of MCP is told.

use std::io;

use sha2::{Digest, Sha256};
use toolyard_manifest::{Listen, Process};
use toolyard_mcp::server::http::HttpOptions;
use toolyard_mcp::server::{
    Cluster, FrontendLimits, FrontendOptions, Offers, ServerInfo, SessionLimits, TaskOffer,
};
use toolyard_net::client::Client;
use toolyard_net::guard::Guard;

use crate::routes::host_of;

pub(super) fn frontend_options(process: &Process) -> FrontendOptions {
    let info = ServerInfo {
        name: "toolyard".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..ServerInfo::default()
    };
    let limits = FrontendLimits {
        queued_notices: process.limits.queued_notices,
        parked_calls: process.limits.parked_calls,
        ask_time: process.timeouts.client_answer,
        tasks: process.limits.tasks,
        task_ttl: process.timeouts.task_kept,
        task_after: process.timeouts.task_after,
        list_page: process.limits.list_page,
        heartbeat: process.timeouts.heartbeat,
        ..FrontendLimits::default()
    };
    // Whatever a server may have.
    let offers = Offers {
        tools: true,
        prompts: true,
        resources: true,
        completions: true,
        logging: true,
        tasks: TaskOffer::Any,
    };
    let cluster = process.cluster.as_ref().map(|cluster| Cluster {
        address: cluster.address.as_str().into(),
        key: Sha256::digest(cluster.key.expose()).into(),
    });
    FrontendOptions { info, offers, limits, cluster, ..FrontendOptions::default() }
}

/// What a request may name as its host, and which pages may send it. The other gateways of a cluster name the address
/// that they know.
pub(super) fn guard(process: &Process, listening: &[Listen]) -> Guard {
    let own = listening.iter().filter_map(Listen::tcp).map(|address| host_of(address.ip()));
    let in_cluster = process.cluster.iter().filter_map(|cluster| {
        let address = cluster.address.parse::<http::Uri>().ok()?;
        address.host().map(str::to_owned)
    });
    Guard {
        own: own.chain(in_cluster).collect(),
        hosts: process.allowed_hosts.clone(),
        origins: process.allowed_origins.clone(),
        exposed: listening.iter().any(Listen::is_exposed),
    }
}

/// # Errors
/// When the other gateways are reached by TLS, and the system's root certificates cannot be read.
pub(super) fn http_options(process: &Process, guard: Guard) -> io::Result<HttpOptions> {
    let gateways = match &process.cluster {
        Some(cluster) if cluster.address.starts_with("https:") => Some(Client::with_system_roots()?),
        Some(_) => Some(Client::without_roots()?),
        None => None,
    };
    Ok(HttpOptions {
        guard,
        body_bytes: process.limits.request_body_bytes,
        body_time: process.timeouts.request_body,
        sessions: SessionLimits {
            sessions: process.limits.sessions,
            idle: process.timeouts.session_idle,
            replay_bytes: process.limits.replay_bytes,
            // As many as may be worked out at a time.
            answers: process.limits.concurrent_calls,
            resume: process.timeouts.resume,
        },
        gateways,
    })
}
