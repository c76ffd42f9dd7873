//! `toolyard operator`: runs tools and gateways in Kubernetes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use toolyard_server::lifecycle::TerminationSignals;
use toolyard_server::operator::{self, OperatorSettings, OperatorWebhook};

use crate::duration::parse_duration;
use crate::log::LogFormatArg;

/// Run the operator of Kubernetes: LanguageTools and ToolRegistries of a cluster
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard operator                                    in a pod, for all namespaces
  toolyard operator --namespace team-a                 for one namespace
  toolyard operator --kubeconfig ~/.kube/config --no-leader-election    on a workstation

The operator waits for the definitions of its resources. Replicas elect a leader by a Lease; the others wait.
SIGTERM and SIGINT give the Lease up and exit with status 0.")]
pub(crate) struct OperatorArgs {
    /// Namespace of the resources [default: all]
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,

    /// Namespace of the operator, where its Lease is
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE", default_value = "toolyard")]
    operator_namespace: String,

    /// Name of this replica [default: the host name]
    #[arg(long, value_name = "NAME", env = "POD_NAME")]
    identity: Option<String>,

    /// Run without a Lease: there is one replica
    #[arg(long)]
    no_leader_election: bool,

    /// Name of the Lease
    #[arg(long, value_name = "NAME", default_value = "toolyard-operator")]
    lease: String,

    /// Time after which another replica takes the Lease
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "15s")]
    lease_duration: Duration,

    /// Address of /health, /ready and /metrics
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8081")]
    health: SocketAddr,

    /// Address of the validating webhook [default: none]
    #[arg(long, value_name = "ADDRESS", requires_all = ["webhook_certificate", "webhook_key"])]
    webhook: Option<SocketAddr>,

    /// Certificate of the webhook in PEM, followed by its chain; a renewed file is reloaded
    #[arg(long, value_name = "FILE", requires = "webhook")]
    webhook_certificate: Option<PathBuf>,

    /// Private key of the webhook in PEM
    #[arg(long, value_name = "FILE", requires = "webhook")]
    webhook_key: Option<PathBuf>,

    /// Image of gateways
    #[arg(long, value_name = "IMAGE", env = "TOOLYARD_GATEWAY_IMAGE", default_value = "toolyard:latest")]
    gateway_image: String,

    /// Run one gateway for all ToolRegistries of a namespace, instead of one for each
    #[arg(long)]
    shared_gateway: bool,

    /// Apply no network policies: tools and gateways then admit every pod of the cluster
    #[arg(long)]
    no_network_policies: bool,

    /// Inject no tools into agents; needs fewer rights
    #[arg(long)]
    no_injection: bool,

    /// Registry that images of tools may come from; repeatable [default: all]
    #[arg(long, value_name = "HOST")]
    image_registry: Vec<String>,

    /// Domain of Services
    #[arg(long, value_name = "DOMAIN", default_value = "svc.cluster.local")]
    service_domain: String,

    /// Time limit of listing the tools of a server
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "5s")]
    probe_timeout: Duration,

    /// Time between two readings of what cannot be watched, such as the status of gateways
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "30s")]
    poll_interval: Duration,

    /// Number of resources of a kind that are reconciled at a time
    #[arg(long, value_name = "NUMBER", default_value_t = 16)]
    concurrency: u16,

    /// Kubeconfig file [default: $KUBECONFIG, or the cluster of the pod]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Context in the kubeconfig file [default: its current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// Log format
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormatArg>,
}

pub(crate) async fn run(args: OperatorArgs) -> anyhow::Result<ExitCode> {
    let mut signals = TerminationSignals::listen().context("cannot handle signals")?;
    operator::run(settings(args), async move { signals.next().await }).await?;
    Ok(ExitCode::SUCCESS)
}

fn settings(args: OperatorArgs) -> OperatorSettings {
    let from_env = || std::env::var_os("KUBECONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
    let webhook = match (args.webhook, args.webhook_certificate, args.webhook_key) {
        (Some(address), Some(certificate), Some(key)) => Some(OperatorWebhook { address, certificate, key }),
        _ => None,
    };
    OperatorSettings {
        kubeconfig: args.kubeconfig.or_else(from_env),
        context: args.context,
        namespace: args.namespace,
        operator_namespace: args.operator_namespace,
        identity: args.identity.unwrap_or_else(host_name),
        lease: (!args.no_leader_election).then_some(args.lease),
        lease_duration: args.lease_duration,
        health_address: Some(args.health),
        webhook,
        gateway_image: args.gateway_image,
        shared_gateway: args.shared_gateway,
        network_policies: !args.no_network_policies,
        injection: !args.no_injection,
        image_registries: args.image_registry,
        service_domain: args.service_domain,
        probe_timeout: args.probe_timeout,
        poll_interval: args.poll_interval,
        concurrency: args.concurrency,
    }
}

/// Returns the host name, which in a pod is the pod's name, with the number of the process.
fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{name}-{}", std::process::id())
}
