//! The controller of registries.
//!
//! Everything but the status of gateways is watched. A gateway has no stream of its status, so it is read again after
//! [`OperatorConfig::poll_interval`](crate::controller::OperatorConfig), and more often while its registry is pending.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use futures_util::{Stream, StreamExt, future, stream};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ApiResource;
use kube::runtime::WatchStreamExt;
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::events::EventType;
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher::{self, Event};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::OnceCell;
use toolyard_core::timestamp::iso_8601;
use toolyard_manifest::ClusterService;

use super::gateway::{COMPONENT, DesiredObjects, GATEWAY, GatewayIdentity, desired_objects};
use super::report::{GatewayReader, HttpGatewayReader};
use super::resolution::{ResolvedRegistries, cluster_service, resolve, selects_in};
use super::status::{GatewayState, ListBounds, Observation, status};
use super::{DEFINITION, ToolRegistry, ToolRegistryStatus};
use crate::controller::{
    Context, ControllerError, apply_status, apply_value, delete, error_policy, owner_of, resource_key,
    to_value, wait_for_definition, watch, watched, watched_api, with_labels, without_errors,
    without_managed_fields,
};
use crate::labels;

/// Time between two readings of a gateway whose registry is pending.
const PENDING_INTERVAL: Duration = Duration::from_secs(2);

/// Time in which further changes join a reconciliation.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// Runs the controller until its future is dropped.
pub async fn controller(context: Arc<Context>) {
    let timeout = context.config.probe_timeout;
    controller_with(context, Arc::new(HttpGatewayReader { timeout })).await;
}

/// Runs the controller with another reader of gateways.
pub async fn controller_with(context: Arc<Context>, gateways: Arc<dyn GatewayReader>) {
    wait_for_definition(&context, DEFINITION).await;
    let (registries, registry_writer) = reflector::store::<ToolRegistry>();
    let registry_events = watch(watched_api(&context), watcher::Config::default(), without_managed_fields);
    let registry_events = registry_events.reflect(registry_writer);
    let is_shared = context.config.shared_gateway;
    let changed = without_errors(changed_registries(registry_events, registries.clone(), is_shared));
    let (services, all_services) =
        watched::<Service, _>(&context, watcher::Config::default(), without_managed_fields);
    let owned = || with_labels(&[(COMPONENT, GATEWAY), (labels::MANAGED_BY, labels::MANAGER)]);
    let (config_maps, config_map_events) = watched::<ConfigMap, _>(&context, owned(), without_managed_fields);
    let (deployments, deployment_events) =
        watched::<Deployment, _>(&context, owned(), without_managed_fields);
    let (policies, policy_events) = watched::<NetworkPolicy, _>(&context, owned(), without_managed_fields);
    let selecting = registries.clone();
    let reconciler = Arc::new(RegistryReconciler {
        registries: registries.clone(),
        services,
        config_maps,
        deployments,
        policies,
        gateways,
        context: context.clone(),
        are_ready: OnceCell::new(),
    });
    let settings = Config::default().debounce(DEBOUNCE).concurrency(context.config.concurrency);
    Controller::for_stream(changed, registries)
        .with_config(settings)
        .watches_stream(config_map_events, |object| owners(&object))
        .watches_stream(deployment_events, |object| owners(&object))
        .watches_stream(policy_events, |object| owners(&object))
        .watches_stream(all_services, move |service| affected_by(&service, &selecting))
        .run(
            |registry, reconciler: Arc<RegistryReconciler>| async move {
                let outcome = reconciler.reconcile(&registry).await;
                reconciler.context.metrics.count_reconciliation("ToolRegistry", outcome.is_ok());
                outcome
            },
            |registry, error, reconciler| error_policy(registry, error, reconciler.context.clone()),
            reconciler,
        )
        // Failures are logged where they are repeated.
        .for_each(|_| future::ready(()))
        .await;
}

