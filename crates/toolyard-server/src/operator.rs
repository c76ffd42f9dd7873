//! The operator of Kubernetes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use toolyard_core::{Object, SecretRedactor};
use toolyard_mcp::client::{
    ClientOptions, DedicatedOptions, EraPreference, UpstreamRetry, UpstreamToolFilter, list_tools,
};
use toolyard_net::client::HttpClient;
use toolyard_operator::ClusterConfig;
use toolyard_operator::controller::{
    self, DiscoveryError, LeaderElection, ListedTool, OperatorConfig, ToolDiscovery,
};
use toolyard_operator::webhook::{CertificateFiles, WebhookOptions};

/// Settings of the operator.
#[derive(Debug, Clone)]
pub struct OperatorSettings {
    /// Kubeconfig file; `None` for the cluster of this process's pod.
    pub kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig file. Default: its current context.
    pub context: Option<String>,
    /// The only namespace whose resources are reconciled; `None` for all.
    pub namespace: Option<String>,
    /// Namespace of the operator itself, where its Lease is.
    pub operator_namespace: String,
    /// Name of this replica.
    pub identity: String,
    /// Name of the Lease; `None` if there is one replica.
    pub lease: Option<String>,
    /// Time after which another replica takes the Lease.
    pub lease_duration: Duration,
    /// Address of `/health`, `/ready` and `/metrics`.
    pub health_address: Option<SocketAddr>,
    /// The validating webhook; `None` for none.
    pub webhook: Option<OperatorWebhook>,
    /// Image of gateways.
    pub gateway_image: String,
    /// One gateway for all registries of a namespace.
    pub shared_gateway: bool,
    /// Applies network policies of tools and gateways.
    pub network_policies: bool,
    /// Injects tools into the pods of agents.
    pub injection: bool,
    /// Registries that images of tools may come from; empty for all.
    pub image_registries: Vec<String>,
    /// Domain of Services.
    pub service_domain: String,
    /// Time limit of listing the tools of a server.
    pub probe_timeout: Duration,
    /// Time between two readings of what cannot be watched.
    pub poll_interval: Duration,
    /// Maximum number of resources of a kind that are reconciled at a time.
    pub concurrency: u16,
}

/// Address and certificate of the validating webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorWebhook {
    /// The address.
    pub address: SocketAddr,
    /// PEM file of the certificate, followed by its chain. A renewed file is reloaded.
    pub certificate: PathBuf,
    /// PEM file of its private key.
    pub key: PathBuf,
}

/// Error of the start of the operator, with a remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OperatorStartError(pub String);

/// Time between two checks of the files of the webhook's certificate.
const CERTIFICATE_CHECK: Duration = Duration::from_secs(10);

/// Environment variables that name a collector of telemetry. Tools get them; those that may hold credentials are
/// left out.
const TELEMETRY_VARIABLES: [&str; 4] = [
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
];

/// Maximum size of an answer of a server.
const MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Maximum number of tools of a server.
const TOOLS: usize = 10_000;

/// Runs the operator until `shutdown` completes.
///
/// # Errors
/// If the cluster is not configured, or the health address or the webhook cannot be bound.
pub async fn run(
    settings: OperatorSettings,
    shutdown: impl Future<Output = ()>,
) -> Result<(), OperatorStartError> {
    let client = cluster(&settings).client().await.map_err(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        let remedy = "run it in a pod, or name a file by `--kubeconfig` or KUBECONFIG";
        OperatorStartError(format!(
            "cannot connect to Kubernetes: {error}{}; {remedy}",
            cause.unwrap_or_default()
        ))
    })?;
    let http = HttpClient::without_roots();
    let http = http.map_err(|error| OperatorStartError(format!("cannot create an HTTP client: {error}")))?;
    let tools = Arc::new(McpToolDiscovery { http, timeout: settings.probe_timeout });
    let run = controller::run(client, config(settings), tools, shutdown);
    run.await.map_err(|error| OperatorStartError(error.to_string()))
}

fn cluster(settings: &OperatorSettings) -> ClusterConfig {
    match settings.kubeconfig.clone() {
        Some(path) => ClusterConfig::Kubeconfig { path, context: settings.context.clone() },
        None => ClusterConfig::InCluster,
    }
}

fn config(settings: OperatorSettings) -> OperatorConfig {
    let leader_election = settings.lease.map(|lease| LeaderElection {
        lease,
        namespace: settings.operator_namespace.clone(),
        identity: settings.identity,
        duration: settings.lease_duration,
    });
    let variable = |name: &str| std::env::var(name).ok().map(|value| (name.to_owned(), value));
    OperatorConfig {
        namespace: settings.namespace,
        operator_namespace: settings.operator_namespace,
        service_domain: settings.service_domain,
        leader_election,
        health_address: settings.health_address,
        webhook: settings.webhook.map(webhook),
        gateway_image: settings.gateway_image,
        shared_gateway: settings.shared_gateway,
        network_policies: settings.network_policies,
        injection: settings.injection,
        image_registries: settings.image_registries,
        telemetry_env: TELEMETRY_VARIABLES.into_iter().filter_map(variable).collect(),
        probe_timeout: settings.probe_timeout,
        poll_interval: settings.poll_interval,
        concurrency: settings.concurrency,
        ..OperatorConfig::default()
    }
}

fn webhook(settings: OperatorWebhook) -> WebhookOptions {
    let OperatorWebhook { address, certificate, key } = settings;
    let files = CertificateFiles { certificate, key };
    WebhookOptions { address, files, certificate_check: CERTIFICATE_CHECK }
}

/// Lists the tools of MCP servers over HTTP.
struct McpToolDiscovery {
    http: HttpClient,
    timeout: Duration,
}

impl ToolDiscovery for McpToolDiscovery {
    fn tools<'a>(&'a self, endpoint: &'a str) -> BoxFuture<'a, Result<Vec<ListedTool>, DiscoveryError>> {
        Box::pin(async move {
            let url = endpoint.parse();
            let url = url.map_err(|_| DiscoveryError(format!("{endpoint} is not a URL")))?;
            let listed = list_tools(&url, &self.http, options(self.timeout)).await.map_err(DiscoveryError)?;
            Ok(listed.iter().filter_map(tool).collect())
        })
    }
}

fn options(timeout: Duration) -> ClientOptions {
    ClientOptions {
        name: "toolyard-operator".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        max_message_bytes: MESSAGE_BYTES,
        max_list_items: TOOLS,
        max_depth: toolyard_core::json::DEFAULT_DEPTH,
        connect_timeout: timeout,
        discover_timeout: timeout,
        idle_timeout: None,
        era: EraPreference::Automatic,
        filter: UpstreamToolFilter::default(),
        retry: UpstreamRetry::never(),
        dedicated: DedicatedOptions::SHARED,
        probe: None,
        budget: toolyard_net::budget::ByteBudget::default(),
        secrets: SecretRedactor::default(),
        dropped_notices: Arc::default(),
        skipped_messages: Arc::default(),
        error_lines: Default::default(),
        launcher: None,
    }
}

fn tool(definition: &Object) -> Option<ListedTool> {
    let text = |name| definition.get_str(name).map(std::borrow::Cow::into_owned);
    Some(ListedTool {
        name: text("name")?,
        description: text("description"),
        input_schema: definition.get("inputSchema").map(toolyard_core::Json::to_value).unwrap_or_default(),
    })
}
