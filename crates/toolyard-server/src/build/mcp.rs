//! A handler of the type `mcp`, in the words of its backend.

use toolyard_core::Secrets;
use toolyard_manifest::{
    self as manifest, Handler, Lane, McpHandler, McpHttp, McpHttpStyle, McpTransport, Process, ToolFilter,
};
use toolyard_mcp::client::{
    self, Attempts, ClientOptions, Endpoint, HttpEndpoint, HttpStyle, LaneMode, LaneOptions, McpBackend,
    Probe,
};
use toolyard_process::Program;

use super::{Builder, auth, headers, retry};

impl Builder {
    pub(super) fn mcp(&self, handler: &Handler, mcp: &McpHandler, secrets: &Secrets) -> McpBackend {
        let options = self.options(handler, mcp, secrets);
        McpBackend::start(handler.name.as_str(), self.endpoint(&mcp.transport, secrets), options)
    }

    fn endpoint(&self, transport: &McpTransport, secrets: &Secrets) -> Endpoint {
        match transport {
            McpTransport::Http(http) => Endpoint::Http(self.http_endpoint(http, secrets)),
            McpTransport::Stdio { command, args, work_dir, env } => {
                let program = Program {
                    command: command.into(),
                    args: args.iter().map(Into::into).collect(),
                    work_dir: work_dir.clone(),
                    env: env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
                    memory_bytes: self.process.limits.process_memory_bytes.map(|bytes| bytes as u64),
                    ..Program::default()
                };
                Endpoint::Stdio { program, processes: self.processes.clone() }
            }
        }
    }

    fn http_endpoint(&self, http: &McpHttp, secrets: &Secrets) -> HttpEndpoint {
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

    fn options(&self, handler: &Handler, mcp: &McpHandler, secrets: &Secrets) -> ClientOptions {
        let Process { limits, timeouts, .. } = &self.process;
        let ToolFilter { allow, block } = mcp.filter.clone();
        let retry = retry(&mcp.retry);
        let mode = match mcp.lane {
            None => LaneMode::Automatic,
            Some(Lane::Shared) => LaneMode::Shared,
            Some(Lane::Client) => LaneMode::Client,
        };
        // Some servers do nothing else while they run a tool, which is no reason to end them.
        let probe = |probe: manifest::Probe| Probe {
            interval: probe.interval.max(handler.timeout),
            time: probe.timeout,
        };
        ClientOptions {
            idle_time: timeouts.process_idle,
            filter: client::ToolFilter { allow, block },
            // The only attempt has all the time of the call.
            attempts: Attempts { retry, time: (retry.attempts > 1).then_some(handler.timeout) },
            lanes: LaneOptions { mode, most: limits.lanes_per_handler, idle_time: timeouts.lane_idle },
            probe: handler.probe.map(probe),
            ..self.client_options(secrets)
        }
    }

    /// What is the same for all servers.
    pub(super) fn client_options(&self, secrets: &Secrets) -> ClientOptions {
        let Process { limits, timeouts, .. } = &self.process;
        ClientOptions {
            name: "toolyard".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            message_bytes: limits.response_bytes,
            tools: limits.tools_per_handler,
            connect_time: timeouts.connect,
            probe_time: timeouts.era_probe,
            idle_time: None,
            filter: client::ToolFilter::default(),
            attempts: Attempts::one(),
            lanes: LaneOptions::SHARED,
            probe: None,
            secrets: secrets.clone(),
        }
    }
}
