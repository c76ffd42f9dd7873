//! The gateway as a target, with the settings of a measurement.

use std::ffi::OsStr;
use std::fs::File;
use std::net::SocketAddr;

use anyhow::Context;
use xtask_support::builds::log_tail;
use xtask_support::builds::sibling_program;
use xtask_support::process::LaunchedProcess;

use super::grpc_echo::TOOL;
use super::targets::{BenchTarget, TargetFactory, TargetKind};
use super::{callgrind, rest};

/// The settings of a gateway.
#[derive(Clone, Copy)]
pub(super) struct GatewaySetup<'a> {
    /// `true` if requests need an API key.
    pub key: bool,
    /// `true` if calls are recorded in an audit trail, in an SQLite file.
    pub audit: bool,
    /// Share of traces that are sent to a collector, with all metrics; `None` without a collector.
    pub traces: Option<f64>,
    /// Layers that are left out.
    pub without: &'static [&'static str],
    /// Kind of the upstream.
    pub upstream: UpstreamKind,
    /// Number of sessions that one client may open; `None` for the default.
    pub sessions: Option<usize>,
    /// URL of the store; `None` for an SQLite file.
    pub store: Option<&'a str>,
}

/// The kind of an upstream.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum UpstreamKind {
    /// An MCP server over streamable HTTP.
    Mcp,
    /// An MCP server over stdio, which the gateway starts.
    Stdio,
    /// A service with an OpenAPI document.
    OpenApi,
    /// A gRPC server with reflection.
    Grpc,
}

impl GatewaySetup<'static> {
    /// No operating features but the metrics behind `/metrics`, which are always on.
    pub(super) const MINIMAL: GatewaySetup<'static> = GatewaySetup {
        key: false,
        audit: false,
        traces: None,
        without: &[],
        upstream: UpstreamKind::Mcp,
        sessions: None,
        store: None,
    };
    /// The default configuration: calls are recorded in the audit trail.
    pub(super) const DEFAULT: GatewaySetup<'static> = GatewaySetup { audit: true, ..GatewaySetup::MINIMAL };
    /// All operating features.
    pub(super) const OPERATED: GatewaySetup<'static> =
        GatewaySetup { key: true, traces: Some(1.0), ..GatewaySetup::DEFAULT };
}

impl TargetFactory {
    /// Starts the gateway in front of an upstream.
    pub(super) async fn gateway(
        &self,
        upstream: &BenchTarget,
        setup: &GatewaySetup<'_>,
    ) -> anyhow::Result<BenchTarget> {
        self.gateway_with_runner(&[], upstream, setup).await
    }

    /// Starts the gateway, under another program if `runner` names one.
    pub(super) async fn gateway_with_runner(
        &self,
        runner: &[&OsStr],
        upstream: &BenchTarget,
        setup: &GatewaySetup<'_>,
    ) -> anyhow::Result<BenchTarget> {
        let binary = self.gateway.as_ref().context("the gateway is not one of the targets")?;
        let collector = setup.traces.map(|_| self.sink()).transpose()?;
        let manifest = tempfile::Builder::new().suffix(".yaml").tempfile_in(self.folder.path())?;
        let (_, manifest) = manifest.keep()?;
        std::fs::write(&manifest, manifest_for(upstream, setup, collector.as_ref())?)?;
        let log = manifest.with_extension("log");
        let mut arguments = runner.to_vec();
        arguments.extend([binary.as_os_str(), OsStr::new("serve"), OsStr::new("-f"), manifest.as_os_str()]);
        arguments.extend(["--listen", "127.0.0.1:0"].map(OsStr::new));
        arguments.extend(setup.without.iter().flat_map(|layer| ["--without-layer", *layer]).map(OsStr::new));
        let mut process = LaunchedProcess::launch(arguments[0], &arguments[1..], File::create(&log)?.into())?;
        let address = process.printed_address_within(callgrind::start_limit(runner));
        let address = address.with_context(|| format!("the gateway: {}", log_tail(&log)))?;
        let mut target = BenchTarget::new(TargetKind::Gateway.name(), address, process, upstream.processes());
        if let Some(collector) = &collector {
            target = target.with_dependency(collector);
        }
        if setup.key {
            target.key = Some(rest::create_key(address, None, &rest::FIRST_SCOPES).await?.into());
        }
        target.counts_children = setup.upstream != UpstreamKind::Stdio;
        target.defers_work = setup.audit || setup.traces.is_some();
        Ok(target)
    }
}

fn manifest_for(
    upstream: &BenchTarget,
    setup: &GatewaySetup<'_>,
    collector: Option<&BenchTarget>,
) -> anyhow::Result<String> {
    let telemetry = match (collector, setup.traces) {
        (Some(BenchTarget { address, .. }), Some(share)) => format!(
            "telemetry: {{otlp: {{endpoint: \"http://{address}\", protocol: http}}, traces: {{sample: {share}}}}}"
        ),
        _ => "telemetry: {}".to_owned(),
    };
    let limits = match setup.sessions {
        Some(sessions) => format!("limits: {{sessions: {sessions}, sessionsPerOwner: {sessions}}}"),
        None => "limits: {}".to_owned(),
    };
    let store = setup.store.map(|url| format!("store: {{url: \"{url}\"}}")).unwrap_or_default();
    Ok(format!(
        "apiVersion: omnia.altairalabs.ai/v1alpha1
kind: ToolRegistry
metadata: {{name: bench}}
spec:
  handlers:
    - name: echo
      {handler}
---
apiVersion: toolyard.dev/v1alpha1
kind: Toolyard
spec:
  audit: {{enabled: {audit}}}
  {telemetry}
  {limits}
  {store}
",
        handler = handler(upstream.address, setup.upstream)?,
        audit = setup.audit,
    ))
}

fn handler(upstream: SocketAddr, kind: UpstreamKind) -> anyhow::Result<String> {
    Ok(match kind {
        UpstreamKind::Mcp => format!(
            "type: mcp\n      mcpConfig: {{transport: streamable-http, endpoint: \"http://{upstream}/mcp\"}}"
        ),
        UpstreamKind::Stdio => {
            let bench = serde_json::to_string(&sibling_program("xtask-bench")?)?;
            format!("type: mcp\n      mcpConfig: {{transport: stdio, command: {bench}, args: [echo-stdio]}}")
        }
        UpstreamKind::OpenApi => {
            format!("type: openapi\n      openAPIConfig: {{specURL: \"http://{upstream}/openapi.json\"}}")
        }
        UpstreamKind::Grpc => format!(
            "type: grpc\n      grpcConfig: {{endpoint: \"{upstream}\"}}\n      overrides: {{{TOOL}: {{name: echo}}}}"
        ),
    })
}
