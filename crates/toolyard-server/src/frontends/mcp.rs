//! The MCP endpoint. `toolyard stdio` serves the same frontend on standard input and output.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use toolyard_agent::{guides, instructions, management, memory, search};
use toolyard_core::registry::EntryKind;
use toolyard_core::{Gateway, Registry};
use toolyard_manifest::{BuiltinSettings, HandlerConfig, ProcessSettings, ToolDisclosure};
use toolyard_mcp::server::http::{HttpOptions, McpEndpoint};
use toolyard_mcp::server::{
    ClusterMember, FrontendLimits, FrontendOptions, InstructionSource, McpFrontend, OfferedFeatures,
    ServerInfo, SessionLimits, TaskOffer,
};
use toolyard_net::client::HttpClient;
use toolyard_net::guard::BrowserGuard;
use toolyard_net::proxy::ProxySettings;

use super::FrontendDeps;
use crate::context::GatewayContext;
use crate::start::StartError;

/// Creates the frontend.
pub(crate) fn start(context: &GatewayContext, gateway: &Arc<Gateway>) -> Arc<McpFrontend> {
    let options = FrontendOptions {
        budget: context.budget.clone(),
        instructions: Some(instructions(gateway.clone(), context.process.builtins.clone())),
        ..frontend_options(&context.process)
    };
    Arc::new(McpFrontend::new(gateway.clone(), options, context.stopping.subscribe()))
}

/// Returns the source of the instructions: they name the built-in tools that a caller sees. Before the first list, these
/// are the tools that were enabled at the start.
fn instructions(gateway: Arc<Gateway>, builtins: Option<BuiltinSettings>) -> InstructionSource {
    InstructionSource(Arc::new(move |caller| {
        let registry = gateway.registry();
        if registry.is_settled() {
            let view = Registry::view_for(registry, caller);
            if view.is_for_scripts() {
                // The other tools of the gateway are not on the list of the model.
                let listed = view.advertised(EntryKind::Tools).entries();
                let is_listed = |name: &str| listed.iter().any(|entry| &*entry.name == name);
                return instructions::of_tools(is_listed);
            }
            let is_builtin = |name: &str| view.tool(name).is_ok_and(|entry| entry.handler.is_builtin);
            return instructions::of_tools(is_builtin);
        }
        let builtins = builtins.as_ref()?;
        let search = builtins.search.as_ref();
        let lists_all = search.is_none_or(|search| search.disclosure != ToolDisclosure::Code);
        let enabled = [
            (lists_all && search.is_some(), &search::NAMES[..]),
            (!lists_all, &[search::SEARCH]),
            (builtins.code.is_some(), &toolyard_code::tools::NAMES[..]),
            (lists_all && builtins.mcp.is_some(), &management::NAMES[..]),
            (lists_all && builtins.memory.is_some(), &memory::tools::NAMES[..]),
            (lists_all && builtins.guides, &guides::NAMES[..]),
        ];
        let scope = caller.grant.as_ref().map(|grant| &grant.scope);
        instructions::of_tools(|name| {
            enabled.iter().any(|(is_on, names)| *is_on && names.contains(&name))
                && scope.is_none_or(|scope| scope.allows_name(HandlerConfig::BUILTINS, name))
        })
    }))
}

/// Returns the endpoint of streamable HTTP.
///
/// # Errors
/// If the cluster uses TLS and the system's root certificates cannot be read.
pub(crate) fn endpoint(context: &GatewayContext, deps: &FrontendDeps<'_>) -> Result<McpEndpoint, StartError> {
    let options = http_options(&context.process, deps.guard.clone())?;
    Ok(McpEndpoint::new(deps.mcp.clone(), options))
}

fn frontend_options(process: &ProcessSettings) -> FrontendOptions {
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

fn http_options(process: &ProcessSettings, guard: BrowserGuard) -> Result<HttpOptions, StartError> {
    let client = match &process.cluster {
        Some(cluster) if cluster.address.starts_with("https:") => Some(HttpClient::with_system_roots()),
        Some(_) => Some(HttpClient::without_roots()),
        None => None,
    };
    // The gateways of a cluster reach each other directly.
    let gateways = client.transpose().map_err(StartError::Tls)?;
    let gateways = gateways.map(|client| client.with_proxies(ProxySettings::none()));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Crates below the manifest have defaults of their own, for programs without one.
    #[test]
    fn defaults_of_the_frontend_are_those_of_the_manifest() {
        let process = ProcessSettings::default();
        assert_eq!(frontend_options(&process).limits, FrontendLimits::default());
        let guard = BrowserGuard::default();
        let options = http_options(&process, guard).unwrap();
        assert_eq!(options.sessions, SessionLimits::default());
    }
}
