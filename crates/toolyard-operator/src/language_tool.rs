//! MCP servers that a `LanguageTool` describes.
//!
//! - `resource`: [`LanguageTool`] and its fields; [`definition()`]: its definition for a cluster;
//! - [`problems()`]: problems that the schema cannot express;
//! - [`desired()`]: the desired objects, of `workload` and `network`; `replicas`: numbers of pods that are left to others;
//! - [`status()`]: the status;
//! - `resolve`: names in network policies; `discovery`: tools of servers;
//! - [`ToolReconciler`]: requests for one tool; [`controller()`]: watches of all of them.

mod definition;
mod desired;
mod discovery;
mod network;
mod problems;
mod quantities;
mod reconcile;
mod refusal;
mod replicas;
mod resolve;
mod resource;
mod status;
#[cfg(test)]
mod tests;
mod workload;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::Resource;
use kube::core::{DeserializeGuard, ObjectMeta};
use kube::runtime::controller::{self, Config, Controller};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{Predicate, WatchStreamExt, predicates, watcher};
use tokio::sync::OnceCell;

use crate::controller::{
    Context, ControllerError, error_policy, wait_for_definition, watched, with_labels, without_managed_fields,
};
use crate::labels;

pub use definition::{DEFINITION, definition};
pub(crate) use desired::service_endpoint;
pub use desired::{DesiredTool, autoscaler_api, desired, endpoint};
pub use discovery::bounded_schemas;
pub use network::{ResolvedNames, names_to_resolve};
pub use problems::{SpecProblem, problems};
pub use reconcile::{FINALIZER, ObservedTool, ToolReconciler};
pub(crate) use refusal::refusal;
pub use resolve::{NameResolver, SystemResolver};
pub use resource::*;
pub use status::{DiscoveryState, PolicyState, ReconcileFailure, ToolObservation, status};

/// Delay after a conflict with another change.
const CONFLICT_DELAY: Duration = Duration::from_secs(1);

/// Number of polls between two resolutions of a name that has addresses.
const RESOLVE_INTERVALS: u32 = 10;

/// Time after which a tool without changes is compared with its objects again. A watch does not report what was deleted
/// while it was interrupted, and autoscalers are not watched.
const RESYNC: Duration = Duration::from_secs(600);

/// Runs the controller until its future is dropped.
pub async fn controller(context: Arc<Context>) {
    wait_for_definition(&context, DEFINITION).await;
    let reconciler = Arc::new(ToolReconciler::new(context.clone(), Arc::new(SystemResolver)));
    run(context, reconciler).await;
}

async fn run(context: Arc<Context>, reconciler: Arc<ToolReconciler>) {
    let (tools, tool_events) = watched::<DeserializeGuard<LanguageTool>, _>(
        &context,
        watcher::Config::default(),
        without_managed_fields,
    );
    let managed =
        with_labels(&[(labels::MANAGED_BY, labels::MANAGER), (labels::LANGOP_KIND, "LanguageTool")]);
    let manager = context.config.manager.clone();
    let reduce = move |deployment: &mut Deployment| replicas::keep_own_fields(deployment, &manager);
    let (deployments, deployment_events) = watched(&context, managed.clone(), reduce);
    let (services, service_events) = watched::<Service, _>(&context, managed.clone(), without_managed_fields);
    let (policies, policy_events) = watched::<NetworkPolicy, _>(&context, managed, without_managed_fields);
    // A change of the status alone is the operator's own.
    let changes = predicates::generation.combine(predicates::finalizers);
    let tool_events = tool_events.predicate_filter(changes, Default::default());
    let stores = ChildStores { deployments, services, policies, are_ready: Arc::default() };
    let config = Config::default().concurrency(context.config.concurrency);
    // One resource that cannot be read does not stop the watch of the others.
    let reconcile = move |tool: Arc<DeserializeGuard<LanguageTool>>, _: Arc<Context>| {
        let (reconciler, stores) = (reconciler.clone(), stores.clone());
        async move {
            let observed = stores.observed(tool.meta()).await;
            match &tool.0 {
                Ok(tool) => reconciler.reconcile(Arc::new(tool.clone()), observed).await,
                Err(invalid) => reconciler.reconcile_invalid(invalid, observed).await,
            }
        }
    };
    let results = Controller::for_stream(tool_events, tools)
        .owns_stream(deployment_events)
        .owns_stream(service_events)
        .owns_stream(policy_events)
        .with_config(config)
        .run(reconcile, error_policy, context);
    results.for_each(async |result| log_result(result.err())).await;
}

/// The error policy has logged failed reconciliations.
fn log_result(error: Option<controller::Error<ControllerError, watcher::Error>>) {
    match error {
        Some(controller::Error::QueueError(error)) => {
            tracing::warn!(%error, "a watch failed and is repeated")
        }
        Some(controller::Error::RunnerError(error)) => tracing::warn!(%error, "the controller failed"),
        // The last event of a deleted resource finds it gone.
        Some(controller::Error::ObjectNotFound(_) | controller::Error::ReconcilerFailed(..)) | None => {}
    }
}

/// The objects of all tools, as last seen.
#[derive(Clone)]
struct ChildStores {
    deployments: Store<Deployment>,
    services: Store<Service>,
    policies: Store<NetworkPolicy>,
    are_ready: Arc<OnceCell<()>>,
}

impl ChildStores {
    /// Returns the objects with the name of a tool. Waits for the first lists, so that nothing is created twice.
    async fn observed(&self, tool: &ObjectMeta) -> ObservedTool {
        // One task waits at a time: of several, a store wakes the last one only.
        self.are_ready.get_or_init(|| self.wait_until_ready()).await;
        ObservedTool {
            deployment: find(&self.deployments, tool),
            service: find(&self.services, tool),
            network_policy: find(&self.policies, tool),
        }
    }

    async fn wait_until_ready(&self) {
        // A store fails only if its watch has ended, and this task with it.
        self.deployments.wait_until_ready().await.ok();
        self.services.wait_until_ready().await.ok();
        self.policies.wait_until_ready().await.ok();
    }
}

fn find<K>(store: &Store<K>, tool: &ObjectMeta) -> Option<Arc<K>>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    let reference = ObjectRef::<K>::new(tool.name.as_deref()?);
    store.get(&reference.within(tool.namespace.as_deref()?))
}
