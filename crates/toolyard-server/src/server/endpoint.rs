//! Options of the MCP endpoint.

use sha2::{Digest, Sha256};
use toolyard_manifest::{ListenAddress, ProcessSettings};
use toolyard_mcp::server::http::HttpOptions;
use toolyard_mcp::server::{
    ClusterMember, FrontendLimits, FrontendOptions, OfferedFeatures, ServerInfo, SessionLimits, TaskOffer,
};
use toolyard_net::client::HttpClient;
use toolyard_net::guard::BrowserGuard;

use super::StartError;
use crate::routes::host_of;

pub(super) fn frontend_options(process: &ProcessSettings) -> FrontendOptions {
    let info = ServerInfo {
        name: "toolyard".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..ServerInfo::default()
    };
    let limits = FrontendLimits {
        max_queued_notices: process.limits.queued_notices,
        suspended_calls: process.limits.parked_calls,
        ask_timeout: process.timeouts.client_answer,
        tasks: process.limits.tasks,
        task_ttl: process.timeouts.task_kept,
        task_after: process.timeouts.task_after,
        list_page_size: process.limits.list_page,
        heartbeat: process.timeouts.heartbeat,
        max_response_bytes: process.limits.response_bytes,
        ..FrontendLimits::default()
    };
    // Everything that an upstream may offer.
    let offers = OfferedFeatures {
        tools: true,
        prompts: true,
        resources: true,
        completions: true,
        logging: true,
        tasks: TaskOffer::Any,
    };
    let cluster = process.cluster.as_ref().map(|cluster| ClusterMember {
        address: cluster.address.as_str().into(),
        key: Sha256::digest(cluster.key.expose()).into(),
    });
    FrontendOptions { info, offers, limits, cluster, ..FrontendOptions::default() }
}

/// Returns the allowed hosts and origins of requests. Other gateways of a cluster use the configured cluster address as
/// host.
pub(super) fn guard(process: &ProcessSettings, listening: &[ListenAddress]) -> BrowserGuard {
    let own = listening.iter().filter_map(ListenAddress::tcp).map(|address| host_of(address.ip()));
    let in_cluster = process.cluster.iter().filter_map(|cluster| {
        let address = cluster.address.parse::<http::Uri>().ok()?;
        address.host().map(str::to_owned)
    });
    BrowserGuard {
        own_hosts: own.chain(in_cluster).collect(),
        hosts: process.allowed_hosts.clone(),
        origins: process.allowed_origins.clone(),
        exposed: listening.iter().any(ListenAddress::is_exposed),
    }
}

/// # Errors
/// If the cluster uses TLS and the system's root certificates cannot be read.
pub(super) fn http_options(
    process: &ProcessSettings,
    guard: BrowserGuard,
) -> Result<HttpOptions, StartError> {
    let client = match &process.cluster {
        Some(cluster) if cluster.address.starts_with("https:") => Some(HttpClient::with_system_roots()),
        Some(_) => Some(HttpClient::without_roots()),
        None => None,
    };
    let gateways = client.transpose().map_err(StartError::Tls)?;
    Ok(HttpOptions {
        guard,
        max_body_bytes: process.limits.request_body_bytes,
        body_timeout: process.timeouts.request_body,
        sessions: SessionLimits {
            max_sessions: process.limits.sessions,
            max_per_owner: process.limits.sessions_per_owner.unwrap_or(process.limits.sessions.div_ceil(4)),
            idle_timeout: process.timeouts.session_idle,
            max_replay_bytes: process.limits.replay_bytes,
            // At most this many run at a time.
            max_answers: process.limits.concurrent_calls,
            resume_timeout: process.timeouts.resume,
        },
        gateway_client: gateways,
    })
}