/// Passes registries whose content has changed: a written status is no change. With a shared gateway, a change affects all
/// registries of the namespace, also a deletion.
fn changed_registries(
    events: impl Stream<Item = Result<Event<ToolRegistry>, watcher::Error>> + Send + 'static,
    registries: Store<ToolRegistry>,
    is_shared: bool,
) -> impl Stream<Item = Result<ToolRegistry, watcher::Error>> + Send + 'static {
    let known = Mutex::new(HashMap::new());
    events.flat_map(move |event| {
        let changed = match event {
            Ok(Event::Apply(registry) | Event::InitApply(registry)) => {
                let version = (registry.uid(), registry.metadata.generation);
                let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                let before = known.insert(ObjectRef::from_obj(&registry), version.clone());
                if before == Some(version) { Vec::new() } else { affected(registry, &registries, is_shared) }
            }
            Ok(Event::Delete(registry)) => {
                let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                known.remove(&ObjectRef::from_obj(&registry));
                affected(registry, &registries, is_shared)
            }
            Ok(Event::Init | Event::InitDone) => Vec::new(),
            Err(error) => vec![Err(error)],
        };
        stream::iter(changed)
    })
}

fn affected(
    registry: ToolRegistry,
    registries: &Store<ToolRegistry>,
    is_shared: bool,
) -> Vec<Result<ToolRegistry, watcher::Error>> {
    let neighbours = registries.state_filter(|other| {
        is_shared && other.namespace() == registry.namespace() && other.name_any() != registry.name_any()
    });
    let neighbours = neighbours.iter().map(|other| Ok(other.as_ref().clone()));
    std::iter::once(Ok(registry.clone())).chain(neighbours).collect()
}

/// Returns the registries that an object belongs to.
fn owners<K: Resource<DynamicType = ()>>(object: &K) -> Vec<ObjectRef<ToolRegistry>> {
    let namespace = object.meta().namespace.clone().unwrap_or_default();
    let references = object.meta().owner_references.iter().flatten();
    let references = references.filter(|owner| owner.kind == "ToolRegistry");
    references.map(|owner| ObjectRef::new(&owner.name).within(&namespace)).collect()
}

/// Returns the registries that a change of a Service may affect: those that select in its namespace, and those whose
/// gateway it belongs to. Its labels may have matched before the change.
fn affected_by(service: &Service, registries: &Store<ToolRegistry>) -> Vec<ObjectRef<ToolRegistry>> {
    let namespace = service.namespace().unwrap_or_default();
    let selecting = registries.state_filter(|registry| selects_in(registry, &namespace));
    let selecting = selecting.iter().map(|registry| ObjectRef::from_obj(registry.as_ref()));
    selecting.chain(owners(service)).collect()
}

struct RegistryReconciler {
    registries: Store<ToolRegistry>,
    services: Store<Service>,
    config_maps: Store<ConfigMap>,
    deployments: Store<Deployment>,
    policies: Store<NetworkPolicy>,
    gateways: Arc<dyn GatewayReader>,
    context: Arc<Context>,
    /// Set once the stores have the first lists. One task waits for them at a time: of several, a store wakes only the last.
    are_ready: OnceCell<()>,
}

impl RegistryReconciler {
    /// Waits for the first lists of all stores. A store fails only if its watch has ended, and the controller with it.
    async fn wait_until_ready(&self) {
        self.registries.wait_until_ready().await.ok();
        self.services.wait_until_ready().await.ok();
        self.config_maps.wait_until_ready().await.ok();
        self.deployments.wait_until_ready().await.ok();
        self.policies.wait_until_ready().await.ok();
    }

