//! Builds handlers of the type `mcp`.

use std::sync::Arc;

use toolyard_core::{Backend, SecretRedactor};
use toolyard_manifest::{
    self as manifest, ConnectionSharing, HandlerConfig, McpEra, McpHandler, McpHttp, McpHttpStyle,
    McpToolFilter, McpTransport, ProcessSettings,
};
use toolyard_mcp::client::{
    self, ClientOptions, DedicatedOptions, EraPreference, HttpEndpoint, HttpStyle, LivenessProbe, McpBackend,
    ServerEndpoint, SharingMode, UpstreamRetry,
};
use toolyard_process::ProgramSpec;

use super::{HandlerBuilder, auth, headers, retry};

impl HandlerBuilder {
    pub(super) fn mcp(
        &self,
        handler: &HandlerConfig,
        mcp: &McpHandler,
        secrets: &SecretRedactor,
    ) -> Arc<dyn Backend> {
        let options = self.options(handler, mcp, secrets);
        let endpoint = self.endpoint(&mcp.transport, secrets);
        Arc::new(McpBackend::start(handler.name.as_str(), endpoint, options))
    }

    fn endpoint(&self, transport: &McpTransport, secrets: &SecretRedactor) -> ServerEndpoint {
        match transport {
            McpTransport::Http(http) => ServerEndpoint::Http(self.http_endpoint(http, secrets)),
            McpTransport::Stdio { command, args, work_dir, env } => {
                let program = ProgramSpec {
                    command: command.into(),
                    args: args.iter().map(Into::into).collect(),
                    work_dir: work_dir.clone(),
                    env: env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
                    memory_bytes: self.process.limits.process_memory_bytes.map(|bytes| bytes as u64),
                    ..ProgramSpec::default()
                };
                ServerEndpoint::Stdio { program, processes: self.processes.clone() }
            }
        }
    }

    fn http_endpoint(&self, http: &McpHttp, secrets: &SecretRedactor) -> HttpEndpoint {
        let style = match http.style {
            McpHttpStyle::Streamable => HttpStyle::Streamable,
            McpHttpStyle::Sse => HttpStyle::Sse,
        };
        let endpoint = HttpEndpoint::new(http.endpoint.uri().clone(), self.client.clone());
        let endpoint = endpoint.with_style(style).with_headers(headers(&http.headers));
        match &http.auth {
            Some(auth) => endpoint.with_auth(auth::auth(auth, &self.process, secrets)),
            None => endpoint,
        }
    }

    fn options(&self, handler: &HandlerConfig, mcp: &McpHandler, secrets: &SecretRedactor) -> ClientOptions {
        let ProcessSettings { limits, timeouts, .. } = &self.process;
        let McpToolFilter { allow, block } = mcp.filter.clone();
        let retry = retry(&mcp.retry);
        let mode = match mcp.lane {
            None => SharingMode::Automatic,
            Some(ConnectionSharing::Shared) => SharingMode::Shared,
            Some(ConnectionSharing::Client) => SharingMode::Client,
        };
        let era = match mcp.era {
            None => EraPreference::Automatic,
            Some(McpEra::Legacy) => EraPreference::Legacy,
            Some(McpEra::Modern) => EraPreference::Modern,
        };
        // Some servers answer no probe while they run a tool, which is no reason to restart them.
        let probe = |probe: manifest::ProbeSettings| LivenessProbe {
            interval: probe.interval.max(handler.timeout),
            timeout: probe.timeout,
        };
        ClientOptions {
            idle_timeout: timeouts.process_idle,
            era,
            filter: client::UpstreamToolFilter { allow, block },
            // A single attempt has the whole time of the call.
            retry: UpstreamRetry { retry, attempt_timeout: (retry.attempts > 1).then_some(handler.timeout) },
            dedicated: DedicatedOptions {
                sharing: mode,
                limit: limits.lanes_per_handler,
                idle_timeout: timeouts.lane_idle,
                max_list_bytes: limits.lane_list_bytes,
            },
            probe: handler.probe.map(probe),
            ..self.client_options(secrets)
        }
    }

    /// Returns the options that all servers share.
    pub(super) fn client_options(&self, secrets: &SecretRedactor) -> ClientOptions {
        let ProcessSettings { limits, timeouts, .. } = &self.process;
        ClientOptions {
            dropped_notices: Arc::default(),
            error_lines: Default::default(),
            name: "toolyard".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            max_message_bytes: limits.response_bytes,
            max_list_items: limits.tools_per_handler,
            max_depth: limits.json_depth,
            connect_timeout: timeouts.connect,
            discover_timeout: timeouts.era_probe,
            idle_timeout: None,
            era: EraPreference::Automatic,
            filter: client::UpstreamToolFilter::default(),
            retry: UpstreamRetry::never(),
            dedicated: DedicatedOptions::SHARED,
            probe: None,
            budget: self.budget.clone(),
            secrets: secrets.clone(),
        }
    }
}
