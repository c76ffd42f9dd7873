//! Start and end of the operator.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;

use super::leader::LeaseCandidate;
use super::{
    ClusterFacts, Context, ControllerError, OperatorConfig, OperatorMetrics, ToolDiscovery, listener,
};
use crate::webhook::{self, BoundWebhook, WebhookOptions};
use crate::{agent_injection, language_tool, tool_registry};

/// Delay between two attempts to reach the server at the start.
const CONNECT_DELAY: Duration = Duration::from_secs(2);

/// Time between two readings of the version of the server.
const FACTS_INTERVAL: Duration = Duration::from_secs(300);

/// Runs the operator until `shutdown` completes.
///
/// # Errors
/// If the health address or the webhook cannot be bound. Everything else is repeated.
pub async fn run(
    client: Client,
    config: OperatorConfig,
    tools: Arc<dyn ToolDiscovery>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ControllerError> {
    let metrics = Arc::new(OperatorMetrics::default());
    let health = match config.health_address {
        Some(address) => Some(listener::bind(address).await?),
        None => None,
    };
    let health = async {
        match health {
            Some(health) => listener::serve(health, metrics.clone()).await,
            None => std::future::pending().await,
        }
    };
    let webhook = match config.webhook.clone() {
        Some(options) => Some(bind_webhook(options).await?),
        None => None,
    };
    let webhook = async {
        match webhook {
            Some(webhook) => webhook.serve(webhook::problems).await,
            None => std::future::pending().await,
        }
    };
    let mut candidate =
        config.leader_election.clone().map(|election| LeaseCandidate::new(client.clone(), election));
    let work = async {
        let parts = ControllerParts { client: client.clone(), config, tools, metrics: metrics.clone() };
        match &mut candidate {
            Some(candidate) => lead(candidate, &parts).await,
            None => {
                metrics.set_leader(true);
                parts.run_controllers().await;
            }
        }
    };
    let mut shutdown = pin!(shutdown);
    tokio::select! {
        () = health => {}
        () = webhook => {}
        () = work => {}
        () = &mut shutdown => {}
    }
    if let Some(candidate) = candidate.as_mut().filter(|_| metrics.is_leader()) {
        candidate.release().await;
    }
    Ok(())
}

async fn bind_webhook(options: WebhookOptions) -> Result<BoundWebhook, ControllerError> {
    let bound = BoundWebhook::bind(options).await;
    bound.map_err(|error| ControllerError::Object(error.to_string()))
}

/// Runs the controllers while this replica holds the Lease.
async fn lead(candidate: &mut LeaseCandidate, parts: &ControllerParts) {
    loop {
        candidate.acquire().await;
        tracing::info!("this replica leads");
        parts.metrics.set_leader(true);
        tokio::select! {
            () = parts.run_controllers() => {}
            () = candidate.hold() => {}
        }
        parts.metrics.set_leader(false);
        tracing::warn!("this replica leads no longer");
    }
}

/// The parts that the controllers are started with.
struct ControllerParts {
    client: Client,
    config: OperatorConfig,
    tools: Arc<dyn ToolDiscovery>,
    metrics: Arc<OperatorMetrics>,
}

impl ControllerParts {
    /// Runs all controllers until the future is dropped. After an upgrade of the cluster they start again, and reconcile all
    /// resources by its new abilities.
    async fn run_controllers(&self) {
        let mut facts = self.facts().await;
        loop {
            let context = Arc::new(Context::new(
                self.client.clone(),
                self.config.clone(),
                facts,
                self.tools.clone(),
                self.metrics.clone(),
            ));
            tokio::select! {
                () = controllers(&context) => {}
                changed = self.changed_facts(facts) => facts = changed,
            }
            tracing::info!(minor = facts.minor, "the version of the cluster has changed");
        }
    }

    /// Reads the version of the server, and repeats this until it responds.
    async fn facts(&self) -> ClusterFacts {
        loop {
            match ClusterFacts::read(&self.client).await {
                Ok(facts) => return facts,
                Err(error) => tracing::warn!(%error, "the version of the cluster cannot be read"),
            }
            tokio::time::sleep(CONNECT_DELAY).await;
        }
    }

    /// Waits until the abilities of the cluster differ from these.
    async fn changed_facts(&self, known: ClusterFacts) -> ClusterFacts {
        loop {
            tokio::time::sleep(FACTS_INTERVAL).await;
            let facts = self.facts().await;
            if facts != known {
                return facts;
            }
        }
    }
}

/// Runs all controllers until the future is dropped.
async fn controllers(context: &Arc<Context>) {
    let injection = async {
        if context.config.injection {
            agent_injection::controller(context.clone()).await;
        }
    };
    tokio::join!(
        language_tool::controller(context.clone()),
        tool_registry::controller(context.clone()),
        injection,
    );
}
