//! Injection of tools into the pods of agents.
//!
//! An agent is a Deployment or a StatefulSet with the annotation [`TOOLS_ANNOTATION`], or of the name of a LanguageAgent
//! in its namespace. Its tools are injected by server-side apply of the fields of its pod template, which this operator
//! then owns: without the reference, the same request without these fields removes them and nothing else.
//!
//! - [`injection`]: the fields and the ConfigMap, as a pure function;
//! - [`AgentReferences`]: the references of an agent; [`AgentPod`]: what its workload has of its own;
//! - [`SidecarTool`]: containers of tools in the pods of agents;
//! - [`OwnedFields`], [`is_applied`]: the fields that are injected, and the comparison that spares requests;
//! - [`InjectionProblem`]: what is not injected.

mod desired;
mod injector;
mod owned_fields;
mod problem;
mod sidecar;
mod stores;
mod tool_reference;
mod workload;

pub use desired::{
    CONFIG_FILE, CONFIG_FOLDER, CONFIG_VOLUME, DesiredInjection, HASH_ANNOTATION, InjectedAgent,
    InjectedTool, InjectionFacts, SERVERS_VARIABLE, ToolKey, config_map_name, injection,
};
pub use owned_fields::{OwnedFields, is_applied};
pub use problem::InjectionProblem;
pub use sidecar::{MAX_NAME, SidecarTool};
pub use tool_reference::{AgentReferences, MAX_REFERENCES, TOOLS_ANNOTATION, ToolReference};
pub use workload::{AgentContainer, AgentPod, WORKSPACE_PATH, WorkloadKind, WorkspaceMount};

use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use kube::core::PartialObjectMeta;
use kube::runtime::{Controller, Predicate, WatchStreamExt, controller, predicates, watcher};

use self::injector::{AgentInjector, manager};
use self::stores::InjectionStores;
use crate::controller::{Context, WatchedKind, error_policy, watched};
use crate::labels;

/// Time for which changes of a workload, its tools and its agent are collected.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// Runs the controller until its future is dropped.
pub async fn controller(context: Arc<Context>) {
    let (stores, writers) = InjectionStores::new(&context);
    let (deployment_changes, stateful_set_changes) = (writers.changes(), writers.changes());
    let work = async {
        stores.wait_until_ready().await;
        let injector = Arc::new(AgentInjector::new(context.clone(), stores));
        tokio::join!(
            reconcile_all::<Deployment>(WorkloadKind::Deployment, injector.clone(), deployment_changes),
            reconcile_all::<StatefulSet>(WorkloadKind::StatefulSet, injector, stateful_set_changes),
        );
    };
    tokio::join!(writers.watch(&context), work);
}

/// Reconciles all workloads of a kind: one whose metadata changes, and all of them with each change of tools and agents.
async fn reconcile_all<K>(
    kind: WorkloadKind,
    injector: Arc<AgentInjector>,
    changes: impl Stream<Item = ()> + Send + 'static,
) where
    K: WatchedKind,
{
    let context = injector.context.clone();
    let manager = manager(&context);
    // Only the metadata of workloads is watched.
    let (store, workloads) =
        watched::<PartialObjectMeta<K>, _>(&context, watcher::Config::default(), move |workload| {
            keep_relevant(workload, &manager);
        });
    // A change of the status alone is none.
    let changed = predicates::generation.combine(predicates::annotations);
    let workloads = workloads.predicate_filter(changed, Default::default());
    let config = controller::Config::default().debounce(DEBOUNCE).concurrency(context.config.concurrency);
    Controller::for_stream(workloads, store)
        .with_config(config)
        .reconcile_all_on(changes)
        .run(
            move |meta: Arc<PartialObjectMeta<K>>, injector: Arc<AgentInjector>| async move {
                injector.reconcile(kind, meta.as_ref()).await
            },
            |meta, error, injector| {
                injector.context.metrics.count_reconciliation(&K::kind(&()), false);
                error_policy(meta, error, injector.context.clone())
            },
            injector,
        )
        .for_each(|_| std::future::ready(()))
        .await;
}

/// Removes what an injection does not depend on: clusters have many workloads, and few of them are agents.
fn keep_relevant<K>(workload: &mut PartialObjectMeta<K>, manager: &str) {
    let metadata = &mut workload.metadata;
    if let Some(annotations) = &mut metadata.annotations {
        annotations.retain(|name, _| name == TOOLS_ANNOTATION);
    }
    if let Some(names) = &mut metadata.labels {
        names.retain(|name, _| name == labels::MANAGED_BY);
    }
    if let Some(fields) = &mut metadata.managed_fields {
        fields.retain(|entry| entry.manager.as_deref() == Some(manager));
        for entry in fields {
            entry.fields_v1 = None;
        }
    }
}
