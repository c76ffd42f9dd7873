//! Configuration of the operator.

use std::net::SocketAddr;
use std::time::Duration;

use crate::webhook::WebhookOptions;

/// Configuration of the operator.
#[derive(Debug, Clone)]
pub struct OperatorConfig {
    /// The only namespace whose resources are reconciled; `None` for all.
    pub namespace: Option<String>,
    /// Namespace of the operator itself.
    pub operator_namespace: String,
    /// Field manager of everything that the operator writes.
    pub manager: String,
    /// Domain of Services, as in `NAME.NAMESPACE.svc.cluster.local`.
    pub service_domain: String,
    /// Election of a leader among several replicas; `None` if there is one replica.
    pub leader_election: Option<LeaderElection>,
    /// Address of `/health`, `/ready` and `/metrics`.
    pub health_address: Option<SocketAddr>,
    /// The validating webhook, which every replica serves; `None` for none.
    pub webhook: Option<WebhookOptions>,
    /// Image of gateways.
    pub gateway_image: String,
    /// One gateway for all registries of a namespace, instead of one per registry.
    pub shared_gateway: bool,
    /// Applies network policies of tools and gateways.
    pub network_policies: bool,
    /// Injects tools into the pods of agents.
    pub injection: bool,
    /// Registries that images of tools may come from; empty for all.
    pub image_registries: Vec<String>,
    /// Environment variables for tools that name the collector of telemetry.
    pub telemetry_env: Vec<(String, String)>,
    /// Addresses of the API server, which tools may reach.
    pub api_server: Vec<SocketAddr>,
    /// Time limit of listing the tools of a server.
    pub probe_timeout: Duration,
    /// Time limit of resolving a name of a network policy.
    pub resolve_timeout: Duration,
    /// Time between two readings of what cannot be watched: the status of gateways, tools of sidecars, addresses of
    /// names.
    pub poll_interval: Duration,
    /// Maximum number of resources of a kind that are reconciled at a time.
    pub concurrency: u16,
    /// Maximum number of tools in the status of a resource.
    pub status_tools: usize,
    /// Maximum number of bytes of all tools in the status of a resource.
    pub status_bytes: usize,
}

impl Default for OperatorConfig {
    fn default() -> Self {
        Self {
            namespace: None,
            operator_namespace: "toolyard".to_owned(),
            manager: "toolyard-operator".to_owned(),
            service_domain: "svc.cluster.local".to_owned(),
            leader_election: None,
            health_address: None,
            webhook: None,
            gateway_image: "toolyard:latest".to_owned(),
            shared_gateway: false,
            network_policies: true,
            injection: true,
            image_registries: Vec::new(),
            telemetry_env: Vec::new(),
            api_server: Vec::new(),
            probe_timeout: Duration::from_secs(5),
            resolve_timeout: Duration::from_secs(3),
            poll_interval: Duration::from_secs(30),
            concurrency: 16,
            status_tools: 500,
            status_bytes: 900_000,
        }
    }
}

/// Election of a leader by a Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderElection {
    /// Name of the Lease.
    pub lease: String,
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of this replica, such as that of its pod.
    pub identity: String,
    /// Time after the last renewal at which another replica takes the Lease. It is renewed every two seconds, or eight
    /// times as often if that is less.
    pub duration: Duration,
}
