//! The gateway as a target: what it is told to keep and to send, and started so.

use std::ffi::OsStr;
use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context;

use super::rest;
use super::targets::{Kind, Target, Workshop};
use crate::builds::end_of;
use crate::process::Process;
use crate::system;

/// How a gateway is run.
#[derive(Clone, Copy)]
pub(super) struct Setup {
    /// Whether each request has to show a key.
    pub key: bool,
    /// Whether calls are noted in an audit trail, which is SQLite in a file.
    pub audit: bool,
    /// The share of traces that is sent to a collector, with all metrics; `None` where there is no collector.
    pub traces: Option<f64>,
    /// Layers that are left out.
    pub without: &'static [&'static str],
    /// What is behind it.
    pub upstream: Upstream,
}

/// As what the gateway uses its upstream.
#[derive(Clone, Copy)]
pub(super) enum Upstream {
    /// An MCP server.
    Mcp,
    /// A service that an OpenAPI document describes.
    OpenApi,
}

impl Setup {
    /// Nothing that only whoever operates a gateway needs, but for the instruments behind `/metrics`: they are always there.
    pub(super) const PLAIN: Setup =
        Setup { key: false, audit: false, traces: None, without: &[], upstream: Upstream::Mcp };
    /// All of it.
    pub(super) const OPERATED: Setup = Setup { key: true, audit: true, traces: Some(1.0), ..Setup::PLAIN };
}

impl Workshop {
    /// The gateway in front of an upstream.
    pub(super) async fn gateway(&self, upstream: &Target, setup: &Setup) -> anyhow::Result<Target> {
        self.gateway_under(&[], upstream, setup).await
    }

    /// The same, whose instructions are counted. The counts are in a file once it has ended.
    pub(super) async fn counted_gateway(
        &self,
        upstream: &Target,
        setup: &Setup,
        counts: &Path,
    ) -> anyhow::Result<Target> {
        system::install_valgrind()?;
        let file = format!("--callgrind-out-file={}", counts.display());
        let valgrind = ["valgrind", "--quiet", "--tool=callgrind", &file];
        self.gateway_under(&valgrind.map(OsStr::new), upstream, setup).await
    }

    /// The gateway, run by another program if one is named.
    async fn gateway_under(
        &self,
        runner: &[&OsStr],
        upstream: &Target,
        setup: &Setup,
    ) -> anyhow::Result<Target> {
        let binary = self.gateway.as_ref().context("the gateway is not among the targets")?;
        let collector = setup.traces.map(|_| self.sink()).transpose()?;
        let manifest = tempfile::Builder::new().suffix(".yaml").tempfile_in(self.folder.path())?;
        let (_, manifest) = manifest.keep()?;
        std::fs::write(&manifest, manifest_for(upstream.address, setup, collector.as_ref()))?;
        let log = manifest.with_extension("log");
        let mut arguments = runner.to_vec();
        arguments.extend([binary.as_os_str(), OsStr::new("serve"), OsStr::new("-f"), manifest.as_os_str()]);
        arguments.extend(["--listen", "127.0.0.1:0"].map(OsStr::new));
        arguments.extend(setup.without.iter().flat_map(|layer| ["--without-layer", *layer]).map(OsStr::new));
        let mut process = Process::launch(arguments[0], &arguments[1..], File::create(&log)?.into())?;
        let address = process.printed_address().with_context(|| format!("the gateway: {}", end_of(&log)))?;
        let mut target = Target::new(Kind::Gateway.name(), address, process, upstream.processes());
        if let Some(collector) = &collector {
            target = target.beside(collector);
        }
        if setup.key {
            target.key = Some(rest::make_key(address).await?.into());
        }
        target.puts_off = setup.audit || setup.traces.is_some();
        Ok(target)
    }
}

fn manifest_for(upstream: SocketAddr, setup: &Setup, collector: Option<&Target>) -> String {
    let telemetry = match (collector, setup.traces) {
        (Some(Target { address, .. }), Some(share)) => format!(
            "telemetry: {{otlp: {{endpoint: \"http://{address}\", protocol: http}}, traces: {{sample: {share}}}}}"
        ),
        _ => "telemetry: {}".to_owned(),
    };
    let handler = match setup.upstream {
        Upstream::Mcp => format!(
            "type: mcp\n      mcpConfig: {{transport: streamable-http, endpoint: \"http://{upstream}/mcp\"}}"
        ),
        Upstream::OpenApi => {
            format!("type: openapi\n      openAPIConfig: {{specURL: \"http://{upstream}/openapi.json\"}}")
        }
    };
    format!(
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
",
        audit = setup.audit,
    )
}
