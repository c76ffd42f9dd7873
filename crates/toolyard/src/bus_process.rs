//! Processes that take requests from a message bus: worker, bridge and scripts manager.

use std::process::ExitCode;

use anyhow::Context;
use toolyard_manifest::{BrokerUrl, BusSettings, ListenAddress, Manifest};
use toolyard_process::ProcessSpawner;
use toolyard_server::{BusRole, GatewayOptions};

use crate::gateway;
use crate::log::{LogFormatArg, LogHandle};
use crate::manifest_sources::ManifestSources;
use crate::output::{OutputFormat, escape_line, print};

/// Options of a process that takes requests from a message bus.
#[derive(clap::Args)]
pub(crate) struct BusProcessArgs {
    #[command(flatten)]
    sources: ManifestSources,

    #[command(flatten)]
    bus: BusArgs,

    /// Address or Unix socket to serve MCP, /health and /metrics on; repeatable (default: none)
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<ListenAddress>,

    /// Log format (default: that of the manifest)
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormatArg>,
}

/// The broker that a command connects to.
#[derive(Clone, clap::Args)]
pub(crate) struct BusArgs {
    /// URL of the broker (amqp, amqps, nats or tls), instead of `bus.url` of the manifest. Other users of the machine see
    /// a password on the command line; set the variable instead
    #[arg(long = "bus", value_name = "URL", env = "TOOLYARD_BUS", hide_env_values = true)]
    url: Option<String>,
}

impl BusArgs {
    /// Returns the URL. The error of an invalid one does not show it: it may have a password.
    pub(crate) fn url(&self) -> anyhow::Result<Option<BrokerUrl>> {
        let url = self.url.as_deref().map(str::parse::<BrokerUrl>).transpose();
        url.context("cannot use the URL of `--bus`")
    }
}

/// A process that takes requests from a message bus.
pub(crate) struct BusProcess {
    /// Its part on the bus.
    pub(crate) role: BusRole,
    /// Changes each manifest that is read.
    pub(crate) change: fn(&mut Manifest),
    /// Returns the name of its group.
    pub(crate) group: fn(&BusSettings) -> &str,
    /// Its work, for its banner.
    pub(crate) taking: &'static str,
}

impl BusProcess {
    /// Runs the process until a signal arrives.
    ///
    /// # Errors
    /// Fails if the gateway does not start.
    pub(crate) async fn run(
        self,
        args: BusProcessArgs,
        format: OutputFormat,
        log: &LogHandle,
    ) -> anyhow::Result<ExitCode> {
        let spawner = ProcessSpawner::supervised_by_this_program();
        let options =
            GatewayOptions { spawner, log: log.control(), bus_role: self.role, ..GatewayOptions::default() };
        let (url, listen, change_role) = (args.bus.url()?, args.listen, self.change);
        let change = move |manifest: &mut Manifest| {
            change_role(manifest);
            if url.is_some() {
                manifest.process.bus.url.clone_from(&url);
            }
            manifest.process.listen.clone_from(&listen);
            manifest.process.grpc.listen.clear();
            if listen.is_empty() {
                manifest.process.tls = None;
            }
        };
        gateway::run(args.sources, change, options, log, async |_, manifest, _| {
            self.print_banner(&manifest.process.bus, format);
            std::future::pending().await
        })
        .await
    }

    fn print_banner(&self, bus: &BusSettings, format: OutputFormat) {
        let url = bus.url.as_ref().map(ToString::to_string).unwrap_or_default();
        let group = (self.group)(bus);
        match format {
            OutputFormat::Json => {
                print(&serde_json::json!({"bus": url, "group": group}).to_string());
            }
            OutputFormat::Text => {
                let (version, taking) = (env!("CARGO_PKG_VERSION"), self.taking);
                print(&escape_line(&format!(
                    "Toolyard {version} is {taking} from {url} in the group {group}"
                )));
            }
        }
    }
}