    async fn reconcile(&self, registry: &ToolRegistry) -> Result<Action, ControllerError> {
        if registry.metadata.deletion_timestamp.is_some() {
            return Ok(Action::await_change());
        }
        // An incomplete copy would remove handlers.
        self.are_ready.get_or_init(|| self.wait_until_ready()).await;
        let config = &self.context.config;
        let namespace = registry.namespace().unwrap_or_default();
        let gateway = GatewayIdentity::of(&registry.name_any(), &namespace, config);
        let members = self.members(registry);
        let resolved = resolve(
            &members.iter().map(AsRef::as_ref).collect::<Vec<_>>(),
            &self.selectable_services(&members),
            &config.service_domain,
        );
        let name = registry.name_any();
        let problems = resolved.problems.get(&name).map(Vec::as_slice).unwrap_or_default();
        // An invalid registry leaves its gateway as it is.
        let has_valid = !resolved.documents.is_empty() && (problems.is_empty() || config.shared_gateway);
        let applied = match has_valid {
            true => self.apply_gateway(&gateway, &resolved, &members).await.map(Some),
            false => Ok(None),
        };
        let state = match &applied {
            Ok(manifest_digest) => self.state(&gateway, manifest_digest.as_deref()).await,
            Err(error) if error.needs_a_person() => GatewayState::Failed(error.message()),
            Err(_) => return applied.map(|_| Action::await_change()),
        };
        let handlers = resolved.handlers.get(&name).map(Vec::as_slice).unwrap_or_default();
        let observed = Observation {
            generation: registry.metadata.generation,
            problems,
            handlers,
            gateway: &state,
            endpoint: problems.is_empty().then(|| gateway.endpoint(config)),
        };
        let bounds = ListBounds { tools: config.status_tools, bytes: config.status_bytes };
        // A reconciliation by timer has the resource as it was at the last change.
        let current = self.registries.get(&ObjectRef::from_obj(registry));
        let current = current.as_deref().unwrap_or(registry);
        let next = status(&observed, current.status.as_ref(), &iso_8601(SystemTime::now()), bounds);
        apply_status(&self.context, current, &next).await?;
        self.publish_change(current, &next).await;
        applied?;
        if self.has_ready_pod(&gateway) {
            self.delete_superseded(registry, &gateway).await?;
        }
        self.context.retries.forget(&resource_key(registry));
        Ok(match (next.phase.as_str(), &state) {
            // The Deployment is watched.
            (_, GatewayState::Starting(_)) if !self.has_ready_pod(&gateway) => Action::await_change(),
            _ if !problems.is_empty() => Action::await_change(),
            ("Pending", _) => Action::requeue(PENDING_INTERVAL.min(config.poll_interval)),
            _ => Action::requeue(config.poll_interval),
        })
    }

    /// Returns the registries of a registry's gateway, the oldest first.
    fn members(&self, registry: &ToolRegistry) -> Vec<Arc<ToolRegistry>> {
        if !self.context.config.shared_gateway {
            return vec![Arc::new(registry.clone())];
        }
        let mut members = self.registries.state_filter(|other| {
            other.namespace() == registry.namespace() && other.metadata.deletion_timestamp.is_none()
        });
        members.sort_by_key(|member| (member.creation_timestamp().map(|time| time.0), member.name_any()));
        members
    }

    fn selectable_services(&self, registries: &[Arc<ToolRegistry>]) -> Vec<ClusterService> {
        let is_selectable = |service: &Service| {
            let namespace = service.namespace().unwrap_or_default();
            registries.iter().any(|registry| selects_in(registry, &namespace))
        };
        self.services.state_filter(is_selectable).iter().map(|service| cluster_service(service)).collect()
    }

    /// Applies the objects of a gateway. Returns the digest of its manifest.
    async fn apply_gateway(
        &self,
        gateway: &GatewayIdentity,
        resolved: &ResolvedRegistries,
        members: &[Arc<ToolRegistry>],
    ) -> Result<String, ControllerError> {
        let config = &self.context.config;
        let owners = members.iter().map(|member| owner_of(member.as_ref()));
        let owners: Vec<_> = owners
            .map(|owner| {
                owner.map(|owner| OwnerReference {
                    controller: Some(!config.shared_gateway),
                    block_owner_deletion: Some(false),
                    ..owner
                })
            })
            .collect::<Result<_, _>>()?;
        let desired = desired_objects(gateway, resolved, &owners, self.context.facts, config);
        let manifest_digest = desired.manifest_digest();
        let DesiredObjects { config_map, deployment, service, network_policy } = desired;
        self.apply(config_map, &self.config_maps, gateway).await?;
        match network_policy {
            Some(policy) => self.apply(policy, &self.policies, gateway).await?,
            None => self.delete_policy(gateway).await?,
        }
        self.apply(service, &self.services, gateway).await?;
        self.apply(deployment, &self.deployments, gateway).await?;
        Ok(manifest_digest)
    }

    async fn delete_policy(&self, gateway: &GatewayIdentity) -> Result<(), ControllerError> {
        match self.policies.get(&ObjectRef::new(&gateway.name).within(&gateway.namespace)) {
            Some(policy) => delete(&self.context, policy.as_ref()).await,
            None => Ok(()),
        }
    }

    /// Deletes the gateways of a registry that have another name, from before a change of
    /// [`OperatorConfig::shared_gateway`](crate::controller::OperatorConfig).
    async fn delete_superseded(
        &self,
        registry: &ToolRegistry,
        gateway: &GatewayIdentity,
    ) -> Result<(), ControllerError> {
        self.delete_others(&self.deployments, registry, gateway).await?;
        self.delete_others(&self.services, registry, gateway).await?;
        self.delete_others(&self.policies, registry, gateway).await?;
        self.delete_others(&self.config_maps, registry, gateway).await
    }

