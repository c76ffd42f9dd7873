//! Builds handlers of the type `mcp`.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use toolyard_core::{Backend, SecretRedactor};
use toolyard_manifest::{
    self as manifest, ConnectionSharing, HandlerConfig, McpEra, McpHandler, McpHttp, McpHttpStyle,
    McpToolFilter, McpTransport, ProcessSettings,
};
use toolyard_mcp::client::{
    self, ClientOptions, DedicatedOptions, EraPreference, HttpEndpoint, HttpStyle, LauncherKind,
    LivenessProbe, McpBackend, ServerEndpoint, ServerLauncher, SharingMode, UpstreamRetry,
};
use toolyard_net::client::HttpClient;
use toolyard_process::ProgramSpec;

use super::{HandlerBuilder, UnsupportedBackend, auth, headers, retry};

impl HandlerBuilder {
    pub(super) fn mcp(
        &self,
        handler: &HandlerConfig,
        mcp: &McpHandler,
        secrets: &SecretRedactor,
    ) -> Arc<dyn Backend> {
        let options = self.options(handler, mcp, secrets);
        let endpoint = match self.endpoint(&mcp.transport, secrets) {
            Ok(endpoint) => endpoint,
            Err(reason) => return Arc::new(UnsupportedBackend::because(reason, None)),
        };
        Arc::new(McpBackend::start(handler.name.as_str(), endpoint, options))
    }

    fn endpoint(&self, transport: &McpTransport, secrets: &SecretRedactor) -> Result<ServerEndpoint, String> {
        Ok(match transport {
            McpTransport::Http(http) => {
                let client = self.outbound_client(&http.outbound)?;
                ServerEndpoint::Http(self.http_endpoint(http, client, secrets))
            }
            McpTransport::Stdio { command, args, work_dir, env, .. } => {
                let program = ProgramSpec {
                    command: command.into(),
                    args: args.iter().map(Into::into).collect(),
                    work_dir: work_dir.clone(),
                    env: env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
                    memory_bytes: self.process.limits.process_memory_bytes.map(|bytes| bytes as u64),
                    inherited: self.process.programs.names().into_iter().map(Into::into).collect(),
                    ..ProgramSpec::default()
                };
                program_credentials(&program.inherited).iter().for_each(|secret| secrets.learn(secret));
                ServerEndpoint::Stdio { program, processes: self.processes.clone() }
            }
        })
    }

    /// Returns the launcher of a server that may have to be installed.
    fn launcher(&self, handler: &HandlerConfig, transport: &McpTransport) -> Option<ServerLauncher> {
        let McpTransport::Stdio { command, args, first_start, .. } = transport else { return None };
        let kind = LauncherKind::of(command, args.iter())?;
        let time = first_start.unwrap_or(self.process.timeouts.first_start);
        let is_installed = self.installed.contains(handler.name.as_str());
        Some(ServerLauncher::new(command, kind, &self.install_queues, time, is_installed))
    }

    /// Returns the time limit of connecting to a server.
    fn connect_timeout(&self, transport: &McpTransport) -> Duration {
        let connect = self.process.timeouts.connect;
        match transport {
            McpTransport::Stdio { first_start: Some(time), command, args, .. }
                if LauncherKind::of(command, args.iter()).is_none() =>
            {
                connect.max(*time)
            }
            _ => connect,
        }
    }

    fn http_endpoint(&self, http: &McpHttp, client: HttpClient, secrets: &SecretRedactor) -> HttpEndpoint {
        let style = match http.style {
            McpHttpStyle::Streamable => HttpStyle::Streamable,
            McpHttpStyle::Sse => HttpStyle::Sse,
        };
        let endpoint = HttpEndpoint::new(http.endpoint.uri().clone(), client);
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
            connect_timeout: self.connect_timeout(&mcp.transport),
            launcher: self.launcher(handler, &mcp.transport),
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
            ..self.client_options(handler, secrets)
        }
    }

    /// Returns the options that all servers share.
    pub(super) fn client_options(&self, handler: &HandlerConfig, secrets: &SecretRedactor) -> ClientOptions {
        let ProcessSettings { limits, timeouts, .. } = &self.process;
        ClientOptions {
            dropped_notices: Arc::default(),
            skipped_messages: Arc::default(),
            error_lines: Default::default(),
            launcher: None,
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
            budget: self.budget_of(handler),
            secrets: secrets.clone(),
        }
    }
}

/// Returns the credentials in URLs among the variables that a program inherits, such as those of a proxy.
fn program_credentials(inherited: &[OsString]) -> Vec<String> {
    let values = inherited.iter().filter_map(|name| std::env::var(name).ok());
    let parts = values.flat_map(|value| {
        let urls = value.split([' ', ',']).filter_map(|url| url.split_once("://")?.1.rsplit_once('@'));
        urls.flat_map(|(user, _)| {
            let password = user.split_once(':').map(|(_, password)| password.to_owned());
            [Some(user.to_owned()), password]
        })
        .collect::<Vec<_>>()
    });
    parts.flatten().collect()
}