    async fn delete_others<K>(
        &self,
        store: &Store<K>,
        registry: &ToolRegistry,
        gateway: &GatewayIdentity,
    ) -> Result<(), ControllerError>
    where
        K: Resource<DynamicType = ()> + Clone + Serialize,
    {
        let uid = registry.uid().unwrap_or_default();
        let is_other = |object: &K| {
            let labels = object.labels();
            object.owner_references().iter().any(|owner| owner.uid == uid)
                && object.name_any() != gateway.name
                && labels.get(COMPONENT).is_some_and(|component| component == GATEWAY)
                && labels.get(labels::MANAGED_BY).is_some_and(|manager| manager == labels::MANAGER)
        };
        for other in store.state_filter(is_other) {
            tracing::info!(kind = %K::kind(&()), name = other.name_any(), "deleting a superseded gateway");
            delete(&self.context, other.as_ref()).await?;
        }
        Ok(())
    }

    async fn apply<K>(
        &self,
        desired: Value,
        store: &Store<K>,
        gateway: &GatewayIdentity,
    ) -> Result<(), ControllerError>
    where
        K: Resource<DynamicType = ()> + Clone + Serialize,
    {
        let observed = store.get(&ObjectRef::new(&gateway.name).within(&gateway.namespace));
        let observed = observed.map(|observed| to_value(observed.as_ref())).transpose()?;
        apply_value(&self.context, &ApiResource::erase::<K>(&()), desired, observed).await.map(drop)
    }

    fn deployment(&self, gateway: &GatewayIdentity) -> Option<Arc<Deployment>> {
        self.deployments.get(&ObjectRef::new(&gateway.name).within(&gateway.namespace))
    }

    fn has_ready_pod(&self, gateway: &GatewayIdentity) -> bool {
        let deployment = self.deployment(gateway);
        let status = deployment.as_deref().and_then(|deployment| deployment.status.as_ref());
        status.and_then(|status| status.ready_replicas).unwrap_or_default() > 0
    }

    /// Reads the report of a gateway with a ready pod. Without a digest, its manifest stays as it is.
    async fn state(&self, gateway: &GatewayIdentity, manifest_digest: Option<&str>) -> GatewayState {
        if self.has_ready_pod(gateway) {
            return match self.gateways.read(&gateway.authority(&self.context.config)).await {
                Ok(report) => match manifest_digest {
                    Some(digest) => GatewayState::of_report(report, digest),
                    None => GatewayState::Reported(report),
                },
                Err(reason) => GatewayState::Starting(reason),
            };
        }
        let deployment = self.deployment(gateway);
        let conditions = deployment.as_deref().and_then(|deployment| deployment.status.as_ref());
        let mut conditions = conditions.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
        let stuck = conditions.find(|condition| {
            let state = (condition.type_.as_deref(), condition.status.as_deref());
            matches!(state, (Some("Progressing"), Some("False")) | (Some("ReplicaFailure"), Some("True")))
        });
        match stuck {
            Some(condition) => {
                let detail = condition.message.clone().unwrap_or_default();
                GatewayState::Failed(format!("the gateway does not start: {detail}"))
            }
            None => GatewayState::Starting("the gateway has no ready pod yet".to_owned()),
        }
    }

    async fn publish_change(&self, registry: &ToolRegistry, next: &ToolRegistryStatus) {
        let before = registry.status.as_ref().map(|status| status.phase.as_str());
        if before == Some(next.phase.as_str()) {
            return;
        }
        let kind = if matches!(next.phase.as_str(), "Degraded" | "Failed") {
            EventType::Warning
        } else {
            EventType::Normal
        };
        let invalid = next
            .conditions
            .iter()
            .find(|condition| condition.r#type == "HandlersValid" && condition.status == "False");
        let condition =
            invalid.or(next.conditions.iter().find(|condition| condition.r#type == "AllHandlersReady"));
        let note = condition.map(|condition| condition.message.as_str()).unwrap_or_default();
        self.context.publish(&registry.object_ref(&()), kind, "Reconcile", &next.phase, note).await;
    }
}
